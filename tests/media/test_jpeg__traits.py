"""The facts about the making of a JPEG are read from its header, and of other formats from the decoded file."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from framedex.media.decode import decode
from framedex.media.jpeg import Traits, read_header
from tests.image_files import encode, flat, photo
from tests.laws import examples

MAX_PIXELS = 10**7
PLACES = ((0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (1, 2), (2, 1), (2, 2))
TABLES = b"\xff\xdb"
FRAME = b"\xff\xc0"


def traits_of(data: bytes) -> Traits:
    """Return the traits in the header of a JPEG."""
    header = read_header(data)
    assert header is not None
    return header.traits


def segment(marker: bytes, content: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return marker + struct.pack(">H", len(content) + 2) + content


def with_tables(*tables: bytes) -> bytes:
    """Return the header of a JPEG with segments of quantisation tables, and nothing behind the frame header."""
    frame = segment(FRAME, struct.pack(">BHHB", 8, 48, 64, 3) + b"\x01\x22\x00\x02\x11\x01\x03\x11\x01")
    return b"\xff\xd8" + b"".join(segment(TABLES, each) for each in tables) + frame


def test_steps__by_row_and_column() -> None:
    """The steps are those of low frequencies, by row and column, however the file stores them."""
    table = [(row + 1) * 20 + column for row in range(8) for column in range(8)]
    data = encode(photo(1), "JPEG", qtables=[table, [99] * 64])
    assert traits_of(data).steps == tuple((row + 1) * 20 + column for row, column in PLACES)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize": True}, {"subsampling": 0}])
@pytest.mark.parametrize("quality", [1, 30, 75, 95, 100])
def test_steps__of_any_quality(quality: int, options: dict[str, object]) -> None:
    """Files of any quality and kind have steps, which the decoded image passes on."""
    data = encode(photo(1), "JPEG", quality=quality, **options)
    image = decode(data, max_pixels=MAX_PIXELS)
    assert image.traits == traits_of(data)
    assert len(image.traits.steps) == 8
    assert all(1 <= step <= 255 for step in image.traits.steps)
    assert (max(image.traits.steps) == 1) == (quality == 100)


def test_steps__of_grey_and_print() -> None:
    """Files in grey and in the colours of print have steps, too."""
    image = Image.fromarray(photo(1))
    expected = traits_of(encode(image, "JPEG", quality=60)).steps
    for mode in ("L", "CMYK"):
        assert traits_of(encode(image.convert(mode), "JPEG", quality=60)).steps == expected


def test_steps__of_two_bytes() -> None:
    """Steps above 255 are stored as two bytes."""
    found = traits_of(with_tables(b"\x10" + struct.pack(">64H", *range(300, 364))))
    assert found.steps == (301, 302, 303, 304, 305, 307, 308, 312)


@pytest.mark.parametrize("wide", [False, True])
def test_steps__second_table_first(wide: bool) -> None:
    """The table of brightness is found behind that of colour, in one segment or in two."""
    colour = b"\x11" + bytes(range(128)) if wide else b"\x01" + bytes(range(100, 164))
    brightness = b"\x00" + bytes(range(64))
    for data in (with_tables(colour + brightness), with_tables(colour, brightness), with_tables(brightness, colour)):
        assert traits_of(data).steps == (1, 2, 3, 4, 5, 7, 8, 12)


def test_steps__last_table_counts() -> None:
    """A second table of brightness takes the place of the first one; a damaged one does not."""
    first, second = b"\x00" + bytes([5] * 64), b"\x00" + bytes([9] * 64)
    assert traits_of(with_tables(first, second)).steps == (9,) * 8
    assert traits_of(with_tables(first, second[:40])).steps == (5,) * 8


@pytest.mark.parametrize(
    "tables", [[], [b""], [b"\x01" + bytes([5] * 64)], [b"\x00" + bytes([5] * 63)], [b"\x10" + bytes([5] * 64)]]
)
def test_steps__no_table(tables: list[bytes]) -> None:
    """Without a whole table of brightness, there are no steps."""
    assert traits_of(with_tables(*tables)).steps == ()


@pytest.mark.parametrize(("subsampling", "share"), [(0, 1.0), (1, 0.5), (2, 0.25)])
def test_colour_share__of_a_subsampling(subsampling: int, share: float) -> None:
    """The share of colour values follows from the sampling of the components."""
    assert traits_of(encode(photo(1), "JPEG", subsampling=subsampling)).colour_share == share


def test_colour_share__of_one_or_four_components() -> None:
    """An image in grey has no colour that was left out; in the colours of print, all are kept."""
    for mode in ("L", "CMYK"):
        assert traits_of(encode(Image.fromarray(photo(1)).convert(mode), "JPEG")).colour_share == 1


@pytest.mark.parametrize(
    "components",
    [
        b"",
        b"\x01\x22\x00",
        b"\x01\x00\x00\x02\x11\x01",
        b"\x01\x22\x00\x02\x00\x01",
        b"\x01\x11\x00\x02\x44\x01",
        b"\x01",
    ],
)
def test_colour_share__damaged(components: bytes) -> None:
    """Components that are missing or make no sense count as all colour values."""
    data = b"\xff\xd8" + segment(FRAME, struct.pack(">BHHB", 8, 48, 64, 3) + components)
    header = read_header(data + bytes(16))
    assert header is not None
    assert header.traits.colour_share == 1


@pytest.mark.parametrize(
    ("options", "has_metadata"),
    [
        ({}, False),
        ({"dpi": (72, 72)}, False),
        ({"progressive": True}, False),
        ({"comment": b"some words"}, True),
        ({"icc_profile": bytes(500)}, True),
        ({"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}, True),
    ],
)
def test_has_metadata__of_a_jpeg(options: dict[str, object], has_metadata: bool) -> None:
    """Exif data, profiles and comments are metadata; what every program writes is not."""
    assert traits_of(encode(photo(1), "JPEG", **options)).has_metadata == has_metadata


def test_has_metadata__mark_of_print() -> None:
    """The segment that tells the colours of print is no metadata."""
    data = encode(Image.fromarray(photo(1)).convert("CMYK"), "JPEG")
    assert b"Adobe" in data
    assert not traits_of(data).has_metadata


@pytest.mark.parametrize("file_format", ["PNG", "BMP", "GIF", "TIFF", "PPM"])
def test_traits__of_formats_without_loss(file_format: str) -> None:
    """Other formats have no steps and all of their colour values."""
    found = decode(encode(photo(1), file_format), max_pixels=MAX_PIXELS).traits
    assert (found.steps, found.colour_share, found.is_lossy) == ((), 1.0, False)


@pytest.mark.parametrize(("options", "is_lossy"), [({"quality": 80}, True), ({"lossless": True}, False)])
def test_traits__of_webp(options: dict[str, object], is_lossy: bool) -> None:
    """A WebP is compressed with a loss or without; its steps are not known."""
    found = decode(encode(photo(1), "WEBP", **options), max_pixels=MAX_PIXELS).traits
    assert found == Traits(colour_share=0.25 if is_lossy else 1.0, is_lossy=is_lossy)


@pytest.mark.parametrize("file_format", ["PNG", "WEBP"])
def test_has_metadata__of_other_formats(file_format: str) -> None:
    """Exif data of other formats is metadata, too."""
    exif = Image.Exif()
    exif[0x0110] = "a camera"
    for options, expected in (({}, False), ({"exif": exif.tobytes()}, True)):
        data = encode(photo(1), file_format, **options)
        assert decode(data, max_pixels=MAX_PIXELS).traits.has_metadata == expected


@examples(200)
@given(st.lists(st.binary(max_size=150), max_size=3), st.binary(max_size=12), st.integers(0, 2000))
def test_traits__law(tables: list[bytes], components: bytes, kept: int) -> None:
    """Any tables and components, and any beginning of a file, give valid traits or no header."""
    crafted = with_tables(*tables)
    at = crafted.index(FRAME) + 10 if FRAME in crafted else len(crafted)
    for data in (crafted, crafted[:at] + components, encode(flat((9, 9, 9)), "JPEG", comment=b"a")[:kept]):
        header = read_header(data)
        if header is not None:
            assert len(header.traits.steps) in (0, 8)
            assert 0 < header.traits.colour_share <= 1
            assert not header.traits.is_lossy
