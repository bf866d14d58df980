"""Measures of one picture's quality, from its pixels.

The quantities are those of CleanVision (github.com/cleanlab/cleanvision, 0.3.7), so that its thresholds carry over
and results can be compared picture by picture; the computation is our own and works on a sample of the pixels where
the quantity is a statistic of them.
"""

from functools import cache
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

_SAMPLE = 128  # pixels of a sample, along each side at most
_BLUR_SIDE = 64
_BINS = 1024
_RED = (0.241 * np.arange(256.0) ** 2).astype(np.float32)
_GREEN = (0.691 * np.arange(256.0) ** 2).astype(np.float32)
_BLUE = (0.068 * np.arange(256.0) ** 2).astype(np.float32)


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


def measure(pixels: npt.NDArray[np.uint8], *, width: int, height: int) -> Measures:
    """Return the measures of a picture.

    Args:
        pixels: uint8, shape (H, W, 3), RGB; may be a smaller version of the picture.
        width: the whole picture's width in pixels.
        height: its height.
    """
    sample = pixels[_step(pixels.shape[0]), _step(pixels.shape[1])]
    shadows, highlights = _brightness(sample)
    colourfulness = _colourfulness(sample)
    return Measures(
        sharpness=_sharpness(pixels),
        highlights=highlights,
        shadows=shadows,
        aspect_ratio=min(width, height) / max(width, height),
        entropy=_entropy(sample, grey=colourfulness == 0.0),
        colourfulness=colourfulness,
    )


def _step(length: int) -> slice:
    step = -(-length // _SAMPLE)
    return slice(step // 2, None, step)


def _brightness(sample: npt.NDArray[np.uint8]) -> tuple[float, float]:
    """Return the 5th and the 99th percentile of perceived brightness (HSP model: alienryderflex.com/hsp.html)."""
    squared = _RED[sample[..., 0]]
    squared += _GREEN[sample[..., 1]]
    squared += _BLUE[sample[..., 2]]
    bright = np.sqrt(squared, out=squared)
    bright *= (_BINS - 1) / 255
    counts = np.bincount((bright + 0.5).astype(np.int32).ravel(), minlength=_BINS)
    below = np.cumsum(counts)
    low, high = np.searchsorted(below, (0.05 * below[-1], 0.99 * below[-1]))
    return min(1.0, float(low) / (_BINS - 1)), min(1.0, float(high) / (_BINS - 1))


def _colourfulness(sample: npt.NDArray[np.uint8]) -> float:
    red, green, blue = cv2.split(sample)
    spread = cv2.subtract(cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue))
    below = np.cumsum(np.bincount(np.asarray(spread).ravel(), minlength=256))
    return float(np.searchsorted(below, 0.99 * below[-1])) / 255


def _entropy(sample: npt.NDArray[np.uint8], *, grey: bool) -> float:
    """Return the entropy of all channels' values together, as Pillow's ``Image.entropy``; of one channel if grey."""
    channels = [sample[..., 0]] if grey else [sample[..., c] for c in range(3)]
    counts = np.concatenate([np.bincount(channel.ravel(), minlength=256) for channel in channels])
    share = counts[counts > 0] / counts.sum()
    return min(1.0, float(-(share * np.log2(share)).sum()) / 10)


def _sharpness(pixels: npt.NDArray[np.uint8]) -> float:
    """Return 1 - exp(-deviation of the edges / 100), plus the same of the histogram where that is distinctive.

    The second term lifts flat graphics, whose few edges do not mean blur.
    """
    grey = _small_grey(pixels)
    edges = _edges(grey)
    blur = 1 - np.exp(-float(edges.std()) / 100)
    histogram = 1 - np.exp(-float(np.bincount(grey.ravel(), minlength=256).std()) / 100)
    return min(1.0, float(blur + (histogram if histogram > 0.18 else 0.0)))


def _small_grey(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return grey, uint8, longer side at most 64: first by whole boxes, then bicubic."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    ratio = max(width, height) / _BLUR_SIDE
    if ratio <= 1:
        return np.asarray(grey, dtype=np.uint8)
    target = (max(int(width // ratio), 1), max(int(height // ratio), 1))
    box = max(1, int(ratio // 3))
    if box > 1:
        size = (max(1, round(width / box)), max(1, round(height / box)))
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(Image.fromarray(grey).resize(target, Image.Resampling.BICUBIC))


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
