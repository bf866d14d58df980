"""Detectors, as a protocol, and their detections."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from framedex.arrays import Pixels

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Detections:
    """The objects that were found in a picture, the surest first.

    Attributes:
        boxes: float32, shape (M, 4): x and y of the upper left corner, width, height; in pixels of the picture, and
            within it.
        labels: int64, shape (M,): places of the classes in the detector's ``labels``.
        confidences: float32, shape (M,), in [0, 1]; NaN where the detector only says yes or no.
    """

    boxes: Floats
    labels: npt.NDArray[np.int64]
    confidences: Floats

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self.boxes)


@runtime_checkable
class Detector(Protocol):
    """Finds objects of some classes in pictures.

    Attributes:
        name: by which people tell it from others.
        labels: names of the classes, by number.
    """

    name: str
    labels: tuple[str, ...]

    def detect(self, pixels: Pixels) -> Detections:
        """Return the objects in a picture. May be called on several threads at once.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        ...
