"""Parts of Pascal VOC folders: ``ImageSets/Main/train.txt`` and its kin list the names of images without suffixes.

Folders of masks have them in ``ImageSets/Segmentation``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from framedex.annotations.folders import is_folder
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.parts import part_of
from framedex.annotations.problems import AnnotationProblem, problem
from framedex.annotations.voc import homes_of, is_voc
from framedex.core.regular_files import open_text, scan

XML_FILES = "XML files of Pascal VOC"
_LISTS = ("ImageSets/Main", "ImageSets/Segmentation")
_IMAGES = ("JPEGImages", "images")
_LONGEST = 2**16  # characters of a line
_PRESENCE = re.compile(r"\s+(?:-?1|0)$")  # whether the class of the list is in the image


def find_files(folder: Path) -> list[str]:
    """Return what a folder has of Pascal VOC: its folders of XML files and its lists of parts."""
    if not is_voc(folder):
        return []
    return [XML_FILES, *(path.relative_to(folder).as_posix() for path, _, _ in _lists(folder))]


def _lists(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the path, the part and the folder of the images of each list."""
    for home in (folder, *homes_of(folder)):
        images = next((home / name for name in _IMAGES if is_folder(home / name)), home)
        for lists in (home / each for each in _LISTS):
            try:
                if not is_folder(lists):
                    continue
                with scan(lists) as entries:
                    names = sorted(entry.name for entry in entries if entry.name.endswith(".txt"))
            except OSError:
                continue
            for name in names:
                if (part := part_of(name.removesuffix(".txt"))) is not None:
                    yield lists / name, part, images.relative_to(folder).as_posix()


def read_parts(folder: Path) -> Iterator[ImageLabels | AnnotationProblem]:
    """Yield the part of each image that a list names. Lists of a class, as ``cat_train.txt``, are not read."""
    for path, part, images in _lists(folder):
        home = "" if images == "." else f"{images}/"
        try:
            with open_text(path) as file:
                for line in iter(lambda: file.readline(_LONGEST), ""):
                    if name := _PRESENCE.sub("", line.rstrip("\n")) if line.strip() else "":
                        yield ImageLabels(f"{home}{name}", (), is_stem=True, tags=(part,))
        except (OSError, UnicodeDecodeError) as error:
            yield problem(path.name, path.name, f"cannot be read: {error}")
