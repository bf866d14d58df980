"""The rows of the media table that an edit is about, and columns in which only those rows change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.arrays import Mask, RowIds
from framedex.storage import tables
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.tables import ROW_ID, Table

Places = npt.NDArray[np.int64]

_ROWS = 65536
_LOOKED_UP = 2**20  # rows; each time costs building a hash table of all ids that are looked for


@dataclass(frozen=True)
class RowPositions:
    """Where media ids are in a table.

    Attributes:
        place: int64, shape (rows of the table,): which of the ids a row has, of equal ones the first; -1 for none.
        known: bool, shape (ids,): whether some row has it.
        repeated: bool, shape (ids,): whether an earlier one is equal.
    """

    place: Places
    known: Mask
    repeated: Mask


def find_ids(table: Table, ids: Sequence[str]) -> RowPositions:
    """Return which rows of a media table have which of some ids."""
    wanted = _texts(ids)
    first = _indices(wanted, wanted)
    used = np.zeros(len(ids), dtype=bool)
    parts = []
    for batches in _gathered(table.scan(["media_id"])):
        parts.append(_indices(pa.chunked_array(batches, pa.string()), wanted))
        used[parts[-1][parts[-1] >= 0]] = True
    place = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    return RowPositions(place, used[first], first != np.arange(len(ids)))


def _texts(ids: Sequence[str]) -> pa.StringArray:
    try:
        return pa.array(ids, pa.string())
    except UnicodeEncodeError:  # half of a surrogate pair, which no id has
        return pa.array([each if each.isascii() else "" for each in ids], pa.string())


def _indices(values: pa.Array | pa.ChunkedArray, among: pa.Array) -> Places:
    return np.asarray(pc.index_in(values, value_set=among).fill_null(-1).to_numpy(), dtype=np.int64)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.Array]]:
    held: list[pa.Array] = []
    rows = 0
    for batch in batches:
        held.append(batch.column(0))
        rows += batch.num_rows
        if rows >= _LOOKED_UP:
            yield held
            held, rows = [], 0
    if held:
        yield held


def mask_of(media: Media, condition: Condition | RowIds) -> Mask:
    """Return for each row of a media table whether it meets a condition, or is among those of given ids."""
    if isinstance(condition, Condition) and condition == EVERYTHING:
        return np.ones(media.table.count(), dtype=bool)
    row_ids = media.row_ids(condition) if isinstance(condition, Condition) else condition
    every = media.table.scan([], row_ids=True).read_all().column(ROW_ID).to_numpy()
    return np.isin(every, row_ids, assume_unique=True)


def read_batches(table: Table, schema: pa.Schema) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the first row, some columns) of all rows in order; all null where the table lacks a column."""
    start = 0
    if set(schema.names) <= set(table.schema.names):
        for batch in table.scan(schema.names):
            yield start, batch
            start += batch.num_rows
        return
    for start in range(0, count := table.count(), _ROWS):
        rows = min(_ROWS, count - start)
        yield start, pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)


def write_values(table: Table, field: pa.Field, values: pa.Array, place: Places) -> int:
    """Replace some values of a column, which is added where the table lacks it; return the table's new version.

    Args:
        table: the media table, at its newest version.
        field: the column.
        values: new ones.
        place: int64, shape (rows,): which of them a row gets; -1 where the old one stays.
    """
    schema = pa.schema([field])

    def batches() -> Iterator[pa.RecordBatch]:
        for start, held in read_batches(table, schema):
            old, at = held.column(0), place[start : start + held.num_rows]
            new = values.take(pa.array(at, mask=at < 0))
            yield pa.RecordBatch.from_arrays([pc.if_else(pa.array(at >= 0), new, old)], schema=schema)

    return tables.put_columns(table, batches(), schema)
