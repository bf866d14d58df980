"""Decoding of images: bytes to upright RGB pixels, with limits."""

import io
import logging
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg

from framedex.core.arrays import Pixels
from framedex.core.counts import counted
from framedex.errors import CannotDecode
from framedex.media import dicom, jpeg, jpeg_ends, png, tiff
from framedex.media.budget import Budget, reserve_pixels
from framedex.media.decoded_image import DecodedImage, check_size, reduced, subsample, subsample_size, upright
from framedex.media.display_range import Range, scaled, shown_range
from framedex.media.file_ends import check_end, check_strips
from framedex.media.file_kinds import UNIDENTIFIED, file_kind
from framedex.media.pages import count_pages
from framedex.media.value_images import (
    DEEP_WEIGHT,
    check_values,
    decode_deep,
    decode_dicom,
    decode_tiff,
    deep_kind,
)

_GIF_PIXELS_PER_BYTE = 2731
_BITS = {"RGB": 24, "L": 8}  # of a pixel, by the order of bands; all others have at least one
_MODES_OF_VALUES = frozenset(("I", "I;16", "I;16L", "I;16B", "F"))
_GREY_MODES = frozenset(("1", "L", "LA", "La", *_MODES_OF_VALUES))
_FORMATS = ("JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP", "JPEG2000", "HEIF", "AVIF", "PPM")
"""The formats that Pillow may read. Its other readers are rarely used, and some start other programs."""
_DECODED_BY_LIBRARY = frozenset(("AVIF", "HEIF", "WEBP"))
_LOSSY = frozenset(("AVIF", "HEIF", "JPEG2000", "WEBP"))
_LARGE, _BAND = 16_000_000, 2_000_000  # pixels of an image that is reduced in bands, and of a band
_ORIENTATION_TAG, _TRANSPOSED = 0x0112, 5  # orientations from 5 on exchange width and height
_NEAREST = 0  # Pillow's number of a method
_NOT_SUPPORTED = re.compile(r"unsupported|not supported|not implemented|unknown|no codec|unable to determine", re.I)
"""Words of decoders about a content that they do not know, whether it is in order or not."""
_METADATA = frozenset(("exif", "xmp", "icc_profile"))


def decode(
    data: bytes,
    *,
    max_pixels: int,
    detail: int | None = None,
    budget: Budget | None = None,
    display_range: Range | None = None,
) -> DecodedImage:
    """Return the image in *data*; the first frame of an animation.

    Args:
        data: the content of the file.
        max_pixels: the maximum number of pixels; larger images are refused before decoding.
        detail: the minimum number of pixels of the shorter side. Pixels are averaged by the largest possible whole
            factor. A JPEG is decoded at 1/2, 1/4 or 1/8 of its size, which saves libjpeg work. None for the full size.
        budget: a limit to wait for before decoding.
        display_range: the values that are black and white in images of more than 8 bits; None to take them from each.

    Raises:
        CannotDecode: the data is empty, truncated, too large, or not an image of a supported format.
    """
    header = _plain_jpeg(data, max_pixels)
    if header is not None:
        width, height = header.displayed_size
        factor = _reduction(min(width, height), detail)
        with reserve_pixels(budget, width * height // factor**2):
            if (image := _decode_jpeg(data, header, factor)) is not None:
                pixels, damage = image
                small, sample = reduced(pixels, detail), subsample(pixels)
                larger = None if detail is None else partial(_larger_jpeg, data, header, detail, small)
                return DecodedImage(
                    small, sample, header.components, width, height, "jpeg", damage, header.traits, larger,
                    orientation=header.orientation,
                )  # fmt: skip
    if dicom.is_dicom(data):
        return decode_dicom(data, max_pixels, detail, budget, display_range)
    try:
        return _decode_other(data, max_pixels, detail, budget, display_range)
    except CannotDecode as error:
        if error.fault == "not_supported" and data.startswith(tiff.SIGNATURES):
            return decode_tiff(data, max_pixels, detail, budget, display_range)
        if error.fault == "damaged" and (header := jpeg.read_header(data)) is not None and header.is_rare:
            raise CannotDecode(f"{header.words} is not supported", "not_supported") from None
        raise


def _slimmed(data: bytes) -> tuple[bytes, str | None]:
    """Return the content of a file without parts that its pixels do not need, and a description of damage.

    Raises:
        CannotDecode: the file ends early.
    """
    if data[:3] == b"\xff\xd8\xff":
        damage, header, end = None, jpeg.read_header(data), b""
        if header is not None:
            if header.is_rare:
                return jpeg.slimmed(data), None
            end = _checked_end(data, header)
            damage = jpeg_ends.warning_of(data, header)
        return jpeg.slimmed(data) + end, damage
    if data.startswith(png.SIGNATURE):
        return png.readable(data), None
    check_end(data)
    return data, None


def decode_pixels(
    data: bytes, *, max_pixels: int, budget: Budget | None = None, display_range: Range | None = None
) -> Pixels:
    """Return the pixels of the image in *data* as :func:`decode` does, without what measuring needs beside them.

    Args:
        data: the content of the file.
        max_pixels: the maximum number of pixels; larger images are refused before decoding.
        budget: a limit to wait for before decoding.
        display_range: as of :func:`decode`.

    Raises:
        CannotDecode: as :func:`decode` raises it.
    """
    header = _plain_jpeg(data, max_pixels)
    if header is not None:
        with reserve_pixels(budget, header.width * header.height):
            if (image := _decode_jpeg(data, header, 1)) is not None:
                return image[0]
    return decode(data, max_pixels=max_pixels, budget=budget, display_range=display_range).pixels


def read_size(data: bytes, *, max_pixels: int) -> tuple[int, int]:
    """Return the displayed width and height of the image in *data*, which is not decoded.

    Raises:
        CannotDecode: it has more than *max_pixels*, or is not an image of a supported format.
    """
    header = _plain_jpeg(data, max_pixels)
    if header is not None:
        return header.displayed_size
    if dicom.is_dicom(data):
        description = dicom.read_description(data)
        check_size(description.width, description.height, max_pixels)
        return description.width, description.height
    try:
        with _open(_slimmed(data)[0]) as image:
            if image.format == "TIFF":
                tiff.seek_whole(image)
            check_size(image.width, image.height, max_pixels)
            is_turned = image.format != "TIFF" and _orientation(image) >= _TRANSPOSED  # Pillow has turned those
            return (image.height, image.width) if is_turned else (image.width, image.height)
    except CannotDecode as error:
        if error.fault != "not_supported" or not data.startswith(tiff.SIGNATURES):
            raise
        directory = tiff.read_directory(data)
    except Exception as error:  # readers raise errors of every kind on damaged data
        raise _error_of(error) from None
    check_values(directory, max_pixels)
    return directory.displayed_size


def _plain_jpeg(data: bytes, max_pixels: int) -> jpeg.Header | None:
    """Return the header of a JPEG in grey or colour after a check of its size; None for other images.

    Raises:
        CannotDecode: the data is empty, or the image is too large.
    """
    if not data:
        raise CannotDecode("the file is empty")
    header = jpeg.read_header(data)
    if header is None:
        return None
    jpeg.check_scans(data, header)
    if header.components not in (1, 3):
        return None
    check_size(*header.displayed_size, max_pixels)
    return header


def _reduction(shorter_side: int, detail: int | None) -> int:
    if detail is None:
        return 1
    return next((factor for factor in (8, 4, 2) if shorter_side // factor >= detail), 1)


def _decode_jpeg(data: bytes, header: jpeg.Header, reduction: int) -> tuple[Pixels, str | None] | None:
    """Return upright RGB pixels of a JPEG and a description of its damage; None if it needs another decoder.

    libjpeg repairs most damage with a warning, which simplejpeg raises as an error. A file that lacks only its end
    marker is intact.

    Raises:
        CannotDecode: the file ends early, or its end is filled with zeros.
    """
    size = {"min_height": -(-header.height // reduction), "min_width": -(-header.width // reduction)}
    try:
        return upright(simplejpeg.decode_jpeg(data, "RGB", **size), header.orientation), None
    except ValueError:
        end = _checked_end(data, header)
    try:
        pixels = upright(simplejpeg.decode_jpeg(data + end, "RGB", strict=False, **size), header.orientation)
    except ValueError:
        return None
    return pixels, jpeg_ends.warning_of(data, header)


def _checked_end(data: bytes, header: jpeg.Header) -> bytes:
    """Return the end marker if a JPEG lacks it, else nothing.

    Raises:
        CannotDecode: the JPEG lacks more than that.
    """
    if data.find(jpeg_ends.END_OF_IMAGE, header.end) >= 0:
        return b""
    if not header.is_rare and jpeg_ends.ends_early(data, header):
        raise CannotDecode(jpeg_ends.how_early(data, header))
    return jpeg_ends.END_OF_IMAGE


def _larger_jpeg(data: bytes, header: jpeg.Header, detail: int, small: Pixels) -> Pixels:
    """Return a JPEG at twice the detail; the given pixels if it cannot be decoded again."""
    image = _decode_jpeg(data, header, _reduction(min(header.width, header.height), 2 * detail))
    return small if image is None else reduced(image[0], 2 * detail)


@cache
def _register_readers() -> None:
    from PIL import Image

    Image.init()
    logging.getLogger("PIL.TiffImagePlugin").setLevel(logging.CRITICAL)  # what it cannot read, another library reads
    try:
        import pillow_heif
    except ImportError:
        return
    pillow_heif.register_heif_opener()


def begins_like_image(head: bytes) -> bool:
    """Return whether a file that begins with some bytes, 132 or more, may be an image of a known format."""
    from PIL import Image

    _register_readers()
    return dicom.is_dicom(head) or any(
        accept is not None and accept(head) is True
        for _, accept in (Image.OPEN[name] for name in _FORMATS if name in Image.OPEN)
    )


def _decode_other(
    whole: bytes, max_pixels: int, detail: int | None, budget: Budget | None, display_range: Range | None
) -> DecodedImage:
    from PIL import Image

    data, damage = _slimmed(whole)
    try:
        with _open(data) as image:
            if image.format == "TIFF":
                tiff.seek_whole(image)
            check_size(image.width, image.height, max_pixels)
            if image.format == "TIFF":
                check_strips(image.tag_v2, data)
            _check_filled(image, len(data))
            width, height = image.size
            pages = count_pages(image, whole)
            if detail is not None and width * height >= _LARGE:
                factor = _reduction(min(width, height), 2 * detail)
                image.draft(None, (width // factor, height // factor))  # JPEGs only
            deep = deep_kind(image, data)
            with reserve_pixels(budget, image.width * image.height * (1 if deep is None else DEEP_WEIGHT)):
                image.load()
                _make_opaque(image)
                orientation, traits = _orientation(image), _traits(image, data)
                file_format, bands = (image.format or "").lower(), 1 if image.mode in _GREY_MODES else 3
                if deep is not None:
                    read = decode_deep(data, deep, orientation, file_format, detail, display_range)
                    if read is not None:
                        return replace(read, damage=damage, traits=traits, pages=pages)
                shown = _shown_range(image, display_range)
                if width * height >= _LARGE:
                    small = upright(_reduced_rgb(image, detail, shown), orientation)
                    large = small if detail is None else upright(_reduced_rgb(image, 2 * detail, shown), orientation)
                    sample = _sampled(image, shown)
                else:
                    pixels = upright(_to_rgb(image, shown), orientation)
                    small, sample, large = reduced(pixels, detail), subsample(pixels), reduced(pixels, _double(detail))
                image.close()  # its memory, which is reserved
            larger = None if detail is None else partial(_same, large)
            if orientation >= _TRANSPOSED:
                width, height = height, width
    except CannotDecode:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise CannotDecode(f"possibly a decompression bomb: {error}", "over_limit") from None
    except MemoryError:
        raise CannotDecode("there is not enough memory to decode it", "over_limit") from None
    except Exception as error:  # decoders raise errors of every kind on damaged data
        raise _error_of(error) from None
    return DecodedImage(
        small, sample, bands, width, height, file_format, damage, traits, larger, shown, orientation, pages
    )


def _make_opaque(image: Any) -> None:
    """Make a BMP image opaque if all of its alpha is 0: programs that know no alpha leave its bytes empty."""
    if image.format == "BMP" and image.mode == "RGBA" and image.getextrema()[3] == (0, 0):
        image.putalpha(255)


def _error_of(error: Exception) -> CannotDecode:
    """Return the error of a decoder as ours, with the kind of reason as far as its message tells it."""
    reason = str(error) if isinstance(error, OSError | SyntaxError) else f"{type(error).__name__}: {error}"
    is_known = isinstance(error, NotImplementedError) or _NOT_SUPPORTED.search(reason) is not None
    return CannotDecode(reason, "not_supported" if is_known else "damaged")


def _traits(image: Any, data: bytes) -> jpeg.Traits:
    # A lossless WebP file has a chunk of this name; the other formats are rarely written without a loss.
    is_lossy = image.format in _LOSSY and not (image.format == "WEBP" and b"VP8L" in data)
    has_metadata = not _METADATA.isdisjoint(image.info)
    return jpeg.Traits(colour_share=0.25 if is_lossy else 1.0, has_metadata=has_metadata, is_lossy=is_lossy)


def _double(detail: int | None) -> int | None:
    return None if detail is None else 2 * detail


def _same(pixels: Pixels) -> Pixels:
    return pixels


def _check_filled(image: Any, size: int) -> None:
    """Check that a file is large enough for the number of pixels in its header, before memory is allocated.

    An LZW code in a GIF has up to 12 bits and stands for up to 4,095 pixels (GIF89a, appendix F), so a byte stands for
    less than 2,731 pixels. The size of an uncompressed image follows from its header.

    Raises:
        CannotDecode: the file is too small.
    """
    if image.format in _DECODED_BY_LIBRARY:  # its parts are in memory, not in the file
        return
    is_short = image.format == "GIF" and image.width * image.height > _GIF_PIXELS_PER_BYTE * size
    if is_short or any(part.offset + _least_bytes(part) > size for part in image.tile):
        raise CannotDecode(
            f"truncated, or its header lies: {counted(size, 'bytes')} of {image.format} cannot hold "
            f"{image.width}×{image.height} pixels"
        )


def _least_bytes(part: Any) -> int:
    """Return the least number of bytes that a part of an image has in its file; 0 if it is compressed.

    The arguments of Pillow's decoder ``raw`` are the order of bands and the distance of two rows in bytes, 0 if there
    are no bytes between rows.
    """
    left, top, right, bottom = part.extents
    width, height = right - left, bottom - top
    if part.codec_name in ("ppm", "ppm_plain"):
        return int(width * height)  # at least one character or byte for each pixel
    if part.codec_name != "raw":
        return 0
    order, row_bytes, *_ = (*part.args, 0) if isinstance(part.args, tuple) else (part.args, 0)
    if row_bytes:
        return int(row_bytes * (height - 1) + 1)  # the last row may lack its filling
    return int(width * height * _BITS.get(order, 1) // 8)


def _open(data: bytes) -> Any:
    """Return the Pillow image, not yet decoded.

    This is ``Image.open`` of Pillow 13 without Pillow's own size limit, which is one setting for the whole process,
    warns above half of the limit, and would override a higher limit of ours.
    """
    from PIL import Image

    if data.startswith(tiff.BIG_ENDIAN_BIG):  # Pillow 13 reads their sizes at the wrong place, and warns
        raise tiff.no_reader()
    _register_readers()
    refusal = None
    for factory, accept in (Image.OPEN[name] for name in _FORMATS if name in Image.OPEN):
        try:
            accepted = accept is None or accept(data[:16])
            if accepted and not isinstance(accepted, str):  # a text names a missing feature of the reader
                return factory(io.BytesIO(data), "")
        except (SyntaxError, IndexError, TypeError, struct.error) as error:  # raised by readers for other formats
            refusal = refusal or error
    raise _unidentified(data, refusal)


def _unidentified(data: bytes, refusal: Exception | None) -> CannotDecode:
    """Return the error for a content that no reader accepts.

    Args:
        data: the content.
        refusal: the error of a reader that knows the first bytes.
    """
    from PIL import Image

    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypheif", b"ftyphevc"):
        if "HEIF" in Image.OPEN:
            return CannotDecode("its beginning is damaged")
        return CannotDecode("HEIC needs the extra: pip install 'framedex[heif]'", "not_supported")
    if data.startswith(tiff.SIGNATURES):
        return tiff.no_reader()
    if not data.strip(b"\0"):
        return CannotDecode("the file holds only zero bytes")
    if (name := file_kind(data)) is not None:
        return CannotDecode(f"it is {name}", "not_supported")
    if refusal is not None and (error := _error_of(refusal)).fault == "not_supported":
        return error
    return CannotDecode(UNIDENTIFIED)


def _orientation(image: Any) -> int:
    """Return the Exif orientation of a Pillow image, 1 to 8; 1 if its Exif data is damaged."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # values of every kind
        return 1
    return value if value in range(1, 9) else 1


def _bands(image: Any, rows: int) -> Iterator[Any]:
    """Yield the parts of a Pillow image of a number of rows each, from the top."""
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height)))


def _reduced_rgb(image: Any, detail: int | None, shown: Range | None) -> Pixels:
    """Return RGB pixels as :func:`reduced` does, without a further copy of the whole image."""
    factor = 1 if detail is None else max(1, min(image.size) // detail)
    rows, done = factor * max(1, _BAND // (image.width * factor)), 0
    pixels = np.empty((-(-image.height // factor), -(-image.width // factor), 3), dtype=np.uint8)
    for band in _bands(image, rows):
        part = _to_rgb(band, shown)
        if factor > 1:
            size = (pixels.shape[1], -(-band.height // factor))
            part = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        pixels[done : done + len(part)] = part
        done += len(part)
    return pixels


def _sampled(image: Any, shown: Range | None) -> Pixels:
    """Return pixels as :func:`subsample` does, without a copy of the whole image."""
    return _to_rgb(image.resize(subsample_size(*image.size), _NEAREST), shown)


def _shown_range(image: Any, display_range: Range | None) -> Range | None:
    """Return the range of values of a loaded Pillow image that is shown; None for values that are shown as they are."""
    if image.mode not in _MODES_OF_VALUES:
        return None
    if display_range is not None:
        return display_range
    factor = max(1, round((image.width * image.height / _BAND) ** 0.5))
    size = (-(-image.width // factor), -(-image.height // factor))
    return shown_range(_values(image.resize(size, _NEAREST) if factor > 1 else image), bits=16)


def _values(image: Any) -> npt.NDArray[Any]:
    """Return the values of a Pillow image in one of the modes of values; those of integers have 16 bits."""
    values = np.asarray(image)
    return values if values.dtype.kind == "f" else np.clip(values, 0, 65535).astype(np.uint16)


def _to_rgb(image: Any, shown: Range | None) -> Pixels:
    """Return the RGB pixels of a loaded Pillow image of any mode.

    Args:
        image: the image.
        shown: the range of values that is shown; None for values as they are.
    """
    from PIL import Image

    if image.mode in _MODES_OF_VALUES:
        values = _values(image)
        pixels = np.repeat(scaled(values, shown, bits=16)[..., None], 3, axis=2)
        if isinstance(transparent := image.info.get("transparency"), int):  # a value of a 16-bit grey PNG
            pixels[values == transparent] = 255
        return pixels
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        rgba = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.new("RGB", rgba.size, "white")
        image.paste(rgba, mask=rgba)
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))
