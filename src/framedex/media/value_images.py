"""Images of values: TIFF files that Pillow does not read, and DICOM, as the results of decoding."""

from functools import partial

import numpy as np

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media import dicom, tiff
from framedex.media.budget import Budget, reserve_pixels
from framedex.media.decoded_image import DecodedImage, check_size, reduced, subsample, upright
from framedex.media.display_range import Range, scaled, shown_range

_MOST_BYTES, _WORKING_BYTES = 24, 4  # of a pixel: of three 64-bit floats; of those that decoding 8 bits needs


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
        return _of_levels(upright(levels, orientation), detail, "tiff", shown, orientation)


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
        return _of_levels(levels, detail, "dicom", shown)


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
