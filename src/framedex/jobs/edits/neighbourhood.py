"""The stored neighbours of few media: who lists them, and what the scores and labels of few media follow from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.neighbours import NeighbourGraph
from framedex.core.arrays import Mask, RowIds, Vectors
from framedex.core.forks import cached_property
from framedex.jobs.edits.rows import read_numbers, read_row_ids
from framedex.storage.column_keys import files_key
from framedex.storage.media import Media
from framedex.storage.media_rows import NEIGHBOURS
from framedex.storage.row_numbers import RowNumbers

_BLOCK_ROWS = 65_536
_ROW_BYTES = 4 * NEIGHBOURS + 8
_SINGLE = 4  # values up to which each is looked for by itself
_LISTS = ("neighbours", "neighbour_similarity")
Rows = npt.NDArray[np.int64]


class Neighbourhood:
    """The neighbour lists of a state of media.

    Args:
        media: the media.
    """

    def __init__(self, media: Media) -> None:
        self._media, self._numbers = media, RowNumbers.of(media.table.overlay)

    @cached_property
    def row_ids(self) -> RowIds:
        """The ids of all rows: uint64, shape (rows,)."""
        return read_row_ids(self._media)

    @cached_property
    def original(self) -> Rows:
        """For each row the first row with the same vector, which has their neighbour list; -1 without a vector."""
        return np.asarray(self._numbers.rows(read_numbers(self._media, "original")), dtype=np.int64)

    @cached_property
    def k(self) -> int:
        """The number of neighbours of each distinct vector."""
        distinct = int(np.count_nonzero(self.original == np.arange(len(self.original))))
        return min(NEIGHBOURS, max(distinct - 1, 0))

    def listing(self, sources: Rows) -> Rows:
        """Return the rows that have one of some rows in their neighbour list, ascending."""
        wanted = self._numbers.numbers(sources)
        table = self._media.table
        found = self._numbers.rows(_listing(self._stored(), wanted))
        found = found[found >= 0]
        if "neighbours" in table.overlay.columns:
            row_ids, lists = table.overlay.values("neighbours")
            edited = np.minimum(np.searchsorted(self.row_ids, row_ids), len(self.row_ids) - 1)
            exists = self.row_ids[edited] == row_ids  # others were deleted
            edited = edited[exists]
            lists = lists.filter(pa.array(exists))
            found = found[~np.isin(found, edited)]
            found = np.concatenate([found, edited[_places(lists, wanted)]])
        return np.unique(found)

    def lists(self, rows: Rows) -> tuple[Rows, Vectors]:
        """Return the neighbours of some distinct vectors.

        Args:
            rows: int64, shape (R,): the rows that have a list.

        Returns:
            near: int64, shape (R, k): the rows of the neighbours, most similar first; -1 at the end of a list.
            similarity: float32, shape (R, k).
        """
        taken = self._media.take(self.row_ids[rows].tolist(), _LISTS)
        near, similarity = (
            taken.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, NEIGHBOURS)
            for name in _LISTS
        )
        present = np.asarray(self._numbers.rows(near), dtype=np.int64)[:, : self.k]
        return present, similarity[:, : self.k].copy()

    def _stored(self) -> Iterator[tuple[Rows, pa.FixedSizeListArray]]:
        """Yield the lists in the files in blocks, with the numbers of their rows.

        They stay as they are, whatever rows are deleted and edited, and so does their copy in the cache.
        """
        columns, table = self._media.columns, self._media.table
        if columns is not None and columns.fits(_ROW_BYTES * len(self.row_ids)):
            key = "lists by number", str(table.path), files_key(table, {"neighbours"})
            held = columns.hold(key, self._read_stored)
            for start in range(0, len(held.lists), _BLOCK_ROWS):
                block = slice(start, start + _BLOCK_ROWS)
                yield held.numbers[block], held.lists[block]
            return
        start = 0
        for batch in table.unedited.scan(["neighbours"]):
            yield self._numbers.numbers(np.arange(start, start + batch.num_rows)), batch.column(0)
            start += batch.num_rows

    def _read_stored(self) -> "_StoredLists":
        lists = self._media.table.unedited.scan(["neighbours"]).read_all().column(0).combine_chunks()
        return _StoredLists(self._numbers.numbers(np.arange(len(lists))), lists)


@dataclass(frozen=True)
class _StoredLists:
    """Neighbour lists with the numbers of their rows: int64, shape (rows,)."""

    numbers: Rows
    lists: pa.FixedSizeListArray

    @property
    def nbytes(self) -> int:
        """The bytes of both."""
        return int(self.numbers.nbytes + self.lists.nbytes)


def among(values: Rows, chosen: Rows) -> Mask:
    """Return whether each of some row numbers from -1 on is among others from 0 on; faster than a sort for millions."""
    is_chosen = np.zeros(int(max(values.max(initial=0), chosen.max(initial=0))) + 2, dtype=bool)
    is_chosen[chosen] = True  # the last entry is for -1
    return np.asarray(is_chosen[values])


def _listing(blocks: Iterator[tuple[Rows, pa.FixedSizeListArray]], wanted: Rows) -> Rows:
    """Return the numbers of the lists that have one of the wanted numbers, one for each time."""
    found = [np.empty(0, dtype=np.int64)]
    for numbers, lists in blocks:
        found.append(numbers[_places(lists, wanted)])
    return np.concatenate(found)


def _places(lists: pa.FixedSizeListArray, wanted: Rows) -> Rows:
    """Return the places of the lists that have one of the wanted numbers, one for each time."""
    listed = np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
    near = lists.flatten().to_numpy(zero_copy_only=False)  # without the lists that are null
    if len(wanted) <= _SINGLE:
        at = np.concatenate([np.flatnonzero(near == each) for each in wanted.tolist()] or [listed[:0]])
    else:
        is_wanted = np.zeros(int(max(near.max(initial=0), wanted.max(initial=0))) + 2, dtype=bool)
        is_wanted[wanted] = True  # the last entry is for -1, the end of a list
        at = np.flatnonzero(is_wanted[near])
    return np.asarray(listed[at // NEIGHBOURS], dtype=np.int64)


@dataclass(frozen=True)
class GraphPart:
    """Some media whose scores or label issues may change, and all media that decide them.

    Attributes:
        rows: int64, shape (N,), ascending: these media.
        graph: the neighbours of their M distinct vectors; those of vectors whose media do not change are arbitrary.
        inverse: int64, shape (N,): the distinct vector of each media item.
        changes: bool, shape (N,): whether its values may change.
    """

    rows: Rows
    graph: NeighbourGraph
    inverse: Rows
    changes: Mask


def graph_part(original: Rows, changing: Rows, near: Rows, similarity: Vectors) -> GraphPart:
    """Return the media of some distinct vectors, and those of their neighbours.

    Args:
        original: int64, shape (rows,): for each row the row of its distinct vector; -1 for rows to leave out.
        changing: int64, shape (R,), ascending: the rows of the distinct vectors.
        near: int64, shape (R, k): their neighbours, -1 at the end of a list.
        similarity: float32, shape (R, k).
    """
    needed = np.union1d(changing, near[near >= 0])
    number = np.full(len(original) + 1, -1, dtype=np.int64)  # the last entry maps -1
    number[needed] = np.arange(len(needed))
    graph = NeighbourGraph(
        np.zeros((len(needed), near.shape[1]), np.int32), np.zeros((len(needed), near.shape[1]), np.float32)
    )
    graph.rows[number[changing]], graph.similarity[number[changing]] = number[near], similarity
    of_row = number[original]
    rows = np.flatnonzero(of_row >= 0)
    is_changing = np.zeros(len(needed), dtype=bool)
    is_changing[number[changing]] = True
    return GraphPart(rows, graph, of_row[rows], is_changing[of_row[rows]])
