"""The protocol of captioners."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.records import Weights

MAX_TOKENS = 60
"""Default maximum length of a caption in tokens."""


class Captioner(Protocol):
    """A model that describes an image, or a part of it, in words.

    The work has two steps, ``captions(stack of prepare(pixels))``. The first step runs on the decoding threads, the
    second on whole batches.

    Attributes:
        name: the model's name for users.
        weights: the files and settings that its captions depend on.
        batch: the preferred number of images at a time.
        min_side_px: pixels that the shorter side of an image should have; more pixels do not improve captions.
    """

    name: str
    weights: Weights
    batch: int

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the model's input for one image, always of the same shape and dtype.

        Several threads may call it at the same time.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        ...

    def captions(self, prepared: npt.NDArray[Any]) -> list[str]:
        """Return one caption for each image, without surrounding spaces; empty if the model returns no words.

        Args:
            prepared: N results of :meth:`prepare`, stacked along the first axis.
        """
        ...
