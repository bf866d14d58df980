"""Scores from neighbour distances: how unlike everything else a picture is."""

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import Graph

Scores = npt.NDArray[np.float32]
# The weights of the three nearest neighbours in FiftyOne's `compute_uniqueness` (voxel51, fiftyone-brain).
_WEIGHTS = np.array([0.6, 0.3, 0.1], dtype=np.float32)
_OUTLIER_NEIGHBOURS = 10
_ROUNDING = 1e-6


def neighbour_distances(graph: Graph, inverse: npt.NDArray[np.int64]) -> Scores:
    """Return cosine distances to the ten nearest other items, exact copies counted.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int64, shape (N,): the distinct row of each item.

    Returns:
        float32, shape (N, ≤ 10), ascending, in [0, 2].
    """
    copies = np.bincount(inverse, minlength=len(graph.rows)) - 1
    zeros = np.where(np.arange(_OUTLIER_NEIGHBOURS)[None, :] < copies[:, None], np.float32(0), np.float32(np.inf))
    near = np.clip(1 - graph.filled().similarity, 0, 2)
    near[near < _ROUNDING] = 0  # copies that are not collapsed
    distances = np.sort(np.concatenate([zeros, near], axis=1), axis=1)[:, :_OUTLIER_NEIGHBOURS]
    usable = np.isfinite(distances).all(axis=0)
    return np.asarray(distances[:, usable][inverse], dtype=np.float32)


def uniqueness(distances: Scores, *, scale: float | None = None) -> tuple[Scores, float]:
    """Return how unlike everything else each item is: 0 for items with copies, 1 for those unlike all others.

    The weighted distance to the three nearest neighbours, relative to its 99th percentile in the dataset, so that one
    extreme item does not press all others down. A single item is unique: 1.

    Args:
        distances: of :func:`neighbour_distances`.
        scale: the distance that has uniqueness 1; by default that percentile.

    Returns:
        uniqueness: float32, shape (N,), in [0, 1].
        scale: the distance that was used; 0 where there is nothing to compare.
    """
    columns = min(len(_WEIGHTS), distances.shape[1])
    if columns == 0 or len(distances) == 0:
        return np.ones(len(distances), dtype=np.float32), 0.0
    weights = _WEIGHTS[:columns] / _WEIGHTS[:columns].sum()
    # The second and third neighbour of an item with one copy may be far, and yet it is redundant.
    raw = np.where(distances[:, 0] == 0, 0, distances[:, :columns] @ weights)
    scale = float(np.quantile(raw, 0.99)) if scale is None else scale
    if scale <= 1e-6:
        return np.zeros(len(raw), np.float32), scale
    return np.clip(raw / scale, 0, 1).astype(np.float32), scale


def outlier_values(distances: Scores, *, least: int = 10) -> tuple[Scores, float]:
    """Return the mean distance to the nearest neighbours, and the limit above which an item is an outlier.

    The limit is Tukey's fence (J. W. Tukey, Exploratory Data Analysis, 1977): the third quartile plus 1.5 times the
    range between the quartiles. With fewer than *least* items nothing can be said: the limit is infinite.

    Returns:
        values: float32, shape (N,), in [0, 2].
        limit: a distance.
    """
    if distances.shape[1] == 0 or len(distances) < max(least, 1):
        return np.zeros(len(distances), dtype=np.float32), float("inf")
    values = distances.mean(axis=1)
    low, high = np.quantile(values, (0.25, 0.75))
    return values.astype(np.float32), float(high + max(1.5 * (high - low), 0.01))
