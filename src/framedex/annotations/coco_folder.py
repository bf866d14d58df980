"""COCO folders: ``annotations/instances_train2017.json`` and its kin, or ``train/_annotations.coco.json``.

Files of key points repeat the boxes of the files of instances, by the ids of annotations, so their key points are added
to these. Files of other kinds, as of panoptic masks, are not read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from framedex.annotations import coco_reader
from framedex.annotations.boxes import Box
from framedex.annotations.coco import FILE
from framedex.annotations.folders import is_folder, subfolders
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import AnnotationProblem, Problems, problem
from framedex.annotations.source_lists import SourceClass, SourceImage
from framedex.core.regular_files import scan
from framedex.errors import InvalidInput

_PART = re.compile(r"annotations_(.+)\.json")  # as our exports have them beside the file of all images
_FILE = re.compile(r"(instances|person_keypoints|captions)_(.+)\.json")
_IN_PART = "_annotations.coco.json"  # as Roboflow exports them
_FOLDER = "annotations"
_Key = tuple[str, str | None]  # the image and the id of an annotation


@dataclass(frozen=True)
class _File:
    """A file of a COCO folder: its path in the folder, its kind, its part, and the folder of its images."""

    path: str
    kind: str
    part: str
    home: str


def find_files(folder: Path) -> list[str]:
    """Return the paths of the COCO files in a folder."""
    return [each.path for each in _files(folder)]


def is_coco_folder(folder: Path) -> bool:
    """Return whether a folder has COCO files with boxes."""
    return any(each.kind != "captions" for each in _files(folder))


def _files(folder: Path) -> list[_File]:
    """Return the COCO files: key points behind instances, of which they say more."""
    found = []
    for name in _names(folder / _FOLDER):
        if match := _FILE.fullmatch(name):
            homes = (f"{match[2]}", f"images/{match[2]}", f"{match[2]}/images", "images")
            home = next((f"{each}/" for each in homes if is_folder(folder / each)), "")
            found.append(_File(f"{_FOLDER}/{name}", match[1], match[2], home))
    parts = [each.name for each in subfolders(folder) if _IN_PART in _names(each)]
    found += [_File(f"{part}/{_IN_PART}", "instances", part, f"{part}/") for part in parts]
    return sorted(found, key=lambda each: (each.kind, each.path))


def _names(folder: Path) -> list[str]:
    try:
        if not is_folder(folder):
            return []
        with scan(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.is_dir())
    except OSError:
        return []


def read_labels(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the labels, captions and the part of each image; malformed files and items are problems."""
    for each in _files(folder):
        tags, path = part_tags(each.part), folder / each.path
        try:
            for row in coco_reader.read_labels(path, each.path, alone=each.kind == "captions"):
                yield row if isinstance(row, AnnotationProblem) else row._replace(name=each.home + row.name, tags=tags)
        except InvalidInput as error:
            yield problem(each.path, each.path, str(error))
    names = _names(folder)
    for name in names if FILE in names else ():
        if (match := _PART.fullmatch(name)) and (tags := part_tags(match[1])):
            try:
                images = (each for each in coco_reader.read_lists(folder / name) if isinstance(each, SourceImage))
                yield from (ImageLabels(each.name, (), tags=tags) for each in images)
            except InvalidInput as error:
                yield problem(name, name, str(error))


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of all files, by part; key points are added to the box with the image and id of their annotation.

    Key points without such a box are objects of their own.
    """
    files = [each for each in _files(folder) if each.kind != "captions"]
    for part in dict.fromkeys(each.part for each in files):
        points, added = dict[_Key, str | None](), set[_Key]()
        of_points = [each for each in files if each.part == part and each.kind == "person_keypoints"]
        of_boxes = [each for each in files if each.part == part and each not in of_points]
        for file in of_points if of_boxes else ():
            points |= {_key(box): box.shape.keypoints for box in _boxes(folder, file, Problems())}
        for file in of_boxes:
            for box in _boxes(folder, file, problems):
                if box.original_id is not None and (key := _key(box)) in points:
                    added.add(key)
                    shape = box.shape._replace(keypoints=points[key] or box.shape.keypoints)
                    yield replace(box, shape=shape)
                else:
                    yield box
        for file in of_points:
            yield from (box for box in _boxes(folder, file, problems) if _key(box) not in added)


def _key(box: Box) -> _Key:
    return box.name, box.original_id


def _boxes(folder: Path, file: _File, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of a file; one that cannot be read is a problem."""
    try:
        yield from coco_reader.read_boxes(folder / file.path, problems, file.path, home=file.home)
    except InvalidInput as error:
        problems.add(problem(file.path, file.path, str(error)))


def read_lists(folder: Path) -> Iterator[SourceClass | SourceImage]:
    """Yield the categories and images of all files with boxes; a malformed file has none."""
    for file in _files(folder):
        if file.kind == "captions":
            continue
        try:
            for each in coco_reader.read_lists(folder / file.path):
                yield each if isinstance(each, SourceClass) else SourceImage(file.home + each.name, each.id)
        except InvalidInput:  # it is a problem of the boxes
            continue
