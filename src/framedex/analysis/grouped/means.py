"""Means of clusters that do not fit into memory, in the file of vectors, and the search among them by groups."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, further_probes, group_rows, sample_rows
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
from framedex.analysis.near_clusters import Ints
from framedex.analysis.neighbour_lists import Lists, sorted_lists
from framedex.analysis.reach import reach_of, tested_rows
from framedex.analysis.reciprocal import SEARCH_RECALL
from framedex.core.arrays import Floats, Vectors
from framedex.core.progress import ShareProgress

_RENEWED = 0.5  # cells are found again if less than this share of the clusters remains
_LOOKED = 16384  # clusters whose cells are found at a time
# Parts of the visits decide how products are rounded, so they do not depend on the workers.
_PARTS, _FEW_PARTS = 256, 16
_FEW_VISITORS, _MANY_VISITORS = 1024, 8192  # of a part: fewer ones read members too often, more take much memory
_MOVED = 16384  # means that are moved within the file at a time


class StoredMeans(Means):
    """Means in the file of vectors: that of each cluster at the place of its number.

    The clusters that are kept after a search move to the front of the file. So their means lie side by side, in the
    order of the cells in which they were at first, and soon all of them stay in the system's memory.

    Args:
        reader: reads the file.
        weights: float64, shape (A,): the number of items of each cluster.
    """

    def __init__(self, reader: PlaceReader, weights: Weights) -> None:
        super().__init__(weights, reader.files.dimension)
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

    def _kept(self, rows: Rows) -> Self:
        """See :meth:`Means.kept`."""
        for part in slices(len(rows), _MOVED):
            self._vectors[part] = self._reader.take(rows[part])  # none of the rows that follow lies before its end
        return type(self)(self._reader, self.weights[rows])

    def _put(self, keep: Rows, _gone: Rows) -> Callable[[slice, Vectors], None]:
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
        moved = np.flatnonzero(~means.cells.is_known | asks)
        query, cell = self._look(means, moved, asks, k)
        means.cells.is_known[:] = True
        found, similarity = np.empty((len(rows), k), np.int32), np.empty((len(rows), k), np.float32)
        position = np.full(count, -1, dtype=np.int32)
        position[rows] = np.arange(len(rows), dtype=np.int32)
        parts = VisitParts(means.cells.of_row, query, cell, self._n_cells)
        step = partial(visit_means, self._plan, k, self._floor)
        for cluster, near, score in self._runner.each(step, parts, len(parts), progress):
            found[position[cluster]], similarity[position[cluster]] = near, score
        return rows, found, similarity

    @property
    def _n_cells(self) -> int:
        assert self._plan.centroids is not None, "cells are found at the first search"
        return len(self._plan.centroids)

    def _look(self, means: StoredMeans, moved: Rows, asks: npt.NDArray[np.bool_], k: int) -> tuple[Ints, Ints]:
        """Find the cells of means that moved or ask; return (clusters, cells) of the visits of those that ask."""
        sizes = np.bincount(means.cells.of_row, minlength=self._n_cells)
        step = partial(look_means, self._plan, self._reach, 4 * k, sizes)
        parts = [moved[low:high] for low, high in spans_of(len(moved), _LOOKED)]
        queries, cells = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        found = self._runner.each(step, parts, len(parts), lambda _share: None)
        for part, (own, row, cell) in zip(parts, found, strict=True):
            means.cells.of_row[part] = own
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
        means.cells.of_row[:] = np.concatenate(list(found))
        means.cells.is_known[:] = True

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
    """Visits of some clusters to the clusters of all cells that these probe.

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


class VisitParts:
    """All visits, in parts that take about equally long.

    A part has all visits of its visitors: the more cells they have seen, the fewer clusters of the next one are near
    enough for their lists. A cluster without structure fills many cells, and all of its rows visit all of these. So
    visitors with the same first cell are put together.

    Args:
        of_cluster: int32, shape (A,): the cell of each cluster.
        query: int32, shape (V,): visiting clusters.
        cell: int32, shape (V,): the cells that they visit, each once.
        count: the number of cells.
        n_parts: about the number of parts; by default it depends on the number of visitors.
    """

    def __init__(self, of_cluster: Ints, query: Ints, cell: Ints, count: int, *, n_parts: int = 0) -> None:
        self._members, self._starts = group_rows(of_cluster, count)
        sizes = np.diff(self._starts)
        by_visitor = np.argsort(query, kind="stable")
        begin = np.flatnonzero(np.diff(query[by_visitor], prepend=-1))
        visitors, cells = query[by_visitor[begin]], cell[by_visitor]
        order = np.lexsort((of_cluster[visitors], np.minimum.reduceat(cells, begin)))
        cost = np.add.reduceat(sizes[cells], begin)[order]
        n_parts = n_parts or min(_PARTS, max(_FEW_PARTS, len(visitors) // _FEW_VISITORS))
        until = np.cumsum(np.maximum(cost * (n_parts / max(1, cost.sum())), 1 / _MANY_VISITORS))
        part_of = np.empty(len(of_cluster), dtype=np.int32)
        part_of[visitors[order]] = until - until[0]
        part = part_of[query]
        visits = np.lexsort((cell, part))
        self._query, self._cell = query[visits], cell[visits]
        self._begin = np.flatnonzero(np.diff(part[visits], prepend=-1, append=part.max(initial=0) + 1))

    def __len__(self) -> int:
        return len(self._begin) - 1

    def __iter__(self) -> Iterator[Visits]:
        for low, high in pairwise(self._begin.tolist()):
            cells, first = np.unique(self._cell[low:high], return_index=True)
            held = [self._members[self._starts[cell] : self._starts[cell + 1]] for cell in cells]
            starts, ends = np.cumsum([0, *(len(each) for each in held)]), np.append(first, high - low)
            yield Visits(np.concatenate(held).astype(np.int32), starts, self._query[low:high], ends)


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


def visit_means(plan: Plan, k: int, floor: float, visits: Visits) -> tuple[Ints, Ints, Floats]:
    """Return visitors, and the nearest clusters that they find with their similarities: shapes (V,), (V, k), (V, k)."""
    visitors, number = np.unique(visits.visitors, return_inverse=True)
    found = Lists(len(visitors), k, min_similarity=floor, gathered=len(visitors) * k)
    engine = engine_of_worker()
    with PlaceReader(plan.files) as reader:
        for first, last in bundles(visits.starts):
            members = visits.members[visits.starts[first] : visits.starts[last]]
            of_bundle = np.unique(number[visits.ends[first] : visits.ends[last]])
            for row, column, score in compare_visitors(reader, members, visitors, of_bundle, found.limits, k, engine):
                foreign = visitors[row] != members[column]
                found.offer((row[foreign], members[column[foreign]], score[foreign]))
    found.settle()
    return visitors, *sorted_lists(found.rows, found.similarity)
