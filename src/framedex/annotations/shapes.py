"""Outlines, masks and key points of boxes: their checks, and their texts in tables."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from framedex.annotations.masks import MOST_PIXELS, bounds_of_mask, runs_of

_CORNERS = 6  # numbers of the smallest polygon


class ObjectShape(NamedTuple):
    """The outline or mask of an object, and its key points, as the tables store them.

    Attributes:
        segmentation: JSON as in COCO: an array of polygons ``[x1, y1, x2, y2, …]`` in pixels, or a run-length encoded
            mask, an object with ``size`` [height, width] and ``counts``. None for neither.
        keypoints: JSON as in COCO: ``[x1, y1, v1, x2, …]`` in pixels; v is 0 for a missing point, 1 for a hidden and 2
            for a visible one. None for none.
        area: the area of the mask in square pixels; None if it is not known.
    """

    segmentation: str | None = None
    keypoints: str | None = None
    area: float | None = None


NO_SHAPE = ObjectShape()


def segmentation_text(value: Any) -> str | None:
    """Return the segmentation of an annotation as JSON; None for an empty one.

    Raises:
        ValueError: it is neither a list of polygons nor a run-length encoded mask.
    """
    if not value:
        return None
    if isinstance(value, dict):
        return _text(_mask(value))
    if not isinstance(value, list) or not all(isinstance(polygon, list) for polygon in value):
        raise ValueError("'segmentation' must be a list of polygons, or an object with 'size' and 'counts'")
    polygons = [polygon for polygon in value if polygon]
    for polygon in polygons:
        if len(polygon) < _CORNERS or len(polygon) % 2 or not are_numbers(polygon):
            raise ValueError("a polygon of 'segmentation' must be [x1, y1, x2, y2, x3, y3, …], finite numbers")
    return _text(polygons) if polygons else None


def _mask(value: dict[str, Any]) -> dict[str, Any]:
    size, counts = value.get("size"), value.get("counts")
    if not isinstance(size, list) or len(size) != 2 or not all(type(each) is int and each > 0 for each in size):
        raise ValueError("the 'size' of a mask must be [height, width], whole numbers above 0")
    if size[0] * size[1] > MOST_PIXELS:
        raise ValueError(f"a mask may have at most {MOST_PIXELS:,} pixels")
    if isinstance(counts, list):
        if not all(type(each) is int and each >= 0 for each in counts) or sum(counts) != size[0] * size[1]:
            raise ValueError("the 'counts' of a mask must be whole numbers whose sum is height × width")
    elif not isinstance(counts, str) or sum(runs_of(counts)) > size[0] * size[1]:
        raise ValueError("the 'counts' of a mask must be a list of numbers, or a text of COCO's encoding, of its size")
    return {"size": size, "counts": counts}


def keypoints_text(value: Any) -> str | None:
    """Return the key points of an annotation as JSON; None for an empty list.

    Raises:
        ValueError: it is not a list of three finite numbers for each point.
    """
    if not value:
        return None
    if not isinstance(value, list) or len(value) % 3 or not are_numbers(value):
        raise ValueError("'keypoints' must be [x1, y1, v1, x2, …], three finite numbers for each point")
    return _text(value)


def bounds_of_shape(shape: ObjectShape) -> tuple[float, float, float, float] | None:
    """Return x, y, width and height in pixels of the outline or mask of an object, or else of its key points.

    Key points with a visibility of 0 do not count. None is returned for a shape without extent.
    """
    outline = json.loads(shape.segmentation) if shape.segmentation else []
    if isinstance(outline, dict):
        return bounds_of_mask(outline)
    points = json.loads(shape.keypoints) if shape.keypoints and not outline else []
    across = [x for polygon in outline for x in polygon[::2]] or [
        x for x, v in zip(points[::3], points[2::3], strict=True) if v
    ]
    down = [y for polygon in outline for y in polygon[1::2]] or [
        y for y, v in zip(points[1::3], points[2::3], strict=True) if v
    ]
    if not across or min(across) == max(across) or min(down) == max(down):
        return None
    return min(across), min(down), max(across) - min(across), max(down) - min(down)


def polygon_area(corners: Sequence[float]) -> float:
    """Return the area of a polygon x1, y1, x2, y2, … (shoelace formula)."""
    points = list(zip(corners[::2], corners[1::2], strict=True))
    following = zip(points, points[1:] + points[:1], strict=True)
    return abs(sum(x * y_next - x_next * y for (x, y), (x_next, y_next) in following)) / 2


def area_of_segmentation(text: str) -> float:
    """Return the area of a segmentation in square pixels: of a mask its pixels, of polygons the sum of their areas."""
    value = json.loads(text)
    if isinstance(value, dict):
        return float(sum(runs_of(value["counts"])[1::2]))
    return sum(map(polygon_area, value))


def are_numbers(values: list[Any]) -> bool:
    """Return whether all values are finite numbers, none of them an integer that is too large for a float."""
    try:
        return all(type(each) is float or type(each) is int for each in values) and all(map(math.isfinite, values))
    except OverflowError:
        return False


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def shape_text(shape: ObjectShape, attributes: str | None) -> str:
    """Return the shape and the attributes of an object as one text for :func:`shape_of_text`; empty for neither."""
    return "" if attributes is None and shape == NO_SHAPE else json.dumps([*shape, attributes])


def shape_of_text(text: str) -> tuple[ObjectShape, str | None]:
    """Return the shape and the attributes of a text of :func:`shape_text`."""
    if not text:
        return NO_SHAPE, None
    *shape, attributes = json.loads(text)
    return ObjectShape(*shape), attributes


def outline_in_pixels(outline: Sequence[float], width: int, height: int, digits: int) -> str:
    """Return the segmentation with one polygon, given its corners in fractions of an image's sides.

    Args:
        outline: x1, y1, x2, y2, …
        width: of the image in pixels.
        height: of the image in pixels.
        digits: of the numbers after the decimal point.
    """
    sides = (width, height)
    return _text([[round(each * sides[position % 2], digits) for position, each in enumerate(outline)]])


def keypoints_in_pixels(points: Sequence[float], width: int, height: int, digits: int) -> str:
    """Return key points as JSON, given their places in fractions of an image's sides.

    Args:
        points: x1, y1, v1, x2, …; the visibilities v are no fractions.
        width: of the image in pixels.
        height: of the image in pixels.
        digits: of the numbers after the decimal point.
    """
    factors = (width, height, 1)
    values = [round(each * factors[position % 3], digits) for position, each in enumerate(points)]
    return _text(
        [int(each) if position % 3 == 2 and each == int(each) else each for position, each in enumerate(values)]
    )


def numbers_text(numbers: Sequence[float]) -> str | None:
    """Return the numbers of an outline or of key points as JSON; None for no numbers."""
    return _text(list(numbers)) if numbers else None


def numbers_of_text(text: str | None) -> tuple[float, ...]:
    """Return the numbers of a text of :func:`numbers_text`."""
    return () if text is None else tuple(json.loads(text))
