"""Steps of brightness between neighbouring pixels, by direction."""

from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Grey = npt.NDArray[np.uint8]
FEWEST_STEPS = 0.005
"""The mean step, in grey levels, of an image that is not empty."""
_LINE = 9  # pixels of the blur
_DIRECTIONS = 8


def lost_by_direction(grey: Grey) -> list[float]:
    """Return the shares of steps that a blur of nine pixels takes away, by its direction; 1 without steps.

    An image without steps is empty rather than blurred. The blur is a sum, so that integers are exact.
    """
    height, width = grey.shape
    if min(grey.shape) < 3:
        return [1.0]
    shares = []
    for (x, y), line in _lines():
        sums = cv2.filter2D(grey, cv2.CV_16S, line, borderType=cv2.BORDER_REFLECT).view(np.uint16)
        here = slice(max(0, -y), height - max(0, y)), slice(max(0, -x), width - max(0, x))
        there = slice(max(0, y), height - max(0, -y)), slice(max(0, x), width - max(0, -x))
        steps, remaining = (np.asarray(cv2.absdiff(each[there], each[here])) for each in (grey, sums))
        whole = float(cv2.sumElems(steps)[0])
        if whole < FEWEST_STEPS * max(1, steps.size):
            shares.append(1.0)
            continue
        count = int(line.sum())
        lost: Any = cv2.subtract(np.multiply(steps, count, dtype=np.uint16), remaining)
        shares.append(min(1.0, float(cv2.sumElems(lost)[0]) / (count * whole)))
    return shares


@cache
def _lines() -> tuple[tuple[tuple[int, int], npt.NDArray[np.float32]], ...]:
    """Return, for each direction, the neighbouring pixel in it and the pixels of a blur along it, which are 1."""
    lines = []
    middle = _LINE // 2
    for angle in np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS:
        step = np.array([np.cos(angle), np.sin(angle)])
        start, end = (np.rint(middle + sign * middle * step).astype(int).tolist() for sign in (-1, 1))
        kernel = np.zeros((_LINE, _LINE), np.float32)
        cv2.line(kernel, start, end, 1.0, 1)
        x, y = np.rint(step).astype(int).tolist()
        lines.append(((x, y), kernel))
    return tuple(lines)
