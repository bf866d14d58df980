"""Protocols of image encoders and text encoders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors

MEASURED_SIDE_PX = 128
"""Pixels of the shorter side that the quality measures need."""


@runtime_checkable
class Encoder(Protocol):
    """A model that turns images into unit vectors whose dot product is their similarity.

    The work has two steps, ``encode_images(stack of prepare(pixels))``. The first step runs on the decoding threads,
    the second on whole batches.

    Attributes:
        name: the encoder's name, from which it can be loaded again; stored in the dataset's embedding config.
        dimension: length D of the vectors.
        min_side_px: pixels that the shorter side of an image should have; more pixels do not change the vector much.
        thresholds: five ascending cosine distances, in [0, 2], at which clusters of levels 0 to 4 are cut.

    An encoder may also have ``batch``: the preferred number of images at a time, for devices that need large batches;
    and ``preparer``: a function that returns what :meth:`prepare` does and can be pickled without the model, so that
    images are prepared in other processes.

    Examples:
        >>> encoder, reason = framedex.encoders.choose_encoder("gist")
        >>> isinstance(encoder, framedex.Encoder), encoder.name, encoder.dimension
        (True, 'gist', 610)
    """

    name: str
    dimension: int
    min_side_px: int
    thresholds: tuple[float, float, float, float, float]

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the encoder's input for one image, always of the same shape and dtype.

        Several threads may call it at the same time.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.

        Examples:
            >>> encoder.prepare(ds.read(ds.media_id("cat-1.jpg"))).shape
            (4208,)
        """
        ...

    def encode_images(self, batch: npt.NDArray[Any]) -> Vectors:
        """Return one vector for each image: float32, shape (N, D), unit length.

        Args:
            batch: N results of :meth:`prepare`, stacked along the first axis.

        Examples:
            >>> pixels = ds.read(ds.media_id("cat-1.jpg"))
            >>> encoder.encode_images(encoder.prepare(pixels)[None]).shape
            (1, 610)
        """
        ...


class HasInputSize(Protocol):
    """A model of images that states its input size.

    Attributes:
        min_side_px: pixels that the shorter side of an image should have; more pixels do not change the result much.
    """

    @property
    def min_side_px(self) -> int: ...  # noqa: D102


def decode_side_px(encoder: HasInputSize) -> int:
    """Return the shorter side, in pixels, to which images are reduced before they are measured and encoded.

    The image of a query is reduced in the same way, so it gets the same vector as it would have in the dataset.

    Examples:
        >>> framedex.encoders.decode_side_px(encoder)
        128
    """
    return max(encoder.min_side_px, MEASURED_SIDE_PX)


@dataclass(frozen=True)
class Preparation:
    """The first step of an encoder.

    Attributes:
        name: of the encoder.
        side_px: see :func:`decode_side_px`.
        prepare: see :meth:`Encoder.prepare`.
        is_portable: whether it can be pickled, without the model.

    Examples:
        >>> step = framedex.encoders.Preparation.of(encoder)
        >>> step.name, step.side_px, step.is_portable
        ('gist', 128, True)
    """

    name: str
    side_px: int
    prepare: Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]
    is_portable: bool

    @classmethod
    def of(cls, encoder: Encoder) -> "Preparation":
        """Return the first step of an encoder."""
        preparer = getattr(encoder, "preparer", None)
        return cls(encoder.name, decode_side_px(encoder), preparer or encoder.prepare, preparer is not None)


@runtime_checkable
class TextEncoder(Protocol):
    """A model that turns texts into unit vectors.

    An :class:`Encoder` that also has this method is multimodal: the dot product of a text vector and an image vector is
    their similarity.

    Examples:
        >>> isinstance(encoder, framedex.encoders.TextEncoder)
        False
    """

    name: str
    dimension: int

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text: float32, shape (N, D), unit length."""
        ...
