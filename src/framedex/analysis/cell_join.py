"""Comparison of the rows of cells with each other, and with rows of other cells that probe them: a join by cells."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import CellProbes, take_rows
from framedex.analysis.neighbour_lists import Lists
from framedex.analysis.products import Products, Survivors, run_all
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

_QUERIES = 4096  # rows compared with a cell at a time
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

    def probe(self, probes: CellProbes, progress: ShareProgress) -> None:
        """Compare the rows of each cell with the rows of other cells that probe it."""
        lists, members = self._lists, self._members
        probed = [cell for cell in range(len(members)) if len(probes.into(cell)) and len(members[cell])]

        def with_limits(cell: int) -> tuple[int, Vectors]:
            return cell, lists.limits[probes.into(cell)]

        def compared(item: tuple[int, Vectors]) -> list[Survivors]:
            cell, limits = item
            return [*_into(self._vectors, members[cell], probes.into(cell), limits, self._k, self._engine)]

        def offer(position: int, result: list[Survivors]) -> None:
            for each in result:
                lists.offer(each)
            lists.n_comparisons += len(members[probed[position]]) * len(probes.into(probed[position]))
            progress((position + 1) / len(probed))

        run_all(self._engine, compared, map(with_limits, probed), after=offer)
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


def _into(
    vectors: Vectors,
    rows: npt.NDArray[np.int32],
    outside: npt.NDArray[np.int32],
    limits: Vectors,
    k: int,
    engine: Products,
) -> Iterator[Survivors]:
    """Yield candidates in a cell for rows of other cells that probe it, above the limit of each row."""
    content = take_rows(vectors, rows)
    for start in range(0, len(outside), _QUERIES):
        part = slice(start, start + _QUERIES)
        some = outside[part]
        ((row, column, score),) = engine.above(take_rows(vectors, some), content, limits[part], k)
        yield some[row], rows[column], score
