"""Comparison of the rows of cells with each other, and with rows of other cells that probe them: a join by cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import CellProbes, take_rows
from framedex.analysis.neighbour_lists import Lists
from framedex.analysis.products import Products, Survivors, run_all
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

_QUERIES = 4096  # rows compared with a cell at a time
_MOST = 0.6  # the share of two cells' rows that probe from which on one product of all of them is cheaper than two
_MOST_PRODUCTS = 1 << 27  # similarities that are in memory at a time
_MOST_COLUMNS = 65536  # rows with which these are compared at a time
_STEPS = 10  # nearest neighbours of a row whose own nearest are its neighbours, too, if the search missed them
_MOST_STEPS = 16  # rows that a row is then compared with at most
_STEP_ROWS = 2048  # that are compared at a time
_STEP_PRODUCTS = 512  # similarities computed at a time; their vectors stay in the processor's cache


class CellJoin:
    """Comparison of the rows of cells.

    Args:
        vectors: all rows.
        members: int32: the rows of each cell.
        lists: the neighbour lists of all rows.
        engine: computes the matrix products.
    """

    def __init__(
        self, vectors: Vectors, members: Sequence[npt.NDArray[np.int32]], lists: Lists, engine: Products
    ) -> None:
        self._vectors, self._members, self._lists, self._engine = vectors, members, lists, engine
        self._k = lists.rows.shape[1]

    def within(self, progress: ShareProgress) -> None:
        """Compare the rows of each cell with each other; their lists must be empty."""
        lists, members = self._lists, self._members
        large = [cell for cell, rows in enumerate(members) if len(rows) > 1]

        def compared(cell: int) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]:
            return [*_within(self._vectors, members[cell], self._k, self._engine)]

        def put(position: int, result: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]) -> None:
            for rows, columns, scores in result:
                lists.put(rows, columns, scores)
            lists.n_comparisons += len(members[large[position]]) ** 2
            progress((position + 1) / len(large))

        run_all(self._engine, compared, large, after=put)

    def probe(self, probes: CellProbes, progress: ShareProgress, *, again: bool = False) -> None:
        """Compare the rows of each cell with the rows of other cells that probe it.

        Where most rows of two cells probe the other one, all of their rows are compared, and one product serves the
        lists of both.

        Args:
            probes: the rows that probe each cell.
            progress: called between cells.
            again: whether other cells were probed before; what the lists have already is not offered then.
        """
        lists, members = self._lists, self._members

        def with_limits(visit: _Visit) -> tuple[_Visit, Vectors, Vectors | None]:
            own = lists.limits[members[visit.cell]] if visit.is_mutual else None
            return visit, lists.limits[visit.rows], own

        def compared(item: tuple[_Visit, Vectors, Vectors | None]) -> tuple[_Visit, list[Survivors]]:
            visit, limits, own_limits = item
            own, rows = members[visit.cell], visit.rows
            content, visiting = take_rows(self._vectors, own), take_rows(self._vectors, rows)
            found = self._engine.above(visiting, content, limits, self._k, reverse_limits=own_limits)
            offers: list[Survivors] = [(rows[row], own[column], score) for row, column, score in found[:1]]
            return visit, offers + [(own[row], rows[column], score) for row, column, score in found[1:]]

        def offer(_position: int, result: tuple[_Visit, list[Survivors]]) -> None:
            visit, offers = result
            for row, other, score in offers:
                new = (lists.rows[row] != other[:, None]).all(axis=1) if again else slice(None)
                lists.offer((row[new], other[new], score[new]))
            lists.n_comparisons += len(members[visit.cell]) * len(visit.rows)
            progress((visit.cell + 1) / len(members))

        visits = _visits(members, probes, len(lists.rows), may_be_mutual=not again)
        run_all(self._engine, compared, map(with_limits, visits), after=offer)
        lists.settle()

    def two_steps(self, cell: npt.NDArray[np.int32], progress: ShareProgress) -> None:
        """Compare each row with those of other cells that several of its nearest neighbours have among theirs.

        As in neighbour descent (W. Dong, M. Charikar & K. Li, "Efficient k-nearest neighbor graph construction for
        generic similarity measures", 2011), but once, and only to find what the cells missed.
        """
        lists, count = self._lists, len(self._lists.rows)
        nearest = nearest_listed(lists.rows, lists.similarity)
        known = lists.rows.copy()

        def compared(start: int) -> Survivors:
            rows = np.arange(start, min(start + _STEP_ROWS, count), dtype=np.int32)
            return compare_two_steps(self._vectors, rows, nearest, known, cell, limits)

        def offer(position: int, result: Survivors) -> None:
            lists.offer(result)
            progress(min(1.0, (position + 1) * _STEP_ROWS / count))

        limits = lists.limits.copy()
        run_all(self._engine, compared, range(0, count, _STEP_ROWS), after=offer)
        lists.settle()


@dataclass(frozen=True)
class _Visit:
    """Rows that are compared with those of another cell.

    Attributes:
        cell: the cell.
        rows: int32: some thousand rows of other cells.
        is_mutual: whether the rows of the cell are compared with these, too.
    """

    cell: int
    rows: npt.NDArray[np.int32]
    is_mutual: bool


def _visits(
    members: Sequence[npt.NDArray[np.int32]], probes: CellProbes, count: int, *, may_be_mutual: bool
) -> Iterator[_Visit]:
    """Yield the visits to each cell.

    Args:
        members: the rows of each cell.
        probes: the rows that probe each cell.
        count: the number of all rows.
        may_be_mutual: whether all rows of two cells may be compared for the sake of most.
    """
    of_row = np.zeros(count, dtype=np.int32)
    for cell, rows in enumerate(members):
        of_row[rows] = cell
    mutual = _mutual(members, probes, of_row) if may_be_mutual else None
    for cell, own in enumerate(members):
        if not len(own):
            continue
        rows, partners = probes.into(cell), [np.empty(0, np.int32)]
        if mutual is not None:
            rows = rows[~mutual[cell, of_row[rows]]]
            partners += [members[other] for other in np.flatnonzero(mutual[cell]).tolist() if other > cell]
        at_once = min(_QUERIES, max(1, _MOST_PRODUCTS // len(own)))
        for some, is_mutual in ((np.concatenate(partners), True), (rows, False)):
            for start in range(0, len(some), at_once):
                yield _Visit(cell, some[start : start + at_once], is_mutual)


def _mutual(
    members: Sequence[npt.NDArray[np.int32]], probes: CellProbes, of_row: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Return of which two cells most rows of each one probe the other: bool, shape (C, C)."""
    count = len(members)
    enough = _MOST * np.array([len(rows) for rows in members])
    asks = np.zeros((count, count), dtype=bool)
    for cell in range(count):
        asks[cell] = np.bincount(of_row[probes.into(cell)], minlength=count) > enough
    return asks & asks.T


def nearest_listed(rows: npt.NDArray[np.int32], similarity: Vectors) -> npt.NDArray[np.int32]:
    """Return the most similar ones of unordered lists: int32, shape (R, 10) at most; -1 for none."""
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :_STEPS]
    found: npt.NDArray[np.int32] = np.take_along_axis(rows, order, axis=1)
    return found


def compare_two_steps(
    vectors: Vectors,
    rows: npt.NDArray[np.int32],
    nearest: npt.NDArray[np.int32],
    known: npt.NDArray[np.int32],
    cell: npt.NDArray[np.int32],
    limits: Vectors,
) -> Survivors:
    """Return candidates of some rows among the neighbours of their neighbours; see :meth:`CellJoin.two_steps`.

    Args:
        vectors: float32, shape (N, D).
        rows: int32, shape (R,): the rows.
        nearest: int32, shape (N, S): the nearest neighbours of all rows; -1 for none.
        known: int32, shape (N, k): the lists of all rows.
        cell: int32, shape (N,): the cell of each row.
        limits: float32, shape (N,): the similarity that a candidate must exceed.
    """
    row, other = _often_listed(nearest, rows, known, cell)
    score = np.empty(len(row), dtype=np.float32)
    for low in range(0, len(row), _STEP_PRODUCTS):
        part = slice(low, low + _STEP_PRODUCTS)
        one, two = (take_rows(vectors, each[part]) for each in (row, other))
        score[part] = np.einsum("ij,ij->i", one, two)
    nearer = score > limits[row]
    return row[nearer], other[nearer], score[nearer]


def _often_listed(
    nearest: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    known: npt.NDArray[np.int32],
    cell: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return (rows, others): those of other cells that occur most often, and twice, in the lists of a row's neighbours.

    Args:
        nearest: int32, shape (N, S): the nearest neighbours of all rows; -1 where there is none.
        rows: int32, shape (R,): the rows whose neighbours' lists are read.
        known: int32, shape (N, k): others that are not returned.
        cell: int32, shape (N,): the cell of each row.
    """
    listed = np.where(nearest[rows][:, :, None] >= 0, nearest[nearest[rows]], -1).reshape(len(rows), -1)
    listed[cell[listed] == cell[rows][:, None]] = -1
    listed.sort(axis=1)
    first = np.ones(listed.shape, dtype=bool)
    first[:, 1:] = listed[:, 1:] != listed[:, :-1]
    place = np.flatnonzero(first)
    times = np.diff(place, append=first.size)
    row, other = rows[place // listed.shape[1]], listed.ravel()[place]
    often = (times > 1) & (other >= 0)
    row, other, times = row[often], other[often], times[often]
    new = ~(known[row] == other[:, None]).any(axis=1)
    row, other, times = row[new], other[new], times[new]
    order = np.lexsort((other, -times, row))
    row, other = row[order], other[order]
    start = np.flatnonzero(np.diff(row, prepend=-1))
    rank = np.arange(len(row)) - np.repeat(start, np.diff(start, append=len(row)))
    return row[rank < _MOST_STEPS], other[rank < _MOST_STEPS]


def _within(
    vectors: Vectors, rows: npt.NDArray[np.int32], k: int, engine: Products
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]:
    """Yield (rows, neighbours, similarities) within a cell, block by block."""
    k = min(k, len(rows) - 1)
    if len(rows) > _MOST_COLUMNS:
        yield from _within_many(vectors, rows, k, engine)
        return
    content = take_rows(vectors, rows)
    if len(rows) <= _QUERIES:
        columns, scores = engine.largest(content, content, k, own=True)
        yield rows, rows[columns], scores
        return
    for start in range(0, len(rows), _QUERIES):
        part = slice(start, start + _QUERIES)
        columns, scores = engine.largest(content[part], content, k + 1)
        # The row itself is among the k + 1 largest, or all of these are equally near.
        own = columns == np.arange(start, start + len(columns))[:, None]
        own[~own.any(axis=1), -1] = True
        yield rows[part], rows[columns[~own].reshape(-1, k)], scores[~own].reshape(-1, k)


def _within_many(
    vectors: Vectors, rows: npt.NDArray[np.int32], k: int, engine: Products
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]:
    """Yield (rows, neighbours, similarities) within a cell whose similarities to some rows fill much memory."""
    for start in range(0, len(rows), _QUERIES):
        some = rows[start : start + _QUERIES]
        queries = take_rows(vectors, some)
        near, best = np.empty((len(some), 0), np.int32), np.empty((len(some), 0), np.float32)
        for first in range(0, len(rows), _MOST_COLUMNS):
            others = rows[first : first + _MOST_COLUMNS]
            columns, scores = engine.largest(queries, take_rows(vectors, others), min(k + 1, len(others)))
            scores[others[columns] == some[:, None]] = -np.inf
            near, best = np.concatenate([near, others[columns]], axis=1), np.concatenate([best, scores], axis=1)
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            near, best = np.take_along_axis(near, order, axis=1), np.take_along_axis(best, order, axis=1)
        yield some, near, best
