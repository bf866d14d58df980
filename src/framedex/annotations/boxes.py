"""Bounding boxes as annotation files give them, and their clipping to the image."""

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from framedex.annotations.labels import storable
from framedex.annotations.problems import AnnotationProblem
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, bounds_of_shape

_NUMBERS = (int, float, str, Decimal)
TOLERANCE = 1.0
"""Overhang in pixels that is cut off without a problem: rounding and inclusive edges cause it."""


@dataclass(slots=True)  # not frozen, which makes it five times as slow to create
class Box:
    """One object of an image, as an annotation file gives it. It does not change.

    Attributes:
        name: the image's path within the source, or its base name, as written in the file.
        x: the left edge in pixels, from the left edge of the image.
        y: the upper edge in pixels, from the upper edge of the image.
        width: in pixels.
        height: in pixels.
        label: the class name, without surrounding spaces.
        confidence: 0 to 1, or None if the file gives no confidence.
        original_id: the annotation's id in a COCO file. It is not a key: some files repeat an id.
        source: the name of the file's format; see :mod:`framedex.annotations.formats`.
        iscrowd: the box surrounds a group of objects (COCO).
        truncated: the object extends beyond the image (VOC).
        difficult: the object is hard to recognise (VOC).
        attributes: further names and values, a JSON object as :mod:`framedex.annotations.attributes` makes it, or None.
        shape: outline or mask, and key points.
        image_size: the width and height of the image in pixels that the file declares, or None. Boxes are compared
            without it, and without the location.
        location: the position in the file, for messages.
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
    attributes: str | None = None
    shape: ObjectShape = NO_SHAPE
    image_size: tuple[int, int] | None = field(default=None, compare=False)
    location: str = field(default="", compare=False)


class Fit(NamedTuple):
    """The result of fitting a box to its image.

    Attributes:
        box: the part of the box within the image, or None if the box cannot be used.
        problem: the reason why the box cannot be used, or a note that more than :data:`TOLERANCE` was cut off.
    """

    box: Box | None
    problem: AnnotationProblem | None


def fit_box(box: Box, width: int, height: int) -> Fit:
    """Return the part of a box that lies within an image of a size in pixels.

    A box within the image is returned unchanged. A box with swapped corners (a negative width or height) is a problem:
    the numbers may be in another order, so they are not corrected.
    """
    numbers = x, y, across, down = box.x, box.y, box.width, box.height
    if across > 0 and down > 0 and 0 <= x < width and 0 <= y < height and x + across <= width and y + down <= height:
        return Fit(box, None)  # the usual case
    if not all(map(math.isfinite, numbers)):
        return Fit(None, _misfit(box, "x, y, width and height must be finite numbers"))
    if box.width < 0 or box.height < 0:
        return Fit(None, _misfit(box, "the corners are swapped: width and height must be above 0"))
    if box.width == 0 or box.height == 0:
        return Fit(None, _misfit(box, "the box is empty: width and height must be above 0"))
    if min(width - box.x, height - box.y, box.x + box.width, box.y + box.height) <= 0:
        return Fit(None, _misfit(box, f"the box lies outside of the image, which has {width}×{height} pixels"))
    x, across, cut_x = _clipped(box.x, box.width, width)
    y, down, cut_y = _clipped(box.y, box.height, height)
    if not cut_x and not cut_y:
        return Fit(box, None)
    problem = None
    if max(cut_x, cut_y) > TOLERANCE:
        problem = _misfit(box, f"cut off where it reaches over the image, which has {width}×{height} pixels")
    return Fit(replace(box, x=x, y=y, width=across, height=down), problem)


def _clipped(start: float, length: float, limit: int) -> tuple[float, float, float]:
    """Return start and length of the part within 0 and a limit, and the larger of the two overhangs."""
    end = start + length
    cut = max(-start, end - limit, 0.0)
    if not cut:
        return start, length, cut
    return max(start, 0.0), min(end, float(limit)) - max(start, 0.0), cut


def _misfit(box: Box, reason: str) -> AnnotationProblem:
    value = f"x {box.x:g}, y {box.y:g}, width {box.width:g}, height {box.height:g}"
    return AnnotationProblem(box.location or f"a box of {box.name!r}", value, reason)


def has_other_bounds(box: Box) -> bool:
    """Return whether a box is not that of its outline or mask, by more than half a pixel on some side."""
    bounds = bounds_of_shape(ObjectShape(box.shape.segmentation)) if box.shape.segmentation else None
    if bounds is None:
        return False
    x, y, width, height = bounds
    sides = (box.x, box.y, box.x + box.width, box.y + box.height)
    return any(abs(one - other) > 0.5 for one, other in zip(sides, (x, y, x + width, y + height), strict=True))


def finite_number(value: Any) -> float | None:
    """Return a value as a finite number; text is parsed. Return None for any other value."""
    kind = type(value)
    if kind is float:  # the usual cases, and the fastest checks
        return value if math.isfinite(value) else None
    if kind is not int and kind is not str and (isinstance(value, bool) or not isinstance(value, _NUMBERS)):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def label_of(value: Any) -> str:
    """Return a class name as it is stored, or an empty text. A number becomes text.

    Null characters become U+FFFD, as in :func:`framedex.annotations.labels.parse_labels`.
    """
    is_name = isinstance(value, str | int) and not isinstance(value, bool)
    return storable(str(value)).replace("\0", "\ufffd").strip() if is_name else ""


def is_confidence(value: float | None) -> bool:
    """Return whether a number is a valid confidence."""
    return value is not None and 0 <= value <= 1
