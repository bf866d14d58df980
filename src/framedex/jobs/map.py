"""The map of a dataset: a place in the plane for each media item, from the kept neighbours."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.layout import Points, aligned, place_rows, principal_components
from framedex.core.progress import ShareProgress
from framedex.jobs.index.columns import read_neighbours
from framedex.storage.id_index import id_halves
from framedex.storage.map_files import StoredMap, graph_key, newest_map, sorted_map, write_map
from framedex.storage.media import Media
from framedex.storage.stored_vectors import StoredVectors

Rows = npt.NDArray[np.int64]
_KNOWN_SHARE = 0.8  # rows with an earlier place from which on a map is only adjusted
_READ_SHARE = 0.05


def make_map(media: Media, folder: Path | None, *, progress: ShareProgress) -> StoredMap:
    """Place all media with an embedding that are indexed, and store the map.

    The map begins with the newest one of the folder, if it has most of the media, so that it stays recognisable. Equal
    media have equal places.

    Args:
        media: the media, or the objects.
        folder: the folder of maps; None to store nothing.
        progress: called with the share that is done; raises to stop.

    Raises:
        WorkspaceError: the table is damaged.
        OSError: the map cannot be written.
    """
    table = media.table
    key = graph_key(table)
    neighbours, first, positions, inverse = read_neighbours(table)
    ids = _ids(media, positions)
    progress(_READ_SHARE / 2)
    start = principal_components(StoredVectors(table, first))
    progress(_READ_SHARE)
    # Of rows with equal vectors the first one stands for all.
    at_first = np.full(len(first), -1, dtype=np.int64)
    at_first[inverse[::-1]] = np.arange(len(inverse))[::-1]
    before = None if folder is None else newest_map(folder)
    known, earlier = _earlier(before, ids[at_first])
    is_known = len(first) > 0 and len(known) >= _KNOWN_SHARE * len(first)
    if is_known:
        start = _begin(neighbours, start, known, earlier)

    def placing(share: float) -> None:
        progress(_READ_SHARE + (1 - _READ_SHARE) * share)

    places = place_rows(neighbours, start, is_known=is_known, progress=placing)
    places = aligned(places, earlier, known, np.arange(len(known)))[inverse]
    return sorted_map(key, ids, places) if folder is None else write_map(folder, key, ids, places)


def _ids(media: Media, positions: Rows) -> npt.NDArray[np.uint64]:
    """Return the media ids of rows as two numbers each."""
    parts = [id_halves(batch.column(0)) for batch in media.table.scan(["media_id"])]
    return np.concatenate(parts)[positions] if parts else np.empty((0, 2), np.uint64)


def _earlier(before: StoredMap | None, ids: npt.NDArray[np.uint64]) -> tuple[Rows, Points]:
    """Return the rows that an earlier map has, and their places there."""
    if before is None:
        return np.empty(0, np.int64), np.empty((0, 2), np.float32)
    rows = before.rows_of(ids)
    known = np.flatnonzero(rows >= 0)
    return known, before.places[rows[known]]


def _begin(neighbours: npt.NDArray[np.int32], start: Points, known: Rows, earlier: Points) -> Points:
    """Return where rows begin: at their earlier places, and new ones among their neighbours that have one.

    Args:
        neighbours: int32, shape (N, k); -1 at the end of a list.
        start: float32, shape (N, 2): places of their own for rows without such neighbours, as far as possible.
        known: int64, shape (K,): the rows with an earlier place.
        earlier: float32, shape (K, 2): these places.
    """
    begin = np.full_like(start, np.nan)
    begin[known] = earlier
    new = np.flatnonzero(np.isnan(begin[:, 0]))
    near = neighbours[new]
    around = np.asarray(begin[near], dtype=np.float32)
    has_place = np.isfinite(around[:, :, 0]) & (near >= 0)
    count = np.maximum(has_place.sum(axis=1), 1)[:, None]
    means = np.where(has_place[:, :, None], around, 0).sum(axis=1) / count
    # Principal components have another scale than places; on the scale of places they are a place near others like it.
    scale = earlier.std(axis=0) / np.maximum(start[known].std(axis=0), 1e-9)
    others = start[new] * scale + earlier.mean(axis=0)
    begin[new] = np.where(has_place.any(axis=1, keepdims=True), means, others)
    return begin
