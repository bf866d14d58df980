"""The job of a new dataset: ingest, index, commit."""

from pathlib import Path
from typing import Any

from framedex.jobs.context import JobContext
from framedex.jobs.index.finish import finish, with_time
from framedex.jobs.index.index import index
from framedex.jobs.ingest.content import Content, FilesInput
from framedex.jobs.ingest.ingest import Checkpoint
from framedex.jobs.ingest.reading import (
    read_content,
    read_content_boxes,
    reading_share,
    resume_checkpoint,
    skipped_counts,
    source_roots,
    with_box_problems,
)
from framedex.jobs.objects.annotated import media_versions, writer
from framedex.jobs.objects.objects import change_objects
from framedex.records import DatasetStatus
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.objects import objects_path
from framedex.storage.tables import Table
from framedex.storage.videos import VIDEOS, videos_path
from framedex.tasks import Commit, TaskProgress

_WITH_BOXES = 0.7
"""The share of reading that pictures take where some are read once more for their boxes."""


def create(content: Content, job: JobContext, *, progress: TaskProgress) -> Commit:
    """Build a dataset's tables and return the commit that makes them its head.

    Args:
        content: what it is made of.
        job: the dataset, of which there is nothing yet.
        progress: of the task.
    """
    table = job.table
    written = _begun(table, progress)
    boxes = read_content_boxes(content, progress)
    end = reading_share(content)
    read_end = end * _WITH_BOXES if boxes else end
    ingested = read_content(
        content,
        dataset_id=job.dataset_id,
        table=table,
        settings=job.settings,
        progress=progress,
        end=read_end,
        config=job.config,
        known=IdIndex(Table(table, written.version)) if written.rows else None,
        known_videos=IdIndex(Table(videos_path(table), written.videos), "video_id") if written.videos else None,
        written=written,
    )
    roots = source_roots(content)
    versions = media_versions(ingested.version, ingested.videos)
    objects = None
    if boxes is not None and isinstance(content, FilesInput):
        write = writer(boxes, job, content.encoder, versions=versions, roots=roots, roles={})
        objects = change_objects(job, write=write, progress=progress.stages(read_end, end))
    indexed = index(Table(table, ingested.version), job.config.thresholds, progress=progress.stages(end, 1.0))
    summary: dict[str, Any] = {
        "skipped": skipped_counts(content, ingested),
        "batches": 1,
        "added_at": with_time({}, 0),
    }
    summary = with_box_problems(summary, boxes, unmatched=True)
    others = {VIDEOS: ingested.videos} if ingested.videos else {}
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        job.config,
        dataset_id=job.dataset_id,
        table=table,
        rows=ingested.rows,
        status=DatasetStatus.READY,
        summary=summary,
        others=others,
        roots=roots,
        kept_by=job.settings.user if job.settings.dataset_snapshots_enabled else None,
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
