"""Clusters by average linkage under cosine distance, cut at several distances.

For unit vectors the mean similarity of two clusters' pairs is the dot product of their mean vectors, so a cluster is
its mean and its weight. Average linkage is reducible: merging two clusters brings no third one nearer to the result
than it was to the nearer of the two. Hence two clusters that are each other's nearest may be merged at any time, in
any order, and the tree is that of the sequential algorithm (D. Müllner, "Modern hierarchical, agglomerative clustering
algorithms", arXiv 1109.2378, 2011; B. Sumengen et al., "Scaling hierarchical agglomerative clustering to billion-sized
datasets", arXiv 2105.11653, 2021).

Up to some thousand clusters, all distances are kept in memory and merged by nearest-neighbour chains (Müllner 2011).
This is exact. More clusters are linked in rounds. A round packs near clusters into blocks and follows chains within
each block. A cluster waits if there may be a nearer one outside of its block. Then the neighbours of the remaining
clusters are computed again. The independent blocks are from L. Dhulipala et al., "TeraHAC: Hierarchical Agglomerative
Clustering of Trillion-Edge Graphs", arXiv 2308.03578, 2023, as is the slack: a merge may be less similar by this amount
than one with a cluster outside of the block.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import NeighbourGraph, ignore_progress, nearest
from framedex.analysis.products import Products
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput

DENSE_ROWS = 12_288
"""Maximum number of clusters whose distances are all kept in memory: 600 MB."""
SLACK = 0.005
"""Similarity by which a merge within a block may be worse than one with a cluster outside of the block."""

ROUNDING = 1e-6
"""Tolerance for rounding: pairs exactly at the cut belong together."""

_BLOCK_ROWS = 1500
_COMPACT_ROWS = 256
_PROGRESS_MERGES = 256  # merges between two calls of progress
_SUMMED_ROWS = 32_768
_STALLED = 0.9  # if more than this share of the clusters remains after a round, the slack doubles

_PEELS = 12  # maximum steps of splitting large components
_PEEL_SHARE = 0.25  # share of the weakest edges that a step removes

Labels = npt.NDArray[np.int32]
Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]
"""(row, row, similarity) of each merge; a cluster is identified by one of its rows."""


def average_linkage(
    vectors: Vectors,
    weights: npt.NDArray[np.int64],
    graph: NeighbourGraph,
    cuts: Sequence[float],
    *,
    dense_rows: int = DENSE_ROWS,
    slack: float = SLACK,
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
        dense_rows: maximum number of clusters that are linked exactly, with all distances in memory.
        slack: see :data:`SLACK`; 0 gives the exact order of merges, as far as the graph is complete.
        engine: computes neighbours between rounds.
        progress: called between blocks of work.

    Returns:
        int32, shape (N, len(cuts)): cluster numbers from 0, in order of their first rows.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    if not cuts or not all(a < b for a, b in pairwise([0.0, *cuts])) or cuts[-1] > 2:
        raise InvalidInput(f"cluster thresholds must be ascending cosine distances in (0, 2], not {list(cuts)}")
    forest = _Forest(vectors, weights, floor=1 - cuts[-1] - ROUNDING, slack=slack)
    progress = _monotonic(progress)
    progress(0.0)
    current: NeighbourGraph | None = graph
    while len(forest) > dense_rows:
        if current is None:
            current = nearest(
                forest.means, min_similarity=forest.floor, engine=engine, progress=forest.share(progress, 0.0, 0.5)
            )
        before = len(forest)
        forest.link_blocks(current, forest.share(progress, 0.5, 1.0))
        if len(forest) == before:  # no two near clusters share a block; the next round could stall, too
            forest.link_nearest(current)
        if len(forest) > _STALLED * before:  # clusters of different blocks wait for each other in a cycle
            forest.slack *= 2
        current = None  # computed again for the remaining clusters
    forest.link_all(forest.share(progress, 0.0, 2.0))
    progress(1.0)
    return cut(forest.merges, cuts, len(vectors))


def _monotonic(progress: ShareProgress) -> ShareProgress:
    """Return a progress function that never falls: a round may leave more work than estimated."""
    highest = 0.0

    def report(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        progress(highest)

    return report


def cut(merges: Merges, cuts: Sequence[float], count: int) -> Labels:
    """Return cluster numbers at each cut, in order of first rows: int32, shape (count, len(cuts))."""
    a, b, similarity = merges
    labels = np.empty((count, len(cuts)), dtype=np.int32)
    for level, distance in enumerate(cuts):
        near = similarity >= 1 - distance - ROUNDING
        labels[:, level] = connected_components(count, a[near], b[near])[1]
    return labels


class _Forest:
    """Active clusters, which may still be merged.

    Attributes:
        means: float32, shape (A, D): the mean vectors.
        weights: float64, shape (A,): the number of items of each cluster.
        names: int64, shape (A,): one row of each cluster, which identifies it.
    """

    def __init__(self, vectors: Vectors, weights: npt.NDArray[np.int64], *, floor: float, slack: float) -> None:
        self.means = vectors
        self.weights = weights.astype(np.float64)
        self.names = np.arange(len(vectors), dtype=np.int64)
        self.floor, self.slack = floor, slack
        self._count = max(1, len(vectors))
        self._merges: list[Merges] = []

    def __len__(self) -> int:
        return len(self.names)

    @property
    def merges(self) -> Merges:
        """All merges so far."""
        empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        a, b, similarity = (np.concatenate([empty[part], *(each[part] for each in self._merges)]) for part in range(3))
        return a, b, similarity

    def share(self, progress: ShareProgress, start: float, end: float) -> ShareProgress:
        """Return a progress function for a part of this round; a round's time is estimated from its clusters."""
        remaining = len(self) / self._count
        return lambda share: progress(1 - remaining + 0.5 * remaining * (start + (end - start) * share))

    def link_all(self, progress: ShareProgress) -> None:
        """Merge all remaining clusters, with all distances in memory."""
        if len(self) > 1:
            everything = np.arange(len(self))
            self._merge([self._link_block(everything, np.full(len(self), -np.inf, np.float32), progress)])

    def link_blocks(self, graph: NeighbourGraph, progress: ShareProgress) -> None:
        """Merge clusters within blocks that have no nearer cluster outside; drop clusters without a near cluster."""
        blocks = _blocks(graph, self.floor)
        outside = _max_outside(graph, blocks, len(self))
        near = graph.similarity[:, 0] >= self.floor
        merges: list[Merges] = []
        for number, block in enumerate(blocks):
            merges.append(self._link_block(block, outside[block]))
            progress((number + 1) / len(blocks))
        self._merge(merges, keep=near)

    def link_nearest(self, graph: NeighbourGraph) -> None:
        """Merge clusters that are each other's nearest, or the most similar two if there is no such pair."""
        best, similarity = graph.rows[:, 0].astype(np.int64), graph.similarity[:, 0]
        row = np.arange(len(best))
        mutual = np.flatnonzero((best[best] == row) & (row < best) & (similarity >= self.floor))
        if not len(mutual):
            mutual = np.array([similarity.argmax()])
        self._merge([(mutual, best[mutual], similarity[mutual])])

    def _link_block(
        self, block: npt.NDArray[np.int64], outside: npt.NDArray[np.float32], progress: ShareProgress = ignore_progress
    ) -> Merges:
        """Return the merges within a block, by positions in the forest."""
        means = np.ascontiguousarray(self.means[block], dtype=np.float32)
        scores = np.matmul(means, means.T, out=_square(len(block)))
        block_forest = _Block(scores, self.weights[block], outside, floor=self.floor, slack=self.slack)
        a, b, similarity = block_forest.link(progress)
        return block[a], block[b], similarity

    def _merge(self, merges: Sequence[Merges], *, keep: npt.NDArray[np.bool_] | None = None) -> None:
        a, b, similarity = (np.concatenate([each[part] for each in merges]) for part in range(3))
        self._merges.append((self.names[a], self.names[b], similarity))
        count, label = connected_components(len(self), a, b)
        alive = np.ones(count, dtype=bool)
        if keep is not None:
            alive[:] = np.bincount(label, weights=keep, minlength=count) > 0
        self._collapse(label, alive)

    def _collapse(self, label: npt.NDArray[np.int32], alive: npt.NDArray[np.bool_]) -> None:
        """Merge clusters with the same label, and drop those whose label is not alive."""
        order = np.argsort(label, kind="stable")
        order = order[alive[label[order]]]
        grouped = label[order]
        first = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]])) if len(order) else order
        means = np.empty((len(first), self.means.shape[1]), dtype=np.float32)
        weights = np.add.reduceat(self.weights[order], first) if len(first) else np.empty(0)
        ends, start = np.append(first, len(order)), 0
        while start < len(first):
            stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _SUMMED_ROWS, side="right")) - 1)
            rows = order[ends[start] : ends[stop]]
            share = self.weights[rows].astype(np.float32)[:, None]
            sums = np.add.reduceat(self.means[rows] * share, first[start:stop] - first[start], axis=0)
            means[start:stop] = sums / weights[start:stop, None]
            start = stop
        self.means, self.weights, self.names = means, weights, self.names[order[first]]


class _Block:
    """Clusters of one block, merged by nearest-neighbour chains.

    A cluster is closed if its best partner is less similar than one outside by more than the slack, or less similar
    than the floor. Closed clusters count as outside for the other clusters.
    """

    def __init__(
        self,
        scores: npt.NDArray[np.float32],
        weights: npt.NDArray[np.float64],
        outside: npt.NDArray[np.float32],
        *,
        floor: float,
        slack: float,
    ) -> None:
        np.fill_diagonal(scores, -np.inf)
        self.scores, self.outside = scores, outside.copy()
        self.weights: list[float] = weights.tolist()
        self.names = np.arange(len(scores))
        self.closed = np.zeros(len(scores), dtype=np.float32)  # -inf for closed clusters
        self.open = len(scores)
        self.floor, self.slack = floor, slack
        self.targets: list[int] = []
        self.gone: list[int] = []
        self.similarity: list[float] = []

    def link(self, progress: ShareProgress) -> Merges:
        """Return the merges, by positions in the block."""
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
            if score < self.floor or score < self.outside[tip] - self.slack:
                self._close(tip)
                np.maximum(self.outside, self.scores[tip], out=self.outside)
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
        if self.outside[gone] != self.outside[keep]:
            self.outside[keep] = (1 - share) * self.outside[keep] + share * self.outside[gone]
        self._close(gone)
        self.targets.append(int(self.names[keep]))
        self.gone.append(int(self.names[gone]))
        self.similarity.append(score)

    def _compact(self, chain: list[int]) -> list[int]:
        """Remove closed clusters; return the new positions of the chain."""
        active = np.flatnonzero(self.closed == 0)
        scores = _square(len(active))
        np.take(self.scores[active], active, axis=1, out=scores)
        self.scores, self.outside, self.names = scores, self.outside[active], self.names[active]
        self.weights = [self.weights[position] for position in active]
        self.closed = np.zeros(len(active), dtype=np.float32)
        positions: list[int] = np.searchsorted(active, chain).tolist()
        return positions


def _square(side: int) -> npt.NDArray[np.float32]:
    """Return an uninitialised square matrix with a row stride that avoids conflicts in the processor's cache."""
    line = 16
    width = -(-side // line)
    return np.empty((side, (width + 1 - width % 2) * line), dtype=np.float32)[:, :side]


def _blocks(graph: NeighbourGraph, floor: float) -> list[npt.NDArray[np.int64]]:
    """Return a partition of the rows into blocks of near rows, of at most some thousand rows.

    Components of the graph that are too large are split by repeatedly removing their weakest edges. The parts are then
    packed into blocks, in an order that keeps parts of one component together.
    """
    count = len(graph.rows)
    source = np.repeat(np.arange(count, dtype=np.int32), graph.k)
    target, similarity = graph.rows.ravel(), graph.similarity.ravel()
    useful = similarity >= floor
    source, target, similarity = source[useful], target[useful], similarity[useful]
    path: list[npt.NDArray[np.int32]] = []
    for _ in range(_PEELS):
        label = connected_components(count, source, target)[1]
        path.append(label)
        large = np.bincount(label)[label] > _BLOCK_ROWS
        if not large.any():
            break
        inside = large[source]
        source, target, similarity = source[inside], target[inside], similarity[inside]
        strong = similarity > np.quantile(similarity, _PEEL_SHARE)
        source, target, similarity = source[strong], target[strong], similarity[strong]
    return [*_pack(path)]


def _pack(path: Sequence[npt.NDArray[np.int32]]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield blocks of rows in the order of their components, coarsest first, cut at the ends of parts if possible."""
    order = np.lexsort(path[::-1])
    changes = np.zeros(len(order), dtype=bool)
    for label in path:
        changes[1:] |= label[order[1:]] != label[order[:-1]]
    ends = np.append(np.flatnonzero(changes), len(order))
    start = 0
    while start < len(order):
        last = int(np.searchsorted(ends, start + _BLOCK_ROWS, side="right")) - 1
        stop = int(ends[last]) if last >= 0 and ends[last] > start else min(start + _BLOCK_ROWS, len(order))
        yield order[start:stop]
        start = stop


def _max_outside(graph: NeighbourGraph, blocks: Sequence[npt.NDArray[np.int64]], count: int) -> npt.NDArray[np.float32]:
    """Return an upper bound of each row's similarity to rows of other blocks, from its neighbour list."""
    block_of = np.empty(count, dtype=np.int32)
    for number, block in enumerate(blocks):
        block_of[block] = number
    outside = np.empty(count, dtype=np.float32)
    for start in range(0, count, 65536):
        part = slice(start, start + 65536)
        foreign = block_of[graph.rows[part]] != block_of[part, None]
        column = np.where(foreign.any(axis=1), foreign.argmax(axis=1), graph.k - 1)
        outside[part] = np.take_along_axis(graph.similarity[part], column[:, None], axis=1)[:, 0]
    return outside


def number_by_first_row(labels: npt.NDArray[np.integer]) -> Labels:
    """Return the same partition, numbered 0, 1, 2… in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
