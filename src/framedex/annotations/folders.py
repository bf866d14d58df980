"""Folders with an annotation file for each image: the files below a folder, and the names of their images."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from framedex.suffixes import IMAGE_SUFFIXES, is_image

_IMAGE = rf"(?i)({'|'.join(map(re.escape, sorted(IMAGE_SUFFIXES)))})$"


def files_below(root: str, suffix: str) -> Iterator[str]:
    """Yield the paths of files with a suffix, relative to the root; each folder once, as links are followed."""
    pending, seen = [""], set[tuple[int, int]]()
    while pending:
        folder = pending.pop()
        where = os.path.join(root, folder)  # noqa: PTH118 - names may be any bytes
        status = os.stat(where)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(where) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = os.path.join(folder, entry.name)  # noqa: PTH118
                if entry.is_dir():
                    pending.append(path)
                elif entry.name.endswith(suffix):
                    yield path


def subfolders(root: Path) -> list[Path]:
    """Return the folders in a folder that are not hidden, sorted; none where it cannot be read."""
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:  # the walk over the images says so
        return []
    return [root / name for name in names]


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; not where that cannot be found out."""
    try:
        return path.is_dir()
    except OSError:
        return False


def pictures_beside(root: str) -> Callable[[str], Mapping[str, str]]:
    """Return a function that gives the names of the pictures in a folder within the root, by name without suffix.

    It keeps those of the last folder, as files come folder by folder.
    """
    last: tuple[str, Mapping[str, str]] | None = None

    def pictures(folder: str) -> Mapping[str, str]:
        nonlocal last
        if last is None or last[0] != folder:
            last = folder, _pictures_in(os.path.join(root, folder))  # noqa: PTH118
        return last[1]

    return pictures


def _pictures_in(folder: str) -> dict[str, str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted((entry.name for entry in entries if is_image(entry.name)), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {os.path.splitext(name)[0]: name for name in names}  # noqa: PTH122 - of several the first


def swapped(folder: str, names: Mapping[str, str]) -> str | None:
    """Return the path of a folder with the last part that has one of some names renamed; None if there is none."""
    parts = folder.split("/")
    for place in reversed(range(len(parts))):
        if parts[place] in names:
            return "/".join([*parts[:place], names[parts[place]], *parts[place + 1 :]])
    return None


def stem(name: str) -> str:
    """Return the name of an image without its suffix."""
    return re.sub(_IMAGE, "", name)


def stems(names: pa.Array) -> pa.Array:
    """Return names of images without their suffixes."""
    return pc.replace_substring_regex(names, _IMAGE, "")
