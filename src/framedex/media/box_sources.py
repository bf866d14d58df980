"""Finding the annotation files that have boxes, by their names or where the user says, and reading all of them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from framedex.errors import InvalidInput
from framedex.media.box_files import files_below
from framedex.media.box_index import BoxIndex
from framedex.media.boxes import Box, Problems, problem
from framedex.media.boxes_coco import read_coco_boxes
from framedex.media.boxes_tables import read_csv_boxes, read_parquet_boxes
from framedex.media.boxes_voc import read_voc_boxes
from framedex.media.boxes_yolo import FractionBox, read_yolo_boxes
from framedex.media.class_names import NAMES
from framedex.settings import user_path

Read = Callable[[Path, Problems], Iterator[Box | FractionBox]]
_FILES: dict[str, Read] = {
    "annotations.json": read_coco_boxes,
    "object_annotations.csv": read_csv_boxes,
    "object_annotations.parquet": read_parquet_boxes,
}
FILES = tuple(_FILES)
"""The names of files with boxes."""
_SUFFIXES = {Path(name).suffix: read for name, read in _FILES.items()}
_VOC, _YOLO = ("Annotations", "annotations"), "labels"


@dataclass(frozen=True)
class BoxSource:
    """A file, or a folder of small files, with boxes.

    Attributes:
        path: of it.
        read: reads it.
        loose: whether it lies elsewhere than the pictures, so that paths in it may be others than theirs.
    """

    path: Path
    read: Read
    loose: bool = False


def find_boxes(folder: str | os.PathLike[str], *, loose: bool = False) -> list[BoxSource]:
    """Return what has boxes in a folder, by its name.

    That is ``annotations.json`` (COCO), ``object_annotations.csv`` and ``.parquet``; the folder itself as Pascal VOC
    if there are XML files below ``Annotations`` or ``annotations``, in it or in a folder in it, or in itself; and as
    YOLO if it has a file of class names, and ``labels`` in it or in a folder in it.
    """
    root = Path(folder)
    found = [BoxSource(root / name, read, loose) for name, read in _FILES.items() if (root / name).is_file()]
    parts = [root, *sorted(root / name for name in _folders(root))]
    if _has_xml(root) or any(_has_xml_below(part / name) for part in parts for name in _VOC):
        found.append(BoxSource(root, read_voc_boxes, loose))
    if any((root / name).is_file() for name in NAMES) and any(_is_folder(part / _YOLO) for part in parts):
        found.append(BoxSource(root, read_yolo_boxes, loose))
    return found


def given_boxes(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[BoxSource]:
    """Return the sources of boxes that a user names: a file, a folder of VOC or YOLO files, or several of these.

    Raises:
        InvalidInput: one is not there, or is of no known kind.
    """
    several = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(several, Sequence) or not several:
        raise InvalidInput(f"boxes are given as the path of a file or a folder, or a list of these, not {given!r}")
    return [each for path in several for each in _given(path)]


def _given(given: str | os.PathLike[str]) -> list[BoxSource]:
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"boxes are given as the path of a file or a folder, not {given!r}")
    path = Path(os.path.abspath(user_path(given)))  # noqa: PTH100 - keeps links, unlike resolve
    if path.is_file() and (read := _SUFFIXES.get(path.suffix.lower())) is not None:
        return [BoxSource(path, read, loose=True)]
    if path.is_dir() and (found := find_boxes(path, loose=True)):
        return found
    if not path.exists():
        raise InvalidInput(f"there is no file of boxes {os.fspath(path)!r}")
    raise InvalidInput(
        f"{os.fspath(path)!r} has no boxes that can be read: give a COCO file (.json), a table (.csv, .parquet) with "
        "filename, col_x, row_y, width, height and label, or a folder of Pascal VOC or YOLO files"
    )


def read_boxes(sources: Sequence[BoxSource], progress: Callable[[int], None] = lambda _count: None) -> BoxIndex:
    """Return all boxes of some sources. What cannot be used is in the index's ``problems``.

    A folder that was found by itself and turns out to have none is a problem, too; one that was named is an error.

    Args:
        sources: what is read.
        progress: called now and then with the number of boxes so far; raises to stop.

    Raises:
        InvalidInput: a file, or a folder that was named, cannot be read.
    """
    problems = Problems()
    index = BoxIndex(problems, loose=any(each.loose for each in sources))
    for source in _each_once(sources):
        try:
            index.add_all(_told(source.read(source.path, problems), index, progress))
        except InvalidInput as error:
            if source.loose or source.path.is_file():
                raise
            problems.add(problem(os.fspath(source.path), source.path.name, str(error)))
    return index


def _each_once(sources: Sequence[BoxSource]) -> list[BoxSource]:
    """Return sources without those that were named, or found, before."""
    return list({(os.path.realpath(each.path), each.read): each for each in reversed(sources)}.values())[::-1]


def _told(
    boxes: Iterator[Box | FractionBox], index: BoxIndex, progress: Callable[[int], None]
) -> Iterator[Box | FractionBox]:
    for box in boxes:
        if len(index) % 4096 == 0:
            progress(len(index))
        yield box


# A folder that may not be read has nothing that is found: the walk over the pictures says so.


def _folders(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _has_xml_below(folder: Path) -> bool:
    """Return whether a folder has XML files, or folders in it."""
    try:
        return _is_folder(folder) and next(files_below(os.fspath(folder), ".xml"), None) is not None
    except OSError:
        return False


def _has_xml(folder: Path) -> bool:
    """Return whether a folder has XML files."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".xml") for entry in entries)
    except OSError:
        return False
