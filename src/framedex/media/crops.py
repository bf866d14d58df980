"""What is in a box of a picture."""

import math
from dataclasses import replace

import numpy as np

from framedex.errors import CannotDecode
from framedex.media.decode import Picture, subsample


def cropped(picture: Picture, x: float, y: float, width: float, height: float) -> Picture:
    """Return the whole pixels of a picture that a box touches, as a picture.

    Args:
        picture: all of it, not reduced.
        x: of the left edge in pixels.
        y: of the upper edge in pixels.
        width: in pixels.
        height: in pixels.

    Raises:
        CannotDecode: the box holds no pixel of the picture, which may be another one than it was made for.
    """
    left, top = max(math.floor(x), 0), max(math.floor(y), 0)
    right, bottom = min(math.ceil(x + width), picture.width), min(math.ceil(y + height), picture.height)
    if right <= left or bottom <= top:
        box = f"x {x:g}, y {y:g}, width {width:g}, height {height:g}"
        raise CannotDecode(f"the box {box} holds no pixel of a picture of {picture.width}×{picture.height}")
    pixels = np.ascontiguousarray(picture.pixels[top:bottom, left:right])
    return replace(picture, pixels=pixels, width=right - left, height=bottom - top, sample=subsample(pixels))
