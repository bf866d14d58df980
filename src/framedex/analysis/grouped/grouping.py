"""Groups of cells: near cells with about as many rows as fit into memory at a time."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors

_ROUNDS = 8  # of the power iteration
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

    Cells are divided in halves of as many rows along the direction in which their centroids differ most, again and
    again, as in a principal-direction tree (D. Boley, "Principal direction divisive partitioning", 1998).

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
        cells = cells[np.argsort(_along_main_direction(centroids[cells]), kind="stable")]
        total = np.cumsum(sizes[cells])
        middle = int(np.clip(np.searchsorted(total, total[-1] / 2) + 1, 1, len(cells) - 1))
        waiting += [cells[middle:], cells[:middle]]
    in_order = np.concatenate(order)
    rank = np.empty_like(in_order)
    rank[in_order] = np.arange(len(in_order))
    starts = np.concatenate([[0], np.cumsum(sizes[in_order])]).astype(np.int64)
    return Grouping(in_order, rank, starts, np.array(ends, dtype=np.int64))


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
