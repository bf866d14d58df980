"""Merges of clusters within groups, which executors run beside each other.

Two clusters that are each other's nearest may be merged whatever happens elsewhere (see
:mod:`framedex.analysis.reciprocal`). So the clusters of a group merge in the memory of a worker, where clusters of
other groups are listed as well, as they were at first. A cluster waits while one of these may be its nearest: if it is
so by its list, or if the list does not tell and a cell of another group is within reach. It is merged later, among the
clusters that are left of all groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import take_rows
from framedex.analysis.components import connected_components
from framedex.analysis.grouped.neighbours import StepRunner
from framedex.analysis.grouped.steps import Plan, engine_of_worker
from framedex.analysis.lookup import NeighbourSearch
from framedex.analysis.mean_vectors import Means, MeanVectors, Weights, slices
from framedex.analysis.near_clusters import Flags, Ints, NearClusters
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.reach import ExactNeighbours, exact_neighbours_of_some, reach_of, tested_rows
from framedex.analysis.reciprocal import SEARCH_RECALL, ClusterLists, Merges
from framedex.core.arrays import Floats, Vectors
from framedex.core.progress import ShareProgress

_RENEWED = 0.5  # the reach is measured again if less than this share of the clusters remains
_SLOW = 0.98  # a group is left as it is if more than this share of its clusters remains after a round
_LOOKED = 4096  # clusters whose cells are found at a time

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GroupClusters:
    """Clusters of a group, identified by the place of one of their rows.

    Attributes:
        merges: the merges within the group.
        cluster: int32, shape (R,): the number of the cluster of each row of the group, by place; -1 if it is far from
            all other clusters.
        names: int64, shape (A,): the place of a row of each cluster.
        has_merged: bool, shape (A,): whether it consists of several rows.
        means: float32, shape (A, D).
        weights: float64, shape (A,).
        near: the near clusters, by the places of rows that they contain.
    """

    merges: Merges
    cluster: Ints
    names: Places
    has_merged: Flags
    means: Vectors
    weights: Weights
    near: NearClusters


class SearchWithinGroup:
    """Search of the nearest clusters of those of a group that have no cell of another group within reach.

    Args:
        plan: has the cells.
        group: the group.
        floor: only more similar clusters are found.
        seed: seed of the random samples.
    """

    def __init__(self, plan: Plan, group: int, *, floor: float, seed: int) -> None:
        assert plan.centroids is not None, "the cells are known"
        self._centroids, self._grouping, self._floor = plan.centroids, plan.order, floor
        self._cells = plan.order.cells(group)
        self._engine = engine_of_worker()
        self._inner = NeighbourSearch(recall=SEARCH_RECALL, min_similarity=floor, seed=seed, engine=self._engine)
        self._random = np.random.default_rng(seed)
        self._reach, self._measured = self._reach_of_rows(plan, group), 0

    def __call__(self, rows: Ints, means: Means, k: int, progress: ShareProgress) -> tuple[Ints, Ints, Floats]:
        """Return the clusters for which it could search, and their nearest ones."""
        assert isinstance(means, MeanVectors), "means in memory"
        exact = None
        if len(means) > 1 and (len(means) < _RENEWED * self._measured or not self._measured):
            exact = self._measure(means.vectors, k)
        inside = rows[~self._near_others(means.vectors, rows)]
        if not len(inside) or len(means) == 1:
            return inside[:0], np.empty((0, k), np.int32), np.empty((0, k), np.float32)
        return inside, *self._inner.nearest_of(
            inside, means.vectors, k=k, known=means.cells, exact=exact, progress=progress
        )

    def _reach_of_rows(self, plan: Plan, group: int) -> float:
        """Return the reach in which rows of the group have their neighbours, in whatever group these are."""
        files, places = plan.files, self._grouping.places(group)
        tested = tested_rows(places.stop - places.start, self._random) + places.start
        listed = files.cell[files.lists[tested]]
        cells, cell = np.unique(np.concatenate([listed, files.cell[tested][:, None]], axis=1), return_inverse=True)
        return reach_of(
            take_rows(files.vectors, tested), cell.reshape(len(tested), -1)[:, :-1].astype(np.int32),
            files.similarity[tested], self._centroids.all[self._grouping.order[cells]], files.rows,
            recall=SEARCH_RECALL, min_similarity=self._floor,
            sizes=np.diff(self._grouping.cell_starts)[cells].astype(np.float32),
        ).closest  # fmt: skip

    def _measure(self, vectors: Vectors, k: int) -> ExactNeighbours:
        """Measure the reach among the clusters of the group; return exact neighbours of some."""
        centroids = self._centroids.all[self._grouping.order[self._cells.start : self._cells.stop]]
        exact = exact_neighbours_of_some(
            vectors, k=min(k, len(vectors) - 1), engine=self._engine, random=self._random, progress=ignore_progress
        )
        found = exact.reach_in(
            centroids, vectors, recall=SEARCH_RECALL, min_similarity=self._floor, engine=self._engine
        )
        self._reach, self._measured = max(self._reach, found.closest), len(vectors)
        return exact

    def _near_others(self, vectors: Vectors, rows: Ints) -> Flags:
        """Return which clusters have a cell of another group within reach."""
        near = np.zeros(len(rows), dtype=bool)
        for part in slices(len(rows), _LOOKED):
            own, row, cell = self._centroids.near(vectors[rows[part]], self._reach, engine=self._engine)
            near[part] = self._is_foreign(own)
            near[part.start + row[self._is_foreign(cell)]] = True
        return near

    def _is_foreign(self, cells: npt.NDArray[np.int64]) -> Flags:
        position = self._grouping.rank[cells]
        return (position < self._cells.start) | (position >= self._cells.stop)


def merge_group(plan: Plan, floor: float, seed: int, item: tuple[int, npt.NDArray[np.int64]]) -> GroupClusters:
    """Merge the rows of a group.

    Args:
        plan: has the files of vectors and neighbours.
        floor: minimum similarity of a merge.
        seed: seed of the random samples.
        item: the group, and the number of identical items for each of its rows.
    """
    group, weights = item
    files, places = plan.files, plan.order.places(group)
    count = places.stop - places.start
    listed, similarity = np.array(files.lists[places]), np.array(files.similarity[places])
    own = (listed >= places.start) & (listed < places.stop)
    foreign = np.unique(listed[~own & (listed >= 0)])
    numbers = np.where(own, listed - places.start, count + np.searchsorted(foreign, listed).astype(np.int32))
    graph = NeighbourGraph(np.where(listed < 0, -1, numbers).astype(np.int32), similarity)
    names = np.concatenate([np.arange(places.start, places.stop), foreign.astype(np.int64)])
    means = MeanVectors(files.part(places.start, places.stop), weights.astype(np.float64))
    clusters = ClusterLists(
        means, NearClusters.of(graph, files.rows, floor), names, floor=floor,
        search=SearchWithinGroup(plan, group, floor=floor, seed=seed), threads=1,
    )  # fmt: skip
    clusters.share()
    merges = _merge_rounds(clusters)
    return _result(plan, places.start, count, clusters, merges)


def _merge_rounds(clusters: ClusterLists) -> Merges:
    """Merge clusters until hardly any more can be merged here."""
    merges: list[Merges] = []
    while True:
        before = len(clusters.means)
        merges.append(clusters.merge(ignore_progress))
        searched = clusters.search()
        if not searched or len(clusters.means) > _SLOW * before:
            break
    merges.append(clusters.merge(ignore_progress))
    clusters.compact()
    a, b, similarity = (np.concatenate([each[part] for each in merges]) for part in range(3))
    return a, b, similarity


def _result(plan: Plan, start: int, count: int, clusters: ClusterLists, merges: Merges) -> GroupClusters:
    own = len(clusters.means)
    names, near = clusters.names[:own], clusters.near.nearest(plan.files.k)
    _, component = connected_components(count, merges[0] - start, merges[1] - start)
    number = np.full(component.max(initial=-1) + 1, -1, dtype=np.int32)
    number[component[names - start]] = np.arange(own)
    rows = np.where(near.rows >= 0, clusters.names[near.rows], -1).astype(np.int32)
    means = clusters.means.of(np.arange(own))
    near = NearClusters(rows, near.similarity, near.exact, near.bound)
    return GroupClusters(merges, number[component], names, clusters.has_merged, means, clusters.means.weights, near)


def merge_within_groups(
    plan: Plan, weights: npt.NDArray[np.int64], *, floor: float, seed: int, runner: StepRunner, progress: ShareProgress
) -> GroupClusters:
    """Merge clusters within the groups of a plan; their means are moved to the front of its file of vectors.

    Args:
        plan: the plan of the neighbour search.
        weights: int64, shape (N,): the number of identical items, by place.
        floor: minimum similarity of a merge.
        seed: seed of the random samples.
        runner: runs the groups.
        progress: called after each group.

    Returns:
        The merges and clusters of all groups, without the means; near clusters are numbered as the clusters are.
    """
    groups = range(len(plan.order))
    items = [(group, weights[plan.order.places(group)]) for group in groups]
    vectors, first, found = plan.files.vectors, 0, list[GroupClusters]()
    for result in runner.each(partial(merge_group, plan, floor, seed), items, len(items), progress):
        # Results come in the order of the groups, so the places before the end of this one are not read any more.
        vectors[first : first + len(result.names)] = result.means
        first += len(result.names)
        found.append(replace(result, means=np.empty((0, vectors.shape[1]), np.float32)))
    return _joined(plan, found)


def _joined(plan: Plan, found: Sequence[GroupClusters]) -> GroupClusters:
    """Return the clusters of all groups, whose near clusters are numbered as they are."""
    first = np.cumsum([0, *(len(each.names) for each in found)])
    number = np.concatenate(
        [np.where(each.cluster < 0, -1, each.cluster + low) for each, low in zip(found, first, strict=False)]
    )
    has_merged = np.concatenate([each.has_merged for each in found])
    near = [_numbered(each.near, plan.order.places(group), number, has_merged) for group, each in enumerate(found)]
    a, b, similarity = (np.concatenate([each.merges[part] for each in found]) for part in range(3))
    return GroupClusters(
        (a, b, similarity),
        number,
        np.concatenate([each.names for each in found]),
        has_merged,
        found[0].means,
        np.concatenate([each.weights for each in found]),
        NearClusters.joined(near),
    )


def _numbered(near: NearClusters, own: slice, number: Ints, has_merged: Flags) -> NearClusters:
    """Return near clusters by number, where similarities to other groups' clusters that have merged are bounds now."""
    rows = np.where(near.rows < 0, -1, number[near.rows])
    stale = (rows >= 0) & ((near.rows < own.start) | (near.rows >= own.stop)) & has_merged[rows]
    similarity = np.where(stale, np.maximum(near.similarity, near.bound[:, None]), near.similarity)
    return NearClusters(rows, np.where(rows < 0, -np.inf, similarity), near.exact & ~stale, near.bound)
