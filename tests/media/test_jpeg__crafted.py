"""JPEGs that were made to take minutes are refused at once; what cameras and programs write is not."""

import io
import struct
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from framedex.errors import CannotDecode
from framedex.media import jpeg
from framedex.media.decode import decode

PIXELS = 178_956_970


def segment(marker: int, content: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def encoded(mode: str, **options: object) -> bytes:
    """Return a small JPEG of noise."""
    shape = (48, 64) if mode == "L" else (48, 64, len(mode))
    pixels, out = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8), io.BytesIO()
    Image.fromarray(pixels, mode).save(out, "JPEG", **options)
    return out.getvalue()


def after_start(data: bytes, more: bytes) -> bytes:
    """Return a JPEG with something put before its header."""
    return data[:2] + more + data[2:]


def before_scan(data: bytes, more: bytes) -> bytes:
    """Return a JPEG with something put between its header and its first scan."""
    at = data.index(b"\xff\xda")
    return data[:at] + more + data[at:]


def progressive(scans: int, side: int) -> bytes:
    """Return a grey image of few bytes, each scan of which passes over all of its blocks."""
    blocks = (-(-side // 8)) ** 2
    runs = "".join(["0" + "1" * 14] * -(-blocks // (2**15 - 1)))  # the longest runs of blocks without a coefficient
    runs += "1" * (-len(runs) % 8)
    coded = int(runs, 2).to_bytes(len(runs) // 8, "big").replace(b"\xff", b"\xff\0")
    return b"".join(
        [
            b"\xff\xd8",
            segment(0xDB, b"\0" + bytes([1] * 64)),
            segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\x01\x11\x00"),
            segment(0xC4, b"\x00" + bytes([1] + [0] * 15) + b"\x00"),
            segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\xe0"),
            segment(0xDA, b"\x01\x01\x00\x00\x00\x00") + bytes(blocks // 8 + 1),
            *[segment(0xDA, b"\x01\x01\x00\x01\x3f\x00") + coded] * (scans - 1),
            b"\xff\xd9",
        ]
    )


CRAFTED: dict[str, tuple[Callable[[], bytes], str]] = {
    "fill bytes alone": (lambda: b"\xff\xd8" + b"\xff" * 2_000_000, "fill bytes"),
    "fill bytes, then an image": (lambda: after_start(encoded("CMYK"), b"\xff" * 2_000_000), "fill bytes"),
    "fill bytes behind the header": (lambda: before_scan(encoded("CMYK"), b"\xff" * 2_000_000), "fill bytes"),
    "empty segments": (lambda: b"\xff\xd8" + b"\xff\xe1\0\2" * 200_000, "segments"),
    "markers without a segment": (lambda: b"\xff\xd8" + b"\xff\xd0" * 200_000, "segments"),
    "Exif in pieces": (lambda: after_start(encoded("CMYK"), segment(0xE1, b"Exif\0\0x") * 100_000), "segments"),
    "zeros alone": (lambda: b"\xff\xd8\xff" + bytes(2_000_000), "bytes between the segments"),
    "coded bytes alone": (lambda: b"\xff\xd8\xff\xe0\0\2" + b"\xff\0" * 1_000_000, "bytes between the segments"),
    "coded bytes behind the header": (
        lambda: before_scan(encoded("CMYK"), b"\xff\0" * 1_000_000),
        "bytes between the segments",
    ),
    "bytes in many places": (
        lambda: b"\xff\xd8" + (segment(0xFE, b"") + bytes(100)) * 20_000,
        "bytes between the segments",
    ),
    "scans": (lambda: progressive(100, 256), "scans"),
    "scans of many pixels": (lambda: progressive(40, 13_000), "scans"),
    "scans behind segments that look like an end": (
        lambda: progressive(100, 256).replace(b"\xff\xda", segment(0xFE, b"\xff\xd9") + b"\xff\xda"),
        "scans",
    ),
    "segments between scans": (
        lambda: progressive(100, 256).replace(b"\xff\xda", segment(0xFE, b"\xff\xda") * 2_000 + b"\xff\xda"),
        "segments between its scans|scans",
    ),
}


@pytest.mark.parametrize("name", list(CRAFTED))
def test_crafted(name: str) -> None:
    """Crafted files are refused before decoding, with the part that there is too much of."""
    make, reason = CRAFTED[name]
    with pytest.raises(CannotDecode, match=f"(at least|more than) .*({reason})"):
        decode(make(), max_pixels=PIXELS, detail=128)


def test_exif_in_many_large_segments() -> None:
    """Megabytes of Exif, which Pillow copies for each segment, are left out of what it gets."""
    data = after_start(encoded("CMYK"), segment(0xE1, b"Exif\0\0" + bytes(65_000)) * 200)
    assert len(jpeg.slimmed(data)) < 80_000
    assert decode(data, max_pixels=PIXELS).width == 64


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("is_progressive", [False, True])
def test_usual__is_decoded(mode: str, is_progressive: bool) -> None:
    """Images as programs write them, with some fill bytes, long metadata and a second image behind, are decoded."""
    data = encoded(mode, progressive=is_progressive)
    more = segment(0xE2, b"ICC_PROFILE\0" + bytes(60_000)) * 50 + b"\xff" * 1000
    trailer = b"\xff\xda" * 1000
    image = decode(after_start(data, more) + trailer, max_pixels=PIXELS)
    assert (image.width, image.height, image.format) == (64, 48, "jpeg")
    assert (image.pixels == decode(data, max_pixels=PIXELS).pixels).all()


def test_slimmed__keeps_pixels_and_orientation() -> None:
    """The removed segments change neither pixels nor orientation, from Exif or XMP."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = encoded("CMYK", exif=exif.tobytes())
    assert decode(turned, max_pixels=PIXELS).width == 48
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation='6'/>"
    for data in (turned, after_start(encoded("CMYK"), segment(0xE1, xmp)), encoded("CMYK", comment="x" * 60_000)):
        with Image.open(io.BytesIO(data)) as whole, Image.open(io.BytesIO(jpeg.slimmed(data))) as slim:
            assert whole.tobytes() == slim.tobytes()
            assert whole.getexif().get(0x0112) == slim.getexif().get(0x0112)


def test_slimmed__damaged_headers() -> None:
    """Bytes that belong to no segment are passed over, as decoders do."""
    data = encoded("CMYK")
    assert (
        decode(after_start(data, b"\xff\0junk"), max_pixels=PIXELS).pixels == decode(data, max_pixels=PIXELS).pixels
    ).all()
    stray = b"\xff\0" * 1000 + bytes(1000) + segment(0xFE, b"a comment") + b"\xff\0\xff\0\1"
    for damaged in (after_start(data, stray), before_scan(data, stray)):
        assert (decode(damaged, max_pixels=PIXELS).pixels == decode(data, max_pixels=PIXELS).pixels).all()
    assert jpeg.slimmed(b"\xff\xd8\xff\xe1") == b"\xff\xd8"
