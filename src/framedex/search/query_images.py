"""Query images: reading and cropping them, and computing their vectors."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels, Vectors
from framedex.core.checks import is_number
from framedex.encoders import Encoder, check_weights, choose_encoder, decode_side_px
from framedex.errors import CannotDecode, InvalidInput, NotIndexed
from framedex.media.budget import Budget
from framedex.media.decode import decode
from framedex.media.decoded_image import reduced
from framedex.media.files import Reader
from framedex.records import EmbeddingConfig
from framedex.settings import Settings, user_path

Box = Mapping[str, float] | Sequence[float] | npt.NDArray[Any]
"""A bounding box in pixels from the upper left corner: ``(x, y, width, height)``, as in previews and the column
``bbox``, or a mapping with these keys."""

_KEYS = ("x", "y", "width", "height")
PRECOMPUTED = "precomputed"


def encoder_of(config: EmbeddingConfig) -> Encoder:
    """Return the encoder that a dataset was indexed with.

    Raises:
        InvalidInput: the dataset has no encoder, or the encoder is unknown here or has other weights.
    """
    if config.encoder == PRECOMPUTED:
        raise InvalidInput(
            "this dataset brought its own embeddings, so no other image or text can be compared with them: "
            f"search by a media id, or by a vector of {config.dimension} floats"
        )
    encoder, _ = choose_encoder(config.encoder)
    if encoder.dimension != config.dimension:
        raise InvalidInput(
            f"encoder {config.encoder!r} makes vectors of length {encoder.dimension}, "
            f"but this dataset was indexed with {config.dimension}"
        )
    check_weights(encoder, config)
    return encoder


def encode_image(pixels: Pixels, encoder: Encoder) -> Vectors:
    """Return the embedding of an image, computed as for a dataset: float32, shape (D,), unit length."""
    prepared = encoder.prepare(reduced(pixels, decode_side_px(encoder)))
    vectors = np.asarray(encoder.encode_images(np.stack([prepared])), np.float32)
    if vectors.shape != (1, encoder.dimension):
        raise InvalidInput(f"encoder {encoder.name!r} returned shape {vectors.shape} for one image")
    return unit(vectors[0])


def unit(vector: npt.NDArray[Any]) -> Vectors:
    """Return a vector scaled to length 1.

    Raises:
        InvalidInput: the vector is zero or not finite.
    """
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length) or length == 0:
        raise InvalidInput(f"a vector to search by has a finite length above 0, not {length}")
    return np.asarray(vector / length, np.float32)


def as_vector(query: Any, config: EmbeddingConfig | None) -> Vectors | None:
    """Return a vector query with unit length; None if the query is not a vector.

    Raises:
        InvalidInput: its length differs from that of the dataset's vectors.
        NotIndexed: the dataset has no vectors.
    """
    if not isinstance(query, np.ndarray) or query.ndim != 1:
        return None
    if config is None:
        raise NotIndexed("Dataset has no embedding config")
    if len(query) != config.dimension or query.dtype.kind not in "fiu":
        raise InvalidInput(
            f"a vector to search by has {config.dimension} numbers here, not {len(query)} of type {query.dtype}"
        )
    return unit(query)


@dataclass(frozen=True)
class QueryPixels:
    """The pixels of a query image.

    Attributes:
        pixels: uint8, shape (H, W, 3), RGB, upright.
        size: width and height at full size.
        content: the hash of the file, or of the pixels of what is no whole file.
        is_damaged: whether a part of the file could not be decoded.
    """

    pixels: Pixels = field(repr=False, compare=False)
    size: tuple[int, int]
    content: bytes
    is_damaged: bool = False

    @classmethod
    def of(cls, pixels: Pixels) -> "QueryPixels":
        """Return the query image with some pixels."""
        return cls(pixels, (pixels.shape[1], pixels.shape[0]), content_hash(pixels.tobytes()))

    @property
    def is_whole(self) -> bool:
        """True if the image was decoded at full size."""
        return self.pixels.shape[1::-1] == self.size

    def part(self, box: Box) -> "QueryPixels":
        """Return a part of an image of full size; see :func:`crop`."""
        return QueryPixels.of(crop(self.pixels, box))

    def reduced_to(self, side: int) -> "QueryPixels":
        """Return the image with at most *side* pixels on the longer side."""
        scale = side / max(self.pixels.shape[:2])
        if scale >= 1:
            return self
        width, height = (max(1, round(each * scale)) for each in self.pixels.shape[1::-1])
        pixels = np.asarray(cv2.resize(self.pixels, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
        return replace(self, pixels=pixels)


@dataclass(frozen=True)
class QueryImage:
    """An image that is searched by.

    Attributes:
        vector: float32, shape (D,), unit length: its embedding.
        shown: the id of an item of the dataset, or the pixels of another image, whose copies come first; None for what
            is known by its embedding alone.
    """

    vector: Vectors = field(repr=False, compare=False)
    shown: str | QueryPixels | None = None


def content_hash(data: bytes) -> bytes:
    """Return the hash of the content of a file, as it is stored for media: 16 bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()


def read_query_pixels(
    query: Any, settings: Settings, *, box: Box | None = None, detail: int | None = None, budget: Budget | None = None
) -> QueryPixels:
    """Return the pixels of a query image.

    Args:
        query: path, bytes of a file, uint8 array of shape (H, W), (H, W, 3) or (H, W, 4), or Pillow image.
        settings: limits on the image's size.
        box: the part to use.
        detail: minimum pixels of the shorter side; None for full resolution.
        budget: a limit to wait for before decoding.

    Raises:
        InvalidInput: the query is not an image, or the box lies outside of it.
        CannotDecode: the file cannot be read or is not an image.
    """
    whole = None if box is not None else detail
    if isinstance(query, bytes | bytearray | memoryview):
        found = _of_bytes(bytes(query), settings, whole, budget)
    elif isinstance(query, str | os.PathLike):
        found = _of_file(str(user_path(query)), settings, whole, budget)
    else:
        found = QueryPixels.of(_of_array(_as_array(query), settings))
    return found if box is None else found.part(box)


def _of_bytes(data: bytes, settings: Settings, detail: int | None, budget: Budget | None) -> QueryPixels:
    image = decode(data, max_pixels=settings.max_pixels, detail=detail, budget=budget)
    return QueryPixels(image.pixels, (image.width, image.height), content_hash(data), image.damage is not None)


def _of_file(path: str, settings: Settings, detail: int | None, budget: Budget | None) -> QueryPixels:
    try:
        _, data = Reader(settings).read(path)
        return _of_bytes(data, settings, detail, budget)
    except CannotDecode as error:
        raise CannotDecode(f"{path!r}: {error}", error.fault) from None


def _as_array(query: Any) -> npt.NDArray[Any]:
    if isinstance(query, np.ndarray):
        return query
    if type(query).__module__.partition(".")[0] == "PIL" and hasattr(query, "convert"):
        from PIL import ImageOps

        return np.asarray((ImageOps.exif_transpose(query) or query).convert("RGB"))
    raise InvalidInput(
        "an image to search by is a media id, a path, bytes, an array of shape (H, W, 3) or a Pillow image, "
        f"not {type(query).__name__}"
    )


def _of_array(array: npt.NDArray[Any], settings: Settings) -> Pixels:
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise InvalidInput(
            f"an image as an array is uint8 of shape (H, W, 3), not {array.dtype} of shape {array.shape}"
        )
    height, width = array.shape[:2]
    if not height * width or height * width > settings.max_pixels:
        raise InvalidInput(f"an image has 1 to {settings.max_pixels:,} pixels, not {width}×{height}")
    if array.ndim == 2 or array.shape[2] == 1:
        return np.repeat(array.reshape(height, width, 1), 3, axis=2)
    if array.shape[2] == 3:
        return np.ascontiguousarray(array)
    alpha = array[:, :, 3:].astype(np.float32) / 255
    return np.rint(array[:, :, :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)


def crop(pixels: Pixels, box: Box) -> Pixels:
    """Return a part of an image.

    Raises:
        InvalidInput: the box cannot be parsed, or contains no pixel of the image.
    """
    height, width = pixels.shape[:2]
    x, y, across, down = _numbers_of(box)
    left, top = max(round(x), 0), max(round(y), 0)
    right, bottom = min(round(x + across), width), min(round(y + down), height)
    if right <= left or bottom <= top:
        raise InvalidInput(f"bounding box {box!r} holds no pixel of an image of {width}×{height}")
    return np.ascontiguousarray(pixels[top:bottom, left:right])


def _numbers_of(box: Any) -> list[float]:
    numbers: list[Any] = []
    if isinstance(box, Mapping):
        numbers = [box.get(key) for key in _KEYS]
    elif isinstance(box, Sequence | np.ndarray):
        numbers = list(box)
    if len(numbers) != len(_KEYS) or not all(_is_number(each) for each in numbers):
        raise InvalidInput(f"a bounding box has four finite numbers in pixels, x, y, width and height; got {box!r}")
    return [float(each) for each in numbers]


def _is_number(value: Any) -> bool:
    return (is_number(value) or isinstance(value, np.number)) and bool(np.isfinite(value))


def is_file(query: Any) -> bool:
    """Return whether a query is the path of an existing file."""
    return isinstance(query, str) and "\0" not in query and os.path.isfile(user_path(query))  # noqa: PTH113 - never raises
