"""Pillow images for captioners."""

from typing import Any

import numpy as np

from framedex.core.arrays import Pixels

_LONGEST = 16
"""Maximum ratio of the sides of the part that a model gets.

Models that fit the shorter side would enlarge an image of 10,000 × 1 pixels to gigabytes.
"""


def to_image(pixels: Pixels, *, shorter: int | None = None) -> Any:
    """Return a Pillow image. An image that is much longer than wide is cropped to its centre.

    Args:
        pixels: uint8, shape (H, W, 3), RGB.
        shorter: the maximum length of the shorter side in pixels; None for no limit.
    """
    from PIL import Image

    height, width = pixels.shape[:2]
    rows, columns = min(height, width * _LONGEST), min(width, height * _LONGEST)
    top, left = (height - rows) // 2, (width - columns) // 2
    image = Image.fromarray(np.ascontiguousarray(pixels[top : top + rows, left : left + columns]))
    if shorter is None or min(rows, columns) <= shorter:
        return image
    scale = shorter / min(rows, columns)
    return image.resize((round(columns * scale), round(rows * scale)), Image.Resampling.BICUBIC)
