"""Files of maps: the place of each media item in the plane, by id; a cache that may be deleted at any time."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.core.atomic import atomic_file
from framedex.core.regular_files import open_binary
from framedex.storage.column_keys import files_key
from framedex.storage.id_index import find_halves
from framedex.storage.table_versions import Table

_SUFFIX = ".npy"
_ROW = np.dtype([("first", "<u8"), ("second", "<u8"), ("x", "<f4"), ("y", "<f4")])
_KEPT = 2  # maps of a dataset: the present one, and the one that it began with


@dataclass(frozen=True)
class StoredMap:
    """The places of media on a map.

    Attributes:
        key: identifies the neighbour graph that the map follows from.
        ids: uint64, shape (N, 2), ascending by the first column: media ids as two numbers each.
        places: float32, shape (N, 2): x and y.
    """

    key: str
    ids: npt.NDArray[np.uint64]
    places: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.ids)

    def rows_of(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return the row of each of some ids on the map; -1 for others: int64, shape (len(ids),)."""
        return find_halves(self.ids, ids)


def graph_key(table: Table) -> str:
    """Return what identifies the neighbour graph of a table: 32 hexadecimal digits.

    It stays while values of media are edited, and where a deletion writes only layers. An index, also of added media
    alone, gives another one.
    """
    files = files_key(table.unedited, ("neighbours",))
    return blake2b(repr(files).encode(), digest_size=16).hexdigest()


def write_map(folder: Path, key: str, ids: npt.NDArray[np.uint64], places: npt.NDArray[np.float32]) -> StoredMap:
    """Store a map and return it; of the others, the newest stays.

    Args:
        folder: the folder of the dataset's maps.
        key: of the neighbour graph.
        ids: uint64, shape (N, 2), in any order.
        places: float32, shape (N, 2).

    Raises:
        OSError: the file cannot be written.
    """
    found = sorted_map(key, ids, places)
    rows = np.empty(len(found), dtype=_ROW)
    rows["first"], rows["second"] = found.ids.T
    rows["x"], rows["y"] = found.places.T
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / f"{key}{_SUFFIX}") as partial, partial.open("wb") as file:
        np.save(file, rows)
    for each in _files(folder)[_KEPT:]:
        with suppress(OSError):
            each.unlink()
    return found


def sorted_map(key: str, ids: npt.NDArray[np.uint64], places: npt.NDArray[np.float32]) -> StoredMap:
    """Return a map of rows in any order; arguments as for :func:`write_map`."""
    order = np.argsort(ids[:, 0], kind="stable")
    return StoredMap(key, ids[order], np.asarray(places[order], dtype=np.float32))


def read_map(folder: Path, key: str) -> StoredMap | None:
    """Return the map of a neighbour graph; None if there is none, or its file is damaged."""
    path = folder / f"{key}{_SUFFIX}"
    try:
        with open_binary(path) as file:
            rows = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if rows.dtype != _ROW or rows.ndim != 1:
        return None
    places = np.stack([rows["x"], rows["y"]], axis=1)
    ids = np.stack([rows["first"], rows["second"]], axis=1)
    is_whole = bool(np.isfinite(places).all() and (ids[1:, 0] >= ids[:-1, 0]).all())
    return StoredMap(key, ids, places) if is_whole else None


def newest_map(folder: Path) -> StoredMap | None:
    """Return the map that was stored last; None if there is none."""
    maps = (read_map(folder, each.stem) for each in _files(folder))
    return next((each for each in maps if each is not None), None)


def _files(folder: Path) -> Sequence[Path]:
    """Return the files of maps, newest first."""
    try:
        return sorted(folder.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    except OSError:
        return []
