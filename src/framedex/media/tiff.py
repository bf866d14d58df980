"""TIFF files of values: more than 8 bits, signed, float, of any number of bands; read by tifffile.

Pillow reads the others, in their colours. Of tifffile, imagecodecs and libvips, only tifffile reads all types
(``benchmarks/results/2026-11-30-tiff-readers.md``). imagecodecs is an extra, since it has 79 MB: LZW, PackBits and
Zstandard are unpacked by the libtiff that Pillow has, and the predictor of floats by NumPy.
"""

import logging
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.errors import CannotDecode
from framedex.media.file_ends import check_strips

BIG_ENDIAN_BIG = b"MM\0+"
SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", BIG_ENDIAN_BIG)
SUBFILE, _BITS, _KIND = 254, 258, 339
_ORIENTATION, _NODATA, _DNG_VERSION = 274, 42113, 50706
NOT_WHOLE = 1 | 4  # of a subfile: a thumbnail, a mask
_MOST_PAGES = 16  # that are looked at for one that is whole
_GREY, _RGB, _CMYK, _LINEAR_RAW = (0, 1, 4), 2, 5, 34892
_WHITE_IS_ZERO, _ALPHA, _PLAIN = 0, (1, 2), (1, 4)  # unsigned, or not said
_KINDS = {"u": "unsigned", "i": "signed", "f": "float", "c": "complex", "b": "unsigned"}
_PACKED = 12  # bits, of two values in three bytes
_LZW, _PACKBITS, _ZSTD, _FLOATS = 5, 32773, 50000, 3
_DEFLATE, _LZMA = (8, 32946), 34925


@dataclass(frozen=True)
class TiffValues:
    """The values of an image.

    Attributes:
        values: of any type, shape (H, W), or (H, W, 3) in the order RGB.
        alpha: the opacity, shape (H, W), of the same type; None for none.
        bits: the number of bits of a value.
        missing: the value that stands for none; None if the file names none.
        is_inverted: whether the lowest value is white.
        orientation: as in Exif, 1 to 8.
    """

    values: npt.NDArray[Any]
    alpha: npt.NDArray[Any] | None
    bits: int
    missing: float | None
    is_inverted: bool
    orientation: int


@dataclass(frozen=True)
class Directory:
    """The description of the first whole image of a file, which is no thumbnail and no mask.

    Attributes:
        width, height: stored size in pixels.
        pixel_bytes: the number of bytes of a pixel with all bands.
        orientation: as in Exif, 1 to 8.
        page: of tifffile.
    """

    width: int
    height: int
    pixel_bytes: int
    orientation: int
    page: Any

    @property
    def displayed_size(self) -> tuple[int, int]:
        """The displayed size (width, height), after orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)

    @property
    def words(self) -> str:
        """The kind of its values, for messages."""
        page = self.page
        kind = "unknown" if page.dtype is None else _KINDS.get(page.dtype.kind, page.dtype.kind)
        bands = f"{page.samplesperpixel} band{'s' * (page.samplesperpixel > 1)} of {page.bitspersample} bits ({kind})"
        return f"{bands}, {_name(page.photometric)}, compression {_name(page.compression)}"


def no_reader() -> CannotDecode:
    """Return the error for a file that Pillow does not read, which is read as one of values then."""
    return CannotDecode("Pillow does not read this TIFF file", "not_supported")


def seek_whole(image: Any) -> None:
    """Set a Pillow image to its first page that is no thumbnail and no mask, if it has one.

    Raises:
        CannotDecode: Pillow does not read the kind of its values.
    """
    for number in range(1, _MOST_PAGES):
        if not int(image.tag_v2.get(SUBFILE, 0)) & NOT_WHOLE:
            break
        try:
            image.seek(number)
        except EOFError:
            image.seek(0)
            break
    bits, kinds = (np.atleast_1d(image.tag_v2.get(tag, 1)) for tag in (_BITS, _KIND))
    is_read = bits.max() <= 8 or list(bits) == [_PACKED]
    if not is_read or not np.isin(kinds, _PLAIN).all():
        raise no_reader()


def read_directory(data: bytes) -> Directory:
    """Return the description of the image in a TIFF file.

    Raises:
        CannotDecode: the file is damaged, or a part is missing.
    """
    tifffile = _tifffile()
    try:
        with tifffile.TiffFile(BytesIO(data)) as file:
            pages = list(islice(file.pages, 1))
            if pages[0].subfiletype & NOT_WHOLE:
                pages = [each.aspage() for each in islice(file.pages, _MOST_PAGES)]
            page = next((each for each in pages if not each.subfiletype & NOT_WHOLE), pages[0])
            tags = {tag.code: tag.value for tag in page.tags}
        check_strips(tags, data)
        orientation = int(tags.get(_ORIENTATION, 1))
        pixel_bytes = -(-page.samplesperpixel * page.bitspersample // 8)
    except CannotDecode:
        raise
    except Exception as error:  # values of every kind
        raise CannotDecode(f"its directory is damaged ({type(error).__name__}: {error})") from None
    return Directory(page.imagewidth, page.imagelength, pixel_bytes, orientation, page)


def decode_values(data: bytes, directory: Directory) -> TiffValues:
    """Return the values of the image; of more bands than colours the first three.

    Raises:
        CannotDecode: they are of a kind that is not read, or damaged.
    """
    page = directory.page
    has_colours = page.photometric in (*_GREY, _RGB, _CMYK, _LINEAR_RAW)
    if page.dtype is None or page.dtype.kind not in "uifb" or not has_colours or page.imagedepth > 1:
        raise CannotDecode(_not_read(directory), "not_supported")
    try:
        with _tifffile().TiffFile(BytesIO(data)) as file:
            values = file.pages[page.index].aspage().asarray(maxworkers=1)
    except Exception as error:  # of every kind
        if "imagecodecs" in str(error):
            words = f"TIFF files with {directory.words}, need the extra: pip install 'framedex[tiff]'"
            raise CannotDecode(words, "not_supported") from None
        raise CannotDecode(f"{type(error).__name__}: {error}") from None
    if values.ndim == 3 and page.planarconfig == 2:
        values = np.moveaxis(values, 0, -1)
    colours, alpha = _split(values, page)
    return TiffValues(
        colours, alpha, page.bitspersample, _missing(page), page.photometric == _WHITE_IS_ZERO, directory.orientation
    )


def _split(values: npt.NDArray[Any], page: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Return the colours of values of all bands, and the opacity if a band has it."""
    if values.ndim == 2:
        return values, None
    base = {_CMYK: 4, _RGB: 3, _LINEAR_RAW: 3}.get(page.photometric, 1)
    at = next((base + number for number, kind in enumerate(page.extrasamples) if kind in _ALPHA), None)
    alpha = None if at is None or at >= values.shape[2] else values[..., at]
    if page.photometric == _CMYK and values.shape[2] >= 4:
        return _inked(values[..., :4]), alpha
    further = values.shape[2] - (alpha is not None)
    return (values[..., :3] if further >= 3 else values[..., 0]), alpha


def _inked(inks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the colours of four inks, as Pillow has those of 8 bits."""
    if inks.dtype.kind == "u":
        most = np.iinfo(inks.dtype).max
        share = 1 - inks.astype(np.float64) / most
        return np.asarray(np.rint(share[..., :3] * share[..., 3:] * most), dtype=inks.dtype)
    return np.asarray((1 - inks[..., :3]) * (1 - inks[..., 3:]))


def _missing(page: Any) -> float | None:
    """Return the value that stands for none, as GDAL writes it."""
    try:
        return float(str(page.tags[_NODATA].value).strip("\0 "))
    except (KeyError, ValueError):
        return None


def _not_read(directory: Directory) -> str:
    if _DNG_VERSION in directory.page.tags:
        return "it is a raw image of a camera (DNG)"
    return f"TIFF files with {directory.words}, are not supported"


def _name(value: Any) -> str:
    return str(getattr(value, "name", value))


@cache
def _tifffile() -> Any:
    """Return tifffile, which unpacks what it can without imagecodecs, and prints nothing about damaged files."""
    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    if find_spec("imagecodecs") is None:
        ours = {name: _unpacker(name) for name in (_LZW, _PACKBITS, _ZSTD)}
        ours |= {**dict.fromkeys(_DEFLATE, _inflated), _LZMA: _of_lzma}
        codecs: Any = tifffile.TIFF
        codecs.DECOMPRESSORS = _Codecs(ours, codecs.DECOMPRESSORS)
        codecs.UNPREDICTORS = _Codecs({_FLOATS: _sum_floats}, codecs.UNPREDICTORS)
    return tifffile


class _Codecs(dict[int, Callable[..., Any]]):
    """Functions by number, and those of tifffile for other numbers."""

    def __init__(self, ours: Mapping[int, Callable[..., Any]], others: Mapping[int, Callable[..., Any]]) -> None:
        super().__init__(ours)
        self._others = others

    def __missing__(self, number: int) -> Callable[..., Any]:
        return self._others[number]


def _unpacker(compression: int) -> Callable[..., bytes]:
    """Return a function that unpacks bytes: as a grey image of one row, by the libtiff that Pillow has."""

    def unpacked(data: bytes, /, *, out: int) -> bytes:
        from PIL import Image

        tags = (
            (256, out),
            (257, 1),
            (258, 8),
            (259, compression),
            (262, 1),
            (273, 8),
            (277, 1),
            (278, 1),
            (279, len(data)),
        )
        fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        start = 8 + len(data)
        file = b"II*\0" + struct.pack("<I", start) + data + struct.pack("<H", len(tags)) + fields + bytes(4)
        with Image.open(BytesIO(file), formats=("TIFF",)) as image:
            return bytes(image.tobytes())

    return unpacked


def _inflated(data: bytes, /, *, out: int) -> bytes:
    """Return unpacked bytes, no more than are needed: without imagecodecs tifffile has no limit."""
    return zlib.decompressobj().decompress(data, max(out, 1))


def _of_lzma(data: bytes, /, *, out: int) -> bytes:
    """Return unpacked bytes, as :func:`_inflated`."""
    return lzma.LZMADecompressor().decompress(data, max_length=max(out, 1))


def _sum_floats(data: npt.NDArray[Any], /, *, axis: int = -2, out: Any = None) -> npt.NDArray[Any]:
    """Return floats of which each row has the bytes of all first, as differences (Adobe, TIFF Technical Note 3)."""
    del axis, out
    *_, width, bands = data.shape
    size = data.dtype.itemsize
    parts = np.ascontiguousarray(data).view(np.uint8).reshape(-1, size * width, bands)
    sums = np.cumsum(parts, axis=1, dtype=np.uint8).reshape(-1, size, width * bands)
    floats = np.ascontiguousarray(sums.swapaxes(1, 2)).view(data.dtype.newbyteorder(">"))
    return floats.astype(data.dtype).reshape(data.shape)
