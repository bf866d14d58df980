"""Images of an unusual size or shape."""

import numpy as np

from framedex.core.arrays import Floats
from framedex.issue_types.base import Derived, IssueType

_USUAL_FACTOR = 3.0
_RANGES = 3.0


def size_distance(width: Floats, height: Floats) -> Floats:
    """Return the distance of each image's size from the usual sizes; sizes above 0.5 are odd.

    The size is √(width·height), the distance that of its logarithm from the median. A size is odd if it differs from
    the median by more than a factor of three, and by more than three interquartile ranges of the logarithms (Tukey's
    outer fences, as in J. W. Tukey, "Exploratory Data Analysis", 1977). So the usual mixture of landscape, portrait and
    cropped photos has no odd sizes, even where half of them have equal sizes.

    Args:
        width: float32, shape (N,), pixels; NaN if unknown.
        height: float32, shape (N,), pixels; NaN if unknown.

    Returns:
        float32, shape (N,), from 0; NaN if unknown.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.log(width.astype(np.float64) * height) / 2
    is_known = np.isfinite(size)
    if not is_known.any():
        return np.full(len(size), np.nan, dtype=np.float32)
    low, median, high = np.quantile(size[is_known], (0.25, 0.5, 0.75))
    reach = max(np.log(_USUAL_FACTOR), _RANGES * (high - low))
    distance = np.where(is_known, np.abs(size - median), np.nan)
    return np.asarray(0.5 * distance / reach, dtype=np.float32)


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
