"""The header of a JPEG is read without decoding it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from framedex.media.jpeg import Header, read_header
from tests.image_files import encode, flat, oriented, photo, quadrants
from tests.laws import examples


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"comment": b"\xff\xd9" * 50}, {"icc_profile": bytes(70_000)}]
)
def test_header__size_and_components(options: dict[str, object]) -> None:
    """Size and components are found behind whatever stands before the frame header."""
    assert read_header(encode(photo(1), "JPEG", **options)) == Header(160, 120, 3, 1)


def test_header__grey_and_cmyk() -> None:
    """The number of components tells grey, colour and print."""
    for mode, components in (("L", 1), ("RGB", 3), ("CMYK", 4)):
        header = read_header(encode(Image.fromarray(flat((9, 9, 9))).convert(mode), "JPEG"))
        assert header is not None
        assert header.components == components


@pytest.mark.parametrize("orientation", range(1, 9))
def test_header__orientation(orientation: int) -> None:
    """The orientation is found, and the displayed size follows from it."""
    header = read_header(oriented(quadrants(width=64, height=32), orientation, "JPEG"))
    assert header is not None
    assert header.orientation == orientation
    assert header.displayed_size == (64, 32)


@pytest.mark.parametrize("order", ["II", "MM"])
def test_header__orientation_in_both_byte_orders(order: str) -> None:
    """Exif data of either byte order is read."""
    name = "little" if order == "II" else "big"

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, name)  # type: ignore[arg-type] # one of the two that are allowed

    entry = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(6, 2) + bytes(2)
    exif = b"Exif\0\0" + order.encode() + number(42, 2) + number(8, 4) + number(1, 2) + entry + bytes(4)
    header = read_header(encode(photo(1), "JPEG", exif=exif))
    assert header is not None
    assert header.orientation == 6


def test_header__fill_bytes_are_skipped() -> None:
    """Any number of fill bytes may stand before a marker."""
    data = encode(photo(1), "JPEG")
    assert read_header(data[:2] + b"\xff" * 9 + data[2:]) == read_header(data)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8", b"\xff\xd8\xff", b"\xff\xd8\xff\xd9\0\0", b"\xff\xd8ab\0\0", b"GIF89a"]
)
def test_header__none_where_there_is_none(data: bytes) -> None:
    """Other data and data that ends early have no header."""
    assert read_header(data) is None


@examples(200)
@given(st.binary(max_size=200), st.integers(0, 300))
def test_header__law(tail: bytes, kept: int) -> None:
    """Reading the header of any bytes after the start of a JPEG ends without an unexpected error."""
    for data in (
        b"\xff\xd8" + tail,
        b"\xff\xd8\xff\xe1\0\x40Exif\0\0II*\0" + tail,
        encode(photo(1), "JPEG")[:kept] + tail,
    ):
        header = read_header(data)
        assert header is None or 1 <= header.orientation <= 8
