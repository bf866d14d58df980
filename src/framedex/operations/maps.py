"""Maps of datasets: tasks that make them, and the places of media in a state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import RowIds
from framedex.errors import NotFound
from framedex.jobs.map import make_map
from framedex.operations.context import Context, check_indexed, open_entities
from framedex.operations.names import Operation
from framedex.records import TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.id_index import id_halves
from framedex.storage.map_files import StoredMap, graph_key, read_map
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import ROW_ID
from framedex.tasks import Commit, Job, Task, TaskProgress, start_task

_MAP = "map"
_BLOCK = 65_536


@dataclass(frozen=True)
class PlacedRows:
    """The rows of a state that have a place on the map.

    Attributes:
        key: identifies the neighbour graph that the map follows from.
        row_ids: uint64, shape (N,), ascending.
        places: float32, shape (N, 2): x and y.
    """

    key: str
    row_ids: RowIds
    places: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.row_ids.nbytes + self.places.nbytes


def placed_rows(context: Context, media: Media) -> PlacedRows:
    """Return the rows of a state that have a place on the map.

    Raises:
        Conflict: the dataset has no index yet.
        NotFound: no map was made of its index.
    """
    check_indexed(context, media)
    if is_empty_object_view(media):
        return PlacedRows("", np.empty(0, np.uint64), np.empty((0, 2), np.float32))
    key = graph_key(media.table)

    def make() -> PlacedRows:
        found = _stored(context, media, key)
        if found is None:
            raise NotFound("there is no map of the present index; make it with ds.map()")
        return _placed(media, found)

    return _kept(context, media, f"{_MAP} {key}", make)


def has_map(context: Context, media: Media) -> bool:
    """Return whether there is a map of the present index.

    Raises:
        Conflict: the dataset has no index yet.
    """
    try:
        placed_rows(context, media)
    except NotFound:
        return False
    return True


def rows_inside(context: Context, media: Media, corners: Sequence[Sequence[float]]) -> RowIds:
    """Return the rows whose place is inside of a polygon, ascending; errors as for :func:`placed_rows`."""
    placed = placed_rows(context, media)
    return placed.row_ids[inside(placed.places, np.asarray(corners, dtype=np.float64))]


def inside(places: npt.NDArray[np.float32], corners: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return whether places are inside of a polygon, by the even-odd rule: bool, shape (N,).

    Args:
        places: float32, shape (N, 2).
        corners: float64, shape (C, 2): its corners; the last one is joined to the first.
    """
    found = np.zeros(len(places), dtype=bool)
    box = np.flatnonzero(((places >= corners.min(axis=0)) & (places <= corners.max(axis=0))).all(axis=1))
    for first in range(0, len(box), _BLOCK):
        rows = box[first : first + _BLOCK]
        x, y = places[rows].T.astype(np.float64)
        within = np.zeros(len(rows), dtype=bool)
        for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if y1 == y2:
                continue
            crosses = (y1 > y) != (y2 > y)
            within ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
        found[rows] = within
    return found


def start_map(context: Context, dataset_id: str, *, objects: bool = False) -> Task:
    """Start the task that makes the map of a dataset, or return the one that does so already.

    Raises:
        Conflict: the dataset has no index yet.
        ReadOnly: the workspace was opened for reading.
    """
    check_indexed(context, open_entities(context, dataset_id, objects=objects))
    config = {"operation": Operation.MAP, "objects": objects}
    with context.catalog.write() as connection:
        task_rows.fail_interrupted(connection)
        record = datasets.find_dataset(connection, dataset_id)
        if (running := task_rows.running_map(connection, dataset_id, config)) is not None:
            return Task(context.runner, running)
        task_id = context.runner.insert(connection, record, TaskType.MAP, config, created_by=context.settings.user)
    return start_task(context.runner, task_id, dataset_id, map_job(context, dataset_id, objects=objects))


def map_job(context: Context, dataset_id: str, *, objects: bool) -> Job:
    """Return the job that makes the map of a dataset's present state."""

    def run(progress: TaskProgress) -> Commit:
        media = open_entities(context, dataset_id, objects=objects)
        if not is_empty_object_view(media):
            make_map(media, context.layout.maps(media.dataset_id), progress=progress.part("placing", 0.0, 1.0))
        return lambda _connection: None

    return run


def map_in_memory(context: Context, media: Media, *, progress: Callable[[float], None]) -> PlacedRows:
    """Return the rows with their places on a map that is made in a workspace that was opened for reading."""
    key = graph_key(media.table)

    def make() -> PlacedRows:
        return _placed(media, _stored(context, media, key) or make_map(media, None, progress=progress))

    return _kept(context, media, f"{_MAP} {key}", make)


def _kept(context: Context, media: Media, kind: str, make: Callable[[], PlacedRows]) -> PlacedRows:
    found: PlacedRows = context.columns.derived(media.table, ("media_id", ROW_ID), kind, make)
    return found


def _stored(context: Context, media: Media, key: str) -> StoredMap | None:
    return read_map(context.layout.maps(media.dataset_id), key)


def _placed(media: Media, found: StoredMap) -> PlacedRows:
    """Return the rows of a state that are on a map."""
    row_ids, places = [np.empty(0, np.uint64)], [np.empty((0, 2), np.float32)]
    for batch in media.scan(["media_id", ROW_ID]):
        for first in range(0, batch.num_rows, _BLOCK):  # the digits of all ids would take much memory
            part = batch.slice(first, _BLOCK)
            rows = found.rows_of(id_halves(part.column(0)))
            held = rows >= 0
            row_ids.append(part.column(1).to_numpy()[held])
            places.append(found.places[rows[held]])
    ids, where = np.concatenate(row_ids), np.concatenate(places)
    if bool((ids[1:] > ids[:-1]).all()):
        return PlacedRows(found.key, ids, where)
    order = np.argsort(ids)
    return PlacedRows(found.key, ids[order], where[order])
