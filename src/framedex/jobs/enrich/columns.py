"""Columns that models compute from images or object crops: embeddings and captions."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from framedex.core.progress import ShareProgress
from framedex.encoders import Encoder
from framedex.enrichers import Captioner
from framedex.jobs.edits.captions import put_model_captions, uncaptioned
from framedex.jobs.ingest.encoding import check_encoding
from framedex.jobs.ingest.image_pass import Prediction, run_model
from framedex.jobs.ingest.ingest import batch_of
from framedex.jobs.ingest.rows import vectors_to_arrow
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.table_versions import Table

_ROWS = 4096  # rows per batch


def write_embeddings(table: Table, media: Media, encoder: Encoder, settings: Settings, progress: ShareProgress) -> int:
    """Write new embeddings, and the errors of rows without one; return the new version of the table.

    Args:
        table: at its newest version, without index columns.
        media: the rows, with the locations of their images.
        encoder: computes the embeddings.
        settings: limits.
        progress: called with the share that is done; raises to stop.
    """
    field = pa.field("embedding", pa.list_(pa.float32(), encoder.dimension))
    schema = pa.schema([field, table.schema.field("error")])
    predictions = run_model(
        media,
        encoder,
        lambda batch: check_encoding(encoder, encoder.encode_images(batch), len(batch)),
        batch=batch_of(encoder),
        settings=settings,
        progress=progress,
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for group in _in_groups(predictions):
            vectors = vectors_to_arrow([each.output for each in group], encoder.dimension)
            errors = pa.array([each.error for each in group], pa.string())
            yield pa.RecordBatch.from_arrays([vectors, errors], schema=schema)

    return tables.put_columns(table, batches(), schema)


def _in_groups(groups: Iterator[list[Prediction]]) -> Iterator[list[Prediction]]:
    group_of_rows: list[Prediction] = []
    for group in groups:
        group_of_rows += group
        if len(group_of_rows) >= _ROWS:
            yield group_of_rows
            group_of_rows = []
    if group_of_rows:
        yield group_of_rows


def write_model_captions(
    table: Table, media: Media, captioner: Captioner, settings: Settings, progress: ShareProgress, *, replaces: bool
) -> int:
    """Write captions of a model; return the new version of the table.

    Args:
        table: at its newest version.
        media: the rows, with the locations of their images.
        captioner: writes the captions.
        settings: limits.
        progress: called with the share that is done; raises to stop.
        replaces: whether to replace captions written by people.
    """
    mask = uncaptioned(table, replace=replaces)
    predictions = run_model(
        media,
        captioner,
        lambda batch: np.array(captioner.captions(batch), object),
        batch=captioner.batch,
        settings=settings,
        progress=progress,
        mask=mask,
    )
    texts = (None if each.output is None else str(each.output) for group in predictions for each in group)
    return put_model_captions(table, mask, texts)
