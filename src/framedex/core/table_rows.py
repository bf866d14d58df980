"""Rows of CSV and Parquet files from untrusted paths, with a limit for each row.

A few kilobytes of Parquet can hold a text of gigabytes, and a line of CSV may not end. So a row is checked before it is
held in memory as Python objects.
"""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.parquet_footer import column_sizes
from framedex.core.regular_files import engine_file, open_binary
from framedex.errors import InvalidInput

MAX_ROW = 2**24
"""The maximum size of a row: characters of CSV, bytes of values of Parquet."""
_POINTER = 8  # bytes of a Python reference, and of a number
_ROWS = 2**16  # in a batch
_UNREADABLE = (OSError, ValueError, OverflowError, pa.ArrowException)  # invalid UTF-8 is a ValueError


def csv_rows(
    text: TextIO, broken: Callable[[str], None] | None = None, *, strict: bool = True, **dialect: Any
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the cells of each row that has any.

    Args:
        text: the text.
        broken: gets the lines and the fault of each row that is not CSV; None for an error.
        strict: whether a quote within a cell is a fault.
        dialect: parameters of :func:`csv.reader`.

    Raises:
        csv.Error: the text is not CSV, or a row has more than :data:`MAX_ROW` characters; the message has the line.
    """
    lines = _Lines(text)
    rows = csv.reader(lines, strict=strict, **dialect)
    while True:
        first, lines.left = lines.number + 1, MAX_ROW
        try:
            row = next(rows, None)
        except csv.Error as error:
            if broken is None or lines.left < 0:
                raise csv.Error(f"line {lines.number}: {error}") from None
            broken(f"line{'' if first == lines.number else f's {first} to'} {lines.number}: {error}")
            continue
        if row is None:
            return
        if row:
            yield rows.line_num, row


def text_lines(text: TextIO) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, without its end.

    Raises:
        csv.Error: a line has more than :data:`MAX_ROW` characters.
    """
    lines = _Lines(text)
    for line in lines:
        lines.left = MAX_ROW
        yield lines.number, line.rstrip("\r\n")


class _Lines(Iterator[str]):
    """The lines of a row.

    Attributes:
        left: the number of characters that the row may still have.
        number: the number of lines so far.
    """

    def __init__(self, text: TextIO) -> None:
        self._text, self.left, self.number = text, MAX_ROW, 0

    def __next__(self) -> str:
        line = self._text.readline(self.left + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.left -= len(line)
        if self.left < 0:
            raise csv.Error(f"a row may have at most {MAX_ROW:,} characters")
        return line


def parquet_rows(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file.

    Args:
        path: the file.
        choose: gets the names of all columns, and returns the names of those to read.

    Raises:
        InvalidInput: the file cannot be read, or a row has more than :data:`MAX_ROW` bytes; and the errors of *choose*.
    """
    import pyarrow.parquet as pq

    shown = repr(os.fspath(path))
    try:
        with engine_file(path) as source, pq.ParquetFile(source) as file:
            columns = choose(file.schema_arrow.names)
            leaves = _leaves(file.metadata, columns)
            types = {field.name: field.type for field in file.schema_arrow}
        with open_binary(path) as opened:
            _check_sizes(opened, leaves, shown)
        # As dictionaries, repeated texts are in memory once.
        with engine_file(path) as source, pq.ParquetFile(source, read_dictionary=leaves, pre_buffer=False) as file:
            for batch in file.iter_batches(_ROWS, columns=columns):
                names = batch.schema.names
                for column, name in zip(batch.columns, names, strict=True):
                    _check(column, name, shown)
                for part in _parts(batch, shown):
                    cells = [
                        python_values(_plain(column, types[name]), name, shown)
                        for column, name in zip(part.columns, names, strict=True)
                    ]
                    yield from (dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True))
    except InvalidInput:
        raise
    except _UNREADABLE as error:
        raise InvalidInput(f"cannot read {shown} as Parquet: {error}") from error


def python_values(values: pa.Array, column: str, source: str) -> list[Any]:
    """Return the values of a column as Python objects.

    Args:
        values: the values, which are valid.
        column: its name, for messages.
        source: the file or table with the column, for messages.

    Raises:
        InvalidInput: Python has no such values, for example because a date is after the year 9999.
    """
    try:
        converted: list[Any] = values.to_pylist()
    except _UNREADABLE as error:
        raise InvalidInput(
            f"cannot read {source}: column {column!r} has a value of the type {values.type} that is out of range; "
            f"texts and numbers can be read: {error}"
        ) from error
    return converted


def _plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values without dictionaries, of which each value would be looked up alone."""
    try:
        return values if values.type == kind else values.cast(kind)
    except pa.ArrowNotImplementedError:
        return values


def _check(values: pa.Array, column: str, source: str) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowException as error:  # such as invalid UTF-8
        raise InvalidInput(f"cannot read {source}: column {column!r} is damaged: {error}") from error


def _leaves(metadata: Any, columns: Sequence[str]) -> list[str]:
    """Return the paths of the stored columns of some columns, such as ``labels.list.element``."""
    paths = (metadata.schema.column(position).path for position in range(metadata.num_columns))
    return [path for path in paths if any(path == name or path.startswith(f"{name}.") for name in columns)]


def _check_sizes(file: BinaryIO, leaves: Sequence[str], source: str) -> None:
    """Check the mean size of a row before any value is read, as far as the file's footer tells it."""
    for column in column_sizes(file):
        size = max(column.size, (column.n_values - column.n_rows) * _POINTER)
        if column.path in leaves and size > MAX_ROW * max(column.n_rows, 1):
            raise _too_large(source, column.path.split(".")[0])


def _parts(batch: pa.RecordBatch, source: str) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts that have at most :data:`MAX_ROW` bytes."""
    sizes = [_size(column) for column in batch.columns]
    if sum(sizes) <= MAX_ROW:
        yield batch
    elif batch.num_rows <= 1:
        raise _too_large(source, batch.schema.names[sizes.index(max(sizes))])
    else:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half), source)
        yield from _parts(batch.slice(half), source)


def _too_large(source: str, column: str) -> InvalidInput:
    return InvalidInput(f"cannot read {source}: column {column!r} has more than {MAX_ROW:,} bytes in a row")


def _size(values: pa.Array) -> int:
    """Return the approximate size in bytes of a column's values as Python objects, without repetition in memory."""
    kind, size = values.type, _POINTER * len(values)
    if pa.types.is_dictionary(kind):
        lengths = _lengths(values.dictionary)
        return size + (0 if lengths is None else _sum(lengths.take(values.indices)))
    if pa.types.is_struct(kind):
        return size + sum(map(_size, values.flatten()))
    if pa.types.is_nested(kind):
        return size + (_size(values.flatten()) if hasattr(values, "flatten") else 0)
    lengths = _lengths(values)
    return size + (0 if lengths is None else _sum(lengths))


def _lengths(values: pa.Array) -> pa.Array | None:
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pc.binary_length(values) if is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else None


def _sum(lengths: pa.Array) -> int:
    return pc.sum(lengths).as_py() or 0
