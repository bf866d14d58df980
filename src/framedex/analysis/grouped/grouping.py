"""Groups of cells: near cells with about as many rows as fit into memory at a time."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors

_ROUNDS = 8  # of the power iteration
_LEAST_PART = 0.3  # of the rows of cells that are divided: each part has so many at least, if no cell is too large
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grouping:
    """Order of cells in which those of a group follow each other.

    Attributes:
        order: int64, shape (C,): the cells in their order.
        rank: int64, shape (C,): the position of each cell in it.
        cell_starts: int64, shape (C + 1,): by position: the place of the first row of each cell, and the end.
        group_cells: int64, shape (G + 1,): the position of the first cell of each group, and the end.
    """

    order: Ints
    rank: Ints
    cell_starts: Ints
    group_cells: Ints

    def __len__(self) -> int:
        return len(self.group_cells) - 1

    @property
    def group_starts(self) -> Ints:
        """int64, shape (G + 1,): the place of the first row of each group, and the end."""
        return self.cell_starts[self.group_cells]

    def places(self, group: int) -> slice:
        """Return the places of a group."""
        start, stop = self.group_starts[group : group + 2].tolist()
        return slice(start, stop)

    def cells(self, group: int) -> range:
        """Return the positions of the cells of a group."""
        start, stop = self.group_cells[group : group + 2].tolist()
        return range(start, stop)

    def group_of(self, positions: npt.NDArray[np.integer]) -> Ints:
        """Return the groups of cells, by position."""
        return np.searchsorted(self.group_cells, positions, side="right") - 1


def group_cells(centroids: Vectors, sizes: Ints, max_rows: int) -> Grouping:
    """Return groups of near cells, each of at most a number of rows, or of a single cell.

    Cells are divided along the direction in which their centroids differ most, again and again, as in a
    principal-direction tree (D. Boley, "Principal direction divisive partitioning", 1998). They are divided where the
    gap between two of them is widest, in the middle of the rows: a cluster of many rows without structure has many
    cells that lie close together, and all of its rows look into all of these, so it should be in one group.

    Args:
        centroids: float32, shape (C, D).
        sizes: int64, shape (C,): the number of rows of each cell.
        max_rows: the maximum number of rows of a group.
    """
    ends, order = [0], []
    waiting = [np.arange(len(centroids))]
    while waiting:
        cells = waiting.pop()
        if sizes[cells].sum() <= max_rows or len(cells) == 1:
            order.append(cells)
            ends.append(ends[-1] + len(cells))
            continue
        along = _along_main_direction(centroids[cells])
        sorting = np.argsort(along, kind="stable")
        cells = cells[sorting]
        middle = _widest_gap(along[sorting], np.cumsum(sizes[cells]))
        waiting += [cells[middle:], cells[:middle]]
    in_order = np.concatenate(order)
    rank = np.empty_like(in_order)
    rank[in_order] = np.arange(len(in_order))
    starts = np.concatenate([[0], np.cumsum(sizes[in_order])]).astype(np.int64)
    return Grouping(in_order, rank, starts, np.array(ends, dtype=np.int64))


def _widest_gap(along: Vectors, rows: Ints) -> int:
    """Return how many cells are before the widest gap in the middle.

    Args:
        along: float32, shape (C,), ascending: where the cells are.
        rows: int64, shape (C,): the number of rows of each cell and of those before it.
    """
    first, last = np.searchsorted(rows, [_LEAST_PART * rows[-1], (1 - _LEAST_PART) * rows[-1]], side="left")
    before = np.clip(np.arange(first, max(last, first + 1)) + 1, 1, len(along) - 1)
    return int(before[np.argmax(along[before] - along[before - 1])])


def _along_main_direction(centroids: Vectors) -> Vectors:
    """Return the coordinates of centroids along their first principal component."""
    centred = centroids - centroids.mean(axis=0)
    direction = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(_ROUNDS):
        direction = (centred @ direction) @ centred
        length = np.linalg.norm(direction)
        if length == 0:
            break
        direction = direction / length
    return np.asarray(centred @ direction)
