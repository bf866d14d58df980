"""What an export is made of: which media of which generation, read block by block ahead of the writer."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from framedex.export.columns import export_batches, gathered
from framedex.records import Condition, DatasetRecord
from framedex.settings import Settings
from framedex.storage.media import Media, RowIds

Progress = Callable[[float], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Chosen:
    """The media that are exported.

    Attributes:
        media: the dataset's media, at the one generation that the export reads.
        dataset: whose media they are.
        rows: which of them.
        total: how many.
        include_images: whether the pictures' files are exported too.
        exported_by: who is named as the exporter.
        settings: limits, and how buckets are reached.
    """

    media: Media
    dataset: DatasetRecord
    rows: Condition | RowIds
    total: int
    include_images: bool
    exported_by: str
    settings: Settings

    def blocks(self, schema: pa.Schema, progress: Progress, *, ahead: int = 1) -> Iterator[pa.Table]:
        """Yield the columns of a schema, some ten thousand rows at a time, in the order of ingestion.

        The next ones, so many as *ahead*, are made while the caller works on the last.
        """
        blocks = export_batches(self.media, self.rows, schema)
        return self._counted(blocks, lambda block: block, progress, ahead=ahead)

    def made_of(self, schema: pa.Schema, make: Callable[[pa.Table], T], progress: Progress) -> Iterator[T]:
        """Yield what *make*, which runs ahead of the caller too, makes of each such block."""
        return self._counted(export_batches(self.media, self.rows, schema), make, progress)

    def places(self, progress: Progress) -> Iterator[pa.Table]:
        """Yield what :mod:`framedex.export.places` and the names of pictures need: stored columns."""
        blocks = gathered(self.media.blocks(self.rows, [*self.media.location, "media_id", "format"]))
        return self._counted(blocks, lambda block: block, progress)

    def _counted(
        self, blocks: Iterator[pa.Table], make: Callable[[pa.Table], T], progress: Progress, *, ahead: int = 1
    ) -> Iterator[T]:
        done = 0
        for rows, made in _ahead(((len(block), make(block)) for block in blocks), ahead):
            yield made
            done += rows
            progress(done / max(self.total, 1))


def part(progress: Progress, start: float, end: float) -> Progress:
    """Return a function for the shares of one stage, which takes the whole from *start* to *end*."""
    return lambda share: progress(start + (end - start) * share)


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
