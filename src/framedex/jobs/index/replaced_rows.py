"""Inheritance of edits by rows that replace the rows of changed files."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.editable_values import editable_values
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import MODEL_CAPTION, SOURCE_ID
from framedex.storage.table_names import IN_BASKET, KEEPER
from framedex.storage.table_versions import Table

_FROM_SOURCE = frozenset({SOURCE_ID.name, *(each.name for each in editable_values().values() if each.from_source)})
"""Columns that a source may set again; otherwise the previous value is inherited."""


def inherit_edits(before: Table, after: Table, replaced: npt.NDArray[np.bool_]) -> int:
    """Copy tags, the basket, keepers, fields and editable values from replaced rows; return the new version.

    Args:
        before: the media table without the added rows.
        after: the table with the added and without the replaced rows, at its newest version.
        replaced: bool, shape (rows before,): true for replaced rows.
    """
    from_row = _origins(before, after, replaced)
    names = [name for name in after.schema.names if name in {*_FROM_SOURCE, MODEL_CAPTION.name} or is_edited(name)]
    old = before.scan([name for name in names if name in before.schema.names]).read_all()
    new = after.scan(names).read_all()
    columns: dict[str, Any] = {}
    for name in old.schema.names:
        values = old.column(name).combine_chunks().take(pa.array(from_row, mask=from_row < 0))
        columns[name] = pc.coalesce(new.column(name).combine_chunks(), values) if name in _FROM_SOURCE else values
    schema = pa.schema([after.schema.field(name) for name in columns])
    batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    return tables.put_columns(after, iter([batch]), schema)


def is_edited(name: str) -> bool:
    """Return whether a column of the media table has values that only users set."""
    if name in ("tags", "tagged_at", IN_BASKET, KEEPER) or name.startswith("field_"):
        return True
    return name in editable_values() and name not in _FROM_SOURCE


def _origins(before: Table, after: Table, replaced: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the previous row of each row: the same or the replaced one; -1 for new media."""
    remaining = np.flatnonzero(~replaced)
    ids = after.scan(["media_id"]).read_all().column(0).slice(len(remaining)).to_pylist()
    return np.concatenate([remaining, IdIndex(before).positions(ids)])
