"""Indices of a table's ids, in 8 to 24 bytes each."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.storage.table_versions import Table

_TEXT = 36
_BLOCK = 65_536
ENTRY_BYTES = 24
"""The bytes of a row in :class:`RowsOfIds`."""
PREFIX_BYTES = 8
"""The bytes of a row in :class:`IdPrefixes`."""
_HEX = np.full(256, 255, dtype=np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGITS = np.array([place for place in range(_TEXT) if place not in (8, 13, 18, 23)])


class IdIndex:
    """The media ids or video ids of a table at one version."""

    def __init__(self, table: Table | None, column: str = "media_id") -> None:
        parts = [] if table is None else [id_halves(batch.column(0)) for batch in table.scan([column])]
        ids = np.concatenate(parts) if parts else np.empty((0, 2), np.uint64)
        self._order = np.lexsort((ids[:, 1], ids[:, 0]))
        self._ids = ids[self._order]

    def __len__(self) -> int:
        return len(self._ids)

    def contains(self, ids: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return for each media id whether the table has it: bool, shape (len(ids),)."""
        return self.positions(ids) >= 0

    def positions(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the position of each media id, the last one if repeated, -1 if absent: int64, shape (len(ids),)."""
        halves = id_halves(pa.array(ids, pa.string()))
        positions = np.full(len(halves), -1, dtype=np.int64)
        # Ids are hashes: equal first halves mean equal ids, except with a probability of 2⁻⁶⁰ a pair.
        start = np.searchsorted(self._ids[:, 0], halves[:, 0], side="left")
        stop = np.searchsorted(self._ids[:, 0], halves[:, 0], side="right")
        for offset in range(int((stop - start).max(initial=0))):
            index = np.minimum(start + offset, len(self._ids) - 1)
            same = (start + offset < stop) & (self._ids[index, 1] == halves[:, 1])
            positions[same] = np.maximum(positions[same], self._order[index[same]])
        return positions


class GrowingIds:
    """Ids of rows that come in batches, in 16 bytes each, to find those that occur twice."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.uint64]] = []  # each sorted, and less than half as long as the one before

    def add(self, ids: pa.StringArray) -> int | None:
        """Add ids; return the place in *ids* of the first one that was added before, None if all are new."""
        halves = id_halves(ids)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        new = halves[order]
        twice = [order[1:][(new[1:] == new[:-1]).all(axis=1)]]
        twice += [np.flatnonzero(find_halves(part, halves) >= 0) for part in self._parts]
        self._parts.append(new)
        while len(self._parts) > 1 and 2 * len(self._parts[-1]) >= len(self._parts[-2]):
            both = np.concatenate([self._parts.pop(-2), self._parts.pop()])
            self._parts.append(both[np.argsort(both[:, 0], kind="stable")])
        places = np.concatenate(twice)
        return int(places.min()) if len(places) else None


class RowsOfIds:
    """The rows of ids, which are looked up in memory.

    Args:
        ids: UUIDs in text form, without nulls.
        row_ids: uint64, shape (len(ids),).
    """

    def __init__(self, ids: pa.ChunkedArray, row_ids: npt.NDArray[np.uint64]) -> None:
        halves = np.empty((len(ids), 2), np.uint64)
        start = 0
        for batch in pa.table({"id": ids}).to_batches(max_chunksize=_BLOCK):  # the digits of all would take much memory
            halves[start : start + len(batch)] = id_halves(batch.column(0))
            start += len(batch)
        order = np.argsort(halves[:, 0])
        self._first, self._second = halves[order, 0], halves[order, 1]
        self._row_ids = row_ids[order]

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return int(self._first.nbytes + self._second.nbytes + self._row_ids.nbytes)

    def find(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the row ids of those of some UUIDs that exist, by UUID."""
        found = {}
        for each, (first, second) in zip(ids, id_halves(pa.array(ids, pa.string())), strict=True):
            place = int(np.searchsorted(self._first, first))
            while place < len(self._first) and self._first[place] == first:  # other ids begin alike once in 2⁶⁰ pairs
                if self._second[place] == second:
                    found[each] = int(self._row_ids[place])
                    break
                place += 1
        return found


class IdPrefixes:
    """The places of ids by their first digits, in 8 bytes each: an id is at one of a few places, or nowhere.

    Args:
        batches: UUIDs in text form, without nulls, batch by batch.
    """

    def __init__(self, batches: Iterable[pa.StringArray]) -> None:
        parts = [_prefixes(each) for each in batches]
        prefixes = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        self._places = np.argsort(prefixes, kind="stable").astype(np.int32)
        self._sorted = prefixes[self._places]

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return int(self._sorted.nbytes + self._places.nbytes)

    def places(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the places of all ids that begin as some do, ascending: int64, shape (P,)."""
        wanted = np.unique(_prefixes(pa.array(ids, pa.string())))
        bounds = (np.searchsorted(self._sorted, wanted, side) for side in ("left", "right"))
        found = [self._places[start:stop] for start, stop in zip(*bounds, strict=True)]
        return np.sort(np.concatenate([np.empty(0, np.int32), *found])).astype(np.int64)


def _prefixes(ids: pa.StringArray) -> npt.NDArray[np.uint32]:
    """Return the numbers of the first eight digits of UUIDs in text form: uint32, shape (N,)."""
    if not len(ids):
        return np.empty(0, np.uint32)
    digits = _HEX[_texts(ids)[:, :8]]
    octets = np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])
    return octets.view(">u4").ravel().astype(np.uint32)


def _texts(ids: pa.StringArray) -> npt.NDArray[np.uint8]:
    """Return the characters of UUIDs in text form: uint8, shape (N, 36)."""
    _, offsets, content = ids.buffers()
    first = int(np.frombuffer(offsets, np.int32)[ids.offset])
    return np.frombuffer(content, np.uint8)[first : first + len(ids) * _TEXT].reshape(-1, _TEXT)


def id_halves(ids: pa.StringArray) -> npt.NDArray[np.uint64]:
    """Return UUIDs in text form as two numbers each: uint64, shape (N, 2)."""
    if not len(ids):
        return np.empty((0, 2), np.uint64)
    digits = _HEX[_texts(ids)[:, _DIGITS]]
    octets = np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])
    return octets.view(">u8").astype(np.uint64)


def find_halves(ids: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the row of each of some UUIDs among others, -1 for those that are not there: int64, shape (M,).

    Args:
        ids: uint64, shape (N, 2), as from :func:`id_halves`, ascending by the first column.
        wanted: uint64, shape (M, 2).
    """
    if not len(ids):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(wanted[:, 0], kind="stable")  # near ids are looked up one after another, in the caches
    place = np.empty(len(wanted), dtype=np.int64)
    place[order] = np.searchsorted(ids[:, 0], wanted[order, 0])
    np.minimum(place, len(ids) - 1, out=place)
    # Ids are hashes: two with equal first halves occur with a probability of 2⁻⁶⁰ a pair.
    return np.where((ids[place] == wanted).all(axis=1), place, -1)
