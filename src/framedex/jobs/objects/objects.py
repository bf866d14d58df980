"""Changes of a dataset's objects in a job: new objects, removed objects, and their index."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.ids import objects_dataset
from framedex.core.progress import Progress
from framedex.jobs.context import JobContext
from framedex.jobs.index.changed import index_changed
from framedex.jobs.index.finish import write_rest
from framedex.jobs.index.index import WrittenIndex, index, stage_progress
from framedex.jobs.index.missing_values import add_measure_columns
from framedex.jobs.index.resources import IndexResources
from framedex.storage import tables
from framedex.storage.generation import ObjectSummary, Summary
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import object_schema
from framedex.storage.objects import OBJECTS, objects_generation, objects_path, with_objects
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table

WriteObjects = Callable[[Path, Callable[[float], None]], int]
"""Appends rows to the table of objects in a folder; returns its new version, 0 for no rows."""


@dataclass(frozen=True)
class ObjectChange:
    """Tables of objects that a job wrote, and their summary.

    Attributes:
        versions: of the tables, by the names of the corresponding media tables.
        summary: of the objects.
    """

    versions: Mapping[str, int]
    summary: ObjectSummary

    def apply(self, tables: Mapping[str, int], summary: Summary) -> tuple[dict[str, int], Summary]:
        """Return the tables and the summary of a generation with these objects."""
        return with_objects(tables, summary, self.versions, self.summary)


def change_objects(
    job: JobContext,
    *,
    progress: Progress,
    write: WriteObjects | None = None,
    removed_media: Collection[str] = (),
    rebuild: bool = False,
) -> ObjectChange | None:
    """Append new objects, delete those in removed media, and update the index of objects.

    Rows that a failing job has written are removed by the next job.

    Args:
        job: the dataset; its head may have no objects.
        progress: called with the stage and the share that is done; raises to stop.
        write: appends new objects.
        removed_media: ids of media whose objects are deleted; new objects of the same media stay.
        rebuild: rebuild the whole index of objects, instead of updating the affected part.

    Returns:
        The written tables; None if nothing has changed.
    """
    path, head = objects_path(job.table), objects_generation(job.head)
    if head is None and write is None:
        return None
    version_before = roll_back_objects(job)
    objects_job = replace(job, dataset_id=objects_dataset(job.dataset_id), head=head or job.head, table=path)
    new_version = 0 if write is None else write(path, stage_progress(progress, "reading objects", 0.0, 0.5))
    if head is None and not new_version:
        return None
    table = Table(path, new_version or version_before)
    removed = np.empty(0, dtype=bool) if head is None else _rows_in(Table(path, version_before), removed_media)
    if not (new_version or removed.any() or rebuild):
        return None
    if head is not None and removed.all() and not new_version:
        return ObjectChange({}, ObjectSummary(first_free=head.summary.first_free))

    def index_progress(stage: str, share: float) -> None:
        progress(f"objects: {stage}", 0.5 + share / 2 if new_version else share)

    indexed = _update_index(
        objects_job, head is not None, table, version_before, removed, index_progress, rebuild=rebuild
    )
    return finish_objects(job, indexed, path)


def roll_back_objects(job: JobContext) -> int:
    """Roll the table of objects back to the head's version and return it; 0 if there is no table."""
    path, version = objects_path(job.table), job.head.tables.get(OBJECTS)
    if version is not None:
        return add_measure_columns(Table(path, tables.roll_back(path, version) or 0)).version
    # A snapshot may have objects although the head has none.
    return tables.replace(path, [], object_schema(job.config.dimension)) if path.exists() else 0


def object_ids(job: JobContext) -> IdIndex | None:
    """Return the ids of existing objects; None if the dataset has none."""
    version = job.head.tables.get(OBJECTS)
    return None if version is None else IdIndex(Table(objects_path(job.table), version))


def finish_objects(job: JobContext, indexed: WrittenIndex, path: Path) -> ObjectChange:
    """Write the rest of an index of objects, sync it to the disk, and return the change."""
    versions = {MEDIA: indexed.version, **write_rest(indexed, path)}
    tables.sync(path)
    summary = (job.head.summary.objects or ObjectSummary()).with_index(indexed.summary)
    return ObjectChange(versions, summary.with_(n_objects=Table(path, indexed.version).count()))


def _update_index(
    objects_job: JobContext,
    was_indexed: bool,
    table: Table,
    version_before: int,
    removed: npt.NDArray[np.bool_],
    progress: Progress,
    *,
    rebuild: bool,
) -> WrittenIndex:
    if was_indexed:
        return index_changed(
            objects_job, Table(table.path, version_before), table.version, removed, progress, rebuild=rebuild
        )
    summary = objects_job.head.summary.objects
    free = None if summary is None else summary.first_free
    return index(
        table,
        objects_job.config.thresholds,
        progress=progress,
        first_free=free,
        cannot_link=objects_job.cannot_link,
        limits=objects_job.limits,
        resources=IndexResources.of(objects_job),
    )


def _rows_in(table: Table, media_ids: Collection[str]) -> npt.NDArray[np.bool_]:
    """Return the mask of objects that are in some media: bool, shape (rows,)."""
    if not media_ids:
        return np.zeros(table.count(), dtype=bool)
    values = pa.array(sorted(media_ids), pa.string())
    masks = [pc.is_in(batch.column(0), value_set=values) for batch in table.scan(["parent_id"])]
    return np.concatenate([np.empty(0, dtype=bool), *(each.to_numpy(zero_copy_only=False) for each in masks)])
