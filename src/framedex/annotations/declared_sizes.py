"""Boxes of images whose annotation file declares another size than they have.

Some tools annotate images as they are stored, before their Exif orientation is applied, or smaller or larger copies of
them. Where the two sizes say which of these it was, boxes and shapes are turned or scaled, else they are left out.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from framedex.annotations.boxes import Box
from framedex.annotations.masks import mask_of_pixels, pixels_of
from framedex.annotations.problems import AnnotationProblem, problem
from framedex.annotations.shapes import ObjectShape

TURNED = "boxes that are turned as their image is"
SCALED = "boxes that are scaled to the size of their image"
OTHER_SIZE = "boxes and masks of images of another size"
_FIRST_TURNED = 5  # the first Exif orientation that exchanges width and height
Size = tuple[int, int]


def size_of(width: Any, height: Any) -> Size | None:
    """Return the size of an image in pixels as a file declares it, as numbers or texts; None if it declares none."""
    try:
        sides = int(width), int(height)
    except (ValueError, TypeError, OverflowError):
        return None
    return sides if all(0 < each < 2**31 for each in sides) else None


@dataclass(frozen=True)
class _Change:
    """A change of pixels: first they are turned by an Exif orientation, then scaled."""

    declared: Size
    orientation: int
    across: float = 1.0
    down: float = 1.0

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point."""
        width, height = self.declared
        turned = {5: (y, x), 6: (height - y, x), 7: (height - y, width - x), 8: (y, width - x)}
        x, y = turned.get(self.orientation, (x, y))
        return x * self.across, y * self.down


def _change(declared: Size, size: Size, orientation: int) -> _Change | None:
    """Return the change from a declared size to that of the image; None if several or none are possible."""
    is_turned = orientation >= _FIRST_TURNED
    if declared == size:
        return _Change(declared, 1)
    if is_turned and declared == size[::-1]:
        return _Change(declared, orientation)
    for number, (width, height) in ((1, declared), (orientation, declared[::-1]))[: 1 + is_turned]:
        if _is_scaled((width, height), size):
            return _Change(declared, number, size[0] / width, size[1] / height)
    return None


def _is_scaled(one: Size, other: Size) -> bool:
    """Return whether two sizes have the same ratio of their sides, as far as these are rounded to whole pixels."""
    return any(
        max((b[0] - 1) / a[0], (b[1] - 1) / a[1]) <= min((b[0] + 1) / a[0], (b[1] + 1) / a[1])
        for a, b in ((one, other), (other, one))
    )


def placed(box: Box, size: Size, orientation: int) -> tuple[Box | None, list[AnnotationProblem]]:
    """Return a box in the pixels of its image, and problems.

    Args:
        box: in the pixels of its declared size, see :class:`framedex.annotations.boxes.Box`.
        size: the displayed width and height of the image.
        orientation: its Exif orientation, 1 to 8.

    Returns:
        box: in the pixels of the displayed image; None if it cannot be placed.
        problems: those of a box, or only its mask, that is left out, and of a box that was changed.
    """
    change = _change(box.image_size or size, size, orientation)
    if change is None:
        return None, [_other_size(box, box.image_size or size, size)]
    changed, problems = _changed(box, change) if change != _Change(size, 1) else box, []
    if change.orientation != 1 or (change.across, change.down) != (1.0, 1.0):
        kind = SCALED if change.orientation == 1 else TURNED
        problems.append(problem(box.location or box.name, box.image_size, f"the image has {_text(size)}", kind))
    if (text := box.shape.segmentation) and text.startswith("{"):
        mask = json.loads(text)
        declared = mask["size"][1], mask["size"][0]
        of_mask = _change(declared, size, orientation)
        if of_mask is None:
            problems.append(_other_size(box, declared, size))
            changed = replace(changed, shape=changed.shape._replace(segmentation=None, area=None))
        elif declared != size or of_mask.orientation != 1:
            mask = _resampled(mask, of_mask, size)
            changed = replace(changed, shape=changed.shape._replace(segmentation=_json(mask)))
    return changed, problems


def _other_size(box: Box, declared: Size, size: Size) -> AnnotationProblem:
    reason = f"the file declares {_text(declared)}, and the image has {_text(size)}, with other sides"
    return problem(box.location or box.name, box.label, reason, OTHER_SIZE)


def _text(size: Size) -> str:
    return f"{size[0]}×{size[1]} pixels"


def _changed(box: Box, change: _Change) -> Box:
    """Return a box with its outline and key points in other pixels; a mask stays as it is."""
    corners = change.point(box.x, box.y), change.point(box.x + box.width, box.y + box.height)
    (left, right), (top, bottom) = (sorted(each) for each in zip(*corners, strict=True))
    segmentation, keypoints, area = box.shape
    if segmentation is not None and segmentation.startswith("["):
        polygons = json.loads(segmentation)
        segmentation = _json(
            [
                [side for point in zip(each[::2], each[1::2], strict=True) for side in change.point(*point)]
                for each in polygons
            ]
        )
    if keypoints is not None:
        points = json.loads(keypoints)
        triples = zip(points[::3], points[1::3], points[2::3], strict=True)
        keypoints = _json([each for x, y, v in triples for each in (*(change.point(x, y) if v else (x, y)), v)])
    area = None if area is None else area * change.across * change.down
    shape = ObjectShape(segmentation, keypoints, area)
    return replace(box, x=left, y=top, width=right - left, height=bottom - top, shape=shape)


def _resampled(mask: dict[str, Any], change: _Change, size: Size) -> dict[str, Any]:
    """Return a mask turned and scaled to the size of its image, by the nearest pixel."""
    pixels = pixels_of(mask)
    match change.orientation:
        case 5:
            pixels = pixels.T
        case 6:
            pixels = np.rot90(pixels, -1)
        case 7:
            pixels = np.rot90(pixels.T, 2)
        case 8:
            pixels = np.rot90(pixels)
    rows, columns = (np.arange(each) * have // each for each, have in zip(size[::-1], pixels.shape, strict=True))
    return mask_of_pixels(pixels[rows][:, columns])


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
