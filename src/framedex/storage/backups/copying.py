"""Copies of files with their hashes."""

import hashlib
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from framedex.core.regular_files import open_binary
from framedex.errors import WorkspaceError
from framedex.storage import disk

_BLOCK = 2**20

Copied = Callable[[int], None]
"""Called with the number of bytes that were read since the last call; raises to stop."""


class SourceFile(NamedTuple):
    """A file that belongs into a backup.

    Attributes:
        path: its path in the workspace, with slashes.
        source: the file to copy.
        size: the number of bytes to copy, from the start.
        identity: text that differs as soon as the file does; None for a file that may change in place.
    """

    path: str
    source: Path
    size: int
    identity: str | None


class MissingSource(Exception):
    """A file that was to be copied does not exist any more."""


def source_file(root: Path, path: Path, *, size: int | None = None) -> SourceFile:
    """Return the description of a file that is written once, or whose first bytes alone are needed.

    Args:
        root: the folder of the workspace.
        path: the file.
        size: the number of bytes to copy; None for a whole file that is written once.

    Raises:
        MissingSource: the file does not exist.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise MissingSource(f"{path}: {error.strerror}") from error
    identity = f"{status.st_dev}:{status.st_ino}:{status.st_mtime_ns}:{status.st_size}"
    name = path.relative_to(root).as_posix()
    return SourceFile(name, path, *((status.st_size, identity) if size is None else (size, None)))


def copy_file(source: Path, target: Path, copied: Copied, *, most: int | None = None) -> tuple[int, str]:
    """Copy the content of a regular file; return the number of bytes and their SHA-256 hash.

    The copy appears when it is complete, in the place of a former file, which is not written to: it may be a hard link.
    Only its owner may read it if that holds for the file.

    Args:
        source: the file.
        target: the copy.
        copied: called with the number of bytes after each block.
        most: the number of bytes to copy; None for all.

    Raises:
        MissingSource: the file does not exist.
        WorkspaceError: the file cannot be read, or the copy cannot be written.
    """
    digest, size, partial = hashlib.sha256(), 0, target.with_name(f".{target.name}.partial")
    with _reading(source) as (file, mode):
        with writing(target.parent):
            partial.unlink(missing_ok=True)
            descriptor = os.open(
                partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666 & mode
            )
        with os.fdopen(descriptor, "wb", buffering=0) as out:
            while block := _block(file, source, _BLOCK if most is None else min(_BLOCK, most - size)):
                with writing(target.parent):
                    _write(out, block)
                digest.update(block)
                size += len(block)
                copied(len(block))
    with writing(target.parent):
        partial.replace(target)
    return size, digest.hexdigest()


def hash_file(path: Path, copied: Copied) -> tuple[int, str]:
    """Return the number of bytes of a file and their SHA-256 hash; arguments and errors as of :func:`copy_file`."""
    digest, size = hashlib.sha256(), 0
    with _reading(path) as (file, _):
        while block := _block(file, path, _BLOCK):
            digest.update(block)
            size += len(block)
            copied(len(block))
    return size, digest.hexdigest()


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Any, int]]:
    """Yield an open file and its permissions."""
    try:
        file = open_binary(path)
    except FileNotFoundError as error:
        raise MissingSource(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise WorkspaceError(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield file, stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def _block(file: Any, path: Path, most: int) -> bytes:
    try:
        block: bytes = file.read(most)
    except OSError as error:
        raise WorkspaceError(f"cannot read {path}: {error.strerror}") from error
    return block


def link_copy(source: Path, target: Path) -> bool:
    """Give a file a second name, in the place of a former file; return False if that is not possible.

    Raises:
        MissingSource: the file does not exist.
    """
    target.unlink(missing_ok=True)
    try:
        disk.hard_link(source, target)
    except FileNotFoundError as error:
        raise MissingSource(f"{source}: {error.strerror}") from error
    except OSError:  # another disk, or one without links
        return False
    return True


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise failures of the disk as WorkspaceError."""
    try:
        yield
    except WorkspaceError:
        raise
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkspaceError(
            f"cannot write {folder}: {reason}; what is there is no backup before it is whole"
        ) from error


def _write(file: Any, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[file.write(rest) :]
