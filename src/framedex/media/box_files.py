"""Folders with an annotation file for each picture: finding them, their pictures, and writing files that are whole."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from framedex.errors import InvalidInput
from framedex.media.formats import is_image


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


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path to write to, which becomes *path* when the block has ended; if it raises, nothing is left.

    Raises:
        InvalidInput: the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise InvalidInput(f"cannot write {os.fspath(path)!r}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
