"""Files that end early are damaged, with the share that is there; files that lack only their end marker are intact."""

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from framedex.errors import CannotDecode, Fault
from framedex.media.decode import decode, read_size
from tests.image_files import Pixels, encode, flat, oriented, photo, png_claiming, quadrants
from tests.laws import rest_slow
from tests.tuning import Tuning

PHOTO = photo(3, width=320, height=240)
CODED: dict[str, tuple[str, dict[str, Any]]] = {
    "baseline": ("JPEG", {"quality": 95, "subsampling": 0}),
    "subsampled": ("JPEG", {"quality": 90}),
    "progressive": ("JPEG", {"quality": 90, "progressive": True}),
    "restarts": ("JPEG", {"quality": 95, "restart_marker_rows": 1}),
    "grey": ("JPEG", {"quality": 95}),
    "cmyk": ("JPEG", {"quality": 95}),
    "webp": ("WEBP", {"quality": 80}),
    "lossless": ("WEBP", {"lossless": True}),
    "avif": ("AVIF", {"quality": 80}),
    "png": ("PNG", {}),
    "lzw": ("TIFF", {"compression": "tiff_lzw"}),
    "deflate": ("TIFF", {"compression": "tiff_adobe_deflate"}),
    "packbits": ("TIFF", {"compression": "packbits"}),
    "jpeg 2000": ("JPEG2000", {}),
}
MODES = {"grey": "L", "cmyk": "CMYK"}


def coded(name: str, pixels: Pixels = PHOTO) -> bytes:
    """Return a file of an encoder."""
    file_format, options = CODED[name]
    return encode(Image.fromarray(pixels).convert(MODES.get(name, "RGB")), file_format, **options)


def fault_of(data: bytes) -> tuple[Fault, str] | None:
    """Return the kind and the words of the reason why a file is not decoded; None if it is, without damage."""
    try:
        image = decode(data, max_pixels=10**7, detail=64)
    except CannotDecode as error:
        return error.fault, str(error)
    return None if image.damage is None else ("damaged", image.damage)


def chunk(name: bytes, content: bytes, *, wrong: int = 0) -> bytes:
    """Return a chunk of a PNG file, whose checksum may be wrong."""
    checksum = zlib.crc32(name + content) ^ wrong
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def with_chunk(extra: bytes) -> bytes:
    """Return a PNG file with a further chunk after its header."""
    data = coded("png")
    return data[:33] + extra + data[33:]


@pytest.mark.parametrize("name", rest_slow(list(CODED), quick=5))
def test_file__ends_early(name: str) -> None:
    """Wherever a file is cut, whether the rest is missing or zeros, it is damaged."""
    data = coded(name)
    for share in (0.2, 0.5, 0.8, 0.95):
        end = int(len(data) * share)
        for rest in (b"", bytes(len(data) - end)):
            fault = fault_of(data[:end] + rest)
            assert fault is not None, (share, len(rest))
            assert fault[0] == "damaged", (share, len(rest), fault)


@pytest.mark.parametrize("name", ["baseline", "cmyk", "png"])
def test_file__share_of_its_rows(name: str) -> None:
    """The share that is there is that of the rows whose data is there."""
    noise = np.random.default_rng(1).integers(0, 256, (240, 320, 3)).astype(np.uint8)
    data = coded(name, noise)
    for share in (25, 50, 75):
        end = len(data) * share // 100
        for rest in (b"", bytes(len(data) - end)):
            fault = fault_of(data[:end] + rest)
            assert fault is not None
            words = fault[1]
            assert words.startswith("it ends early: "), words
            found = int(words.removeprefix("it ends early: ").partition(" ")[0])
            assert abs(found - share) <= 7, words


def test_jpeg__zeros_in_a_scan() -> None:
    """A progressive file that ends within a scan says that its rows are there, with less detail."""
    data = coded("progressive")
    fault = fault_of(data[: len(data) * 3 // 4])
    assert fault is not None
    assert "100 % of the rows are there, with less detail" in fault[1]


def with_other_version(data: bytes) -> bytes:
    """Return a JPEG whose JFIF header names a version that libjpeg warns of."""
    return data[:11] + b"\x05" + data[12:]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-2],
        lambda data: data[:-1],
        lambda data: data + bytes(1000),
        lambda data: data + b"other" * 100,
        lambda data: data + data,
        with_other_version,
        lambda data: with_other_version(data)[:-2],
    ],
)
@pytest.mark.parametrize("name", ["baseline", "progressive", "cmyk"])
def test_jpeg__intact(name: str, change: Callable[[bytes], bytes]) -> None:
    """A JPEG without its end marker, with data behind it, or of another version, has the pixels of the whole one."""
    data = coded(name)
    image, changed = (decode(each, max_pixels=10**7) for each in (data, change(data)))
    assert changed.damage is None
    assert np.array_equal(image.pixels, changed.pixels)


@pytest.mark.parametrize("side", [8, 64, 512])
def test_jpeg__uniform_without_its_end_marker(side: int) -> None:
    """A uniform image needs the zeros at the end of its data."""
    data = encode(flat((255, 255, 255), width=side, height=side), "JPEG", optimize=True)
    assert fault_of(data[:-2]) is None
    assert fault_of(encode(flat((0, 0, 0), width=side, height=side), "WEBP")) is None


@pytest.mark.parametrize(
    "extra",
    [
        chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(3 * 2**20))),
        chunk(b"iTXt", b"note\0\1\0\0\0" + zlib.compress(bytes(3 * 2**20))),
        chunk(b"tEXt", b"note\0" + b"x" * 2**20) * 70,
        chunk(b"iCCP", b"note\0\0" + zlib.compress(bytes(3 * 2**20))),
        chunk(b"pHYs", bytes(9), wrong=1),
        chunk(b"iCCP", b"note\0\0" + zlib.compress(b"profile"), wrong=1),
        chunk(b"tEXt", b"note\0text", wrong=1),
        *(chunk(name, b"\1") for name in (b"pHYs", b"gAMA", b"cHRM", b"acTL", b"fcTL", b"tRNS", b"iCCP")),
        chunk(b"iCCP", b""),
    ],
    ids=lambda extra: f"{extra[4:8].decode()} of {len(extra)} bytes",
)
def test_png__information_that_cannot_be_read(extra: bytes) -> None:
    """Pixels do not need what a PNG file says beside them."""
    assert np.array_equal(decode(with_chunk(extra), max_pixels=10**7).pixels, PHOTO)


def test_png__ends() -> None:
    """A PNG file without its end, or without the checksums of its pixels, has all of them; wrong pixels are damage."""
    data = coded("png")
    for intact in (data[:-12], data[:-14], data[:-18], data + bytes(500)):
        assert np.array_equal(decode(intact, max_pixels=10**7).pixels, PHOTO)
    wrong = bytearray(data)
    wrong[len(data) // 2] ^= 0x55
    fault = fault_of(bytes(wrong))
    assert fault is not None
    assert fault[0] == "damaged"


def test_tiff__missing_strips() -> None:
    """The share of a TIFF file is that of its strips; a strip has no place, lies beyond the file, or is zeros."""
    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, "TIFF", compression="tiff_lzw", tiffinfo={278: 24})
    data = file.getvalue()
    with Image.open(io.BytesIO(data)) as image:
        offsets, sizes = image.tag_v2[273], image.tag_v2[279]  # type: ignore[attr-defined]
    assert len(offsets) == 10
    filled = bytearray(data)
    for number in (3, 7):
        filled[offsets[number] : offsets[number] + sizes[number]] = bytes(sizes[number])
    assert fault_of(data) is None
    assert fault_of(bytes(filled)) == (
        "damaged", "2 of 10 strips are missing or incomplete: 80 % of the image is there"
    )  # fmt: skip
    without = data.replace(struct.pack("<10I", *offsets), struct.pack("<10I", *offsets[:5], *[0] * 5))
    assert fault_of(without) == (
        "damaged", "5 of 10 strips are missing or incomplete: 50 % of the image is there"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "fault", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "not_supported", "Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>Not Found</body></html>", "not_supported", "an HTML page"),
        (b'{"error": "no"}', "not_supported", "a JSON document"),
        (b"%PDF-1.7\n", "not_supported", "a PDF document"),
        (b"\xff\x0a" + bytes(20), "not_supported", "a JPEG XL image"),
        (b"\0\0\0\x20ftypisom" + bytes(20), "not_supported", "a video"),
        (png_claiming(60_000, 60_000), "over_limit", "FRAMEDEX_MAX_PIXELS"),
        (b"", "damaged", "empty"),
        (bytes(500), "damaged", "only zero bytes"),
        (b"hello", "damaged", "not an image of a supported format"),
        (np.random.default_rng(1).bytes(3000), "damaged", "not an image of a supported format"),
    ],
)
def test_file__kind_of_reason(data: bytes, fault: Fault, words: str) -> None:
    """What is known to be of another kind is named, and not damaged; nor is what a limit forbids."""
    found = fault_of(data)
    assert found is not None
    assert found[0] == fault
    assert words in found[1]


def test_jpeg__of_a_rare_coding() -> None:
    """A JPEG of a coding that decoders do not know is named, and not damaged."""
    data = coded("baseline")
    frame = data.index(b"\xff\xc0")
    assert fault_of(data[: frame + 1] + b"\xc3" + data[frame + 2 :]) == (
        "not_supported", "lossless JPEG of 8 bits is not supported"
    )  # fmt: skip
    assert fault_of(data[: frame + 4] + b"\x0c" + data[frame + 5 :]) == (
        "not_supported", "JPEG of 12 bits is not supported"
    )  # fmt: skip


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_size__without_decoding(file_format: str) -> None:
    """The size of an image is the displayed one."""
    data = oriented(quadrants(), 6, file_format)
    image = decode(data, max_pixels=10**7)
    assert read_size(data, max_pixels=10**7) == (image.width, image.height) == (64, 48)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "I;16", "F"])
def test_large__reduced_in_bands(mode: str, tuning: Tuning) -> None:
    """A large image that is reduced in bands has the pixels of one that is reduced at once."""
    height, width = 400, 416
    tuning.large_image_pixels, tuning.band_pixels = height * width, 10_000
    image = Image.fromarray(cv2.resize(photo(5), (width, height), interpolation=cv2.INTER_LINEAR))
    if mode == "I;16":
        values = np.asarray(image.convert("L")).astype(np.uint16) * 257
        image, file_format = Image.fromarray(values), "PNG"
    elif mode == "F":
        image, file_format = Image.fromarray(np.asarray(image.convert("L")).astype(np.float32) - 20), "TIFF"
    else:
        image, file_format = image.convert(mode), "PNG"
    data = encode(image, file_format)
    tuning.large_image_pixels += 1
    whole, reference = decode(data, max_pixels=10**8).pixels, decode(data, max_pixels=10**8, detail=50)
    tuning.large_image_pixels -= 1
    assert np.array_equal(decode(data, max_pixels=10**8).pixels, whole)
    small = decode(data, max_pixels=10**8, detail=50)
    assert (small.width, small.height) == (width, height)
    assert np.array_equal(small.pixels, reference.pixels)
    assert small.larger is not None
    assert reference.larger is not None
    assert np.array_equal(small.larger(), reference.larger())
    assert small.sample.shape == reference.sample.shape
