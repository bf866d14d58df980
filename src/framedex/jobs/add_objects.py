"""The job that adds objects to a dataset: boxes of annotation files, in pictures that it has."""

from collections.abc import Sequence

from framedex.annotations.sources import BoxSource, read_box_index
from framedex.encoders import Encoder
from framedex.jobs.add import media_stay, nothing_new
from framedex.jobs.context import JobContext
from framedex.jobs.create import with_box_problems
from framedex.jobs.objects.annotated import writer
from framedex.jobs.objects.objects import change_objects, object_ids
from framedex.storage.objects import OBJECTS
from framedex.tasks import Commit, TaskProgress


def add_objects(base: JobContext, sources: Sequence[BoxSource], encoder: Encoder, *, progress: TaskProgress) -> Commit:
    """Append objects and return the commit. Those that are there already are left out.

    The first ones are indexed as a whole; later ones join what is there, until all is indexed anew.

    Args:
        base: the dataset.
        sources: of boxes.
        encoder: that of the dataset.
        progress: of the task.
    """
    boxes = read_box_index(sources, lambda count: progress(f"reading boxes: {count:,}", 0.0))
    write = writer(
        boxes,
        base,
        encoder,
        versions=base.head.tables,
        roots=base.roots,
        roles=base.head.summary.roles,
        known=object_ids(base),
    )
    objects = change_objects(base, write=write, progress=progress.stages(0.0, 1.0))
    summary = with_box_problems(base.head.summary.with_(skipped={}), boxes, unmatched=True)
    if objects is None:
        return nothing_new(base, summary)
    joined = OBJECTS in base.head.tables
    versions, summary = objects.apply(base.head.tables, summary)
    return media_stay(base, versions, summary, partial=joined or base.head.summary.partial)
