"""Blurred images."""

from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.issue_types.base import ImageSample, IssueType, histogram

_SIDE = 64


def _sharpness(image: ImageSample) -> float:
    """Return the sharpness, in [0, 1]: 1 - exp(-d / 100), where d is the standard deviation of the edges.

    The same term of the grey histogram is added if it exceeds 0.18: flat graphics have few edges without being blurred.
    """
    grey = _small_grey(image.pixels)
    edges = _edges(grey)
    sharpness = 1 - np.exp(-_deviation(edges) / 100)
    distinctness = 1 - np.exp(-_deviation(histogram(grey, 256, 256)) / 100)
    return min(1.0, float(sharpness + (distinctness if distinctness > 0.18 else 0.0)))


def _deviation(values: Any) -> float:
    return float(cv2.meanStdDev(values)[1][0, 0])


def _small_grey(pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Return the greyscale image, reduced to at most 64 pixels of the longer side."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    ratio = max(width, height) / _SIDE
    if ratio > 1:
        size = (max(int(width // ratio), 1), max(int(height // ratio), 1))
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(grey, dtype=np.uint8)


@cache
def _edge_kernel() -> npt.NDArray[np.float32]:
    kernel = np.full((3, 3), -1, np.float32)
    kernel[1, 1] = 8
    return kernel


def _edges(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the Laplacian, clipped to 0–255; border pixels are unchanged, as in Pillow's FIND_EDGES."""
    edges = grey.copy()
    if min(grey.shape) >= 3:
        edges[1:-1, 1:-1] = cv2.filter2D(grey, -1, _edge_kernel())[1:-1, 1:-1]
    return edges


BLUR = IssueType(
    "blur", "variation of edges, 0 blurred to 1 sharp", 0.29, worst=0.0, measure=_sharpness, column="sharpness"
)
