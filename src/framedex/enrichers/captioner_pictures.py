"""Pixels as captioners take them."""

from typing import Any

import numpy as np

from framedex.arrays import Pixels

_LONGEST = 16
"""The largest ratio of the sides of the part of an image that a model gets.

Models that fit the shorter side would enlarge a picture of 10,000 × 1 pixels to gigabytes.
"""


def as_picture(pixels: Pixels, *, shorter: int | None = None) -> Any:
    """Return a picture of Pillow; of one that is much longer than wide, the middle.

    Args:
        pixels: uint8, shape (H, W, 3), RGB.
        shorter: how many pixels the shorter side has at most; None for any number.
    """
    from PIL import Image

    height, width = pixels.shape[:2]
    rows, columns = min(height, width * _LONGEST), min(width, height * _LONGEST)
    top, left = (height - rows) // 2, (width - columns) // 2
    picture = Image.fromarray(np.ascontiguousarray(pixels[top : top + rows, left : left + columns]))
    if shorter is None or min(rows, columns) <= shorter:
        return picture
    scale = shorter / min(rows, columns)
    return picture.resize((round(columns * scale), round(rows * scale)), Image.Resampling.BICUBIC)
