"""Rows of the media table that an edit selects, and the columns in which only those rows change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import Mask, RowIds
from framedex.storage import tables
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.overlay import Values
from framedex.storage.row_positions import positions_of
from framedex.storage.table_versions import ROW_ID, Table, edited_table

Indices = npt.NDArray[np.int64]

_ROWS = 65536
_LOOKUP_ROWS = 2**20  # rows per lookup; each lookup builds a hash table of all ids
_FEW, _FEW_SHARE = 1024, 16  # values of a column beside its file: at most so many, or this part of the rows


@dataclass(frozen=True)
class RowPositions:
    """Positions of media ids in a table.

    Attributes:
        indices: int64, shape (rows,): index of each row's id in the list of ids; -1 if not listed.
        exists: bool, shape (ids,): whether a row has the id.
        is_repeated: bool, shape (ids,): whether an earlier id of the list is equal.
    """

    indices: Indices
    exists: Mask
    is_repeated: Mask


def find_ids(media: Media, ids: Sequence[str]) -> RowPositions:
    """Return the positions of ids among media."""
    values = _texts(ids)
    first_index = _indices(values, values)
    found_ids = np.zeros(len(ids), dtype=bool)
    parts = []
    for batches in _in_groups(media.scan(["media_id"])):
        parts.append(_indices(pa.chunked_array(batches, pa.string()), values))
        found_ids[parts[-1][parts[-1] >= 0]] = True
    indices = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return RowPositions(indices, found_ids[first_index], first_index != np.arange(len(ids)))


def _texts(ids: Sequence[str]) -> pa.StringArray:
    try:
        return pa.array(ids, pa.string())
    except UnicodeEncodeError:  # a lone surrogate, which no id has
        return pa.array([each if each.isascii() else "" for each in ids], pa.string())


def _indices(values: pa.Array | pa.ChunkedArray, value_set: pa.Array) -> Indices:
    return np.asarray(pc.index_in(values, value_set=value_set).fill_null(-1).to_numpy(), dtype=np.int64)


def _in_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.Array]]:
    group: list[pa.Array] = []
    rows = 0
    for batch in batches:
        group.append(batch.column(0))
        rows += batch.num_rows
        if rows >= _LOOKUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def mask_of(media: Media, condition: Condition | RowIds) -> Mask:
    """Return the mask of rows that meet a condition, or that have given row ids: bool, shape (rows,)."""
    if isinstance(condition, Condition) and condition == EVERYTHING:
        return np.ones(media.table.count(), dtype=bool)
    row_ids = media.row_ids(condition) if isinstance(condition, Condition) else condition
    all_row_ids = read_row_ids(media)
    positions = positions_of(all_row_ids, row_ids)
    if positions is None:  # ids of compacted files may not ascend
        return np.isin(all_row_ids, row_ids, assume_unique=True)
    mask = np.zeros(len(all_row_ids), dtype=bool)
    mask[positions] = True
    return mask


def read_row_ids(media: Media) -> RowIds:
    """Return the ids of all rows in row order: uint64, shape (rows,)."""
    parts = [batch.column(0).to_numpy() for batch in media.scan([ROW_ID])]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def read_numbers(media: Media, column: str, missing: float = -1) -> npt.NDArray[Any]:
    """Return a column of numbers of all rows, shape (rows,), with a value for null."""
    parts = [batch.column(0).fill_null(missing).to_numpy() for batch in media.scan([column])]
    return np.concatenate(parts) if parts else np.empty(0)


def read_batches(table: Table, schema: pa.Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the first row, columns) of all rows in order; nulls if the table lacks a column."""
    start = 0
    if set(schema.names) <= set(table.schema.names):
        for batch in table.scan(schema.names):
            yield start, batch
            start += batch.num_rows
        return
    for start in range(0, count := table.count(), _ROWS):
        rows = min(_ROWS, count - start)
        yield start, pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)


def write_values(media: Media, field: pa.Field, values: pa.Array, indices: Indices) -> int:
    """Replace some values of a column; add the column if the table lacks it. Return the table's new version.

    Args:
        media: the media, whose table is at its newest version.
        field: the column.
        values: the new values.
        indices: int64, shape (rows,): index into *values* for each row; -1 keeps the old value.
    """
    schema = pa.schema([field])
    changed = np.flatnonzero(indices >= 0)
    if are_few(media.table, len(changed)):
        chosen = values.take(pa.array(indices[changed]))
        return write_few(media.table, read_row_ids(media)[changed], pa.record_batch([chosen], schema=schema))

    def batches() -> Iterator[pa.RecordBatch]:
        for start, group in read_batches(media.table, schema):
            old, at = group.column(0), indices[start : start + group.num_rows]
            new = values.take(pa.array(at, mask=at < 0))
            yield pa.RecordBatch.from_arrays([pc.if_else(pa.array(at >= 0), new, old)], schema=schema)

    return tables.put_columns(media.table, batches(), schema)


def are_few(table: Table, rows: int) -> bool:
    """Return whether so few rows change that their values are written beside the columns' files."""
    return rows <= max(_FEW, table.count() // _FEW_SHARE)


def write_few(table: Table, row_ids: RowIds, values: pa.RecordBatch) -> int:
    """Replace the values of few rows beside the columns' files; return the table's new version.

    Once too many values lie there, they are written into the files.

    Args:
        table: the table, at its newest version. Columns that it lacks are added.
        row_ids: uint64, shape (N,), unique: the rows.
        values: N rows of some columns.
    """
    if not len(row_ids):
        return table.version
    if missing := [field for field in values.schema if field.name not in table.schema.names]:
        table = Table(table.path, tables.add_empty_columns(table, pa.schema(missing)))
    order = np.argsort(row_ids)
    values = values.take(pa.array(order))
    return write_changes(table, {name: (row_ids[order], values.column(name)) for name in values.schema.names})


def write_changes(table: Table, changes: Mapping[str, Values]) -> int:
    """Replace few values of columns beside their files, as :func:`write_few`, for each column those of other rows.

    Args:
        table: the table, at its newest version, which has the columns.
        changes: by column: the ids of the edited rows, and their values.
    """
    written = edited_table(table.path, tables.put_values(table, changes))
    edited = max(map(written.overlay.count, changes))
    return written.version if are_few(written, edited) else tables.fold_edits(written)


def write_rows(media: Media, row_ids: RowIds, values: pa.RecordBatch) -> int:
    """Replace the values of some rows, few or many; return the table's new version.

    Args:
        media: the media, whose table is at its newest version.
        row_ids: uint64, shape (N,), unique: the rows.
        values: N rows of some columns of the table.
    """
    if are_few(media.table, len(row_ids)):
        return write_few(media.table, row_ids, values)
    place_of_row = np.full(media.table.count(), -1, dtype=np.int64)
    positions = positions_of(read_row_ids(media), row_ids)
    assert positions is not None, "the rows exist"
    place_of_row[positions] = np.arange(len(row_ids))

    def batches() -> Iterator[pa.RecordBatch]:
        for start, old in read_batches(media.table, values.schema):
            at = place_of_row[start : start + old.num_rows]
            places = np.where(at >= 0, old.num_rows + at, np.arange(old.num_rows))
            both = pa.Table.from_batches([old, values.cast(old.schema)]).combine_chunks()
            (batch,) = both.take(pa.array(places)).combine_chunks().to_batches()
            yield batch

    return tables.put_columns(media.table, batches(), values.schema)
