"""Uniform borders of images: bars, frames, letterboxes."""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.core.forks import cached_property

Box = tuple[int, int, int, int]
"""Top, left, bottom and right of a part of an image, in pixels; bottom and right are exclusive."""
LEAST_SIDE = 8
"""The minimum number of pixels a side within borders."""
_UNIFORM = 6  # difference of grey levels up to which a row is uniform
_RIPPLES = 0.03  # share of the shorter side
_NESTED = 3  # borders within each other


class BorderedImage:
    """An image and its part within uniform borders, which several measures need.

    Args:
        pixels: uint8, shape (H, W, 3), RGB.
    """

    def __init__(self, pixels: Pixels) -> None:
        self.pixels = pixels

    @cached_property
    def grey(self) -> npt.NDArray[np.uint8]:
        """The greyscale image: uint8, shape (H, W)."""
        return np.asarray(cv2.cvtColor(self.pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8)

    @cached_property
    def box(self) -> Box:
        """The part within uniform borders: :func:`inner_box`."""
        return inner_box(self.grey)

    @cached_property
    def inner_grey(self) -> npt.NDArray[np.uint8]:
        """The part of the greyscale image within uniform borders: uint8, shape (h, w)."""
        return np.asarray(cropped(self.grey, self.box), dtype=np.uint8)

    @property
    def inner_pixels(self) -> Pixels:
        """The same part of the image: uint8, shape (h, w, 3)."""
        return np.asarray(cropped(self.pixels, self.box), dtype=np.uint8)


def inner_box(grey: npt.NDArray[np.uint8]) -> Box:
    """Return the part of a greyscale image without the uniform rows and columns at its edges.

    Beside a border, a few more are cut off: compression writes ripples there. A border may have another one inside. It
    is the whole image if less than :data:`LEAST_SIDE` pixels a side are left.

    Args:
        grey: uint8, shape (H, W).
    """
    inner = 0, 0, grey.shape[0], grey.shape[1]
    for _ in range(_NESTED):
        box = _inside(cropped(grey, inner))
        if box is None:
            break
        inner = inner[0] + box[0], inner[1] + box[1], inner[0] + box[2], inner[1] + box[3]
    return inner


def _inside(grey: npt.NDArray[np.uint8]) -> Box | None:
    """Return the part within the outer border; None if there is no border, or nothing is left."""
    if all(_is_varied(edge) for edge in (grey[0], grey[-1], grey[:, 0], grey[:, -1])):
        return None
    top, left, bottom, right = 0, 0, *grey.shape
    for _ in range(2):  # columns may be uniform once rows are gone
        part = grey[top:bottom, left:right]
        rows, columns = (_varied(part, axis) for axis in (1, 0))
        if len(rows) < LEAST_SIDE or len(columns) < LEAST_SIDE:
            return None
        top, bottom = top + int(rows[0]), top + int(rows[-1]) + 1
        left, right = left + int(columns[0]), left + int(columns[-1]) + 1
    height, width = grey.shape
    margin = round(_RIPPLES * min(bottom - top, right - left))
    inner = (
        top + margin * (top > 0),
        left + margin * (left > 0),
        bottom - margin * (bottom < height),
        right - margin * (right < width),
    )
    is_large = min(inner[2] - inner[0], inner[3] - inner[1]) >= LEAST_SIDE
    return inner if is_large else (top, left, bottom, right)


def cropped(pixels: Any, box: Box) -> Any:
    """Return the view of a part of an image: shape (H, W) or (H, W, C)."""
    return pixels[box[0] : box[2], box[1] : box[3]]


def _is_varied(edge: npt.NDArray[np.uint8]) -> bool:
    if abs(int(edge[0]) - int(edge[len(edge) // 2])) > _UNIFORM:  # two pixels are mostly enough
        return True
    return int(edge.max()) - int(edge.min()) > _UNIFORM


def _varied(grey: npt.NDArray[np.uint8], axis: int) -> npt.NDArray[np.intp]:
    """Return the places of the rows (axis 1) or columns whose values differ by more than compression makes them."""
    return np.flatnonzero(grey.max(axis=axis) - grey.min(axis=axis) > _UNIFORM)
