"""Clusters by average linkage under cosine distance, cut at several distances.

For unit vectors the mean similarity of two clusters' pairs is the dot product of their mean vectors, so a cluster is
its mean and its weight. Average linkage is reducible: merging two clusters brings no third one nearer to the result
than it was to the nearer of the two. Hence two clusters that are each other's nearest may be merged at any time, in
any order, and the tree is that of the sequential algorithm (D. Müllner, "Modern hierarchical, agglomerative clustering
algorithms", arXiv 1109.2378, 2011).

Up to some thousand clusters, all distances are kept in memory and merged by nearest-neighbour chains (Müllner 2011).
More clusters are merged by their neighbour lists first (see :mod:`framedex.analysis.reciprocal`). Both give the merges
of all distances, so clusters depend on the order of the rows only where the search misses a nearest neighbour, or
where rounding decides.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.mean_vectors import MeanVectors
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import Products
from framedex.analysis.reciprocal import ClusterLists, Merges, search_in_memory
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput

DENSE_ROWS = 12_288
"""Maximum number of rows whose distances are all kept in memory: 600 MB."""

ROUNDING = 1e-6
"""Tolerance for rounding: pairs exactly at the cut belong together."""

_REMAINING_ROWS = 2048  # of more rows, this number of clusters is left to all distances, which take longer than lists
_SLOW = 0.96  # unless more than this share of the clusters is left by the last merges
_COMPACT_ROWS = 256
_PROGRESS_MERGES = 256  # merges between two calls of progress

Labels = npt.NDArray[np.int32]


def average_linkage(
    vectors: Vectors,
    weights: npt.NDArray[np.int64],
    graph: NeighbourGraph,
    cuts: Sequence[float],
    *,
    dense_rows: int = DENSE_ROWS,
    seed: int = 0,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Labels:
    """Return flat clusters at several distances; finer clusters are nested in coarser ones.

    Args:
        vectors: float32 or float16, shape (N, D), unit length - or means of weighted unit vectors; may be
            memory-mapped.
        weights: int64, shape (N,): the number of identical items for each row.
        graph: neighbours of the rows; not used if N ≤ dense_rows.
        cuts: cosine distances, ascending; clusters with a mean pairwise distance of at most the cut are merged.
        dense_rows: maximum number of rows that are linked with all distances in memory.
        seed: seed of the random samples, if neighbours of many clusters are searched again.
        engine: computes neighbours of merged clusters.
        progress: called between blocks of work.

    Returns:
        int32, shape (N, len(cuts)): cluster numbers from 0, in order of their first rows.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    check_cuts(cuts)
    floor, merges = floor_of(cuts), list[Merges]()
    names, means, sizes = np.arange(len(vectors)), vectors, weights.astype(np.float64)
    progress(0.0)
    if len(vectors) > dense_rows:
        search = search_in_memory(floor, seed, engine)
        clusters = ClusterLists.of_graph(MeanVectors(vectors, sizes), graph, floor=floor, search=search)
        merge_by_lists(clusters, merges, dense_rows, progress)
        names, sizes = clusters.names, clusters.means.weights
        means = clusters.means.of(np.arange(len(names)))
    merges.append(link_rest(names, means, sizes, floor, _between(progress, 1 - len(names) / max(1, len(vectors)), 1.0)))
    progress(1.0)
    return cut(merges, cuts, len(vectors))


def check_cuts(cuts: Sequence[float]) -> None:
    """Check the distances at which clusters are cut.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    if not cuts or not all(a < b for a, b in pairwise([0.0, *cuts])) or cuts[-1] > 2:
        raise InvalidInput(f"cluster thresholds must be ascending cosine distances in (0, 2], not {list(cuts)}")


def floor_of(cuts: Sequence[float]) -> float:
    """Return the minimum similarity of a merge."""
    return 1 - cuts[-1] - ROUNDING


def merge_by_lists(
    clusters: ClusterLists,
    merges: list[Merges],
    dense_rows: int,
    progress: ShareProgress,
    *,
    after: Callable[[ClusterLists], None] = lambda _clusters: None,
) -> None:
    """Merge clusters by their lists until few of them are left.

    Args:
        clusters: the clusters.
        merges: the merges so far, to which further ones are appended.
        dense_rows: see :func:`average_linkage`.
        progress: called between blocks of work.
        after: called after each search.
    """
    count = before = len(clusters)
    while len(clusters) > (dense_rows if len(clusters) > _SLOW * before else min(dense_rows, _REMAINING_ROWS)):
        before = len(clusters)
        share = _between(progress, 1 - before / count, 1.0)
        merges.append(clusters.merge(share))
        clusters.search()
        after(clusters)


def link_rest(
    names: npt.NDArray[np.int64],
    means: Vectors,
    weights: npt.NDArray[np.float64],
    floor: float,
    progress: ShareProgress,
) -> Merges:
    """Return the merges of clusters, by their names, with all distances in memory."""
    keep, gone, similarity = _link_all(means, weights, floor, progress)
    return names[keep], names[gone], similarity


def _between(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    """Return the progress of a part of the work."""
    return lambda share: progress(start + (end - start) * share)


def cut(merges: Sequence[Merges], cuts: Sequence[float], count: int) -> Labels:
    """Return cluster numbers at each cut, in order of first rows: int32, shape (count, len(cuts))."""
    a, b, similarity = (np.concatenate([each[part] for each in merges]) for part in range(3))
    labels = np.empty((count, len(cuts)), dtype=np.int32)
    for level, distance in enumerate(cuts):
        near = similarity >= 1 - distance - ROUNDING
        labels[:, level] = connected_components(count, a[near], b[near])[1]
    return labels


def _link_all(vectors: Vectors, weights: npt.NDArray[np.float64], floor: float, progress: ShareProgress) -> Merges:
    """Return the merges of clusters, by their positions, with all distances in memory."""
    if len(vectors) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    means = np.ascontiguousarray(vectors, dtype=np.float32)
    scores = np.matmul(means, means.T, out=_square(len(means)))
    return _Chains(scores, weights, floor=floor).link(progress)


class _Chains:
    """Clusters merged by nearest-neighbour chains.

    A cluster is closed if it was merged into another one, or if its best partner is less similar than the floor.
    """

    def __init__(self, scores: npt.NDArray[np.float32], weights: npt.NDArray[np.float64], *, floor: float) -> None:
        np.fill_diagonal(scores, -np.inf)
        self.scores = scores
        self.weights: list[float] = weights.tolist()
        self.names = np.arange(len(scores))
        self.closed = np.zeros(len(scores), dtype=np.float32)  # -inf for closed clusters
        self.open = len(scores)
        self.floor = floor
        self.targets: list[int] = []
        self.gone: list[int] = []
        self.similarity: list[float] = []

    def link(self, progress: ShareProgress) -> Merges:
        """Return the merges, by positions."""
        start, row, count = 0, np.empty_like(self.closed), self.open
        chain: list[int] = []
        while self.open > 1:
            if len(self.targets) % _PROGRESS_MERGES == 0:
                progress(1 - (self.open / count) ** 2)
            if self.open < len(self.closed) / 2 > _COMPACT_ROWS:
                chain = self._compact(chain)
                start, row = 0, np.empty_like(self.closed)
            if not chain:
                while self.closed[start]:
                    start += 1
                chain.append(start)
            tip = chain[-1]
            np.add(self.scores[tip], self.closed, out=row)
            best = int(row.argmax())
            score = float(row[best])
            # Ties go to the previous cluster of the chain; otherwise chains could go in circles.
            back = len(chain) > 1 and float(row[chain[-2]]) >= score
            if score < self.floor:
                self._close(tip)
                chain.pop()
            elif back:
                self._merge(chain[-2], tip, score)
                del chain[-2:]
            else:
                chain.append(best)
        return np.array(self.targets, np.int64), np.array(self.gone, np.int64), np.array(self.similarity, np.float32)

    def _close(self, position: int) -> None:
        self.closed[position] = -np.inf
        self.open -= 1

    def _merge(self, keep: int, gone: int, score: float) -> None:
        weights, row = self.weights, self.scores[keep]
        share = weights[gone] / (weights[keep] + weights[gone])
        weights[keep] += weights[gone]
        row *= np.float32(1 - share)
        row += self.scores[gone] * np.float32(share)
        self.scores[:, keep] = row
        self._close(gone)
        self.targets.append(int(self.names[keep]))
        self.gone.append(int(self.names[gone]))
        self.similarity.append(score)

    def _compact(self, chain: list[int]) -> list[int]:
        """Remove closed clusters; return the new positions of the chain."""
        active = np.flatnonzero(self.closed == 0)
        scores = _square(len(active))
        np.take(self.scores[active], active, axis=1, out=scores)
        self.scores, self.names = scores, self.names[active]
        self.weights = [self.weights[position] for position in active]
        self.closed = np.zeros(len(active), dtype=np.float32)
        positions: list[int] = np.searchsorted(active, chain).tolist()
        return positions


def _square(side: int) -> npt.NDArray[np.float32]:
    """Return an uninitialised square matrix with a row stride that avoids conflicts in the processor's cache."""
    line = 16
    width = -(-side // line)
    return np.empty((side, (width + 1 - width % 2) * line), dtype=np.float32)[:, :side]


def number_by_first_row(labels: npt.NDArray[np.integer]) -> Labels:
    """Return the same partition, numbered 0, 1, 2… in order of first appearance.

    Args:
        labels: integers from 0, shape (N,); memory grows with the highest one.
    """
    present = np.zeros(int(labels.max(initial=-1)) + 1, dtype=bool)
    first = np.empty(len(present), dtype=np.int64)
    present[labels] = True
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    found = np.flatnonzero(present)
    rank = np.empty(len(present), dtype=np.int32)
    rank[found[np.argsort(first[found])]] = np.arange(len(found), dtype=np.int32)
    out: Labels = rank[labels]
    return out
