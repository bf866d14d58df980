"""Ingestion of files: each is read and decoded once, on threads ahead of the encoder, with bounded memory."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.annotations.label_index import Annotations
from framedex.encoders import Encoder, Preparation
from framedex.executors import Executor
from framedex.jobs.ingest.changed_files import ChangedFiles, ExistingRows, weight
from framedex.jobs.ingest.decoding import Decoded, DecodedFile, DecodedVideo, FileDecoder, Places, is_video_item
from framedex.jobs.ingest.encoding import EncoderBatch, encoded
from framedex.jobs.ingest.in_processes import CHUNK, cluster_of, decoding
from framedex.jobs.ingest.parts import RowTarget, part_writing
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.jobs.ingest.read_ahead import in_chunks, run_ahead
from framedex.jobs.ingest.rows import IngestedRows, rows_to_batch
from framedex.media.display_range import Range
from framedex.media.files import allowed_folders
from framedex.media.frame_sampling import EVERY_SECOND, Sampling
from framedex.media.remote import is_remote
from framedex.media.sources import Item, Source
from framedex.settings import Settings
from framedex.storage import tables, videos
from framedex.storage.fragments import Fragment, write_fragment
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import media_schema

_ENCODED = 32  # default batch size of encoders
_COMMITTED = 8192  # maximum rows per table version
_COMMITTED_S = 20.0  # maximum time between table versions: the work that a crash can lose
_FIRST_COMMITTED_S = 0.25  # the same at first, so that users see something; then it doubles


@dataclass(frozen=True)
class Ingested:
    """Result of an ingestion.

    Attributes:
        version: of the media table; 0 if nothing was written.
        rows: number of rows that were written.
        unmatched: number of annotated files without an image.
        present: number of skipped files that the dataset already has.
        videos: version of the table of videos; 0 if nothing was written to it.
        ambiguous: number of uploaded files without their annotation, because several have their name.
        renamed: number of uploaded files whose name another image has.
        names: the name within the upload of files that have another one in the dataset; see :class:`UploadNames`.
    """

    version: int
    rows: int
    unmatched: int
    present: int = 0
    videos: int = 0
    ambiguous: int = 0
    renamed: int = 0
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """Rows that an earlier run of the same task has written.

    Attributes:
        version: version of the media table that ends with these rows; 0 for none.
        rows: number of these rows.
        videos, video_rows: the same for the table of videos.
    """

    version: int = 0
    rows: int = 0
    videos: int = 0
    video_rows: int = 0


NO_CHECKPOINT = Checkpoint()
SaveCheckpoint = Callable[[Checkpoint], None]
"""Stores a checkpoint, so that a later run can resume from it."""


def discard_checkpoint(_checkpoint: Checkpoint) -> None:
    """Ignore a checkpoint."""


def ingest(
    source: Source,
    annotations: Annotations,
    encoder: Encoder,
    *,
    table: Path,
    dataset_id: str,
    settings: Settings,
    progress: Callable[[float], None],
    placement: SourcePlacement = FIRST_PLACEMENT,
    existing: IdIndex | None = None,
    existing_videos: IdIndex | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    save_checkpoint: SaveCheckpoint = discard_checkpoint,
    sampling: Sampling = EVERY_SECOND,
    display_range: Range | None = None,
    of_videos: bool = True,
    of_copies: pa.Schema | None = None,
) -> Ingested:
    """Append a row to the media table for each image and each kept video frame; return the result.

    Rows are in the order of the files, and of the frames of each video. A file that cannot be decoded becomes a row
    with the reason in ``error``. Each video also gets a row in the table of videos.

    Args:
        source: the files.
        annotations: labels and captions by file name.
        encoder: computes the embeddings.
        table: folder of the media table, which may not exist.
        dataset_id: the dataset.
        settings: limits.
        progress: called with the share that is done, videos by their size; raises to stop.
        placement: source root and batch of the files.
        existing: media that the table has already, including those of *checkpoint*; their files are not read.
        existing_videos: the same for videos.
        checkpoint: rows that an earlier run of the task wrote.
        save_checkpoint: called every few thousand rows, or every few seconds.
        sampling: selection of video frames.
        display_range: the values that are shown black and white in images of more than 8 bits; None for those of each.
        of_videos: whether the media table has the columns about frames.
        of_copies: its columns for finding copies; None if it has none.
    """
    annotations.find_images(lambda: (item.path for item in source.items()))
    existing_rows = ExistingRows(existing, existing_videos, checkpoint.rows, checkpoint.video_rows)
    files = ChangedFiles(source, annotations, dataset_id, placement, existing_rows, allowed_folders(settings))
    schema = media_schema(encoder.dimension, of_videos=of_videos, of_copies=of_copies)
    writer, rows = _Writer(table, schema, checkpoint, save_checkpoint), IngestedRows(dataset_id, placement)
    decoder = FileDecoder(
        Places.of(source),
        Preparation.of(encoder),
        settings,
        sampling,
        lambda item, number: existing_rows.is_resumed_frame(rows.id_of(item, number)),
        of_copies.names if of_copies is not None else (),
        display_range=display_range,
    )
    meter = _Meter(source, files, progress)
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_of(decoder, encoder.name, settings))
        target = RowTarget(table, schema, rows, encoder)
        decoded = _decoded(files, decoder, settings, meter, cluster, target)
        results = stack.enter_context(closing(decoded))  # this stops the threads, whatever happens
        groups = encoded(_grouped(results, meter, batch_of(encoder)), encoder, settings, cluster, meter.report)
        for (group, video, fragment), vectors in stack.enter_context(closing(groups)):
            for each, vector in zip(group, vectors, strict=True):
                writer.add(rows.media(each, vector))
            if video is not None:
                of_damage = None if video.file.error is None else rows.media(video.file, None)
                writer.add_video(rows.video(video), of_damage)
            if fragment is not None:
                writer.add_fragment(fragment)
            writer.flush_if_due()
            meter.report()
    decoder.reader.check_any_read()
    writer.close(create=existing is None)
    names, renamed = ({}, 0) if files.names is None else (files.names.sources, len(files.names.given))
    return Ingested(
        writer.version,
        writer.rows,
        annotations.unmatched,
        files.present,
        writer.videos,
        files.ambiguous,
        renamed,
        names,
    )


def _decoded(
    files: Iterable[Item],
    decoder: FileDecoder,
    settings: Settings,
    meter: "_Meter",
    cluster: Executor | None,
    target: RowTarget,
) -> Generator[Decoded | Fragment | None, None, None]:
    """Yield what is decoded or written by workers, in the order of the files; None at intervals while it takes long."""
    connections = settings.s3_connections if any(map(is_remote, decoder.places.roots)) else 0
    with ExitStack() as stack:
        parts = stack.enter_context(part_writing(decoder, settings, cluster, target, meter.unread))
        if parts is not None:
            yield from parts.results(files)
            return
        decode, threads = stack.enter_context(decoding(decoder, settings, meter.remaining, cluster))
        # The first files are read and decoded while the table engine loads.
        yield from run_ahead(
            in_chunks(files, CHUNK, is_video_item),
            is_long=is_video_item,
            work=decode,
            long_work=decoder.decode_video,
            threads=max(threads, connections),
            meanwhile=tables.warm_up,
        )


class _Meter:
    """Progress of an ingestion: an image counts 1, a video by its size and the share that is decoded.

    Args:
        source: all files.
        files: the files that are read.
        progress: called with the share that is done; raises to stop.
    """

    def __init__(self, source: Source, files: ChangedFiles, progress: Callable[[float], None]) -> None:
        self._source, self._files, self._progress = source, files, progress
        self._total = sum(weight(source, item) for item in source.items())
        self._done = self._part = 0.0

    def count(self, decoded_item: Decoded | Fragment) -> None:
        """Count a decoded image, frame or video, or the images of a fragment."""
        if isinstance(decoded_item, Fragment):
            self._done += decoded_item.rows
        elif isinstance(decoded_item, DecodedVideo):
            self._done, self._part = self._done + weight(self._source, decoded_item.file.item), 0.0
        elif decoded_item.frame_number is None:
            self._done += 1
        else:
            self._part = decoded_item.share * weight(self._source, decoded_item.item)

    def remaining(self) -> float:
        """Return about how many images are left, as far as is known: some may be there already."""
        return self.unread() - self._done

    def unread(self) -> float:
        """Return about how many images this run has read or will read."""
        return self._total - self._files.passed

    def report(self) -> None:
        """Report the share that is done."""
        self._progress(min((self._done + self._part + self._files.passed) / max(self._total, 1), 1.0))


def _grouped(decoded: Iterator[Decoded | Fragment | None], meter: _Meter, batch_size: int) -> Iterator[EncoderBatch]:
    """Yield images and frames in batches for the encoder, each video after its frames, and fragments in their place."""
    group: list[DecodedFile] = []
    for each in decoded:
        if each is None:
            meter.report()
            continue
        meter.count(each)
        if isinstance(each, DecodedFile):
            group.append(each)
            if len(group) < batch_size:
                continue
            yield EncoderBatch(group)
        elif isinstance(each, DecodedVideo):
            yield EncoderBatch(group, video=each)
        else:
            yield EncoderBatch(group, fragment=each)
        group = []
    if group:
        yield EncoderBatch(group)


def batch_of(encoder: Encoder) -> int:
    """Return the batch size of an encoder."""
    return int(getattr(encoder, "batch", _ENCODED))


class _Writer:
    """Buffered writer of both tables: a new version every few thousand rows, or every few seconds.

    Attributes:
        rows, version: of the media table.
        videos, video_rows: version and rows of the table of videos; 0 if nothing was written to it.
    """

    def __init__(self, path: Path, schema: pa.Schema, checkpoint: Checkpoint, save_checkpoint: SaveCheckpoint) -> None:
        self.path, self.schema, self.save_checkpoint = path, schema, save_checkpoint
        self.fragments: list[Fragment] = []  # before the pending rows
        self.pending: list[dict[str, Any]] = []
        self.pending_videos: list[dict[str, Any]] = []
        self.has_frames = False
        self.rows, self.version = checkpoint.rows, checkpoint.version
        self.videos, self.video_rows = checkpoint.videos, checkpoint.video_rows
        self.started_s = self.flushed_s = time.monotonic()

    @property
    def pending_rows(self) -> int:
        """The number of rows that no version has yet."""
        return len(self.pending) + sum(each.rows for each in self.fragments)

    def add(self, row: dict[str, Any]) -> None:
        """Add a row of the media table."""
        self.pending.append(row)
        self.has_frames = self.has_frames or row["kind"] is not None
        if self.pending_rows >= _COMMITTED:
            self.flush()

    def add_fragment(self, fragment: Fragment) -> None:
        """Add rows of the media table that are written, after those that are pending."""
        self._write_pending()
        self.fragments.append(fragment)
        if self.pending_rows >= _COMMITTED:
            self.flush()

    def flush_if_due(self) -> None:
        """Write pending rows if the last version is some time ago: called after rows that belong together."""
        longest_s = min(max(self.flushed_s - self.started_s, _FIRST_COMMITTED_S), _COMMITTED_S)
        if self.pending_rows and time.monotonic() - self.flushed_s > longest_s:
            self.flush()

    def add_video(self, row: dict[str, Any], of_media: dict[str, Any] | None) -> None:
        """Add the row of a video after its frames, and the media row with the damage of a video, if it has some."""
        self.pending_videos.append(row)
        if of_media is not None:
            self.add(of_media)

    def flush(self) -> None:
        """Write pending rows: frames first, so that a video in the table has all its frames."""
        count = self.pending_rows
        if self.fragments:
            self._write_pending()
            self.version = tables.append_fragments(self.path, self.fragments)
        elif self.pending or not self.rows:
            self.version = tables.append(self.path, [rows_to_batch(self.pending, self.schema)], self.schema)
        self.rows += count
        # Frames of a video are shown before its end, so the table of videos must be there with the first of them.
        if self.pending_videos or (self.has_frames and not self.videos):
            self.videos = videos.append_videos(self.path, self.pending_videos)
            self.video_rows += len(self.pending_videos)
        self.fragments, self.pending, self.pending_videos, self.has_frames = [], [], [], False
        self.save_checkpoint(Checkpoint(self.version, self.rows, self.videos, self.video_rows))
        self.flushed_s = time.monotonic()

    def close(self, *, create: bool) -> None:
        """Write pending rows; if there are none, write an empty table if *create* is set."""
        if self.pending_rows or self.pending_videos or (create and not self.rows):
            self.flush()

    def _write_pending(self) -> None:
        """Write pending rows as a fragment."""
        if self.pending:
            version = tables.ensure_table(self.path, self.schema)
            self.fragments.append(write_fragment(self.path, version, rows_to_batch(self.pending, self.schema)))
            self.pending = []
