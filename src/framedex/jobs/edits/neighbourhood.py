"""The stored neighbours of few media: who lists them, and what the scores and labels of few media follow from.

Rows are given by number here, see :mod:`framedex.jobs.edits.numbered_rows`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.core.arrays import Mask, RowIds, Vectors
from framedex.core.forks import cached_property
from framedex.jobs.edits.numbered_rows import NumberedRows, list_matrix
from framedex.storage.media import Media
from framedex.storage.media_rows import NEIGHBOURS

_BLOCK_ROWS = 65_536
_SINGLE = 4  # values up to which each is looked for by itself
_NEAR, _SIMILARITY = "neighbours", "neighbour_similarity"
Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer[Any]]


class Neighbourhood:
    """The neighbour lists of a state of media.

    Args:
        media: the media.

    Attributes:
        numbered: the rows of the media by number.
    """

    def __init__(self, media: Media) -> None:
        self._media, self.numbered = media, NumberedRows(media)

    @property
    def row_ids(self) -> RowIds:
        """The row ids by number, uint64; arbitrary for deleted rows."""
        return self.numbered.row_ids

    @cached_property
    def original(self) -> npt.NDArray[np.int32]:
        """For each row the first row with the same vector, which has their neighbour list.

        It is -1 for rows without a vector, and for deleted rows.
        """
        return self.numbered.integers("original")

    @cached_property
    def k(self) -> int:
        """The number of neighbours of each distinct vector."""
        distinct = 0
        for start in range(0, len(self.original), _BLOCK_ROWS):
            block = self.original[start : start + _BLOCK_ROWS]
            distinct += int(np.count_nonzero(block == np.arange(start, start + len(block))))
            if distinct > NEIGHBOURS:
                return NEIGHBOURS
        return max(distinct - 1, 0)

    def listing(self, sources: Rows) -> Rows:
        """Return the rows that have one of some rows in their neighbour list, ascending."""
        if not len(sources):
            return np.empty(0, dtype=np.int64)
        found = self._listing_in_files(sources)
        table = self._media.table
        if _NEAR in table.overlay.columns:
            row_ids, lists = table.overlay.values(_NEAR)
            edited = row_ids[_places(list_matrix(lists), sources)]
            places = np.minimum(np.searchsorted(row_ids, self.row_ids[found]), len(row_ids) - 1)
            is_edited = row_ids[places] == self.row_ids[found]
            found = np.concatenate([found[~is_edited], self.numbered.find_row_ids(edited)])
        found = np.unique(found[found >= 0])
        is_present: Mask = self.original[found] == found  # others were deleted
        return found[is_present]

    def lists(self, sources: Rows) -> tuple[Rows, Vectors]:
        """Return the neighbours of some distinct vectors.

        Args:
            sources: int64, shape (R,): the rows that have a list.

        Returns:
            near: int64, shape (R, k): the neighbours, most similar first; -1 at the end of a list.
            similarity: float32, shape (R, k).
        """
        near, similarity = (
            self.numbered.lists(name, NEIGHBOURS, sources)[:, : self.k] for name in (_NEAR, _SIMILARITY)
        )
        is_gone = (near < 0) | (self.original[near] < 0)
        return np.where(is_gone, -1, near).astype(np.int64), similarity.copy()

    def _listing_in_files(self, sources: Rows) -> Rows:
        """Return the rows whose list in the files has one of some rows; deleted rows may be among them."""
        stored = self.numbered.stored_lists(_NEAR, NEIGHBOURS)
        if stored is not None:
            starts = range(0, len(stored), _BLOCK_ROWS)
            return np.concatenate([start + _places(stored[start : start + _BLOCK_ROWS], sources) for start in starts])
        found, start = [np.empty(0, dtype=np.int64)], 0
        for batch in self._media.table.unedited.scan([_NEAR]):
            found.append(self.numbered.numbers(start + _places(list_matrix(batch.column(0)), sources)))
            start += batch.num_rows
        return np.concatenate(found)


def among(values: Numbers, chosen: Numbers) -> Mask:
    """Return whether each of some row numbers from -1 on is among others from 0 on; faster than a sort for millions."""
    is_chosen = np.zeros(int(max(values.max(initial=0), chosen.max(initial=0))) + 2, dtype=bool)
    is_chosen[chosen] = True  # the last entry is for -1
    return np.asarray(is_chosen[values])


def _places(lists: Numbers, wanted: Rows) -> Rows:
    """Return the places of the lists that have one of the wanted numbers, one for each time.

    Args:
        lists: shape (L, k).
        wanted: int64, shape (W,).
    """
    near = lists.ravel()
    if len(wanted) <= _SINGLE:
        at = np.concatenate([np.flatnonzero(near == each) for each in wanted.tolist()])
    else:
        at = np.flatnonzero(among(near, wanted))
    return np.asarray(at // NEIGHBOURS, dtype=np.int64)


@dataclass(frozen=True)
class GraphPart:
    """Some media whose scores or label issues may change, and all media that decide them.

    Attributes:
        rows: int64, shape (N,), ascending: these media.
        graph: the neighbours of their M distinct vectors; those of vectors whose media do not change are arbitrary.
        inverse: int64, shape (N,): the distinct vector of each media item.
        changing: the number of first vectors whose media may change.
    """

    rows: Rows
    graph: NeighbourGraph
    inverse: Rows
    changing: int

    @cached_property
    def changes(self) -> Mask:
        """For each media item, whether its values may change."""
        return np.asarray(self.inverse < self.changing)


def graph_part(original: Numbers, changing: Rows, near: Rows, similarity: Vectors) -> GraphPart:
    """Return the media of some distinct vectors, and those of their neighbours.

    Args:
        original: shape (rows,): for each row the row of its distinct vector; -1 for rows to leave out.
        changing: int64, shape (R,), ascending: the rows of the distinct vectors.
        near: int64, shape (R, k): their neighbours, -1 at the end of a list.
        similarity: float32, shape (R, k).
    """
    is_needed = np.zeros(len(original) + 1, dtype=bool)  # the last entry is for -1
    is_needed[near] = True
    is_needed[changing], is_needed[-1] = False, False
    needed = np.concatenate([changing, np.flatnonzero(is_needed)])
    is_needed[changing] = True
    number = np.empty(len(original) + 1, dtype=np.int32)
    number[needed], number[-1] = np.arange(len(needed)), -1
    graph = NeighbourGraph(
        np.zeros((len(needed), near.shape[1]), np.int32), np.zeros((len(needed), near.shape[1]), np.float32)
    )
    graph.rows[: len(changing)], graph.similarity[: len(changing)] = number[near], similarity
    rows = np.flatnonzero(is_needed[original])
    return GraphPart(rows, graph, number[original[rows]].astype(np.int64), len(changing))
