"""Atomic writing of files: a file appears under its name only when it is complete."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".partial"
"""The suffix of files that are being written. A killed process may leave such a file behind."""


@contextmanager
def atomic_file(
    path: Path,
    *,
    partial: Path | None = None,
    fsync: bool = False,
    put: Callable[[Path, Path], object] = os.replace,
) -> Iterator[Path]:
    """Yield a path to write to, which is renamed to *path* at the end of the block; if the block raises, it is deleted.

    Args:
        path: the file; an existing one is replaced.
        partial: the path to write to, in the same folder; by default a hidden one that no other writer uses.
        fsync: wait until the content, and then the name, is on the disk.
        put: renames the partial file; called with both paths.

    Raises:
        OSError: the file cannot be written or renamed.
    """
    if partial is None:
        partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        yield partial
        if fsync:
            _sync(partial, os.O_RDWR)  # some systems sync for writers only
        put(partial, path)
    finally:
        with suppress(FileNotFoundError):  # it was renamed
            partial.unlink()
    if fsync:
        _sync_folder(path.parent)


def write_atomic(path: Path, data: bytes, *, fsync: bool = False) -> None:
    """Write a file, which appears only when it is complete.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_file(path, fsync=fsync) as partial:
        partial.write_bytes(data)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the file system supports that."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
