"""Crops of images by bounding boxes."""

import math
from dataclasses import replace

import numpy as np

from framedex.errors import CannotDecode
from framedex.media.decode import Picture, subsample


def cropped(picture: Picture, x: float, y: float, width: float, height: float) -> Picture:
    """Return the crop of an image: all pixels that a bounding box touches.

    Args:
        picture: the whole image, not reduced.
        x: of the left edge in pixels.
        y: of the upper edge in pixels.
        width: in pixels.
        height: in pixels.

    Raises:
        CannotDecode: the bounding box contains no pixel of the image, for example because the file was replaced.
    """
    left, top = max(math.floor(x), 0), max(math.floor(y), 0)
    right, bottom = min(math.ceil(x + width), picture.width), min(math.ceil(y + height), picture.height)
    if right <= left or bottom <= top:
        box = f"x {x:g}, y {y:g}, width {width:g}, height {height:g}"
        raise CannotDecode(f"the bounding box {box} contains no pixel of an image of {picture.width}×{picture.height}")
    pixels = np.ascontiguousarray(picture.pixels[top:bottom, left:right])
    return replace(picture, pixels=pixels, width=right - left, height=bottom - top, sample=subsample(pixels))
