"""An encoder: the mean colours of the quarters of an image."""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.encoders import Scheme


class MeanColour:
    """Twelve values: red, green and blue of each quarter."""

    dimension = 12
    min_side_px = 2
    thresholds = (0.01, 0.02, 0.05, 0.1, 0.2)

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return float32, shape (12,), 1 to 256."""
        means = cv2.resize(pixels, (2, 2), interpolation=cv2.INTER_AREA)
        return means.ravel().astype(np.float32) + 1

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return float32, shape (N, 12), unit length."""
        return np.asarray(batch / np.linalg.norm(batch, axis=1, keepdims=True), np.float32)


MEAN_COLOUR = Scheme("mean_colour", lambda name, _settings: MeanColour(name), reads_texts=False)
