"""The place of an image in a larger one, by normalised cross-correlation at several sizes."""

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.registration import Matrix, stretched
from framedex.core.borders import Box, cropped

Grey = npt.NDArray[np.uint8]
_SIDE = 96  # pixels of the longer side of the larger image
_LEAST_SIDE = 12  # pixels of the part
_FACTORS = 0.94 ** np.arange(-7, 4)  # of the width that is assumed, which is rather too small than too large
_LEAST = 0.5  # correlation


def placement(part: Grey, box: Box, whole: Grey, whole_box: Box, width: float) -> Matrix | None:
    """Return the transform that puts an image upon a part of a larger one; None if it is nowhere alike.

    Args:
        part: the image.
        box: its part within uniform borders.
        whole: the larger image.
        whole_box: its part within uniform borders.
        width: the share of the width of this part that the image takes, from two thirds to 1.2 of it.
    """
    inner, large = cropped(part, box), cropped(whole, whole_box)
    factor = min(1.0, _SIDE / max(large.shape))
    small = _resized(large, max(1, round(large.shape[1] * factor)), max(1, round(large.shape[0] * factor)))
    best, place = _LEAST, None
    for wide in sorted({round(width * each * small.shape[1]) for each in _FACTORS.tolist()}):
        high = round(wide * inner.shape[0] / inner.shape[1])
        if min(wide, high) < _LEAST_SIDE or wide > small.shape[1] or high > small.shape[0]:
            continue
        scores = cv2.matchTemplate(small, _resized(inner, wide, high), cv2.TM_CCOEFF_NORMED)
        _, score, _, (left, top) = cv2.minMaxLoc(scores)
        if score > best:
            best, place = score, (top, left, top + high, left + wide)
    if place is None:
        return None
    down, across = large.shape[0] / small.shape[0], large.shape[1] / small.shape[1]
    top, left, bottom, right = (each * scale for each, scale in zip(place, (down, across) * 2, strict=True))
    return stretched(box, (top + whole_box[0], left + whole_box[1], bottom + whole_box[0], right + whole_box[1]))


def _resized(grey: Grey, width: int, height: int) -> Grey:
    return np.asarray(cv2.resize(np.ascontiguousarray(grey), (width, height), interpolation=cv2.INTER_AREA), np.uint8)
