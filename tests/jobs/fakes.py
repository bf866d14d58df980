"""A small encoder that counts what is in flight, and a progress that stops the work."""

import os
import sys
import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from framedex.errors import Aborted


class Colours:
    """An encoder of the mean colour: three values of unit length.

    Attributes:
        prepared: how many images were prepared.
        encoded: how many were encoded.
        on_encode: called before each batch.
    """

    name = "colours"
    dimension = 3
    min_side_px = 16
    thresholds = (0.01, 0.02, 0.05, 0.1, 0.3)

    def __init__(self) -> None:
        self.prepared = self.encoded = 0
        self.on_encode: Callable[[int], None] = lambda _prepared: None
        self.on_prepare: Callable[[int], None] = lambda _prepared: None
        self._lock = threading.Lock()

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Return the mean colour."""
        with self._lock:
            self.prepared += 1
            self.on_prepare(self.prepared)
        return np.asarray(pixels.reshape(-1, 3).mean(axis=0) + 1, dtype=np.float32)

    def encode_images(self, batch: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return mean colours of unit length."""
        self.on_encode(self.prepared)
        self.encoded += len(batch)
        return np.asarray(batch / np.linalg.norm(batch, axis=1, keepdims=True), dtype=np.float32)


class StopAt:
    """A progress that aborts the work once a share is done."""

    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self, share: float) -> None:
        if share >= self.share:
            raise Aborted("aborted on request")


def ignore(_share: float) -> None:
    """Take note of nothing."""


def mean_colour(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the mean colour of an image."""
    return np.asarray(pixels.reshape(-1, 3).mean(axis=0) + 1, dtype=np.float32)


def end_on_green(pixels: npt.NDArray[np.uint8], *, by: int) -> npt.NDArray[np.float32]:
    """Return the mean colour of an image; a green image ends the process, if it is not the one of the tests."""
    if pixels.reshape(-1, 3).mean(axis=0).argmax() == 1 and "pytest" not in sys.modules:
        os.kill(os.getpid(), by)
    return mean_colour(pixels)


class PortableColours(Colours):
    """Colours, which other processes prepare.

    Args:
        preparer: the function that does it.
    """

    def __init__(self, preparer: Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float32]] = mean_colour) -> None:
        super().__init__()
        self.preparer = preparer
