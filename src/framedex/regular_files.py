"""The one way to open what somebody else may have put at a path: a regular file, at once, with a limit of its bytes.

To open a named pipe waits for a writer, for ever where there is none; to open a device may do anything. The size that a
file says is no limit either: one that is being written grows, and those of ``/proc`` say 0.
"""

import errno
import io
import os
import stat
from pathlib import Path
from typing import TextIO

AnyPath = str | os.PathLike[str]
NOT_REGULAR = "not a regular file"
TEXT_BYTES = 64 * 2**20
"""What a text file that is read whole has at most: lists of classes, settings."""
_PART = 2**20


class TooLarge(OSError):
    """A file that has more bytes than may be read.

    Attributes:
        most_bytes: what may be.
    """

    def __init__(self, path: AnyPath, most_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"the file has more than {most_bytes:,} bytes", os.fspath(path))
        self.most_bytes = most_bytes


def regular(path: AnyPath) -> Path:
    """Return a path, for an engine that opens it by itself, if there is a regular file.

    Raises:
        OSError: there is none, or something else.
    """
    _check(os.stat(path), path)  # noqa: PTH116 - names may be any bytes
    return Path(path)


def opener(path: str, flags: int) -> int:
    """Open a regular file without waiting; for the argument *opener* of :func:`open`.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    _check(os.stat(path), path)  # noqa: PTH116 - names may be any bytes
    # What is there may have changed since: so it is not waited for, and looked at again.
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
        OSError: it cannot be opened, or is something else.
    """
    return open(path, "rb", opener=opener)


def open_text(
    path: AnyPath, *, encoding: str = "utf-8-sig", errors: str = "strict", newline: str | None = None
) -> TextIO:
    """Return a regular file, open to read text; raises as :func:`open_binary`."""
    return open(path, encoding=encoding, errors=errors, newline=newline, opener=opener)


def read_bytes(path: AnyPath, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        TooLarge: it has more than *most_bytes*, whatever its size says.
        OSError: it cannot be read, or is something else.
    """
    with open(path, "rb", buffering=0, opener=opener) as file:
        return read_at_most(file, most_bytes)


def read_text(path: AnyPath, *, encoding: str = "utf-8", most_bytes: int = TEXT_BYTES) -> str:
    """Return the text of a regular file, with line feeds alone at the ends of lines.

    Raises:
        TooLarge: it has more than *most_bytes*, whatever its size says.
        OSError: it cannot be read, or is something else.
        UnicodeDecodeError: it is not of that encoding.
    """
    text = read_bytes(path, most_bytes).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_at_most(file: io.FileIO, most_bytes: int) -> bytes:
    """Return what is left of an open file; of one that is larger no more than a byte too much is read.

    Raises:
        TooLarge: it has more than *most_bytes*, whatever its size says.
        OSError: it cannot be read.
    """
    expected = min(os.fstat(file.fileno()).st_size, most_bytes)
    parts, size, part = list[bytes](), 0, b"?"
    while part and size <= most_bytes:
        part = file.read(min(max(expected - size, _PART if parts else 0), most_bytes - size) + 1) or b""
        if part:
            parts.append(part)
            size += len(part)
    if size > most_bytes:
        raise TooLarge(str(file.name), most_bytes)
    return parts[0] if len(parts) == 1 else b"".join(parts)
