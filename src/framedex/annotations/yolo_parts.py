"""Parts of YOLO folders: ``train``, ``val`` and ``test`` of ``data.yaml`` name folders of images or lists of them.

Places are relative to ``path``, or to the file (docs.ultralytics.com). A place outside of the folder is none.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from framedex.annotations.class_names import NAMES, YAML_NAMES, yaml_value
from framedex.annotations.folders import is_folder, list_files_below
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, problem
from framedex.annotations.yolo import is_yolo
from framedex.core.regular_files import has_file, open_text
from framedex.core.suffixes import IMAGE_SUFFIXES
from framedex.errors import InvalidInput

_PARTS = ("train", "val", "test")
_LONGEST = 2**16  # characters of a line


def find_files(folder: Path) -> list[str]:
    """Return what a folder has of YOLO: the file of class names."""
    return [name for name in NAMES if is_yolo(folder) and has_file(folder / name)][:1]


def read_parts(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the part of each image. A place that several parts name says nothing."""
    path = next((folder / name for name in YAML_NAMES if has_file(folder / name)), None)
    if path is None:
        return
    try:
        base = yaml_value(path, "path")
        given = {part: _places(yaml_value(path, part)) for part in _PARTS}
    except InvalidInput:  # an error of the labels
        return
    found = {part: [_place(folder, base, each) for each in places] for part, places in given.items()}
    every = [each for places in found.values() for each in places]
    for part, places in found.items():
        for place in places:
            if place is not None and every.count(place) == 1:
                yield from _images(folder, place, part_tags(part))


def _places(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _place(folder: Path, base: Any, place: str) -> str | None:
    """Return a place within the folder: as it is, below ``path``, or without a beginning that leads out of it."""
    plain = place.replace("\\", "/")
    below = f"{base}/{plain}" if isinstance(base, str) and base else plain
    inner = "/".join(part for part in PurePosixPath(plain).parts if part not in ("..", ".", "/"))
    for each in (plain, below, inner):
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
                    yield ImageLabels(line.strip().removeprefix("./"), (), tags=tags)
    except (OSError, UnicodeDecodeError) as error:
        yield problem(place, place, f"cannot be read: {error}")
