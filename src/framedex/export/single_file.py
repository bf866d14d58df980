"""Exports that are one file instead of a ZIP file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from framedex.export.zip_writer import ZipWriter


class FileMember:
    """A file that is being written.

    Attributes:
        size: the number of bytes so far.
    """

    def __init__(self, file: BinaryIO | None) -> None:
        self._file, self.size = file, 0

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes, and return their number."""
        if self._file is not None:
            self._file.write(data)
        self.size += len(data)
        return len(data)


class SingleFile:
    """A target for the files of an export that keeps one of them.

    Args:
        file: the target: binary, empty.
        name: the name of the file that is kept.

    Attributes:
        left_out: the names of the others.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.left_out: list[str] = []

    @contextmanager
    def member(self, name: str, /, *, compressed: bool = False) -> Iterator[FileMember]:
        """Yield a file that can be written in parts. It is never compressed."""
        yield self._opened(name)

    def add(self, name: str, data: bytes, /) -> None:
        """Write a file."""
        self._opened(name).write(data)

    def _opened(self, name: str) -> FileMember:
        if name == self._name:
            return FileMember(self._file)
        self.left_out.append(name)
        return FileMember(None)


Archive = ZipWriter | SingleFile
"""A target for the files of an export."""
