"""What becomes of the objects of a dataset in a job: new ones, those in media that go, and their index."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.ids import objects_dataset
from framedex.jobs.context import JobContext
from framedex.jobs.index.changed import index_changed
from framedex.jobs.index.finish import write_rest
from framedex.jobs.index.index import WrittenIndex, index, stage_progress
from framedex.jobs.index.measures import add_measure_columns
from framedex.progress import Progress
from framedex.storage import tables
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import object_schema
from framedex.storage.objects import OBJECTS, objects_generation, objects_path, with_objects
from framedex.storage.table_names import MEDIA
from framedex.storage.tables import Table

Write = Callable[[Path, Callable[[float], None]], int]
"""Given the folder of the table of objects, and a progress, appends rows; returns the new version, 0 for no rows."""


@dataclass(frozen=True)
class ObjectChange:
    """Tables of objects that were written, and what is stored of them with a generation.

    Attributes:
        versions: of the tables, by the names of those of media.
        summary: what the generation's summary says of objects.
    """

    versions: Mapping[str, int]
    summary: Mapping[str, Any]

    def apply(self, tables: Mapping[str, int], summary: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
        """Return tables and summary of a generation with these objects."""
        return with_objects(tables, summary, self.versions, self.summary)


def change_objects(
    job: JobContext,
    *,
    progress: Progress,
    write: Write | None = None,
    gone: Collection[str] = (),
    anew: bool = False,
) -> ObjectChange | None:
    """Write objects behind those that there are, let go those in some media, and index what is left.

    What is written in vain, by a job that fails, is cleared away by the next one.

    Args:
        job: what the job starts from; its head may have no objects yet.
        progress: called with the stage and the share that is done; raises to stop.
        write: writes new objects.
        gone: ids of media whose former objects go, though new ones may have their place.
        anew: index all of them, not only those that the change touches.

    Returns:
        What was written; None if all is as it was.
    """
    path, head = objects_path(job.table), objects_generation(job.head)
    if head is None and write is None:
        return None
    start = roll_back_objects(job)
    own = replace(job, dataset_id=objects_dataset(job.dataset_id), head=head or job.head, table=path)
    added = 0 if write is None else write(path, stage_progress(progress, "reading objects", 0.0, 0.5))
    if head is None and not added:
        return None
    table = Table(path, added or start)
    lost = np.empty(0, dtype=bool) if head is None else _rows_in(Table(path, start), gone)
    if not (added or lost.any() or anew):
        return None
    if head is not None and lost.all() and not added:
        return ObjectChange({}, {"first_free": head.summary["first_free"]})
    index_tell: Progress = lambda stage, share: progress(f"objects: {stage}", 0.5 + share / 2 if added else share)  # noqa: E731
    indexed = _indexed(own, head is not None, table, start, lost, index_tell, anew=anew)
    return settled(job, indexed, path)


def roll_back_objects(job: JobContext) -> int:
    """Make the table of objects of the head its newest version, for the next writer; 0 where there is no table."""
    path, version = objects_path(job.table), job.head.tables.get(OBJECTS)
    if version is not None:
        return add_measure_columns(Table(path, tables.roll_back(path, version) or 0)).version
    # A state of the dataset that is kept may have objects, though the head has none.
    return tables.replace(path, [], object_schema(job.config.dimension)) if path.exists() else 0


def object_ids(job: JobContext) -> IdIndex | None:
    """Return the objects that are there; None if there are none."""
    version = job.head.tables.get(OBJECTS)
    return None if version is None else IdIndex(Table(objects_path(job.table), version))


def settled(job: JobContext, indexed: WrittenIndex, path: Path) -> ObjectChange:
    """Write what is left to write of an index of objects, wait until all is on the disk, and return the change."""
    versions = {MEDIA: indexed.version, **write_rest(indexed, path)}
    tables.sync(path)
    counted = {"n_objects": Table(path, indexed.version).count()}
    return ObjectChange(versions, {**job.head.summary.get(OBJECTS, {}), **indexed.summary, **counted})


def _indexed(
    own: JobContext,
    was_indexed: bool,
    table: Table,
    start: int,
    lost: npt.NDArray[np.bool_],
    progress: Progress,
    *,
    anew: bool,
) -> WrittenIndex:
    if was_indexed:
        return index_changed(own, Table(table.path, start), table.version, lost, progress, anew=anew)
    free = own.head.summary.get(OBJECTS, {}).get("first_free")
    return index(table, own.config.thresholds, progress=progress, first_free=free, cannot_link=own.cannot_link)


def _rows_in(table: Table, media_ids: Collection[str]) -> npt.NDArray[np.bool_]:
    """Return which rows of the table of objects are in some media: bool, shape (rows,)."""
    if not media_ids:
        return np.zeros(table.count(), dtype=bool)
    wanted = pa.array(sorted(media_ids), pa.string())
    found = [pc.is_in(batch.column(0), value_set=wanted) for batch in table.scan(["parent_id"])]
    return np.concatenate([np.empty(0, dtype=bool), *(each.to_numpy(zero_copy_only=False) for each in found)])
