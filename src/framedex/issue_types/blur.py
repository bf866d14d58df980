"""Blurred images."""

from typing import Any

import cv2
import numpy as np

from framedex.issue_types.base import ImageSample, IssueType, histogram
from framedex.issue_types.content_kinds import has_few_tones, share_of_ground
from framedex.issue_types.steps import FEWEST_STEPS, Grey, lost_by_direction

_LIMIT = 0.37
_TAPS = 5
_NOISE = 3.0
_NOISE_KERNEL = np.array([1, -2, 1], dtype=np.float32)  # in both directions
_OF_GAUSSIAN = 1 / (6 * 0.6745)  # from the median of the absolute responses to the standard deviation of the noise

_SOFT = 0.40  # at most this share of the steps of a blurred image is lost in the direction of its blur
_CONTRAST, _SOFT_CONTRAST = 20.0, 0.45  # grey levels of structure; the same share of images with more
_MOTION = 0.12  # difference between the directions of an image that was moved
_GRAIN = 1.2  # grey levels of noise that hides the blur of a larger image

_GROUND, _PLAIN = 0.30, 0.38  # share of one tone: of images whose edges may be lines on a ground, and mostly are
_LINES = 0.66  # acutance below which these may be blurred
_SOFT_PLAIN = 0.56  # share of steps that is lost at most of such images where they are blurred, below the limit
_DENSE, _DENSE_LIMIT = 30.0, 0.45  # structure of dense lines without a ground; acutance below which they may be blurred
_SOFT_DENSE, _MOVED_DENSE = 0.50, 0.74  # largest share of steps that they lose where blurred; ratio of the least to it
_TEXT = 14.0  # grey levels of structure; that of text is less, those of other things on a ground are more
_SOFT_TEXT, _SOFT_THING, _SOFT_MOVED = 0.57, 0.50, 0.74  # the same share above the limit, and of images that were moved
_MOVED_TEXT, _MOVED_THING = 0.83, 0.79  # ratio of the least to the largest share of the latter


def _acutance(image: ImageSample) -> float:
    """Return the share of brightness steps that another blur takes away, in [0, 1], for the worse direction.

    A sharp image loses most of its steps between neighbouring pixels by a blur, a blurred one hardly any. After
    F. Crete et al., "The blur effect: perception and estimation with a new no-reference perceptual blur metric", SPIE
    6492, 2007. It is measured on at most 192 pixels of the longer side, within uniform borders. So the value does not
    depend on the size of the image, and noise is averaged. Of the rest, three standard deviations are subtracted from
    each step; they are estimated as in J. Immerkær, "Fast noise variance estimation", CVIU 64(2), 1996, but from the
    median, which edges do not change.

    Subjects that are soft by nature, such as cells under a microscope, have as few steps at that size. They have fine
    detail in the larger image, in all directions alike. So the few images below the limit get a closer look there,
    unless there is none, or noise hides it.

    Text, lines and edges of windows on a ground of one tone are sharper than a photo: blurred, they are as sharp as
    one. So images with such a ground are looked at in the larger image, too, and so are those of dense lines. Those of
    few tones, such as masks, have no soft edges.
    """
    grey = image.small
    if min(grey.shape) < _TAPS or has_few_tones(image):
        return 1.0
    noise = _NOISE * _noise(grey)
    acutance = min(_lost_steps(grey, noise, axis) for axis in (0, 1))
    ground = share_of_ground(image)
    is_dense = ground < _GROUND and image.structure >= _DENSE
    if acutance >= (_LINES if ground >= _GROUND else _DENSE_LIMIT if is_dense else _LIMIT):
        return acutance
    if acutance < _LIMIT and (_noise(image.grey) > _GRAIN or image.large.shape == grey.shape):
        return acutance
    lost = lost_by_direction(image.large)
    least, most = min(lost), max(lost)
    if acutance < _LIMIT:
        soft = _SOFT_CONTRAST if image.structure >= _CONTRAST else _SOFT
        is_blurred = least < (_SOFT_PLAIN if ground >= _PLAIN else soft) or most - least > _MOTION
        return acutance if is_blurred else max(acutance, least)
    if is_dense:
        is_blurred = most < _SOFT_DENSE or least < _MOVED_DENSE * most
        return acutance * _LIMIT / _DENSE_LIMIT if is_blurred else acutance
    soft, moved = (_SOFT_TEXT, _MOVED_TEXT) if image.structure < _TEXT else (_SOFT_THING, _MOVED_THING)
    is_blurred = least < soft or (least < _SOFT_MOVED and least < moved * most)
    return acutance * _LIMIT / _LINES if is_blurred else acutance


def _noise(grey: Grey) -> float:
    """Return the standard deviation of the noise, in grey levels."""
    if min(grey.shape) < 3:
        return 0.0
    # Each third response of each second row is enough for the median.
    responses = cv2.sepFilter2D(grey, cv2.CV_16S, _NOISE_KERNEL, _NOISE_KERNEL)[1:-1:2, 1:-1:3]
    below = np.cumsum(histogram(cv2.convertScaleAbs(np.ascontiguousarray(responses)), 256, 256))
    count = int(below[-1])
    lower, upper = np.searchsorted(below, ((count - 1) // 2, count // 2), side="right").tolist()
    return _OF_GAUSSIAN * float(lower + upper) / 2


def _lost_steps(grey: Grey, noise: float, axis: int) -> float:
    """Return the share of the steps along an axis that a blur of five pixels takes away; 1 without steps.

    The step between two neighbouring means of five pixels is a fifth of the step between the pixel that comes in and
    the one that goes out. So nothing is blurred, and integers are exact.

    Args:
        grey: uint8, shape (h, w).
        noise: grey levels to subtract from each step.
        axis: 0 or 1.
    """
    margin = _TAPS // 2
    sides = (margin, margin, 0, 0) if axis == 0 else (0, 0, margin, margin)
    wide = cv2.copyMakeBorder(grey, *sides, borderType=cv2.BORDER_REFLECT)
    if axis == 0:
        ends = grey[1:], grey[:-1], wide[_TAPS:], wide[:-_TAPS]
    else:
        ends = grey[:, 1:], grey[:, :-1], wide[:, _TAPS:], wide[:, :-_TAPS]
    steps: Any = cv2.absdiff(*ends[:2])
    blurred: Any = cv2.absdiff(*ends[2:])
    level, fifths = divmod(int(_TAPS * noise), _TAPS)  # of the noise, as far as integers go
    subtrahend: Any = float(level)  # values below it become 0
    above: Any = cv2.subtract(steps, subtrahend)
    whole = _sum_above(above, noise - level)
    if whole < FEWEST_STEPS * max(1, steps.size):
        return 1.0
    remaining = np.add(blurred, fifths, dtype=np.uint16)
    lost: Any = cv2.subtract(np.multiply(above, _TAPS, dtype=np.uint16), remaining)
    return _sum_above(lost, _TAPS * (noise - level) - fifths) / (_TAPS * whole)


def _sum_above(values: Any, least: float) -> float:
    """Return the sum of what integers have above a number in [0, 1)."""
    return float(cv2.sumElems(values)[0]) - least * cv2.countNonZero(values)


BLUR = IssueType(
    "blur",
    "share of brightness steps that another blur takes away, 0 blurred to 1 sharp",
    _LIMIT,
    worst=0.0,
    measure=_acutance,
    column="acutance",
)
