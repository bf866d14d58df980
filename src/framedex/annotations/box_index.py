"""Index of the boxes of annotation files by image name."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from framedex.annotations.boxes import Box, fit_box
from framedex.annotations.declared_sizes import placed
from framedex.annotations.image_names import NO_SUFFIX, ImageNames, name_text
from framedex.annotations.problems import AnnotationProblem, Problems
from framedex.annotations.relative_boxes import DIGITS, RelativeBox
from framedex.annotations.shapes import (
    NO_SHAPE,
    ObjectShape,
    numbers_of_text,
    numbers_text,
    shape_of_text,
    shape_text,
)
from framedex.annotations.source_lists import SourceLists
from framedex.annotations.text_file import TextFile
from framedex.core.forks import cached_property
from framedex.core.name_forms import local_name

_NO_ID = -(2**63)
_LARGEST = 2**62
_ANY_SIZE = (2**31, 2**31)
_CROWD, _TRUNCATED, _DIFFICULT, _RELATIVE = 1, 2, 4, 8


class BoxIndex:
    """Boxes by image name, see :mod:`framedex.annotations.image_names`. YOLO boxes have names without a suffix.

    The index takes about 85 bytes a box and 150 bytes an image, so boxes may come in any order. Outlines, masks,
    key points and attributes are in a temporary file.

    Args:
        problems: collects the problems of boxes that :meth:`find` returns.

    Attributes:
        lists: the class lists of the files, and the ids of their images.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._names: dict[str, int] = {}
        self._files, self._file, self._loose = list[int](), 1, 0  # the files that have a name, as bits, by its number
        self._images = ImageNames()
        self._labels: dict[str, int] = {}
        self._formats: dict[str, int] = {}
        self._ids: dict[int, str] = {}  # ids that are not plain numbers
        self._name_of, self._label_of, self._number_id = array("i"), array("i"), array("q")
        self._sides, self._confidence = array("d"), array("d")
        self._format, self._flags = array("b"), array("b")
        self._sizes: dict[tuple[int, int] | None, int] = {}  # of images, as the files declare them
        self._size_of = array("i")
        self._shapes, self._shape_ends = TextFile(), array("q")
        self._matched = bytearray()
        self.lists = SourceLists()

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self._name_of)

    def begin_file(self, *, loose: bool) -> None:
        """Begin the boxes of a further file or folder.

        Args:
            loose: whether it lies elsewhere than the images, so that its paths may begin with other folders.
        """
        self._file <<= 1
        self._loose |= self._file * loose
        self.lists.begin_file(loose=loose)

    def add_all(self, boxes: Iterable[Box | RelativeBox]) -> None:
        """Add boxes. All boxes must be added before the first lookup."""
        last, number = None, 0  # boxes come image by image, mostly
        for box in boxes:
            if isinstance(box, Box):
                key, shape, size = (box.name, False), box.shape, box.image_size
                flags = _CROWD * box.iscrowd
            else:
                key, shape, size, flags = (box.name, box.is_stem), _fractions(box), None, _RELATIVE
            flags |= _TRUNCATED * box.truncated | _DIFFICULT * box.difficult
            if key != last:
                last, number = key, self._number_of(*key)
            self._name_of.append(number)
            self._add(box, shape, size, flags)

    def _number_of(self, name: str, is_stem: bool) -> int:
        """Return the number of a name, which the present file has."""
        name = local_name(name)
        number = self._names.setdefault(f"{name}{NO_SUFFIX}" if is_stem else name, len(self._names))
        if number == len(self._files):
            self._files.append(0)
        self._files[number] |= self._file
        return number

    def _add(self, box: Box | RelativeBox, shape: ObjectShape, size: tuple[int, int] | None, flags: int) -> None:
        self._label_of.append(self._labels.setdefault(box.label, len(self._labels)))
        self._sides.extend((box.x, box.y, box.width, box.height))
        self._confidence.append(math.nan if box.confidence is None else box.confidence)
        self._keep_id(box.original_id)
        text = "" if shape is NO_SHAPE and box.attributes is None else shape_text(shape, box.attributes)
        end = self._shape_ends[-1] if self._shape_ends else 0
        self._shape_ends.append(self._shapes.append(text) if text else end)
        self._flags.append(flags)
        self._size_of.append(self._sizes.setdefault(size, len(self._sizes)))
        self._format.append(self._formats.setdefault(box.source, len(self._formats)))

    def _keep_id(self, original: str | None) -> None:
        number = _NO_ID
        if original is not None:
            number = int(original) if original.isascii() and original.isdigit() and len(original) < 18 else _LARGEST
            if str(number) != original:
                self._ids[len(self._number_id)], number = original, _LARGEST
        self._number_id.append(number)

    @property
    def n_images(self) -> int:
        """The number of image names."""
        return len(self._names)

    def find_images(self, paths: Callable[[], Iterable[str]], *, several_roots: bool = False) -> None:
        """Find the images that names mean; before it, names mean the image of their path alone.

        Args:
            paths: returns the paths of all images of the source.
            several_roots: whether images may have the same path, below another root.
        """
        if self._names:
            names = dict(zip(self._names, self._files, strict=True))
            self._images.find(names, paths, self.problems, loose=self._loose, several_roots=several_roots)

    def has(self, path: str) -> bool:
        """Return whether the image at a path within the source has boxes."""
        return bool(self._keys(path))

    def find(self, path: str, size: tuple[int, int] | None, orientation: int = 1) -> list[Box]:
        """Return the boxes of an image, clipped to its edges.

        Args:
            path: the image's path within the source.
            size: its displayed width and height in pixels, or None if they are unknown. Boxes in fractions are then
                left out.
            orientation: its Exif orientation, 1 to 8, see :mod:`framedex.annotations.declared_sizes`.
        """
        keys = self._keys(path)
        for key in keys:
            self._matched[key] = 1
        numbers = [number for key in keys for number in self._rows[self._edges[key] : self._edges[key + 1]].tolist()]
        return [box for number in numbers if (box := self._box(number, path, size, orientation)) is not None]

    @property
    def unmatched(self) -> int:
        """The number of image names with boxes that no lookup matched."""
        return sum(1 for _ in self.unmatched_names())

    def unmatched_names(self) -> Iterator[str]:
        """Yield the image names with boxes that no lookup matched; those of YOLO files without a suffix.

        Names that mean several images are problems, and not among them.
        """
        for name, number in self._names.items():
            if (number >= len(self._matched) or not self._matched[number]) and name not in self._images.ambiguous:
                yield name_text(name)

    def _box(self, number: int, path: str, size: tuple[int, int] | None, orientation: int) -> Box | None:
        box = self._as_read(number, path, size)
        is_relative = bool(self._flags[number] & _RELATIVE)
        if box is not None and size is not None and not is_relative and not _is_in_place(box, size):
            box, problems = placed(box, size, orientation)
            for each in problems:
                self.problems.add(each)
        if box is None:
            return None
        # Without a size, only the checks that need no size run.
        fit = fit_box(box, *(size or _ANY_SIZE))
        if fit.problem is not None:
            self.problems.add(fit.problem)
        return _rounded(fit.box) if fit.box is not None and fit.box is not box and is_relative else fit.box

    def _as_read(self, number: int, path: str, size: tuple[int, int] | None) -> Box | None:
        source, confidence = self._format_names[self._format[number]], self._confidence[number]
        label = self._label_names[self._label_of[number]]
        sure = None if math.isnan(confidence) else confidence
        original = self._ids.get(number)
        if original is None and self._number_id[number] != _NO_ID:
            original = str(self._number_id[number])
        x, y, width, height = self._sides[4 * number : 4 * number + 4]
        flags = self._flags[number]
        shape, attributes = self._shape(number)
        truncated, difficult = bool(flags & _TRUNCATED), bool(flags & _DIFFICULT)
        if flags & _RELATIVE:
            if size is None:
                reason = "the size of the image is not known, of which the numbers are fractions"
                self.problems.add(AnnotationProblem(f"a box of {path!r}", label, reason))
                return None
            outline, keypoints = numbers_of_text(shape.segmentation), numbers_of_text(shape.keypoints)
            box = RelativeBox(
                path, x, y, width, height, label, sure, original, source=source, outline=outline, keypoints=keypoints,
                attributes=attributes, truncated=truncated, difficult=difficult,
            )  # fmt: skip
            return box.in_pixels(path, *size)
        return Box(
            path, x, y, width, height, label, sure, original, source,
            iscrowd=bool(flags & _CROWD), truncated=truncated, difficult=difficult, attributes=attributes, shape=shape,
            image_size=self._declared[self._size_of[number]],
        )  # fmt: skip

    def _shape(self, number: int) -> tuple[ObjectShape, str | None]:
        """Return the shape and the attributes of a box."""
        start = self._shape_ends[number - 1] if number else 0
        end = self._shape_ends[number]
        return shape_of_text(self._shapes.read(start, end)) if end > start else (NO_SHAPE, None)

    def _keys(self, path: str) -> list[int]:
        """Return the numbers of the names that match an image."""
        self._edges  # noqa: B018 - builds the index: no box is added after this
        return [self._names[name] for name in self._images.of(path, self._names)]

    @cached_property
    def _format_names(self) -> list[str]:
        return list(self._formats)

    @cached_property
    def _declared(self) -> list[tuple[int, int] | None]:
        return list(self._sizes)

    @cached_property
    def _label_names(self) -> list[str]:
        return list(self._labels)

    @cached_property
    def _rows(self) -> npt.NDArray[np.int64]:
        """Box numbers, grouped by image name; within a group in file order."""
        return np.argsort(np.frombuffer(self._name_of, np.int32), kind="stable")

    @cached_property
    def _edges(self) -> list[int]:
        counts = np.bincount(np.frombuffer(self._name_of, np.int32), minlength=len(self._names))
        self._matched = bytearray(len(self._names))
        edges: list[int] = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return edges


def _rounded(box: Box) -> Box:
    """Return a box whose sides are rounded, so that whole pixels stay whole numbers."""
    x, y, width, height = (round(side, DIGITS) for side in (box.x, box.y, box.width, box.height))
    return replace(box, x=x, y=y, width=width, height=height)


def _is_in_place(box: Box, size: tuple[int, int]) -> bool:
    """Return whether a box and its shape are in pixels of an image of a size, so that they are not moved."""
    mask = box.shape.segmentation
    return (box.image_size is None or box.image_size == size) and not (mask and mask.startswith("{"))


def _fractions(box: RelativeBox) -> ObjectShape:
    """Return the outline and the key points of a box in fractions."""
    if not box.outline and not box.keypoints:
        return NO_SHAPE
    return ObjectShape(numbers_text(box.outline), numbers_text(box.keypoints))
