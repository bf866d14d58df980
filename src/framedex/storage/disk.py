"""Files on the disk: how much they take, and how much comes free when they go.

Bytes are those of contents, as ``ls`` shows them. Clones share files by hard links: what has another name comes free
only when that goes, too.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

Inode = tuple[int, int]
"""What identifies a file whatever its names are."""
_REMOVED = ".removed"


def files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of all files below a folder, which may be missing; links to folders are files.

    Files that go meanwhile are left out.
    """
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def entries(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted; nothing where there is none."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of the files in a folder itself. Those that go meanwhile are left out."""
    for path in entries(folder):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield path, status


def inode_of(status: os.stat_result) -> Inode:
    """Return what identifies a file."""
    return status.st_dev, status.st_ino


def measure_folder(folder: Path) -> dict[Path, int]:
    """Return the bytes that would come free with each file of a folder: 0 for one that has another name, too."""
    return {path: _freed(status) for path, status in files_below(folder)}


def freed_since(before: dict[Path, int], folder: Path) -> int:
    """Return how many bytes came free in a folder since it was measured, in which no file gets another name."""
    now = measure_folder(folder)
    return sum(size for path, size in before.items() if path not in now)


def remove_tree(folder: Path) -> int:
    """Remove a folder, as far as that is possible; return how many bytes that freed."""
    before = measure_folder(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return freed_since(before, folder)


def remove_file(path: Path) -> int:
    """Remove a file, if it is still there; return how many bytes that freed.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        status = path.lstat()
        path.unlink()
    except FileNotFoundError:
        return 0
    return _freed(status)


def set_aside(path: Path) -> Path:
    """Give what is to be removed a name under which nobody looks for it, at once; return that."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}{_REMOVED}")
    path.rename(aside)
    return aside


def is_aside(path: Path) -> bool:
    """Return whether a path is one by :func:`set_aside`."""
    return path.name.startswith(".") and path.name.endswith(_REMOVED)


def _freed(status: os.stat_result) -> int:
    return status.st_size if status.st_nlink < 2 else 0
