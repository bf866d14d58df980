"""The job that adds objects to a dataset: bounding boxes of annotation files, in images that the dataset has."""

from collections.abc import Sequence

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.sources import BoxSource, read_box_index
from framedex.encoders import Encoder
from framedex.jobs.add import media_stay, nothing_new
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.image_ids import write_image_ids
from framedex.jobs.ingest.reading import with_problems
from framedex.jobs.objects.annotated import annotation_writer
from framedex.jobs.objects.objects import change_objects, object_ids
from framedex.storage import tables
from framedex.storage.classes import write_classes
from framedex.storage.objects import OBJECTS
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress


def add_objects(job: JobContext, sources: Sequence[BoxSource], encoder: Encoder, *, progress: TaskProgress) -> Commit:
    """Append objects and return the commit; objects that the dataset already has are skipped.

    The first objects of a dataset are indexed at once. Later ones join the existing clusters until the index is
    rebuilt.

    Args:
        job: the dataset.
        sources: annotation files.
        encoder: the dataset's encoder.
        progress: of the task.
    """
    boxes = read_box_index(sources, lambda count: progress(f"reading boxes: {count:,}", 0.0))
    write = annotation_writer(
        boxes,
        job,
        encoder,
        versions=job.head.tables,
        roots=job.roots,
        roles_of=job.head.summary,
        existing=object_ids(job),
    )
    objects = change_objects(job, write=write, progress=progress.stages(0.0, 1.0))
    summary = with_problems(job.head.summary.with_(skipped={}, examples={}), boxes, unmatched=True)
    versions = {**job.head.tables, MEDIA: _with_image_ids(job, boxes)}
    if objects is not None:
        versions, summary = objects.apply(versions, summary)
    versions = write_classes(job.table, job.head.tables, versions, boxes.lists.classes)
    if versions == job.head.tables:
        return nothing_new(job, summary)
    joined = objects is not None and OBJECTS in job.head.tables
    return media_stay(job, versions, summary, partial=joined or job.head.summary.partial)


def _with_image_ids(job: JobContext, boxes: BoxIndex) -> int:
    """Write the ids of images in annotation files; return the version of the media table."""
    before = job.head.tables[MEDIA]
    if not boxes.lists.has_image_ids:
        return before
    start = tables.roll_back(job.table, before) or before
    version = write_image_ids(Table(job.table, start), [boxes.lists])
    if version == start:
        return before
    tables.sync(job.table)
    return version
