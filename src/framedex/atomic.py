"""Files that appear under their names only when they are whole."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".partial"
"""The suffix of files that are being written; one that stays is what a killed process left."""


@contextmanager
def atomic_file(
    path: Path,
    *,
    partial: Path | None = None,
    fsync: bool = False,
    put: Callable[[Path, Path], object] = os.replace,
) -> Iterator[Path]:
    """Yield a path to write to, which becomes *path* at the end of the block; if the block raises, nothing is left.

    Args:
        path: the file; an existing one is replaced.
        partial: the path to write to, in the same folder; by default a hidden one that no other writer uses.
        fsync: wait until the content, and then the name, is on the disk.
        put: gives the partial file its name; called with both paths.

    Raises:
        OSError: the file cannot be written or renamed.
    """
    if partial is None:
        partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        yield partial
        if fsync:
            _sync(partial)
        put(partial, path)
    finally:
        with suppress(FileNotFoundError):  # it has its name
            partial.unlink()
    if fsync:
        sync_folder(path.parent)


def write_atomic(path: Path, data: bytes, *, fsync: bool = False) -> None:
    """Write a file, which appears when it is whole.

    Raises:
        OSError: the file cannot be written.
    """
    with atomic_file(path, fsync=fsync) as partial:
        partial.write_bytes(data)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the file system can do that."""
    with suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
