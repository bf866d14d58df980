"""Images with low information or without colours."""

import cv2
import numpy as np

from framedex.issue_types.base import ImageSample, IssueType, histogram


def _entropy(image: ImageSample) -> float:
    """Return the entropy of the values of all channels, as Pillow's ``Image.entropy``, in bits / 10."""
    channels = image.channels[:1] if image.bands == 1 else image.channels
    counts = np.concatenate([histogram(channel, 256, 256) for channel in channels])
    share = counts[counts > 0] / counts.sum()
    return min(1.0, -float(share @ np.log2(share)) / 10)


def _colourfulness(image: ImageSample) -> float:
    """Return the 99th percentile of the largest difference between a pixel's channels, in [0, 1]."""
    red, green, blue = image.channels
    spread = cv2.subtract(cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue))
    below = np.cumsum(histogram(spread, 256, 256))
    return float(np.searchsorted(below, 0.99 * below[-1])) / 255


LOW_INFORMATION = IssueType(
    "low_information", "entropy of pixel values, 0 to 1", 0.30, worst=0.0, measure=_entropy, column="entropy"
)
GRAYSCALE = IssueType(
    "grayscale",
    "largest difference of colour channels, 0 to 1",
    1.5 / 255,
    worst=0.0,
    measure=_colourfulness,
    column="colourfulness",
)
