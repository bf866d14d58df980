"""What an export is made of: which media of which generation, read block by block ahead of the writer."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from framedex.arrays import RowIds
from framedex.export.columns import export_batches, gathered
from framedex.export.objects import N_OBJECTS, OBJECTS, ObjectsByMedia
from framedex.progress import ShareProgress
from framedex.records import Condition, DatasetRecord
from framedex.settings import Settings
from framedex.storage.media import Media

T = TypeVar("T")


@dataclass(frozen=True)
class Chosen:
    """The media that are exported, and the objects in them.

    Attributes:
        media: the dataset's media, at the one generation that the export reads.
        dataset: whose media they are.
        rows: which of them.
        total: how many.
        include_images: whether the pictures' files are exported too.
        exported_by: who is named as the exporter.
        settings: limits, and how buckets are reached.
        objects: the objects that are exported with them; None if the dataset has none.
        boxes_only: whether objects were chosen, and media are those that they are in.
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

    @property
    def entities(self) -> int:
        """How many media were chosen, or objects."""
        return self.n_objects if self.boxes_only else self.total

    @property
    def n_objects(self) -> int:
        """How many objects are exported."""
        return 0 if self.objects is None else self.objects.total

    @property
    def with_objects(self) -> bool:
        """Whether the export is one with objects, of which there may be none all the same."""
        return self.objects is not None or self.boxes_only

    def blocks(self, schema: pa.Schema, progress: ShareProgress, *, ahead: int = 1) -> Iterator[pa.Table]:
        """Yield the columns of a schema, some ten thousand rows at a time, in the order of ingestion.

        The next ones, so many as *ahead*, are made while the caller works on the last.
        """
        return self._counted(self._batches(schema), lambda block: block, progress, ahead=ahead)

    def made_of(self, schema: pa.Schema, make: Callable[[pa.Table], T], progress: ShareProgress) -> Iterator[T]:
        """Yield what *make*, which runs ahead of the caller too, makes of each such block."""
        return self._counted(self._batches(schema), make, progress)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        if self.objects is None or OBJECTS not in schema.names:
            return export_batches(self.media, self.rows, schema)
        own = pa.schema([field for field in schema if field.name not in (OBJECTS, N_OBJECTS.name)])
        return self.objects.added_to(export_batches(self.media, self.rows, own), schema)

    def object_blocks(self, schema: pa.Schema, progress: ShareProgress, *, ahead: int = 1) -> Iterator[pa.Table]:
        """Yield the columns of a schema of :mod:`framedex.export.object_columns`, a row an object."""
        blocks = iter(()) if self.objects is None else self.objects.blocks(schema)
        return self._counted(blocks, lambda block: block, progress, ahead=ahead, total=self.n_objects)

    def places(self, progress: ShareProgress) -> Iterator[pa.Table]:
        """Yield what :mod:`framedex.export.places` and the names of pictures need: stored columns."""
        blocks = gathered(self.media.blocks(self.rows, [*self.media.location, "media_id", "format", "error"]))
        return self._counted(blocks, lambda block: block, progress)

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
        for rows, made in _ahead(((len(block), make(block)) for block in blocks), ahead):
            yield made
            done += rows
            progress(done / max(total, 1))


def _ahead(values: Iterator[T], count: int) -> Iterator[T]:
    """Yield values, while a thread makes the next ones, so many as *count*."""
    with ThreadPoolExecutor(1, thread_name_prefix="framedex-export-read") as pool:
        try:
            following: deque[Future[Any]] = deque(pool.submit(next, values, None) for _ in range(count))
            while (value := following.popleft().result()) is not None:
                following.append(pool.submit(next, values, None))
                yield value
        finally:
            pool.shutdown(cancel_futures=True)
