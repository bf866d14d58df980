"""The job that deletes media from a dataset. The files themselves stay."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.progress import Progress
from framedex.errors import NotFound
from framedex.jobs.add import nothing_new
from framedex.jobs.context import JobContext
from framedex.jobs.index.finish import finish, read_cells, read_sums
from framedex.jobs.index.index import WrittenIndex
from framedex.jobs.index.removed import index_removed
from framedex.jobs.objects.objects import change_objects
from framedex.storage import tables, videos
from framedex.storage.copy_pairs import read_pairs
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table
from framedex.tasks import Commit, TaskProgress


def remove(job: JobContext, media_ids: Sequence[str], *, progress: TaskProgress) -> Commit:
    """Delete media and return the commit; the dataset's status stays as it was.

    Raises:
        NotFound: a media item is not in the dataset.
    """
    return remove_selected(job, lambda table: mask_of_ids(table, media_ids), progress=progress)


def remove_selected(
    job: JobContext, select: Callable[[Table], npt.NDArray[np.bool_]], *, progress: TaskProgress
) -> Commit:
    """Delete the rows that *select* returns for the media table, as :func:`remove` does: bool, shape (rows,)."""
    version = tables.roll_back(job.table, job.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    table = Table(job.table, version)
    gone = select(table)
    if not gone.any():
        return nothing_new(job, job.head.summary)
    ids = table.scan(["media_id"]).read_all().column(0).filter(pa.array(gone)).to_pylist()
    objects = change_objects(job, removed_media=ids, progress=progress.stages(0.0, 0.3))
    indexed = remove_rows(job, table, gone, progress.stages(0.0 if objects is None else 0.3, 1.0))
    others, summary = job.kept | _remaining_videos(job, indexed.version), job.head.summary
    if objects is not None:
        others, summary = objects.apply(others, summary)
    return finish(
        indexed,
        job.config,
        dataset_id=job.dataset_id,
        table=job.table,
        rows=job.head.n_images - int(np.count_nonzero(gone)),
        summary=summary,
        partial=job.head.summary.partial,
        before=job.head.tables,
        others=others,
    )


def _remaining_videos(job: JobContext, version: int) -> dict[str, int]:
    """Return the version of the table of videos, by table name, without videos that have no media left."""
    version_before = job.head.tables.get(videos.VIDEOS)
    if version_before is None:
        return {}
    table = Table(videos.videos_path(job.table), videos.roll_back_videos(job.table, version_before) or version_before)
    return {videos.VIDEOS: videos.with_media(table, Table(job.table, version))}


def remove_rows(job: JobContext, table: Table, gone: npt.NDArray[np.bool_], progress: Progress) -> WrittenIndex:
    """Delete rows of the media table, update the index of the others, and return the written index."""
    after = Table(job.table, tables.delete_rows(table, gone))
    return index_removed(
        table,
        after,
        gone,
        job.head.summary,
        centroids=read_cells(job.table, job.head.tables),
        sums=read_sums(job.table, job.head),
        progress=progress,
        cannot_link=job.cannot_link,
        limits=job.limits,
        copies=read_pairs(table, job.head.tables),
    )


def mask_of_ids(table: Table, media_ids: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return the mask of rows with one of some ids: bool, shape (rows,).

    Raises:
        NotFound: no row has an id; the message names the first such id.
    """
    values = pa.array([each for each in media_ids if each.isascii()], pa.string())
    masks = [pc.is_in(batch.column(0), value_set=values) for batch in table.scan(["media_id"])]
    mask = np.concatenate([np.empty(0, dtype=bool), *(each.to_numpy(zero_copy_only=False) for each in masks)])
    if np.count_nonzero(mask) < len(set(media_ids)):
        existing = {each for batch in table.scan(["media_id"]) for each in batch.column(0).to_pylist()}
        missing = next(each for each in media_ids if each not in existing)
        raise NotFound(f"no media {missing!r} in this dataset")
    return mask
