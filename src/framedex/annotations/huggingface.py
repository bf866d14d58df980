"""Metadata of image folders of Hugging Face: ``metadata.csv``, ``.jsonl`` or ``.parquet`` in a folder or its parts.

Each row has the ``file_name`` of an image, relative to the file. ``label`` or ``labels``, ``text`` or ``caption``, and
``objects`` with ``bbox`` ([x, y, width, height] in pixels) and ``categories`` are read as such; other columns are
further values of the image.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framedex.annotations.boxes import Box, finite_number, label_of
from framedex.annotations.folders import subfolders
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.labels import parse_labels, storable
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.core.delimited import named_rows
from framedex.core.regular_files import has_file, open_text
from framedex.core.table_rows import MAX_ROW, parquet_rows
from framedex.errors import InvalidInput

NAMES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
_FILE_NAME = "file_name"
LABELS, CAPTIONS, OBJECTS = ("label", "labels"), ("text", "caption"), "objects"
_CATEGORIES = ("categories", "category", "labels", "label")
_Row = tuple[str, Mapping[str, Any] | AnnotationProblem]


def find_files(folder: Path) -> list[str]:
    """Return the paths of metadata files in a folder and in the folders in it."""
    parts = ["", *(f"{each.name}/" for each in subfolders(folder))]
    found = [part + next((name for name in NAMES if has_file(folder / part / name)), "") for part in parts]
    return [each for each in found if each and not each.endswith("/") and _is_metadata(folder / each)]


def has_boxes(folder: Path) -> bool:
    """Return whether the first rows of metadata have objects."""
    return any(OBJECTS in row for each in find_files(folder) for row in _first(folder / each))


def _is_metadata(path: Path) -> bool:
    """Return whether the first row of a file names an image."""
    return any(_FILE_NAME in row for row in _first(path))


def _first(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        row = next(_rows(path), None)
    except InvalidInput:
        return
    if row is not None and not isinstance(row[1], AnnotationProblem):
        yield row[1]


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the labels, caption, part and further values of each image."""
    for file in find_files(folder):
        home = os.path.dirname(file)  # noqa: PTH120
        try:
            for location, row in _rows(folder / file):
                yield row if isinstance(row, AnnotationProblem) else _labels(f"{file}: {location}", home, row)
        except InvalidInput as error:
            yield problem(file, file, str(error))


def _labels(location: str, home: str, row: Mapping[str, Any]) -> ImageLabels | AnnotationProblem:
    name = row.get(_FILE_NAME)
    if not isinstance(name, str) or not name:
        return problem(location, name, f"{_FILE_NAME!r} must be the path of an image, relative to the file")
    caption = next((row[key] for key in CAPTIONS if isinstance(row.get(key), str)), None)
    labels = next((row[key] for key in LABELS if row.get(key) is not None), None)
    known = {_FILE_NAME, *LABELS, *CAPTIONS, OBJECTS}
    others = {key: value for key, value in row.items() if key not in known and value is not None and value != ""}
    path = os.path.join(home, name)  # noqa: PTH118
    return ImageLabels(path, parse_labels(labels), caption, tags=part_tags(home), values=others or None)


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the objects of each image; malformed ones are problems."""
    for file in find_files(folder):
        home = os.path.dirname(file)  # noqa: PTH120
        try:
            for location, row in _rows(folder / file):
                if not isinstance(row, AnnotationProblem):  # which is one of the labels
                    yield from without_problems(_boxes(f"{file}: {location}", home, row), problems)
        except InvalidInput:
            continue


def _boxes(location: str, home: str, row: Mapping[str, Any]) -> Iterator[Box | AnnotationProblem]:
    name, objects = row.get(_FILE_NAME), row.get(OBJECTS)
    if not isinstance(name, str) or not name or objects is None or objects == "":
        return
    objects = json_value(objects) if isinstance(objects, str) else objects
    if not isinstance(objects, dict) or not isinstance(objects.get("bbox"), list):
        yield problem(location, objects, "'objects' must have 'bbox' and 'categories', lists of equal length")
        return
    boxes = objects["bbox"]
    labels = next((objects[key] for key in _CATEGORIES if isinstance(objects.get(key), list)), [None] * len(boxes))
    if len(labels) != len(boxes):
        yield problem(location, len(labels), f"'categories' must have as many values as 'bbox', {len(boxes)}")
        return
    for number, (box, label) in enumerate(zip(boxes, labels, strict=True)):
        yield _box(f"{location}: object {number}", os.path.join(home, name), box, label)  # noqa: PTH118


def _box(location: str, name: str, box: Any, label: Any) -> Box | AnnotationProblem:
    sides = [finite_number(each) for each in box] if isinstance(box, list) else []
    x, y, width, height = sides if len(sides) == 4 else (None,) * 4
    if x is None or y is None or width is None or height is None:
        return problem(location, box, "a 'bbox' must be [x, y, width, height], finite numbers of pixels")
    if not (text := label_of(label)):
        return problem(location, label, "a category must be a name or a number")
    return Box(name, x, y, width, height, text, source="huggingface", location=location)


def json_value(text: str) -> Any:
    """Return the value of a JSON text; None for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _rows(path: Path) -> Iterator[_Row]:
    """Yield (place, row) of a metadata file, row by row; a row that cannot be read is a problem.

    Raises:
        InvalidInput: the file cannot be read.
    """
    try:
        if path.suffix == ".parquet":
            yield from ((f"row {number}", row) for number, row in enumerate(parquet_rows(path, list)))
        elif path.suffix == ".csv":
            broken: list[str] = []
            for line, row in named_rows(path, (_FILE_NAME,), broken=broken.append):
                yield (
                    f"line {line}",
                    {name: each if name == _FILE_NAME else storable(each) for name, each in row.items() if each},
                )
            yield from ((fault, problem(path.name, fault, "must be a row of CSV")) for fault in broken)
        else:
            yield from _lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r}: {error}") from error


def _lines(path: Path) -> Iterator[_Row]:
    with open_text(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_ROW + 1), ""), 1):
            if len(line) > MAX_ROW:
                raise InvalidInput(f"{os.fspath(path)!r}, line {number}: has more than {MAX_ROW:,} characters")
            if line.strip():
                value = json_value(line)
                is_row = isinstance(value, dict)
                where = f"line {number}"
                yield where, value if is_row else problem(f"{path.name}: {where}", line, "must be an object of JSON")
