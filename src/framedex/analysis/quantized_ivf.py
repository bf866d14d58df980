"""Nearest vectors of a query, among all rows or some: vectors as codes, in cells of those that lie near each other.

Cells are looked into from the nearest centroid on (J. Sivic & A. Zisserman, "Video Google", 2003), until a given number
of rows *that may be answers* have been compared. A filter so widens the search as much as it thins out the rows: its
answers are as good as without one, and where it leaves no more rows than that number they are exact.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows
from framedex.analysis.codes import Codes, Rows
from framedex.arrays import Vectors

_REFINED = 4  # times as many as are wanted are compared by both bytes
_LEAST_REFINED = 64


@dataclass(frozen=True)
class Block:
    """Rows, sorted by the cells that they are in.

    Attributes:
        codes: the vectors, M of them.
        starts: int64, shape (C + 1,): where each cell's rows begin, and the end.
    """

    codes: Codes
    starts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """Rows that may be answers.

    Attributes:
        mask: bool, shape (N,): which.
        counts: int64, shape (P, C): how many of each cell of each part.
    """

    mask: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many."""
        return int(self.counts.sum())


class QuantizedIvf:
    """Rows in cells. Rows are numbered through the parts in their order.

    Args:
        centroids: float32, shape (C, D), unit length: of the cells.
        parts: the rows; all by the same cells.
    """

    def __init__(self, centroids: Vectors, parts: Sequence[Block]) -> None:
        self.centroids, self.parts = centroids, tuple(parts)
        self._starts = np.cumsum([0, *(len(part.codes) for part in self.parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def select(self, mask: npt.NDArray[np.bool_]) -> Selection:
        """Return what :meth:`nearest` needs to know of the rows that may be answers.

        Args:
            mask: bool, shape (N,).
        """
        counts = np.empty((len(self.parts), len(self.centroids)), np.int64)
        for number, part in enumerate(self.parts):
            before = np.zeros(len(part.codes) + 1, np.int64)
            np.cumsum(mask[self._rows(number)], out=before[1:])
            counts[number] = np.diff(before[part.starts])
        return Selection(mask, counts)

    def nearest(self, query: Vectors, k: int, selection: Selection, *, n_candidates: int) -> tuple[Rows, Vectors]:
        """Return the nearest rows of a query, nearest first; of equally near ones the first.

        Args:
            query: float32, shape (D,), unit length.
            k: how many; fewer come back where there are no more.
            selection: rows that may be answers.
            n_candidates: how many of these to compare before the search ends.

        Returns:
            rows: int64, shape (≤ k,).
            similarity: float32, shape (≤ k,): dot products.
        """
        found = [
            self._compare(number, query, cells, selection)
            for number, cells in self._visited(query, selection, n_candidates)
        ]
        rows = np.concatenate([np.empty(0, np.int64), *(part for part, _ in found)])
        approximate_scores = np.concatenate([np.empty(0, np.float32), *(part for _, part in found)])
        near = rows[_largest(approximate_scores, max(_REFINED * k, _LEAST_REFINED))]
        similarity = self.similarities(query, near)
        order = np.lexsort((near, -similarity))[:k]
        return near[order], similarity[order]

    def similarities(self, query: Vectors, rows: Rows) -> Vectors:
        """Return the similarities of some rows: float32, shape (rows,)."""
        out = np.empty(len(rows), np.float32)
        for number, part in enumerate(self.parts):
            here = np.flatnonzero((rows >= self._starts[number]) & (rows < self._starts[number + 1]))
            out[here] = part.codes.exact_scores(query, rows[here] - self._starts[number])
        return out

    def vector(self, row: int) -> Vectors:
        """Return the vector of a row: float32, shape (D,), unit length."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.parts[number].codes.vector(row - int(self._starts[number]))

    def all(self, query: Vectors, threads: Executor) -> Vectors:
        """Return the similarities of all rows: float32, shape (N,)."""
        return np.concatenate([np.empty(0, np.float32), *(part.codes.all(query, threads) for part in self.parts)])

    def _rows(self, number: int) -> slice:
        return slice(int(self._starts[number]), int(self._starts[number + 1]))

    def _visited(
        self, query: Vectors, selection: Selection, n_candidates: int
    ) -> list[tuple[int, npt.NDArray[np.int64]]]:
        """Return which cells of each part are looked into."""
        counts = selection.counts.sum(axis=0)
        order = np.argsort(-(self.centroids @ query), kind="stable")
        order = order[counts[order] > 0]
        enough = int(np.searchsorted(np.cumsum(counts[order]), n_candidates)) + 1
        cells = np.sort(order[:enough])
        return [(number, cells[selection.counts[number][cells] > 0]) for number in range(len(self.parts))]

    def _compare(
        self, number: int, query: Vectors, cells: npt.NDArray[np.int64], selection: Selection
    ) -> tuple[Rows, Vectors]:
        """Return the rows of some cells of a part that may be answers, and about how similar they are."""
        part, first = self.parts[number], int(self._starts[number])
        runs = _runs(part.starts[cells], part.starts[cells + 1])
        if (selection.counts[number][cells] == np.diff(part.starts)[cells]).all():
            rows = [np.arange(start, stop) for start, stop in runs]
            found = [part.codes.approximate_scores(query, slice(start, stop)) for start, stop in runs]
            return (
                np.concatenate([np.empty(0, np.int64), *rows]) + first,
                np.concatenate([np.empty(0, np.float32), *found]),
            )
        mask = selection.mask[self._rows(number)]
        held = [
            start + np.flatnonzero(mask[start:stop])
            for start, stop in _runs(part.starts[cells], part.starts[cells + 1])
        ]
        chosen = np.concatenate([np.empty(0, np.int64), *held])
        return chosen + first, part.codes.approximate_scores(query, chosen)


def sorted_by_cell(cell: npt.NDArray[np.integer], count: int) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return (place, starts): where each row goes when rows are sorted by cell, and where each cell begins."""
    order, starts = group_rows(cell, count)
    place = np.empty(len(cell), np.int64)
    place[order] = np.arange(len(cell))
    return place, starts


def _runs(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges with those joined that follow on each other."""
    if not len(starts):
        return []
    breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
    first, last = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(starts)]]) - 1
    return list(zip(starts[first].tolist(), stops[last].tolist(), strict=True))


def _largest(values: Vectors, count: int) -> Rows:
    """Return the places of the largest values, in no order; all of those where there are no more."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[-count:]
