"""Images of an unusual size or shape."""

import numpy as np

from framedex.core.arrays import Floats
from framedex.issue_types.base import Derived, IssueType


def size_distance(width: Floats, height: Floats) -> Floats:
    """Return the distance of each image's size from the usual sizes; sizes above 0.5 are odd.

    The size is √(width·height). The limit of 0.5 lies 3.5 interquartile ranges from the middle of the quartiles, which
    is three ranges beyond each quartile (as in CleanVision 0.3.7). If the quartiles are equal, every other size is odd.

    Args:
        width: float32, shape (N,), pixels; NaN if unknown.
        height: float32, shape (N,), pixels; NaN if unknown.

    Returns:
        float32, shape (N,), from 0; NaN if unknown.
    """
    size = np.sqrt(width.astype(np.float64) * height)
    is_known = np.isfinite(size)
    if not is_known.any():
        return np.full(len(size), np.nan, dtype=np.float32)
    low, high = np.quantile(size[is_known], (0.25, 0.75))
    middle, reach = (low + high) / 2, 7 * (high - low)
    distance = np.abs(size - middle)
    if reach > 0:
        return np.asarray(distance / reach, dtype=np.float32)
    return np.where(distance > 0, 0.5 + distance / middle, np.where(is_known, 0.0, np.nan)).astype(np.float32)


ODD_SIZE = IssueType(
    "odd_size",
    "distance from the usual sizes",
    0.50,
    above=True,
    derived=Derived(("width", "height"), size_distance),
    column="size_distance",
)
ODD_ASPECT_RATIO = IssueType(
    "odd_aspect_ratio",
    "shorter side / longer side",
    0.35,
    worst=0.0,
    measure=lambda image: min(image.width, image.height) / max(image.width, image.height),
    column="aspect_ratio",
)
