"""Blurred images."""

from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.issue_types.base import Grey, ImageSample, IssueType, histogram

_LIMIT = 0.37
_TAPS = 5
_NOISE = 3.0
_FEWEST_STEPS = 0.005  # mean brightness step, in grey levels, of an image that is not empty
_NOISE_KERNEL = np.array([1, -2, 1], dtype=np.float32)  # in both directions
_OF_GAUSSIAN = 1 / (6 * 0.6745)  # from the median of the absolute responses to the standard deviation of the noise

_LINE = 9  # pixels of the blur of the closer look
_DIRECTIONS = 8
_SOFT = 0.40  # at most this share of the steps of a blurred image is lost in the direction of its blur
_MOTION = 0.12  # difference between the directions of an image that was moved
_GRAIN = 1.2  # grey levels of noise that hides the blur of a larger image


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
    unless noise hides it.
    """
    grey = image.small
    if min(grey.shape) < _TAPS:
        return 1.0
    noise = _NOISE * _noise(grey)
    acutance = min(_lost_steps(grey, noise, axis) for axis in (0, 1))
    if acutance >= _LIMIT or _noise(image.grey) > _GRAIN:
        return acutance
    lost = _lost_by_direction(image.large)
    is_blurred = min(lost) < _SOFT or max(lost) - min(lost) > _MOTION
    return acutance if is_blurred else max(acutance, min(lost))


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
    if whole < _FEWEST_STEPS * max(1, steps.size):
        return 1.0
    remaining = np.add(blurred, fifths, dtype=np.uint16)
    lost: Any = cv2.subtract(np.multiply(above, _TAPS, dtype=np.uint16), remaining)
    return _sum_above(lost, _TAPS * (noise - level) - fifths) / (_TAPS * whole)


def _sum_above(values: Any, least: float) -> float:
    """Return the sum of what integers have above a number in [0, 1)."""
    return float(cv2.sumElems(values)[0]) - least * cv2.countNonZero(values)


def _lost_by_direction(grey: Grey) -> list[float]:
    """Return the shares of steps that a blur of nine pixels takes away, by its direction; 1 without steps.

    An image without steps is empty rather than blurred. The blur is a sum, so that integers are exact.
    """
    height, width = grey.shape
    if min(grey.shape) < 3:
        return [1.0]
    shares = []
    for (x, y), line in _lines():
        sums = cv2.filter2D(grey, cv2.CV_16S, line, borderType=cv2.BORDER_REFLECT).view(np.uint16)
        here = slice(max(0, -y), height - max(0, y)), slice(max(0, -x), width - max(0, x))
        there = slice(max(0, y), height - max(0, -y)), slice(max(0, x), width - max(0, -x))
        steps, remaining = (np.asarray(cv2.absdiff(each[there], each[here])) for each in (grey, sums))
        whole = float(cv2.sumElems(steps)[0])
        if whole < _FEWEST_STEPS * max(1, steps.size):
            shares.append(1.0)
            continue
        count = int(line.sum())
        lost: Any = cv2.subtract(np.multiply(steps, count, dtype=np.uint16), remaining)
        shares.append(min(1.0, float(cv2.sumElems(lost)[0]) / (count * whole)))
    return shares


@cache
def _lines() -> tuple[tuple[tuple[int, int], npt.NDArray[np.float32]], ...]:
    """Return, for each direction, the neighbouring pixel in it and the pixels of a blur along it, which are 1."""
    lines = []
    middle = _LINE // 2
    for angle in np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS:
        step = np.array([np.cos(angle), np.sin(angle)])
        start, end = (np.rint(middle + sign * middle * step).astype(int).tolist() for sign in (-1, 1))
        kernel = np.zeros((_LINE, _LINE), np.float32)
        cv2.line(kernel, start, end, 1.0, 1)
        x, y = np.rint(step).astype(int).tolist()
        lines.append(((x, y), kernel))
    return tuple(lines)


BLUR = IssueType(
    "blur",
    "share of brightness steps that another blur takes away, 0 blurred to 1 sharp",
    _LIMIT,
    worst=0.0,
    measure=_acutance,
    column="acutance",
)
