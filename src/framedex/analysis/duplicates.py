"""Groups of near-duplicates at several levels of similarity."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows, probe_cells
from framedex.analysis.components import connected_components
from framedex.analysis.linkage import ROUNDING, number_by_first_row
from framedex.analysis.neighbours import NeighbourGraph, ignore_progress
from framedex.analysis.products import Products, best_products
from framedex.analysis.separation import Pairs, separate_groups
from framedex.analysis.vector_sources import VectorSource
from framedex.core.progress import ShareProgress

_TILE = 1024
_QUERIES = 4096
_ALL_PAIRS = 20_000  # up to this number, all crowded rows are compared with each other

Items = npt.NDArray[np.int64]
_Components = list[npt.NDArray[np.int32]]
_Blocks = Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def duplicate_groups(
    vectors: VectorSource,
    graph: NeighbourGraph,
    inverse: Items,
    levels: Sequence[float],
    *,
    cannot_link: Sequence[Items] = (),
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
        engine: computes the matrix products.
        progress: called between blocks of rows.

    Returns:
        groups: int32, shape (N, len(levels)): group numbers from 0 in order of first items; -1 without duplicates.
        similarity: float32, shape (N,): similarity to the most similar other item, 1.0 for exact copies; -1 for a
            single item.
    """
    graph = graph.filled()
    copies = np.bincount(inverse, minlength=len(graph.rows))
    nearest = graph.similarity[:, 0] if graph.k else np.full(len(graph.rows), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[inverse].astype(np.float32)
    pairs = _listed_pairs(graph, levels[0] - ROUNDING)
    components = [_join_components(None, len(graph.rows), pairs, level) for level in levels]
    pairs = _add_unlisted_pairs(vectors, graph, components, levels, pairs, engine, progress)
    groups = np.stack([component[inverse] for component in components], axis=1)
    if len(cannot_link):
        separate_groups(groups, similarity, graph, pairs, inverse, cannot_link, [level - ROUNDING for level in levels])
    for column in range(len(levels)):
        groups[:, column] = _without_singles(groups[:, column])
    return groups, similarity


def _listed_pairs(graph: NeighbourGraph, min_similarity: float) -> Pairs:
    """Return the pairs of the graph with at least a similarity."""
    row, column = np.nonzero(graph.similarity >= min_similarity)
    return row.astype(np.int32), graph.rows[row, column], graph.similarity[row, column]


def _add_unlisted_pairs(
    vectors: VectorSource,
    graph: NeighbourGraph,
    components: _Components,
    levels: Sequence[float],
    pairs: Pairs,
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
        for position, level in enumerate(levels):
            new = _connecting(scores, a, b, components[position], level - ROUNDING)
            if new is None:
                break
            if len(new[0]):
                parts.append(new)
                components[position] = _join_components(components[position], len(vectors), new, level)
        progress(1 - 0.99**done)
    row, other, similarity = (np.concatenate([each[part] for each in parts]) for part in range(3))
    return row, other, similarity


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
        vectors.take(crowded),
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
    if not near.any():
        return None
    row, column = np.nonzero(near & (component[a][:, None] != component[b]))
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


def _without_singles(component: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    sizes = np.bincount(component, minlength=1)
    shared = sizes[component] > 1 if len(component) else np.empty(0, dtype=bool)
    groups = np.full(len(component), -1, dtype=np.int32)
    groups[shared] = number_by_first_row(component[shared])
    return groups
