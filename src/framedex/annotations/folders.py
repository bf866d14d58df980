"""Folders with one annotation file for each image: their files, and the names of the images."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.left_out import is_left_out
from framedex.core.regular_files import may_read, scan
from framedex.core.suffixes import IMAGE_SUFFIXES, is_image

_IMAGE = rf"(?i)({'|'.join(map(re.escape, sorted(IMAGE_SUFFIXES)))})$"


def list_files_below(root: str, suffix: str) -> Iterator[str]:
    """Yield the paths of visible files with a suffix, relative to the root.

    Links are followed; a folder is visited once. The walk over the images counts what is hidden.
    """
    pending, visited = [""], set[tuple[int, int]]()
    while pending:
        folder = pending.pop()
        directory = os.path.join(root, folder)  # noqa: PTH118 - names may be any bytes
        if not may_read(directory):
            continue
        status = os.stat(directory)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in visited:
            continue
        visited.add((status.st_dev, status.st_ino))
        with scan(directory) as entries:
            visible = (entry for entry in entries if not is_left_out(entry.name))
            for entry in sorted(visible, key=lambda entry: entry.name):
                path = os.path.join(folder, entry.name)  # noqa: PTH118
                if entry.is_dir():
                    pending.append(path)
                elif entry.name.endswith(suffix):
                    yield path


def subfolders(root: Path) -> list[Path]:
    """Return the visible folders in a folder, sorted; an empty list if the folder cannot be read."""
    try:
        with scan(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() and not is_left_out(entry.name))
    except OSError:  # the walk over the images raises this error
        return []
    return [root / name for name in names if may_read(root / name)]


def is_folder(path: Path) -> bool:
    """Return whether a path is a readable folder."""
    try:
        return may_read(path) and path.is_dir()
    except OSError:
        return False


def image_finder(root: str) -> Callable[[str], Mapping[str, list[str]]]:
    """Return a function that maps image names without suffix to file names, sorted, for a folder within the root.

    It caches the last folder, because files come folder by folder.
    """
    last: tuple[str, Mapping[str, list[str]]] | None = None

    def images_in(folder: str) -> Mapping[str, list[str]]:
        nonlocal last
        if last is None or last[0] != folder:
            last = folder, _image_names(os.path.join(root, folder))  # noqa: PTH118
        return last[1]

    return images_in


def _image_names(folder: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    try:
        with scan(folder) as entries:
            for name in sorted(entry.name for entry in entries if is_image(entry.name)):
                names.setdefault(os.path.splitext(name)[0], []).append(name)  # noqa: PTH122
    except (FileNotFoundError, NotADirectoryError):
        pass
    return names


def replace_folder(folder: str, names: Mapping[str, str]) -> str | None:
    """Return a folder's path with its last matching part renamed, or None if no part matches one of *names*."""
    parts = folder.split("/")
    for position in reversed(range(len(parts))):
        if parts[position] in names:
            return "/".join([*parts[:position], names[parts[position]], *parts[position + 1 :]])
    return None


def stem(name: str) -> str:
    """Return an image name without its suffix."""
    return re.sub(_IMAGE, "", name)


def stems(names: pa.Array) -> pa.Array:
    """Return image names without their suffixes."""
    return pc.replace_substring_regex(names, _IMAGE, "")
