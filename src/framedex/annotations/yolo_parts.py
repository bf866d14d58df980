"""Parts of YOLO folders: ``train``, ``val`` and ``test`` of ``data.yaml`` name folders of images or lists of them.

Places are relative to ``path``, or to the file (docs.ultralytics.com). A place outside of the folder is none.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framedex.annotations.class_names import names_file_of, yaml_files, yaml_value
from framedex.annotations.folders import is_folder, list_files_below
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, problem
from framedex.annotations.yolo import is_yolo
from framedex.core.name_forms import inner_parts, normal_name
from framedex.core.regular_files import has_file, open_text, read_text
from framedex.core.suffixes import IMAGE_SUFFIXES
from framedex.errors import InvalidInput

_PARTS = ("train", "val", "test")
_DARKNET = ("obj.data", "data/obj.data")
_LONGEST = 2**16  # characters of a line


def find_files(folder: Path) -> list[str]:
    """Return what a folder has of YOLO: the file of class names."""
    try:
        found = names_file_of(folder) if is_yolo(folder) else None
    except InvalidInput as error:  # it is an error of the boxes
        return [path.name for path in yaml_files(folder) if path.name in str(error)]
    return [] if found is None else [found[0]]


def read_parts(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the part of each image. A place that several parts name says nothing."""
    try:
        base, given = _described(folder)
    except InvalidInput:  # it is an error of the boxes
        return
    found = {part: [_place(folder, base, each) for each in places] for part, places in given.items()}
    every = [each for places in found.values() for each in places]
    for part, places in found.items():
        for place in places:
            if place is not None and every.count(place) == 1:
                yield from _images(folder, place, part_tags(part))


def _described(folder: Path) -> tuple[Any, dict[str, list[str]]]:
    """Return ``path`` and the places of each part in the first file with some: YAML, or darknet's ``obj.data``."""
    for path in yaml_files(folder):
        given = {part: _places(yaml_value(path, part)) for part in _PARTS}
        if any(given.values()):
            return yaml_value(path, "path"), given
    for name in _DARKNET:
        if has_file(folder / name):
            try:
                lines = read_text(folder / name, max_bytes=_LONGEST).splitlines()
            except (OSError, ValueError) as error:
                raise InvalidInput(f"cannot read {folder / name}: {error}") from error
            pairs = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
            return None, {part: _places(pairs.get({"val": "valid"}.get(part, part))) for part in _PARTS}
    return None, {}


def _places(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _place(folder: Path, base: Any, place: str) -> str | None:
    """Return a place within the folder: as it is, below ``path``, or without a beginning that leads out of it."""
    plain = normal_name(place)
    below = f"{base}/{plain}" if isinstance(base, str) and base else plain
    inner = "/".join(inner_parts(plain))
    for each in (plain, below, inner, _path(folder, inner)):
        name = os.path.normpath(each)
        if name.startswith(("..", "/")):
            continue
        if is_folder(folder / name) or (name.endswith(".txt") and has_file(folder / name)):
            return name
    return None


def _images(folder: Path, place: str, tags: tuple[str, ...]) -> Iterator[ImageLabels | AnnotationProblem]:
    if is_folder(folder / place):
        for suffix in sorted({form for each in IMAGE_SUFFIXES for form in (each, each.upper())}):
            for name in list_files_below(os.fspath(folder / place), suffix):
                yield ImageLabels(name if place == "." else f"{place}/{name}", (), tags=tags)
        return
    try:
        with open_text(folder / place) as file:
            for line in iter(lambda: file.readline(_LONGEST), ""):
                if line.strip():
                    yield ImageLabels(_path(folder, line.strip()), (), tags=tags)
    except (OSError, UnicodeDecodeError) as error:
        yield problem(place, place, f"cannot be read: {error}")


def _path(folder: Path, line: str) -> str:
    """Return the path of a line of a list: without a first folder that is not there, as darknet's paths have it."""
    name = os.path.normpath(line)
    first, _, rest = name.partition("/")
    return rest if rest and not is_folder(folder / first) and has_file(folder / rest) else name
