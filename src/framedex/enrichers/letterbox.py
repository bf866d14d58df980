"""Letterboxing of images for detectors, and boxes converted back to pixels of the image."""

from dataclasses import dataclass

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.enrichers.detector import Floats

_GREY = 114
"""Grey level of the bars in the training of YOLO models (YOLOv5, ``letterbox``; YOLOX, ``preproc``)."""


@dataclass(frozen=True)
class Letterbox:
    """The position of an image in a model's input.

    Attributes:
        width: of the image, in pixels.
        height: of the image, in pixels.
        across: columns of the input that the image covers.
        down: rows of the input that the image covers.
        left: columns of the bar to its left.
        top: rows of the bar above it.
    """

    width: int
    height: int
    across: int
    down: int
    left: int
    top: int

    @classmethod
    def of(cls, image: tuple[int, int], size: tuple[int, int], *, centred: bool) -> "Letterbox":
        """Return the position of an image of maximum size, centred or in the upper left corner.

        Args:
            image: height and width of the image in pixels.
            size: height and width of the input in pixels.
            centred: whether there are bars on both sides.
        """
        height, width = image
        factor = min(size[0] / height, size[1] / width)
        fit = round if centred else int  # as in YOLOv5 and in YOLOX
        down, across = max(fit(height * factor), 1), max(fit(width * factor), 1)
        top, left = ((size[0] - down) // 2, (size[1] - across) // 2) if centred else (0, 0)
        return cls(width, height, across, down, left, top)

    def show(self, pixels: Pixels, size: tuple[int, int]) -> Pixels:
        """Return the input: uint8, shape (height, width, 3), with grey bars.

        Args:
            pixels: the image: uint8, shape (H, W, 3).
            size: height and width of the input in pixels.
        """
        # Models are trained with linear interpolation, which skips pixels if an image shrinks by more than half.
        halved = max(self.width / self.across, self.height / self.down) > 2
        method = cv2.INTER_AREA if halved else cv2.INTER_LINEAR
        box = np.full((*size, 3), _GREY, np.uint8)
        box[self.top : self.top + self.down, self.left : self.left + self.across] = cv2.resize(
            pixels, (self.across, self.down), interpolation=method
        )
        return box

    def back(self, corners: Floats) -> Floats:
        """Return boxes in pixels of the image, clipped to it: float32, shape (M, 4): left, top, right, bottom.

        Args:
            corners: the same boxes in pixels of the input.
        """
        shift = np.array([self.left, self.top] * 2, np.float32)
        factor = np.array([self.width / self.across, self.height / self.down] * 2, np.float32)
        limit = np.array([self.width, self.height] * 2, np.float32)
        return np.asarray(np.clip((corners - shift) * factor, 0, limit))
