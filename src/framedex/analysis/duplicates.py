"""Groups of near-duplicates at several levels of similarity."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from framedex.analysis.cells import group_rows, probe_cells
from framedex.analysis.linkage import ROUNDING, number_by_first_row
from framedex.analysis.neighbours import Graph, ignore_progress
from framedex.analysis.products import Products, best_products
from framedex.analysis.separation import Pairs, separated
from framedex.analysis.vector_sources import VectorSource
from framedex.progress import ShareProgress

_TILE = 1024
_QUERIES = 4096
_ALL_PAIRS = 20_000  # up to so many crowded rows are all compared with each other

Items = npt.NDArray[np.int64]
_Components = list[npt.NDArray[np.int32]]
_Blocks = Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def duplicate_groups(
    vectors: VectorSource,
    graph: Graph,
    inverse: Items,
    levels: Sequence[float],
    *,
    cannot_link: Sequence[Items] = (),
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return groups that are connected by pairs at least as similar as each level; so groups are nested.

    Args:
        vectors: of the M distinct rows; some are read, where rows have many near-duplicates.
        graph: their neighbours. Rows whose neighbours are all near-duplicates may have more of them, and are compared
            with each other: all of them, or those in near cells where they are many.
        inverse: int64, shape (N,): the distinct row of each item.
        levels: similarities in [-1, 1], ascending.
        cannot_link: sets of items of which no two are duplicates, whatever their similarity. Groups are then joined from
            the most similar pair on, without pairs that would bring two such items together.
        engine: multiplies.
        progress: called between blocks of rows.

    Returns:
        groups: int32, shape (N, len(levels)): group numbers from 0 in order of first items; -1 without duplicates.
        similarity: float32, shape (N,): to the most similar other item, 1.0 for exact copies; -1 for a single item.
    """
    graph = graph.filled()
    copies = np.bincount(inverse, minlength=len(graph.rows))
    nearest = graph.similarity[:, 0] if graph.k else np.full(len(graph.rows), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[inverse].astype(np.float32)
    pairs = _listed(graph, levels[0] - ROUNDING)
    components = [_joined(None, len(graph.rows), pairs, level) for level in levels]
    pairs = _with_crowds(vectors, graph, components, levels, pairs, engine, progress)
    groups = np.stack([component[inverse] for component in components], axis=1)
    if len(cannot_link):
        separated(groups, similarity, graph, pairs, inverse, cannot_link, [level - ROUNDING for level in levels])
    for place in range(len(levels)):
        groups[:, place] = _without_singles(groups[:, place])
    return groups, similarity


def _listed(graph: Graph, least: float) -> Pairs:
    """Return the pairs of at least that similarity in the graph."""
    row, place = np.nonzero(graph.similarity >= least)
    return row.astype(np.int32), graph.rows[row, place], graph.similarity[row, place]


def _with_crowds(
    vectors: VectorSource,
    graph: Graph,
    components: _Components,
    levels: Sequence[float],
    pairs: Pairs,
    engine: Products | None,
    progress: ShareProgress,
) -> Pairs:
    """Join components that pairs beyond the ends of neighbour lists connect; return all pairs that connect something.

    If only one of two rows had a full list of near-duplicates, the other's would name the first. So only pairs of rows
    with full lists can be missing.
    """
    least = levels[0] - ROUNDING
    if graph.k == 0 or graph.k >= len(vectors) - 1:
        return pairs
    crowded = np.flatnonzero(graph.similarity[:, -1] >= least)
    found = [pairs]
    for done, (a, b) in enumerate(_blocks(vectors, graph, crowded, engine)):
        if all(_are_one(component, a, b) for component in components):
            continue
        scores = vectors.take(a) @ vectors.take(b).T
        for place, level in enumerate(levels):
            new = _connecting(scores, a, b, components[place], level - ROUNDING)
            if new is None:
                break
            if len(new[0]):
                found.append(new)
                components[place] = _joined(components[place], len(vectors), new, level)
        progress(1 - 0.99**done)
    row, other, similarity = (np.concatenate([each[part] for each in found]) for part in range(3))
    return row, other, similarity


def _blocks(vectors: VectorSource, graph: Graph, crowded: npt.NDArray[np.int64], engine: Products | None) -> _Blocks:
    """Yield pairs of sets of crowded rows that are to be compared with each other."""
    if len(crowded) <= _ALL_PAIRS or graph.cells is None:
        tiles = [crowded[start : start + _TILE] for start in range(0, len(crowded), _TILE)]
        yield from ((a, b) for place, a in enumerate(tiles) for b in tiles[place:])
        return
    centroids = graph.cells.centroids
    _, looks = probe_cells(
        vectors.take(crowded),
        centroids,
        graph.cells.reach,
        least=0,
        engine=engine or best_products(),
        progress=lambda _share: None,
    )
    order, starts = group_rows(graph.cells.of_row[crowded], len(centroids))
    for cell in range(len(centroids)):
        members = crowded[order[starts[cell] : starts[cell + 1]]]
        visitors = np.concatenate([members, crowded[looks.into(cell)]])
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
    """Return the pairs of a block that reach a level and connect two components; None where no pair reaches it."""
    near = scores >= np.float32(level)
    if not near.any():
        return None
    row, column = np.nonzero(near & (component[a][:, None] != component[b]))
    return a[row].astype(np.int32), b[column].astype(np.int32), scores[row, column]


def _joined(component: npt.NDArray[np.int32] | None, count: int, pairs: Pairs, level: float) -> npt.NDArray[np.int32]:
    """Return the components after joining those of each pair that reaches the level; by default of single rows."""
    near = pairs[2] >= level - ROUNDING
    a, b = pairs[0][near], pairs[1][near]
    if component is not None:
        a, b = component[a], component[b]
    ones = np.ones(len(a), dtype=np.int8)
    links = scipy.sparse.coo_array((ones, (a, b)), shape=(count, count))
    joined = np.asarray(connected_components(links, directed=False)[1], dtype=np.int32)
    return joined if component is None else joined[component]


def _without_singles(component: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    sizes = np.bincount(component, minlength=1)
    shared = sizes[component] > 1 if len(component) else np.empty(0, dtype=bool)
    groups = np.full(len(component), -1, dtype=np.int32)
    groups[shared] = number_by_first_row(component[shared])
    return groups
