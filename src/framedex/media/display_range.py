"""The range of values that is shown from black to white, of images of more than 8 bits.

Unsigned integers that use at least half of their range are shown as they are. Others are shown from the 2nd to the 98th
percentile of their valid values: floats, signed integers, 12 bits in 16, depth, temperatures.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.core.checks import is_number
from framedex.errors import InvalidInput

Range = tuple[float, float]
Values = npt.NDArray[Any]

PERCENTILES = (2, 98)
_SAMPLE = 1_000_000  # values of which percentiles are taken
_BLOCK = 1_000_000  # values that are scaled at a time
_MISSING = -9999  # by convention where a file names no other value; the lowest float and the lowest integer are, too
_HUGE = 1e38


def checked_range(value: Any) -> Range | None:
    """Return a range that was given for a dataset; None for none.

    Raises:
        InvalidInput: it is not two finite numbers, the smaller one first.
    """
    if value is None:
        return None
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value))
    if not is_pair or not np.isfinite(value).all() or value[0] >= value[1]:
        raise InvalidInput(f"display_range must be two numbers, the smaller one first, as (0, 4095), not {value!r}")
    return float(value[0]), float(value[1])


def shown_range(values: Values, *, bits: int, missing: float | None = None) -> Range | None:
    """Return the range that is shown from black to white; None for unsigned integers that are shown as they are.

    Args:
        values: numbers of any type, in two dimensions or more; of many, a sample is taken evenly.
        bits: the number of bits of a value.
        missing: the value that stands for none, if the file names one.
    """
    is_unsigned = values.dtype.kind in "bu"
    if is_unsigned and bits <= 8:
        return None
    step = max(1, round((values.size / _SAMPLE) ** 0.5))
    sample = values[::step, ::step]
    sample = sample[is_valid(sample, missing)]
    if not len(sample):
        return None if is_unsigned else (0.0, 1.0)
    lowest, highest = float(sample.min()), float(sample.max())
    if is_unsigned and (lowest == highest or highest - lowest >= 2 ** (bits - 1)):
        return None
    low, high = map(float, np.percentile(sample.astype(np.float64), PERCENTILES))
    low, high = (low, high) if low < high else (lowest, highest)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def is_valid(values: Values, missing: float | None = None) -> npt.NDArray[np.bool_]:
    """Return which values are measured ones: bool, of the same shape. NaN, infinity and values for none are not."""
    if values.dtype.kind == "f":
        valid = np.isfinite(values) & (values != _MISSING)
        if values.dtype.itemsize > 2:
            valid &= np.abs(values) < _HUGE
    elif values.dtype.kind == "i":
        valid = values != np.iinfo(values.dtype).min
        valid &= values != _MISSING if values.dtype.itemsize > 1 else True
    else:
        valid = np.ones(values.shape, dtype=bool)
    if missing is not None:
        with np.errstate(over="ignore"):
            valid &= values != (np.array(missing).astype(values.dtype) if values.dtype.kind == "f" else missing)
    return np.asarray(valid)


def scaled(
    values: Values, shown: Range | None, *, bits: int, missing: float | None = None, is_inverted: bool = False
) -> Pixels:
    """Return values as grey levels: uint8, of the same shape; black where there is no valid value.

    Args:
        values: shape (H, W) or (H, W, bands).
        shown: the range from black to white; None for integers as they are.
        bits: the number of bits of a value.
        missing: the value that stands for none, if the file names one.
        is_inverted: whether the lowest value is white.
    """
    low, high = shown or (0.0, 2.0**bits - 1)
    result = np.empty(values.shape, dtype=np.uint8)
    rows = max(1, _BLOCK * len(values) // max(1, values.size))
    for top in range(0, len(values), rows):
        part = values[top : top + rows]
        with np.errstate(invalid="ignore", over="ignore"):
            grey = np.clip((part.astype(np.float64) - low) * (255 / (high - low)), 0, 255)
            grey = np.rint(255 - grey if is_inverted else grey)
        valid = is_valid(part, missing)
        result[top : top + rows] = np.where(valid, grey, 0) if not valid.all() else grey
    return result
