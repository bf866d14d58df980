"""Encoders of images and of texts, as protocols."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from framedex.arrays import Vectors

_MEASURED_SIDE_PX = 128  # pixels of the shorter side that the quality measures need


@runtime_checkable
class Encoder(Protocol):
    """Turns pictures into vectors of unit length whose dot product is their similarity.

    The work is in two steps, so that the first can run on the threads that decode and the second on whole
    batches: ``encode_images(stack of prepare(pixels))``.

    Attributes:
        name: by which the encoder is found again; kept in the dataset's embedding config.
        dimension: length D of the vectors.
        min_side_px: pixels that the shorter side of a picture should have at least; more brings nothing.
        thresholds: five ascending cosine distances, in [0, 2], at which clusters of levels 0 to 4 are cut.

    An encoder may also have ``batch``: how many pictures it wants at a time, for devices that need many to be busy.
    """

    name: str
    dimension: int
    min_side_px: int
    thresholds: tuple[float, float, float, float, float]

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return what the encoder needs of one picture, always of the same shape and dtype.

        Called on several threads at once.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        ...

    def encode_images(self, batch: npt.NDArray[Any]) -> Vectors:
        """Return a vector a picture: float32, shape (N, D), unit length.

        Args:
            batch: N results of :meth:`prepare`, stacked along the first axis.
        """
        ...


class HasInputSize(Protocol):
    """A model of images that states the size it needs.

    Attributes:
        min_side_px: pixels that the shorter side of a picture should have at least; more brings nothing.
    """

    @property
    def min_side_px(self) -> int: ...  # noqa: D102


def decode_side_px(encoder: HasInputSize) -> int:
    """Return the shorter side, in pixels, that images are reduced to before they are measured and encoded.

    The image of a query is reduced likewise, so that it is encoded as it would be as a part of the dataset.
    """
    return max(encoder.min_side_px, _MEASURED_SIDE_PX)


@runtime_checkable
class TextEncoder(Protocol):
    """Turns texts into vectors of unit length.

    An :class:`Encoder` that is also this is a multimodal one: the dot product of a text's vector and a picture's is how
    well they fit.
    """

    name: str
    dimension: int

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return a vector a text: float32, shape (N, D), unit length."""
        ...
