"""Neighbour graph: the k nearest neighbours of each row by cosine similarity, the basis of all further analysis.

If there are few rows, all pairs are compared. Many rows are sorted into cells (see :mod:`framedex.analysis.cells`), and
each row is compared with the rows of the cells that it probes: an inverted-file self-join (H. Jégou, M. Douze &
C. Schmid, "Product quantization for nearest neighbor search", 2011, without the quantisation). The reach of the probes
is measured for the requested recall; rows that are far from all that they found probe further. If cells cost more than
comparing all pairs, as with directions without any structure, all pairs are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import (
    CellProbes,
    Cells,
    cell_count,
    find_centroids,
    group_rows,
    measure_reach,
    probe_cells,
    probe_further,
    take_rows,
)
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products, run_all
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidEmbedding, InvalidInput

DEFAULT_K = 20
DEFAULT_RECALL = 0.97
_EXACT_ROWS = 20_000  # up to this number, comparing all pairs takes a second or two
_TILE = 1024  # rows of a block when all pairs are compared
_QUERIES = 4096  # rows compared with a cell at a time
_OVERHEAD = 2.0  # cost of small products, sorting and gathering, relative to large products
_SHARED = 65536  # lists whose entries are offered in the other direction at a time
_STEPS = 10  # nearest neighbours of a row whose own nearest are its neighbours, too, if the search missed them
_MOST_STEPS = 16  # rows that a row is then compared with at most
_STEP_ROWS = 2048  # that are compared at a time
_STEP_PRODUCTS = 512  # similarities computed at a time; their vectors stay in the processor's cache
_GATHERED = 2_000_000  # maximum number of candidates that are collected before they are sorted into the lists


def ignore_progress(_share: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class NeighbourGraph:
    """Neighbour graph: the k nearest neighbours of each row, by cosine similarity.

    Attributes:
        rows: int32, shape (N, k): the neighbours' rows, most similar first; ties in row order. Lists with
            removed neighbours end with -1.
        similarity: float32, shape (N, k), in [-1, 1], descending.
        cells: the cells of the search; None if all rows were compared.
        n_comparisons: the number of computed similarities, including those with centroids.
    """

    rows: npt.NDArray[np.int32]
    similarity: npt.NDArray[np.float32]
    cells: Cells | None = field(default=None, compare=False)
    n_comparisons: int = 0

    @property
    def k(self) -> int:
        """The number of neighbours per row."""
        return int(self.rows.shape[1])

    def filled(self) -> "NeighbourGraph":
        """Return the graph with gaps of removed neighbours filled by repeating the last neighbour of the list."""
        gaps = self.rows < 0
        if not gaps.any():
            return self
        rows, similarity = self.rows.copy(), self.similarity.copy()
        short = np.flatnonzero(gaps.any(axis=1))
        last = np.maximum(self.k - gaps[short].sum(axis=1) - 1, 0)
        for values in (rows, similarity):
            values[short] = np.where(gaps[short], values[short, last][:, None], values[short])
        return replace(self, rows=rows, similarity=similarity)


def check_vectors(vectors: Vectors) -> None:
    """Check that vectors are finite and of unit length.

    Raises:
        InvalidEmbedding: a vector is not; the message names the first such row.
    """
    for start in range(0, len(vectors), 65536):
        lengths = np.linalg.norm(vectors[start : start + 65536], axis=1)
        invalid = np.flatnonzero(~(np.abs(lengths - 1) < 1e-3))
        if len(invalid):
            row = start + int(invalid[0])
            raise InvalidEmbedding(
                f"row {row} has length {lengths[invalid[0]]}; vectors must be finite, of unit length"
            )


def nearest(
    vectors: npt.NDArray[np.floating],
    *,
    k: int = DEFAULT_K,
    recall: float = DEFAULT_RECALL,
    min_similarity: float = -np.inf,
    seed: int = 0,
    exact: bool | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> NeighbourGraph:
    """Return the k nearest neighbours of each row, without the row itself.

    Memory in addition to the vectors: 8·k bytes per row for the result, and some 100 MB for blocks. The same input and
    seed give the same graph on the same machine.

    Args:
        vectors: float32 or float16, shape (N, D), unit length; may be memory-mapped. Exact copies should be removed
            before (:func:`unique_rows`): more than k copies fill each other's lists.
        k: neighbours per row; at most N - 1 are returned.
        recall: the requested share of true neighbours, above 0.5, below 1; a higher recall takes longer. It is measured
            on a sample, so it holds within about one percent.
        min_similarity: the recall applies to neighbours with at least this similarity; there is no guarantee for
            others.
        seed: seed of the random sample.
        exact: True compares all pairs, False always uses cells; None selects the cheaper way for the recall.
        engine: computes the matrix products; by default on the GPU if there is one, else on the CPU.
        progress: called between blocks.

    Raises:
        InvalidInput: the recall is outside its range.
    """
    if not 0.5 < recall < 1:
        raise InvalidInput(f"recall must be above 0.5 and below 1, not {recall!r}")
    count = len(vectors)
    k = max(0, min(k, count - 1))
    lists = Lists(count, k)
    if k == 0:
        return lists.graph(None)
    engine = engine or (best_products() if count > _EXACT_ROWS else CpuProducts())
    if exact is False or (exact is None and count > _EXACT_ROWS):
        cells = _by_cells(vectors, lists, k, recall, min_similarity, seed, engine, progress, forced=exact is False)
        if cells is not None:
            return lists.graph(cells)
        progress = _rest(progress, 0.2)
    _by_tiles(vectors, lists, engine, progress)
    return lists.graph(None)


def _rest(progress: ShareProgress, done: float) -> ShareProgress:
    return lambda share: progress(done + (1 - done) * share)


class Lists:
    """Lists of each row's best neighbours so far.

    Args:
        count: the number of rows.
        k: neighbours per row.
        min_similarity: candidates must be more similar.
        gathered: the number of candidates that are collected before they are sorted into the lists.

    Attributes:
        rows: int32, shape (N, k), unordered; -1 for none.
        similarity: float32, shape (N, k); -inf for none.
        limits: float32, shape (N,): the similarity that a candidate must exceed; the minimum while a list is not full.
        changed: bool, shape (N,): true for rows whose lists differ from the initial ones.
        n_comparisons: the number of computed similarities.
    """

    def __init__(self, count: int, k: int, *, min_similarity: float = -np.inf, gathered: int = _GATHERED) -> None:
        self.rows = np.full((count, k), -1, dtype=np.int32)
        self.similarity = np.full((count, k), -np.inf, dtype=np.float32)
        self.min_similarity = np.float32(min_similarity)
        self.limits = np.full(count, self.min_similarity, dtype=np.float32)
        self.changed = np.ones(count, dtype=bool)
        self.n_comparisons = 0
        self._waiting: list[Survivors] = []
        self._n_waiting, self._gathered = 0, min(gathered, _GATHERED)

    @classmethod
    def of(cls, graph: NeighbourGraph, count: int) -> "Lists":
        """Return the lists of a graph followed by empty lists, *count* in total."""
        lists, n_indexed = cls(count, graph.k), len(graph.rows)
        lists.rows[:n_indexed], lists.similarity[:n_indexed] = graph.rows, graph.similarity
        short = np.flatnonzero(graph.rows[:, -1] < 0)
        lists.similarity[short] = np.where(graph.rows[short] < 0, -np.inf, graph.similarity[short])
        lists.limits[:n_indexed] = lists.similarity[:n_indexed, -1]
        lists.changed[:n_indexed] = False
        return lists

    def clear(self, rows: npt.NDArray[np.integer]) -> None:
        """Empty some lists."""
        self.rows[rows], self.similarity[rows], self.limits[rows] = -1, -np.inf, self.min_similarity
        self.changed[rows] = True

    def put(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], scores: Vectors) -> None:
        """Set the lists of rows that have none yet: shape (R, ≤ k), descending."""
        width = columns.shape[1]
        self.rows[rows, :width] = columns
        self.similarity[rows, :width] = scores
        if width == self.rows.shape[1]:
            self.limits[rows] = scores[:, -1]

    def offer(self, candidates: Survivors) -> None:
        """Add candidates (rows, other rows, similarities); they are sorted into the lists now or by :meth:`settle`."""
        self._waiting.append(candidates)
        self._n_waiting += len(candidates[0])
        if self._n_waiting >= self._gathered:
            self.settle()

    def settle(self) -> None:
        """Sort all waiting candidates into the lists."""
        if not self._waiting:
            return
        row, other, score = (np.concatenate([each[part] for each in self._waiting]) for part in range(3))
        self._waiting, self._n_waiting = [], 0
        current = score > self.limits[row]
        row, other, score = row[current], other[current], score[current]
        if len(row) == 0:
            return
        k = self.rows.shape[1]
        order = np.argsort(_by_row_and_score(row, score))
        row, other, score = row[order], other[order], score[order]
        first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        touched = row[first]
        group = np.repeat(np.arange(len(first)), np.diff(first, append=len(row)))
        rank = np.arange(len(row)) - first[group]
        within_k = rank < k
        others = np.full((len(touched), k), -1, dtype=np.int32)
        scores = np.full((len(touched), k), -np.inf, dtype=np.float32)
        others[group[within_k], rank[within_k]] = other[within_k]
        scores[group[within_k], rank[within_k]] = score[within_k]
        self._merge(touched, others, scores)

    def _merge(self, touched: npt.NDArray[np.integer], others: npt.NDArray[np.int32], scores: Vectors) -> None:
        others = np.concatenate([self.rows[touched], others], axis=1)
        scores = np.concatenate([self.similarity[touched], scores], axis=1)
        k = self.rows.shape[1]
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        scores = np.take_along_axis(scores, best, axis=1)
        self.rows[touched] = np.take_along_axis(others, best, axis=1)
        self.similarity[touched] = scores
        self.limits[touched] = np.maximum(scores.min(axis=1), self.min_similarity)
        self.changed[touched] = True

    def share(self) -> None:
        """Offer to each row those rows that have it in their lists: a search may have found one direction only."""
        k = self.rows.shape[1]
        found: list[Survivors] = []
        for start in range(0, len(self.rows), _SHARED):
            other, score = (each[start : start + _SHARED].ravel() for each in (self.rows, self.similarity))
            row = np.repeat(np.arange(start, start + len(other) // k, dtype=np.int32), k)
            nearer = (other >= 0) & (score > self.limits[other])
            row, other, score = row[nearer], other[nearer], score[nearer]
            new = ~(self.rows[other] == row[:, None]).any(axis=1)
            found.append((other[new], row[new], score[new]))
        for each in found:
            self.offer(each)
        self.settle()

    def complete(
        self, vectors: VectorSource, engine: Products, rows: npt.NDArray[np.integer] | slice = slice(None)
    ) -> None:
        """Fill lists that are not full by comparing their rows with all others; *rows* limits this to some rows."""
        k, tile = self.rows.shape[1], 16384
        short = np.arange(len(self.rows))[rows]
        short = short[self.rows[short].min(axis=1) < 0]
        for first in range(0, len(short), 512):
            some = short[first : first + 512]
            self.clear(some)
            queries = vectors.take(some)
            tiles = (
                (start + low, block[low : low + tile])
                for start, block in vectors.blocks()
                for low in range(0, len(block), tile)
            )
            for start, content in tiles:
                ((row, column, score),) = engine.above(
                    queries, take_rows(content, slice(None)), self.limits[some], k + 1
                )
                other = column + start
                foreign = other != some[row]
                self.offer((some[row[foreign]], other[foreign], score[foreign]))
                self.settle()
            self.n_comparisons += len(some) * len(vectors)

    def graph(self, cells: Cells | None) -> NeighbourGraph:
        """Return the lists as a graph, each sorted by similarity."""
        self.settle()
        changed = np.flatnonzero(self.changed)
        for start in range(0, len(changed), 65536):
            part = changed[start : start + 65536]
            # Clipping comes first, because it creates ties, which are in row order.
            rows, scores = self.rows[part], np.clip(self.similarity[part], -1, 1)
            order = np.argsort(rows, axis=1)
            rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
            order = np.argsort(np.where(rows < 0, np.float32(2), -scores), axis=1, kind="stable")
            self.rows[part] = np.take_along_axis(rows, order, axis=1)
            self.similarity[part] = np.take_along_axis(scores, order, axis=1)
        np.maximum(self.similarity, -1, out=self.similarity)  # gaps of lists that did not change
        return NeighbourGraph(self.rows, self.similarity, cells, self.n_comparisons)


def _by_row_and_score(row: npt.NDArray[np.integer], score: Vectors) -> npt.NDArray[np.uint64]:
    """Return keys that sort by row, and then by descending score."""
    bits = np.ascontiguousarray(score, dtype=np.float32).view(np.uint32)
    descending = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    return (row.astype(np.uint64) << np.uint64(32)) | descending


def _by_tiles(vectors: Vectors, lists: Lists, engine: Products, progress: ShareProgress) -> None:
    """Compare all pairs of rows, each pair once."""
    count, k = lists.rows.shape
    tile = max(_TILE, k + 1)
    starts = range(0, count, tile)

    def within(start: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        rows = take_rows(vectors, slice(start, start + tile))
        return engine.largest(rows, rows, min(k, len(rows) - 1), own=True)

    def note(position: int, result: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        start = position * tile
        lists.put(np.arange(start, start + len(result[0])), result[0] + start, result[1])

    run_all(engine, within, starts, after=note)
    pairs = [(a, b) for distance in range(1, len(starts)) for a, b in zip(starts, starts[distance:], strict=False)]

    def with_limits(pair: tuple[int, int]) -> tuple[slice, slice, Vectors, Vectors]:
        # The limits are read here: on a thread, its timing would decide between equally near neighbours.
        a, b = (slice(start, start + tile) for start in pair)
        return a, b, lists.limits[a].copy(), lists.limits[b].copy()

    def between(item: tuple[slice, slice, Vectors, Vectors]) -> list[Survivors]:
        a, b, limits, reverse_limits = item
        return engine.above(take_rows(vectors, a), take_rows(vectors, b), limits, k, reverse_limits=reverse_limits)

    def collect(position: int, result: list[Survivors]) -> None:
        a, b = pairs[position]
        (row, column, score), (other, back, same) = result
        lists.offer((row + a, column + b, score))
        lists.offer((other + b, back + a, same))
        progress((position + 1) / len(pairs))

    run_all(engine, between, map(with_limits, pairs), after=collect)
    lists.n_comparisons += count * (count + tile) // 2
    if not pairs:
        progress(1.0)


def _by_cells(
    vectors: Vectors,
    lists: Lists,
    k: int,
    recall: float,
    min_similarity: float,
    seed: int,
    engine: Products,
    progress: ShareProgress,
    *,
    forced: bool,
) -> Cells | None:
    """Compare each row with the rows of the cells that it probes; return None if comparing all pairs is cheaper."""
    count, random = len(vectors), np.random.default_rng(seed)
    cells = cell_count(count)
    centroids = find_centroids(
        vectors, cells, engine=engine, random=random, progress=lambda share: progress(0.1 * share)
    )
    reach = measure_reach(
        vectors,
        centroids,
        k=k,
        recall=recall,
        min_similarity=min_similarity,
        engine=engine,
        random=random,
        progress=lambda share: progress(0.1 + 0.1 * share),
    )
    if not forced and _OVERHEAD * (cells + reach.n_candidates) > count / 2:
        return None
    of_row, probes = probe_cells(
        vectors,
        centroids,
        reach.all,
        min_rows=4 * k,
        engine=engine,
        progress=lambda share: progress(0.2 + 0.1 * share),
    )
    lists.n_comparisons += count * cells
    order, starts = group_rows(of_row, cells)
    join = _CellJoin(vectors, [order[a:b].astype(np.int32) for a, b in pairwise(starts)], lists, engine)
    join.within(lambda share: progress(0.3 + 0.3 * share))
    join.probe(probes, lambda share: progress(0.6 + 0.2 * share))
    further = reach.per_distance * np.sqrt(np.maximum(2 - 2 * lists.similarity.max(axis=1), 0))
    far = np.flatnonzero(further > reach.all)
    probes = probe_further(
        vectors,
        centroids,
        probes,
        rows=far,
        reach=further[far],
        engine=engine,
        progress=lambda share: progress(0.8 + 0.05 * share),
    )
    lists.n_comparisons += len(far) * cells
    join.probe(probes, lambda share: progress(0.85 + 0.1 * share))
    lists.share()
    join.two_steps(of_row, lambda share: progress(0.95 + 0.05 * share))
    lists.complete(VectorsInMemory(vectors), engine)
    progress(1.0)
    return Cells(centroids, of_row, reach.closest)


class _CellJoin:
    """Comparison of the rows of cells.

    Args:
        vectors: all rows.
        members: int32: the rows of each cell.
        lists: the neighbour lists of all rows.
        engine: computes the matrix products.
    """

    def __init__(self, vectors: Vectors, members: list[npt.NDArray[np.int32]], lists: Lists, engine: Products) -> None:
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
        order = np.argsort(-lists.similarity, axis=1, kind="stable")[:, :_STEPS]
        nearest: npt.NDArray[np.int32] = np.take_along_axis(lists.rows, order, axis=1)
        known = lists.rows.copy()

        def compared(start: int) -> Survivors:
            rows = np.arange(start, min(start + _STEP_ROWS, count), dtype=np.int32)
            row, other = _often_listed(nearest, rows, known, cell)
            score = np.empty(len(row), dtype=np.float32)
            for low in range(0, len(row), _STEP_PRODUCTS):
                part = slice(low, low + _STEP_PRODUCTS)
                one, two = (take_rows(self._vectors, each[part]) for each in (row, other))
                score[part] = np.einsum("ij,ij->i", one, two)
            nearer = score > limits[row]
            return row[nearer], other[nearer], score[nearer]

        def offer(position: int, result: Survivors) -> None:
            lists.offer(result)
            progress(min(1.0, (position + 1) * _STEP_ROWS / count))

        limits = lists.limits.copy()
        run_all(self._engine, compared, range(0, count, _STEP_ROWS), after=offer)
        lists.settle()


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
    content = take_rows(vectors, rows)
    k = min(k, len(rows) - 1)
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


def unique_rows(vectors: Vectors) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first row of each set of identical rows, and the number of each row's set.

    Without this, thousands of exact copies would fill each other's neighbour lists and hide all other neighbours.

    Returns:
        first: int64, shape (M,), ascending.
        inverse: int64, shape (N,): ``vectors[first[inverse]]`` equals ``vectors``.
    """
    keys = _row_keys(vectors)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def _row_keys(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key per row; equal rows have equal keys, and collisions have a probability of about N²/2⁶⁵."""
    multipliers = np.random.default_rng(0x5EED).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), 2048):
        block = np.ascontiguousarray(vectors[start : start + 2048], dtype=np.float32)
        bits = (block + np.float32(0)).view(np.uint32).astype(np.uint64)
        # Values that differ in few bits, such as the sign, must not cancel out in the sum: spread them over 64 bits.
        bits *= np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
        keys[start : start + len(block)] = (bits * multipliers).sum(axis=1, dtype=np.uint64)
    return keys
