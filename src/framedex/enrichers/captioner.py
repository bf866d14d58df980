"""Captioners, as a protocol."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.records import Weights

MAX_TOKENS = 60
"""After which a caption ends where nothing else is said."""


class Captioner(Protocol):
    """A model that says in words what a picture, or a part of one, shows.

    The work is in two steps, so that the first can run on the threads that decode and the second on whole batches:
    ``captions(stack of prepare(pixels))``.

    Attributes:
        name: by which people know it.
        weights: what its captions depend on.
        batch: how many pictures it wants at a time.
        min_side_px: pixels that the shorter side of a picture should have at least; more brings nothing.
    """

    name: str
    weights: Weights
    batch: int

    @property
    def min_side_px(self) -> int: ...  # noqa: D102

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return what the model needs of one picture, always of the same shape and dtype.

        Called on several threads at once.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        ...

    def captions(self, prepared: npt.NDArray[Any]) -> list[str]:
        """Return a caption a picture, without spaces around it; empty where the model says nothing.

        Args:
            prepared: N results of :meth:`prepare`, stacked along the first axis.
        """
        ...
