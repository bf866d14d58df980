"""Files to rows: each is read and decoded once, on threads ahead of the encoder, with bounded memory."""

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.neighbours import check_vectors
from framedex.analysis.quality import Measures, measure
from framedex.encoders import Encoder, reading_detail
from framedex.errors import CannotDecode, InvalidEmbedding
from framedex.ids import media_id
from framedex.media.annotations import Annotations
from framedex.media.decode import Picture, PixelBudget, decode
from framedex.media.files import Reader, locate
from framedex.media.remote import is_remote
from framedex.media.sources import Item, Source
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.known_files import KnownFiles
from framedex.storage.known_ids import KnownIds
from framedex.storage.media_rows import MEASURES, media_schema, microseconds, text_of_path, time_of_ns

_CHUNK = 16  # files a future: enough that handing over costs nothing
_ENCODED = 32  # pictures an encoder batch, where the encoder does not want more
_COMMITTED = 8192  # rows a table version, or fewer:
_COMMITTED_S = 20.0  # what was encoded in that time is not lost when the process is
_ASKED = 1024  # files whose ids are looked up at a time
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Examined:
    """What one look at a file gives.

    Attributes:
        item: the file.
        size_bytes, modified_ns, digest: its size, its time and the hash of its content; None where it cannot be read.
        picture: size and format; its pixels are not kept. None where it cannot be decoded.
        measures: quality measures.
        prepared: the encoder's input.
        error: why it cannot be decoded.
    """

    item: Item
    size_bytes: int | None = None
    modified_ns: int | None = None
    digest: bytes | None = None
    width: int | None = None
    height: int | None = None
    format: str | None = None
    measures: Measures | None = None
    prepared: npt.NDArray[Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Ingested:
    """What an ingestion wrote.

    Attributes:
        version: of the media table; 0 if there was nothing to write.
        rows: how many rows were written.
        unmatched: how many annotated files had no picture.
        present: how many were there already and were left out.
    """

    version: int
    rows: int
    unmatched: int
    present: int = 0


@dataclass(frozen=True)
class Written:
    """Rows of this very addition that are in the table: from an earlier run of the same task.

    Attributes:
        version: of the media table that ends with them; 0 for none.
        rows: how many.
    """

    version: int = 0
    rows: int = 0


NOTHING_WRITTEN = Written()
Keep = Callable[[Written], None]
"""Told what is in the table now, so that a later run can go on from there."""


def keep_nothing(_written: Written) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class Place:
    """Where added media belong in a dataset.

    Attributes:
        root: number of the source root that their paths are relative to.
        prefix: what comes before their paths below that root: empty, or a folder and a slash.
        batch: number of the addition; 0 is the creation.
        others: the places of what a source has below its other roots.
    """

    root: int = 0
    prefix: str = ""
    batch: int = 0
    others: "tuple[Place, ...]" = ()

    def of(self, item: Item) -> "Place":
        """Return the place of a source's item."""
        return self.others[item.part - 1] if item.part else self

    def media_id(self, dataset_id: str, path: str) -> str:
        """Return the id of the file at a path: one name below two roots is two files."""
        below = self.prefix + path
        # No path has a null character, so none below the first root looks like one below another.
        return media_id(dataset_id, f"{self.root}\0{below}" if self.root else below)


FIRST_PLACE = Place()


def ingest(
    source: Source,
    annotations: Annotations,
    encoder: Encoder,
    *,
    table: Path,
    dataset_id: str,
    settings: Settings,
    progress: Callable[[float], None],
    place: Place = FIRST_PLACE,
    known: KnownIds | None = None,
    written: Written = NOTHING_WRITTEN,
    keep: Keep = keep_nothing,
) -> Ingested:
    """Write a row for each file of *source* behind the rows of the table; return what was written.

    A file that cannot be decoded becomes a row with the reason in ``error``.

    Args:
        source: what to ingest.
        annotations: labels and captions by file name.
        encoder: makes the embeddings.
        table: where the media table is or will be.
        dataset_id: the dataset that the rows belong to.
        settings: limits.
        progress: called with the share of files that are done; raises to stop.
        place: which of the dataset's source roots and batches the files belong to.
        known: media that are there already, *written* ones too; their files are not read.
        written: what an earlier run of the same addition wrote.
        keep: called after every few thousand rows, or seconds.
    """
    total = sum(1 for _ in source.items())
    news = _News(source, annotations, dataset_id, place, known)
    writer = _Writer(table, media_schema(encoder.dimension), written, keep)
    examiner = _Examiner(source, encoder, settings)
    done = 0
    # The first files are read and decoded while the table engine loads. Closing stops the threads, whatever happens.
    looking = ahead(examiner.examine_all, iter(news), _threads(source, settings), meanwhile=tables.warm_up)
    with closing(looking) as examined:
        for group in grouped(examined, batch_of(encoder)):
            vectors = _encode(group, encoder)
            for each, vector in zip(group, vectors, strict=True):
                writer.add(_row(each, vector, annotations, dataset_id, place))
            done += len(group)
            progress((done + news.present) / max(total, 1))
    examiner.reader.check_any_read()
    version = writer.close(create=known is None)
    return Ingested(version, writer.rows, annotations.unmatched, news.present - written.rows)


def _threads(source: Source, settings: Settings) -> int:
    """Return how many files are looked at at a time: of objects more, as they are waited for rather than worked on."""
    return max(settings.threads, settings.s3_connections if is_remote(source.root) else 0)


class _News:
    """The files of a source that a table does not have yet, in the source's order; may be walked once.

    Attributes:
        present: how many files so far were there already.
    """

    def __init__(
        self, source: Source, annotations: Annotations, dataset_id: str, place: Place, known: KnownIds | None
    ) -> None:
        self._source, self._annotations, self._dataset_id = source, annotations, dataset_id
        self._place, self._known = place, known
        self.present = 0

    def __iter__(self) -> Iterator[Item]:
        items = self._source.items()
        if self._known is None:
            yield from items
            return
        while group := list(islice(items, _ASKED)):
            rows = self._known.places([self._place.of(item).media_id(self._dataset_id, item.path) for item in group])
            for item, row in zip(group, rows.tolist(), strict=True):
                if row >= 0 and not self._has_changed(item, row):
                    self.present += 1
                    self._annotations.find(item.path)  # so that what it says is not taken for unmatched
                else:
                    yield item

    def _has_changed(self, item: Item, row: int) -> bool:
        """Return whether a file is another one than that of a row, by size and time; where only time differs, by hash.

        Objects are told by size and time, where their source says these. A file that cannot be read now is taken for
        unchanged: what is known of it is worth more than nothing.
        """
        path = location_of(self._source, item)
        if not isinstance(self._known, KnownFiles):
            return False
        if is_remote(path):
            size, when = item.size_bytes, item.modified_ns
            if size is None or when is None:
                return False
            return not self._known.looks_same(row, size_bytes=size, modified_us=microseconds(when))
        try:
            status = os.stat(path)  # noqa: PTH116
            if self._known.looks_same(row, size_bytes=status.st_size, modified_us=microseconds(status.st_mtime_ns)):
                return False
            if not self._known.has_size(row, status.st_size):
                return True
            with open(path, "rb") as file:  # noqa: PTH123
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
        except OSError:
            return False
        return not self._known.has_content(row, digest)


def location_of(source: Source, item: Item) -> str:
    """Return where the bytes of a source's item are: an absolute path, or an object's URI."""
    return item.location or locate((source.root, *source.other_roots)[item.part], item.path)


class _Examiner:
    """Looks at files; used by several threads at once."""

    def __init__(self, source: Source, encoder: Encoder, settings: Settings) -> None:
        self.source, self.encoder, self.settings = source, encoder, settings
        self.reader = Reader(settings, source.role_arn)
        self.budget = PixelBudget(settings.pixels_in_flight)
        self.detail = reading_detail(encoder)

    def examine_all(self, items: Iterable[Item]) -> list[Examined]:
        return [self.examine(item) for item in items]

    def examine(self, item: Item) -> Examined:
        """Read, decode, measure and prepare one file; all that is large is let go before returning."""
        try:
            modified_ns, data = self.reader.read(location_of(self.source, item))
        except CannotDecode as error:
            return Examined(item, error=str(error))
        found: dict[str, Any] = {
            "size_bytes": len(data),
            "modified_ns": modified_ns if item.modified_ns is None else item.modified_ns,
            "digest": hashlib.blake2b(data, digest_size=16).digest(),
        }
        try:
            picture = decode(data, max_pixels=self.settings.max_pixels, detail=self.detail, budget=self.budget)
        except CannotDecode as error:
            return Examined(item, **found, error=str(error))
        return Examined(item, **found, **self._look(picture))

    def _look(self, picture: Picture) -> dict[str, Any]:
        return {
            "width": picture.width,
            "height": picture.height,
            "format": picture.format,
            "measures": measure(
                picture.pixels,
                width=picture.width,
                height=picture.height,
                sample=picture.sample,
                bands=picture.bands,
            ),
            "prepared": self.encoder.prepare(picture.pixels),
        }


def ahead(
    work: Callable[[list[_Given]], list[_Made]],
    items: Iterator[_Given],
    threads: int,
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> Generator[_Made, None, None]:
    """Yield results in the order of the items, while threads work a few chunks ahead and no further.

    Args:
        work: examines a chunk.
        items: what is examined.
        threads: how many chunks are worked on at a time.
        meanwhile: called once, while the threads work on the first chunks.
    """
    waiting: deque[Future[list[_Made]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="framedex-decode") as pool:

        def hand_over() -> None:
            while len(waiting) < 2 * threads + 2 and (chunk := list(islice(items, _CHUNK))):
                waiting.append(pool.submit(work, chunk))

        try:
            hand_over()
            meanwhile()
            while waiting:
                yield from waiting.popleft().result()
                hand_over()
        finally:
            for future in waiting:
                future.cancel()


def grouped(items: Iterator[_Made], size: int) -> Iterator[list[_Made]]:
    """Yield items in groups of a size; the last one may be smaller."""
    while group := list(islice(items, size)):
        yield group


def _encode(group: list[Examined], encoder: Encoder) -> list[npt.NDArray[np.float32] | None]:
    prepared = [each.prepared for each in group if each.prepared is not None]
    vectors = iter(checked(encoder, encoder.encode_images(np.stack(prepared)), len(prepared)) if prepared else ())
    return [None if each.prepared is None else next(vectors) for each in group]


def batch_of(encoder: Encoder) -> int:
    """Return how many pictures an encoder wants at a time."""
    return int(getattr(encoder, "batch", _ENCODED))


def checked(encoder: Encoder, vectors: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return what an encoder made, if it kept its promise."""
    if np.shape(vectors) != (count, encoder.dimension):
        raise InvalidEmbedding(
            f"encoder {encoder.name!r} returned shape {np.shape(vectors)} for {count} pictures; "
            f"it promises {(count, encoder.dimension)}"
        )
    check_vectors(vectors)
    return vectors


def _row(
    examined: Examined,
    vector: npt.NDArray[np.float32] | None,
    annotations: Annotations,
    dataset_id: str,
    place: Place,
) -> dict[str, Any]:
    item = examined.item
    labels, caption = annotations.find(item.path)
    place = place.of(item)
    text, raw = text_of_path(place.prefix + item.path)
    measured = examined.measures or (None,) * len(MEASURES)
    return {
        "media_id": place.media_id(dataset_id, item.path),
        "path": text,
        "path_raw": raw,
        "root": place.root,
        "batch": place.batch,
        "size_bytes": examined.size_bytes,
        "modified_at": None if examined.modified_ns is None else time_of_ns(examined.modified_ns),
        "content_hash": examined.digest,
        "format": examined.format,
        "width": examined.width,
        "height": examined.height,
        "labels": list(dict.fromkeys(item.labels + labels)) or None,
        "caption": item.caption or caption,
        "error": examined.error,
        **dict(zip(MEASURES, measured, strict=True)),
        "embedding": vector,
    }


class _Writer:
    """Gathers rows and appends them to the table, a version for every few thousand, or for what took some seconds."""

    def __init__(self, path: Path, schema: pa.Schema, written: Written, keep: Keep) -> None:
        self.path, self.schema, self.keep = path, schema, keep
        self.pending: list[dict[str, Any]] = []
        self.rows, self.version = written.rows, written.version
        self.flushed_s = time.monotonic()

    def add(self, row: dict[str, Any]) -> None:
        self.pending.append(row)
        if len(self.pending) >= _COMMITTED or time.monotonic() - self.flushed_s > _COMMITTED_S:
            self.flush()

    def flush(self) -> None:
        batch = to_batch(self.pending, self.schema)
        self.version = tables.append(self.path, [batch], self.schema)
        self.rows += len(self.pending)
        self.pending = []
        self.keep(Written(self.version, self.rows))
        self.flushed_s = time.monotonic()

    def close(self, *, create: bool) -> int:
        """Write what is pending, or an empty table if that is to be created; return the version."""
        if self.pending or (create and not self.rows):
            self.flush()
        return self.version


def to_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch; embeddings are numpy vectors or None."""
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if field.name == "embedding":
            columns.append(vectors_to_arrow(values, field.type.list_size))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def vectors_to_arrow(vectors: list[npt.NDArray[np.float32] | None], dimension: int) -> pa.FixedSizeListArray:
    """Return vectors as an Arrow column, without a Python object for each value."""
    flat = np.zeros((len(vectors), dimension), dtype=np.float32)
    missing = np.ones(len(vectors), dtype=bool)
    for place, vector in enumerate(vectors):
        if vector is not None:
            flat[place], missing[place] = vector, False
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), dimension, mask=pa.array(missing))
