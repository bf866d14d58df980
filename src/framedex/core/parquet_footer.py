"""Sizes of columns in the footer of a Parquet file, read without Arrow.

Arrow 26.0.1 ends the process when Python asks for a column of a footer whose statistics of sizes are damaged: its
binding does not catch the exception. Its reader of values raises an error for the same file. The footer is a structure
of Thrift in the compact protocol, see ``thrift-compact-protocol.md`` of Apache Thrift, and the numbers of its fields
are those of ``parquet.thrift`` of Apache Parquet. A test compares the sizes with those of Arrow.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
_ROW_GROUPS, _COLUMNS, _N_ROWS, _METADATA, _PATH, _N_VALUES, _SIZE = 4, 1, 3, 3, 3, 5, 6
_MAGIC = b"PAR1"


@dataclass(frozen=True)
class ColumnSize:
    """The size of a stored column in a group of rows, as the footer states it.

    Attributes:
        path: of the column, such as ``labels.list.element``.
        n_rows: the rows of the group.
        n_values: the values, of which a list has several in a row.
        size: of the values in bytes, decompressed.
    """

    path: str
    n_rows: int
    n_values: int
    size: int


def column_sizes(file: BinaryIO) -> Iterator[ColumnSize]:
    """Yield the sizes of all stored columns in each group of rows.

    Args:
        file: the Parquet file, open for reading bytes.

    Raises:
        ValueError: the footer is damaged.
        OSError: the file cannot be read.
    """
    end = file.seek(0, 2)
    file.seek(max(0, end - 8))
    length, magic = struct.unpack("<I4s", file.read(8).rjust(8))
    if magic != _MAGIC or length > end - 8:
        raise ValueError("the file ends with no footer of Parquet")
    file.seek(end - 8 - length)
    try:
        for group in _Compact(file.read(length)).fields()[_ROW_GROUPS]:
            for column in group[_COLUMNS]:
                stated = column[_METADATA]
                path = b".".join(stated[_PATH]).decode()
                yield ColumnSize(path, int(group[_N_ROWS]), int(stated[_N_VALUES]), int(stated[_SIZE]))
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"the footer is damaged ({type(error).__name__})") from None


class _Compact:
    """Values of Thrift's compact protocol, one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def fields(self) -> dict[int, Any]:
        """Return the fields of a structure by their numbers."""
        found, number = dict[int, Any](), 0
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self._signed()
            kind = header & 15
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._signed()
        if kind == _BINARY:
            return self._bytes(self._number())
        if kind == _STRUCT:
            return self.fields()
        if kind in _LISTS:
            header = self._byte()
            count = header >> 4 if header >> 4 < 15 else self._number()
            return [self._value(header & 15) for _ in range(count)]
        if kind == _MAP:
            count = self._number()
            kinds = self._byte() if count else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(count)]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise LookupError(kind)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise LookupError(size)
        return self._data[self._at - size : self._at]

    def _number(self) -> int:
        number = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise LookupError("a number of more than ten bytes")

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)
