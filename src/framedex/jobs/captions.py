"""Captions that models write: two columns of the media table, so that they are told from those that people give."""

from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from framedex.jobs.labels import CAPTION
from framedex.jobs.rows import held_columns
from framedex.storage import tables
from framedex.storage.media_rows import MODEL_CAPTION
from framedex.storage.tables import Table

_SCHEMA = pa.schema([CAPTION, MODEL_CAPTION])


def put_model_captions(table: Table, texts: Iterator[str | None], *, replace: bool) -> int:
    """Write captions of a model; return the new version of the table.

    Captions that a model wrote make way for them, those that people or the source gave stay.

    Args:
        table: the media table, at its newest version.
        texts: the caption of each row, in their order; where it is None or empty the row stays as it is.
        replace: whether all captions make way.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for old, model in _held(table):
            new = [
                (text, text) if text and (replace or not caption or caption == written) else (caption, written)
                for text, caption, written in zip(islice(texts, len(old)), old, model, strict=True)
            ]
            columns = [pa.array([row[place] for row in new], pa.string()) for place in range(2)]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    return tables.put_columns(table, batches(), _SCHEMA)


def _held(table: Table) -> Iterator[tuple[list[str | None], list[str | None]]]:
    """Yield the captions of some rows at a time, and what a model had written."""
    if MODEL_CAPTION.name in table.schema.names:
        for _, held in held_columns(table, _SCHEMA):
            yield held.column(0).to_pylist(), held.column(1).to_pylist()
        return
    for _, held in held_columns(table, pa.schema([CAPTION])):
        yield held.column(0).to_pylist(), [None] * held.num_rows
