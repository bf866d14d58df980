"""All boxes of annotation files, by the pictures that they are in."""

import os
from array import array
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from framedex.annotations.boxes import Box, fit_box
from framedex.annotations.problems import Problem, Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.forks import cached_property

_NO_ID = -(2**63)
_LARGEST = 2**62
_NOBODY = -1
_ANY_SIZE = (2**31, 2**31)
_DIGITS = 9  # behind the point, in pixels: fractions of 64 bits lead back to so many
_CROWD, _TRUNCATED, _DIFFICULT, _RELATIVE = 1, 2, 4, 8


def _of_stem(stem: str) -> str:
    """Return the name under which boxes of a path without a suffix are kept: none that a file has."""
    return f"{stem}\0"


class BoxIndex:
    """Boxes by the name of their picture: its path within the source, or its bare name; of YOLO without the suffix.

    Some 70 bytes a box and 150 a picture are held, so that files whose boxes come in any order can be used.

    Args:
        problems: gets what is wrong with boxes once they are asked for.
        loose: also find boxes by the bare name of a picture if they are named by a path that no picture has, as those
            of files that lie elsewhere; names that several pictures share find nothing.
    """

    def __init__(self, problems: Problems, *, loose: bool = False) -> None:
        self.problems, self._loose = problems, loose
        self._names: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._formats: dict[str, int] = {}
        self._ids: dict[int, str] = {}  # those that are no plain numbers
        self._name_of, self._label_of, self._number_id = array("i"), array("i"), array("q")
        self._sides, self._confidence = array("d"), array("d")
        self._format, self._flags = array("b"), array("b")
        self._asked = bytearray()

    def __len__(self) -> int:
        """How many boxes there are."""
        return len(self._name_of)

    def add_all(self, boxes: Iterable[Box | RelativeBox]) -> None:
        """Take boxes, before any is asked for."""
        for box in boxes:
            if isinstance(box, Box):
                name = os.path.normpath(box.name.replace("\\", "/"))
                flags = _CROWD * box.iscrowd | _TRUNCATED * box.truncated | _DIFFICULT * box.difficult
                self._add(name, box, flags, box.original_id)
            elif not box.is_whole:  # one around all of an image is a label of that, and no object
                self._add(_of_stem(os.path.normpath(box.stem)), box, _RELATIVE, None)

    def _add(self, name: str, box: Box | RelativeBox, flags: int, original: str | None) -> None:
        self._name_of.append(self._names.setdefault(name, len(self._names)))
        self._label_of.append(self._labels.setdefault(box.label, len(self._labels)))
        self._sides.extend((box.x, box.y, box.width, box.height))
        self._confidence.append(np.nan if box.confidence is None else box.confidence)
        self._keep_id(original)
        self._flags.append(flags)
        self._format.append(self._formats.setdefault(box.source, len(self._formats)))

    def _keep_id(self, original: str | None) -> None:
        number = _NO_ID
        if original is not None:
            number = int(original) if original.isascii() and original.isdigit() and len(original) < 18 else _LARGEST
            if str(number) != original:
                self._ids[len(self._number_id)], number = original, _LARGEST
        self._number_id.append(number)

    @property
    def pictures(self) -> int:
        """How many names of pictures there are."""
        return len(self._names)

    def has(self, path: str) -> bool:
        """Return whether the picture at a path within the source has boxes."""
        return bool(self._keys(path))

    def find(self, path: str, size: tuple[int, int] | None) -> list[Box]:
        """Return the boxes of the picture at a path within the source, as far as they lie within it.

        Args:
            path: of the picture.
            size: its width and height in pixels; None if that is not known, which leaves YOLO's out.
        """
        keys = self._keys(path)
        for key in keys:
            self._asked[key] = 1
        numbers = [number for key in keys for number in self._rows[self._edges[key] : self._edges[key + 1]].tolist()]
        return [box for number in numbers if (box := self._box(number, path, size)) is not None]

    @property
    def unmatched(self) -> int:
        """How many pictures have boxes that were never asked for."""
        return len(self._names) - sum(self._asked)

    def _box(self, number: int, path: str, size: tuple[int, int] | None) -> Box | None:
        box = self._as_read(number, path, size)
        if box is None:
            return None
        is_relative = bool(self._flags[number] & _RELATIVE)
        # Without the size, only the checks that need none are made.
        fit = fit_box(_rounded(box) if is_relative else box, *(size or _ANY_SIZE))
        if fit.problem is not None:
            self.problems.add(fit.problem)
        return _rounded(fit.box) if fit.box is not None and is_relative else fit.box

    def _as_read(self, number: int, path: str, size: tuple[int, int] | None) -> Box | None:
        source, confidence = self._format_names[self._format[number]], self._confidence[number]
        label = self._label_names[self._label_of[number]]
        sure = None if np.isnan(confidence) else confidence
        x, y, width, height = self._sides[4 * number : 4 * number + 4]
        if self._flags[number] & _RELATIVE:
            if size is None:
                reason = "the size of the picture is not known, of which the numbers are fractions"
                self.problems.add(Problem(f"a box of {path!r}", label, reason))
                return None
            return RelativeBox(path, x, y, width, height, label, sure, source=source).in_pixels(path, *size)
        flags, original = self._flags[number], self._ids.get(number)
        if original is None and self._number_id[number] != _NO_ID:
            original = str(self._number_id[number])
        return Box(
            path, x, y, width, height, label, sure, original, source,
            iscrowd=bool(flags & _CROWD), truncated=bool(flags & _TRUNCATED), difficult=bool(flags & _DIFFICULT),
        )  # fmt: skip

    def _keys(self, path: str) -> list[int]:
        """Return the numbers of the names by which a picture has boxes."""
        self._edges  # noqa: B018 - from now on nothing is added
        found = []
        stem = os.path.splitext(path)[0]  # noqa: PTH122 - names may be any bytes
        for name in ((path, path.rpartition("/")[2]), (_of_stem(stem), _of_stem(stem.rpartition("/")[2]))):
            key = next((self._names[each] for each in name if each in self._names), None)
            if key is None and self._loose:
                key = self._bare.get(name[1])
            if key is not None and key != _NOBODY:
                found.append(key)
        return found

    @cached_property
    def _bare(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, number in self._names.items():
            bare = name.rpartition("/")[2]
            if bare != name:
                found[bare] = _NOBODY if bare in found else number
        return found

    @cached_property
    def _format_names(self) -> list[str]:
        return list(self._formats)

    @cached_property
    def _label_names(self) -> list[str]:
        return list(self._labels)

    @cached_property
    def _rows(self) -> npt.NDArray[np.int64]:
        """The numbers of the boxes, those of one picture after those of another, else in the order of the files."""
        return np.argsort(np.frombuffer(self._name_of, np.int32), kind="stable")

    @cached_property
    def _edges(self) -> list[int]:
        counts = np.bincount(np.frombuffer(self._name_of, np.int32), minlength=len(self._names))
        self._asked = bytearray(len(self._names))
        edges: list[int] = np.concatenate([[0], np.cumsum(counts)]).tolist()
        return edges


def _rounded(box: Box) -> Box:
    """Return a box of which whole numbers of pixels are whole."""
    x, y, width, height = (round(side, _DIGITS) for side in (box.x, box.y, box.width, box.height))
    return replace(box, x=x, y=y, width=width, height=height)
