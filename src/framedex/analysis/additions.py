"""Additions to an index: the neighbours of added rows, and the clusters and duplicate groups that they join."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import take_rows
from framedex.analysis.cluster_means import ClusterMeans, ClusterSums
from framedex.analysis.components import connected_components
from framedex.analysis.linkage import ROUNDING, average_linkage
from framedex.analysis.lookup import Queries, look_up
from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.products import Products, best_products
from framedex.analysis.runs import add_by_group
from framedex.analysis.vector_sources import ConcatenatedVectors, VectorSource
from framedex.core.arrays import Vectors
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

_DENSE_ROWS = 2048  # of added rows, which are mostly far from each other
_PAIRS = 65_536  # pairs of units and clusters compared at a time

Labels = npt.NDArray[np.int32]
Rows = npt.NDArray[np.integer]
_Links = tuple[Rows, Rows, npt.NDArray[np.float32]]


def extend(
    graph: NeighbourGraph,
    indexed: VectorSource,
    added: Vectors,
    *,
    k: int,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[NeighbourGraph, npt.NDArray[np.bool_]]:
    """Return the neighbour graph extended by added rows, which follow the indexed rows.

    Each added row is compared with the rows of nearby cells of the existing graph. An indexed row gets an added row as
    a neighbour if it is nearer than one of its current neighbours. No other rows are compared again. The vectors of the
    indexed rows are read once, block by block.

    Args:
        graph: neighbours of the M indexed rows.
        indexed: vectors of the indexed rows.
        added: float32 or float16, shape (A, D), unit length.
        k: neighbours per row, as in the existing graph.
        engine: computes the matrix products.
        progress: called between blocks.

    Returns:
        graph: neighbours of all N = M + A rows.
        touched: bool, shape (N,): true for rows whose neighbours changed, and for all added rows.
    """
    count = len(indexed) + len(added)
    engine = engine or best_products()
    if graph.k == 0 or graph.k < min(k, count - 1):  # the graph has fewer rows than k
        vectors = np.concatenate([indexed.take(np.arange(len(indexed))), added]) if len(indexed) else added
        return nearest(vectors, k=k, engine=engine, progress=progress), np.ones(count, dtype=bool)
    lists = Lists.of(graph, count)
    queries = Queries(np.arange(len(indexed), count), take_rows(added, slice(None)))
    cells = look_up(
        queries,
        ConcatenatedVectors(indexed, added),
        graph.cells,
        lists,
        update_below=len(indexed),
        engine=engine,
        progress=progress,
    )
    return lists.graph(cells), lists.changed


@dataclass(frozen=True)
class _Units:
    """Clusters of added rows that have not joined an existing cluster yet.

    Attributes:
        means: float32, shape (U, D): the mean vector of each unit.
        weights: float64, shape (U,): the number of items in each unit.
        of_row: int64, shape (A,): the unit of each added row; -1 for rows that have joined an existing cluster.
    """

    means: Vectors
    weights: npt.NDArray[np.float64]
    of_row: npt.NDArray[np.int64]


def join_clusters(
    indexed: VectorSource,
    added: Vectors,
    weights: npt.NDArray[np.int64],
    graph: NeighbourGraph,
    labels: Labels,
    cuts: Sequence[float],
    first_free: Sequence[int],
    *,
    sums: ClusterSums | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[Labels, list[int]]:
    """Assign added rows to the nearest existing cluster within the cut of each level, or to new clusters.

    An added row that joins a cluster also belongs to the coarser clusters which contain it. Added rows that are too far
    from all existing clusters of a level are linked with each other, and move together to the next level. Existing
    clusters do not change.

    Args:
        indexed: vectors of the M indexed rows; only members of clusters near added rows are read.
        added: float32 or float16, shape (A, D), unit length.
        weights: int64, shape (M + A,): the number of identical items for each row.
        graph: neighbours of all rows.
        labels: int32, shape (M, L): cluster numbers of the indexed rows, finest level first, nested.
        cuts: L ascending cosine distances.
        first_free: for each level the lowest cluster number that was never used.
        sums: precomputed sums of the indexed rows' clusters, if any.
        engine: computes the matrix products.
        progress: called between levels.

    Returns:
        labels: int32, shape (A, L): cluster numbers of the added rows.
        first_free: the updated lowest unused number of each level.
    """
    engine = engine or best_products()
    out = np.full((len(added), len(cuts)), -1, dtype=np.int32)
    added_weights = weights[len(indexed) :].astype(np.float64)
    units = _Units(take_rows(added, slice(None)), added_weights, np.arange(len(added)))
    means = ClusterMeans(indexed, weights[: len(indexed)], labels, sums, engine)
    links, stands_for = _links(graph, len(indexed)), np.concatenate([np.arange(len(indexed)), np.full(len(added), -1)])
    free = list(first_free)
    for level, cut in enumerate(cuts):
        if (units.of_row >= 0).any():
            units = _join_existing(units, links, stands_for, labels, level, cut, means, out)
            units = _link_units(units, cut, engine)
            alone = units.of_row >= 0
            out[alone, level] = free[level] + units.of_row[alone]
            free[level] += len(units.means)
        progress((level + 1) / len(cuts))
    return out, free


def _links(graph: NeighbourGraph, n_indexed: int) -> _Links:
    """Return (added row, other row, similarity) of all neighbour pairs with an added row; added rows count from 0."""
    added = np.repeat(np.arange(len(graph.rows) - n_indexed), graph.k)
    # Many similar added rows list only each other, but indexed rows may list them.
    row, column = true_places(graph.rows >= n_indexed)
    return (
        np.concatenate([added, graph.rows[row, column] - n_indexed]),
        np.concatenate([graph.rows[n_indexed:].ravel(), row]),
        np.concatenate([graph.similarity[n_indexed:].ravel(), graph.similarity[row, column]]),
    )


def _join_existing(
    units: _Units,
    links: _Links,
    stands_for: npt.NDArray[np.int64],
    labels: Labels,
    level: int,
    cut: float,
    means: ClusterMeans,
    out: Labels,
) -> _Units:
    """Assign units to the nearest cluster of a level within the cut, in *out*; return the remaining units.

    Candidates are the clusters of a unit's neighbours: indexed rows, and added rows that have joined a cluster.
    *stands_for* contains an indexed row of each row's cluster, or -1, and is updated.
    """
    new = stands_for >= 0  # a cluster that was too far once is not compared again
    # If a mean similarity reaches the cut, at least one pair reaches it.
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
    """Return an indexed row of the nearest cluster within the cut for each unit, -1 for none.

    Args:
        units: clusters of added rows.
        row: added rows.
        near: for each entry of *row*, an indexed row whose cluster is a candidate for its unit.
        label: cluster numbers of the indexed rows.
        cut: cosine distance.
        level: level of the clusters.
        means: mean vectors of the clusters.
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
    """Return the dot products of pairs of rows; vectors are copied for a part of the pairs at a time."""
    products = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _PAIRS):
        part = slice(start, start + _PAIRS)
        products[part] = np.einsum("ij,ij->i", a[rows[part]], b[others[part]])
    return products


def _without(units: _Units, gone: npt.NDArray[np.bool_]) -> _Units:
    number = np.cumsum(~gone) - 1
    of_row = np.where((units.of_row >= 0) & ~gone[units.of_row], number[units.of_row], -1)
    return _Units(units.means[~gone], units.weights[~gone], of_row)


def _link_units(units: _Units, cut: float, engine: Products) -> _Units:
    """Return the units after linking them with each other."""
    if len(units.means) < 2:
        return units
    graph = nearest(units.means, engine=engine)
    label = average_linkage(
        units.means, units.weights.astype(np.int64), graph, [cut], dense_rows=_DENSE_ROWS, engine=engine
    )[:, 0]
    weights = np.bincount(label, weights=units.weights).astype(np.float64)
    sums = np.zeros((len(weights), units.means.shape[1]), dtype=np.float32)
    add_by_group(sums, units.means * units.weights[:, None].astype(np.float32), label)
    of_row = np.where(units.of_row >= 0, label[units.of_row], -1)
    return _Units((sums / weights[:, None]).astype(np.float32), weights, of_row)


def join_groups(
    groups: Labels,
    pairs: tuple[Rows, Rows, npt.NDArray[np.float32]],
    levels: Sequence[float],
    first_free: Sequence[int],
) -> tuple[Labels, list[int]]:
    """Return near-duplicate groups after adding pairs: groups connected by a pair become one group.

    Args:
        groups: int32, shape (N, L): the group number of each item at each level; -1 for none and for added items.
        pairs: (item, other item, similarity) of all pairs with an added item.
        levels: L ascending similarities.
        first_free: for each level the lowest group number that was never used.

    Returns:
        groups: int32, shape (N, L); a joined group has the number of its largest part.
        first_free: the updated lowest unused number of each level.
    """
    out, free = groups.copy(), list(first_free)
    for column, level in enumerate(levels):
        near = pairs[2] >= level - ROUNDING
        if near.any():
            out[:, column], free[column] = _connect(out[:, column], pairs[0][near], pairs[1][near], free[column])
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
    grouped = group >= 0
    out[grouped] = renamed[group[grouped]]
    out[items] = leader[component[compact]]
    return out, first_free + int(fresh.sum())
