"""Merges of reciprocal nearest neighbours under average linkage, decided by neighbour lists.

Average linkage is reducible, so two clusters that are each other's nearest may be merged at any time, wherever they are
(B. Sumengen et al., "Scaling hierarchical agglomerative clustering to billion-sized datasets", arXiv 2105.11653, 2021).
Each cluster has a list of near clusters, and a bound: no other cluster is more similar. A merged cluster has the most
similar clusters of both lists, and the weighted mean of both bounds. A cluster whose best listed similarity is below
its bound waits until its neighbours are searched again. So short lists lead to the merges of all distances, in an order
that depends on the similarities alone.

A cluster can only be merged if another one has it as its nearest, so those search first, as in a chain of nearest
neighbours (see :mod:`framedex.analysis.linkage`). In a cluster without structure, for example, merged pairs are the
nearest ones of no other cluster as long as there are single rows; what they found before would be out of date.

Similarities are means, so upper bounds follow from those of the merged clusters. Only similarities that may be the
highest of a list are computed, and only for clusters that may be merged next.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from framedex.analysis.lookup import NeighbourSearch
from framedex.analysis.mean_vectors import Means, MeanVectors, Rows, slices
from framedex.analysis.near_clusters import Flags, Ints, NearClusters, bounds_of
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import CpuProducts, Products
from framedex.core.arrays import Floats
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

_ENTRIES = 1 << 16  # of lists handled at a time
_FEW_PARTS = 4  # fewer slices of lists are handled by one thread
_SLOW = 0.9  # lists become longer if more than this share of the clusters remains
_MANY = 131_072  # clusters from which on those search first that may be merged next
_NAMED = 0.06  # the share of those that could search from which on these are enough
_EVERY = 8  # of the others, one of so many searches where they are not
_MAX_LISTED = 160  # near clusters per cluster; longer lists are searched more rarely

SEARCH_RECALL = 0.999
"""The recall of searches; few clusters search, so that they can probe more cells."""

T = TypeVar("T")
Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]
"""(row, row, similarity) of each merge; a cluster is identified by one of its rows."""


Search = Callable[[Ints, Means, int, ShareProgress], tuple[Ints, Ints, Floats]]
"""Searches the nearest clusters of some: (clusters, all means, k, progress) → (those for which it could search, …).

The rest of the result is what NeighbourSearch.nearest_of gives for these.
"""


def search_in_memory(floor: float, seed: int, engine: Products | None) -> Search:
    """Return a search among :class:`MeanVectors`.

    Args:
        floor: minimum similarity of a merge.
        seed: seed of the random samples.
        engine: computes the neighbours.
    """
    neighbours = NeighbourSearch(recall=SEARCH_RECALL, min_similarity=floor, seed=seed, engine=engine)

    def search(rows: Ints, means: Means, k: int, progress: ShareProgress) -> tuple[Ints, Ints, Floats]:
        assert isinstance(means, MeanVectors), "means in memory"
        return rows, *neighbours.nearest_of(rows, means.vectors, k=k, known=means.cells, progress=progress)

    return search


class ClusterLists:
    """Clusters with lists of their nearest clusters, which are kept up to date while clusters merge.

    Args:
        means: the means and weights of N clusters.
        near: the near clusters of each of them; changed from now on.
        names: int64, shape (N + F,): a row of each cluster; F further ones may be listed, but they do not merge here.
        floor: minimum similarity of a merge.
        search: searches the neighbours of merged clusters.
        threads: how many threads work.

    Attributes:
        means: the means and weights of the clusters that may still be merged, after a search.
        names: int64, shape (A + F,): one row of each cluster, which identifies it.
    """

    def __init__(
        self,
        means: Means,
        near: NearClusters,
        names: npt.NDArray[np.int64],
        *,
        floor: float,
        search: Search,
        threads: int | None = None,
    ) -> None:
        count, foreign = len(means), len(names) - len(means)
        self._nearest_of = search
        self._floor = np.float32(floor)
        self.means, self.names = means, names
        self._rows, self._similarity, self._exact = near.rows, near.similarity, near.exact
        self._entries = near.rows.size
        # Clusters that do not merge here are never certain of their nearest cluster, and search none.
        self._bound = np.concatenate([near.bound, np.full(foreign, np.inf, dtype=np.float32)])
        self._root = np.arange(len(names), dtype=np.int32)  # the cluster that now contains each cluster
        self._best = np.full(len(names), -1, dtype=np.int32)  # the nearest cluster; -1 if it is too far or unknown
        self._pending = np.zeros(len(names), dtype=bool)  # the nearest cluster merged; the next one is not chosen yet
        self._changed = np.zeros(len(names), dtype=np.int32)  # round in which a cluster merged
        self._listed = np.zeros(len(names), dtype=np.int32)  # round in which a list was updated
        self._refused = np.zeros(len(names), dtype=bool)  # its neighbours could not be searched
        self._round = 0
        workers = threads or CpuProducts().workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="framedex-clusters")
        self._choose(np.arange(count, dtype=np.int32))

    @classmethod
    def of_graph(cls, means: Means, graph: NeighbourGraph, *, floor: float, search: Search) -> "ClusterLists":
        """Return clusters whose neighbours were searched; see the class for the arguments."""
        count = len(means)
        clusters = cls(means, NearClusters.of(graph, count, floor), np.arange(count), floor=floor, search=search)
        clusters.share()
        return clusters

    def share(self) -> None:
        """Add clusters to the lists of those that they list, which a search missed."""
        every = np.arange(len(self._rows), dtype=np.int32)
        self._choose(self._share(every))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_foreign(self) -> int:
        """The number of clusters that do not merge here; they have the highest numbers."""
        return len(self.names) - len(self._rows)

    @property
    def near(self) -> NearClusters:
        """The near clusters of each cluster that may still be merged, after a search."""
        return self.near_of(slice(0, len(self._rows)))

    def near_of(self, part: slice) -> NearClusters:
        """Return the near clusters of consecutive clusters that may still be merged, after a search."""
        return NearClusters(*self._current(np.arange(part.start, part.stop, dtype=np.int32)), self._bound[part])

    @property
    def has_merged(self) -> Flags:
        """bool, shape (A,): whether a cluster consists of several ones that were given."""
        return self._changed[: len(self._rows)] > 0

    def use(self, means: Means, search: Search) -> None:
        """Keep the means in another way from now on, and search in another way."""
        self.means, self._nearest_of = means, search

    def merge(self, progress: ShareProgress) -> Merges:
        """Merge clusters that are each other's nearest until the lists do not name any; return the merges.

        If all clusters merge here and know their nearest one, at least two of them are merged if any two are near
        enough, even if equal similarities go in a circle.
        """
        merges: list[Merges] = []
        rows, initial = np.arange(len(self), dtype=np.int32), max(1, len(self))
        n_merged = 0
        while True:
            keep, gone = self._pairs(rows)
            if not len(keep) and not merges and not self.n_foreign and not len(self._searching()):
                keep, gone = self._circular_pairs()
            if not len(keep):
                rows = np.flatnonzero(self._pending).astype(np.int32)
                if not len(rows):
                    break
                self._resolve(rows)
                continue
            similarity, rows = self._merge(keep, gone)
            merges.append((self.names[keep], self.names[gone], similarity))
            n_merged += len(keep)
            progress(n_merged / initial)
        empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        a, b, similarity = (np.concatenate([empty[part], *(each[part] for each in merges)]) for part in range(3))
        return a, b, similarity

    def search(self, progress: ShareProgress = ignore_progress) -> int:
        """Remove clusters as :meth:`compact` does; search the neighbours that lists do not know.

        Returns:
            The number of clusters whose neighbours were searched.
        """
        queries = self.compact()
        return self._search(queries, progress) if len(queries) else 0

    def compact(self) -> Ints:
        """Remove clusters that were merged or are far from all others; return those that should search neighbours."""
        count = len(self._rows)
        current = (self._root == np.arange(len(self)))[:count]
        unknown = self._unknown
        remaining = np.flatnonzero(current & ((self._best[:count] >= 0) | unknown))
        kept = np.concatenate([remaining, np.arange(count, len(self))])
        number = np.full(len(self) + 1, -1, dtype=np.int32)  # the last one stands for an empty place of a list
        number[kept] = np.arange(len(kept))
        width = self._width(len(remaining)) if len(remaining) > _SLOW * current.sum() else self._rows.shape[1]
        lists = self._kept(remaining, number, width)
        self.means, self.names = self.means.kept(remaining), self.names[kept]
        self._rows, self._similarity, self._exact = lists
        self._bound, self._refused = self._bound[kept], self._refused[kept]
        self._changed, self._listed = self._changed[kept], self._listed[kept]
        self._best = number[self._root[self._best[kept]]]
        self._best[: len(remaining)][unknown[remaining]] = -1
        self._best[len(remaining) :] = -1
        self._pending = np.zeros(len(kept), dtype=bool)
        self._root = np.arange(len(kept), dtype=np.int32)
        return self._first_to_search()

    @property
    def _unknown(self) -> Flags:
        """bool, shape (A,): which clusters may have a near one that their lists do not name."""
        count = len(self._rows)
        current: Flags = (self._root == np.arange(len(self)))[:count]
        return current & (self._best[:count] < 0) & (self._bound[:count] > self._floor)

    def _searching(self) -> Ints:
        """Return the clusters that do not know their nearest one, and can search."""
        return np.flatnonzero(self._unknown & ~self._refused[: len(self._rows)]).astype(np.int32)

    def _first_to_search(self) -> Ints:
        """Return the clusters that should search now: where there are many, those that may be merged next."""
        searching = self._searching()
        if len(self) < _MANY or self.n_foreign:
            return searching
        is_named = np.zeros(len(self), dtype=bool)
        is_named[self._best[self._best >= 0]] = True
        named = is_named[searching]
        if np.count_nonzero(named) < _NAMED * len(searching):
            named[::_EVERY] = True
        return searching[named]

    def _kept(self, remaining: Rows, number: Ints, width: int) -> tuple[Ints, Floats, Flags]:
        """Return the lists of remaining clusters, which get new numbers, with empty places at their ends."""
        shape, k = (len(remaining), width), self._rows.shape[1]
        rows, similarity = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
        exact = np.ones(shape, bool)

        def keep(part: slice) -> None:
            some = self._rows[remaining[part]]
            some = number[np.where(some >= 0, self._root[some], -1)]
            rows[part, :k], exact[part, :k] = some, self._exact[remaining[part]]
            similarity[part, :k] = np.where(some < 0, np.float32(-np.inf), self._similarity[remaining[part]])

        self._each(keep, len(remaining))
        return rows, similarity, exact

    def _width(self, count: int) -> int:
        """Return how long lists may be: the fewer clusters remain, the longer lists fit into the same memory."""
        return max(int(self._rows.shape[1]), min(_MAX_LISTED, self._entries // max(1, count)))

    def _search(self, queries: Ints, progress: ShareProgress) -> int:
        self._refused[queries] = True
        queries, rows, similarity = self._nearest_of(queries, self.means, self._rows.shape[1], progress)
        self._refused[queries] = False
        width = rows.shape[1]
        far = (rows < 0) | (similarity < self._floor)
        self._rows[queries], self._similarity[queries] = -1, -np.inf
        self._rows[queries, :width] = np.where(far, -1, rows)
        self._similarity[queries, :width] = np.where(far, -np.inf, similarity)
        self._exact[queries] = True
        self._bound[queries] = bounds_of(similarity, len(self), self._floor)
        self._listed[queries] = self._round
        listed = self._share(queries)
        self._choose(np.union1d(queries, listed))  # once each: threads share them out
        return len(queries)

    def _each(self, work: Callable[[slice], T], count: int) -> list[T]:
        """Return the results for slices of a number of lists, no two of which are the same: several threads work.

        What is computed of a slice stays in the processor's cache.
        """
        parts = list(slices(count, _ENTRIES // max(1, self._rows.shape[1])))
        return [work(part) for part in parts] if len(parts) < _FEW_PARTS else list(self._threads.map(work, parts))

    def _share(self, rows: Ints) -> Ints:
        """Add clusters to the lists of their neighbours that a search missed; return the clusters with changed lists.

        If several are missing in a list, the nearest one is added, and the bound covers the others.
        """

        def find(part: slice) -> tuple[Ints, Ints, Floats]:
            some = rows[part]
            listed, similarity = self._rows[some], self._similarity[some]
            line, column = true_places((listed >= 0) & (similarity > self._bound[listed]))
            source, target = some[line], listed[line, column]
            missing = ~(self._rows[target] == source[:, None]).any(axis=1)
            return source[missing], target[missing], similarity[line, column][missing]

        nothing = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
        parts = [nothing, *self._each(find, len(rows))]
        source, target, value = (np.concatenate([each[part] for each in parts]) for part in range(3))
        order = np.lexsort((source, -value, target))
        source, target, value = source[order], target[order], value[order]
        first = np.flatnonzero(np.diff(target, prepend=-1))
        second = np.flatnonzero(np.diff(target, prepend=-1) == 0)
        np.maximum.at(self._bound, target[second], value[second])
        source, target, value = source[first], target[first], value[first]
        column = self._similarity[target].argmin(axis=1)
        self._bound[target] = np.maximum(self._bound[target], self._similarity[target, column])
        self._rows[target, column], self._similarity[target, column] = source, value
        self._exact[target, column] = True
        return target

    def _choose(self, rows: Ints) -> None:
        """Choose the nearest cluster of some clusters from their lists."""

        def choose(part: slice) -> None:
            some = rows[part]
            similarity = self._compute_highest(some)
            highest = similarity.max(axis=1)
            # Of equally similar clusters the first one is chosen, so that they choose each other.
            first = np.where(similarity == highest[:, None], self._rows[some], np.iinfo(np.int32).max).min(axis=1)
            certain = (highest >= self._bound[some]) & (highest >= self._floor)
            if self.n_foreign:
                certain &= ~((similarity == highest[:, None]) & ~self._exact[some]).any(axis=1)
            self._best[some] = np.where(certain, first, -1)

        self._each(choose, len(rows))

    def _compute_highest(self, some: Ints) -> Floats:
        """Compute the similarities that may be the highest of their list; return the lists' similarities."""
        similarity, exact = self._similarity[some], self._exact[some]
        least = np.maximum(np.where(exact, similarity, -np.inf).max(axis=1), self._bound[some])
        line, column = true_places(~exact & (similarity >= least[:, None]))
        near = self._rows[some[line], column]
        if self.n_foreign:  # their means are unknown here, so that bounds of their similarities remain
            own = near < len(self._rows)
            line, column, near = line[own], column[own], near[own]
        # Several places of a list may stand for parts of one cluster.
        _, first, pair = np.unique(line * len(self) + near, return_index=True, return_inverse=True)
        similarity[line, column] = self.means.products(some[line[first]], near[first])[pair]
        exact[line, column] = True
        self._similarity[some], self._exact[some] = similarity, exact
        return similarity

    def _pairs(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return pairs of clusters that are each other's nearest, of which at least one is among *rows*."""
        best = self._best[rows]
        mutual = (best >= 0) & (self._best[best] == rows)
        a, b = rows[mutual], best[mutual]
        keys = np.unique(np.minimum(a, b).astype(np.int64) * len(self) + np.maximum(a, b))
        return (keys // len(self)).astype(np.int32), (keys % len(self)).astype(np.int32)

    def _circular_pairs(self) -> tuple[Ints, Ints]:
        """Return a pair of each circle of nearest clusters, which are equally similar, or else the most similar pair.

        Equal similarities differ by rounding, so that the nearest of the nearest may be a third cluster.
        """
        near = np.flatnonzero(self._best >= 0)
        if not len(near):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        following = np.where(self._best >= 0, self._best, self._root)
        lowest = self._root.copy()
        for _ in range(len(self).bit_length()):  # after these steps every path is in its circle, and has gone around
            lowest = np.minimum(lowest, lowest[following])
            following = following[following]
        keep = np.unique(lowest[following])
        keep = keep[self._best[keep] >= 0]
        if not len(keep):
            keep = near[self._similarity[near].max(axis=1).argmax()][None].astype(np.int32)
        return keep, self._best[keep]

    def _merge(self, keep: Ints, gone: Ints) -> tuple[Floats, Ints]:
        """Merge pairs; return their similarities, and the clusters whose nearest cluster may be another one now."""
        self._round += 1
        weights = self.means.weights
        share = (weights[gone] / (weights[keep] + weights[gone])).astype(np.float32)
        touched = np.zeros(len(self), dtype=bool)
        touched[keep] = touched[gone] = True
        similarity = self._similarity[keep].max(axis=1)
        self.means.merge(keep, gone)
        self._root[gone] = keep
        self._root = self._root[self._root]
        self._changed[keep], self._refused[keep] = self._round, False
        dependent = np.flatnonzero(touched[self._best] & (self._best >= 0) & ~touched).astype(np.int32)
        self._best[gone] = self._best[dependent] = -1
        self._pending[dependent] = True
        self._each(lambda part: self._join(keep[part], gone[part], share[part]), len(keep))
        self._listed[keep] = self._round
        self._choose(keep)
        return similarity, np.concatenate([keep, *self._resolve_nearest()])

    def _resolve_nearest(self) -> Iterator[Ints]:
        """Choose the nearest cluster of pending ones that are the nearest of another one; yield them.

        No other pending cluster can merge now. Many have the same large cluster as their nearest one, which merges
        often; most of its merges leave them pending.
        """
        nearest = np.zeros(len(self), dtype=bool)
        nearest[self._best[self._best >= 0]] = True
        rows = np.flatnonzero(nearest & self._pending).astype(np.int32)
        while len(rows):
            self._resolve(rows)
            yield rows
            best = self._best[rows]
            rows = np.unique(best[(best >= 0) & self._pending[best]])

    def _resolve(self, rows: Ints) -> None:
        """Update the lists of pending clusters, and choose their nearest cluster."""

        def update(part: slice) -> None:
            some = rows[part]
            self._rows[some], self._similarity[some], self._exact[some] = self._current(some)

        self._each(update, len(rows))
        self._listed[rows] = self._round
        self._pending[rows] = False
        self._choose(rows)

    def _join(self, keep: Ints, gone: Ints, share: Floats) -> None:
        """Join the lists of merged pairs: the k most similar clusters of both lists remain.

        A similarity to the merged cluster is the weighted mean of two. One that is not in a list is at most the bound.
        """
        k = self._rows.shape[1]
        lists = zip(self._current(keep), self._current(gone), strict=True)
        rows, similarity, exact = (np.concatenate(each, axis=1) for each in lists)
        rows[rows == keep[:, None]] = -1
        order = np.argsort(rows, axis=1, kind="stable")
        rows, similarity, exact = (np.take_along_axis(each, order, axis=1) for each in (rows, similarity, exact))
        start = np.flatnonzero(np.diff(rows, axis=1, prepend=-2))
        line, second = start // (2 * k), order >= k
        one, two = (
            np.maximum.reduceat(np.where(other, -np.inf, similarity).ravel(), start) for other in (second, ~second)
        )
        known = np.logical_and.reduceat(exact.ravel(), start) & (np.minimum(one, two) > -np.inf)
        one, two = (
            np.where(value > -np.inf, value, self._bound[each][line]) for value, each in ((one, keep), (two, gone))
        )
        value = one + share[line] * (two - one)
        value[(value < self._floor) | (rows.ravel()[start] < 0)] = -np.inf
        similarity[:] = -np.inf
        similarity.ravel()[start], exact.ravel()[start] = value, known
        chosen = np.argpartition(-similarity, (k - 1, k), axis=1)[:, : k + 1]
        rows, similarity, exact = (np.take_along_axis(each, chosen, axis=1) for each in (rows, similarity, exact))
        bound = self._bound[keep] + share * (self._bound[gone] - self._bound[keep])
        self._bound[keep] = np.maximum(bound, similarity[:, k])
        rows[similarity < self._floor] = -1
        self._rows[keep], self._similarity[keep], self._exact[keep] = rows[:, :k], similarity[:, :k], exact[:, :k]

    def _current(self, some: Ints) -> tuple[Ints, Floats, Flags]:
        """Return lists in which clusters stand for those that they were merged from.

        The similarity to a merged cluster is a mean, so it is at most the highest one to its parts, which are in the
        list or not. If several parts are in the list, so is the merged cluster; the highest of its bounds holds.
        """
        rows = self._rows[some]
        rows = np.where(rows >= 0, self._root[rows], -1)
        stale = (rows >= 0) & (self._changed[rows] > self._listed[some][:, None])
        similarity = self._similarity[some]
        similarity = np.where(stale, np.maximum(similarity, self._bound[some][:, None]), similarity)
        return rows, similarity, self._exact[some] & ~stale
