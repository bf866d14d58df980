"""Ingestion in parts, whose rows are made and written by workers, for the built-in encoder, which needs no model.

A worker decodes some hundred or thousand images, and writes their rows into a file beside the media table. It returns a
description of the file, so no row passes this process. It adds several files to the table in one version, in the order
of the parts. Parts are small at first, so that rows are soon shown, and at the end, so that all workers end at about
the same time. A worker holds the rows of its part, some kilobytes each, and the pixels of a few images.

Some parts are not written: their worker was lost each time, or its machine does not share the folder of the table.
These are decoded as for other encoders, 16 images at a time, and their rows are made here. So the one image is found
that ends its process. A file that is never added belongs to no version, and the next clean-up removes it.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.encoders import Encoder
from framedex.encoders.gist import Gist
from framedex.errors import NotFound, WorkspaceError
from framedex.executors import POLL_S, Executor, ProcessExecutor, ResultLost
from framedex.jobs.ingest.decoding import Decoded, DecodedFile, FileDecoder, is_video_item
from framedex.jobs.ingest.encoding import file_vectors
from framedex.jobs.ingest.guarded_calls import GuardedCalls, check_not_killed
from framedex.jobs.ingest.in_processes import CHUNK, LateStart, RemoteDecoder, not_in_processes
from framedex.jobs.ingest.pixel_shares import PixelShare, shared_pixels
from framedex.jobs.ingest.read_ahead import in_chunks, run_ahead
from framedex.jobs.ingest.rows import IngestedRows, rows_to_batch
from framedex.media.sources import Item
from framedex.settings import PROCESSES, Settings
from framedex.storage import tables
from framedex.storage.fragments import Fragment, check_table, write_fragment

_LOG = logging.getLogger(__name__)
MODULES = (__name__, "pyarrow.dataset")
"""What workers import: of what Lance imports in each of them, PyArrow's part takes the longest."""
_FIRST, _MOST = 32, 4096  # images of the first part, and of the largest one
_LISTED_S = POLL_S / 2  # for which the files of a part are listed; with slow lists, parts are smaller
_LAST, _LAST_SHARE = (64, 2048), 64  # images of the last parts: all images by the latter number, within the limits
_BEFORE_VIDEO = 256  # images of a part that ends early, before a video


@dataclass(frozen=True)
class RowTarget:
    """The media table that rows are written to.

    Attributes:
        path: folder of the table.
        schema: the columns that are written.
        rows: makes the rows.
        encoder: the encoder.
    """

    path: Path
    schema: pa.Schema
    rows: IngestedRows
    encoder: Encoder


@dataclass(frozen=True)
class UnwrittenPart:
    """A part whose rows were not written.

    Attributes:
        reason: why its worker could not write; None if the worker was lost.
    """

    reason: str | None = None


@dataclass(frozen=True)
class RemoteWriter:
    """A writer of parts in another process.

    Attributes:
        decode: decodes images in that process.
        target: the table.
        version: a version of the table with all columns of the target.
    """

    decode: RemoteDecoder
    target: RowTarget
    version: int

    def __call__(self, items: list[Item]) -> list[Fragment | UnwrittenPart]:
        """Write the rows of images; return the fragment alone in a list."""
        target, rows = self.target, list[dict[str, Any]]()
        try:
            check_table(target.path, self.version)  # before the work, which would be in vain
            for chunk in in_chunks(items, CHUNK, is_video_item):
                files = [each for each in self.decode(chunk) if isinstance(each, DecodedFile)]
                vectors = file_vectors(files, target.encoder)
                rows += [target.rows.media(each, vector) for each, vector in zip(files, vectors, strict=True)]
            return [write_fragment(target.path, self.version, rows_to_batch(rows, target.schema))]
        except (NotFound, WorkspaceError) as error:
            return [UnwrittenPart(str(error))]


@contextmanager
def part_writing(
    decoder: FileDecoder, settings: Settings, cluster: Executor | None, target: RowTarget, unread: Callable[[], float]
) -> Iterator["PartWriting | None"]:
    """Yield what writes the files of a source in parts; None if the rows are made in this process.

    Args:
        decoder: decodes files in this process.
        settings: choose the executor and its size.
        cluster: that of the settings; None without one.
        target: the table.
        unread: returns about how many images this run has read or will read.
    """
    if not isinstance(target.encoder, Gist) or not_in_processes(decoder) is not None:
        yield None
        return
    with ExitStack() as stack:
        executor, is_late = cluster, settings.executor is None
        if settings.executor == PROCESSES or (is_late and settings.processes > 1):
            executor = stack.enter_context(ProcessExecutor(settings.processes, modules=MODULES))
        if executor is None:
            yield None
            return
        share = stack.enter_context(shared_pixels(settings, executor))
        yield PartWriting(decoder, executor, share, target, unread, is_late=is_late)


class PartWriting:
    """Writing of parts by workers, after the first images were decoded in this process, if the workers start late.

    Args:
        decoder: decodes videos and the first images in this process.
        executor: has the workers.
        share: the share of each worker in the limit of decoded pixels.
        target: the table.
        unread: returns about how many images this run has read or will read.
        is_late: whether the workers start once they are worth it.
    """

    def __init__(
        self,
        decoder: FileDecoder,
        executor: Executor,
        share: PixelShare,
        target: RowTarget,
        unread: Callable[[], float],
        *,
        is_late: bool,
    ) -> None:
        self._decoder, self._executor, self._target, self._unread = decoder, executor, target, unread
        self._remote = RemoteDecoder.of(decoder, share)
        self._decoding = GuardedCalls[Item, Decoded](executor, self._remote, decoder.broken)
        self._start = LateStart(executor, lambda: unread() - self._begun) if is_late else None
        self._writer: RemoteWriter | None = None
        self._parts, self._begun, self._is_refused = deque[list[Item]](), 0, False

    def results(self, files: Iterable[Item]) -> Generator[Decoded | Fragment | None, None, None]:
        """Yield fragments, and the results of files whose rows are to be made here, in the order of the files.

        Yields:
            Results; None at intervals while the next one takes long.
        """
        chunks = in_chunks(files, CHUNK, is_video_item)
        if self._start is not None:
            threads = self._decoder.settings.threads
            with closing(self._ahead(self._until_ready(chunks, self._start), threads, None)) as first:
                yield from first
        with closing(self._ahead(self._in_parts(chunks), self._executor.workers, self)) as results:
            for each in results:
                if isinstance(each, Fragment | UnwrittenPart):
                    yield from self._written(each, self._parts.popleft())
                else:
                    yield each

    def _written(
        self, part: Fragment | UnwrittenPart, items: list[Item]
    ) -> Generator[Decoded | Fragment | None, None, None]:
        """Yield the fragment of a part, or the results of its images if it was not written."""
        if isinstance(part, Fragment) and part.is_in(self._target.path):
            yield part
            return
        reason = part.reason if isinstance(part, UnwrittenPart) else f"this machine has no {part.file} in the folder"
        if reason is not None and not self._is_refused:
            self._is_refused = True
            _LOG.warning("rows are written by this process alone, not by its workers: %s", reason)
        chunks = in_chunks(items, CHUNK, is_video_item)
        with closing(self._ahead(chunks, self._executor.workers, self._decoding)) as decoded:
            yield from decoded

    def submit(self, items: list[Item]) -> "Future[Any]":
        """Let a worker decode a few images, or write more of them as a part."""
        if len(items) <= CHUNK:
            return self._decoding.submit(items)
        if self._writer is None:
            version = tables.ensure_table(self._target.path, self._target.schema)
            self._writer = RemoteWriter(self._remote, self._target, version)
        self._parts.append(items)
        return self._executor.submit(self._writer, items)

    def after_loss(self, items: list[Item], lost: ResultLost) -> list[Decoded | UnwrittenPart]:
        """Return the results of images of which one has ended its process each time.

        Raises:
            Unavailable: the process was killed from outside, as where memory is short.
        """
        if len(items) <= CHUNK:
            return [*self._decoding.after_loss(items, lost)]
        check_not_killed(lost)
        return [UnwrittenPart()]

    def _ahead(self, chunks: Iterator[list[Item]], threads: int, calls: Any) -> Generator[Any, None, None]:
        return run_ahead(
            chunks,
            is_long=is_video_item,
            work=self._decoder.decode_images,
            long_work=self._decoder.decode_video,
            threads=threads,
            meanwhile=tables.warm_up,
            elsewhere=calls,
        )

    def _until_ready(self, chunks: Iterator[list[Item]], start: LateStart) -> Iterator[list[Item]]:
        """Yield chunks until workers can take the others."""
        for chunk in chunks:
            yield chunk
            self._begun += len(chunk)
            if start.is_ready(len(chunk)):
                return

    def _in_parts(self, chunks: Iterator[list[Item]]) -> Iterator[list[Item]]:
        """Yield chunks of images joined to parts; alone, if few come before a video or no worker can write."""
        part, size, begun_s = list[list[Item]](), 0, 0.0
        for chunk in chunks:
            if is_video_item(chunk[0]):
                yield from [_joined(part)] if len(part) * CHUNK >= _BEFORE_VIDEO else part
                yield chunk
                part = []
                continue
            if not part:
                size = part_size(self._begun, total=self._unread(), workers=self._executor.workers)
                begun_s = time.monotonic()
            part.append(chunk)
            self._begun += len(chunk)
            if self._is_refused or len(part) * CHUNK >= size or time.monotonic() > begun_s + _LISTED_S:
                yield _joined(part)
                part = []
        if part:
            yield _joined(part)


def _joined(chunks: list[list[Item]]) -> list[Item]:
    return [item for chunk in chunks for item in chunk]


def part_size(begun: int, *, total: float, workers: int) -> int:
    """Return the number of images of the next part, a multiple of 16.

    Args:
        begun: the number of images before it; it has no more than these together.
        total: about how many images there are with those before it.
        workers: the number of workers.
    """
    smallest, largest = _LAST
    last = min(max(total // _LAST_SHARE, smallest), largest)
    size = int(min(max(begun, _FIRST), max((total - begun) / (2 * workers), last), _MOST))
    return size - size % CHUNK
