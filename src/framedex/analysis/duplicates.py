"""Groups of near-duplicates at several levels of similarity."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from framedex.analysis.linkage import number_by_first_row
from framedex.analysis.neighbours import Graph

# Cosines of float32 vectors that are equal but for rounding stay within this of 1.
_ROUNDING = 1e-6


def duplicate_groups(
    graph: Graph, inverse: npt.NDArray[np.int64], levels: Sequence[float]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return groups that are connected by pairs at least as similar as each level; so groups are nested.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int64, shape (N,): the distinct row of each item.
        levels: similarities in [-1, 1], ascending.

    Returns:
        groups: int32, shape (N, len(levels)): group numbers from 0 in order of first items; -1 without duplicates.
        similarity: float32, shape (N,): to the most similar other item, 1.0 for exact copies; -1 for a single item.
    """
    copies = np.bincount(inverse, minlength=len(graph.rows))
    nearest = graph.similarity[:, 0] if graph.k else np.full(len(graph.rows), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[inverse].astype(np.float32)
    groups = np.empty((len(inverse), len(levels)), dtype=np.int32)
    for place, level in enumerate(levels):
        component = _components(graph, level - _ROUNDING)[inverse]
        groups[:, place] = _without_singles(component)
    return groups, similarity


def _components(graph: Graph, least: float) -> npt.NDArray[np.int32]:
    row, column = np.nonzero(graph.similarity >= least)
    count = len(graph.rows)
    links = scipy.sparse.coo_array(
        (np.ones(len(row), dtype=np.int8), (row, graph.rows[row, column])), shape=(count, count)
    )
    return np.asarray(connected_components(links, directed=False)[1])


def _without_singles(component: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    sizes = np.bincount(component, minlength=1)
    shared = sizes[component] > 1 if len(component) else np.empty(0, dtype=bool)
    groups = np.full(len(component), -1, dtype=np.int32)
    groups[shared] = number_by_first_row(component[shared])
    return groups
