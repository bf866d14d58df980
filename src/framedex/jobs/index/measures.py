"""Missing quality measures in datasets of older versions: their columns, and their values from the images."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.progress import Progress
from framedex.encoders import MEASURED_SIDE_PX
from framedex.issue_types import measure_columns
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.jobs.ingest.measuring import measure_image
from framedex.media.decode import DecodedImage
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.objects import OBJECTS
from framedex.storage.sql import Sql
from framedex.storage.tables import Table

_ROWS = 65_536
_STAGE = "measuring images"
_UNREAD = np.empty(0, dtype=np.float32)
_Array = npt.NDArray[np.float32]


def add_measure_columns(table: Table) -> Table:
    """Add missing columns of measures, without values; return the table at its new version.

    Args:
        table: the table of media or objects, at its newest version.
    """
    existing = set(table.schema.names)
    if not (missing := [pa.field(name, pa.float32()) for name in measure_columns() if name not in existing]):
        return table
    return Table(table.path, tables.add_empty_columns(table, pa.schema(missing)))


def fill_measures(job: JobContext, table: Table, progress: Progress) -> tuple[Table, int]:
    """Compute and write missing measures of rows that have other measures.

    Rows without any measure are skipped: their images cannot be decoded, or were never read.

    Args:
        job: the context of the job.
        table: the table of media or objects, at its newest version.
        progress: called with the stage and the completed share, 0 to 1; raises to stop.

    Returns:
        The table at its new version, and the number of rows whose image could not be read; they keep their values.
    """
    table = add_measure_columns(table)
    values = _values(table)
    missing = np.isnan(values)
    incomplete: npt.NDArray[np.bool_] = np.asarray(missing.any(axis=1) & ~missing.all(axis=1))
    if not (rows := np.flatnonzero(incomplete)).size:
        return table, 0
    unread = 0
    with closing(_measured(job, table, incomplete)) as measured:
        for done, (row, measures) in enumerate(zip(rows, measured, strict=True)):
            progress(_STAGE, done / len(rows))
            if measures is None:
                unread += 1
            else:
                values[row] = np.where(missing[row], measures, values[row])
    new_columns = [
        name for name, column in zip(measure_columns(), (missing & ~np.isnan(values)).T, strict=True) if column.any()
    ]
    if new_columns:
        schema = pa.schema([pa.field(name, pa.float32()) for name in new_columns])
        table = Table(table.path, tables.put_columns(table, _batches(values, schema), schema))
    return table, unread


def _values(table: Table) -> _Array:
    """Read the measures of all rows, NaN for none: float32, shape (rows, measures), in the order of the measures."""
    names = measure_columns()
    read = table.scan(names).read_all()
    columns = [read.column(name).to_numpy().astype(np.float32) for name in names]
    return np.stack(columns, axis=1)


def _batches(values: _Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    measures = measure_columns()
    positions = [measures.index(name) for name in schema.names]
    for start in range(0, len(values), _ROWS):
        some = np.ascontiguousarray(values[start : start + _ROWS, positions].T)
        yield pa.RecordBatch.from_arrays([pa.array(each, mask=np.isnan(each)) for each in some], schema=schema)


def _measured(job: JobContext, table: Table, incomplete: npt.NDArray[np.bool_]) -> Generator[_Array | None, None, None]:
    """Yield the measures of the images of rows, in order; None if an image cannot be read."""
    media = Media(job.dataset_id, job.head, table, Sql(), job.roots)
    if table.path.stem == OBJECTS:
        media = replace(media, parents=media)
    rows = (row for batch in table.scan([*media.location, "error"]) for row in batch.to_pylist())
    decoded = decode_rows(
        media,
        compress(rows, incomplete),
        _measure,
        lambda _row, _reason: _UNREAD,
        detail=MEASURED_SIDE_PX,
        settings=job.settings,
    )
    with closing(decoded) as results:
        yield from (None if each is _UNREAD else each for each in results if each is not None)


def _measure(_row: Any, image: DecodedImage) -> _Array:
    measures = measure_image(image)
    return np.array([measures[name] for name in measure_columns()], dtype=np.float32)  # NaN for None
