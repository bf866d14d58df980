"""Lists of the nearest neighbours of rows: while they are searched, and as the graph that a search gives."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells, take_rows
from framedex.analysis.products import Products, Survivors
from framedex.analysis.vector_sources import VectorSource
from framedex.core.arrays import Vectors

_SHARED = 65536  # lists whose entries are offered in the other direction at a time
_GATHERED = 2_000_000  # maximum number of candidates that are collected before they are sorted into the lists


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
    def over(cls, rows: npt.NDArray[np.int32], similarity: Vectors, *, min_similarity: float = -np.inf) -> "Lists":
        """Return lists that are kept in the given arrays, which may be memory-mapped."""
        lists = cls(0, rows.shape[1], min_similarity=min_similarity)
        lists.rows, lists.similarity = rows, similarity
        lists.limits = np.maximum(similarity.min(axis=1, initial=np.inf), lists.min_similarity)
        lists.changed = np.ones(len(rows), dtype=bool)
        return lists

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
        self.limits[touched] = np.maximum(scores.min(axis=1), self.limits[touched])
        self.changed[touched] = True

    def share(self) -> None:
        """Offer to each row those rows that have it in their lists: a search may have found one direction only."""
        found = [
            missing_directions(self.rows, self.similarity, self.limits, slice(start, start + _SHARED))
            for start in range(0, len(self.rows), _SHARED)
        ]
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
            self.rows[part], self.similarity[part] = sorted_lists(self.rows[part], self.similarity[part])
        np.maximum(self.similarity, -1, out=self.similarity)  # gaps of lists that did not change
        return NeighbourGraph(self.rows, self.similarity, cells, self.n_comparisons)


def sorted_lists(
    rows: npt.NDArray[np.int32], similarity: Vectors, order_of: npt.NDArray[np.integer] | None = None
) -> tuple[npt.NDArray[np.int32], Vectors]:
    """Return lists sorted by descending similarity, ties in row order, empty places last.

    Args:
        rows: int32, shape (R, k); -1 for none.
        similarity: float32, shape (R, k).
        order_of: shape (N,): decides ties, for each row; by default the row's number.
    """
    # Clipping comes first, because it creates ties, which are in row order.
    scores = np.clip(similarity, -1, 1)
    order = np.argsort(rows if order_of is None else np.where(rows < 0, -1, order_of[rows]), axis=1)
    rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
    order = np.argsort(np.where(rows < 0, np.float32(2), -scores), axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def missing_directions(rows: npt.NDArray[np.int32], similarity: Vectors, limits: Vectors, part: slice) -> Survivors:
    """Return, for a part of the rows, the candidates (row, other row, similarity) that have *row* in other rows' lists.

    Args:
        rows: int32, shape (N, k): the lists; -1 for none.
        similarity: float32, shape (N, k).
        limits: float32, shape (N,): the similarity that a candidate must exceed.
        part: the rows whose lists are read.
    """
    other, score = rows[part].ravel(), similarity[part].ravel()
    start, k = part.start, rows.shape[1]
    row = np.repeat(np.arange(start, start + len(other) // k, dtype=np.int32), k)
    nearer = (other >= 0) & (score > limits[other])
    row, other, score = row[nearer], other[nearer], score[nearer]
    new = ~(rows[other] == row[:, None]).any(axis=1)
    return other[new], row[new], score[new]


def _by_row_and_score(row: npt.NDArray[np.integer], score: Vectors) -> npt.NDArray[np.uint64]:
    """Return keys that sort by row, and then by descending score."""
    bits = np.ascontiguousarray(score, dtype=np.float32).view(np.uint32)
    descending = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    return (row.astype(np.uint64) << np.uint64(32)) | descending
