"""Decoding of images: bytes to upright RGB pixels, with limits."""

import io
import logging
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg

from framedex.core.arrays import Pixels
from framedex.core.borders import BorderedImage
from framedex.core.counts import counted
from framedex.core.forks import cached_property
from framedex.errors import CannotDecode
from framedex.media import dicom, jpeg, jpeg_ends, png, tiff
from framedex.media.budget import Budget, reserve_pixels
from framedex.media.display_range import Range, scaled, shown_range
from framedex.media.file_ends import check_end, check_strips
from framedex.media.file_kinds import UNIDENTIFIED, file_kind

_GIF_PIXELS_PER_BYTE = 2731
_SAMPLE = 100
_BITS = {"RGB": 24, "L": 8}  # of a pixel, by the order of bands; all others have at least one
_MODES_OF_VALUES = frozenset(("I", "I;16", "I;16L", "I;16B", "F"))
_GREY_MODES = frozenset(("1", "L", "LA", "La", *_MODES_OF_VALUES))
_MOST_BYTES, _WORKING_BYTES = 24, 4  # of a pixel: of three 64-bit floats; of those that decoding 8 bits needs
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

    @cached_property
    def bordered(self) -> BorderedImage:
        """The pixels, with their part within uniform borders."""
        return BorderedImage(self.pixels)


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
    if dicom.is_dicom(data):
        return _decode_dicom(data, max_pixels, detail, budget, display_range)
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
                    small, sample, header.components, width, height, "jpeg", damage, header.traits, larger
                )
    try:
        return _decode_other(*_slimmed(data), max_pixels, detail, budget, display_range)
    except CannotDecode as error:
        if error.fault == "not_supported" and data.startswith(tiff.SIGNATURES):
            return _decode_tiff(data, max_pixels, detail, budget, display_range)
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
    _check_values(directory, max_pixels)
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


def decoded(pixels: Pixels, *, detail: int | None, file_format: str) -> DecodedImage:
    """Return decoded pixels, such as a video frame, in the form of the results of :func:`decode`."""
    height, width = pixels.shape[:2]
    larger = None if detail is None else partial(reduced, pixels, 2 * detail)
    return DecodedImage(reduced(pixels, detail), subsample(pixels), 3, width, height, file_format, larger=larger)


def _reduction(shorter_side: int, detail: int | None) -> int:
    if detail is None:
        return 1
    return next((factor for factor in (8, 4, 2) if shorter_side // factor >= detail), 1)


def subsample(pixels: Pixels) -> Pixels:
    """Return every n-th pixel of every m-th row, at most 100 × 100."""
    height, width = pixels.shape[:2]
    size = (width // -(-width // _SAMPLE), height // -(-height // _SAMPLE))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)


def reduced(pixels: Pixels, detail: int | None) -> Pixels:
    """Return pixels averaged by the largest whole factor that keeps *detail* pixels on the shorter side; None: all."""
    height, width = pixels.shape[:2]
    factor = 1 if detail is None else max(1, min(height, width) // detail)
    if factor == 1:
        return pixels
    # If the sides are multiples of the factor, OpenCV averages blocks of whole pixels, which is fast.
    size = (-(-width // factor), -(-height // factor))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _decode_jpeg(data: bytes, header: jpeg.Header, reduction: int) -> tuple[Pixels, str | None] | None:
    """Return upright RGB pixels of a JPEG and a description of its damage; None if it needs another decoder.

    libjpeg repairs most damage with a warning, which simplejpeg raises as an error. A file that lacks only its end
    marker is intact.

    Raises:
        CannotDecode: the file ends early, or its end is filled with zeros.
    """
    size = {"min_height": -(-header.height // reduction), "min_width": -(-header.width // reduction)}
    try:
        return _upright(simplejpeg.decode_jpeg(data, "RGB", **size), header.orientation), None
    except ValueError:
        end = _checked_end(data, header)
    try:
        pixels = _upright(simplejpeg.decode_jpeg(data + end, "RGB", strict=False, **size), header.orientation)
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


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Return pixels turned as their Exif orientation says (Exif 2.3, tag 0x0112)."""
    upright: Any = cv2.transpose(pixels) if orientation >= 5 else pixels
    is_mirrored = orientation in (2, 3, 6, 7)
    is_flipped = orientation in (3, 4, 7, 8)
    if is_mirrored or is_flipped:
        upright = cv2.flip(upright, -1 if is_mirrored and is_flipped else int(is_mirrored))
    return np.asarray(upright, dtype=np.uint8)


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
    data: bytes,
    damage: str | None,
    max_pixels: int,
    detail: int | None,
    budget: Budget | None,
    display_range: Range | None,
) -> DecodedImage:
    from PIL import Image

    try:
        with _open(data) as image:
            if image.format == "TIFF":
                tiff.seek_whole(image)
            check_size(image.width, image.height, max_pixels)
            if image.format == "TIFF":
                check_strips(image.tag_v2, data)
            _check_filled(image, len(data))
            width, height = image.size
            if detail is not None and width * height >= _LARGE:
                factor = _reduction(min(width, height), 2 * detail)
                image.draft(None, (width // factor, height // factor))  # JPEGs only
            with reserve_pixels(budget, image.width * image.height):
                image.load()
                _make_opaque(image)
                orientation, shown = _orientation(image), _shown_range(image, display_range)
                if width * height >= _LARGE:
                    small = _upright(_reduced_rgb(image, detail, shown), orientation)
                    large = small if detail is None else _upright(_reduced_rgb(image, 2 * detail, shown), orientation)
                    sample = _sampled(image, shown)
                else:
                    pixels = _upright(_to_rgb(image, shown), orientation)
                    small, sample, large = reduced(pixels, detail), subsample(pixels), reduced(pixels, _double(detail))
                image.close()  # its memory, which is reserved
            larger = None if detail is None else partial(_same, large)
            if orientation >= _TRANSPOSED:
                width, height = height, width
            traits = _traits(image, data)
            file_format, bands = (image.format or "").lower(), 1 if image.mode in _GREY_MODES else 3
    except CannotDecode:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise CannotDecode(f"possibly a decompression bomb: {error}", "over_limit") from None
    except MemoryError:
        raise CannotDecode("there is not enough memory to decode it", "over_limit") from None
    except Exception as error:  # decoders raise errors of every kind on damaged data
        raise _error_of(error) from None
    return DecodedImage(small, sample, bands, width, height, file_format, damage, traits, larger, shown)


def _decode_tiff(
    data: bytes, max_pixels: int, detail: int | None, budget: Budget | None, display_range: Range | None
) -> DecodedImage:
    """Return the image in a TIFF file of values that Pillow does not read."""
    directory = tiff.read_directory(data)
    _check_values(directory, max_pixels)
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
        return _of_levels(_upright(levels, orientation), detail, "tiff", shown)


def _decode_dicom(
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


def _of_levels(levels: Pixels, detail: int | None, file_format: str, shown: Range | None) -> DecodedImage:
    """Return an image of grey levels, shape (H, W), or of colours, in the form of the results of :func:`decode`."""
    small, sample = _in_colours(reduced(levels, detail)), _in_colours(subsample(levels))
    larger = None if detail is None else partial(_in_colours, reduced(levels, 2 * detail))
    height, width = levels.shape[:2]
    bands = 1 if levels.ndim == 2 else 3
    return DecodedImage(small, sample, bands, width, height, file_format, larger=larger, shown=shown)


def _in_colours(levels: Pixels) -> Pixels:
    """Return grey levels or colours as colours."""
    return levels if levels.ndim == 3 else np.repeat(levels[..., None], 3, axis=2)


def _check_values(directory: tiff.Directory, max_pixels: int) -> None:
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
    width, height = image.size
    size = (width // -(-width // _SAMPLE), height // -(-height // _SAMPLE))
    return _to_rgb(image.resize(size, _NEAREST), shown)


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
