"""Images with low information or without colours."""

import cv2
import numpy as np

from framedex.issue_types.base import ImageSample, IssueType, histogram

_CONTRAST_SCALE = 0.30 / 4.25  # photos of low contrast begin at 8 grey levels; fog and flat colours end at 4


def _information(image: ImageSample) -> float:
    """Return the scaled contrast of the structure.

    Few tones alone say nothing: masks, codes and drawings have two.
    """
    return min(1.0, _CONTRAST_SCALE * image.structure)


def _colourfulness(image: ImageSample) -> float:
    """Return the 99th percentile of the largest difference between a pixel's channels, in [0, 1]."""
    red, green, blue = image.channels
    spread = cv2.subtract(cv2.max(cv2.max(red, green), blue), cv2.min(cv2.min(red, green), blue))
    below = np.cumsum(histogram(spread, 256, 256))
    return float(np.searchsorted(below, 0.99 * below[-1])) / 255


LOW_INFORMATION = IssueType(
    "low_information",
    "local contrast, 0 to 1",
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
