"""Bytes to pixels: each picture decoded once, shown right, or refused with the reason."""

import io
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from framedex.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media import jpeg

_GIF_PIXELS_A_BYTE = 2731
_SAMPLE = 100
_GREY_MODES = frozenset(("1", "L", "LA", "La", "I", "I;16", "I;16L", "I;16B", "F"))
_FORMATS = ("JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP", "JPEG2000", "HEIF", "AVIF", "PPM")
"""What Pillow may read: its other readers are rare, and some start other programs."""
_SMALL = 1_000_000
# The flags for reduced decoding are bits; with the bit for RGB the result is in colour.
_REDUCED = {
    2: cv2.IMREAD_REDUCED_GRAYSCALE_2 | cv2.IMREAD_COLOR_RGB,
    4: cv2.IMREAD_REDUCED_GRAYSCALE_4 | cv2.IMREAD_COLOR_RGB,
    8: cv2.IMREAD_REDUCED_GRAYSCALE_8 | cv2.IMREAD_COLOR_RGB,
}


@dataclass(frozen=True)
class Picture:
    """A decoded picture.

    Attributes:
        pixels: uint8, shape (H, W, 3), RGB, upright, transparent parts over white. Smaller than the picture
            where less detail was asked for.
        sample: at most 100 × 100 of the pixels as they were decoded, not averaged, evenly spread over the picture.
        bands: colour channels that the file stores: 1 for a grey one, else 3.
        width: the whole picture's width in pixels, as shown.
        height: its height.
        format: the file format in lower case, for example ``jpeg``.
    """

    pixels: Pixels
    sample: Pixels
    bands: int
    width: int
    height: int
    format: str


class Budget(Protocol):
    """Lets pixels be decoded when there is room for them."""

    def hold(self, pixels: int) -> AbstractContextManager[None]:
        """Wait until so many pixels fit; they do for the duration of the block, at least."""
        ...


class PixelBudget:
    """Limits how many pixels are being decoded at a time over all threads, which bounds their memory.

    A picture larger than the whole budget is decoded alone.
    """

    def __init__(self, pixels: int) -> None:
        self._limit, self._held = pixels, 0
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, pixels: int) -> Iterator[None]:
        """Wait until so many pixels fit, and hold them for the duration of the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + pixels <= self._limit)
            self._held += pixels
        try:
            yield
        finally:
            with self._changed:
                self._held -= pixels
                self._changed.notify_all()


class HeldOn:
    """A budget for one picture whose pixels stay held while it is used: to the end of this block."""

    def __init__(self, budget: PixelBudget) -> None:
        self._budget, self._held = budget, ExitStack()

    def hold(self, pixels: int) -> AbstractContextManager[None]:
        """Wait until so many pixels fit; let go of what an earlier try at the same picture held."""
        self._held.close()
        self._held.enter_context(self._budget.hold(pixels))
        return nullcontext()

    def __enter__(self) -> "HeldOn":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()


def decode(data: bytes, *, max_pixels: int, detail: int | None = None, budget: Budget | None = None) -> Picture:
    """Return the picture in *data*; of an animation the first frame.

    Args:
        data: the whole file.
        max_pixels: larger pictures are refused before they are decoded.
        detail: if given, the pixels are averaged by the largest whole factor that leaves the shorter side at least
            this many. A JPEG is then decoded at 1/2, 1/4 or 1/8 at once: libjpeg skips the work for what is left out.
        budget: waits, if given, until the picture's pixels fit.

    Raises:
        CannotDecode: the data is empty, truncated, too large or no picture of a supported format.
    """
    if not data:
        raise CannotDecode("the file is empty")
    header = jpeg.read_header(data)
    if header is not None:
        jpeg.check_scans(data, header)
    if header is not None and header.components in (1, 3):
        width, height = header.displayed_size
        check_size(width, height, max_pixels)
        factor = _reduction(min(width, height), detail)
        with reserve_pixels(budget, width * height // factor**2):
            pixels = _decode_jpeg(data, factor)
            if pixels is not None:
                small, sample = reduced(pixels, detail), subsample(pixels)
                return Picture(small, sample, header.components, width, height, "jpeg")
    return _decode_other(jpeg.slimmed(data) if data[:3] == b"\xff\xd8\xff" else data, max_pixels, detail, budget)


def decoded(pixels: Pixels, *, detail: int | None, file_format: str) -> Picture:
    """Return pixels that are decoded already, such as a frame of a video, as :func:`decode` returns a picture."""
    height, width = pixels.shape[:2]
    return Picture(reduced(pixels, detail), subsample(pixels), 3, width, height, file_format)


def reserve_pixels(budget: Budget | None, pixels: int) -> AbstractContextManager[None]:
    """Hold pixels of a budget, if there is one, for the duration of a block."""
    # What is small cannot add up to much over a few threads, and need not wait for its turn.
    return nullcontext() if budget is None or pixels < _SMALL else budget.hold(pixels)


def _reduction(shorter_side: int, detail: int | None) -> int:
    if detail is None:
        return 1
    return next((factor for factor in (8, 4, 2) if shorter_side // factor >= detail), 1)


def subsample(pixels: Pixels) -> Pixels:
    """Return every n-th pixel of every m-th row."""
    height, width = pixels.shape[:2]
    size = (width // -(-width // _SAMPLE), height // -(-height // _SAMPLE))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)


def reduced(pixels: Pixels, detail: int | None) -> Pixels:
    """Return pixels averaged by the largest whole factor that leaves the shorter side *detail*; all for None."""
    height, width = pixels.shape[:2]
    factor = 1 if detail is None else max(1, min(height, width) // detail)
    if factor == 1:
        return pixels
    # Where the sides are multiples of the factor, OpenCV averages whole boxes, which is fast; else parts of pixels.
    size = (-(-width // factor), -(-height // factor))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _decode_jpeg(data: bytes, reduction: int) -> Pixels | None:
    """Return RGB pixels; None where OpenCV refuses the file, as it does when data is missing."""
    flag = _REDUCED.get(reduction, cv2.IMREAD_COLOR_RGB)
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    except cv2.error:
        return None
    return None if pixels is None else np.asarray(pixels, dtype=np.uint8)


def check_size(width: int, height: int, max_pixels: int) -> None:
    """Check the size of a picture before it is decoded.

    Raises:
        CannotDecode: it has more pixels than are decoded, or none.
    """
    if width * height > max_pixels:
        raise CannotDecode(
            f"{width}×{height} is more than {max_pixels:,} pixels: possibly a decompression bomb "
            "(FRAMEDEX_MAX_PIXELS raises the limit)"
        )
    if width < 1 or height < 1:
        raise CannotDecode(f"the size {width}×{height} has no pixels")


@cache
def _register_readers() -> None:
    from PIL import Image

    Image.init()
    try:
        import pillow_heif
    except ImportError:
        return
    pillow_heif.register_heif_opener()


def _decode_other(data: bytes, max_pixels: int, detail: int | None, budget: Budget | None) -> Picture:
    from PIL import Image, ImageOps

    try:
        with _open(data) as image:
            check_size(image.width, image.height, max_pixels)
            _check_filled(image, len(data))
            with reserve_pixels(budget, image.width * image.height):
                image.load()
                ImageOps.exif_transpose(image, in_place=True)
                pixels = _to_rgb(image)
                small, sample = reduced(pixels, detail), subsample(pixels)
            file_format, bands = (image.format or "").lower(), 1 if image.mode in _GREY_MODES else 3
    except CannotDecode:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise CannotDecode(f"possibly a decompression bomb: {error}") from None
    except Exception as error:  # decoders raise errors of every kind on damaged data
        reason = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise CannotDecode(reason) from None
    return Picture(small, sample, bands, pixels.shape[1], pixels.shape[0], file_format)


def _check_filled(image: Any, size: int) -> None:
    """Check that a file can hold as many pixels as its header says, before memory is taken for them.

    A code of GIF's LZW has up to 12 bits and stands for up to 4,095 pixels (GIF89a, appendix F), so that a byte stands
    for less than 2,731.

    Raises:
        CannotDecode: it cannot.
    """
    if image.format == "GIF" and image.width * image.height > _GIF_PIXELS_A_BYTE * size:
        raise CannotDecode(
            f"truncated, or its header lies: {size:,} bytes of GIF cannot hold {image.width}×{image.height} pixels"
        )


def _open(data: bytes) -> Any:
    """Return the Pillow image, not yet decoded.

    As ``Image.open`` of Pillow 13 does it, but without holding the size against Pillow's own limit: that is one
    setting for the whole process, warns from half of it on, and would override ours where ours is higher.
    """
    from PIL import Image

    _register_readers()
    for factory, accept in (Image.OPEN[name] for name in _FORMATS if name in Image.OPEN):
        try:
            accepted = accept is None or accept(data[:16])
            if accepted and not isinstance(accepted, str):  # a text says what the reader lacks
                return factory(io.BytesIO(data), "")
        except (SyntaxError, IndexError, TypeError, struct.error):  # how Pillow's readers say that it is not theirs
            continue
    raise CannotDecode(_unidentified(data))


def _unidentified(data: bytes) -> str:
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypheif", b"ftyphevc"):
        return "HEIC needs the extra: pip install 'framedex[heif]'"
    if not data.strip(b"\0"):
        return "the file holds only zero bytes"
    return "not an image of a supported format, or its beginning is damaged"


def _to_rgb(image: Any) -> Pixels:
    """Return upright RGB of a loaded Pillow image of any mode."""
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":
        return _grey_to_rgb(np.asarray(image))
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        rgba = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.new("RGB", rgba.size, "white")
        image.paste(rgba, mask=rgba)
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _grey_to_rgb(values: npt.NDArray[Any]) -> Pixels:
    """Scale grey values of more than 8 bits to 0–255: integers by 16 bits, floats by their own range."""
    if values.dtype.kind == "f":
        finite = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = (0.0, 1.0) if finite.min() >= 0 and finite.max() <= 1 else (finite.min(), finite.max())
        grey = (finite - low) * (255 / max(high - low, 1e-12))
    else:
        grey = np.clip(values, 0, 65535) / 257
    return np.repeat(np.rint(grey).astype(np.uint8)[..., None], 3, axis=2)
