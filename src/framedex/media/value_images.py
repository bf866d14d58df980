"""Images of values as the results of decoding: TIFF that Pillow does not read, DICOM, others of more than 8 bits."""

import struct
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media import dicom, tiff
from framedex.media.budget import Budget, reserve_pixels
from framedex.media.decoded_image import DecodedImage, check_size, reduced, subsample, upright
from framedex.media.display_range import Range, scaled, shown_range
from framedex.media.pages import count_tiff_pages

_MOST_BYTES, _WORKING_BYTES = 24, 4  # of a pixel: of three 64-bit floats; of those that decoding 8 bits needs
_DEEP_PNG = {"RGB;16B": False, "RGBA;16B": False, "LA;16B": True}  # by Pillow's order of bands: whether it is grey
_SIZE_MARKER, _PRECISION = b"\xff\x4f\xff\x51", struct.Struct(">38xHB")  # of JPEG 2000 (ISO/IEC 15444-1, A.5.1)
DEEP_WEIGHT = 3  # memory of a pixel of more than 8 bits, in those of 8


@dataclass(frozen=True)
class Deep:
    """The kind of an image of more than 8 bits of which Pillow keeps 8, or that it scales.

    Attributes:
        white: the largest possible value.
        is_grey: whether it has no colours.
    """

    white: int
    is_grey: bool


def deep_kind(image: Any, data: bytes) -> Deep | None:
    """Return the kind of a Pillow image that is not loaded, if it is a deep one; None for others."""
    if not image.tile:
        return None
    codec, _, _, arguments = image.tile[0]
    if image.format == "PNG":
        return Deep(65535, _DEEP_PNG[arguments]) if arguments in _DEEP_PNG else None
    if codec in ("ppm", "ppm_plain"):
        order, white = arguments
        return Deep(white, order == "L") if white > 255 else None
    if image.format == "JPEG2000" and (at := data.find(_SIZE_MARKER)) >= 0:
        bands, precision = _PRECISION.unpack_from(data, at + len(_SIZE_MARKER) - 2)
        return Deep(2 ** (precision + 1) - 1, bands == 1) if 8 <= precision < 16 and bands in (1, 3, 4) else None
    return None


def decode_deep(
    data: bytes, kind: Deep, orientation: int, file_format: str, detail: int | None, display_range: Range | None
) -> DecodedImage | None:
    """Return a deep image by its values, as OpenCV reads them; None if it does not, and Pillow has to do."""
    values: npt.NDArray[Any] | None = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.dtype != np.uint16:
        return None
    alpha = values[..., 3] if values.ndim == 3 and values.shape[2] == 4 else None
    if values.ndim == 3:
        values = values[..., 0] if kind.is_grey else values[..., 2::-1]
    bits = kind.white.bit_length()
    shown = display_range or shown_range(values, bits=bits)
    levels = scaled(values, shown or (0.0, float(kind.white)), bits=bits)
    if alpha is not None:
        levels = _on_white(levels, scaled(alpha, (0.0, float(kind.white)), bits=bits))
    del values, alpha  # their memory, which is reserved
    return _of_levels(upright(levels, orientation), detail, file_format, shown, orientation)


def decode_tiff(
    data: bytes, max_pixels: int, detail: int | None, budget: Budget | None, display_range: Range | None
) -> DecodedImage:
    """Return the image in a TIFF file of values that Pillow does not read."""
    directory = tiff.read_directory(data)
    check_values(directory, max_pixels)
    weight = max(1, directory.pixel_bytes // _WORKING_BYTES)
    with reserve_pixels(budget, directory.width * directory.height * weight):
        read = tiff.decode_values(data, directory)
        shown = shown_range(read.values, bits=read.bits, missing=read.missing)
        shown = display_range if display_range is not None and read.bits > 8 else shown
        levels = scaled(read.values, shown, bits=read.bits, missing=read.missing, is_inverted=read.is_inverted)
        if read.alpha is not None:
            levels = _on_white(levels, scaled(read.alpha, None, bits=read.bits))
        orientation = read.orientation
        del read  # its memory, which is reserved
        image = _of_levels(upright(levels, orientation), detail, "tiff", shown, orientation)
        return replace(image, pages=count_tiff_pages(data))


def decode_dicom(
    data: bytes, max_pixels: int, detail: int | None, budget: Budget | None, display_range: Range | None
) -> DecodedImage:
    """Return the first frame of a DICOM file."""
    description = dicom.read_description(data)
    check_size(description.width, description.height, max_pixels)
    with reserve_pixels(budget, description.width * description.height * 3):  # floats of 64 bits
        read = dicom.decode_frame(description)
        shown = read.window or shown_range(read.values, bits=read.bits, missing=read.missing)
        shown = display_range if display_range is not None and read.bits > 8 else shown
        shown = shown if read.values.ndim == 2 else None
        levels = scaled(read.values, shown, bits=read.bits, missing=read.missing, is_inverted=read.is_inverted)
        return replace(_of_levels(levels, detail, "dicom", shown), pages=description.frames)


def _of_levels(
    levels: Pixels, detail: int | None, file_format: str, shown: Range | None, orientation: int = 1
) -> DecodedImage:
    """Return an image of grey levels, shape (H, W), or of colours, in the form of the results of :func:`decode`."""
    small, sample = _in_colours(reduced(levels, detail)), _in_colours(subsample(levels))
    larger = None if detail is None else partial(_in_colours, reduced(levels, 2 * detail))
    height, width = levels.shape[:2]
    bands = 1 if levels.ndim == 2 else 3
    return DecodedImage(
        small, sample, bands, width, height, file_format, larger=larger, shown=shown, orientation=orientation
    )


def _in_colours(levels: Pixels) -> Pixels:
    """Return grey levels or colours as colours."""
    return levels if levels.ndim == 3 else np.repeat(levels[..., None], 3, axis=2)


def check_values(directory: tiff.Directory, max_pixels: int) -> None:
    """Check the size of a TIFF file of values: that of an image, and that of its values in memory.

    Raises:
        CannotDecode: it is too large.
    """
    check_size(directory.width, directory.height, max_pixels)
    if directory.width * directory.height * directory.pixel_bytes > max_pixels * _MOST_BYTES:
        size = f"{directory.width}×{directory.height} with {directory.pixel_bytes:,} bytes a pixel"
        raise CannotDecode(
            f"{size} is more than {max_pixels * _MOST_BYTES:,} bytes (FRAMEDEX_MAX_PIXELS raises the limit)",
            "over_limit",
        )


def _on_white(pixels: Pixels, alpha: Pixels) -> Pixels:
    """Return grey levels or colours on white where they are transparent."""
    share = alpha.astype(np.float32) / 255
    share = share if pixels.ndim == 2 else share[..., None]
    return np.asarray(np.rint(255 - share * (255 - pixels.astype(np.float32))), dtype=np.uint8)
