"""Functions to open regular files from untrusted paths, without blocking, and to read them with a size limit.

Opening a named pipe blocks until a writer opens it; opening a device may have any effect. The size of a file is no
reliable limit: the file may grow while it is read, and files in ``/proc`` have the size 0.

Within :func:`framedex.core.allowed_folders.within`, all functions here refuse files that are in no allowed folder.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, TextIO

from framedex.core.allowed_folders import AnyPath, OwnPath, current_folders
from framedex.core.counts import counted

NOT_REGULAR = "not a regular file"
TEXT_BYTES = 64 * 2**20
"""The maximum size of text files that are read whole, such as lists of classes and settings."""
_BLOCK = 2**20


class TooLarge(OSError):
    """A file that is larger than a limit.

    Attributes:
        max_bytes: the limit.
    """

    def __init__(self, path: AnyPath, max_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"the file has more than {counted(max_bytes, 'bytes')}", os.fspath(path))
        self.max_bytes = max_bytes


def regular(path: AnyPath) -> Path:
    """Return a path after checking that it is a regular file, for an engine that opens our own files itself.

    Raises:
        OSError: the file does not exist, or is not a regular file.
    """
    _check(os.stat(path), path)  # noqa: PTH116 - names may be any bytes
    return Path(path)


def engine_file(path: AnyPath) -> AbstractContextManager[Path | BinaryIO]:
    """Return what an engine can read a regular file from: its path, or within allowed folders the open file.

    Raises:
        OSError: the file does not exist, is not a regular file, or is in no allowed folder.
    """
    return nullcontext(regular(path)) if current_folders() is None else open_binary(path)


def scan(path: AnyPath) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Return the entries of a folder, to be used by their names.

    Raises:
        OSError: the folder cannot be read, or is in no allowed folder.
    """
    allowed = current_folders()
    return os.scandir(path) if allowed is None else allowed.scan(path)


def has_file(path: AnyPath) -> bool:
    """Return whether a path is that of a regular file; False also for a path that no file can have.

    Raises:
        Forbidden: it is in no allowed folder, whether or not it exists.
    """
    _check_allowed(path)
    return os.path.isfile(path)  # noqa: PTH113 - in Python 3.11, Path.is_file raises for names that are too long


def has_folder(path: AnyPath) -> bool:
    """Return whether a path is that of a folder; False also for a path that no folder can have.

    Raises:
        Forbidden: it is in no allowed folder, whether or not it exists.
    """
    _check_allowed(path)
    return os.path.isdir(path)  # noqa: PTH112 - as above


def may_read(path: AnyPath) -> bool:
    """Return whether a path is in an allowed folder, or any path is allowed."""
    allowed = current_folders()
    return allowed is None or allowed.contains(path)


def _check_allowed(path: AnyPath) -> None:
    if (allowed := current_folders()) is not None:
        allowed.check(path)


def opener(path: str, flags: int) -> int:
    """Open a regular file without blocking; for the argument *opener* of :func:`open`.

    Raises:
        OSError: the file cannot be opened, is not a regular file, or is in no allowed folder.
    """
    if (allowed := current_folders()) is not None and not isinstance(path, OwnPath):
        return allowed.open(path, flags, _check)
    _check(os.stat(path), path)  # noqa: PTH116 - names may be any bytes
    # The file may have been replaced since, so it is opened without blocking and checked again.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        _check(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(status: os.stat_result, path: AnyPath) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR, os.fspath(path))


def open_binary(path: AnyPath) -> io.BufferedReader:
    """Return a regular file, open to read bytes.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    return open(path, "rb", opener=opener)


def open_text(
    path: AnyPath, *, encoding: str = "utf-8-sig", errors: str = "strict", newline: str | None = None
) -> TextIO:
    """Return a regular file, open to read text; raises as :func:`open_binary`."""
    return open(path, encoding=encoding, errors=errors, newline=newline, opener=opener)


def read_bytes(path: AnyPath, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        TooLarge: the file has more than *max_bytes*, regardless of its size in the status.
        OSError: the file cannot be read, or is not a regular file.
    """
    with open(path, "rb", buffering=0, opener=opener) as file:
        return read_at_most(file, max_bytes)


def read_text(path: AnyPath, *, encoding: str = "utf-8", max_bytes: int = TEXT_BYTES) -> str:
    """Return the text of a regular file, with line endings converted to line feeds.

    Raises:
        TooLarge: the file has more than *max_bytes*, regardless of its size in the status.
        OSError: the file cannot be read, or is not a regular file.
        UnicodeDecodeError: the file has another encoding.
    """
    text = read_bytes(path, max_bytes).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_at_most(file: io.FileIO, max_bytes: int) -> bytes:
    """Return the rest of an open file; at most one byte more than *max_bytes* is read.

    Raises:
        TooLarge: the file has more than *max_bytes*, regardless of its size in the status.
        OSError: the file cannot be read.
    """
    expected = min(os.fstat(file.fileno()).st_size, max_bytes)
    parts, size, part = list[bytes](), 0, b"?"
    while part and size <= max_bytes:
        part = file.read(min(max(expected - size, _BLOCK if parts else 0), max_bytes - size) + 1) or b""
        if part:
            parts.append(part)
            size += len(part)
    if size > max_bytes:
        raise TooLarge(str(file.name), max_bytes)
    return parts[0] if len(parts) == 1 else b"".join(parts)
