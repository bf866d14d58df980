"""The protocol of detectors, and their detections."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Detections:
    """The objects of an image, the most confident first.

    Attributes:
        boxes: float32, shape (M, 4): x and y of the upper left corner, width, height; in pixels of the image, and
            within it.
        labels: int64, shape (M,): class numbers, positions in the detector's ``labels``.
        confidences: float32, shape (M,), in [0, 1]; NaN if the detector gives no confidence.
    """

    boxes: Floats
    labels: npt.NDArray[np.int64]
    confidences: Floats

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.boxes)


@runtime_checkable
class Detector(Protocol):
    """A model that detects objects of some classes in images.

    Attributes:
        name: the detector's name for users.
        labels: class names, by number.
    """

    name: str
    labels: tuple[str, ...]

    def detect(self, pixels: Pixels) -> Detections:
        """Return the objects in an image. Several threads may call it at the same time.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        ...
