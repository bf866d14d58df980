"""Decoded images: their pixels at a reduced size, with what measuring needs beside them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.core.borders import BorderedImage
from framedex.core.forks import cached_property
from framedex.errors import CannotDecode
from framedex.media import jpeg
from framedex.media.display_range import Range

_SAMPLE = 100


@dataclass(frozen=True)
class DecodedImage:
    """A decoded image.

    Attributes:
        pixels: uint8, shape (H, W, 3), RGB, upright, on white where transparent. Smaller than the image if a reduced
            size was requested.
        sample: at most 100 × 100 of the decoded pixels, evenly spread over the image, not averaged.
        bands: the number of colour channels in the file: 1 for greyscale, else 3.
        width: the displayed width of the whole image in pixels.
        height: its displayed height.
        format: the file format in lower case, for example ``jpeg``.
        damage: the decoder's description of damaged data that it decoded nevertheless, with gaps; None if intact.
        traits: what the header of a JPEG, or the metadata of another format, say of its making.
        larger: returns the pixels at twice the requested detail; None if *pixels* are those of the whole image.
        shown: the values that are black and white; None for those that are shown as they are, as 8 bits always are.
        orientation: the Exif orientation that was applied, 1 to 8.
        pages: the number of pages or frames in the file, of which this is the first.
    """

    pixels: Pixels
    sample: Pixels
    bands: int
    width: int
    height: int
    format: str
    damage: str | None = None
    traits: jpeg.Traits = field(default_factory=jpeg.Traits)
    larger: Callable[[], Pixels] | None = field(default=None, compare=False, repr=False)
    shown: Range | None = None
    orientation: int = 1
    pages: int = 1

    @cached_property
    def bordered(self) -> BorderedImage:
        """The pixels, with their part within uniform borders."""
        return BorderedImage(self.pixels)


def decoded(pixels: Pixels, *, detail: int | None, file_format: str) -> DecodedImage:
    """Return decoded pixels, such as a video frame, in the form of the results of :func:`decode`."""
    height, width = pixels.shape[:2]
    larger = None if detail is None else partial(reduced, pixels, 2 * detail)
    return DecodedImage(reduced(pixels, detail), subsample(pixels), 3, width, height, file_format, larger=larger)


def subsample(pixels: Pixels) -> Pixels:
    """Return every n-th pixel of every m-th row, at most 100 × 100."""
    height, width = pixels.shape[:2]
    return np.asarray(
        cv2.resize(pixels, subsample_size(width, height), interpolation=cv2.INTER_NEAREST), dtype=np.uint8
    )


def subsample_size(width: int, height: int) -> tuple[int, int]:
    """Return the size, width and height, of what :func:`subsample` returns."""
    return width // -(-width // _SAMPLE), height // -(-height // _SAMPLE)


def reduced(pixels: Pixels, detail: int | None) -> Pixels:
    """Return pixels averaged by the largest whole factor that keeps *detail* pixels on the shorter side; None: all."""
    height, width = pixels.shape[:2]
    factor = 1 if detail is None else max(1, min(height, width) // detail)
    if factor == 1:
        return pixels
    # If the sides are multiples of the factor, OpenCV averages blocks of whole pixels, which is fast.
    size = (-(-width // factor), -(-height // factor))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """Return pixels turned as their Exif orientation says (Exif 2.3, tag 0x0112)."""
    turned: Any = cv2.transpose(pixels) if orientation >= 5 else pixels
    is_mirrored = orientation in (2, 3, 6, 7)
    is_flipped = orientation in (3, 4, 7, 8)
    if is_mirrored or is_flipped:
        turned = cv2.flip(turned, -1 if is_mirrored and is_flipped else int(is_mirrored))
    return np.asarray(turned, dtype=np.uint8)


def check_size(width: int, height: int, max_pixels: int) -> None:
    """Check the size of an image before decoding.

    Raises:
        CannotDecode: the image has no pixels, or more than *max_pixels*.
    """
    if width * height > max_pixels:
        raise CannotDecode(
            f"{width}×{height} is more than {max_pixels:,} pixels: possibly a decompression bomb "
            "(FRAMEDEX_MAX_PIXELS raises the limit)",
            "over_limit",
        )
    if width < 1 or height < 1:
        raise CannotDecode(f"the size {width}×{height} has no pixels")
