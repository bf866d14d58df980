"""Clusters by average linkage under cosine distance, cut at several distances.

For unit vectors the mean similarity of two clusters' pairs is the dot product of their mean vectors, so a cluster is
its mean and its weight. Average linkage is reducible: merging two clusters brings no third one nearer to the result
than it was to the nearer of the two. Hence two clusters that are each other's nearest may be merged at any time, in
any order, and the tree is that of the sequential algorithm (D. Müllner, "Modern hierarchical, agglomerative clustering
algorithms", arXiv 1109.2378, 2011; B. Sumengen et al., "Scaling hierarchical agglomerative clustering to billion-sized
datasets", arXiv 2105.11653, 2021).

Up to some thousand clusters all their distances are held, and the nearest-neighbour chain (Müllner 2011) merges them:
this is exact. More are linked in rounds. A round packs clusters that are near each other into blocks and follows chains
within each block; a cluster that may have a nearer one outside of its block waits. Then the neighbours of what is left
are found anew. Blocks whose merges need no look outside are the idea of L. Dhulipala et al., "TeraHAC: Hierarchical
Agglomerative Clustering of Trillion-Edge Graphs", arXiv 2308.03578, 2023, as is the slack: a merge may be that much
less similar than one outside.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import Graph, ignore_progress, nearest
from framedex.analysis.products import Products
from framedex.arrays import Vectors
from framedex.errors import InvalidInput
from framedex.progress import ShareProgress

DENSE_ROWS = 12_288
"""Up to so many clusters all their distances are held at a time: 600 MB."""
SLACK = 0.005
"""By how much a merge within a block may be less similar than one with a cluster outside of it."""

ROUNDING = 1e-6
"""Pairs at the very cut belong together, whatever was rounded."""

_BLOCK_ROWS = 1500
_COMPACT_ROWS = 256
_TOLD = 256  # merges between reports of progress
_SUMMED_ROWS = 32_768
_STALLED = 0.9  # of the clusters left after a round: from then on the slack doubles

_PEELS = 12  # steps in which large components are taken apart
_PEELED = 0.25  # of the weakest edges in a step

Labels = npt.NDArray[np.int32]
Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]
"""(row, row, similarity) of each merge; a cluster is named by one of its rows."""


def average_linkage(
    vectors: Vectors,
    weights: npt.NDArray[np.int64],
    graph: Graph,
    cuts: Sequence[float],
    *,
    dense_rows: int = DENSE_ROWS,
    slack: float = SLACK,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Labels:
    """Return flat clusters at several distances, nested in each other.

    Args:
        vectors: float32 or float16, shape (N, D), unit length - or means of weighted unit vectors; may be
            memory-mapped.
        weights: int64, shape (N,): how many identical items each row stands for.
        graph: neighbours of the rows; not looked at where N ≤ dense_rows.
        cuts: cosine distances, ascending; clusters whose mean pairwise distance is at most the cut are one.
        dense_rows: up to so many clusters are linked exactly, with all their distances.
        slack: see :data:`SLACK`; 0 merges in the exact order, as far as the graph is complete.
        engine: finds neighbours between rounds.
        progress: called between blocks of work.

    Returns:
        int32, shape (N, len(cuts)): cluster numbers from 0, in order of their first rows.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    if not cuts or not all(a < b for a, b in pairwise([0.0, *cuts])) or cuts[-1] > 2:
        raise InvalidInput(f"cluster thresholds must be ascending cosine distances in (0, 2], not {list(cuts)}")
    forest = _Forest(vectors, weights, floor=1 - cuts[-1] - ROUNDING, slack=slack)
    progress = _ascending(progress)
    progress(0.0)
    current: Graph | None = graph
    while len(forest) > dense_rows:
        if current is None:
            current = nearest(
                forest.means, least=forest.floor, engine=engine, progress=forest.share(progress, 0.0, 0.5)
            )
        before = len(forest)
        forest.link_blocks(current, forest.share(progress, 0.5, 1.0))
        if len(forest) == before:  # no two near ones share a block, and so may it be in the next round
            forest.link_nearest(current)
        if len(forest) > _STALLED * before:  # clusters that wait for each other in a circle of blocks
            forest.slack *= 2
        current = None  # that of the clusters that are left
    forest.link_all(forest.share(progress, 0.0, 2.0))
    progress(1.0)
    return cut(forest.merges, cuts, len(vectors))


def _ascending(progress: ShareProgress) -> ShareProgress:
    """Return a function that reports no less than before: a round may leave more to do than it was taken for."""
    highest = 0.0

    def report(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        progress(highest)

    return report


def cut(merges: Merges, cuts: Sequence[float], count: int) -> Labels:
    """Return cluster numbers of *count* rows at each cut, int32 of shape (count, len(cuts)), in order of first rows."""
    a, b, similarity = merges
    labels = np.empty((count, len(cuts)), dtype=np.int32)
    for level, distance in enumerate(cuts):
        kept = similarity >= 1 - distance - ROUNDING
        labels[:, level] = connected_components(count, a[kept], b[kept])[1]
    return labels


class _Forest:
    """The clusters that may still be merged.

    Attributes:
        means: float32, shape (A, D): their mean vectors.
        weights: float64, shape (A,).
        names: int64, shape (A,): one row of each.
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
        """Return a function that reports a part of this round: rounds take about as long as they have clusters."""
        left = len(self) / self._count
        return lambda share: progress(1 - left + 0.5 * left * (start + (end - start) * share))

    def link_all(self, progress: ShareProgress) -> None:
        """Merge all that is left, with all distances at a time."""
        if len(self) > 1:
            everything = np.arange(len(self))
            self._merge([self._linked(everything, np.full(len(self), -np.inf, np.float32), progress)])

    def link_blocks(self, graph: Graph, progress: ShareProgress) -> None:
        """Merge within blocks what has no nearer cluster outside; clusters that have none near leave the forest."""
        blocks = _blocks(graph, self.floor)
        outside = _outside(graph, blocks, len(self))
        near = graph.similarity[:, 0] >= self.floor
        found = []
        for place, block in enumerate(blocks):
            found.append(self._linked(block, outside[block]))
            progress((place + 1) / len(blocks))
        self._merge(found, keep=near)

    def link_nearest(self, graph: Graph) -> None:
        """Merge clusters that are each other's nearest; where there are none, the most similar two."""
        best, similarity = graph.rows[:, 0].astype(np.int64), graph.similarity[:, 0]
        row = np.arange(len(best))
        found = np.flatnonzero((best[best] == row) & (row < best) & (similarity >= self.floor))
        if not len(found):
            found = np.array([similarity.argmax()])
        self._merge([(found, best[found], similarity[found])])

    def _linked(
        self, block: npt.NDArray[np.int64], outside: npt.NDArray[np.float32], progress: ShareProgress = ignore_progress
    ) -> Merges:
        """Return the merges within a block, as places in the forest."""
        means = np.ascontiguousarray(self.means[block], dtype=np.float32)
        scores = np.matmul(means, means.T, out=_square(len(block)))
        linked = _Block(scores, self.weights[block], outside, floor=self.floor, slack=self.slack)
        a, b, similarity = linked.link(progress)
        return block[a], block[b], similarity

    def _merge(self, found: Sequence[Merges], *, keep: npt.NDArray[np.bool_] | None = None) -> None:
        a, b, similarity = (np.concatenate([each[part] for each in found]) for part in range(3))
        self._merges.append((self.names[a], self.names[b], similarity))
        count, label = connected_components(len(self), a, b)
        kept = np.ones(count, dtype=bool)
        if keep is not None:
            kept[:] = np.bincount(label, weights=keep, minlength=count) > 0
        self._collapse(label, kept)

    def _collapse(self, label: npt.NDArray[np.int32], kept: npt.NDArray[np.bool_]) -> None:
        """Make one cluster of those with one label, and leave out those that are not kept."""
        order = np.argsort(label, kind="stable")
        order = order[kept[label[order]]]
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
    """Clusters of one block while chains of nearest neighbours are followed through it.

    A cluster whose best partner is less similar than one outside (by more than the slack), or than the floor, takes no
    further part: it counts as outside for the others from then on.
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
        self.closed = np.zeros(len(scores), dtype=np.float32)  # -inf for those that take no further part
        self.open = len(scores)
        self.floor, self.slack = floor, slack
        self.kept: list[int] = []
        self.gone: list[int] = []
        self.similarity: list[float] = []

    def link(self, progress: ShareProgress) -> Merges:
        """Return the merges, by place in the block."""
        start, row, count = 0, np.empty_like(self.closed), self.open
        chain: list[int] = []
        while self.open > 1:
            if len(self.kept) % _TOLD == 0:
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
            # Of equals it is the one that the chain came from, or chains would go in circles.
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
        return np.array(self.kept, np.int64), np.array(self.gone, np.int64), np.array(self.similarity, np.float32)

    def _close(self, place: int) -> None:
        self.closed[place] = -np.inf
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
        self.kept.append(int(self.names[keep]))
        self.gone.append(int(self.names[gone]))
        self.similarity.append(score)

    def _compact(self, chain: list[int]) -> list[int]:
        """Leave out what is closed; return the chain's new places."""
        left = np.flatnonzero(self.closed == 0)
        scores = _square(len(left))
        np.take(self.scores[left], left, axis=1, out=scores)
        self.scores, self.outside, self.names = scores, self.outside[left], self.names[left]
        self.weights = [self.weights[place] for place in left]
        self.closed = np.zeros(len(left), dtype=np.float32)
        places: list[int] = np.searchsorted(left, chain).tolist()
        return places


def _square(side: int) -> npt.NDArray[np.float32]:
    """Return an empty square matrix whose columns do not all fall into the same few sets of the cache."""
    line = 16
    width = -(-side // line)
    return np.empty((side, (width + 1 - width % 2) * line), dtype=np.float32)[:, :side]


def _blocks(graph: Graph, floor: float) -> list[npt.NDArray[np.int64]]:
    """Return a partition of the rows into blocks of near ones, at most some thousand rows each.

    Components of the graph that are too large are taken apart by leaving out their weakest edges, again and again; the
    pieces are then packed in an order that keeps those of one component together.
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
        strong = similarity > np.quantile(similarity, _PEELED)
        source, target, similarity = source[strong], target[strong], similarity[strong]
    return [*_packed(path)]


def _packed(path: Sequence[npt.NDArray[np.int32]]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield rows in the order of their components, coarse ones first, cut where a piece ends or a block is full."""
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


def _outside(graph: Graph, blocks: Sequence[npt.NDArray[np.int64]], count: int) -> npt.NDArray[np.float32]:
    """Return how similar each row's best row outside of its block may be: known, or at most as the last one listed."""
    block_of = np.empty(count, dtype=np.int32)
    for number, block in enumerate(blocks):
        block_of[block] = number
    outside = np.empty(count, dtype=np.float32)
    for start in range(0, count, 65536):
        part = slice(start, start + 65536)
        foreign = block_of[graph.rows[part]] != block_of[part, None]
        place = np.where(foreign.any(axis=1), foreign.argmax(axis=1), graph.k - 1)
        outside[part] = np.take_along_axis(graph.similarity[part], place[:, None], axis=1)[:, 0]
    return outside


def number_by_first_row(labels: npt.NDArray[np.integer]) -> Labels:
    """Return the same partition with numbers 0, 1, 2… in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
