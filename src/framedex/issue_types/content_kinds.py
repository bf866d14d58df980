"""The kind of content of an image: a photo, a page, a drawing, a mask, a screenshot."""

from enum import StrEnum

import cv2
import numpy as np

from framedex.core.arrays import Floats
from framedex.issue_types.base import ImageSample

_TONE = 4  # grey levels around that of the ground
_FEW, _FEW_SHARE, _MOST_SHARE = 8, 0.995, 0.975  # tones, and the shares of an image in them alone, or mainly
_GROUND = 0.38  # share of the ground of an image of lines and text
_STEP, _STEPS = 40, 0.07  # grey levels of a strong step; the share of pixels beside one in an image of lines
_LINES, _SURE_LINES, _SURE_LINE = 0.75, 0.78, 0.86  # shares of steps that a blur takes away from lines
_CONTRAST = 18.0  # grey levels of the structure of images within a window; that of a page is less
_REGIONS = 0.8  # share of pixels that are as their neighbour in a mask
_EMPTY = 4.25  # the same of an image without content
_DARK = 128


class Content(StrEnum):
    """The kind of content of an image."""

    PHOTO = "photo"
    PAGE = "page"
    DRAWING = "drawing"
    MASK = "mask"
    SCREENSHOT = "screenshot"
    OTHER = "other"


def has_few_tones(image: ImageSample) -> bool:
    """Return whether all of an image is in eight grey levels: nothing in it is shaded or soft."""
    return _share_of_few(image) >= _FEW_SHARE


def share_of_ground(image: ImageSample) -> float:
    """Return the share of the most frequent tone of an image, 0 to 1."""
    return float(_around(image).max())


def has_sure_lines(image: ImageSample) -> bool:
    """Return whether an image is of sharp lines or text with contrast, in all directions."""
    if image.structure < _EMPTY:
        return False
    return min(image.lost_steps) >= _SURE_LINES and max(image.lost_steps) >= _SURE_LINE


def content_of(image: ImageSample) -> Content:
    """Return the kind of content of an image.

    Images of lines and text have a ground of one tone, and edges that are sharper than those of a photo: a blur takes
    away more of their steps. Masks have few tones and few edges. A thing on a white ground is a photo.
    """
    if image.structure < _EMPTY:
        return Content.OTHER
    share_of_steps = _share_of_steps(image)
    if has_few_tones(image) and share_of_steps < _STEPS and _share_of_regions(image) >= _REGIONS:
        return Content.MASK
    if share_of_ground(image) < _GROUND or share_of_steps < _STEPS or min(image.lost_steps) < _LINES:
        return Content.PHOTO
    if _share_of_few(image) >= _MOST_SHARE:
        return Content.DRAWING
    is_dark = int(_around(image).argmax()) < _DARK
    return Content.SCREENSHOT if is_dark or image.structure > _CONTRAST else Content.PAGE


def _share_of_few(image: ImageSample) -> float:
    return float(np.partition(image.tones, -_FEW)[-_FEW:].sum())


def _around(image: ImageSample) -> Floats:
    """Return the share of each tone with those that are much the same: float32, shape (256,)."""
    return np.convolve(image.tones, np.ones(2 * _TONE + 1, np.float32), "same")


def _share_of_regions(image: ImageSample) -> float:
    """Return the share of pixels whose right neighbour has the same values, 0 to 1; noise leaves few of them."""
    sample = image.sample
    return float(np.mean((sample[:, 1:] == sample[:, :-1]).all(axis=2))) if sample.shape[1] > 1 else 1.0


def _share_of_steps(image: ImageSample) -> float:
    """Return the share of pixels beside a strong step, 0 to 1."""
    grey = image.whole_grey
    if min(grey.shape) < 2:
        return 0.0
    across = cv2.absdiff(grey[1:, 1:], grey[1:, :-1])
    down = cv2.absdiff(grey[1:, 1:], grey[:-1, 1:])
    return float(np.count_nonzero(cv2.max(across, down) >= _STEP)) / across.size
