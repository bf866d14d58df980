"""The job that deletes media from a dataset. The files themselves stay."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import RowIds
from framedex.core.progress import Progress
from framedex.errors import NotFound
from framedex.jobs.add import nothing_new
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.journal import with_step
from framedex.jobs.edits.numbered_rows import NumberedRows
from framedex.jobs.edits.removal import remove_few
from framedex.jobs.edits.rows import mask_of
from framedex.jobs.index.finish import finish, read_cells, read_sums
from framedex.jobs.index.index import WrittenIndex
from framedex.jobs.index.removed import index_removed
from framedex.jobs.objects.objects import change_objects
from framedex.storage import tables, videos
from framedex.storage.copy_pairs import read_pairs
from framedex.storage.media import Media
from framedex.storage.objects import OBJECTS
from framedex.storage.sql import Sql
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, TaskProgress


def remove(job: JobContext, media_ids: Sequence[str], *, progress: TaskProgress) -> Commit:
    """Delete media and return the commit; the dataset's status stays as it was.

    Raises:
        NotFound: a media item is not in the dataset.
    """
    return remove_selected(job, lambda media: _row_ids(media, media_ids), progress=progress)


def remove_selected(
    job: JobContext,
    select: Callable[[Media], RowIds],
    *,
    progress: TaskProgress,
    operation: str = "delete_media",
    facts: Mapping[str, Any] = MappingProxyType({}),
    edit: Callable[[Media], int] | None = None,
) -> Commit:
    """Delete rows as :func:`remove` does.

    Args:
        job: the context of the job.
        select: returns the rows to delete, given the media: uint64, row ids.
        progress: of the task.
        operation: what the journal calls it.
        facts: what else the journal keeps of it, as JSON.
        edit: writes values of rows that stay, in the same commit, and returns the table's version.
    """
    version = tables.roll_back(job.table, job.head.tables[MEDIA])
    assert version is not None, "a head has a media table"
    table = Table(job.table, version)
    media = Media(job.dataset_id, job.head, table, Sql(), job.roots, columns=job.columns)
    row_ids = select(media)
    if not len(row_ids):
        return nothing_new(job, job.head.summary)
    if edit is not None:
        table = Table(job.table, edit(media))
        media = replace(media, table=table)
    objects = None
    if OBJECTS in job.head.tables:
        ids = table.take(row_ids.tolist(), ["media_id"]).column(0).to_pylist()
        objects = change_objects(job, removed_media=ids, progress=progress.stages(0.0, 0.3))
    progress("deleting", 0.3)
    count = job.head.n_images - len(row_ids)
    if (removed := remove_few(job, media, row_ids)) is not None:
        tables.sync(job.table)
        versions, summary = removed.versions, removed.summary
        if objects is not None:
            versions, summary = objects.apply(versions, summary)
        commit = generation_commit(job.dataset_id, tables=versions, n_images=count, config=job.config, summary=summary)
        return with_step(job, commit, operation, len(row_ids), facts=facts)
    indexed = remove_rows(job, table, mask_of(media, row_ids), progress.stages(0.0 if objects is None else 0.3, 1.0))
    others, summary = job.kept | _remaining_videos(job, indexed.version), job.head.summary
    if objects is not None:
        others, summary = objects.apply(others, summary)
    commit = finish(
        indexed,
        job.config,
        dataset_id=job.dataset_id,
        table=job.table,
        rows=count,
        summary=summary,
        partial=job.head.summary.partial,
        before=job.head.tables,
        others=others,
    )
    return with_step(job, commit, operation, len(row_ids), facts=facts)


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
        label_decisions=job.label_decisions,
        copies=read_pairs(table, job.head.tables),
    )


def _row_ids(media: Media, media_ids: Sequence[str]) -> RowIds:
    """Return the row ids of some media, in row order: uint64.

    Raises:
        NotFound: no row has an id; the message names the first such id.
    """
    numbered = NumberedRows(media)
    numbers = numbered.find(media_ids)
    if (numbers < 0).any():
        raise NotFound(f"no media {media_ids[int((numbers < 0).argmax())]!r} in this dataset")
    return numbered.row_ids[np.unique(numbers)]
