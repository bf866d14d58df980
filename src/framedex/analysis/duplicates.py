"""Groups of near-duplicates at several levels of similarity."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from framedex.analysis.linkage import number_by_first_row
from framedex.analysis.neighbours import Graph, Progress, Vectors, ignore_progress

# Cosines of float32 vectors that are equal but for rounding stay within this of 1.
_ROUNDING = 1e-6
_BLOCK_VALUES = 4_000_000  # similarities that are held at a time


def duplicate_groups(
    vectors: Vectors,
    graph: Graph,
    inverse: npt.NDArray[np.int64],
    levels: Sequence[float],
    *,
    progress: Progress = ignore_progress,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return groups that are connected by pairs at least as similar as each level; so groups are nested.

    Args:
        vectors: float32, shape (M, D), unit length: the distinct rows.
        graph: their neighbours. Rows whose neighbours are all near-duplicates may have more of them, and are compared
            with all rows.
        inverse: int64, shape (N,): the distinct row of each item.
        levels: similarities in [-1, 1], ascending.
        progress: called between blocks of rows.

    Returns:
        groups: int32, shape (N, len(levels)): group numbers from 0 in order of first items; -1 without duplicates.
        similarity: float32, shape (N,): to the most similar other item, 1.0 for exact copies; -1 for a single item.
    """
    copies = np.bincount(inverse, minlength=len(graph.rows))
    nearest = graph.similarity[:, 0] if graph.k else np.full(len(graph.rows), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[inverse].astype(np.float32)
    components = [np.arange(len(graph.rows)) for _ in levels]
    for row, column, found in _pairs(vectors, graph, levels[0] - _ROUNDING):
        for place, level in enumerate(levels):
            near = found >= level - _ROUNDING
            components[place] = _joined(components[place], row[near], column[near])
        progress(0.0)
    groups = np.stack([_without_singles(component[inverse]) for component in components], axis=1)
    return groups, similarity


_Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]


def _pairs(vectors: Vectors, graph: Graph, least: float) -> Iterator[_Pairs]:
    """Yield (row, row, similarity) of all pairs of at least that similarity, block by block."""
    row, place = np.nonzero(graph.similarity >= least)
    yield row, graph.rows[row, place], graph.similarity[row, place]
    if graph.k == 0 or graph.k >= len(vectors) - 1:
        return
    crowded = np.flatnonzero(graph.similarity[:, -1] >= least)
    block = max(1, _BLOCK_VALUES // len(vectors))
    for start in range(0, len(crowded), block):
        rows = crowded[start : start + block]
        scores = vectors[rows] @ vectors.T
        row, column = np.nonzero(scores >= least)
        yield rows[row], column, scores[row, column]


def _joined(
    component: npt.NDArray[np.int64], row: npt.NDArray[np.int64], column: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the components after joining those of each pair of rows."""
    a, b = component[row], component[column]
    apart = a != b
    if not apart.any():
        return component
    ones = np.ones(int(apart.sum()), dtype=np.int8)
    links = scipy.sparse.coo_array((ones, (a[apart], b[apart])), shape=(len(component), len(component)))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)[component]


def _without_singles(component: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    sizes = np.bincount(component, minlength=1)
    shared = sizes[component] > 1 if len(component) else np.empty(0, dtype=bool)
    groups = np.full(len(component), -1, dtype=np.int32)
    groups[shared] = number_by_first_row(component[shared])
    return groups
