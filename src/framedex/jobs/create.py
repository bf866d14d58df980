"""The job of a new dataset: ingest, index, commit."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from framedex.errors import NotFound
from framedex.jobs.context import Base
from framedex.jobs.index.finish import finish, with_time
from framedex.jobs.index.index import index
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.ingest import NOTHING_WRITTEN, Ingested, Keep, Written, ingest
from framedex.jobs.ingest.placement import FIRST_PLACE, Place
from framedex.jobs.ingest.vectors import ingest_vectors
from framedex.jobs.objects.annotated import media_versions, writer
from framedex.jobs.objects.objects import change_objects
from framedex.media.box_index import BoxIndex
from framedex.media.box_sources import read_boxes
from framedex.media.frame_sampling import Sampling
from framedex.records import DatasetStatus, EmbeddingConfig
from framedex.settings import Settings
from framedex.storage import tables
from framedex.storage.known_ids import KnownIds
from framedex.storage.objects import objects_path
from framedex.storage.tables import Table
from framedex.storage.videos import VIDEOS, videos_path
from framedex.tasks import Commit, Report

UNUSABLE_BOXES = "parts of annotations that cannot be used as they are"
BOX_PROBLEMS = "box_problems"
"""In a generation's summary: what was wrong with the annotations of objects, the first hundred."""
_WITH_BOXES = 0.7
"""The share of reading that pictures take where some are read once more for their boxes."""


def create(content: Content, base: Base, *, report: Report) -> Commit:
    """Build a dataset's tables and return the commit that makes them its head.

    Args:
        content: what it is made of.
        base: the dataset, of which there is nothing yet.
        report: of the task.
    """
    table = base.table
    written = _begun(table, report)
    boxes = boxes_of(content, report)
    end = read_share(content)
    read_end = end * _WITH_BOXES if boxes else end
    ingested = read(
        content,
        dataset_id=base.dataset_id,
        table=table,
        settings=base.settings,
        report=report,
        end=read_end,
        config=base.config,
        known=KnownIds(Table(table, written.version)) if written.rows else None,
        known_videos=KnownIds(Table(videos_path(table), written.videos), "video_id") if written.videos else None,
        written=written,
    )
    roots = roots_of(content)
    versions = media_versions(ingested.version, ingested.videos)
    objects = None
    if boxes is not None and isinstance(content, FilesInput):
        write = writer(boxes, base, content.encoder, versions=versions, roots=roots, roles={})
        objects = change_objects(base, write=write, tell=report.stages(read_end, end))
    indexed = index(Table(table, ingested.version), base.config.thresholds, tell=report.stages(end, 1.0))
    summary: dict[str, Any] = {
        "skipped": skipped(content, ingested),
        "batches": 1,
        "added_at": with_time({}, 0),
    }
    summary = with_boxes_said(summary, boxes, unmatched=True)
    others = {VIDEOS: ingested.videos} if ingested.videos else {}
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        base.config,
        dataset_id=base.dataset_id,
        table=table,
        rows=ingested.rows,
        status=DatasetStatus.READY,
        summary=summary,
        others=others,
        roots=roots,
        kept_by=base.settings.user if base.settings.dataset_snapshots_enabled else None,
    )


def _begun(table: Path, report: Report) -> Written:
    """Return what an earlier run of the same task left; what it cannot go on from is removed."""
    written = go_on(table, report, head=None)
    if not written.rows:
        tables.roll_back(table, None)
    if not written.videos:
        tables.roll_back(videos_path(table), None)
    tables.roll_back(objects_path(table), None)
    return written


def boxes_of(content: Content, report: Report) -> BoxIndex | None:
    """Return the boxes that come with pictures; None if no file of them does."""
    if not isinstance(content, FilesInput) or not content.boxes:
        return None
    return read_boxes(content.boxes, lambda count: report(f"reading boxes: {count:,}", 0.0))


def go_on(table: Path, report: Report, *, head: str | None) -> Written:
    """Return what an earlier run of the same task left in the media table and in that of videos, which end with that.

    Args:
        table: folder of the media table.
        report: of the task.
        head: id of the generation that the task starts from; the earlier run must have started from the same.
    """
    state = report.resume
    if not state or state.get("head") != head or not state.get("rows"):
        return NOTHING_WRITTEN
    of_videos = state.get("videos", 0)
    try:
        Table(table, state["version"])
        if of_videos:
            Table(videos_path(table), of_videos)
    except NotFound:  # it was cleaned up, or another task took its place
        return NOTHING_WRITTEN
    version = tables.roll_back(table, state["version"])
    assert version is not None, "a version of a table leads to one"
    if of_videos:
        of_videos = tables.roll_back(videos_path(table), of_videos)
    return Written(version, state["rows"], of_videos, state.get("video_rows", 0))


def kept_by(report: Report, *, head: str | None) -> Keep:
    """Return what notes how far an ingestion is, for :func:`go_on`."""
    return lambda written: report.keep({"head": head, **asdict(written)})


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
    report: Report,
    end: float,
    config: EmbeddingConfig,
    place: Place = FIRST_PLACE,
    known: KnownIds | None = None,
    known_videos: KnownIds | None = None,
    written: Written = NOTHING_WRITTEN,
    head: str | None = None,
    of_videos: bool = True,
) -> Ingested:
    """Append a content's rows to the media table; its progress takes the job from 0 to *end*.

    Args:
        content: what is read.
        dataset_id: the dataset.
        table: folder of its media table.
        settings: limits.
        report: of the task.
        end: the share of the task that reading takes.
        config: how the dataset is indexed; says which frames of videos are kept.
        place: which of the dataset's source roots and batches the media belong to.
        known: media that are there already.
        known_videos: videos that are.
        written: what an earlier run of the task wrote; see :func:`go_on`.
        head: id of the generation that the task starts from.
        of_videos: whether the media table has, or will have, the columns about frames.
    """
    keep = kept_by(report, head=head)
    if isinstance(content, FilesInput):
        return ingest(
            content.source,
            content.annotations,
            content.encoder,
            table=table,
            dataset_id=dataset_id,
            settings=settings,
            progress=report.part("reading pictures", 0.0, end),
            place=place,
            known=known,
            known_videos=known_videos,
            written=written,
            keep=keep,
            sampling=Sampling(config.frames_per_second, config.scene_changes),
            of_videos=of_videos,
        )
    progress = report.part("reading vectors", 0.0, end)
    return ingest_vectors(
        content,
        table=table,
        dataset_id=dataset_id,
        progress=progress,
        place=place,
        known=known,
        written=written,
        keep=keep,
        of_videos=of_videos,
    )


def with_boxes_said(summary: Mapping[str, Any], boxes: BoxIndex | None, *, unmatched: bool) -> dict[str, Any]:
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


def skipped(content: Content, ingested: Ingested) -> dict[str, Any]:
    """Return what was left out, by reason."""
    found = dict(content.source.skipped) if isinstance(content, FilesInput) else {}
    if ingested.unmatched:
        found["annotations without a picture"] = ingested.unmatched
    if ingested.present:
        found["media that are there already"] = ingested.present
    return found
