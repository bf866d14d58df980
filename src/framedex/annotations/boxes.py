"""Bounding boxes of objects in images, as annotation files give them, and how one fits its image."""

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from framedex.annotations.labels import storable
from framedex.annotations.problems import Problem

TOLERANCE = 1.0
"""Pixels that a box may reach over the edge of its picture without a word: what rounding and inclusive ends make."""


@dataclass(frozen=True, slots=True)
class Box:
    """An object in a picture, as a file gives it. Outlines (segmentations) are not kept.

    Attributes:
        name: the picture's path within the source, or its bare name, as written in the file.
        x: of the left edge in pixels, from the left edge of the picture.
        y: of the upper edge in pixels, from the upper edge of the picture.
        width: in pixels.
        height: in pixels.
        label: name of the class, without space around it.
        confidence: 0 to 1; None where the file says none.
        original_id: the annotation's id in a COCO file; ids are no keys: files exist that give one twice.
        source: the name of the file's format; see :mod:`framedex.annotations.formats`.
        iscrowd: the box is around many objects of a kind (COCO).
        truncated: the object goes on outside of the picture (VOC).
        difficult: the object is hard to recognise (VOC).
        place: where in the file it was found, in words, for messages; two boxes may be equal all the same.
    """

    name: str
    x: float
    y: float
    width: float
    height: float
    label: str
    confidence: float | None = None
    original_id: str | None = None
    source: str = "coco"
    iscrowd: bool = False
    truncated: bool = False
    difficult: bool = False
    place: str = field(default="", compare=False)


class Fit(NamedTuple):
    """How a box fits its picture.

    Attributes:
        box: the part of it that lies within the picture; None where there is none.
        problem: why there is none, or that more than :data:`TOLERANCE` was cut off.
    """

    box: Box | None
    problem: Problem | None


def fit_box(box: Box, width: int, height: int) -> Fit:
    """Return the part of a box that lies within a picture of a size in pixels.

    A box that lies within is returned as it is. Corners that are swapped (a negative width or height) are not put
    right: they may as well be another order of the numbers.
    """
    numbers = (box.x, box.y, box.width, box.height)
    if not all(map(math.isfinite, numbers)):
        return Fit(None, _misfit(box, "x, y, width and height must be finite numbers"))
    if box.width < 0 or box.height < 0:
        return Fit(None, _misfit(box, "the corners are swapped: width and height must be above 0"))
    if box.width == 0 or box.height == 0:
        return Fit(None, _misfit(box, "the box is empty: width and height must be above 0"))
    if min(width - box.x, height - box.y, box.x + box.width, box.y + box.height) <= 0:
        return Fit(None, _misfit(box, f"the box lies outside of the picture, which has {width}×{height} pixels"))
    x, across, cut_x = _clipped(box.x, box.width, width)
    y, down, cut_y = _clipped(box.y, box.height, height)
    if not cut_x and not cut_y:
        return Fit(box, None)
    problem = None
    if max(cut_x, cut_y) > TOLERANCE:
        problem = _misfit(box, f"cut off where it reaches over the picture, which has {width}×{height} pixels")
    return Fit(replace(box, x=x, y=y, width=across, height=down), problem)


def _clipped(start: float, length: float, limit: int) -> tuple[float, float, float]:
    """Return start and length of the part within 0 and a limit, and how much of the longer overhang was cut off."""
    end = start + length
    cut = max(-start, end - limit, 0.0)
    if not cut:
        return start, length, cut
    return max(start, 0.0), min(end, float(limit)) - max(start, 0.0), cut


def _misfit(box: Box, reason: str) -> Problem:
    value = f"x {box.x:g}, y {box.y:g}, width {box.width:g}, height {box.height:g}"
    return Problem(box.place or f"a box of {box.name!r}", value, reason)


def number(value: Any) -> float | None:
    """Return a finite number, also one written as text; None where there is none."""
    if type(value) is float:  # nearly always, and by far the fastest
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def label_of(value: Any) -> str:
    """Return the name of a class, which may be a number, as it is kept; empty where there is none."""
    is_name = isinstance(value, str | int) and not isinstance(value, bool)
    return storable(str(value)).strip() if is_name else ""


def is_confidence(value: float | None) -> bool:
    """Return whether a number can be a confidence."""
    return value is not None and 0 <= value <= 1
