"""Bounding boxes in fractions of an image's sides, which become pixels when the size of the image is known."""

from dataclasses import dataclass

from framedex.annotations.boxes import Box

_WHOLE = (0.5, 0.5, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RelativeBox:
    """A bounding box in fractions of the sides of its image, as YOLO files give it.

    Attributes:
        stem: path of the image within the folder, without its suffix.
        x: of the centre, as a fraction of the image's width.
        y: of the centre, as a fraction of the image's height.
        width: as a fraction of the image's.
        height: as a fraction of the image's.
        label: name of the class.
        confidence: 0 to 1; None where the file has none.
        place: the file and the line, for messages.
        source: the name of the file's format.
    """

    stem: str
    x: float
    y: float
    width: float
    height: float
    label: str
    confidence: float | None = None
    place: str = ""
    source: str = "yolo"

    @property
    def is_whole(self) -> bool:
        """Whether the box is exactly the image, and so a label of the image."""
        return (self.x, self.y, self.width, self.height) == _WHOLE

    def in_pixels(self, name: str, width: int, height: int) -> Box:
        """Return the box in pixels of an image, given its name and size."""
        return Box(
            name,
            (self.x - self.width / 2) * width,
            (self.y - self.height / 2) * height,
            self.width * width,
            self.height * height,
            self.label,
            self.confidence,
            source=self.source,
            place=self.place,
        )


def relative(box: Box, width: int, height: int) -> tuple[float, float, float, float]:
    """Return centre x, centre y, width and height of a box as fractions of an image's sides."""
    across, down = box.width / width, box.height / height
    return box.x / width + across / 2, box.y / height + down / 2, across, down
