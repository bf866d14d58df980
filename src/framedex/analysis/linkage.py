"""Clusters by average linkage under cosine distance, cut at several distances.

For unit vectors the mean similarity of two clusters' pairs is the dot product of their mean vectors, so a cluster is
its mean and its size. Average linkage is reducible: merging two clusters brings no third one nearer to the result than
it was to the nearer of the two. Hence all pairs that are each other's nearest neighbours can be merged at once, round
by round, and the tree is that of the sequential algorithm (D. Müllner, "Modern hierarchical, agglomerative clustering
algorithms", arXiv 1109.2378, 2011; B. Sumengen et al., "Scaling hierarchical agglomerative clustering to billion-sized
datasets", arXiv 2105.11653, 2021).

Each cluster keeps candidates with their exact similarity, and an upper bound on the similarity to anything else. When
its best candidate falls below the bound, its candidates are searched anew among all clusters. So the result does
not depend on how good the first candidates were, only the time does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from framedex.analysis.neighbours import Graph, Progress, Vectors, ignore_progress, largest
from framedex.errors import InvalidInput

_CHUNK_VALUES = 8_000_000
_SEARCHED = 16  # candidates that a new search brings

Labels = npt.NDArray[np.int32]


def average_linkage(
    vectors: Vectors,
    weights: npt.NDArray[np.int64],
    graph: Graph,
    cuts: Sequence[float],
    *,
    progress: Progress = ignore_progress,
) -> Labels:
    """Return flat clusters at several distances, nested in each other.

    Args:
        vectors: float32, shape (N, D), unit length.
        weights: int64, shape (N,): how many identical items each row stands for.
        graph: neighbours of the rows, as first candidates.
        cuts: cosine distances, ascending; clusters whose mean pairwise distance is at most the cut are one.
        progress: called between rounds.

    Returns:
        int32, shape (N, len(cuts)): cluster numbers from 0, in order of their first rows.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    if not cuts or not all(a < b for a, b in pairwise([0.0, *cuts])) or cuts[-1] > 2:
        raise InvalidInput(f"cluster thresholds must be ascending cosine distances in (0, 2], not {list(cuts)}")
    forest = _Forest(vectors, weights, graph, floor=1 - cuts[-1])
    rounds = 0
    while forest.merge_round():
        rounds += 1
        progress(1 - 0.8**rounds)
    return forest.cut(cuts)


@dataclass
class _Edges:
    """Candidate pairs (a < b) and their exact similarity."""

    a: npt.NDArray[np.int64]
    b: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.a)

    def select(self, mask: npt.NDArray[np.bool_]) -> "_Edges":
        return _Edges(self.a[mask], self.b[mask], self.similarity[mask])

    def join(self, other: "_Edges") -> "_Edges":
        return _Edges(
            np.concatenate([self.a, other.a]),
            np.concatenate([self.b, other.b]),
            np.concatenate([self.similarity, other.similarity]),
        )


class _Forest:
    """The clusters during merging. A cluster is named by one of its rows."""

    def __init__(self, vectors: Vectors, weights: npt.NDArray[np.int64], graph: Graph, *, floor: float) -> None:
        self.means = vectors.copy()
        self.sizes = weights.astype(np.float64)
        self.floor = np.float32(floor - 1e-6)  # pairs at the very cut belong together, whatever was rounded
        self.alive = np.ones(len(vectors), dtype=bool)
        self.merges: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]] = []
        complete = graph.k >= len(vectors) - 1
        last = graph.similarity[:, -1] if graph.k and not complete else np.full(len(vectors), self.floor)
        self.bound = np.maximum(last, self.floor).astype(np.float32)
        source = np.repeat(np.arange(len(vectors)), graph.k)
        self.edges = self._candidates(source, graph.rows.ravel(), graph.similarity.ravel())

    def merge_round(self) -> bool:
        """Merge all pairs that are each other's nearest; return whether there was one."""
        best = self._best()
        while self._search(best):
            best = self._best()
        places = np.arange(len(self.edges))
        mutual = (best[self.edges.a] == places) & (best[self.edges.b] == places)
        if not mutual.any():
            return False
        self._merge(self.edges.select(mutual))
        return True

    def cut(self, cuts: Sequence[float]) -> Labels:
        """Return cluster numbers by row and cut, in order of first rows."""
        count = len(self.alive)
        a, b, similarity = (
            np.concatenate([merge[part] for merge in self.merges]) if self.merges else np.empty(0) for part in range(3)
        )
        labels = np.empty((count, len(cuts)), dtype=np.int32)
        for level, distance in enumerate(cuts):
            kept = similarity >= 1 - distance - 1e-6
            ones = np.ones(int(kept.sum()), dtype=np.int8)
            tree = scipy.sparse.coo_array((ones, (a[kept].astype(int), b[kept].astype(int))), shape=(count, count))
            labels[:, level] = number_by_first_row(connected_components(tree, directed=False)[1])
        return labels

    def _best(self) -> npt.NDArray[np.int64]:
        """Return for each cluster the place of its best edge; -1 without edges.

        Edges have one total order (similarity, then place), so the best edge of all is always mutual.
        """
        order = np.argsort(self.edges.similarity, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        best = np.full(len(self.alive), -1, dtype=np.int64)
        np.maximum.at(best, self.edges.a, rank)
        np.maximum.at(best, self.edges.b, rank)
        found = best >= 0
        best[found] = order[best[found]]
        return best

    def _search(self, best: npt.NDArray[np.int64]) -> bool:
        """Search new candidates for clusters that may have a nearer one than they know; return if there were any."""
        known = np.full(len(best), self.floor, dtype=np.float32)
        known[best >= 0] = self.edges.similarity[best[best >= 0]]
        rows = np.flatnonzero(self.alive & (known < self.bound) & (self.bound > self.floor))
        if not len(rows):
            return False
        active = np.flatnonzero(self.alive)
        means = self.means[active]
        column_of = np.empty(len(self.alive), dtype=np.int64)
        column_of[active] = np.arange(len(active))
        found: list[_Edges] = []
        block = max(1, _CHUNK_VALUES // len(active))
        for start in range(0, len(rows), block):
            some = rows[start : start + block]
            scores = self.means[some] @ means.T
            scores[np.arange(len(some)), column_of[some]] = -np.inf
            columns, values = largest(scores, min(_SEARCHED, len(active) - 1))
            all_found = len(active) - 1 <= _SEARCHED
            # The small margin keeps rounding between two ways of multiplying from asking for the search again.
            last = np.full(len(some), self.floor) if all_found else values[:, -1] - np.float32(1e-6)
            self.bound[some] = np.maximum(last, self.floor)
            source = np.repeat(some, columns.shape[1])
            found.append(self._candidates(source, active[columns].ravel(), values.ravel()))
        # What was known comes first and is kept: a pair has one similarity, however it was multiplied out.
        self.edges = _unique(reduce(_Edges.join, found, self.edges), len(self.alive))
        return True

    def _candidates(
        self, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], similarity: npt.NDArray[np.float32]
    ) -> _Edges:
        """Return directed pairs as edges, each once, without those below the floor."""
        edges = _Edges(np.minimum(source, target), np.maximum(source, target), similarity)
        return _unique(edges.select(similarity >= self.floor), len(self.alive))

    def _measured(self, edges: _Edges) -> _Edges:
        """Return the edges with their exact similarity, without those below the floor."""
        chunk = max(1, _CHUNK_VALUES // max(1, self.means.shape[1]))
        for start in range(0, len(edges), chunk):
            part = slice(start, start + chunk)
            edges.similarity[part] = np.einsum(
                "ij,ij->i", self.means[edges.a[part]], self.means[edges.b[part]], dtype=np.float32
            )
        return edges.select(edges.similarity >= self.floor)

    def _merge(self, pairs: _Edges) -> None:
        keep, gone = pairs.a, pairs.b
        self.merges.append((keep, gone, pairs.similarity))
        size, other = self.sizes[keep], self.sizes[gone]
        share = (size / (size + other)).astype(np.float32)
        chunk = max(1, _CHUNK_VALUES // max(1, self.means.shape[1]))
        for start in range(0, len(keep), chunk):
            part = slice(start, start + chunk)
            self.means[keep[part]] *= share[part, None]
            self.means[keep[part]] += (1 - share[part, None]) * self.means[gone[part]]
        self.bound[keep] = share * self.bound[keep] + (1 - share) * self.bound[gone]
        self.sizes[keep] = size + other
        self.alive[gone] = False
        self._relabel(keep, gone)

    def _relabel(self, keep: npt.NDArray[np.int64], gone: npt.NDArray[np.int64]) -> None:
        name = np.arange(len(self.alive))
        name[gone] = keep
        touched = np.zeros(len(self.alive), dtype=bool)
        touched[keep] = True
        a, b = name[self.edges.a], name[self.edges.b]
        edges = _Edges(np.minimum(a, b), np.maximum(a, b), self.edges.similarity).select(a != b)
        changed = touched[edges.a] | touched[edges.b]
        self.edges = edges.select(~changed).join(self._measured(_unique(edges.select(changed), len(self.alive))))


def _unique(edges: _Edges, count: int) -> _Edges:
    _, first = np.unique(edges.a * count + edges.b, return_index=True)
    return _Edges(edges.a[first], edges.b[first], edges.similarity[first])


def number_by_first_row(labels: npt.NDArray[np.integer]) -> Labels:
    """Return the same partition with numbers 0, 1, 2… in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
