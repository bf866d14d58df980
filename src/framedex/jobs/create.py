"""The job of a new dataset: ingest, index, commit."""

from dataclasses import asdict
from pathlib import Path

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.sources import read_box_index
from framedex.errors import NotFound
from framedex.jobs.context import JobContext
from framedex.jobs.index.finish import finish, with_time
from framedex.jobs.index.index import index
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.ingest import NO_CHECKPOINT, Checkpoint, Ingested, SaveCheckpoint, ingest
from framedex.jobs.ingest.placement import FIRST_PLACEMENT, SourcePlacement
from framedex.jobs.ingest.vectors import ingest_vectors
from framedex.jobs.objects.annotated import media_versions, writer
from framedex.jobs.objects.objects import change_objects
from framedex.media.frame_sampling import Sampling
from framedex.records import EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.generation import Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.objects import objects_path
from framedex.storage.tables import Table
from framedex.storage.videos import VIDEOS, videos_path
from framedex.tasks import Commit, TaskProgress

UNUSABLE_BOXES = "parts of annotations that cannot be used as they are"
_WITH_BOXES = 0.7
"""The share of reading that pictures take where some are read once more for their boxes."""


def create(content: Content, base: JobContext, *, progress: TaskProgress) -> Commit:
    """Build a dataset's tables and return the commit that makes them its head.

    Args:
        content: what it is made of.
        base: the dataset, of which there is nothing yet.
        progress: of the task.
    """
    table = base.table
    written = _begun(table, progress)
    boxes = boxes_of(content, progress)
    end = read_share(content)
    read_end = end * _WITH_BOXES if boxes else end
    ingested = read(
        content,
        dataset_id=base.dataset_id,
        table=table,
        settings=base.settings,
        progress=progress,
        end=read_end,
        config=base.config,
        known=IdIndex(Table(table, written.version)) if written.rows else None,
        known_videos=IdIndex(Table(videos_path(table), written.videos), "video_id") if written.videos else None,
        written=written,
    )
    roots = roots_of(content)
    versions = media_versions(ingested.version, ingested.videos)
    objects = None
    if boxes is not None and isinstance(content, FilesInput):
        write = writer(boxes, base, content.encoder, versions=versions, roots=roots, roles={})
        objects = change_objects(base, write=write, progress=progress.stages(read_end, end))
    indexed = index(Table(table, ingested.version), base.config.thresholds, progress=progress.stages(end, 1.0))
    summary = Summary(skipped=skipped(content, ingested), batches=1, added_at=with_time({}, 0))
    summary = with_box_problems(summary, boxes, unmatched=True)
    others = {VIDEOS: ingested.videos} if ingested.videos else {}
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        base.config,
        dataset_id=base.dataset_id,
        table=table,
        rows=ingested.rows,
        summary=summary,
        others=others,
        roots=roots,
        kept_by=base.settings.user if base.settings.dataset_snapshots_enabled else None,
    )


def _begun(table: Path, progress: TaskProgress) -> Checkpoint:
    """Return what an earlier run of the same task left; what it cannot go on from is removed."""
    written = resume_checkpoint(table, progress, head=None)
    if not written.rows:
        tables.roll_back(table, None)
    if not written.videos:
        tables.roll_back(videos_path(table), None)
    tables.roll_back(objects_path(table), None)
    return written


def boxes_of(content: Content, progress: TaskProgress) -> BoxIndex | None:
    """Return the boxes that come with pictures; None if no file of them does."""
    if not isinstance(content, FilesInput) or not content.boxes:
        return None
    return read_box_index(content.boxes, lambda count: progress(f"reading boxes: {count:,}", 0.0))


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


def read_share(content: Content) -> float:
    """Return the share of a job that reading takes: pictures take longer to read than to compare, vectors do not."""
    return 0.9 if isinstance(content, FilesInput) else 0.2


def roots_of(content: Content) -> list[str]:
    """Return the source roots of a content: one, but for uploads of different kinds."""
    return [content.source.root, *content.source.other_roots] if isinstance(content, FilesInput) else [content.root]


def read(
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


def with_box_problems(summary: Summary, boxes: BoxIndex | None, *, unmatched: bool) -> Summary:
    """Return a summary with the problems of boxes, and with the number of images of boxes that are missing.

    Args:
        summary: of the generation; ``skipped`` gets further reasons.
        boxes: that were read; None for none.
        unmatched: whether pictures that were not there count.
    """
    if boxes is None:
        return summary.with_(box_problems=[])
    counts = {UNUSABLE_BOXES: boxes.problems.count}
    if unmatched:
        counts["pictures with boxes that are not there"] = boxes.unmatched
    found = {name: count for name, count in counts.items() if count}
    return summary.with_(skipped={**summary.skipped, **found}, box_problems=list(map(str, boxes.problems.sample)))


def skipped(content: Content, ingested: Ingested) -> dict[str, int]:
    """Return what was left out, by reason."""
    found = dict(content.source.skipped) if isinstance(content, FilesInput) else {}
    if ingested.unmatched:
        found["annotations without a picture"] = ingested.unmatched
    if ingested.present:
        found["media that are there already"] = ingested.present
    return found
