"""What each format holds of a dataset: the table of ``docs/interop.md``, and what is left of a dataset behind a format.

This is the oracle of the round trips: :func:`behind` says in plain Python what an export that is read again must give.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.boxes import Box
from framedex.annotations.masks import mask_of_pixels, pixels_of
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, bounds_of_shape

FACETS = {
    "names": "names and folders of images",
    "image_ids": "ids of images",
    "labels": "labels of images",
    "captions": "captions",
    "parts": "parts, such as `train`",
    "classes": "the class list: order, classes without an object",
    "boxes": "bounding boxes",
    "original_id": "ids of objects",
    "confidence": "confidences",
    "iscrowd": "crowd flags",
    "truncated": "truncated flags",
    "difficult": "difficult flags",
    "attributes": "attributes, such as `occluded` and `track_id`",
    "outline": "outlines of one polygon",
    "outlines": "outlines of several polygons",
    "mask": "masks",
    "keypoints": "key points",
}
"""What a format may hold, and its name in the documentation."""
_ALL = "names labels captions parts boxes"
_MARKS = "truncated difficult attributes"
HELD: Mapping[str, frozenset[str]] = {
    name: frozenset(facets.split())
    for name, facets in {
        "coco": f"{_ALL} image_ids classes original_id confidence iscrowd {_MARKS} outline outlines mask keypoints",
        "csv": "names labels captions boxes confidence",
        "yolo": f"{_ALL} classes",
        "voc": f"{_ALL} {_MARKS}",
        "labelme": f"{_ALL} {_MARKS} outline outlines mask",
        "masks": "names labels captions parts mask",
        "huggingface": "labels captions parts boxes",
        "huggingface_parquet": "labels captions parts boxes",
        "cvat": f"names labels parts boxes {_MARKS} outline",
        "label-studio": f"names labels captions boxes original_id confidence {_MARKS} outline",
        "fiftyone": f"names labels parts boxes confidence {_MARKS} outline",
    }.items()
}
"""What each format holds that can be read; the last three are not written."""
SOURCES = ("cvat", "label-studio", "fiftyone")
"""Formats that are read only."""
ON_REQUEST = {"confidences": "confidence", "outlines": "outline", "keypoints": "keypoints"}
"""What a file of YOLO holds with an option."""
NOUNS = {
    "original_id": "ids",
    "confidence": "confidences",
    "iscrowd": "crowd flags",
    "truncated": "truncated flags",
    "difficult": "difficult flags",
    "attributes": "sets of attributes",
    "segmentation": "outlines or masks",
    "keypoints": "sets of key points",
}
"""What the message of an export calls the values that it leaves out."""
ANY_ID = "any"
"""An id that a format made."""
_PLAIN: dict[str, Any] = {
    "original_id": None, "confidence": None, "iscrowd": False, "truncated": False, "difficult": False,
    "attributes": None,
}  # fmt: skip
Pixels = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Annotated:
    """An image with all that formats may hold; the boxes without the name of the image.

    Attributes:
        is_sized: whether a source declares the size of the image.
    """

    name: str
    size: tuple[int, int]
    labels: tuple[str, ...] = ()
    caption: str | None = None
    part: str | None = None
    id: str | None = None
    boxes: tuple[Box, ...] = ()
    is_sized: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Content:
    """Images by their number, and the classes of objects in their order."""

    images: dict[int, Annotated]
    classes: tuple[str, ...] = ()

    @property
    def boxes(self) -> Iterator[Box]:
        """All objects."""
        return (box for image in self.images.values() for box in image.boxes)


def segmentation(box: Box) -> Any:
    """Return the polygons or the mask of an object; an empty list for neither."""
    return json.loads(box.shape.segmentation or "[]")


def kind_of(box: Box) -> str | None:
    """Return the facet of an object's outline or mask."""
    found = segmentation(box)
    return "mask" if isinstance(found, dict) else (None, "outline")[len(found)] if len(found) < 2 else "outlines"


def left_out(
    content: Content, format_: str, options: Mapping[str, bool], *, with_parts: bool
) -> Iterator[tuple[int, str]]:
    """Yield how many values an export leaves out, and what they are."""
    held = HELD[format_] | {ON_REQUEST[each] for each in options}
    if "image_ids" not in held and (count := sum(image.id is not None for image in content.images.values())):
        yield count, "image ids"
    tags = sum(len(image.part.split("+")) for image in content.images.values() if image.part)
    if tags and not with_parts and format_ != "huggingface_parquet":
        yield tags, "tags of images"
    for name, nouns in NOUNS.items():
        is_held = bool({"outline", "mask"} & held) if name == "segmentation" else name in held
        values = [getattr(box.shape if name in NO_SHAPE._fields else box, name) for box in content.boxes]
        if not is_held and (count := sum(value is not None and value is not False for value in values)):
            yield count, nouns


def behind(content: Content, format_: str, options: Mapping[str, bool], *, with_parts: bool) -> Content:
    """Return what an export in a format holds of a dataset, or for a source what it can say."""
    held = HELD[format_] | {ON_REQUEST[each] for each in options}
    repeated = Counter(box.original_id for box in content.boxes)
    most = max((len(json.loads(box.shape.keypoints or "[]")) for box in content.boxes), default=0)
    images = {}
    for number, image in content.images.items():
        boxes: list[Box] = []
        if format_ == "masks":
            boxes = list(_pixels_alone(image, content.classes))
        elif "boxes" in held:
            own = Counter(box.original_id for box in image.boxes)
            for box in image.boxes:
                kept: dict[str, Any] = {name: each for name, each in _PLAIN.items() if name not in held}
                if format_ == "coco" and (box.original_id is None or repeated[box.original_id] > 1):
                    kept["original_id"] = ANY_ID
                if format_ == "label-studio" and (box.original_id is None or own[box.original_id] > 1):
                    kept |= {name: _PLAIN[name] for name in _MARKS.split()}  # which need an id of their own
                elif format_ in ("voc", "cvat", "label-studio") and box.attributes is not None:
                    kept["attributes"] = _as_texts(box.attributes, with_numbers=format_ == "label-studio")
                shaped = _shaped(box, image.size, format_, held, options, most)
                boxes.append(replace(shaped, **kept))
        images[number] = replace(
            image,
            name=image.name if "names" in held else "",
            caption=image.caption if "captions" in held else None,
            part=image.part if with_parts and "parts" in held else None,
            id=image.id or ANY_ID if "image_ids" in held else None,
            boxes=tuple(sorted(boxes, key=lambda box: kind_of(box) == "outline") if format_ == "fiftyone" else boxes),
        )
    used = {box.label for image in images.values() for box in image.boxes}
    if not any(content.boxes) and "classes" in held:  # then labels of images are written with the class list
        of_images = {label for image in content.images.values() for label in image.labels}
        return Content(images, (*content.classes, *sorted(of_images - {*content.classes})))
    return Content(images, content.classes if "classes" in held else tuple(sorted(used)))


def _as_texts(attributes: str, *, with_numbers: bool) -> str:
    """Return attributes as formats without booleans have them; the flag of occlusion stays."""
    values, further = json.loads(attributes).items(), (int, float) if with_numbers else ()
    return json.dumps({
        name: each
        if isinstance(each, str) or name == "occluded" or (isinstance(each, further) and not isinstance(each, bool))
        else json.dumps(each)
        for name, each in values
    })  # fmt: skip


def _shaped(
    box: Box, size: tuple[int, int], format_: str, held: frozenset[str], options: Mapping[str, bool], most: int
) -> Box:
    points = box.shape.keypoints if "keypoints" in held else None
    if points is not None and format_ == "yolo":
        values = json.loads(points)
        points = json.dumps([*values, *[0] * (most - len(values))])
    outline = box.shape.segmentation if kind_of(box) in held else None
    if "outlines" in options:
        right, lower = box.x + box.width, box.y + box.height
        found = segmentation(box)
        polygons = found if isinstance(found, list) else []
        corners = [box.x, box.y, right, box.y, right, lower, box.x, lower]
        outline = json.dumps([max(polygons, key=_area, default=corners)])
    shape = ObjectShape(outline, points)
    if outline is not None and ("outlines" in options or format_ in ("labelme", *SOURCES)):
        x, y, width, height = bounds_of_shape(shape) or (0, 0, 0, 0)
        return replace(box, x=x, y=y, width=width, height=height, shape=shape)
    return replace(box, shape=shape)


def _area(corners: list[float]) -> float:
    x, y = np.array(corners[::2]), np.array(corners[1::2])
    return float(abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))))


def pixels(box: Box, size: tuple[int, int]) -> Pixels:
    """Return the pixels of an outline or mask, whose middle is inside of a polygon: bool, shape (H, W)."""
    shown = np.zeros(size[::-1], bool)
    found = segmentation(box)
    if isinstance(found, dict):
        read = pixels_of(found)
        shown[: read.shape[0], : read.shape[1]] = read
        return shown
    x, y = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    for polygon in found:
        inside = np.zeros_like(shown)
        ends = list(zip(polygon[::2], polygon[1::2], strict=True))
        for (x0, y0), (x1, y1) in zip(ends, ends[1:] + ends[:1], strict=True):
            if y0 != y1:
                inside ^= ((y0 <= y) != (y1 <= y)) & (x >= x0 + (y - y0) * (x1 - x0) / (y1 - y0))
        shown |= inside
    return shown


def _pixels_alone(image: Annotated, classes: tuple[str, ...]) -> Iterator[Box]:
    """Yield what later objects do not cover of each, by class."""
    owner = np.full(image.size[::-1], -1)
    shaped = [box for box in image.boxes if kind_of(box)]
    for number, box in enumerate(shaped):
        owner[pixels(box, image.size)] = number
    for number, box in sorted(enumerate(shaped), key=lambda each: (classes.index(each[1].label), each[0])):
        if (owner == number).any():
            shape = ObjectShape(json.dumps(mask_of_pixels(owner == number)))
            bounds = bounds_of_shape(shape)
            assert bounds is not None
            yield Box("", *bounds, " ".join(box.label.split()), shape=shape)


def matrix() -> str:
    """Return the table of the documentation: what each format holds, by facet."""
    rows = [["", *(f"`{name}`" for name in HELD)], ["---"] * (len(HELD) + 1)]
    for facet, shown in FACETS.items():
        on_request = next((option for option, each in ON_REQUEST.items() if each == facet), None)
        cells = [
            ("read" if name in SOURCES else "yes")
            if facet in held
            else f"`{on_request}=True`"
            if name == "yolo" and on_request
            else ""
            for name, held in HELD.items()
        ]
        rows.append([shown, *cells])
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |").replace("|  |", "| |") for row in rows)
