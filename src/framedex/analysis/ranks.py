"""Percentile ranks of values."""

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]


def percentiles(values: Values, measured: Values, *, above: bool) -> Values:
    """Return the percentile ranks of values among all measured values: 100 is the worst, 0 the best.

    For N measured values, the percentile is 100 · r / (N - 1), where r is the number of better values plus half the
    number of other equal values (mid-rank). So the rank is exact, and equal values have the same percentile: 50 if all
    values are equal. A single measured value is the worst.

    Args:
        values: float32, shape (M,), each one of the measured values; NaN for missing values.
        measured: float32, shape (N,), no NaN.
        above: True if high values are bad, False if low values are bad.

    Returns:
        float32, shape (M,), in [0, 100]; NaN for missing values.
    """
    ordered = np.sort(measured)
    lower, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    better = lower if above else len(ordered) - upto
    ranks = better + (upto - lower - 1) / 2
    share = ranks / (len(ordered) - 1) if len(ordered) > 1 else np.ones(len(values))
    return np.where(np.isnan(values), np.nan, 100 * share).astype(np.float32)
