"""Files to rows: each is read and decoded once, on threads ahead of the encoder, with bounded memory."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.neighbours import check_vectors
from framedex.annotations.label_index import Annotations
from framedex.encoders import Encoder
from framedex.errors import InvalidEmbedding
from framedex.issue_types import measure_columns
from framedex.jobs.ingest.changed_files import ChangedFiles, ExistingRows, weight
from framedex.jobs.ingest.decoding import DecodedImage, DecodedVideo, FileDecoder, Seen, is_video_item, stack_inputs
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.jobs.ingest.read_ahead import ahead, in_chunks
from framedex.media.frame_sampling import EVERY_SECOND, Sampling
from framedex.media.remote import is_remote
from framedex.media.sources import Item, Source
from framedex.settings import Settings
from framedex.storage import tables, videos
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import VIDEO, VIDEO_FRAME, media_schema, text_of_path, time_of_ns

_CHUNK = 16  # files a future: enough that handing over costs nothing
_ENCODED = 32  # pictures an encoder batch, where the encoder does not want more
_COMMITTED = 8192  # rows a table version, or fewer:
_COMMITTED_S = 20.0  # what was encoded in that time is not lost when the process is


@dataclass(frozen=True)
class Ingested:
    """What an ingestion wrote.

    Attributes:
        version: of the media table; 0 if there was nothing to write.
        rows: how many rows were written.
        unmatched: how many annotated files had no picture.
        present: how many were there already and were left out.
        videos: version of the table of videos; 0 if nothing was written to it.
    """

    version: int
    rows: int
    unmatched: int
    present: int = 0
    videos: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """Rows of this very addition that are in the table: from an earlier run of the same task.

    Attributes:
        version: of the media table that ends with them; 0 for none.
        rows: how many.
        videos, video_rows: the same of the table of videos.
    """

    version: int = 0
    rows: int = 0
    videos: int = 0
    video_rows: int = 0


NO_CHECKPOINT = Checkpoint()
SaveCheckpoint = Callable[[Checkpoint], None]
"""Told what is in the table now, so that a later run can go on from there."""


def discard_checkpoint(_written: Checkpoint) -> None:
    """Keep nothing."""


def ingest(
    source: Source,
    annotations: Annotations,
    encoder: Encoder,
    *,
    table: Path,
    dataset_id: str,
    settings: Settings,
    progress: Callable[[float], None],
    place: SourcePlacement = FIRST_PLACEMENT,
    known: IdIndex | None = None,
    known_videos: IdIndex | None = None,
    written: Checkpoint = NO_CHECKPOINT,
    keep: SaveCheckpoint = discard_checkpoint,
    sampling: Sampling = EVERY_SECOND,
    of_videos: bool = True,
) -> Ingested:
    """Write a row for each picture and for each kept frame behind the rows of the table; return what was written.

    Rows are in the order of the files, and of the frames of each. A file that cannot be decoded becomes a row with the
    reason in ``error``. Each video gets a row in the table of videos, too.

    Args:
        source: what to ingest.
        annotations: labels and captions by file name.
        encoder: makes the embeddings.
        table: where the media table is or will be.
        dataset_id: the dataset that the rows belong to.
        settings: limits.
        progress: called with the share that is done, videos by their size; raises to stop.
        place: which of the dataset's source roots and batches the files belong to.
        known: media that are there already, *written* ones too; their files are not read.
        known_videos: the same of videos.
        written: what an earlier run of the same addition wrote.
        keep: called after every few thousand rows, or seconds.
        sampling: which frames of videos are kept.
        of_videos: whether the media table has the columns about frames.
    """
    there = ExistingRows(known, known_videos, written.rows, written.video_rows)
    news = ChangedFiles(source, annotations, dataset_id, place, there)
    writer = _Writer(table, media_schema(encoder.dimension, of_videos=of_videos), written, keep)
    rows = _Rows(annotations, dataset_id, place)
    examiner = FileDecoder(
        source,
        encoder,
        settings,
        sampling,
        lambda item, number: there.is_own_frame(rows.id_of(item, number)),
    )
    meter = _Meter(source, news, progress)
    # The first files are read and decoded while the table engine loads. Closing stops the threads, whatever happens.
    results = ahead(
        in_chunks(news, _CHUNK, is_video_item),
        is_long=is_video_item,
        work=examiner.examine_all,
        long_work=examiner.examine_video,
        threads=_threads(source, settings),
        meanwhile=tables.warm_up,
    )
    with closing(results) as examined:
        for group, video in _grouped(examined, meter, batch_of(encoder)):
            for each, vector in zip(group, _encode(group, encoder), strict=True):
                writer.add(rows.media(each, vector))
            if video is not None:
                writer.add_video(rows.video(video), None if video.kept_frames else rows.media(video.file, None))
            meter.tell()
    examiner.reader.check_any_read()
    writer.close(create=known is None)
    return Ingested(writer.version, writer.rows, annotations.unmatched, news.present, writer.videos)


def _threads(source: Source, settings: Settings) -> int:
    """Return how many files are looked at at a time: of objects more, as they are waited for rather than worked on."""
    return max(settings.threads, settings.s3_connections if is_remote(source.root) else 0)


class _Meter:
    """Tells how much of an ingestion is done: a picture counts one, a video by its size and the share that is decoded.

    Args:
        source: all files.
        news: those that are read.
        progress: called with the share; raises to stop.
    """

    def __init__(self, source: Source, news: ChangedFiles, progress: Callable[[float], None]) -> None:
        self._source, self._news, self._progress = source, news, progress
        self._total = sum(weight(source, item) for item in source.items())
        self._done = self._part = 0.0

    def count(self, seen: Seen) -> None:
        """Take note of what was decoded."""
        if isinstance(seen, DecodedVideo):
            self._done, self._part = self._done + weight(self._source, seen.file.item), 0.0
        elif seen.frame_number is None:
            self._done += 1
        else:
            self._part = seen.share * weight(self._source, seen.item)

    def tell(self) -> None:
        """Tell the share that is done."""
        self._progress(min((self._done + self._part + self._news.passed) / max(self._total, 1), 1.0))


def _grouped(
    examined: Iterator[Seen | None], meter: _Meter, most: int
) -> Iterator[tuple[list[DecodedImage], DecodedVideo | None]]:
    """Yield pictures and frames some at a time, to be encoded together, and each video after its frames."""
    group: list[DecodedImage] = []
    for each in examined:
        if each is None:
            meter.tell()
            continue
        meter.count(each)
        if isinstance(each, DecodedVideo):
            yield group, each
            group = []
            continue
        group.append(each)
        if len(group) == most:
            yield group, None
            group = []
    if group:
        yield group, None


def _encode(group: list[DecodedImage], encoder: Encoder) -> list[npt.NDArray[np.float32] | None]:
    prepared = stack_inputs(group)
    vectors = iter(() if prepared is None else check_encoding(encoder, encoder.encode_images(prepared), len(prepared)))
    return [None if each.prepared is None else next(vectors) for each in group]


def batch_of(encoder: Encoder) -> int:
    """Return how many pictures are encoded at a time."""
    return int(getattr(encoder, "batch", _ENCODED))


def check_encoding(encoder: Encoder, vectors: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return what an encoder made, if it kept its promise."""
    if np.shape(vectors) != (count, encoder.dimension):
        raise InvalidEmbedding(
            f"encoder {encoder.name!r} returned shape {np.shape(vectors)} for {count} pictures; "
            f"it promises {(count, encoder.dimension)}"
        )
    check_vectors(vectors)
    return vectors


class _Rows:
    """Makes rows of what was examined.

    Args:
        annotations: labels and captions by file name.
        dataset_id: the dataset that the rows belong to.
        place: where in it.
    """

    def __init__(self, annotations: Annotations, dataset_id: str, place: SourcePlacement) -> None:
        self._annotations, self._dataset_id, self._place = annotations, dataset_id, place
        self._measures = measure_columns()

    def id_of(self, item: Item, frame_number: int | None = None) -> str:
        """Return the id of a picture, of a whole video, or of a frame."""
        place = self._place.of(item)
        if frame_number is None:
            return place.media_id(self._dataset_id, item.path)
        return place.frame_id(self._dataset_id, item.path, frame_number)

    def media(self, examined: DecodedImage, vector: npt.NDArray[np.float32] | None) -> dict[str, Any]:
        """Return a row of the media table: of a picture, of a frame, or of a video without frames."""
        item = examined.item
        labels, caption = self._annotations.find(item.path)
        kind = None
        if is_video_item(item):
            kind = VIDEO if examined.frame_number is None else VIDEO_FRAME
        return {
            **self._file(examined),
            "media_id": self.id_of(item, examined.frame_number),
            "format": examined.format,
            "width": examined.width,
            "height": examined.height,
            "labels": list(dict.fromkeys(item.labels + labels)) or None,
            "caption": item.caption or caption,
            "error": examined.error,
            **(examined.measures or dict.fromkeys(self._measures)),
            "kind": kind,
            "video_id": None if kind is None else self.id_of(item),
            "frame_number": examined.frame_number,
            "frame_time_s": examined.frame_time_s,
            "embedding": vector,
        }

    def video(self, video: DecodedVideo) -> dict[str, Any]:
        """Return a row of the table of videos."""
        return {
            **self._file(video.file),
            "video_id": self.id_of(video.file.item),
            "container": video.container,
            "codec": video.codec,
            "duration_s": video.duration_s,
            "fps": video.fps,
            "width": video.width,
            "height": video.height,
            "frames": video.frames,
            "kept_frames": video.kept_frames,
            "error": video.file.error,
        }

    def _file(self, examined: DecodedImage) -> dict[str, Any]:
        place = self._place.of(examined.item)
        text, raw = text_of_path(place.prefix + examined.item.path)
        return {
            "path": text,
            "path_raw": raw,
            "root": place.root,
            "batch": place.batch,
            "size_bytes": examined.size_bytes,
            "modified_at": None if examined.modified_ns is None else time_of_ns(examined.modified_ns),
            "content_hash": examined.digest,
        }


class _Writer:
    """Gathers rows and appends them to the tables, a version for every few thousand, or for what took some seconds.

    Attributes:
        rows, version: of the media table.
        videos, video_rows: version of the table of videos, 0 if nothing was written to it; and its rows.
    """

    def __init__(self, path: Path, schema: pa.Schema, written: Checkpoint, keep: SaveCheckpoint) -> None:
        self.path, self.schema, self.keep = path, schema, keep
        self.pending: list[dict[str, Any]] = []
        self.pending_videos: list[dict[str, Any]] = []
        self.rows, self.version = written.rows, written.version
        self.videos, self.video_rows = written.videos, written.video_rows
        self.flushed_s = time.monotonic()

    def add(self, row: dict[str, Any]) -> None:
        """Take a row of the media table."""
        self.pending.append(row)
        if len(self.pending) >= _COMMITTED or time.monotonic() - self.flushed_s > _COMMITTED_S:
            self.flush()

    def add_video(self, row: dict[str, Any], of_media: dict[str, Any] | None) -> None:
        """Take the row of a video whose frames were taken, and that which stands for it where it has none."""
        self.pending_videos.append(row)
        if of_media is not None:
            self.add(of_media)

    def flush(self) -> None:
        """Write what was taken: first frames, so that a video that is known has all of them."""
        if self.pending or not self.rows:
            batch = to_batch(self.pending, self.schema)
            self.version = tables.append(self.path, [batch], self.schema)
            self.rows += len(self.pending)
        if self.pending_videos:
            self.videos = videos.append_videos(self.path, self.pending_videos)
            self.video_rows += len(self.pending_videos)
        self.pending, self.pending_videos = [], []
        self.keep(Checkpoint(self.version, self.rows, self.videos, self.video_rows))
        self.flushed_s = time.monotonic()

    def close(self, *, create: bool) -> None:
        """Write what is pending, or an empty table if that is to be created."""
        if self.pending or self.pending_videos or (create and not self.rows):
            self.flush()


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
