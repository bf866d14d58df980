"""Images with low information or without colours."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from framedex.issue_types.base import ImageSample, IssueType, histogram

_SIDE, _LOCAL_SIGMA, _REACH = 64, 3.0, 12
_DARK, _BLACK = 0.32, 0.02  # brightness of the brightest pixels of an image that is dark, and of one that is black
_CONTRAST_SCALE = 0.30 / 4.25  # photos of low contrast begin at 8 grey levels; fog and flat colours end at 4


def _information(image: ImageSample) -> float:
    """Return the smaller of the entropy of pixel values, in bits / 10, and the scaled contrast of the structure."""
    return min(_entropy(image), _CONTRAST_SCALE * _structure(image))


def _structure(image: ImageSample) -> float:
    """Return the standard deviation, in grey levels, of about 64 pixels a side minus their local mean.

    Gradients are equal to their local mean, and the averages of 64 pixels have hardly any noise. The contrast of a dark
    image is taken as if it were just bright enough: it is dark, not empty.
    """
    grey = image.whole_grey
    height, width = grey.shape
    factor = max(1, round(max(height, width) / _SIDE))
    size = (max(1, width // factor), max(1, height // factor))
    whole = grey[: size[1] * factor, : size[0] * factor]  # averages over whole pixels are fast
    small = cv2.resize(whole, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    small -= small[0, 0]  # so that rounding leaves nothing of one grey
    means = _local_means(size[1]) @ small @ _local_means(size[0]).T
    contrast = float(cv2.meanStdDev(small - means)[1][0, 0])
    return contrast * max(1.0, _DARK / max(image.brightness[2], _BLACK))


def _entropy(image: ImageSample) -> float:
    """Return the entropy of the values of all channels, as Pillow's ``Image.entropy``, in bits / 10."""
    channels = image.channels[:1] if image.bands == 1 else image.channels
    counts = np.concatenate([histogram(channel, 256, 256) for channel in channels])
    share = counts[counts > 0] / counts.sum()
    return min(1.0, -float(share @ np.log2(share)) / 10)


@lru_cache(512)
def _local_means(count: int) -> npt.NDArray[np.float32]:
    """Return the matrix that blurs a row of pixels by a Gaussian, which is faster here than a filter."""
    rows = cv2.GaussianBlur(np.eye(count, dtype=np.float32), (1, 2 * _REACH + 1), 1.0, sigmaY=_LOCAL_SIGMA)
    return np.asarray(rows, dtype=np.float32)


def _colourfulness(image: ImageSample) -> float:
    """Return the 99th percentile of the largest difference between a pixel's channels, in [0, 1]."""
    red, green, blue = image.channels
    spread = cv2.subtract(cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue))
    below = np.cumsum(histogram(spread, 256, 256))
    return float(np.searchsorted(below, 0.99 * below[-1])) / 255


LOW_INFORMATION = IssueType(
    "low_information",
    "the smaller of entropy and local contrast, 0 to 1",
    0.30,
    worst=0.0,
    measure=_information,
    column="information",
)
GRAYSCALE = IssueType(
    "grayscale",
    "largest difference of colour channels, 0 to 1",
    1.5 / 255,
    worst=0.0,
    measure=_colourfulness,
    column="colourfulness",
)
