"""Means of clusters that do not fit into memory, in the file of vectors, and the search among them by groups."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, further_probes, group_rows, reach_of, sample_rows, tested_rows
from framedex.analysis.grouped.centroids import find_cell_centroids, with_few_coarse
from framedex.analysis.grouped.files import PlaceReader
from framedex.analysis.grouped.neighbours import CELL_ROWS, StepRunner, sizes_of, spans_of
from framedex.analysis.grouped.steps import (
    Plan,
    Span,
    bundles,
    compare_visitors,
    engine_of_worker,
    nearer,
    nearest_to,
    none_near,
)
from framedex.analysis.mean_vectors import Means, Rows, Weights, slices
from framedex.analysis.neighbour_lists import Lists, sorted_lists
from framedex.analysis.products import Survivors
from framedex.analysis.reciprocal import SEARCH_RECALL, Ints
from framedex.core.arrays import Floats, Vectors
from framedex.core.progress import ShareProgress

_RENEWED = 0.5  # cells are found again if less than this share of the clusters remains
_LOOKED = 16384  # clusters whose cells are found at a time
_PARTS = 256  # of the visits in a search; they decide how products are rounded, so they do not depend on the workers
_MOVED = 16384  # means that are moved within the file at a time


class StoredMeans(Means):
    """Means in the file of vectors: that of each cluster at the place of its number.

    The clusters that are kept after a search move to the front of the file. So their means lie side by side, in the
    order of the cells in which they were at first, and soon all of them stay in the system's memory.

    Args:
        reader: reads the file.
        weights: float64, shape (A,): the number of items of each cluster.

    Attributes:
        cell: int32, shape (A,): the cell of each cluster; a search updates it.
        has_moved: bool, shape (A,): whether the mean has changed since its cell was found.
    """

    def __init__(self, reader: PlaceReader, weights: Weights) -> None:
        super().__init__(weights, reader.files.dimension)
        self.cell = np.zeros(len(weights), dtype=np.int32)
        self.has_moved = np.ones(len(weights), dtype=bool)
        self._reader = reader
        self._vectors = reader.vectors

    def of(self, rows: Rows, out: Vectors | None = None) -> Vectors:
        """See :meth:`Means.of`."""
        if out is None:
            out = np.empty((len(rows), self.dimension), dtype=np.float32)
        return np.take(self._vectors, rows, axis=0, out=out, mode="clip")

    def expect(self, rows: Rows) -> None:
        """See :meth:`Means.expect`."""
        self._reader.request(rows)

    def kept(self, rows: Rows) -> "StoredMeans":
        """See :meth:`Means.kept`; rows are ascending."""
        for part in slices(len(rows), _MOVED):
            self._vectors[part] = self._reader.take(rows[part])  # none of the rows that follow lies before its end
        kept = StoredMeans(self._reader, self.weights[rows])
        kept.cell, kept.has_moved = self.cell[rows], self.has_moved[rows]
        return kept

    def _put(self, keep: Rows, gone: Rows) -> Callable[[slice, Vectors], None]:
        self.has_moved[keep] = True

        def put(part: slice, means: Vectors) -> None:
            self._vectors[keep[part]] = means

        return put


class GroupSearch:
    """Search of the nearest clusters of some, whose means are in the file of vectors.

    Clusters belong to the cells of their means. A search finds the cells of means that have moved since the last one.
    New cells are found when half of the clusters are gone: with many more cells than a search needs, a mean would be
    compared with more centroids than with clusters.

    Args:
        plan: has the file.
        floor: only more similar clusters are found.
        seed: seed of the random samples.
        runner: runs the steps.
    """

    def __init__(self, plan: Plan, *, floor: float, seed: int, runner: StepRunner) -> None:
        self._plan, self._floor, self._runner = plan, floor, runner
        self._random = np.random.default_rng(seed)
        self._reach, self._measured = 0.0, 0

    def __call__(self, rows: Ints, means: Means, k: int, progress: ShareProgress) -> tuple[Ints, Ints, Floats]:
        """Return the clusters that search, and their nearest ones; see :meth:`NeighbourSearch.nearest_of`."""
        assert isinstance(means, StoredMeans), "means in files"
        k, count = min(k, len(means) - 1), len(means)
        if count < _RENEWED * self._measured or not self._measured:
            self._renew(means, k)
        asks = np.zeros(count, dtype=bool)
        asks[rows] = True
        moved = np.flatnonzero(means.has_moved | asks)
        query, cell = self._look(means, moved, asks, k)
        means.has_moved[:] = False
        lists = Lists(len(rows), k, min_similarity=self._floor)
        position = np.full(count, -1, dtype=np.int32)
        position[rows] = np.arange(len(rows), dtype=np.int32)
        items = visits_of(means.cell, query, cell, self._n_cells)
        step = partial(visit_means, self._plan, k, self._floor)
        for cluster, other, score in self._runner.each(step, items, len(items), progress):
            lists.offer((position[cluster], other, score))
        lists.settle()
        found, similarity = sorted_lists(lists.rows, lists.similarity)
        return rows, found, np.maximum(similarity, -1)

    @property
    def _n_cells(self) -> int:
        assert self._plan.centroids is not None, "cells are found at the first search"
        return len(self._plan.centroids)

    def _look(self, means: StoredMeans, moved: Rows, asks: npt.NDArray[np.bool_], k: int) -> tuple[Ints, Ints]:
        """Find the cells of means that moved or ask; return (clusters, cells) of the visits of those that ask."""
        sizes = np.bincount(means.cell, minlength=self._n_cells)
        step = partial(look_means, self._plan, self._reach, 4 * k, sizes)
        parts = [moved[low:high] for low, high in spans_of(len(moved), _LOOKED)]
        queries, cells = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        found = self._runner.each(step, parts, len(parts), lambda _share: None)
        for part, (own, row, cell) in zip(parts, found, strict=True):
            means.cell[part] = own
            asking = asks[part[row]]
            queries += [part[row[asking]].astype(np.int32), part[asks[part]].astype(np.int32)]
            cells += [cell[asking], own[asks[part]]]
        return np.concatenate(queries), np.concatenate(cells)

    def _renew(self, means: StoredMeans, k: int) -> None:
        """Find cells of the present means, and measure the reach."""
        count, engine = len(means), engine_of_worker()
        cells = max(1, count // CELL_ROWS)
        rows = sample_rows(count, cells, self._random)
        sample = np.empty((len(rows), means.dimension), dtype=np.float32)
        for part in slices(len(rows), _LOOKED):
            means.expect(rows[part])
            means.of(rows[part], sample[part])
        centroids = find_cell_centroids(sample, cells, engine=engine, random=self._random, progress=lambda _share: None)
        sizes = sizes_of(centroids, sample, count, engine)
        del sample
        tested = tested_rows(count, self._random)
        queries = means.of(tested)
        near, scores = self._exact(queries, tested, count, k)
        cell = assign(means.of(near.ravel()), centroids.all, engine=engine).reshape(near.shape)
        measured = reach_of(
            queries, cell, scores, centroids.all, count,
            recall=SEARCH_RECALL, min_similarity=self._floor, sizes=sizes,
        )  # fmt: skip
        self._reach, self._measured = max(self._reach, measured.closest), count
        centroids = with_few_coarse(centroids, queries, np.full(len(queries), self._reach, dtype=np.float32))
        self._plan = replace(self._plan, centroids=centroids, grouping=None, turn=self._plan.turn + 1).save()
        spans = spans_of(count, _LOOKED)
        found = self._runner.each(partial(cells_of_means, self._plan), spans, len(spans), lambda _share: None)
        means.cell[:] = np.concatenate(list(found))
        means.has_moved[:] = False

    def _exact(self, queries: Vectors, tested: Rows, count: int, k: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Return (clusters, similarities) of the exact neighbours of some means: shape (T, k)."""
        found = none_near(len(tested))
        spans = spans_of(count, _LOOKED)
        step = partial(find_exact_means, queries, tested, k, self._plan)
        for some in self._runner.each(step, spans, len(spans), lambda _share: None):
            found = nearer(found, some, k)
        return found


@dataclass(frozen=True)
class Visits:
    """Visits to the clusters of some cells.

    Attributes:
        members: int32, shape (M,): the clusters of the cells, sorted by cell.
        starts: int64, shape (C + 1,): where the clusters of each cell begin among them, and the end.
        visitors: int32, shape (V,): visiting clusters, sorted by cell.
        ends: int64, shape (C + 1,): where the visitors of each cell begin among them, and the end.
    """

    members: Ints
    starts: npt.NDArray[np.int64]
    visitors: Ints
    ends: npt.NDArray[np.int64]


def visits_of(of_cluster: Ints, query: Ints, cell: Ints, count: int, *, n_parts: int = _PARTS) -> list[Visits]:
    """Return all visits, in parts that take about equally long.

    A cluster without structure fills many cells, and all of its rows visit all of these. So parts do not follow groups,
    and the visitors of one cell may be in several.

    Args:
        of_cluster: int32, shape (A,): the cell of each cluster.
        query: int32, shape (V,): visiting clusters.
        cell: int32, shape (V,): the cells that they visit.
        count: the number of cells.
        n_parts: about the number of parts.
    """
    order, starts = group_rows(of_cluster, count)
    visiting, ends = group_rows(cell, count)
    members, visitors = order.astype(np.int32), query[visiting]
    cost = np.diff(starts) * np.diff(ends)
    most = max(1, int(cost.sum()) // n_parts)
    parts, low = [], 0
    until = np.cumsum(cost)
    while low < count:
        done = int(until[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(until, done + most, side="right")))
        first, last = int(ends[low]), int(ends[high])
        turns = max(1, -(-int(cost[low]) // most)) if high == low + 1 else 1
        bounds = np.linspace(first, last, turns + 1).astype(np.int64)
        for start, stop in pairwise(bounds.tolist()):
            if stop > start:
                limits = np.clip(ends[low : high + 1], start, stop) - start
                held = slice(int(starts[low]), int(starts[high]))
                parts.append(Visits(members[held], starts[low : high + 1] - held.start, visitors[start:stop], limits))
        low = high
    return parts


def find_exact_means(
    queries: Vectors, tested: Rows, k: int, plan: Plan, span: Span
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return (clusters, similarities) of those of a span that are nearest to queries, without these themselves.

    Args:
        queries: float32, shape (T, D): means of some clusters.
        tested: shape (T,): their numbers.
        k: the number of clusters to find, and one more.
        plan: has the file of means.
        span: the clusters.
    """
    found = nearest_to(queries, plan.files.part(*span), k + 1)
    clusters = np.where(found.rows < 0, -1, found.rows.astype(np.int64) + span[0])
    found.similarity[clusters == tested[:, None]] = -np.inf
    return clusters, found.similarity


def cells_of_means(plan: Plan, span: Span) -> Ints:
    """Return the cells of the means of consecutive clusters."""
    assert plan.centroids is not None, "the cells are known"
    return plan.centroids.near(plan.files.part(*span), 0.0, engine=engine_of_worker())[0].astype(np.int32)


def look_means(
    plan: Plan, reach: float, min_rows: int, sizes: npt.NDArray[np.int64], clusters: Rows
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the cells of means, and (numbers, cells) of those that they probe.

    Args:
        plan: has the cells and the file of means.
        reach: how far the means probe.
        min_rows: a mean probes further cells beyond the reach until they have this many clusters.
        sizes: int64, shape (C,): the number of clusters of each cell, as the cells were found.
        clusters: shape (M,): the clusters, ascending.
    """
    assert plan.centroids is not None, "the cells are known"
    engine = engine_of_worker()
    with PlaceReader(plan.files) as reader:
        content = reader.take(clusters)
    own, row, cell = plan.centroids.near(content, reach, engine=engine)
    more = further_probes(content, plan.centroids.all, own, row, cell, sizes, min_rows, engine)
    row, cell = np.concatenate([row, more[0]]), np.concatenate([cell, more[1]])
    return own.astype(np.int32), row, cell.astype(np.int32)


def visit_means(plan: Plan, k: int, floor: float, visits: Visits) -> Survivors:
    """Return (cluster, other cluster, similarity) of the nearest clusters that visitors find in some cells."""
    visitors, number = np.unique(visits.visitors, return_inverse=True)
    found = Lists(len(visitors), k, min_similarity=floor)
    engine = engine_of_worker()
    with PlaceReader(plan.files) as reader:
        for first, last in bundles(visits.starts):
            members = visits.members[visits.starts[first] : visits.starts[last]]
            of_bundle = np.unique(number[visits.ends[first] : visits.ends[last]])
            if not len(of_bundle):
                continue
            for row, column, score in compare_visitors(reader, members, visitors, of_bundle, found.limits, k, engine):
                foreign = visitors[row] != members[column]
                found.offer((row[foreign], members[column[foreign]], score[foreign]))
    found.settle()
    row, column = np.nonzero(found.rows >= 0)
    return visitors[row], found.rows[row, column], found.similarity[row, column]
