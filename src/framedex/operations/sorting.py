"""Sorting of rows by a column."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.checks import suggestion
from framedex.errors import InvalidInput
from framedex.export.columns import ON_REQUEST
from framedex.export.table_columns import KEEP, all_fields, columns_to_read, table_column
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.table_versions import ROW_ID

_KEYS, _VALUE = "sort_keys", "value"
_FEW = 16  # below a share of 1/16, only the rows themselves are read


def sort_field(media: Media, column: Any) -> pa.Field:
    """Return the column to sort by.

    Args:
        media: the media, or the objects.
        column: a column of ``to_arrow`` with one value a row, such as an issue type or a custom field; or a stored
            column.

    Raises:
        InvalidInput: the column does not exist, or has no order.
    """
    fields = {
        field.name: field
        for field in [*media.table.schema, *ON_REQUEST, *all_fields(media)]
        if _has_order(field.type) and not field.equals(KEEP, check_metadata=True)
    }
    if isinstance(column, str) and column in fields:
        return fields[column]
    shown = [field.name for field in [*ON_REQUEST, *all_fields(media)] if field.name in fields]
    raise InvalidInput(f"cannot sort by {column!r}; there are: {', '.join(shown)}{suggestion(column, list(fields))}")


def _has_order(kind: pa.DataType) -> bool:
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(numeric or pa.types.is_string(kind) or pa.types.is_temporal(kind))


def sorted_rows(media: Media, rows: Condition | RowIds, field: pa.Field, *, descending: bool) -> RowIds:
    """Return rows in the order of their values. Ties are in row order; rows without a value are last.

    Values are read in batches and sorted by the engine, on disk if they do not fit in memory.

    Args:
        media: the media, or the objects.
        rows: the rows to sort.
        field: a column that :func:`sort_field` returned.
        descending: whether the largest value is first.

    Returns:
        uint64, shape (N,).
    """
    selected = media.row_ids(rows) if isinstance(rows, Condition) else rows
    schema = pa.schema([pa.field(ROW_ID, pa.uint64()), pa.field(_VALUE, field.type)])
    relations: dict[str, Any] = {}
    test = ""
    if len(selected) * _FEW < media.table.count():
        relations[_KEYS] = pa.Table.from_batches(_few(media, selected, field, schema), schema)
    else:
        relations[_KEYS] = pa.RecordBatchReader.from_batches(schema, _all(media, field, schema))
        if len(selected) < media.table.count():
            relations["selected_rows"] = pa.table({"row": pa.array(selected, pa.uint64())})
            test = f" WHERE {ROW_ID} IN (SELECT row FROM selected_rows)"
    value = f"CASE WHEN isnan({_VALUE}) THEN NULL ELSE {_VALUE} END" if pa.types.is_floating(field.type) else _VALUE
    direction = "DESC" if descending else "ASC"
    text = f"SELECT {ROW_ID} FROM {_KEYS}{test} ORDER BY {value} {direction} NULLS LAST, {ROW_ID}"
    return np.asarray(media.sql.query(text, (), relations)[ROW_ID].to_numpy(), dtype=np.uint64)


def _few(media: Media, row_ids: RowIds, field: pa.Field, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    start = 0
    for block in media.blocks(row_ids, columns_to_read(media, pa.schema([field]))):
        ids = pa.array(row_ids[start : start + len(block)])
        yield from pa.table([ids, _values(media, block, field)], schema=schema).to_batches()
        start += len(block)


def _all(media: Media, field: pa.Field, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in media.table.scan(columns_to_read(media, pa.schema([field])), row_ids=True):
        block = pa.Table.from_batches([batch])
        yield from pa.table([block[ROW_ID], _values(media, block, field)], schema=schema).to_batches()


def _values(media: Media, block: pa.Table, field: pa.Field) -> Any:
    return table_column(media, block, field, _no_kept_ids)


def _no_kept_ids(_numbers: pa.Array) -> pa.Array:
    raise AssertionError("the column of what to keep has no order")
