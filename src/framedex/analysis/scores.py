"""Uniqueness and outlier scores, from the distances to neighbours."""

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbour_lists import NeighbourGraph

Scores = npt.NDArray[np.float32]
# The weights of the three nearest neighbours in FiftyOne's `compute_uniqueness` (voxel51, fiftyone-brain).
_WEIGHTS = np.array([0.6, 0.3, 0.1], dtype=np.float32)
_OUTLIER_NEIGHBOURS = 10
_ROUNDING = 1e-6
_BLOCK = 65536


def neighbour_distances(graph: NeighbourGraph, inverse: npt.NDArray[np.int64]) -> Scores:
    """Return cosine distances to the ten nearest other items, including exact copies.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int64, shape (N,): the distinct row of each item.

    Returns:
        float32, shape (N, ≤ 10), ascending, in [0, 2].
    """
    copies = np.bincount(inverse, minlength=len(graph.rows)) - 1
    graph = graph.filled()
    width = min(_OUTLIER_NEIGHBOURS, graph.k + int(copies.min(initial=_OUTLIER_NEIGHBOURS)))
    distances = np.empty((len(graph.rows), width), dtype=np.float32)
    for start in range(0, len(distances), _BLOCK):
        part = slice(start, start + _BLOCK)
        is_copy = np.arange(_OUTLIER_NEIGHBOURS)[None, :] < copies[part, None]
        near = np.clip(1 - graph.similarity[part], 0, 2)
        near[near < _ROUNDING] = 0  # copies that were not merged into one row
        both = np.concatenate([np.where(is_copy, np.float32(0), np.float32(np.inf)), near], axis=1)
        distances[part] = np.sort(both, axis=1)[:, :width]
    return np.asarray(distances[inverse], dtype=np.float32)


def uniqueness(distances: Scores, *, scale: float | None = None) -> tuple[Scores, float]:
    """Return the uniqueness of each item: 0 for items with copies, 1 for items unlike all others.

    Uniqueness is the weighted distance to the three nearest neighbours, relative to its 99th percentile in the dataset.
    The percentile keeps one extreme item from lowering all other values. A single item has the uniqueness 1.

    Args:
        distances: result of :func:`neighbour_distances`.
        scale: the distance with uniqueness 1; by default the percentile.

    Returns:
        uniqueness: float32, shape (N,), in [0, 1].
        scale: the distance with uniqueness 1; 0 if there is nothing to compare.
    """
    columns = min(len(_WEIGHTS), distances.shape[1])
    if columns == 0 or len(distances) == 0:
        return np.ones(len(distances), dtype=np.float32), 0.0
    weights = _WEIGHTS[:columns] / _WEIGHTS[:columns].sum()
    # An item with one copy is redundant, even if its second and third neighbours are far.
    raw = np.where(distances[:, 0] == 0, 0, distances[:, :columns] @ weights)
    scale = float(np.quantile(raw, 0.99)) if scale is None else scale
    if scale <= 1e-6:
        return np.zeros(len(raw), np.float32), scale
    return np.clip(raw / scale, 0, 1).astype(np.float32), scale


def outlier_values(distances: Scores, *, min_items: int = 10) -> tuple[Scores, float]:
    """Return the mean distance to the nearest neighbours, and the limit above which an item is an outlier.

    The limit is Tukey's fence (J. W. Tukey, Exploratory Data Analysis, 1977): the third quartile plus 1.5 times the
    interquartile range. With fewer than *min_items* items the limit is infinite.

    Args:
        distances: result of :func:`neighbour_distances`.
        min_items: the minimum number of items for a limit.

    Returns:
        values: float32, shape (N,), in [0, 2].
        limit: cosine distance.
    """
    if distances.shape[1] == 0 or len(distances) < max(min_items, 1):
        return np.zeros(len(distances), dtype=np.float32), float("inf")
    values = distances.mean(axis=1)
    low, high = np.quantile(values, (0.25, 0.75))
    return values.astype(np.float32), float(high + max(1.5 * (high - low), 0.01))
