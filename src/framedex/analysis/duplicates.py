"""Groups of near-duplicates at several levels of similarity."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows, probe_cells
from framedex.analysis.components import connected_components, spanning_forest
from framedex.analysis.linkage import ROUNDING, number_by_first_row
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import Products, best_products
from framedex.analysis.separation import Pairs, separate_groups
from framedex.analysis.vector_sources import SelectedVectors, VectorSource
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

_TILE = 1024
_QUERIES = 4096
_LISTED = 65536  # rows whose lists are read at a time
_MANY_PAIRS = 20_000_000  # that take half a gigabyte while they are joined
_DENSE = 0.1  # if more pairs of a block are near, their components are compared before they are listed
_ALL_PAIRS = 20_000  # up to this number, all crowded rows are compared with each other

Items = npt.NDArray[np.int64]
ItemPairs = tuple[Items, Items, npt.NDArray[np.float32]]
"""(item, other item, similarity)"""
_NO_PAIRS: Pairs = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
_Components = list[npt.NDArray[np.int32]]
_Blocks = Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def duplicate_groups(
    vectors: VectorSource,
    graph: NeighbourGraph,
    inverse: Items,
    levels: Sequence[float],
    *,
    cannot_link: Sequence[Items] = (),
    known: ItemPairs | None = None,
    owners: npt.NDArray[np.int32] | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the near-duplicate groups of each level: connected components of the pairs with at least its similarity.

    Groups are nested, because the levels ascend.

    Args:
        vectors: vectors of the M distinct rows; read only for rows with many near-duplicates.
        graph: neighbours of the distinct rows. If all listed neighbours of a row are near-duplicates, it may have more.
            Such crowded rows are compared with each other: all of them, or only rows in near cells if there are many.
        inverse: int64, shape (N,): the distinct row of each item.
        levels: similarities in [-1, 1], ascending.
        cannot_link: sets of items; no two items of a set are duplicates, whatever their similarity. Groups are then
            joined from the most similar pair on, and pairs that would put two such items into one group are skipped.
        known: further pairs: item, other item, similarity.
        owners: int32, shape (N,): items with the same number ≥ 0 are no duplicates of each other, unless they are
            in one group through another item.
        engine: computes the matrix products.
        progress: called between blocks of rows.

    Returns:
        groups: int32, shape (N, len(levels)): group numbers from 0 in order of first items; -1 without duplicates.
        similarity: float32, shape (N,): similarity to the most similar other item, 1.0 for exact copies; -1 for a
            single item.
    """
    graph = graph.filled()
    copies = np.bincount(inverse, minlength=len(graph.rows))
    owner_of_row = None if owners is None else _owners_of_rows(owners, inverse, len(graph.rows))
    nearest = _nearest(graph, owner_of_row)
    if owner_of_row is not None:
        copies = np.where(owner_of_row >= 0, 1, copies)
    # With sets that are apart, each pair counts: one that connects nothing more may do so once another one is skipped.
    pairs = _listed_pairs(graph, levels, owner_of_row, None if len(cannot_link) else _MANY_PAIRS)
    if known is not None and len(known[0]):
        pairs = _with_known(pairs, known, inverse, nearest)
    similarity = np.where(copies > 1, np.float32(1), nearest)[inverse].astype(np.float32)
    components = [_join_components(None, len(graph.rows), pairs, level) for level in levels]
    pairs = _add_unlisted_pairs(vectors, graph, components, levels, pairs, owner_of_row, engine, progress)
    groups = np.stack([component[inverse] for component in components], axis=1)
    if len(cannot_link):
        separate_groups(groups, similarity, graph, pairs, inverse, cannot_link, [level - ROUNDING for level in levels])
    for column in range(len(levels)):
        groups[:, column] = without_singles(groups[:, column], owners)
    return groups, similarity


def copy_groups(
    count: int,
    pairs: ItemPairs,
    levels: Sequence[float],
    *,
    cannot_link: Sequence[Items] = (),
    owners: npt.NDArray[np.int32] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the groups of each level among items whose copies are known; see :func:`duplicate_groups`.

    Args:
        count: the number of items.
        pairs: all pairs of copies.
        levels: similarities, ascending.
        cannot_link: sets of items; no two items of a set are duplicates.
        owners: int32, shape (count,): items with the same number ≥ 0 alone are no group.
    """
    a, b, score = pairs
    rows: Pairs = (a.astype(np.int32), b.astype(np.int32), score.astype(np.float32))
    similarity = np.full(count, -1, np.float32)
    for ends in rows[:2]:
        np.maximum.at(similarity, ends, rows[2])
    groups = np.stack([_join_components(None, count, rows, level) for level in levels], axis=1)
    if len(cannot_link):
        nothing = NeighbourGraph(np.empty((count, 0), np.int32), np.empty((count, 0), np.float32))
        limits = [level - ROUNDING for level in levels]
        separate_groups(groups, similarity, nothing, rows, np.arange(count), cannot_link, limits)
    for column in range(len(levels)):
        groups[:, column] = without_singles(groups[:, column], owners)
    return groups, similarity


_Owners = npt.NDArray[np.int32]


def _owners_of_rows(owners: _Owners, inverse: Items, count: int) -> _Owners:
    """Return the owner that all items of each distinct row have; -1 for none."""
    of_row = np.full(count, -1, dtype=np.int32)
    of_row[inverse] = owners
    of_row[inverse[owners != of_row[inverse]]] = -1
    return of_row


def _nearest(graph: NeighbourGraph, owners: _Owners | None) -> npt.NDArray[np.float32]:
    """Return the similarity of each row to its most similar listed neighbour with another owner; -1 for none."""
    if not graph.k:
        return np.full(len(graph.rows), -1, np.float32)
    if owners is None:
        return graph.similarity[:, 0].copy()
    nearest = np.empty(len(graph.rows), dtype=np.float32)
    for start in range(0, len(nearest), _LISTED):
        part = slice(start, start + _LISTED)
        own = owners[part, None]
        is_apart = (own < 0) | (owners[graph.rows[part]] != own)
        nearest[part] = np.where(is_apart, graph.similarity[part], np.float32(-1)).max(axis=1)
    return nearest


def _listed_pairs(
    graph: NeighbourGraph, levels: Sequence[float], owners: _Owners | None, most: int | None = None
) -> Pairs:
    """Return the pairs of the graph with at least the similarity of the first level.

    Where these are many, pairs are left out that connect nothing more at any level.

    Args:
        graph: the neighbours.
        levels: see :func:`duplicate_groups`.
        owners: the owner of each row; None if there are none.
        most: the number of pairs above which some are left out; None for no limit.
    """
    found: list[Pairs] = [_NO_PAIRS]
    n_found = 0
    for start in range(0, len(graph.rows), _LISTED):
        part = slice(start, start + _LISTED)
        line, column = true_places(graph.similarity[part] >= levels[0] - ROUNDING)
        other, score = graph.rows[part][line, column], graph.similarity[part][line, column]
        row = (line + start).astype(np.int32)
        if owners is not None:
            is_apart = (owners[row] < 0) | (owners[row] != owners[other])
            row, other, score = row[is_apart], other[is_apart], score[is_apart]
        found.append((row, other, score))
        n_found += len(row)
        if most is not None and n_found > most:
            found = [_forests(_joined(found), len(graph.rows), levels)]
            n_found = len(found[0][0])
            most = max(most, 2 * n_found)
    return _joined(found)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    row, other, score = (np.concatenate([each[at] for each in parts]) for at in range(3))
    return row, other, score


def _forests(pairs: Pairs, count: int, levels: Sequence[float]) -> Pairs:
    """Return pairs that connect the same rows as all pairs at each level: a maximum spanning forest of the levels."""
    component, kept, rest = np.arange(count, dtype=np.int32), [_NO_PAIRS], pairs
    for level in reversed(levels):
        near = rest[2] >= level - ROUNDING
        some, rest = _chosen(rest, near), _chosen(rest, ~near)
        few = _chosen(some, spanning_forest(count, component[some[0]], component[some[1]]))
        kept.append(few)
        component = _join_components(component, count, few, level)
    return _joined(kept)


def _chosen(pairs: Pairs, places: npt.NDArray[Any]) -> Pairs:
    return pairs[0][places], pairs[1][places], pairs[2][places]


def _with_known(pairs: Pairs, known: ItemPairs, inverse: Items, nearest: npt.NDArray[np.float32]) -> Pairs:
    """Return the pairs of distinct rows with further pairs of items; *nearest* is raised to their similarities."""
    a, b = inverse[known[0]], inverse[known[1]]
    is_pair = a != b
    further = a[is_pair].astype(np.int32), b[is_pair].astype(np.int32), known[2][is_pair].astype(np.float32)
    for rows in further[:2]:
        np.maximum.at(nearest, rows, further[2])
    first, second, score = (np.concatenate(each) for each in zip(pairs, further, strict=True))
    return first, second, score


def _add_unlisted_pairs(
    vectors: VectorSource,
    graph: NeighbourGraph,
    components: _Components,
    levels: Sequence[float],
    pairs: Pairs,
    owners: _Owners | None,
    engine: Products | None,
    progress: ShareProgress,
) -> Pairs:
    """Join components that are connected by pairs missing from the neighbour lists; return all pairs.

    A pair can be missing only if both rows have full lists of near-duplicates: a list that is not full contains all
    near-duplicates of its row.
    """
    min_similarity = levels[0] - ROUNDING
    if graph.k == 0 or graph.k >= len(vectors) - 1:
        return pairs
    crowded = np.flatnonzero(graph.similarity[:, -1] >= min_similarity)
    parts = [pairs]
    for done, (a, b) in enumerate(_blocks(vectors, graph, crowded, engine)):
        if all(_are_one(component, a, b) for component in components):
            continue
        scores = vectors.take(a) @ vectors.take(b).T
        if owners is not None:
            scores[(owners[a] >= 0)[:, None] & (owners[a][:, None] == owners[b])] = -1
        for position, level in enumerate(levels):
            if _are_one(components[position], a, b):
                continue
            new = _connecting(scores, a, b, components[position], level - ROUNDING)
            if new is None:
                break
            if len(new[0]):
                parts.append(new)
                components[position] = _join_components(components[position], len(vectors), new, level)
        progress(1 - 0.99**done)
    return _joined(parts)


def _blocks(
    vectors: VectorSource, graph: NeighbourGraph, crowded: npt.NDArray[np.int64], engine: Products | None
) -> _Blocks:
    """Yield pairs of sets of crowded rows to compare with each other."""
    if len(crowded) <= _ALL_PAIRS or graph.cells is None:
        tiles = [crowded[start : start + _TILE] for start in range(0, len(crowded), _TILE)]
        yield from ((a, b) for position, a in enumerate(tiles) for b in tiles[position:])
        return
    centroids = graph.cells.centroids
    _, probes = probe_cells(
        SelectedVectors(vectors, crowded),
        centroids,
        graph.cells.reach,
        min_rows=0,
        engine=engine or best_products(),
        progress=lambda _share: None,
    )
    order, starts = group_rows(graph.cells.of_row[crowded], len(centroids))
    for cell in range(len(centroids)):
        members = crowded[order[starts[cell] : starts[cell + 1]]]
        visitors = np.concatenate([members, crowded[probes.into(cell)]])
        for start in range(0, len(visitors) if len(members) else 0, _QUERIES):
            yield visitors[start : start + _QUERIES], members


def _are_one(component: npt.NDArray[np.int32], a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> bool:
    return bool(component[a].min() == component[a].max() == component[b].min() == component[b].max())


def _connecting(
    scores: npt.NDArray[np.float32],
    a: npt.NDArray[np.int64],
    b: npt.NDArray[np.int64],
    component: npt.NDArray[np.int32],
    level: float,
) -> Pairs | None:
    """Return the pairs of a block that reach a level and connect two components; None if no pair reaches it."""
    near = scores >= np.float32(level)
    n_near = np.count_nonzero(near)
    if not n_near:
        return None
    own, other = component[a], component[b]
    if n_near > _DENSE * near.size:
        near &= own[:, None] != other
    row, column = true_places(near)
    differ = own[row] != other[column]
    row, column = row[differ], column[differ]
    return a[row].astype(np.int32), b[column].astype(np.int32), scores[row, column]


def _join_components(
    component: npt.NDArray[np.int32] | None, count: int, pairs: Pairs, level: float
) -> npt.NDArray[np.int32]:
    """Return the components joined by the pairs that reach the level; None stands for components of single rows."""
    near = pairs[2] >= level - ROUNDING
    a, b = pairs[0][near], pairs[1][near]
    if component is not None:
        a, b = component[a], component[b]
    joined = connected_components(count, a, b)[1]
    return joined if component is None else joined[component]


def without_singles(component: npt.NDArray[np.int32], owners: _Owners | None = None) -> npt.NDArray[np.int32]:
    """Return group numbers from 0 in order of first items; -1 for items of a group of one item, or of one owner.

    Args:
        component: int32, shape (N,), from 0: the component of each item.
        owners: int32, shape (N,): -1 for items without an owner.
    """
    sizes = np.bincount(component, minlength=1)
    shared = sizes[component] > 1 if len(component) else np.empty(0, dtype=bool)
    if owners is not None and len(component):
        lowest = np.full(len(sizes), np.iinfo(np.int32).max)
        highest = np.full(len(sizes), -1)
        np.minimum.at(lowest, component, owners)
        np.maximum.at(highest, component, owners)
        shared &= ((lowest != highest) | (lowest < 0))[component]
    groups = np.full(len(component), -1, dtype=np.int32)
    groups[shared] = number_by_first_row(component[shared])
    return groups
