"""Bounding boxes in fractions of an image's sides. The size of the image converts them to pixels."""

from dataclasses import dataclass

from framedex.annotations.boxes import Box
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, keypoints_in_pixels, outline_in_pixels

DIGITS = 9
"""Digits after the decimal point of numbers in pixels: the precision of 64-bit fractions."""


@dataclass(slots=True)  # not frozen, as Box
class RelativeBox:
    """A bounding box in fractions of the sides of its image, as YOLO files give it.

    Attributes:
        name: the image's path within the folder; see *is_stem*.
        x: the centre, as a fraction of the image's width.
        y: the centre, as a fraction of the image's height.
        width: as a fraction of the image's width.
        height: as a fraction of the image's height.
        label: the class name.
        confidence: 0 to 1, or None if the file gives no confidence.
        original_id: the id of the annotation in its file, or None.
        location: the file and the line, for messages.
        source: the name of the file's format.
        outline: the corners of the object's outline as x1, y1, x2, y2, … in fractions; empty for none.
        keypoints: the object's key points as x1, y1, v1, x2, … with x and y in fractions, and visibilities v as in
            COCO; empty for none.
        is_stem: whether the name lacks the suffix.
        truncated: as of :class:`framedex.annotations.boxes.Box`, and so the next two.
    """

    name: str
    x: float
    y: float
    width: float
    height: float
    label: str
    confidence: float | None = None
    original_id: str | None = None
    location: str = ""
    source: str = "yolo"
    outline: tuple[float, ...] = ()
    keypoints: tuple[float, ...] = ()
    is_stem: bool = False
    truncated: bool = False
    difficult: bool = False
    attributes: str | None = None

    def in_pixels(self, name: str, width: int, height: int) -> Box:
        """Return the box in pixels of an image with a name and a size.

        Sides are rounded, so that whole pixels stay whole numbers.
        """
        shape = NO_SHAPE
        if self.outline or self.keypoints:
            shape = ObjectShape(
                outline_in_pixels(self.outline, width, height, DIGITS) if self.outline else None,
                keypoints_in_pixels(self.keypoints, width, height, DIGITS) if self.keypoints else None,
            )
        return Box(
            name,
            round((self.x - self.width / 2) * width, DIGITS),
            round((self.y - self.height / 2) * height, DIGITS),
            round(self.width * width, DIGITS),
            round(self.height * height, DIGITS),
            self.label,
            self.confidence,
            self.original_id,
            source=self.source,
            truncated=self.truncated,
            difficult=self.difficult,
            attributes=self.attributes,
            shape=shape,
            location=self.location,
        )
