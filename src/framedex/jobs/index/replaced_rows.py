"""What people gave to media whose files have changed: it goes over to the rows that replace theirs."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import MODEL_CAPTION
from framedex.storage.tables import Table

_SOURCES_OWN = ("labels", "caption")
"""Columns that a source may give anew; what it does not give stays."""


def inherit_edits(before: Table, after: Table, gone: npt.NDArray[np.bool_]) -> int:
    """Give added rows the tags, fields, labels and captions of the rows that they replace; return the new version.

    Args:
        before: the media table without the added rows.
        after: with them, and without the replaced ones, at its newest version.
        gone: bool, shape (rows before,): the replaced ones.
    """
    from_row = _origins(before, after, gone)
    names = [name for name in after.schema.names if name in (*_SOURCES_OWN, MODEL_CAPTION.name) or is_edited(name)]
    old = before.scan([name for name in names if name in before.schema.names]).read_all()
    new = after.scan(names).read_all()
    columns: dict[str, Any] = {}
    for name in old.schema.names:
        taken = old.column(name).combine_chunks().take(pa.array(from_row, mask=from_row < 0))
        columns[name] = pc.coalesce(new.column(name).combine_chunks(), taken) if name in _SOURCES_OWN else taken
    schema = pa.schema([after.schema.field(name) for name in columns])
    batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    return tables.put_columns(after, iter([batch]), schema)


def is_edited(name: str) -> bool:
    """Return whether a column of the media table holds what people put there, and no source does."""
    return name in ("tags", "tagged_at") or name.startswith("field_")


def _origins(before: Table, after: Table, gone: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each row the one before that it is, or replaces; -1 for new media."""
    kept = np.flatnonzero(~gone)
    ids = after.scan(["media_id"]).read_all().column(0).slice(len(kept)).to_pylist()
    return np.concatenate([kept, IdIndex(before).positions(ids)])
