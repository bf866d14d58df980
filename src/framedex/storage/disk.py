"""Files on disk: sizes, hard links, removal, and the number of bytes that removal frees.

Sizes are those of contents, as ``ls`` shows them. Clones share files by hard links. A file with several names frees its
bytes only when the last name is removed.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

Inode = tuple[int, int]
"""The identity of a file, independent of its names."""
_REMOVED = ".removed"
_AT_ONCE = 8  # files that are synced at the same time


def sync_file(path: str | os.PathLike[str]) -> None:
    """Sync the content of a file to disk."""
    try:
        _sync(path, os.O_RDONLY)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        _sync(path, os.O_RDWR)  # Windows syncs only files open for writing


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Sync the names in a folder to disk; do nothing on systems that cannot open folders (Windows)."""
    with suppress(PermissionError):
        _sync(path, os.O_RDONLY)


def sync_all(files: Sequence[str], folders: Sequence[str]) -> None:
    """Sync the content of files, and then the names in folders, to disk; several at the same time.

    Raises:
        OSError: one of them cannot be synced.
    """
    if len(files) + len(folders) < _AT_ONCE:
        for file in files:
            sync_file(file)
        for folder in folders:
            sync_folder(folder)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(sync_file, files))
        list(pool.map(sync_folder, folders))


def _sync(path: str | os.PathLike[str], flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hard_link(source: Path, target: Path) -> None:
    """Give a file a second name.

    Raises:
        FileExistsError: the name is in use.
        FileNotFoundError: the file, or the folder of the new name, does not exist.
        OSError: the system or the file system does not support hard links.
    """
    if not hasattr(os, "link"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), os.fspath(target))
    os.link(source, target)


def walk_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of all files below a folder, which may be missing; links to folders count as files.

    Files that are removed meanwhile are left out.
    """
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                inside = list(entries)
        except OSError:
            continue
        for entry in inside:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                else:
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted; an empty list if it is missing."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of the files directly in a folder. Files that are removed meanwhile are left out."""
    for path in entries(folder):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                yield path, status


def inode_of(status: os.stat_result) -> Inode:
    """Return the identity of a file."""
    return status.st_dev, status.st_ino


def measure_folder(folder: Path) -> dict[Path, int]:
    """Return the bytes that removing each file of a folder would free: 0 for a file with other hard links."""
    return {path: _freed(status) for path, status in walk_files(folder)}


def freed_since(before: dict[Path, int], folder: Path) -> int:
    """Return the bytes freed in a folder since its measurement; no file may get a new name in between."""
    now = measure_folder(folder)
    return sum(size for path, size in before.items() if path not in now)


def remove_tree(folder: Path) -> int:
    """Remove a folder as far as possible; return the number of bytes freed."""
    before = measure_folder(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return freed_since(before, folder)


def remove_file(path: Path) -> int:
    """Remove a file if it exists; return the number of bytes freed.

    Raises:
        OSError: the file cannot be removed.
    """
    try:
        status = path.lstat()
        path.unlink()
    except FileNotFoundError:
        return 0
    return _freed(status)


def set_aside(path: Path) -> Path:
    """Rename a file or folder for removal, atomically, to a name that no reader uses; return the new path."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}{_REMOVED}")
    path.rename(aside)
    return aside


def is_aside(path: Path) -> bool:
    """Return whether :func:`set_aside` made a path."""
    return path.name.startswith(".") and path.name.endswith(_REMOVED)


def _freed(status: os.stat_result) -> int:
    return status.st_size if status.st_nlink < 2 else 0
