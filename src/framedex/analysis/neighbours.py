"""The neighbour graph that everything else is computed from: k nearest neighbours by cosine.

Few rows are compared with all others. Many rows are sorted into cells (see :mod:`framedex.analysis.cells`), and each is
compared with the rows of the cells that it looks into: an inverted-file self-join (H. Jégou, M. Douze & C. Schmid,
"Product quantization for nearest neighbor search", 2011, without the quantisation). How far rows look is measured for
the wanted recall, and where cells would not pay, as with directions without any structure, all rows are compared after
all.
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
    take_rows,
)
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products, run_all
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.arrays import Vectors
from framedex.errors import InvalidEmbedding, InvalidInput
from framedex.progress import ShareProgress

"""Called with the share that is done, 0 to 1, between blocks of work; raises to stop the work."""

DEFAULT_K = 20
DEFAULT_RECALL = 0.97
_EXACT_ROWS = 20_000  # up to here comparing all takes a second or two
_TILE = 1024  # rows of a block when all are compared
_QUERIES = 4096  # rows that are compared with a cell at a time
_OVERHEAD = 2.0  # what small products, sorting in and gathering cost beside large products
_GATHERED = 2_000_000  # candidates that are held before they are sorted into the lists


def ignore_progress(_share: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Graph:
    """The k nearest neighbours of each row, by cosine similarity.

    Attributes:
        rows: int32, shape (N, k): the neighbours' rows, most similar first; ties in row order. Lists that lost rows end
            with -1.
        similarity: float32, shape (N, k), in [-1, 1], descending.
        cells: the cells that they were found by; None where all rows were compared.
        compared: how many similarities were computed, those with centroids among them.
    """

    rows: npt.NDArray[np.int32]
    similarity: npt.NDArray[np.float32]
    cells: Cells | None = field(default=None, compare=False)
    compared: int = 0

    @property
    def k(self) -> int:
        """Neighbours a row."""
        return int(self.rows.shape[1])

    def filled(self) -> "Graph":
        """Return the graph with the last neighbour of a row again where rows that were removed have left gaps."""
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
        InvalidEmbedding: one is not; the message names the first such row.
    """
    for start in range(0, len(vectors), 65536):
        lengths = np.linalg.norm(vectors[start : start + 65536], axis=1)
        wrong = np.flatnonzero(~(np.abs(lengths - 1) < 1e-3))
        if len(wrong):
            row = start + int(wrong[0])
            raise InvalidEmbedding(f"row {row} has length {lengths[wrong[0]]}; vectors must be finite, of unit length")


def nearest(
    vectors: npt.NDArray[np.floating],
    *,
    k: int = DEFAULT_K,
    recall: float = DEFAULT_RECALL,
    least: float = -np.inf,
    seed: int = 0,
    exact: bool | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Graph:
    """Return the k nearest neighbours of each row, without the row itself.

    Memory beside the vectors: 8·k bytes a row for the result, some 100 MB for blocks. The same input and seed give the
    same graph on the same machine.

    Args:
        vectors: float32 or float16, shape (N, D), unit length; may be memory-mapped. Exact copies are better left out
            (:func:`unique_rows`): more than k of them fill each other's lists.
        k: neighbours a row; at most N - 1 are returned.
        recall: the share of true neighbours to be found, above 0.5, below 1; more takes longer. It is measured on a
            sample, so it holds within about one percent.
        least: the recall is that of neighbours at least that similar; others come as they are found.
        seed: of the random sample.
        exact: compare all rows, or never; by default what is cheaper for that recall.
        engine: multiplies; by default the GPU where there is one, else the CPU.
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
        cells = _by_cells(vectors, lists, k, recall, least, seed, engine, progress, forced=exact is False)
        if cells is not None:
            return lists.graph(cells)
        progress = _rest(progress, 0.2)
    _by_tiles(vectors, lists, engine, progress)
    return lists.graph(None)


def _rest(progress: ShareProgress, done: float) -> ShareProgress:
    return lambda share: progress(done + (1 - done) * share)


class Lists:
    """The best neighbours of each row found so far.

    Attributes:
        rows: int32, shape (N, k), in no order; -1 for none.
        similarity: float32, shape (N, k); -inf for none.
        least: float32, shape (N,): what a candidate must exceed; -inf while a list is not full.
        changed: bool, shape (N,): rows whose lists are not those that they began with.
        compared: how many similarities were computed.
    """

    def __init__(self, count: int, k: int) -> None:
        self.rows = np.full((count, k), -1, dtype=np.int32)
        self.similarity = np.full((count, k), -np.inf, dtype=np.float32)
        self.least = np.full(count, -np.inf, dtype=np.float32)
        self.changed = np.ones(count, dtype=bool)
        self.compared = 0
        self._waiting: list[Survivors] = []
        self._held = 0

    @classmethod
    def of(cls, graph: Graph, count: int) -> "Lists":
        """Return the lists of a graph, and behind them empty ones, *count* in all."""
        lists, known = cls(count, graph.k), len(graph.rows)
        lists.rows[:known], lists.similarity[:known] = graph.rows, graph.similarity
        short = np.flatnonzero(graph.rows[:, -1] < 0)
        lists.similarity[short] = np.where(graph.rows[short] < 0, -np.inf, graph.similarity[short])
        lists.least[:known] = lists.similarity[:known, -1]
        lists.changed[:known] = False
        return lists

    def clear(self, rows: npt.NDArray[np.integer]) -> None:
        """Empty some lists."""
        self.rows[rows], self.similarity[rows], self.least[rows] = -1, -np.inf, -np.inf
        self.changed[rows] = True

    def put(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], scores: Vectors) -> None:
        """Set the first lists of some rows: shape (R, ≤ k), descending."""
        width = columns.shape[1]
        self.rows[rows, :width] = columns
        self.similarity[rows, :width] = scores
        if width == self.rows.shape[1]:
            self.least[rows] = scores[:, -1]

    def offer(self, found: Survivors) -> None:
        """Take candidates (rows, other rows, similarities) into account, now or a little later."""
        self._waiting.append(found)
        self._held += len(found[0])
        if self._held >= _GATHERED:
            self.settle()

    def settle(self) -> None:
        """Sort all candidates into the lists."""
        if not self._waiting:
            return
        row, other, score = (np.concatenate([each[part] for each in self._waiting]) for part in range(3))
        self._waiting, self._held = [], 0
        current = score > self.least[row]
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
        kept = rank < k
        others = np.full((len(touched), k), -1, dtype=np.int32)
        scores = np.full((len(touched), k), -np.inf, dtype=np.float32)
        others[group[kept], rank[kept]] = other[kept]
        scores[group[kept], rank[kept]] = score[kept]
        self._merge(touched, others, scores)

    def _merge(self, touched: npt.NDArray[np.integer], others: npt.NDArray[np.int32], scores: Vectors) -> None:
        others = np.concatenate([self.rows[touched], others], axis=1)
        scores = np.concatenate([self.similarity[touched], scores], axis=1)
        k = self.rows.shape[1]
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        scores = np.take_along_axis(scores, best, axis=1)
        self.rows[touched] = np.take_along_axis(others, best, axis=1)
        self.similarity[touched] = scores
        self.least[touched] = scores.min(axis=1)
        self.changed[touched] = True

    def complete(
        self, vectors: VectorSource, engine: Products, rows: npt.NDArray[np.integer] | slice = slice(None)
    ) -> None:
        """Compare rows whose lists are not full, of all or of some rows, with all others."""
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
                    queries, take_rows(content, slice(None)), self.least[some], k + 1
                )
                other = column + start
                foreign = other != some[row]
                self.offer((some[row[foreign]], other[foreign], score[foreign]))
                self.settle()
            self.compared += len(some) * len(vectors)

    def graph(self, cells: Cells | None) -> Graph:
        """Return the lists, sorted."""
        self.settle()
        changed = np.flatnonzero(self.changed)
        for start in range(0, len(changed), 65536):
            part = changed[start : start + 65536]
            # Clipped first, or rows that are equally near after it would not be in row order.
            rows, scores = self.rows[part], np.clip(self.similarity[part], -1, 1)
            order = np.argsort(rows, axis=1)
            rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
            order = np.argsort(np.where(rows < 0, np.float32(2), -scores), axis=1, kind="stable")
            self.rows[part] = np.take_along_axis(rows, order, axis=1)
            self.similarity[part] = np.take_along_axis(scores, order, axis=1)
        np.maximum(self.similarity, -1, out=self.similarity)  # gaps of lists that did not change
        return Graph(self.rows, self.similarity, cells, self.compared)


def _by_row_and_score(row: npt.NDArray[np.integer], score: Vectors) -> npt.NDArray[np.uint64]:
    """Return keys that sort by row, and then by falling score."""
    bits = np.ascontiguousarray(score, dtype=np.float32).view(np.uint32)
    falling = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    return (row.astype(np.uint64) << np.uint64(32)) | falling


def _by_tiles(vectors: Vectors, lists: Lists, engine: Products, progress: ShareProgress) -> None:
    """Compare all rows, each pair once."""
    count, k = lists.rows.shape
    tile = max(_TILE, k + 1)
    starts = range(0, count, tile)

    def within(start: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        rows = take_rows(vectors, slice(start, start + tile))
        return engine.largest(rows, rows, min(k, len(rows) - 1), own=True)

    def note(place: int, found: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        start = place * tile
        lists.put(np.arange(start, start + len(found[0])), found[0] + start, found[1])

    run_all(engine, within, starts, after=note)
    pairs = [(a, b) for distance in range(1, len(starts)) for a, b in zip(starts, starts[distance:], strict=False)]

    def handed(pair: tuple[int, int]) -> tuple[slice, slice, Vectors, Vectors]:
        # Limits as they are now: read on a thread, its timing would decide between equally near neighbours.
        a, b = (slice(start, start + tile) for start in pair)
        return a, b, lists.least[a].copy(), lists.least[b].copy()

    def between(item: tuple[slice, slice, Vectors, Vectors]) -> list[Survivors]:
        a, b, least, back = item
        return engine.above(take_rows(vectors, a), take_rows(vectors, b), least, k, back=back)

    def collect(place: int, found: list[Survivors]) -> None:
        a, b = pairs[place]
        (row, column, score), (other, back, same) = found
        lists.offer((row + a, column + b, score))
        lists.offer((other + b, back + a, same))
        progress((place + 1) / len(pairs))

    run_all(engine, between, map(handed, pairs), after=collect)
    lists.compared += count * (count + tile) // 2
    if not pairs:
        progress(1.0)


def _by_cells(
    vectors: Vectors,
    lists: Lists,
    k: int,
    recall: float,
    least: float,
    seed: int,
    engine: Products,
    progress: ShareProgress,
    *,
    forced: bool,
) -> Cells | None:
    """Compare each row with those of the cells that it looks into; return None where comparing all is cheaper."""
    count, random = len(vectors), np.random.default_rng(seed)
    cells = cell_count(count)
    centroids = find_centroids(
        vectors, cells, engine=engine, random=random, progress=lambda share: progress(0.1 * share)
    )
    reach, compared = measure_reach(
        vectors,
        centroids,
        k=k,
        recall=recall,
        least=least,
        engine=engine,
        random=random,
        progress=lambda share: progress(0.1 + 0.1 * share),
    )
    if not forced and _OVERHEAD * (cells + compared) > count / 2:
        return None
    of_row, looks = probe_cells(
        vectors,
        centroids,
        reach,
        least=4 * k,
        engine=engine,
        progress=lambda share: progress(0.2 + 0.2 * share),
    )
    lists.compared += count * cells
    order, starts = group_rows(of_row, cells)
    join_cells(vectors, lists, order, starts, looks, engine, lambda share: progress(0.4 + 0.6 * share))
    return Cells(centroids, of_row, reach)


def join_cells(
    vectors: Vectors,
    lists: Lists,
    order: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    looks: CellProbes,
    engine: Products,
    progress: ShareProgress,
) -> None:
    """Compare the rows of each cell with each other, then with the rows that look into it from outside."""
    k = lists.rows.shape[1]
    members = [order[a:b].astype(np.int32) for a, b in pairwise(starts)]
    large = [cell for cell, rows in enumerate(members) if len(rows) > 1]

    def within(cell: int) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]:
        return [*_within(vectors, members[cell], k, engine)]

    def put(place: int, found: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]) -> None:
        for rows, columns, scores in found:
            lists.put(rows, columns, scores)
        lists.compared += len(members[large[place]]) ** 2
        progress(0.4 * (place + 1) / len(large))

    run_all(engine, within, large, after=put)
    looked = [cell for cell in range(len(members)) if len(looks.into(cell)) and len(members[cell])]

    def handed(cell: int) -> tuple[int, Vectors]:
        return cell, lists.least[looks.into(cell)]

    def between(item: tuple[int, Vectors]) -> list[Survivors]:
        cell, least = item
        return [*_into(vectors, members[cell], looks.into(cell), least, k, engine)]

    def offer(place: int, found: list[Survivors]) -> None:
        for each in found:
            lists.offer(each)
        lists.compared += len(members[looked[place]]) * len(looks.into(looked[place]))
        progress(0.4 + 0.6 * (place + 1) / len(looked))

    run_all(engine, between, map(handed, looked), after=offer)
    lists.settle()
    lists.complete(VectorsInMemory(vectors), engine)
    progress(1.0)


def _within(
    vectors: Vectors, rows: npt.NDArray[np.int32], k: int, engine: Products
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Vectors]]:
    """Yield (rows, neighbours, similarities) of a cell's rows among themselves, block by block."""
    content = take_rows(vectors, rows)
    k = min(k, len(rows) - 1)
    if len(rows) <= _QUERIES:
        columns, scores = engine.largest(content, content, k, own=True)
        yield rows, rows[columns], scores
        return
    for start in range(0, len(rows), _QUERIES):
        part = slice(start, start + _QUERIES)
        columns, scores = engine.largest(content[part], content, k + 1)
        # The row itself is among the first, or all of those are as near as itself.
        own = columns == np.arange(start, start + len(columns))[:, None]
        own[~own.any(axis=1), -1] = True
        yield rows[part], rows[columns[~own].reshape(-1, k)], scores[~own].reshape(-1, k)


def _into(
    vectors: Vectors,
    rows: npt.NDArray[np.int32],
    outside: npt.NDArray[np.int32],
    least: Vectors,
    k: int,
    engine: Products,
) -> Iterator[Survivors]:
    """Yield candidates in a cell for the rows outside that look into it, above the limit of each."""
    content = take_rows(vectors, rows)
    for start in range(0, len(outside), _QUERIES):
        part = slice(start, start + _QUERIES)
        some = outside[part]
        ((row, column, score),) = engine.above(take_rows(vectors, some), content, least[part], k)
        yield some[row], rows[column], score


def unique_rows(vectors: Vectors) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first row of each set of identical rows, and for each row the place of its set.

    Thousands of exact copies would otherwise fill each other's neighbour lists and hide everything else.

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
    """Return a 64-bit key a row; equal rows have equal keys, others differ but for a chance of about N²/2⁶⁵."""
    multipliers = np.random.default_rng(0x5EED).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), 2048):
        block = np.ascontiguousarray(vectors[start : start + 2048], dtype=np.float32)
        bits = (block + np.float32(0)).view(np.uint32).astype(np.uint64)
        # Values that differ in few bits, such as signs alone, must not meet in the sum: spread them over all 64.
        bits *= np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
        keys[start : start + len(block)] = (bits * multipliers).sum(axis=1, dtype=np.uint64)
    return keys
