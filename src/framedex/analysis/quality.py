"""Measures of one picture's quality, from its pixels.

The quantities are those of CleanVision (github.com/cleanlab/cleanvision, 0.3.7), so that its thresholds carry over
and results can be compared picture by picture; the computation is our own and may work on a sample of the pixels where
the quantity is a statistic of them.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

_BLUR_SIDE = 64
_BINS = 4096  # of squared brightness: steps of 0.001 at 0.1, finer above
_HSP = np.array([[0.241, 0.691, 0.068]], dtype=np.float32)
_Array = Any  # OpenCV's stubs have a type of their own for arrays


class Measures(NamedTuple):
    """Measured values of a picture, each in [0, 1].

    Attributes:
        sharpness: how strongly edges vary in a 64-pixel version; low means blurred.
        highlights: perceived brightness of the 99th percentile of pixels; low means a dark picture.
        shadows: perceived brightness of the 5th percentile; high means an overexposed picture.
        aspect_ratio: shorter side divided by longer side.
        entropy: Shannon entropy of the pixel values in bits, divided by 10; low means little information.
        colourfulness: largest difference of a pixel's channels, at the 99th percentile; near 0 means grey.
    """

    sharpness: float
    highlights: float
    shadows: float
    aspect_ratio: float
    entropy: float
    colourfulness: float


def measure(
    pixels: npt.NDArray[np.uint8],
    *,
    width: int,
    height: int,
    sample: npt.NDArray[np.uint8] | None = None,
    bands: int = 3,
) -> Measures:
    """Return the measures of a picture.

    Args:
        pixels: uint8, shape (H, W, 3), RGB; may be a smaller version of the picture.
        width: the whole picture's width in pixels.
        height: its height.
        sample: pixels of the whole picture for the statistics of pixel values, uint8, shape (h, w, 3), because averaged
            ones have less noise and fewer extremes. By default *pixels* themselves.
        bands: channels that the file stores: 1 for a grey one.
    """
    sample = pixels if sample is None else sample
    channels = cv2.split(sample)
    shadows, highlights = _brightness(sample)
    colourfulness = _colourfulness(channels)
    return Measures(
        sharpness=_sharpness(pixels),
        highlights=highlights,
        shadows=shadows,
        aspect_ratio=min(width, height) / max(width, height),
        entropy=_entropy(channels[:1] if bands == 1 else channels),
        colourfulness=colourfulness,
    )


def _histogram(values: _Array, bins: int, limit: float) -> npt.NDArray[np.float32]:
    return cv2.calcHist([values], [0], None, [bins], [0, limit]).ravel()  # type: ignore[return-value]


def _brightness(sample: _Array) -> tuple[float, float]:
    """Return the 5th and the 99th percentile of perceived brightness.

    It is √(0.241 R² + 0.691 G² + 0.068 B²) (the HSP model, alienryderflex.com/hsp.html). The root keeps the order, so
    it is taken of the two percentiles only.
    """
    squares = cv2.multiply(sample, sample, dtype=cv2.CV_32F)
    below = np.cumsum(_histogram(cv2.transform(squares, _HSP), _BINS, 255**2 + 1))
    bins = np.searchsorted(below, (0.05 * below[-1], 0.99 * below[-1]))
    low, high = np.sqrt(bins / (_BINS - 1))
    return min(1.0, float(low)), min(1.0, float(high))


def _colourfulness(channels: Sequence[_Array]) -> float:
    red, green, blue = channels
    spread = cv2.subtract(cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue))
    below = np.cumsum(_histogram(spread, 256, 256))
    return float(np.searchsorted(below, 0.99 * below[-1])) / 255


def _entropy(channels: Sequence[_Array]) -> float:
    """Return the entropy of all channels' values together, as Pillow's ``Image.entropy``."""
    counts = np.concatenate([_histogram(channel, 256, 256) for channel in channels])
    share = counts[counts > 0] / counts.sum()
    return min(1.0, -float(share @ np.log2(share)) / 10)


def _sharpness(pixels: npt.NDArray[np.uint8]) -> float:
    """Return 1 - exp(-deviation of the edges / 100), plus the same of the histogram where that is distinctive.

    The second term lifts flat graphics, whose few edges do not mean blur.
    """
    grey = _small_grey(pixels)
    edges = _edges(grey)
    blur = 1 - np.exp(-_deviation(edges) / 100)
    histogram = 1 - np.exp(-_deviation(_histogram(grey, 256, 256)) / 100)
    return min(1.0, float(blur + (histogram if histogram > 0.18 else 0.0)))


def _deviation(values: _Array) -> float:
    return float(cv2.meanStdDev(values)[1][0, 0])


def _small_grey(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return grey, uint8, longer side at most 64."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    ratio = max(width, height) / _BLUR_SIDE
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
    """Return the Laplacian, clipped to 0–255; the outermost pixels stay as they are, as in Pillow's FIND_EDGES."""
    edges = grey.copy()
    if min(grey.shape) >= 3:
        edges[1:-1, 1:-1] = cv2.filter2D(grey, -1, _edge_kernel())[1:-1, 1:-1]
    return edges
