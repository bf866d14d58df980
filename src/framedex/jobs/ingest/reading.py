"""Reading of a job's input into the media table, its checkpoints, and the summary of skipped inputs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.sources import read_boxes
from framedex.errors import NotFound
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.ingest import NO_CHECKPOINT, Checkpoint, Ingested, SaveCheckpoint, ingest
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.jobs.ingest.vectors import ingest_vectors
from framedex.media.frame_sampling import Sampling
from framedex.records import EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.tables import Table
from framedex.storage.videos import videos_path
from framedex.tasks import TaskProgress

UNUSABLE_BOXES = "parts of annotations that cannot be used as they are"
BOX_PROBLEMS = "box_problems"
"""Key in a generation's summary: the first hundred problems in object annotations."""


def read_content_boxes(content: Content, progress: TaskProgress) -> BoxIndex | None:
    """Return the boxes that come with pictures; None if no file of them does."""
    if not isinstance(content, FilesInput) or not content.boxes:
        return None
    return read_boxes(content.boxes, lambda count: progress(f"reading boxes: {count:,}", 0.0))


def resume_checkpoint(table: Path, progress: TaskProgress, *, head: str | None) -> Checkpoint:
    """Return what an earlier run of the same task left in the media table and in that of videos, which end with that.

    Args:
        table: folder of the media table.
        progress: of the task.
        head: id of the generation that the task starts from; the earlier run must have started from the same.
    """
    state = progress.resume
    if not state or state.get("head") != head or not state.get("rows"):
        return NO_CHECKPOINT
    of_videos = state.get("videos", 0)
    try:
        Table(table, state["version"])
        if of_videos:
            Table(videos_path(table), of_videos)
    except NotFound:  # it was cleaned up, or another task took its place
        return NO_CHECKPOINT
    version = tables.roll_back(table, state["version"])
    assert version is not None, "a version of a table leads to one"
    if of_videos:
        of_videos = tables.roll_back(videos_path(table), of_videos)
    return Checkpoint(version, state["rows"], of_videos, state.get("video_rows", 0))


def checkpoint_saver(progress: TaskProgress, *, head: str | None) -> SaveCheckpoint:
    """Return what notes how far an ingestion is, for :func:`resume_checkpoint`."""
    return lambda written: progress.keep({"head": head, **asdict(written)})


def reading_share(content: Content) -> float:
    """Return the share of a job that reading takes: pictures take longer to read than to compare, vectors do not."""
    return 0.9 if isinstance(content, FilesInput) else 0.2


def source_roots(content: Content) -> list[str]:
    """Return the source roots of a content: one, but for uploads of different kinds."""
    return [content.source.root, *content.source.other_roots] if isinstance(content, FilesInput) else [content.root]


def read_content(
    content: Content,
    *,
    dataset_id: str,
    table: Path,
    settings: Settings,
    progress: TaskProgress,
    end: float,
    config: EmbeddingConfig,
    place: SourcePlacement = FIRST_PLACEMENT,
    known: IdIndex | None = None,
    known_videos: IdIndex | None = None,
    written: Checkpoint = NO_CHECKPOINT,
    head: str | None = None,
    of_videos: bool = True,
) -> Ingested:
    """Append a content's rows to the media table; its progress takes the job from 0 to *end*.

    Args:
        content: what is read.
        dataset_id: the dataset.
        table: folder of its media table.
        settings: limits.
        progress: of the task.
        end: the share of the task that reading takes.
        config: how the dataset is indexed; says which frames of videos are kept.
        place: which of the dataset's source roots and batches the media belong to.
        known: media that are there already.
        known_videos: videos that are.
        written: what an earlier run of the task wrote; see :func:`resume_checkpoint`.
        head: id of the generation that the task starts from.
        of_videos: whether the media table has, or will have, the columns about frames.
    """
    keep = checkpoint_saver(progress, head=head)
    if isinstance(content, FilesInput):
        return ingest(
            content.source,
            content.annotations,
            content.encoder,
            table=table,
            dataset_id=dataset_id,
            settings=settings,
            progress=progress.part("reading pictures", 0.0, end),
            place=place,
            known=known,
            known_videos=known_videos,
            written=written,
            keep=keep,
            sampling=Sampling(config.frames_per_second, config.scene_changes),
            of_videos=of_videos,
        )
    return ingest_vectors(
        content,
        table=table,
        dataset_id=dataset_id,
        progress=progress.part("reading vectors", 0.0, end),
        place=place,
        known=known,
        written=written,
        keep=keep,
        of_videos=of_videos,
    )


def with_box_problems(summary: Mapping[str, Any], boxes: BoxIndex | None, *, unmatched: bool) -> dict[str, Any]:
    """Return what is stored with a generation, with what was wrong with boxes, and how many of them have no picture.

    Args:
        summary: with what was left out, by reason, as ``skipped``.
        boxes: that were read; None for none.
        unmatched: whether pictures that were not there count.
    """
    if boxes is None:
        return {**summary, BOX_PROBLEMS: []}
    counts = {UNUSABLE_BOXES: boxes.problems.count}
    if unmatched:
        counts["pictures with boxes that are not there"] = boxes.unmatched
    found = {name: count for name, count in counts.items() if count}
    return {**summary, "skipped": {**summary["skipped"], **found}, BOX_PROBLEMS: list(map(str, boxes.problems.sample))}


def skipped_counts(content: Content, ingested: Ingested) -> dict[str, Any]:
    """Return what was left out, by reason."""
    found = dict(content.source.skipped) if isinstance(content, FilesInput) else {}
    if ingested.unmatched:
        found["annotations without a picture"] = ingested.unmatched
    if ingested.present:
        found["media that are there already"] = ingested.present
    return found
