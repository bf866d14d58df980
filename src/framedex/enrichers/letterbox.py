"""Pictures in the size that a detector takes, in their own proportions, and boxes back in pixels of the picture."""

from dataclasses import dataclass

import cv2
import numpy as np

from framedex.arrays import Pixels
from framedex.enrichers.detector import Floats

_GREY = 114
"""Of the bars: what YOLO models are trained with (YOLOv5, ``letterbox``; YOLOX, ``preproc``)."""


@dataclass(frozen=True)
class Letterbox:
    """The place of an image in a model's input.

    Attributes:
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        across: columns of the input that it takes.
        down: rows of the input that it takes.
        left: columns of the bar before it.
        top: rows of the bar above it.
    """

    width: int
    height: int
    across: int
    down: int
    left: int
    top: int

    @classmethod
    def of(cls, picture: tuple[int, int], size: tuple[int, int], *, centred: bool) -> "Letterbox":
        """Return where a picture goes: as large as it can be, centred, or in the upper left corner.

        Args:
            picture: its height and width in pixels.
            size: height and width of the input in pixels.
            centred: whether bars are on both sides.
        """
        height, width = picture
        factor = min(size[0] / height, size[1] / width)
        fit = round if centred else int  # as YOLOv5 and YOLOX do, each
        down, across = max(fit(height * factor), 1), max(fit(width * factor), 1)
        top, left = ((size[0] - down) // 2, (size[1] - across) // 2) if centred else (0, 0)
        return cls(width, height, across, down, left, top)

    def show(self, pixels: Pixels, size: tuple[int, int]) -> Pixels:
        """Return the input: uint8, shape (height, width, 3), with grey bars.

        Args:
            pixels: the picture: uint8, shape (H, W, 3).
            size: height and width of the input in pixels.
        """
        # Models are trained with linear interpolation, which skips pixels where a picture is more than halved.
        halved = max(self.width / self.across, self.height / self.down) > 2
        method = cv2.INTER_AREA if halved else cv2.INTER_LINEAR
        box = np.full((*size, 3), _GREY, np.uint8)
        box[self.top : self.top + self.down, self.left : self.left + self.across] = cv2.resize(
            pixels, (self.across, self.down), interpolation=method
        )
        return box

    def back(self, corners: Floats) -> Floats:
        """Return boxes in pixels of the picture, cut at its edges: float32, shape (M, 4): left, top, right, bottom.

        Args:
            corners: the same in pixels of the input.
        """
        shift = np.array([self.left, self.top] * 2, np.float32)
        factor = np.array([self.width / self.across, self.height / self.down] * 2, np.float32)
        limit = np.array([self.width, self.height] * 2, np.float32)
        return np.asarray(np.clip((corners - shift) * factor, 0, limit))
