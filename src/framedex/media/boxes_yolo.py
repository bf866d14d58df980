"""Boxes of YOLO folders: a text file for each picture, a line an object, in fractions of the picture's sides."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from framedex.errors import InvalidInput
from framedex.media.box_files import files_below, pictures_beside, swapped, whole_file
from framedex.media.boxes import (
    Box,
    Problem,
    Problems,
    Sizes,
    decimal,
    is_confidence,
    label_of,
    number,
    problem,
    without_problems,
)
from framedex.media.class_names import NAMES, class_names_of, data_yaml, holds_class_names
from framedex.media.yolo_numbers import fractions, pixels, text_of
from framedex.regular_files import open_text

_SUFFIX = ".txt"
_LARGEST = 2**26  # bytes of a file: some 100,000 outlines
_PICTURES, _LABELS = {"labels": "images"}, {"images": "labels"}
_FORMS = "class x y width height [confidence], or class and the corners of an outline x1 y1 x2 y2 x3 y3 … [confidence]"


@dataclass(frozen=True, slots=True)
class FractionBox:
    """An object as a YOLO file gives it, which needs the size of its picture; see :func:`in_pixels`.

    Attributes:
        stem: path of the picture within the folder, without its suffix.
        x: of the centre, as a fraction of the picture's width.
        y: of the centre, as a fraction of the picture's height.
        width: as a fraction of the picture's.
        height: as a fraction of the picture's.
        label: name of the class.
        confidence: 0 to 1; None where the file says none.
        place: the file and the line, for messages.
    """

    stem: str
    x: Decimal
    y: Decimal
    width: Decimal
    height: Decimal
    label: str
    confidence: float | None
    place: str


def in_pixels(box: FractionBox, name: str, width: int, height: int) -> Box:
    """Return a box in pixels of its picture, of the name and size given."""
    x, across = pixels(box.x, box.width, width)
    y, down = pixels(box.y, box.height, height)
    return Box(name, x, y, across, down, box.label, box.confidence, source="yolo", place=box.place)


def read_yolo_boxes(folder: Path, problems: Problems) -> Iterator[FractionBox]:
    """Yield the boxes of all label files below a folder, file by file.

    Label files are those below a folder ``labels``, whose pictures are in ``images`` beside it, and those beside a
    picture with the same name. Of an outline its bounding box is taken. Lines with key points look like outlines;
    they cannot be told apart. Lines and files that cannot be understood are problems.

    Args:
        folder: with the names of the classes; see :mod:`framedex.media.class_names`.
        problems: what is wrong is added; the rest is yielded.

    Raises:
        InvalidInput: there are no names of classes or no label files, or a folder cannot be read.
    """
    names, beside, found = class_names_of(folder), pictures_beside(os.fspath(folder)), 0
    if not names:
        raise InvalidInput(f"{os.fspath(folder)!r} has no names of classes: one of {', '.join(NAMES)} must say them")
    try:
        for path in files_below(os.fspath(folder), _SUFFIX):
            where, stem = os.path.split(path.removesuffix(_SUFFIX))
            pictures = swapped(where, _PICTURES)
            if (pictures is None and stem not in beside(where)) or holds_class_names(path):
                continue
            found += 1
            stem = os.path.join(where if pictures is None else pictures, stem)  # noqa: PTH118 - names may be any bytes
            yield from without_problems(_boxes(folder, path, stem, names), problems)
    except OSError as error:
        raise InvalidInput(f"cannot read the labels below {os.fspath(folder)!r}: {error}") from error
    if not found:
        raise InvalidInput(
            f"{os.fspath(folder)!r} holds no YOLO labels: text files below 'labels', or beside pictures of their names"
        )


def _boxes(folder: Path, path: str, stem: str, names: Mapping[int, str]) -> Iterator[FractionBox | Problem]:
    name = os.path.basename(path)  # noqa: PTH119
    try:
        with open_text(folder / path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                yield problem(path, name, f"has more than {_LARGEST:,} bytes; a label file is of one picture")
                return
            for place, line in enumerate(file, 1):
                if columns := line.split():
                    yield _box(f"{path}: line {place}", columns, stem, names)
    except (OSError, UnicodeDecodeError) as error:
        yield problem(path, name, f"cannot be read: {error}")


def _box(place: str, columns: list[str], stem: str, names: Mapping[int, str]) -> FractionBox | Problem:
    kind, numbers = columns[0], [decimal(each) for each in columns[1:]]
    is_number = kind.isascii() and kind.isdigit() and len(kind) < 10
    label = label_of(names.get(int(kind))) if is_number else ""
    if not label:
        return problem(place, kind, f"a line begins with the number of a class, 0 to {max(names)}")
    box, confidence = _bounds([each for each in numbers if each is not None]), None
    if box is None or None in numbers:
        return problem(place, " ".join(columns[1:]), f"must be {_FORMS}, all finite numbers")
    if len(numbers) % 2:
        confidence = number(columns[-1])
        if not is_confidence(confidence):
            return problem(place, columns[-1], "a confidence must be a number from 0 to 1")
    return FractionBox(stem, *box, label, confidence, place)


def _bounds(numbers: list[Decimal]) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
    """Return centre and size of a line's numbers without the class; None where they are too few."""
    if len(numbers) in (4, 5):
        return numbers[0], numbers[1], numbers[2], numbers[3]
    if len(numbers) < 6:
        return None
    across, down = numbers[: len(numbers) // 2 * 2 : 2], numbers[1::2]
    left, right, top, bottom = min(across), max(across), min(down), max(down)
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def write_yolo_boxes(folder: Path, boxes: Iterable[Box], sizes: Sizes, labels: Iterable[str] = ()) -> None:
    """Write ``data.yaml``, and a label file for each picture that has boxes.

    With the pictures in their places, :func:`read_yolo_boxes` and :func:`in_pixels` give the boxes back to the last
    bit. A file is in ``labels`` for pictures in ``images``, else beside its picture's place. Not kept: ids and flags.

    Args:
        folder: where to.
        boxes: those of a picture one after the other.
        sizes: of the pictures.
        labels: the classes from number 0 on; others are numbered as they come.

    Raises:
        InvalidInput: a picture has no size or comes twice, two differ in their suffix only, or a file cannot be
            written.
    """
    numbers = {label: place for place, label in enumerate(labels)}
    written: set[str] = set()
    for name, group in groupby(boxes, key=lambda box: box.name):
        path = yolo_path(name)
        if name not in sizes or path in written:
            reason = "twice, or two that differ in their suffix only" if path in written else "without a size"
            raise InvalidInput(f"a picture {reason}: {name!r}; a YOLO label file is of one picture, with its size")
        written.add(path)
        with whole_file(folder / path) as partial:
            partial.write_text(yolo_text(group, sizes[name], numbers), encoding="utf-8")
    with whole_file(folder / NAMES[0]) as partial:
        partial.write_text(data_yaml(list(numbers)), encoding="utf-8")


def yolo_path(name: str) -> str:
    """Return the path of the label file of a picture."""
    folder, base = os.path.split(os.path.splitext(name)[0])  # noqa: PTH122
    return os.path.join(swapped(folder, _LABELS) or folder, f"{base}{_SUFFIX}")  # noqa: PTH118


def yolo_text(boxes: Iterable[Box], size: tuple[int, int], numbers: dict[str, int]) -> str:
    """Return the content of the label file of a picture.

    Args:
        boxes: of the picture.
        size: width and height of the picture in pixels.
        numbers: of the classes; a class that lacks one gets the next.
    """
    return "".join(f"{_line(box, size, numbers)}\n" for box in boxes)


def _line(box: Box, size: tuple[int, int], numbers: dict[str, int]) -> str:
    x, across = fractions(box.x, box.width, size[0])
    y, down = fractions(box.y, box.height, size[1])
    cells = [text_of(each) for each in (x, y, across, down)]
    if box.confidence is not None:
        cells.append(repr(box.confidence))
    return " ".join([str(numbers.setdefault(box.label, len(numbers))), *cells])
