"""Model captions: two columns of the media table that keep them apart from captions written by people."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask
from framedex.editable_values import find_editable_value
from framedex.jobs.edits.rows import read_batches
from framedex.storage import tables
from framedex.storage.media_rows import MODEL_CAPTION
from framedex.storage.table_versions import Table

_CAPTION = find_editable_value("caption").field
_SCHEMA = pa.schema([_CAPTION, MODEL_CAPTION])


def uncaptioned(table: Table, *, replace: bool) -> Mask:
    """Return the mask of rows that a model should caption: rows without a caption, or with a model's caption.

    Args:
        table: the media table.
        replace: whether to caption all rows, including those with captions written by people.

    Returns:
        bool, shape (rows,).
    """
    if replace:
        return np.ones(table.count(), bool)
    is_free = [
        not caption or caption == written
        for old, model in _read_captions(table)
        for caption, written in zip(old, model, strict=True)
    ]
    return np.array(is_free, bool)


def put_model_captions(table: Table, mask: Mask, texts: Iterator[str | None]) -> int:
    """Write captions of a model; return the new version of the table.

    Args:
        table: the media table, at its newest version.
        mask: bool, shape (rows,): the rows to caption.
        texts: the captions of these rows, in row order; None or an empty text leaves the row unchanged.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for old, model in _read_captions(table):
            selected = mask[start : start + len(old)].tolist()
            new = [next(texts) if each else None for each in selected]
            start += len(old)
            columns = [
                pa.array([text or batch for text, batch in zip(new, before, strict=True)], pa.string())
                for before in (old, model)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
        n_unused = sum(1 for _ in texts)  # exhaust the generator, so that its clean-up runs
        assert not n_unused, "there are as many captions as chosen rows"

    return tables.put_columns(table, batches(), _SCHEMA)


def _read_captions(table: Table) -> Iterator[tuple[list[str | None], list[str | None]]]:
    """Yield the captions of the rows in batches, each with the captions that a model wrote."""
    if MODEL_CAPTION.name in table.schema.names:
        for _, batch in read_batches(table, _SCHEMA):
            yield batch.column(0).to_pylist(), batch.column(1).to_pylist()
        return
    for _, batch in read_batches(table, pa.schema([_CAPTION])):
        yield batch.column(0).to_pylist(), [None] * batch.num_rows
