"""Images of an unusual size or shape."""

import numpy as np

from framedex.arrays import Floats
from framedex.issue_types.base import Derived, IssueType


def size_distance(width: Floats, height: Floats) -> Floats:
    """Return how far each image's size lies from the usual ones: above 0.5 it is odd.

    The size is √(width·height); usual is what lies within three times the range between the quartiles of them
    (as CleanVision 0.3.7). Where all usual images have one size, each other size is odd.

    Args:
        width: float32, shape (N,), pixels; NaN where unknown.
        height: likewise.
    """
    size = np.sqrt(width.astype(np.float64) * height)
    known = np.isfinite(size)
    if not known.any():
        return np.full(len(size), np.nan, dtype=np.float32)
    low, high = np.quantile(size[known], (0.25, 0.75))
    middle, reach = (low + high) / 2, 7 * (high - low)
    distance = np.abs(size - middle)
    if reach > 0:
        return np.asarray(distance / reach, dtype=np.float32)
    return np.where(distance > 0, 0.5 + distance / middle, np.where(known, 0.0, np.nan)).astype(np.float32)


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
