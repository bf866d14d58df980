"""Rows that are added to an index: their neighbours among all rows, and the clusters and groups that they join."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows, take_rows
from framedex.analysis.cluster_means import ClusterMeans, ClusterSums
from framedex.analysis.components import connected_components
from framedex.analysis.linkage import ROUNDING, average_linkage
from framedex.analysis.lookup import Queries, look_up
from framedex.analysis.neighbours import Graph, Lists, ignore_progress, nearest
from framedex.analysis.products import Products, best_products
from framedex.analysis.vector_sources import ConcatenatedVectors, VectorSource
from framedex.arrays import Vectors
from framedex.progress import ShareProgress

_DENSE_ROWS = 2048  # of added rows, which mostly are far from each other
_PAIRS = 65_536  # of units and clusters that are compared at a time

Labels = npt.NDArray[np.int32]
Rows = npt.NDArray[np.integer]
_Links = tuple[Rows, Rows, npt.NDArray[np.float32]]


def extend(
    graph: Graph,
    known: VectorSource,
    added: Vectors,
    *,
    k: int,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """Return the graph with the rows that were added behind those that it knows.

    Added rows look into the cells that the graph was made with; rows that it knows get added neighbours where those are
    nearer than what they had. Nothing else is compared again. The known vectors are read once, block by block.

    Args:
        graph: of the M known rows.
        known: their vectors.
        added: float32 or float16, shape (A, D), unit length.
        k: neighbours a row, as the graph was made with.
        engine: multiplies.
        progress: called between blocks.

    Returns:
        graph: of all N = M + A rows.
        touched: bool, shape (N,): rows whose neighbours changed, the added ones among them.
    """
    count = len(known) + len(added)
    engine = engine or best_products()
    if graph.k == 0 or graph.k < min(k, count - 1):  # fewer rows than neighbours so far
        vectors = np.concatenate([known.take(np.arange(len(known))), added]) if len(known) else added
        return nearest(vectors, k=k, engine=engine, progress=progress), np.ones(count, dtype=bool)
    lists = Lists.of(graph, count)
    queries = Queries(np.arange(len(known), count), take_rows(added, slice(None)))
    cells = look_up(
        queries,
        ConcatenatedVectors(known, added),
        graph.cells,
        lists,
        told=len(known),
        engine=engine,
        progress=progress,
    )
    return lists.graph(cells), lists.changed


@dataclass(frozen=True)
class _Units:
    """Clusters of added rows that have not joined an older one yet.

    Attributes:
        means: float32, shape (U, D).
        weights: float64, shape (U,).
        of_row: int64, shape (A,): the unit of each added row; -1 for those that have joined.
    """

    means: Vectors
    weights: npt.NDArray[np.float64]
    of_row: npt.NDArray[np.int64]


def join_clusters(
    known: VectorSource,
    added: Vectors,
    weights: npt.NDArray[np.int64],
    graph: Graph,
    labels: Labels,
    cuts: Sequence[float],
    first_free: Sequence[int],
    *,
    sums: ClusterSums | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[Labels, list[int]]:
    """Return the clusters of added rows: the nearest one within the cut at each level, or new ones of their own.

    An added row that joins a cluster is in all coarser ones that hold it. Added rows that are too far from all older
    clusters of a level are linked among themselves, and go on together to the next level. Clusters that were there do
    not change.

    Args:
        known: vectors of the M known rows; those of clusters that added rows are near are read.
        added: float32 or float16, shape (A, D), unit length.
        weights: int64, shape (M + A,): how many identical items each row stands for.
        graph: neighbours of all rows.
        labels: int32, shape (M, L): the numbers of the known rows' clusters, finest level first, nested.
        cuts: L ascending cosine distances.
        first_free: for each level the least number that was never used.
        sums: of the known rows' clusters, where they are there already.
        engine: multiplies.
        progress: called between levels.

    Returns:
        labels: int32, shape (A, L): of the added rows.
        first_free: for each level, now.
    """
    engine = engine or best_products()
    out = np.full((len(added), len(cuts)), -1, dtype=np.int32)
    held = weights[len(known) :].astype(np.float64)
    units = _Units(take_rows(added, slice(None)), held, np.arange(len(added)))
    means = ClusterMeans(known, weights[: len(known)], labels, sums, engine)
    links, stands_for = _links(graph, len(known)), np.concatenate([np.arange(len(known)), np.full(len(added), -1)])
    free = list(first_free)
    for level, cut in enumerate(cuts):
        if (units.of_row >= 0).any():
            units = _joined(units, links, stands_for, labels, level, cut, means, out)
            units = _linked(units, cut, engine)
            alone = units.of_row >= 0
            out[alone, level] = free[level] + units.of_row[alone]
            free[level] += len(units.means)
        progress((level + 1) / len(cuts))
    return out, free


def _links(graph: Graph, known: int) -> _Links:
    """Return (added row from 0, other row, similarity) of all pairs of which one has the other among its neighbours."""
    added = np.repeat(np.arange(len(graph.rows) - known), graph.k)
    # Added rows that are many and near each other list no known ones, but those may list them.
    row, place = np.nonzero(graph.rows >= known)
    return (
        np.concatenate([added, graph.rows[row, place] - known]),
        np.concatenate([graph.rows[known:].ravel(), row]),
        np.concatenate([graph.similarity[known:].ravel(), graph.similarity[row, place]]),
    )


def _joined(
    units: _Units,
    links: _Links,
    stands_for: npt.NDArray[np.int64],
    labels: Labels,
    level: int,
    cut: float,
    means: ClusterMeans,
    out: Labels,
) -> _Units:
    """Let units join the nearest cluster of a level within the cut, in *out*; return those that are left.

    Those clusters are considered that neighbours are in: known ones, and added ones that have joined. *stands_for* has
    a known row of its cluster for each row, -1 for none, and is kept up to date.
    """
    new = stands_for >= 0  # what was compared once in vain need not be again
    # A mean similarity that reaches the cut is one of pairs of which at least one reaches it.
    near = links[2] >= 1 - cut - ROUNDING
    row, other = links[0][near], links[1][near]
    while len(units.means):
        left = (units.of_row[row] >= 0) & new[other]
        target = _nearest(units, row[left], stands_for[other[left]], labels[:, level], cut, level, means)
        joins = np.flatnonzero((units.of_row >= 0) & (target[units.of_row] >= 0))
        if not len(joins):
            break
        rows = target[units.of_row[joins]]
        stands_for[len(labels) + joins] = rows
        out[joins, level:] = labels[rows, level:]
        new = np.zeros_like(new)
        new[len(labels) + joins] = True
        units = _without(units, target >= 0)
    return units


def _nearest(
    units: _Units, row: Rows, near: Rows, label: Rows, cut: float, level: int, means: ClusterMeans
) -> npt.NDArray[np.int64]:
    """Return a known row of the nearest cluster within the cut for each unit, -1 for none.

    Args:
        units: clusters of added rows.
        row: added rows.
        near: known rows whose clusters are considered for the units of those.
        label: of the known rows.
        cut: a cosine distance.
        level: of the clusters.
        means: of the clusters.
    """
    target = np.full(len(units.means), -1, dtype=np.int64)
    if not len(row):
        return target
    candidate = label[near].astype(np.int64)
    _, example = np.unique(units.of_row[row] * (int(label.max()) + 1) + candidate, return_index=True)
    unit, number = units.of_row[row[example]], candidate[example]
    numbers, which = np.unique(number, return_inverse=True)
    similarity = _similarities(units.means, unit, means.of(level, numbers), which)
    order = np.lexsort((number, -similarity, unit))
    best = order[np.flatnonzero(np.diff(unit[order], prepend=-1))]
    best = best[similarity[best] >= 1 - cut - ROUNDING]
    target[unit[best]] = near[example[best]]
    return target


def _similarities(a: Vectors, rows: Rows, b: Vectors, others: Rows) -> npt.NDArray[np.float32]:
    """Return the dot products of pairs of rows, without a copy of all their vectors at a time."""
    found = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        found[part] = np.einsum("ij,ij->i", a[rows[part]], b[others[part]])
    return found


def _without(units: _Units, gone: npt.NDArray[np.bool_]) -> _Units:
    number = np.cumsum(~gone) - 1
    of_row = np.where((units.of_row >= 0) & ~gone[units.of_row], number[units.of_row], -1)
    return _Units(units.means[~gone], units.weights[~gone], of_row)


def _linked(units: _Units, cut: float, engine: Products) -> _Units:
    """Return the units after linking them among themselves."""
    if len(units.means) < 2:
        return units
    graph = nearest(units.means, engine=engine)
    label = average_linkage(
        units.means, units.weights.astype(np.int64), graph, [cut], dense_rows=_DENSE_ROWS, engine=engine
    )[:, 0]
    order, starts = group_rows(label, int(label.max()) + 1)
    weights = np.add.reduceat(units.weights[order], starts[:-1])
    sums = np.add.reduceat(units.means[order] * units.weights[order, None].astype(np.float32), starts[:-1], axis=0)
    of_row = np.where(units.of_row >= 0, label[units.of_row], -1)
    return _Units((sums / weights[:, None]).astype(np.float32), weights, of_row)


def join_groups(
    groups: Labels,
    pairs: tuple[Rows, Rows, npt.NDArray[np.float32]],
    levels: Sequence[float],
    first_free: Sequence[int],
) -> tuple[Labels, list[int]]:
    """Return near-duplicate groups after adding pairs: groups that a pair connects become one.

    Args:
        groups: int32, shape (N, L): the group number of each item at each level; -1 for none, as of all added items.
        pairs: (item, other item, similarity): the pairs with an added item in them.
        levels: L ascending similarities.
        first_free: for each level the least number that was never used.

    Returns:
        groups: int32, shape (N, L); of joined groups the one with the most members gives its number.
        first_free: for each level, now.
    """
    out, free = groups.copy(), list(first_free)
    for place, level in enumerate(levels):
        near = pairs[2] >= level - ROUNDING
        if near.any():
            out[:, place], free[place] = _connect(out[:, place], pairs[0][near], pairs[1][near], free[place])
    return out, free


def _connect(group: Labels, a: Rows, b: Rows, first_free: int) -> tuple[Labels, int]:
    """Return the groups after connecting the items of each pair."""
    # A node is a group, or an item without one.
    items = np.unique(np.concatenate([a, b]))
    node = np.where(group[items] >= 0, group[items], first_free + items)
    names, compact = np.unique(node, return_inverse=True)
    ends = (compact[np.searchsorted(items, each)] for each in (a, b))
    component = connected_components(len(names), *ends)[1]
    sizes = np.bincount(group[group >= 0], minlength=first_free)
    size = np.where(names < first_free, sizes[np.minimum(names, max(first_free - 1, 0))] if first_free else 0, 0)
    order = np.lexsort((names, -size, component))
    leader = names[order[np.flatnonzero(np.diff(component[order], prepend=-1))]]
    fresh = leader >= first_free
    leader[fresh] = first_free + np.arange(int(fresh.sum()))
    renamed = np.arange(first_free, dtype=np.int32)
    older = names < first_free
    renamed[names[older]] = leader[component[older]]
    out = group.copy()
    held = group >= 0
    out[held] = renamed[group[held]]
    out[items] = leader[component[compact]]
    return out, first_free + int(fresh.sum())
