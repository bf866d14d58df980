"""TIFF files of any values are read as tifffile wrote them, and shown by the range of their valid values."""

import io
import struct
import tracemalloc
import zlib
from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import tifffile
from PIL import Image

from framedex.errors import CannotDecode, InvalidInput
from framedex.media.decode import decode, read_size
from framedex.media.decoded_image import DecodedImage
from framedex.media.display_range import checked_range
from tests.image_files import encode, photo

Values = npt.NDArray[Any]
WIDTH, HEIGHT, MAX_PIXELS = 40, 30, 10_000
WHITE_AND_BLACK = "miniswhite"
HAS_EXTRA = find_spec("imagecodecs") is not None


def written(values: Values, *, before: Values | None = None, **options: Any) -> bytes:
    """Return a TIFF file with values, and with a thumbnail before them."""
    out = io.BytesIO()
    options = {"photometric": "minisblack", "metadata": None, **options}
    with tifffile.TiffWriter(out, bigtiff=options.pop("bigtiff", False), byteorder=options.pop("order", "<")) as file:
        if before is not None:
            file.write(before, photometric=options["photometric"], subfiletype=1, metadata=None)
        file.write(values, **options)
    return out.getvalue()


def values_of(kind: str, *bands: int) -> Values:
    """Return values of a type that are spread over its range, or over 200: shape (H, W, *bands)."""
    share = np.random.default_rng(1).beta(2, 3, (HEIGHT, WIDTH, *bands))
    if np.dtype(kind).kind == "f":
        return (share * 200 - 40).astype(kind)
    info = np.iinfo(kind)
    return np.asarray(float(info.min) + share * (float(info.max) - float(info.min)), kind)


def grey_of(values: Values, low: float, high: float) -> Values:
    """Return grey levels, with nothing that the package computes."""
    return np.asarray(np.rint(np.clip((values.astype(float) - low) / (high - low), 0, 1) * 255), np.uint8)


def expected(values: Values) -> tuple[Values, tuple[float, float] | None]:
    """Return the grey levels of values without missing ones, and the range that is shown."""
    if values.dtype.kind == "u":
        return grey_of(values, 0, float(np.iinfo(values.dtype).max)), None
    low, high = np.percentile(values.astype(float), (2, 98))
    return grey_of(values, low, high), (low, high)


def shown(data: bytes, **options: Any) -> DecodedImage:
    """Return the decoded image."""
    return decode(data, max_pixels=MAX_PIXELS, **options)


def reason(data: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[str, str]:
    """Return the kind of the reason why data cannot be decoded, and its words."""
    with pytest.raises(CannotDecode) as caught:
        decode(data, max_pixels=max_pixels)
    return caught.value.fault, str(caught.value)


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize(
    "options",
    [{}, {"order": ">"}, {"tile": (16, 16)}, {"rowsperstrip": 7}, {"compression": "deflate"}, {"bigtiff": True}],
    ids=str,
)
def test_tiff__of_each_type(kind: str, options: dict[str, Any]) -> None:
    """Values of each type are shown, in each layout of a file."""
    values = values_of(kind)
    grey, range_shown = expected(values)
    image = shown(written(values, **options))
    assert (image.bands, image.format, image.width, image.height) == (1, "tiff", WIDTH, HEIGHT)
    np.testing.assert_array_equal(image.pixels[..., 1], grey)
    assert image.shown == (None if range_shown is None else pytest.approx(range_shown))


@pytest.mark.parametrize("kind", ["u1", "u2", "i2", "f4"])
def test_tiff__smallest_value_is_white(kind: str) -> None:
    """Grey levels are exchanged where a file says so."""
    values = values_of(kind)
    found = shown(written(values, photometric=WHITE_AND_BLACK)).pixels[..., 0]
    np.testing.assert_array_equal(found, 255 - expected(values)[0])


@pytest.mark.parametrize("kind", ["u1", "u2", "f4"])
@pytest.mark.parametrize("bands", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_tiff__of_several_bands(kind: str, bands: int, planar: str) -> None:
    """Three bands and more show the first three, with one range; fewer show the first."""
    values = values_of(kind, bands)
    colours = values[..., :3] if bands >= 3 else values[..., :1].repeat(3, axis=2)
    stored = np.moveaxis(values, -1, 0) if planar == "separate" else values
    extra: dict[str, Any] = {"extrasamples": [0] * (bands - 3)} if bands > 3 else {}
    photometric = "rgb" if bands >= 3 else "minisblack"
    found = shown(written(stored, planarconfig=planar, photometric=photometric, **extra)).pixels
    np.testing.assert_array_equal(found, expected(colours)[0])


@pytest.mark.parametrize("base", [1, 3])
def test_tiff__with_opacity(base: int) -> None:
    """What is transparent is white."""
    values = values_of("u2", base + 1)
    values[:9, :, -1], values[9:20, :, -1], values[20:, :, -1] = 65535, 32768, 0
    found = shown(written(values, photometric="rgb" if base == 3 else "minisblack", extrasamples=["unassalpha"])).pixels
    grey = expected(values[..., :base])[0].astype(float)
    share = np.rint(values[..., -1:] / 257) / 255
    assert np.abs(found - (255 - share * (255 - grey))).max() <= 0.5
    assert (found[20:] == 255).all()


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "zstd"])
def test_tiff__packed(compression: str) -> None:
    """Packed values are read without imagecodecs; Pillow writes them."""
    values = values_of("u2")
    data = encode(Image.fromarray(values), "TIFF", compression=compression)
    np.testing.assert_array_equal(shown(data).pixels[..., 0], expected(values)[0])


@pytest.mark.parametrize(("kind", "predictor"), [("f4", 3), ("f8", 3), ("u2", 2)])
def test_tiff__differences(kind: str, predictor: int) -> None:
    """Differences of values are added up; OpenCV writes them."""
    values = values_of(kind, 3)
    options = [cv2.IMWRITE_TIFF_COMPRESSION, 5, cv2.IMWRITE_TIFF_PREDICTOR, predictor]
    is_encoded, data = cv2.imencode(".tif", values[..., ::-1], options)
    assert is_encoded
    np.testing.assert_array_equal(shown(data.tobytes()).pixels, expected(values)[0])


@pytest.mark.parametrize("kind", ["u1", "u2", "f4"])
def test_tiff__thumbnail_comes_first(kind: str) -> None:
    """A first page that is a thumbnail is not taken for the image."""
    values = values_of(kind)
    data = written(values, before=values[:6, :8])
    np.testing.assert_array_equal(shown(data).pixels[..., 0], expected(values)[0])
    assert read_size(data, max_pixels=MAX_PIXELS) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("kind", "missing", "named"),
    [
        ("f4", np.nan, None), ("f4", np.inf, None), ("f4", -9999, None), ("f4", -3.4028235e38, None),
        ("f4", -77, "-77"), ("f8", 1e30, "1e30"), ("i2", -9999, None), ("i2", -32768, None), ("u2", 65535, "65535"),
    ],
)  # fmt: skip
def test_tiff__missing_values(kind: str, missing: float, named: str | None) -> None:
    """Values for none are black, and the range is that of the others."""
    values = np.linspace(800, 1200, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(kind)
    low, high = np.percentile(values[10:].astype(float), (2, 98))
    grey = grey_of(values, low, high)
    values[:10], grey[:10] = missing, 0
    tags = [] if named is None else [(42113, "s", len(named) + 1, named, True)]
    image = shown(written(values, extratags=tags))
    assert image.shown == pytest.approx((low, high))
    np.testing.assert_array_equal(image.pixels[..., 2], grey)


@pytest.mark.parametrize("file_format", ["TIFF", "PNG"])
@pytest.mark.parametrize(("top", "is_whole"), [(4095, False), (16383, False), (40000, True)])
def test_range__of_16_bits(file_format: str, top: int, is_whole: bool) -> None:
    """Values of 12 and 14 bits in 16 are shown by their own range, those that use most of 16 bits as they are."""
    values = np.linspace(0, top, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH).astype(np.uint16)
    low, high = (0, 65535) if is_whole else np.percentile(values, (2, 98))
    image = shown(encode(Image.fromarray(values), file_format))
    assert image.shown == (None if is_whole else pytest.approx((low, high)))
    np.testing.assert_array_equal(image.pixels[..., 0], grey_of(values, low, high))


def deep(kind: str, values: Values) -> bytes:
    """Return a file of another format with the values of 16 bits of RGB and opacity, or of as many bands as it has."""
    if kind in ("PGM", "PPM"):
        number, white, bands = (5, 4095, values[..., 0]) if kind == "PGM" else (6, 65535, values[..., :3])
        return f"P{number} {values.shape[1]} {values.shape[0]} {white}\n".encode() + bands.astype(">u2").tobytes()
    if kind == "PNG of grey and opacity":
        parts = (
            (b"IHDR", struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 4, 0, 0, 0)),
            (b"IDAT", zlib.compress(b"".join(b"\0" + row[:, ::3].astype(">u2").tobytes() for row in values))),
            (b"IEND", b""),
        )
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
            for name, content in parts
        )
    suffix, _, of_file = kind.partition(" ")
    order = [2, 1, 0, 3] if of_file == "RGBA" else [2, 1, 0]
    encoded = cv2.imencode(f".{suffix}", values[..., order], [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000])
    return bytes(encoded[1])


@pytest.mark.parametrize("kind", ["png RGB", "png RGBA", "PNG of grey and opacity", "PPM", "PGM", "jp2"])
@pytest.mark.parametrize("fixed", [None, (100.0, 2000.0)])
def test_range__of_other_formats(kind: str, fixed: tuple[float, float] | None) -> None:
    """Values of 12 bits are shown by one range in all formats, in colours too; PGM may say that white is 4,095."""
    random = np.random.default_rng(4)
    values = np.dstack([random.integers(0, 4096 - 400 * band, (70, 90)) for band in range(4)]).astype(np.uint16)
    values[..., 3] = 65535
    values[0, 0, 3] = 0
    image = shown(deep(kind, values), display_range=fixed)
    bands = 1 if kind in ("PGM", "PNG of grey and opacity") else 3
    low, high = fixed or ((0.0, 4095.0) if kind == "PGM" else np.percentile(values[..., :bands], (2, 98)))
    grey = np.broadcast_to(grey_of(values[..., :bands], low, high), image.pixels.shape).copy()
    if kind in ("png RGBA", "PNG of grey and opacity"):
        grey[0, 0] = 255
    np.testing.assert_array_equal(image.pixels, grey)
    assert image.bands == bands
    assert image.shown == (None if kind == "PGM" and fixed is None else pytest.approx((low, high)))


def test_range__of_12_packed_bits() -> None:
    """Two values in three bytes are shown as 12 bits in 16 are."""
    values = np.linspace(0, 4095, HEIGHT * WIDTH).astype(np.uint16)
    first, second = values[::2], values[1::2]
    packed = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], axis=1).astype(np.uint8)
    tags = ((256, WIDTH), (257, HEIGHT), (258, 12), (259, 1), (262, 1), (273, 8), (277, 1), (278, HEIGHT))
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in (*tags, (279, packed.nbytes)))
    head = b"II*\0" + struct.pack("<I", 8 + packed.nbytes)
    image = shown(head + packed.tobytes() + struct.pack("<H", 9) + fields + bytes(4))
    low, high = np.percentile(values, (2, 98))
    np.testing.assert_array_equal(image.pixels[..., 0].ravel(), grey_of(values, low, high))


@pytest.mark.parametrize("file_format", ["TIFF", "PNG"])
def test_range__that_is_fixed(file_format: str) -> None:
    """A fixed range holds for values of more than 8 bits, and for no others."""
    values = values_of("u2")
    image = shown(encode(Image.fromarray(values), file_format), display_range=(1000, 5095))
    np.testing.assert_array_equal(image.pixels[..., 0], grey_of(values, 1000, 5095))
    assert image.shown == (1000.0, 5095.0)
    eight = shown(encode(photo(1, width=40, height=30), file_format), display_range=(1000, 5095))
    np.testing.assert_array_equal(eight.pixels, photo(1, width=40, height=30))
    assert eight.shown is None


@pytest.mark.parametrize("value", [(5, 5), (9, 1), (0,), (0, np.inf), ("0", "9"), 7, (np.nan, 1), (True, 2)])
def test_range__that_is_none(value: Any) -> None:
    """A range is two finite numbers, the smaller one first."""
    with pytest.raises(InvalidInput, match="display_range must be two numbers"):
        checked_range(value)


@pytest.mark.parametrize("kind", ["u2", "i2", "f4"])
def test_range__of_one_value(kind: str) -> None:
    """An image of one value is shown without a warning."""
    image = shown(written(np.full((HEIGHT, WIDTH), 77, kind)))
    assert len(np.unique(image.pixels)) == 1
    assert shown(written(np.full((HEIGHT, WIDTH), np.nan, "f4"))).pixels.max() == 0


def test_tiff__what_is_not_read() -> None:
    """Kinds of values that are not read are named."""
    fault, words = reason(written(values_of("f4").astype("c8")))
    assert (fault, "1 band of 64 bits (complex)" in words) == ("not_supported", True)


@pytest.mark.skipif(HAS_EXTRA, reason="the extra tiff is installed")
def test_tiff__that_needs_the_extra() -> None:
    """The extra is named where it helps."""
    data = written(values_of("u2"))
    place = data.index(struct.pack("<HHII", 259, 3, 1, 1))
    lerc = data[: place + 8] + struct.pack("<I", 34887) + data[place + 12 :]
    assert reason(lerc) == (
        "not_supported",
        "TIFF files with 1 band of 16 bits (unsigned), MINISBLACK, compression LERC, need the extra: "
        "pip install 'framedex[tiff]'",
    )


@pytest.mark.skipif(not HAS_EXTRA, reason="needs the extra tiff")
@pytest.mark.parametrize("compression", ["lerc", "jpegxl", "jpeg2000", "png", "zstd", "lzw"])
def test_tiff__with_the_extra(compression: str) -> None:
    """Rare compressions without loss are read with the extra."""
    values = values_of("u2")
    options = {"level": 0} if compression == "jpeg2000" else {"lossless": True} if compression == "jpegxl" else {}
    image = shown(written(values, compression=compression, compressionargs=options))
    np.testing.assert_array_equal(image.pixels[..., 0], expected(values)[0])


def test_tiff__that_is_damaged() -> None:
    """Strips that are missing are seen, and so is what cannot be unpacked."""
    data = written(values_of("u2"), rowsperstrip=10)
    for file in (data[:-700], written(values_of("u2"), tile=(16, 16))[:-1000]):
        assert "missing or incomplete" in reason(file)[1]
    packed = bytearray(written(values_of("f4"), compression="deflate"))
    packed[-900:-500] = bytes(range(1, 201)) * 2
    assert reason(bytes(packed))[0] == "damaged"


def test_tiff__limits() -> None:
    """The size of an image and that of its values are limited before they are decoded."""
    values = np.zeros((HEIGHT, WIDTH, 60), np.float64)
    data = written(values, planarconfig="contig")
    assert reason(data, max_pixels=1199) == ("over_limit", reason(data, max_pixels=1199)[1])
    assert "30 with 480 bytes a pixel is more than" in reason(data)[1]
    assert decode(data, max_pixels=30_000).width == WIDTH


def test_decode__a_bomb_takes_no_memory() -> None:
    """Of a strip that unpacks to more than the image has, no more than the image is unpacked."""
    body = zlib.compress(bytes(30_000_000), 9)
    tags = {256: 40, 257: 30, 258: 32, 259: 8, 262: 1, 273: 8, 277: 1, 278: 30, 279: len(body), 339: 3}
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    file = b"II*\0" + struct.pack("<I", 8 + len(body)) + body + struct.pack("<H", len(tags)) + fields + bytes(4)
    decode(file, max_pixels=10_000)  # imports
    tracemalloc.start()
    decode(file, max_pixels=10_000)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10_000_000
