"""Values that rows of older versions lack, from the images: measures, kinds of content, descriptors of copies."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.local_features import find_local_features
from framedex.core.arrays import Floats, Mask, Vectors
from framedex.core.progress import Progress
from framedex.encoders import MEASURED_SIDE_PX
from framedex.encoders.copy_descriptor import DIMENSION, describe, prepare_panels, prepare_whole
from framedex.issue_types import measure_columns
from framedex.issue_types.size import ODD_ASPECT_RATIO
from framedex.jobs.context import JobContext
from framedex.jobs.index.old_faults import name_faults
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.jobs.ingest.measuring import measure_image
from framedex.jobs.ingest.rows import lists_to_arrow, vectors_to_arrow
from framedex.media.decoded_image import DecodedImage
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.media_rows import (
    CONTENT,
    COPY_DESCRIPTOR,
    LOCAL_FEATURES,
    N_PAGES,
    OF_FAULTS,
    OF_RANGE,
    PANEL_DESCRIPTORS,
    copy_schema,
)
from framedex.storage.objects import OBJECTS
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

_STAGE = "measuring images"
_FACTS = pa.schema(
    [
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("format", pa.string()),
        pa.field("size_bytes", pa.int64()),
    ]
)
"""Columns about files that rows lack whose images were never read."""


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
        content: the kind of content.
        whole, panels: the copy descriptors of the image, shape (DIMENSION,), and of its panels, one after another; None
            for none.
        features: the bytes of its local features; None for none.
        facts: the values of :data:`_FACTS`, in their order.
    """

    measures: Floats
    content: str | None = None
    whole: Vectors | None = None
    panels: Vectors | None = None
    features: bytes | None = None
    facts: tuple[Any, ...] = ()


_UNREAD = _Values(np.empty(0, np.float32))


def add_measure_columns(table: Table) -> Table:
    """Add missing columns of measures and faults, without values; return the table at its new version.

    Args:
        table: the table of media or objects, at its newest version.
    """
    existing = set(table.schema.names)
    fields = [*(pa.field(name, pa.float32()) for name in measure_columns()), *OF_FAULTS, CONTENT, *OF_RANGE, N_PAGES]
    if not (missing := [field for field in fields if field.name not in existing]):
        return table
    return Table(table.path, tables.add_empty_columns(table, pa.schema(missing)))


def complete_rows(
    job: JobContext,
    table: Table,
    progress: Progress,
    *,
    roots: Sequence[str] | None = None,
    unread: bool = False,
) -> Completed:
    """Compute and write missing measures, kinds of content and copy descriptors of rows that have other measures.

    Rows without any measure are skipped by default: their images cannot be decoded, or were never read, as those of a
    table of embeddings. Copy descriptors get a column of their own, also where the encoder computes them today, because
    the embeddings may be of an older version of it. Nothing is written if no image can be read.

    Args:
        job: the context of the job.
        table: the table of media or objects, at its newest version.
        progress: called with the stage and the completed share, 0 to 1; raises to stop.
        roots: source roots by number; by default those of the job.
        unread: also read images that were never read, and write their width, height, format and size.
    """
    table = name_faults(job, add_measure_columns(table), progress, job.roots if roots is None else roots)
    gaps = _Gaps.of(table, unread=unread)
    if not gaps.rows.any():
        return Completed(table)
    results = _decoded(job, table, gaps, job.roots if roots is None else tuple(roots))
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
        unknown: bool, shape (rows,): the rows with measures but without a kind of content.
        undescribed: bool, shape (rows,): the rows with measures but without a copy descriptor or local features.
        unread: whether rows without any measure are among both.
    """

    measures: Floats
    unmeasured: Mask
    unknown: Mask
    undescribed: Mask
    unread: bool

    @classmethod
    def of(cls, table: Table, *, unread: bool) -> "_Gaps":
        """Return the missing values of a table with all columns of measures."""
        names = measure_columns()
        read = table.scan([*names, CONTENT.name]).read_all()
        measures = np.stack([read.column(name).to_numpy().astype(np.float32) for name in names], axis=1)
        missing = np.isnan(measures)
        of_pixels = [name != ODD_ASPECT_RATIO.column for name in names]  # a table of embeddings may bring sizes
        is_measured = np.ones(len(missing), dtype=bool) if unread else ~missing[:, of_pixels].all(axis=1)
        return cls(
            measures,
            missing.any(axis=1) & is_measured,
            read.column(CONTENT.name).is_null().to_numpy() & is_measured,
            _lacks_descriptor(table) & is_measured,
            unread,
        )

    @property
    def rows(self) -> Mask:
        """The rows with missing values: bool, shape (rows,)."""
        return self.unmeasured | self.unknown | self.undescribed


def _lacks_descriptor(table: Table) -> Mask:
    """Return the mask of rows without a copy descriptor or local features: bool, shape (rows,)."""
    has_whole, has_features = (name in table.schema.names for name in (COPY_DESCRIPTOR, LOCAL_FEATURES))
    if table.path.stem == OBJECTS or (has_features and not has_whole):
        return np.zeros(table.count(), dtype=bool)
    if not has_features:
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
        self._facts = _FACTS if gaps.unread else pa.schema([])
        self._contents = [CONTENT] if gaps.unknown.any() else []
        self.schema = pa.schema([*fields, *copies, *self._contents, *self._facts])
        self._has_copies = bool(copies.names)
        self.unread: Mask = np.zeros(int(gaps.rows.sum()), dtype=bool)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns in batches, in row order."""
        start = done = 0
        read = [each.name for each in (*self._contents, *self._facts)]
        for batch in self._table.scan(["error", *self._copies, *read]):
            rows = np.arange(start, start + batch.num_rows)
            incomplete = np.flatnonzero(self._gaps.rows[rows])
            found = [next(self._values) for _ in incomplete]
            self.unread[done : done + len(found)] = [each is _UNREAD for each in found]
            columns = self._measure_arrays(rows, incomplete, found)
            if self._has_copies:
                columns += self._copy_arrays(batch, incomplete, found)
            columns += self._content_arrays(batch, incomplete, found)
            columns += self._fact_arrays(batch, incomplete, found)
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
        features = _filled(batch, pa.field(LOCAL_FEATURES, pa.binary()), incomplete, [each.features for each in found])
        return [vectors_to_arrow(whole, DIMENSION), lists_to_arrow(panels), features]

    def _content_arrays(
        self, batch: pa.RecordBatch, incomplete: npt.NDArray[np.int64], found: Sequence[_Values]
    ) -> list[pa.Array]:
        """Return the kinds of content, as a column; none if no row lacks one."""
        return [_filled(batch, field, incomplete, [each.content for each in found]) for field in self._contents]

    def _fact_arrays(
        self, batch: pa.RecordBatch, incomplete: npt.NDArray[np.int64], found: Sequence[_Values]
    ) -> list[pa.Array]:
        """Return the facts about files; those that the rows have stay."""
        return [
            _filled(batch, field, incomplete, [None if each is _UNREAD else each.facts[number] for each in found])
            for number, field in enumerate(self._facts)
        ]


def _filled(batch: pa.RecordBatch, field: pa.Field, rows: npt.NDArray[np.int64], found: Sequence[Any]) -> pa.Array:
    """Return a column of a batch in which some rows have other values where they had none."""
    values = batch.column(field.name).to_pylist() if field.name in batch.schema.names else [None] * batch.num_rows
    for row, each in zip(rows, found, strict=True):
        values[row] = each if values[row] is None else values[row]
    return pa.array(values, field.type)


def _lists(batch: pa.RecordBatch, name: str) -> list[Vectors | None]:
    """Return the lists of a column as arrays; None for all rows without the column."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    return [each.values.to_numpy() if each.is_valid else None for each in batch.column(name)]


def _decoded(
    job: JobContext, table: Table, gaps: _Gaps, roots: tuple[str, ...]
) -> Generator[_Values | None, None, None]:
    """Return the results of :func:`decode_rows` for the rows of a table with missing values."""
    media = Media(job.dataset_id, job.head, table, Sql(), roots)
    if table.path.stem == OBJECTS:
        media = replace(media, parents=media)
    rows = (row for batch in table.scan([*media.location, "error"]) for row in batch.to_pylist())
    return decode_rows(
        media,
        compress(rows, gaps.rows),
        partial(_values, media=media, gaps=gaps, is_described=bool(gaps.undescribed.any())),
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


def _values(row: Any, image: DecodedImage, *, media: Media, gaps: _Gaps, is_described: bool) -> _Values:
    found = measure_image(image)
    measures = np.array([found[name] for name in measure_columns()], dtype=np.float32)  # NaN for None
    content = str(found[CONTENT.name])
    facts = (image.width, image.height, image.format, _size_of(media.file_of(row))) if gaps.unread else ()
    if not is_described:
        return _Values(measures, content, facts=facts)
    panels = prepare_panels(image.bordered)
    described = describe(np.stack([prepare_whole(image.bordered), *([] if panels is None else panels)]))
    features = find_local_features(image.bordered.inner_grey).tobytes()
    return _Values(measures, content, described[0], None if panels is None else described[1:].ravel(), features, facts)


def _size_of(path: str | None) -> int | None:
    """Return the size of a local file; None for one elsewhere, or that is gone."""
    with suppress(OSError, ValueError):
        return None if path is None else os.stat(path).st_size  # noqa: PTH116 - names may be any bytes
    return None
