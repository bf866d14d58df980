"""A writer of ZIP files with any number of members, one after the other.

The standard library keeps an object for each member until the end, which takes almost a gigabyte for a million images.
This writer keeps the directory in a temporary file. Sizes, offsets and counts use the ZIP64 form if they need it
(APPNOTE 6.3.10, sections 4.3 and 4.5.3).
"""

import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import BinaryIO

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_SIZES64 = struct.Struct("<2H2Q")
_LIMIT = 0xFFFFFFFF
_MAX_MEMBERS = 0xFFFF
_STORED, _DEFLATED = 0, 8
_PLAIN_VERSION, _ZIP64_VERSION = 20, 45
_BY_UNIX = 3 << 8
_FILE_MODE = 0o100644 << 16
_UTF8 = 0x800
_SPOOLED = 2**18


class Member:
    """A member that is being written.

    Attributes:
        size: the number of bytes so far, before compression.
    """

    def __init__(self, file: BinaryIO, *, compressed: bool) -> None:
        self._file = file
        # The fastest level. It finds the repeated names, which most of the saving comes from, as well as others.
        self._deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS) if compressed else None
        self.size, self.stored, self.crc = 0, 0, 0

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes, and return their number."""
        self.crc = zlib.crc32(data, self.crc)
        self._store(data if self._deflate is None else self._deflate.compress(data))
        self.size += len(data)
        return len(data)

    def finish(self) -> None:
        """Write the bytes that the compressor still buffers."""
        if self._deflate is not None:
            self._store(self._deflate.flush())

    def _store(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self.stored += len(data)


class ZipWriter:
    """A ZIP file that is being written. It is a context manager: its end writes the directory, unless the block raises.

    Args:
        file: the target: binary, empty, seekable.
        modified: the default time of members, with a time zone; by default the time of writing.
    """

    def __init__(self, file: BinaryIO, *, modified: datetime | None = None) -> None:
        self._file, self._members = file, 0
        self._modified = None if modified is None else modified.astimezone().replace(tzinfo=None)
        self._directory = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115 - closed with the writer

    def __enter__(self) -> "ZipWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._directory:
            if kind is None:
                self._end()

    @contextmanager
    def member(self, name: str, *, modified: datetime | None = None, compressed: bool = False) -> Iterator[Member]:
        """Yield a member to write to. If the block raises, its bytes are removed again.

        Args:
            name: with slashes between folders.
            modified: local time; by default the writer's. A time outside the range of ZIP becomes 1980-01-01.
            compressed: whether the content is deflated.
        """
        start, method = self._file.tell(), _DEFLATED if compressed else _STORED
        header = self._header(name, modified, method)
        # The sizes are not known yet and have no limit.
        self._file.write(header.local(0, _LIMIT, _LIMIT, extra=_SIZES64.pack(1, 16, 0, 0)))
        member = Member(self._file, compressed=compressed)
        try:
            yield member
            member.finish()
        except BaseException:
            self._file.seek(start)
            self._file.truncate()
            raise
        end = self._file.tell()
        self._file.seek(start)
        self._file.write(
            header.local(member.crc, _LIMIT, _LIMIT, extra=_SIZES64.pack(1, 16, member.size, member.stored))
        )
        self._file.seek(end)
        self._list(header, member.crc, member.size, member.stored, start)

    def add(self, name: str, data: bytes, *, modified: datetime | None = None) -> None:
        """Write a small member at once."""
        start, header = self._file.tell(), self._header(name, modified, _STORED)
        crc = zlib.crc32(data)
        self._file.write(header.local(crc, len(data), len(data)) + data)
        self._list(header, crc, len(data), len(data), start)

    def _header(self, name: str, modified: datetime | None, method: int) -> "_Header":
        return _Header(name, modified or self._modified or datetime.now(), method)

    def _list(self, header: "_Header", crc: int, size: int, stored: int, start: int) -> None:
        self._directory.write(header.central(crc, size, stored, start))
        self._members += 1

    def _end(self) -> None:
        """Write the directory, and its position."""
        start, size = self._file.tell(), self._directory.tell()
        self._directory.seek(0)
        while part := self._directory.read(2**20):
            self._file.write(part)
        if self._members >= _MAX_MEMBERS or start >= _LIMIT or size >= _LIMIT:
            count, position = self._members, start + size
            versions = (_BY_UNIX | _ZIP64_VERSION, _ZIP64_VERSION)
            self._file.write(_END64.pack(b"PK\6\6", _END64.size - 12, *versions, 0, 0, count, count, size, start))
            self._file.write(_LOCATOR64.pack(b"PK\6\7", 0, position, 1))
        count = min(self._members, _MAX_MEMBERS)
        self._file.write(_END.pack(b"PK\5\6", 0, 0, count, count, min(size, _LIMIT), min(start, _LIMIT), 0))


class _Header:
    """The fields that the local and the central header of a member share."""

    def __init__(self, name: str, modified: datetime, method: int) -> None:
        self.name, self.method = name.encode(), method
        self.flags = 0 if name.isascii() else _UTF8
        # ZIP dates begin in 1980 and end in 2107.
        when = modified if 1980 <= modified.year <= 2107 else datetime(1980, 1, 1)
        self.time = when.hour << 11 | when.minute << 5 | when.second // 2
        self.date = (when.year - 1980) << 9 | when.month << 5 | when.day

    def local(self, crc: int, size: int, stored: int, extra: bytes = b"") -> bytes:
        """Return the header before the content."""
        version = _ZIP64_VERSION if extra else _PLAIN_VERSION
        kind = (version, self.flags, self.method, self.time, self.date)
        return _LOCAL.pack(b"PK\3\4", *kind, crc, stored, size, len(self.name), len(extra)) + self.name + extra

    def central(self, crc: int, size: int, stored: int, start: int) -> bytes:
        """Return the header in the directory."""
        large = [value for value in (size, stored, start) if value >= _LIMIT]
        extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
        version = _ZIP64_VERSION if extra else _PLAIN_VERSION
        kind = (_BY_UNIX | _ZIP64_VERSION, version, self.flags, self.method, self.time, self.date)
        sizes = (min(stored, _LIMIT), min(size, _LIMIT), len(self.name), len(extra))
        rest = (0, 0, 0, _FILE_MODE, min(start, _LIMIT))
        return _CENTRAL.pack(b"PK\1\2", *kind, crc, *sizes, *rest) + self.name + extra
