"""Inverted file of quantised vectors: nearest neighbours of a query among all rows, or among rows that pass a filter.

Cells are probed from the nearest centroid on (J. Sivic & A. Zisserman, "Video Google", 2003), until a number of
candidates *that pass the filter* have been compared. So a filter widens the search as much as it reduces the rows, and
the recall stays the same. If no more rows than this number pass the filter, the results are exact.

That number is the one of the hardest queries. A search for which a *reach* was measured compares the nearest cells, and
of the others only those whose centroids are nearly as similar to the query as the hundredth row that it has found.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows
from framedex.analysis.codes import Codes, Rows
from framedex.core.arrays import Vectors

NEAREST = 100
"""The number of results for which searches are calibrated."""
_REFINED = 4  # times k: candidates that are compared by both bytes
_MIN_REFINED = 64
_FIRST_SHARE = 16  # divisor: the nearest cells with this share of the candidates are always compared
_DEVIATIONS = 6  # of an approximate score, that the exact one may be away


@dataclass(frozen=True)
class Block:
    """A block of rows, sorted by cell.

    Attributes:
        codes: the M vectors.
        starts: int64, shape (C + 1,): the first row of each cell, and the end.
    """

    codes: Codes
    starts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """Rows that pass a filter.

    Attributes:
        mask: bool, shape (N,): true for selected rows.
        counts: int64, shape (P, C): the number of selected rows in each cell of each part.
    """

    mask: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """The number of selected rows."""
        return int(self.counts.sum())


class QuantizedIvf:
    """Inverted file of quantised vectors; rows are numbered consecutively through the parts.

    Args:
        centroids: float32, shape (C, D), unit length: the centroids of the cells.
        parts: blocks of rows, all with the same cells.
    """

    def __init__(self, centroids: Vectors, parts: Sequence[Block]) -> None:
        self.centroids, self.parts = centroids, tuple(parts)
        self._starts = np.cumsum([0, *(len(part.codes) for part in self.parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def select(self, mask: npt.NDArray[np.bool_]) -> Selection:
        """Return a selection of rows, for :meth:`nearest`.

        Args:
            mask: bool, shape (N,): true for rows that pass the filter.
        """
        counts = np.empty((len(self.parts), len(self.centroids)), np.int64)
        for number, part in enumerate(self.parts):
            before = np.zeros(len(part.codes) + 1, np.int64)
            np.cumsum(mask[self._rows(number)], out=before[1:])
            counts[number] = np.diff(before[part.starts])
        return Selection(mask, counts)

    def nearest(
        self, query: Vectors, k: int, selection: Selection, *, n_candidates: int, reach: float | None = None
    ) -> tuple[Rows, Vectors]:
        """Return the nearest rows of a query, nearest first; ties in row order.

        Args:
            query: float32, shape (D,), unit length.
            k: the maximum number of results.
            selection: rows that pass the filter.
            n_candidates: the number of selected rows to compare before the search ends.
            reach: of more selected rows, cells are left out whose centroid is less similar than the hundredth row of
                the first cells by more than this, see :meth:`reaches`; None to leave out none.

        Returns:
            rows: int64, shape (≤ k,).
            similarity: float32, shape (≤ k,): dot products.
        """
        cells, similarity = self._nearest_cells(query, selection, n_candidates)
        may_end = reach is not None and selection.total > n_candidates
        first = self._first(cells, selection, n_candidates) if may_end else len(cells)
        rows, approximate_scores = self._compared(query, cells[:first], selection)
        if reach is not None and first < len(cells):
            lowest = approximate_scores[_largest(approximate_scores, max(k, NEAREST))].min()
            cells = cells[: first + np.count_nonzero(similarity[first:] >= lowest - reach)]
        further, further_scores = self._compared(query, cells[first:], selection)
        rows, approximate_scores = np.append(rows, further), np.append(approximate_scores, further_scores)
        near = _largest(approximate_scores, max(_REFINED * k, _MIN_REFINED))
        near = near[np.argsort(-approximate_scores[near])]
        rows, similarity = self._refined(query, k, rows[near], approximate_scores[near])
        order = np.lexsort((rows, -similarity))[:k]
        return rows[order], similarity[order]

    def reaches(self, query: Vectors, selection: Selection, n_candidates: int) -> Vectors:
        """Return the reach that finds each result of a search for a hundred, or for fewer: float32, shape (≤ 100,).

        It is the difference of the last result's similarity and that of the result's centroid, and -1 in the cells that
        are always compared.
        """
        cells, _ = self._nearest_cells(query, selection, n_candidates)
        first = cells[: self._first(cells, selection, n_candidates)]
        rows, similarity = self.nearest(query, NEAREST, selection, n_candidates=n_candidates)
        number = np.searchsorted(self._starts, rows, side="right") - 1
        cell = np.empty(len(rows), np.int64)
        for each in np.unique(number):
            inside = np.flatnonzero(number == each)
            own = rows[inside] - self._starts[each]
            cell[inside] = np.searchsorted(self.parts[each].starts, own, side="right") - 1
        differences = similarity.min(initial=1) - self.centroids[cell] @ query
        return np.where(np.isin(cell, first), np.float32(-1), differences)

    def _first(self, cells: npt.NDArray[np.int64], selection: Selection, n_candidates: int) -> int:
        """Return how many of the nearest cells are compared in any case."""
        before = np.cumsum(selection.counts.sum(axis=0)[cells])
        return int(np.searchsorted(before, max(2 * NEAREST, n_candidates // _FIRST_SHARE))) + 1

    def _refined(self, query: Vectors, k: int, rows: Rows, approximate_scores: Vectors) -> tuple[Rows, Vectors]:
        """Return the similarities of the first rows of candidates, with all that can be among the k nearest.

        Each row that is refined may have to be read from disk. Rows are left out that would not be among the k nearest
        even if the second byte changed their similarity by much more than it does: by six times the standard deviation
        of a rounding error, and by twice as much as in any of the first rows.

        Args:
            query: float32, shape (D,), unit length.
            k: the number of results.
            rows: shape (R,): the candidates, in the order of their approximate scores, largest first.
            approximate_scores: float32, shape (R,).
        """
        certain = max(k, _MIN_REFINED)
        similarity = self.similarities(query, rows[:certain])
        if certain < len(rows):
            expected = 2 * _DEVIATIONS * self._by_part(rows, lambda codes, some: codes.deviations(some)).max()
            change = max(expected, 2 * np.abs(similarity - approximate_scores[:certain]).max())
            lowest = np.partition(similarity, certain - k)[certain - k]
            needed = np.count_nonzero(approximate_scores[certain:] + change >= lowest)
            further = self.similarities(query, rows[certain : certain + needed])
            similarity = np.concatenate([similarity, further])
        return rows[: len(similarity)], similarity

    def similarities(self, query: Vectors, rows: Rows) -> Vectors:
        """Return the similarities of rows to a query: float32, shape (rows,)."""
        return self._by_part(rows, lambda codes, some: codes.exact_scores(query, some))

    def _by_part(self, rows: Rows, values_of: Callable[[Codes, Rows], Vectors], *shape: int) -> Vectors:
        """Return values of rows that are computed from the codes of each part: float32, shape (rows, *shape)."""
        out = np.empty((len(rows), *shape), np.float32)
        for number, part in enumerate(self.parts):
            inside = np.flatnonzero((rows >= self._starts[number]) & (rows < self._starts[number + 1]))
            out[inside] = values_of(part.codes, rows[inside] - self._starts[number])
        return out

    def vector(self, row: int) -> Vectors:
        """Return the vector of a row: float32, shape (D,), unit length."""
        vector: Vectors = self.vectors(np.array([row]))[0]
        return vector

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of rows: float32, shape (rows, D), unit length."""
        return self._by_part(rows, lambda codes, some: codes.vectors(some), self.centroids.shape[1])

    def all(self, query: Vectors, threads: Executor) -> Vectors:
        """Return the similarities of all rows: float32, shape (N,)."""
        return np.concatenate([np.empty(0, np.float32), *(part.codes.all(query, threads) for part in self.parts)])

    def largest(self, queries: Vectors, k: int, threads: Executor, progress: Callable[[float], None]) -> Vectors:
        """Return the largest similarities of all rows to each query: float32, shape (Q, ≤ k), unordered.

        Args:
            queries: float32, shape (Q, D), unit length.
            k: the number of similarities for each query.
            threads: threads with a BLAS of one thread each.
            progress: receives the compared share of the rows.
        """
        best, compared = np.empty((len(queries), 0), np.float32), 0
        for part in self.parts:
            for rows, scores in part.codes.largest(queries, k, threads):
                both = np.concatenate([best, scores], axis=1)
                best = both if both.shape[1] <= k else np.partition(both, both.shape[1] - k, axis=1)[:, -k:]
                compared += rows
                progress(compared / len(self))
        return best

    def _rows(self, number: int) -> slice:
        return slice(int(self._starts[number]), int(self._starts[number + 1]))

    def _nearest_cells(
        self, query: Vectors, selection: Selection, n_candidates: int
    ) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Return (cells to probe, similarity of their centroids), most similar first."""
        counts, similarity = selection.counts.sum(axis=0), self.centroids @ query
        order = np.argsort(-similarity, kind="stable")
        order = order[counts[order] > 0]
        cells = order[: int(np.searchsorted(np.cumsum(counts[order]), n_candidates)) + 1]
        return cells, similarity[cells]

    def _compared(self, query: Vectors, cells: npt.NDArray[np.int64], selection: Selection) -> tuple[Rows, Vectors]:
        """Return the selected rows in cells of all parts, and their approximate similarities."""
        cells = np.sort(cells)
        results = [
            self._compare(number, query, cells[selection.counts[number][cells] > 0], selection)
            for number in range(len(self.parts))
        ]
        rows = np.concatenate([np.empty(0, np.int64), *(part for part, _ in results)])
        return rows, np.concatenate([np.empty(0, np.float32), *(part for _, part in results)])

    def _compare(
        self, number: int, query: Vectors, cells: npt.NDArray[np.int64], selection: Selection
    ) -> tuple[Rows, Vectors]:
        """Return the selected rows in cells of a part, and their approximate similarities."""
        part, first = self.parts[number], int(self._starts[number])
        runs = _runs(part.starts[cells], part.starts[cells + 1])
        if (selection.counts[number][cells] == np.diff(part.starts)[cells]).all():
            part.codes.announce(part.starts[cells], part.starts[cells + 1])
            rows = [np.arange(start, stop) for start, stop in runs]
            results = [part.codes.approximate_scores(query, slice(start, stop)) for start, stop in runs]
            return (
                np.concatenate([np.empty(0, np.int64), *rows]) + first,
                np.concatenate([np.empty(0, np.float32), *results]),
            )
        mask = selection.mask[self._rows(number)]
        selected = [start + np.flatnonzero(mask[start:stop]) for start, stop in runs]
        rows_in_part = np.concatenate([np.empty(0, np.int64), *selected])
        part.codes.announce(rows_in_part, rows_in_part + 1)
        return rows_in_part + first, part.codes.approximate_scores(query, rows_in_part)


def sorted_by_cell(cell: npt.NDArray[np.integer], count: int) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return (position, starts): the position of each row after sorting by cell, and the start of each cell."""
    order, starts = group_rows(cell, count)
    position = np.empty(len(cell), np.int64)
    position[order] = np.arange(len(cell))
    return position, starts


def _runs(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges after joining adjacent ones."""
    if not len(starts):
        return []
    breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
    first, last = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(starts)]]) - 1
    return list(zip(starts[first].tolist(), stops[last].tolist(), strict=True))


def _largest(values: Vectors, count: int) -> Rows:
    """Return the positions of the *count* largest values, unordered; all positions if there are not more."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[-count:]
