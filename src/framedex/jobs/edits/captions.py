"""Captions that models write: two columns of the media table, so that they are told from those that people give."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from framedex.arrays import Mask
from framedex.jobs.edits.labels import CAPTION
from framedex.jobs.edits.rows import read_batches
from framedex.storage import tables
from framedex.storage.media_rows import MODEL_CAPTION
from framedex.storage.tables import Table

_SCHEMA = pa.schema([CAPTION, MODEL_CAPTION])


def uncaptioned(table: Table, *, replace: bool) -> Mask:
    """Return which rows a model is to caption: those without a caption, or with one that a model wrote.

    Args:
        table: the media table.
        replace: whether all others are to be captioned, too.

    Returns:
        bool, shape (rows,).
    """
    if replace:
        return np.ones(table.count(), bool)
    free = [
        not caption or caption == written
        for old, model in _held(table)
        for caption, written in zip(old, model, strict=True)
    ]
    return np.array(free, bool)


def put_model_captions(table: Table, chosen: Mask, texts: Iterator[str | None]) -> int:
    """Write captions of a model; return the new version of the table.

    Args:
        table: the media table, at its newest version.
        chosen: bool, shape (rows,): which rows get one.
        texts: the captions of these, in their order; where one is None or empty the row stays as it is.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for old, model in _held(table):
            some = chosen[start : start + len(old)].tolist()
            new = [next(texts) if each else None for each in some]
            start += len(old)
            columns = [
                pa.array([text or held for text, held in zip(new, before, strict=True)], pa.string())
                for before in (old, model)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
        more = sum(1 for _ in texts)  # whoever makes them learns that they were taken
        assert not more, "there are as many captions as chosen rows"

    return tables.put_columns(table, batches(), _SCHEMA)


def _held(table: Table) -> Iterator[tuple[list[str | None], list[str | None]]]:
    """Yield the captions of some rows at a time, and what a model had written."""
    if MODEL_CAPTION.name in table.schema.names:
        for _, held in read_batches(table, _SCHEMA):
            yield held.column(0).to_pylist(), held.column(1).to_pylist()
        return
    for _, held in read_batches(table, pa.schema([CAPTION])):
        yield held.column(0).to_pylist(), [None] * held.num_rows
