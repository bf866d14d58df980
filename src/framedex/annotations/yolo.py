"""YOLO folders: one text file for each image, one line for each box, in fractions of the image's sides.

Label files lie below a folder ``labels`` with the images in ``images`` beside it, or beside their images. A file of
:mod:`framedex.annotations.class_names` has the class names.

Boxes are objects. Only our own exports have labels of whole images, too: ``image_annotations.csv`` is beside them, and
a line ``class 0.5 0.5 1 1`` is a label.
"""

import json as plain_json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.boxes import Box, finite_number, has_other_bounds, is_confidence, label_of
from framedex.annotations.class_names import (
    DATA_YAML,
    WANTED,
    class_names_of,
    data_yaml,
    holds_class_names,
    names_file_of,
)
from framedex.annotations.folders import (
    image_finder,
    is_folder,
    list_files_below,
    replace_folder,
    stems,
    subfolders,
)
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.output import (
    OBJECTS,
    SPLIT,
    AnnotatedImages,
    Files,
    boxes_by_image,
    column,
    file_names,
    label_numbers,
    omissions,
    other_bounds,
)
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.shapes import polygon_area
from framedex.annotations.source_lists import SourceClass
from framedex.annotations.tables import LABELS_CSV, write_label_table
from framedex.annotations.yolo_keypoints import (
    KeypointShape,
    details_of_names,
    keypoint_names_of,
    keypoint_shape_of,
    names_of_details,
)
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.core.regular_files import has_file, open_text, scan
from framedex.core.suffixes import is_image
from framedex.errors import InvalidInput

_SUFFIX = ".txt"
_LARGEST = 2**26  # bytes of a file: some 100,000 outlines
_IMAGES, _LABELS = "images", "labels"
_FORMS = "class x y width height [confidence], or class and the corners of an outline x1 y1 x2 y2 x3 y3 … [confidence]"
_WHOLE = "0.5 0.5 1 1"
_NEARLY_WHOLE = "0.5 0.5 1 0.9999999999999999"
"""The largest box that is not a label of the image; it is less than a billionth of a pixel smaller than the image."""
_CORNERS = 6  # numbers of the smallest outline
_LONGEST = 2**16  # characters of a line
_UNUSED = "label files that are not used"
_BELOW_IMAGES = f"^((?:.*/)?){_IMAGES}/"
_DIGITS = 14  # after the decimal point: a billionth of a pixel in an image of 100,000 pixels a side


def is_yolo(folder: Path) -> bool:
    """Return whether a folder has label files, and names of classes or a file that should have them."""
    try:
        if names_file_of(folder) is None:
            return False
    except InvalidInput:  # it is an error of the boxes
        pass
    return any(is_folder(home / _LABELS) or _beside_images(home) for home in (folder, *subfolders(folder)))


def _beside_images(folder: Path) -> bool:
    """Return whether a folder has a text file beside an image of its name."""
    try:
        with scan(folder) as entries:
            names = {entry.name for entry in entries}
    except OSError:
        return False
    texts = {name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}
    return bool(texts) and any(is_image(name) and os.path.splitext(name)[0] in texts for name in names)  # noqa: PTH122


# Reading labels and classes


def read_lists(folder: Path) -> Iterator[SourceClass]:
    """Yield the classes of a folder in the order of their numbers.

    Raises:
        InvalidInput: a file of class names is malformed.
    """
    names_of_points = keypoint_names_of(folder)
    for number, name in sorted((class_names_of(folder) or {}).items()):
        yield SourceClass(label_of(name), number, details=details_of_names(names_of_points, number))


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the labels of whole images in one of our exports, by the image's path in the folder without its suffix.

    Label files in ``labels`` that nobody can use, because the folder has no names of classes, are problems.

    Raises:
        InvalidInput: a file of class names is malformed.
    """
    homes = [home for home in (folder, *subfolders(folder)) if is_folder(home / _LABELS)]
    if not homes:
        return
    if not class_names_of(folder):
        for home in homes:
            for path in list_files_below(os.fspath(home / _LABELS), _SUFFIX):
                if _has_boxes(home / _LABELS / path):
                    name = (home / _LABELS / path).relative_to(folder).as_posix()
                    yield problem(name, name, f"no names of classes were found: {WANTED} must have them", _UNUSED)
    elif _has_label_table(folder):
        for box in _boxes_below(folder, Problems()):
            if _is_label(box):
                yield ImageLabels(box.name, (box.label,), is_stem=True)


def _has_boxes(path: Path) -> bool:
    """Return whether the first line of a file has the numbers of a box."""
    try:
        with open_text(path) as file:
            columns = file.readline(_LONGEST).split()
    except (OSError, UnicodeDecodeError):
        return False
    return len(columns) > 4 and all(finite_number(each) is not None for each in columns)


def _has_label_table(folder: Path) -> bool:
    return has_file(folder / LABELS_CSV)


def _is_label(box: RelativeBox) -> bool:
    """Return whether a line is exactly what an export writes for a label of a whole image."""
    is_whole = (box.x, box.y, box.width, box.height) == (0.5, 0.5, 1.0, 1.0)
    return is_whole and box.confidence is None and not box.outline and not box.keypoints


# Reading boxes


def read_boxes(folder: Path, problems: Problems) -> Iterator[RelativeBox]:
    """Yield the boxes of all label files below a folder, file by file, without those that are labels of whole images.

    An outline becomes its bounding box. Lines with key points look like outlines; they are read as such unless
    ``data.yaml`` has their ``kpt_shape``. Malformed lines and files are problems.

    Args:
        folder: with the class names.
        problems: collects malformed lines and files.

    Raises:
        InvalidInput: the folder has no class names or no label files, its ``kpt_shape`` is malformed, or it cannot be
            read.
    """
    with_labels = _has_label_table(folder)
    return (box for box in _boxes_below(folder, problems) if not (with_labels and _is_label(box)))


def _boxes_below(folder: Path, problems: Problems) -> Iterator[RelativeBox]:
    shape = keypoint_shape_of(folder)
    names, is_label_file, n_files = class_names_of(folder), label_file_finder(folder), 0
    labels = {number: label_of(name) for number, name in (names or {}).items()}
    if not names:
        raise InvalidInput(f"{os.fspath(folder)!r} has no names of classes: {WANTED} must have them")
    try:
        for path in list_files_below(os.fspath(folder), _SUFFIX):
            if not is_label_file(path):
                continue
            directory, stem_ = os.path.split(path.removesuffix(_SUFFIX))
            images = replace_folder(directory, {_LABELS: _IMAGES})
            n_files += 1
            image = os.path.join(directory if images is None else images, stem_)  # noqa: PTH118 - names may be any bytes
            yield from without_problems(_boxes(folder, path, image, labels, shape), problems)
    except OSError as error:
        raise InvalidInput(f"cannot read the labels below {os.fspath(folder)!r}: {error}") from error
    if not n_files:
        raise InvalidInput(
            f"{os.fspath(folder)!r} holds no YOLO labels: text files below 'labels', or beside images of their names"
        )


def label_file_finder(folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether a path within a folder is that of a label file."""
    images_in = image_finder(os.fspath(folder))

    def is_label_file(path: str) -> bool:
        if not path.endswith(_SUFFIX) or holds_class_names(path):
            return False
        directory, stem_ = os.path.split(path.removesuffix(_SUFFIX))
        return replace_folder(directory, {_LABELS: _IMAGES}) is not None or stem_ in images_in(directory)

    return is_label_file


def _boxes(
    folder: Path, path: str, image: str, labels: Mapping[int, str], shape: KeypointShape | None
) -> Iterator[RelativeBox | AnnotationProblem]:
    name = os.path.basename(path)  # noqa: PTH119
    try:
        with open_text(folder / path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                yield problem(path, name, f"has more than {_LARGEST:,} bytes; a label file is of one image")
                return
            for line_number, line in enumerate(file, 1):
                if columns := line.split():
                    yield _box(f"{path}: line {line_number}", columns, image, labels, shape)
    except (OSError, UnicodeDecodeError) as error:
        yield problem(path, name, f"cannot be read: {error}")


def _box(
    location: str, columns: list[str], image: str, labels: Mapping[int, str], shape: KeypointShape | None
) -> RelativeBox | AnnotationProblem:
    kind, parsed = columns[0], [finite_number(each) for each in columns[1:]]
    number = finite_number(kind) if kind.isascii() else None  # many tools write 1.0
    label = labels.get(int(number), "") if number is not None and number.is_integer() else ""
    if not label:
        return problem(location, kind, f"a line begins with the number of a class, 0 to {max(labels)}")
    numbers = [each for each in parsed if each is not None]
    form, line = (_FORMS, _outlined(numbers)) if shape is None else (_posed_form(shape), _posed(numbers, shape))
    if line is None or None in parsed:
        return problem(location, " ".join(columns[1:]), f"must be {form}, all finite numbers")
    if line.confidence is not None and not is_confidence(line.confidence):
        return problem(location, columns[-1], "a confidence must be a number from 0 to 1")
    return RelativeBox(
        image, *line.sides, label, line.confidence, location=location,
        outline=line.outline, keypoints=line.keypoints, is_stem=True,
    )  # fmt: skip


class _Line(NamedTuple):
    """The numbers of a line: centre and size, and what follows."""

    sides: tuple[float, float, float, float]
    confidence: float | None
    outline: tuple[float, ...] = ()
    keypoints: tuple[float, ...] = ()


def _posed_form(shape: KeypointShape) -> str:
    """Return what a line with key points has."""
    return (
        f"class x y width height, {shape.count} key points of {shape.numbers} numbers each as 'kpt_shape' has them "
        "[and a confidence]"
    )


def _posed(numbers: list[float], shape: KeypointShape) -> _Line | None:
    """Return a line with key points, which may lack them all; None for another number of numbers."""
    end = 4 if len(numbers) in (4, 5) else 4 + shape.length
    if len(numbers) not in (end, end + 1):
        return None
    sides = numbers[0], numbers[1], numbers[2], numbers[3]
    keypoints = shape.points(numbers[4:end]) if end > 4 else ()
    return _Line(sides, numbers[end] if len(numbers) > end else None, keypoints=keypoints)


def _outlined(numbers: list[float]) -> _Line | None:
    """Return a line with a box or an outline; None for too few numbers."""
    sides = _bounds(numbers)
    if sides is None:
        return None
    corners = numbers[: len(numbers) // 2 * 2]
    confidence = numbers[-1] if len(numbers) % 2 else None
    return _Line(sides, confidence, tuple(corners) if len(corners) >= _CORNERS else ())


def _bounds(numbers: list[float]) -> tuple[float, float, float, float] | None:
    """Return the centre and size that a line gives, without its class; None for too few numbers."""
    if len(numbers) in (4, 5):
        return numbers[0], numbers[1], numbers[2], numbers[3]
    if len(numbers) < 6:
        return None
    across, down = numbers[: len(numbers) // 2 * 2 : 2], numbers[1::2]
    left, right, top, bottom = min(across), max(across), min(down), max(down)
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write ``data.yaml``, and a file below ``labels`` for each image, which is empty for one without boxes.

    Some readers leave out images without a file. A dataset without classes has no such files. Classes have the order of
    the dataset's class list. A label file has the path of its image with the last ``images`` replaced by ``labels``.
    Lines have five numbers; on request a confidence as the last, key points, or outlines instead of boxes. With key
    points all lines have the same number of them, which ``data.yaml`` has as ``kpt_shape``. A table beside them has the
    labels and captions of whole images. In an export without boxes, each label of an image is a box around the whole
    image, too (``class 0.5 0.5 1 1``), for other readers.

    If the images are divided, ``data.yaml`` names the folder of each part; in an export without image files a list of
    images, such as ``train.txt``.

    Returns:
        Sentences about the data that the files cannot hold.

    Raises:
        InvalidInput: the parts lack ``train`` or ``val``.
    """
    if images.splits and not {"train", "val"} <= set(images.splits):
        raise InvalidInput(
            f"a split for YOLO needs the parts 'train' and 'val', and may have 'test', not {', '.join(images.splits)}"
        )
    names = column(images.classes(), "name").to_pylist()
    parts = _write_lists(files, images, part(progress, 0.0, 0.1))
    points = _names_of_keypoints(images) if images.with_keypoints else {}
    count = _most_keypoints(images, points, part(progress, 0.1, 0.2)) if images.with_keypoints else 0
    files.add(DATA_YAML, data_yaml(names, parts, keypoints=count, keypoint_names=points).encode())
    lines = part(progress, 0.2, 0.9)
    notes = []
    if names and images.with_boxes:
        notes = _write_boxes(files, images, names, count, lines)
    elif names:
        _write_labels(files, images, lines)
    write_label_table(files, images, part(progress, 0.9, 1.0))
    return notes


def _names_of_keypoints(images: AnnotatedImages) -> dict[int, list[str]]:
    """Return the names of the key points of classes, by the number of the class."""
    names = map(names_of_details, column(images.classes(), "details").to_pylist())
    return {number: each for number, each in enumerate(names) if each}


def _most_keypoints(images: AnnotatedImages, names: Mapping[int, Sequence[str]], progress: ShareProgress) -> int:
    """Return the largest number of key points of a box or class."""
    most = max(map(len, names.values()), default=0)
    if images.with_boxes:
        for block in images.blocks([OBJECTS], progress):
            texts = column(block, OBJECTS).flatten().field("keypoints").drop_null()
            most = max(most, *(len(plain_json.loads(text)) // 3 for text in texts.to_pylist()), 0)
    return most


def label_stems(paths: pa.Array) -> pa.Array:
    """Return the paths of the label files of images, without their suffix.

    The last folder ``images`` becomes ``labels``; a path without such a folder is below ``labels``.
    """
    texts = stems(paths)
    within = pc.match_substring_regex(texts, _BELOW_IMAGES)
    beside = pc.replace_substring_regex(texts, f"(?s){_BELOW_IMAGES}(.*)$", rf"\1{_LABELS}/\2")
    return pc.if_else(within, beside, pc.binary_join_element_wise(f"{_LABELS}/", texts, ""))


def _write_lists(files: Files, images: AnnotatedImages, progress: ShareProgress) -> dict[str, list[str]]:
    """Return the places of the images for ``data.yaml``, by part; write lists of images if no folder has the parts."""
    if images.folder:
        parts = {split: [f"{_IMAGES}/{split}"] for split in images.splits}
        return parts or {"train": [_IMAGES], "val": [_IMAGES]}
    if not images.splits:
        folders: dict[str, None] = {}
        for block in images.blocks(["file_name"], progress):
            roots = pc.replace_substring_regex(column(block, "file_name"), f"(?s){_BELOW_IMAGES}.*$", rf"\1{_IMAGES}")
            is_below = pc.match_substring_regex(column(block, "file_name"), _BELOW_IMAGES)
            folders |= dict.fromkeys(pc.unique(pc.if_else(is_below, roots, _IMAGES)).to_pylist())
        places = sorted(folders) or [_IMAGES]
        return {"train": places, "val": places}
    for split in images.splits:
        with files.member(f"{split}{_SUFFIX}", compressed=True) as member:
            for block in images.blocks(["file_name", "media_id", SPLIT], progress):
                names = column(block, "file_name").filter(pc.equal(column(block, SPLIT), split))
                member.write(json.join_rows(pc.binary_join_element_wise("./", names, "\n", ""), end=""))
    return {split: [f"{split}{_SUFFIX}"] for split in images.splits}


def _write_boxes(
    files: Files, images: AnnotatedImages, names: Sequence[str], keypoints: int, progress: ShareProgress
) -> list[str]:
    sizeless = simplified = inexact = 0
    labels = pa.array(names, pa.string())
    for whole in images.blocks(["file_name", "width", "height", OBJECTS], progress):
        is_sized = pc.and_(pc.is_valid(column(whole, "width")), pc.is_valid(column(whole, "height")))
        block = whole.filter(is_sized)
        objects = column(block, OBJECTS)
        values = objects.flatten()
        sizeless += len(column(whole, OBJECTS).flatten()) - len(values)
        parts = [json.integers(pc.index_in(values.field("label"), value_set=labels)), " "]
        sized = [(box, size) for _, size, boxes in boxes_by_image(block) for box in boxes if size is not None] if (
            images.with_outlines or keypoints
        ) else []  # fmt: skip
        if images.with_outlines:
            outlines = [_outline(*each) for each in sized]
            simplified += sum(is_simplified for _, is_simplified in outlines)
            inexact += sum(
                has_other_bounds(box) for (box, _), (_, is_less) in zip(sized, outlines, strict=True) if not is_less
            )
            parts.append(pa.array([text for text, _ in outlines], pa.string()))
        else:
            parts.append(_sides(block, objects))
        if keypoints:
            parts.append(pa.array([_points(*each, keypoints) for each in sized], pa.string()))
        if images.with_confidences:
            texts = pc.binary_join_element_wise(" ", pc.cast(values.field("confidence"), pa.string()), "")
            parts.append(pc.fill_null(texts, ""))
        lines = pc.binary_join_element_wise(*parts, "\n", "")
        _add_files(files, images, block, json.join_lists(lines, objects, separator=""))
    notes = [f"{counted(sizeless, 'boxes', 'are')} left out: the size of the image is not known"] if sizeless else []
    if simplified:
        notes.append(
            f"{counted(simplified, 'outlines', 'are')} simplified: a line of YOLO holds one polygon, and no mask"
        )
    notes += other_bounds(inexact)
    lacking = ["original_id", "iscrowd", "truncated", "difficult", "attributes"]
    lacking += ["keypoints"] * (not images.with_keypoints) + ["confidence"] * (not images.with_confidences)
    lacking += ["segmentation"] * (not images.with_outlines)
    return notes + omissions(images, lacking, "YOLO")


def _sides(block: pa.Table, objects: pa.ListArray) -> pa.Array:
    """Return the centre and the size of each box in fractions of its image's sides, as texts."""
    owner = pc.list_parent_indices(objects)
    size = np.stack([column(block, side).take(owner).to_numpy().astype(np.float64) for side in ("width", "height")], 1)
    edges = objects.flatten().field("bbox").flatten().to_numpy().reshape(-1, 4)
    extent = edges[:, 2:] / size
    numbers = _texts(np.concatenate([edges[:, :2] / size + extent / 2, extent], axis=1).ravel())
    sides = pc.binary_join_element_wise(*(numbers.take(np.arange(side, len(numbers), 4)) for side in range(4)), " ")
    return pc.if_else(pc.equal(sides, _WHOLE), _NEARLY_WHOLE, sides)


def _texts(fractions: npt.NDArray[np.float64]) -> pa.Array:
    """Return the results of :func:`_text` for many fractions."""
    unit = 10.0**_DIGITS
    texts = pc.cast(pa.array(np.rint(fractions * unit) / unit), pa.string())  # the shortest text of a rounded number
    odd = pc.or_(pc.match_substring(texts, "e"), pa.array(~(np.abs(fractions) < 8)))  # an exponent, or more digits
    rare = [_text(each) for each in fractions[odd.to_numpy(zero_copy_only=False)].tolist()]
    return pc.replace_with_mask(texts, odd, pa.array(rare, pa.string())) if rare else texts


def _outline(box: Box, size: tuple[int, int]) -> tuple[str, bool]:
    """Return the corners of the largest polygon of a box, or else of the box; and whether the shape had more."""
    shape = plain_json.loads(box.shape.segmentation or "[]")
    polygons = shape if isinstance(shape, list) else []
    right, lower = box.x + box.width, box.y + box.height
    corners = max(polygons, key=polygon_area, default=[box.x, box.y, right, box.y, right, lower, box.x, lower])
    inside = (min(max(each / size[place % 2], 0.0), 1.0) for place, each in enumerate(corners))
    return " ".join(map(_text, inside)), isinstance(shape, dict) or len(polygons) > 1


def _points(box: Box, size: tuple[int, int], count: int) -> str:
    """Return the key points of a box with their visibilities, as many as all lines have; the further ones missing.

    Points outside of the image are moved to its edge, because readers refuse them.
    """
    values = plain_json.loads(box.shape.keypoints or "[]")
    values += [0] * (3 * count - len(values))
    inside = (
        each if place % 3 == 2 else min(max(each / size[place % 3], 0.0), 1.0) for place, each in enumerate(values)
    )
    return "".join(f" {_text(each)}" for each in inside)


def _text(fraction: float) -> str:
    """Return a fraction without an exponent and without trailing zeros."""
    return f"{fraction:.{_DIGITS}f}".rstrip("0").rstrip(".")


def _write_labels(files: Files, images: AnnotatedImages, progress: ShareProgress) -> None:
    names = column(images.classes(), "name")
    for block in images.blocks(["file_name", "labels"], progress):
        _add_files(files, images, block, _class_lines(column(block, "labels"), names))


def _add_files(files: Files, images: AnnotatedImages, block: pa.Table, texts: pa.Array) -> None:
    """Add the label file of each image in a block; that of an image without lines is empty."""
    paths = pc.binary_join_element_wise(label_stems(file_names(images, block)), _SUFFIX, "")
    for path, text in zip(paths.to_pylist(), pc.fill_null(texts, "").to_pylist(), strict=True):
        files.add(path, text.encode())


def _class_lines(lists: pa.Array, labels: pa.Array) -> pa.Array:
    """Return one line for each label of each image; null for an image without labels."""
    lines = pc.binary_join_element_wise(json.integers(label_numbers(lists, labels)), f" {_WHOLE}\n", "")
    return json.join_lists(lines, lists, separator="")
