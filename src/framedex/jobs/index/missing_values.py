"""Values that rows of older versions lack, from the images: quality measures, and descriptors for finding copies."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import Floats, Mask, Vectors
from framedex.core.progress import Progress
from framedex.encoders import MEASURED_SIDE_PX
from framedex.encoders.copy_descriptor import DIMENSION, describe, prepare_panels, prepare_whole
from framedex.issue_types import measure_columns
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.jobs.ingest.ingest import lists_to_arrow, vectors_to_arrow
from framedex.jobs.ingest.measuring import measure_image
from framedex.media.decode import DecodedImage
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.media_rows import COPY_DESCRIPTOR, PANEL_DESCRIPTORS, copy_schema
from framedex.storage.objects import OBJECTS
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

_STAGE = "measuring images"


@dataclass(frozen=True)
class Completed:
    """Result of filling in missing values.

    Attributes:
        table: the table at its new version.
        unread: the number of rows whose image could not be read; they keep their values.
        undescribed: whether some of them have no copy descriptor.
    """

    table: Table
    unread: int = 0
    undescribed: bool = False


@dataclass(frozen=True)
class _Values:
    """Values from an image.

    Attributes:
        measures: float32, shape (measures,), in their order, NaN for None.
        whole, panels: the copy descriptors of the image, shape (DIMENSION,), and of its panels, one after another; None
            for none.
    """

    measures: Floats
    whole: Vectors | None = None
    panels: Vectors | None = None


_UNREAD = _Values(np.empty(0, np.float32))


def add_measure_columns(table: Table) -> Table:
    """Add missing columns of measures, without values; return the table at its new version.

    Args:
        table: the table of media or objects, at its newest version.
    """
    existing = set(table.schema.names)
    if not (missing := [pa.field(name, pa.float32()) for name in measure_columns() if name not in existing]):
        return table
    return Table(table.path, tables.add_empty_columns(table, pa.schema(missing)))


def complete_rows(
    job: JobContext, table: Table, progress: Progress, *, roots: Sequence[str] | None = None
) -> Completed:
    """Compute and write missing measures and copy descriptors of rows that have other measures.

    Rows without any measure are skipped: their images cannot be decoded, or were never read, as those of a table of
    embeddings. Copy descriptors get a column of their own, also where the encoder computes them today, because the
    embeddings may be of an older version of it. Nothing is written if no image can be read.

    Args:
        job: the context of the job.
        table: the table of media or objects, at its newest version.
        progress: called with the stage and the completed share, 0 to 1; raises to stop.
        roots: source roots by number; by default those of the job.
    """
    table = add_measure_columns(table)
    gaps = _Gaps.of(table)
    if not gaps.rows.any():
        return Completed(table)
    work = partial(_values, is_described=bool(gaps.undescribed.any()))
    results = _decoded(job, table, gaps.rows, job.roots if roots is None else tuple(roots), work)
    with closing(_with_progress(results, progress, int(gaps.rows.sum()))) as values:
        filling = _Filling(table, gaps, values)
        version = tables.put_columns(table, filling.batches(), filling.schema)
    if filling.unread.all():
        version = tables.roll_back(table.path, table.version) or 0
    undescribed = bool(gaps.undescribed[gaps.rows][filling.unread].any())
    return Completed(Table(table.path, version), int(filling.unread.sum()), undescribed)


@dataclass(frozen=True)
class _Gaps:
    """Missing values of a table.

    Attributes:
        measures: float32, shape (rows, measures): the present measures, NaN for none.
        unmeasured: bool, shape (rows,): the rows with some measures but not all.
        undescribed: bool, shape (rows,): the rows with measures but without a copy descriptor.
    """

    measures: Floats
    unmeasured: Mask
    undescribed: Mask

    @classmethod
    def of(cls, table: Table) -> "_Gaps":
        """Return the missing values of a table with all columns of measures."""
        read = table.scan(measure_columns()).read_all()
        measures = np.stack([each.to_numpy().astype(np.float32) for each in read.columns], axis=1)
        missing = np.isnan(measures)
        is_measured = ~missing.all(axis=1)
        return cls(measures, missing.any(axis=1) & is_measured, _lacks_descriptor(table) & is_measured)

    @property
    def rows(self) -> Mask:
        """The rows with missing values: bool, shape (rows,)."""
        return self.unmeasured | self.undescribed


def _lacks_descriptor(table: Table) -> Mask:
    """Return the mask of rows without a copy descriptor: bool, shape (rows,)."""
    has_whole, has_panels = (name in table.schema.names for name in (COPY_DESCRIPTOR, PANEL_DESCRIPTORS))
    if table.path.stem == OBJECTS or (has_panels and not has_whole):
        return np.zeros(table.count(), dtype=bool)
    if not has_panels:
        return np.ones(table.count(), dtype=bool)
    masks = [batch.column(0).is_null() for batch in table.vector_batches(COPY_DESCRIPTOR, 0)]
    return np.asarray(pa.chunked_array(masks, pa.bool_()).to_numpy(), dtype=bool)


class _Filling:
    """New columns of a table, whose missing values are filled in.

    Args:
        table: the table.
        gaps: its missing values.
        values: those of the images of the rows of the gaps, in order.

    Attributes:
        schema: the columns that are written.
        unread: bool, shape (rows of the gaps,): the rows whose images could not be read; known after the last batch.
    """

    def __init__(self, table: Table, gaps: _Gaps, values: Iterator[_Values]) -> None:
        self._table, self._gaps, self._values = table, gaps, values
        missing = np.isnan(gaps.measures[gaps.unmeasured]).any(axis=0)
        self._measures = np.flatnonzero(missing)
        names = measure_columns()
        fields = [pa.field(names[number], pa.float32()) for number in self._measures]
        copies = copy_schema(DIMENSION, is_embedding=False) if gaps.undescribed.any() else pa.schema([])
        self._copies = [name for name in copies.names if name in table.schema.names]
        self.schema = pa.schema([*fields, *copies])
        self._has_copies = bool(copies.names)
        self.unread: Mask = np.zeros(int(gaps.rows.sum()), dtype=bool)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns in batches, in row order."""
        start = done = 0
        for batch in self._table.scan(["error", *self._copies]):
            rows = np.arange(start, start + batch.num_rows)
            incomplete = np.flatnonzero(self._gaps.rows[rows])
            found = [next(self._values) for _ in incomplete]
            self.unread[done : done + len(found)] = [each is _UNREAD for each in found]
            columns = self._measure_arrays(rows, incomplete, found)
            if self._has_copies:
                columns += self._copy_arrays(batch, incomplete, found)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            start, done = start + batch.num_rows, done + len(found)

    def _measure_arrays(
        self, rows: npt.NDArray[np.int64], incomplete: npt.NDArray[np.int64], found: Sequence[_Values]
    ) -> list[pa.Array]:
        values = self._gaps.measures[rows]
        for row, each in zip(incomplete, found, strict=True):
            if each is not _UNREAD:
                values[row] = np.where(np.isnan(values[row]), each.measures, values[row])
        columns = np.ascontiguousarray(values[:, self._measures].T)
        return [pa.array(each, mask=np.isnan(each)) for each in columns]

    def _copy_arrays(
        self, batch: pa.RecordBatch, incomplete: npt.NDArray[np.int64], found: Sequence[_Values]
    ) -> list[pa.Array]:
        whole, panels = (_lists(batch, name) for name in (COPY_DESCRIPTOR, PANEL_DESCRIPTORS))
        for row, each in zip(incomplete, found, strict=True):
            if whole[row] is None:
                whole[row], panels[row] = each.whole, each.panels
        return [vectors_to_arrow(whole, DIMENSION), lists_to_arrow(panels)]


def _lists(batch: pa.RecordBatch, name: str) -> list[Vectors | None]:
    """Return the lists of a column as arrays; None for all rows without the column."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    return [each.values.to_numpy() if each.is_valid else None for each in batch.column(name)]


def _decoded(
    job: JobContext, table: Table, chosen: Mask, roots: tuple[str, ...], work: Any
) -> Generator[_Values | None, None, None]:
    """Return the results of :func:`decode_rows` for the chosen rows of a table."""
    media = Media(job.dataset_id, job.head, table, Sql(), roots)
    if table.path.stem == OBJECTS:
        media = replace(media, parents=media)
    rows = (row for batch in table.scan([*media.location, "error"]) for row in batch.to_pylist())
    return decode_rows(
        media,
        compress(rows, chosen),
        work,
        lambda _row, _reason: _UNREAD,
        detail=MEASURED_SIDE_PX,
        settings=job.settings,
    )


def _with_progress(
    results: Generator[_Values | None, None, None], progress: Progress, total: int
) -> Generator[_Values, None, None]:
    done = 0
    with closing(results):
        for each in results:
            progress(_STAGE, done / total)
            if each is not None:
                done += 1
                yield each


def _values(_row: Any, image: DecodedImage, *, is_described: bool) -> _Values:
    found = measure_image(image)
    measures = np.array([found[name] for name in measure_columns()], dtype=np.float32)  # NaN for None
    if not is_described:
        return _Values(measures)
    panels = prepare_panels(image.bordered)
    described = describe(np.stack([prepare_whole(image.bordered), *([] if panels is None else panels)]))
    return _Values(measures, described[0], None if panels is None else described[1:].ravel())
