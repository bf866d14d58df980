"""The copy descriptor: what a dataset of images keeps of each image to find its copies, whatever its encoder.

It is the descriptor of the built-in encoder (:mod:`framedex.encoders.gist`), of the image without uniform borders, and
of each *panel*: a part that may be an image of its own, as a photo in a screenshot, or one of two photos side by side.
"""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors
from framedex.core.borders import BorderedImage, Box, cropped, inner_box
from framedex.encoders.gist import MIRRORED, POSES, Gist, cells, layouts, poses, structure

__all__ = [
    "DIMENSION",
    "MIRRORED",
    "POSES",
    "cells",
    "describe",
    "is_copy_descriptor",
    "layouts",
    "panels",
    "poses",
    "prepare_panels",
    "prepare_whole",
    "structure",
]

DIMENSION = Gist.dimension
_GIST = Gist()
_AREA = np.ones((3, 3), np.uint8)
_STRUCTURE = 8  # difference of grey levels between adjacent pixels that is no noise
_LEAST_AREA, _MOST_AREA = 0.1, 0.93  # of an image, for a panel
_LEAST_SIDE = 24  # pixels of a panel
_NO_GAP = 0.9  # share of an image with structure that leaves nothing around a panel
_STRAIGHT = 0.4  # share of a panel's edges that its structure reaches; the outline of a thing touches them in points
_STEP = 12  # difference of grey levels across a seam
_CROSSED = 0.75  # share of a seam that differs so much
_CLEARLY = 0.3  # the difference of this share to that of other rows
_ALONE = 0.03  # the difference of this share to those of rows beside it
_BESIDE = (3, 7)  # rows
_MIDDLE = 0.1  # seams lie at least this share of a side away from the edges: captions are a fifth of an image


def is_copy_descriptor(encoder: str) -> bool:
    """Return whether the embeddings of an encoder are the copy descriptors."""
    return encoder == Gist.name


def prepare_whole(image: BorderedImage) -> npt.NDArray[np.float32]:
    """Return the input of :func:`describe` for an image, or a reduced version of it: float32, shape (4208,)."""
    return _GIST.prepare_within(image.inner_pixels, image.inner_grey)


def prepare_panels(image: BorderedImage) -> npt.NDArray[np.float32] | None:
    """Return the same for the panels of an image: float32, shape (P, 4208); None if it has none."""
    pixels, grey = image.inner_pixels, image.inner_grey
    parts = [(cropped(pixels, each), cropped(grey, each)) for each in panels(grey)]
    prepared = []
    for part, grey_part in parts:
        within = inner_box(grey_part)
        if min(within[2] - within[0], within[3] - within[1]) >= _LEAST_SIDE:
            prepared.append(_GIST.prepare_within(cropped(part, within), cropped(grey_part, within)))
    return np.stack(prepared) if prepared else None


def describe(prepared: npt.NDArray[np.float32]) -> Vectors:
    """Return descriptors: float32, shape (N, DIMENSION), unit length, of N prepared images or panels."""
    return _GIST.encode_images(prepared)


def panels(grey: npt.NDArray[np.uint8]) -> list[Box]:
    """Return the parts of an image that may be images of their own.

    They are the largest connected area with structure, and the parts on both sides of a straight seam.

    Args:
        grey: uint8, shape (H, W): without uniform borders.
    """
    if min(grey.shape) < _LEAST_SIDE:
        return []
    return [*_structured(grey), *_beside_seams(grey)]


def _structured(grey: npt.NDArray[np.uint8]) -> list[Box]:
    # At half the size: it takes a third of the time, and noise has less structure.
    halved = _halved(grey)
    _, structure = cv2.threshold(
        cv2.morphologyEx(halved, cv2.MORPH_GRADIENT, _AREA), _STRUCTURE, 255, cv2.THRESH_BINARY
    )
    if cv2.countNonZero(structure) > _NO_GAP * structure.size:
        return []
    # Areas are numbered in blocks of two by two pixels, which also closes small gaps; numbering takes the most time.
    blocks = _halved(np.asarray(structure, dtype=np.uint8))
    height, width = blocks.shape
    count, numbers, areas, _ = cv2.connectedComponentsWithStats(blocks, connectivity=4)
    if count < 2:
        return []
    largest = 1 + int(areas[1:, cv2.CC_STAT_AREA].argmax())
    left, top, wide, high = areas[largest, :4].tolist()
    if not _LEAST_AREA <= wide * high / (width * height) <= _MOST_AREA:
        return []
    area = numbers[top : top + high, left : left + wide] == largest
    sides = (
        (area[0], top > 0),
        (area[-1], top + high < height),
        (area[:, 0], left > 0),
        (area[:, -1], left + wide < width),
    )
    edges = [float(side.mean()) for side, is_within in sides if is_within]
    if not edges or float(np.mean(edges)) < _STRAIGHT:
        return []
    x, y, wide, high = cv2.boundingRect(structure[2 * top : 2 * (top + high), 2 * left : 2 * (left + wide)])
    top, left = 2 * top + y, 2 * left + x
    return [(2 * top, 2 * left, 2 * (top + high), 2 * (left + wide))]


def _halved(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the means of blocks of two by two pixels, without an odd row or column."""
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    half = cv2.resize(pixels[: 2 * height, : 2 * width], (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(half, dtype=np.uint8)


def _beside_seams(grey: npt.NDArray[np.uint8]) -> list[Box]:
    height, width = grey.shape
    boxes: list[Box] = []
    if (at := _seam(grey[:, 2:], grey[:, :-2], 0)) is not None:
        boxes += [(0, 0, height, at), (0, at + 2, height, width)]
    if (at := _seam(grey[2:], grey[:-2], 1)) is not None:
        boxes += [(0, 0, at, width), (at + 2, 0, height, width)]
    return boxes


def _seam(after: Any, before: Any, axis: int) -> int | None:
    """Return the column (axis 0) or row (axis 1) across which nearly all pixels change; None if there is none."""
    _, crossed = cv2.threshold(cv2.absdiff(after, before), _STEP, 255, cv2.THRESH_BINARY)
    shares = cv2.reduce(crossed, axis, cv2.REDUCE_AVG, dtype=cv2.CV_32F).ravel() / 255
    start, stop = int(len(shares) * _MIDDLE), int(len(shares) * (1 - _MIDDLE))
    if stop <= start:
        return None
    at = start + int(shares[start:stop].argmax())
    if shares[at] <= _CROSSED:
        return None
    first, last = _BESIDE
    beside = np.concatenate([shares[max(0, at - last + 1) : max(0, at - first + 1)], shares[at + first : at + last]])
    others = max(float(shares.mean()) + _CLEARLY, float(beside.max(initial=0.0)) + _ALONE)
    return at if shares[at] > others else None
