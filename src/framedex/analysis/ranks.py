"""Where a value stands among others."""

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]


def percentiles(values: Values, measured: Values, *, above: bool) -> Values:
    """Return how bad values are among all that were measured: 100 is the worst, 0 the best.

    Of N measured values, the percentile is 100 · r / (N - 1), where r is the number of better ones and half that of the
    other equal ones (mid-rank); so it is exact, and equal values have one percentile: 50 where all are equal. The only
    measured value is the worst.

    Args:
        values: float32, shape (M,), each one of the measured; NaN where there is none.
        measured: float32, shape (N,), no NaN.
        above: whether high values are bad, else low ones.

    Returns:
        float32, shape (M,), in [0, 100]; NaN where there is no value.
    """
    ordered = np.sort(measured)
    lower, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    better = lower if above else len(ordered) - upto
    ranks = better + (upto - lower - 1) / 2
    share = ranks / (len(ordered) - 1) if len(ordered) > 1 else np.ones(len(values))
    return np.where(np.isnan(values), np.nan, 100 * share).astype(np.float32)
