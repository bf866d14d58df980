"""The selection of an export: some media of one generation, read block by block ahead of the writer."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.progress import ShareProgress
from framedex.export.columns import export_batches, merge_blocks
from framedex.export.objects import N_OBJECTS, OBJECTS, ObjectsByMedia
from framedex.export.options import NO_OPTIONS, ExportOptions
from framedex.export.splits import Splits
from framedex.records import DatasetRecord
from framedex.settings import Settings
from framedex.storage.condition import Condition
from framedex.storage.media import Media

T = TypeVar("T")


@dataclass(frozen=True)
class ExportContents:
    """The media of an export, and the objects in them.

    Attributes:
        media: the dataset's media, at the one generation that the export reads.
        dataset: the dataset.
        rows: the selected media.
        total: the number of selected media.
        include_images: whether the image files are exported, too.
        exported_by: the exporter's name.
        settings: limits, and access to buckets.
        objects: the objects that are exported, or None if the dataset has no objects.
        boxes_only: whether objects were selected; the media are those that contain them.
        options: options of some formats.
        splits: the parts into which the media are divided; None for no parts.
        crops: whether the images are the crops of the selected objects.
    """

    media: Media
    dataset: DatasetRecord
    rows: Condition | RowIds
    total: int
    include_images: bool
    exported_by: str
    settings: Settings
    objects: ObjectsByMedia | None = None
    boxes_only: bool = False
    options: ExportOptions = NO_OPTIONS
    splits: Splits | None = None
    crops: bool = False

    @property
    def shown(self) -> Media:
        """The media, or the objects that are cut out: the rows of the images of the export."""
        return self.objects.objects if self.crops and self.objects is not None else self.media

    @property
    def entities(self) -> int:
        """The number of selected objects if objects were selected, else of selected media."""
        return self.n_objects if self.boxes_only else self.total

    @property
    def n_objects(self) -> int:
        """The number of exported objects."""
        return 0 if self.objects is None else self.objects.total

    @property
    def with_objects(self) -> bool:
        """True if objects are exported; their number may be 0."""
        return self.objects is not None or self.boxes_only

    def blocks(self, schema: pa.Schema, progress: ShareProgress, *, ahead: int = 1) -> Iterator[pa.Table]:
        """Yield the columns of a schema, some ten thousand rows at a time, in the order of ingestion.

        A thread prepares the next *ahead* blocks while the caller processes the current one.
        """
        return self._counted(self._batches(schema), lambda block: block, progress, ahead=ahead)

    def map_blocks(self, schema: pa.Schema, make: Callable[[pa.Table], T], progress: ShareProgress) -> Iterator[T]:
        """Yield the result of *make* for each block of :meth:`blocks`. *make* runs ahead of the caller, too."""
        return self._counted(self._batches(schema), make, progress)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        if self.objects is None or OBJECTS not in schema.names:
            return export_batches(self.media, self.rows, schema)
        own = pa.schema([field for field in schema if field.name not in (OBJECTS, N_OBJECTS.name)])
        return self.objects.added_to(export_batches(self.media, self.rows, own), schema)

    def object_blocks(self, schema: pa.Schema, progress: ShareProgress, *, ahead: int = 1) -> Iterator[pa.Table]:
        """Yield columns of a schema of :mod:`framedex.export.object_columns`, one row for each object."""
        blocks = iter(()) if self.objects is None else self.objects.blocks(schema)
        return self._counted(blocks, lambda block: block, progress, ahead=ahead, total=self.n_objects)

    def locations(self, progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield the stored columns that locations and names of the images depend on."""
        shown, rows, total = self.media, self.rows, self.total
        if self.crops:
            if self.objects is None:
                return iter(())
            shown, rows, total = self.objects.objects, self.objects.rows, self.n_objects
        columns = [*shown.location, "media_id", "format", "error", "labels", *["parent_id"] * self.crops]
        blocks = merge_blocks(shown.blocks(rows, columns))
        return self._counted(blocks, lambda block: block, progress, total=total)

    def _counted(
        self,
        blocks: Iterator[pa.Table],
        make: Callable[[pa.Table], T],
        progress: ShareProgress,
        *,
        ahead: int = 1,
        total: int | None = None,
    ) -> Iterator[T]:
        done, total = 0, self.total if total is None else total
        for rows, result in _ahead(((len(block), make(block)) for block in blocks), ahead):
            yield result
            done += rows
            progress(done / max(total, 1))


def _ahead(values: Iterator[T], count: int) -> Iterator[T]:
    """Yield values while a thread prepares the next *count* values."""
    with ThreadPoolExecutor(1, thread_name_prefix="framedex-export-read") as pool:
        try:
            following: deque[Future[Any]] = deque(pool.submit(next, values, None) for _ in range(count))
            while (value := following.popleft().result()) is not None:
                following.append(pool.submit(next, values, None))
                yield value
        finally:
            pool.shutdown(cancel_futures=True)
