"""Thumbnails: small JPEGs of whole images."""

import cv2
import numpy as np
import pytest

from framedex.images.thumbnails import thumbnail, verified
from framedex.media.decode import decode
from tests.image_files import photo, quadrants


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (640, 480, (256, 192)),
        (480, 640, (192, 256)),
        (256, 100, (256, 100)),
        (100, 30, (100, 30)),
        (1, 1, (1, 1)),
        (30_000, 20, (256, 1)),
        (3, 3000, (1, 256)),
    ],
)
def test_thumbnail__longer_side(width: int, height: int, expected: tuple[int, int]) -> None:
    """The longer side has at most 256 pixels; small images are not enlarged and thin ones keep a pixel."""
    image = decode(thumbnail(photo(1, width=width, height=height)), max_pixels=10**6)
    assert (image.width, image.height) == expected
    assert image.format == "jpeg"


def test_thumbnail__colours() -> None:
    """A thumbnail has the colours of the image at the same positions."""
    pixels = quadrants(width=640, height=480)
    small = decode(thumbnail(pixels, size=64, quality=95), max_pixels=10**6).pixels
    expected = cv2.resize(pixels, (64, 48), interpolation=cv2.INTER_AREA)
    assert np.abs(small.astype(int) - expected).mean() < 4


def test_thumbnail__strided_array() -> None:
    """An array with strides gives the same thumbnail as a contiguous copy."""
    pixels = photo(2, width=300, height=200)
    assert thumbnail(pixels[::-1, ::2]) == thumbnail(np.ascontiguousarray(pixels[::-1, ::2]))


def test_verified__needs_a_checksum_or_a_whole_jpeg() -> None:
    """A file without a checksum, as older versions wrote it, counts if it can be decoded; two markers alone cannot."""
    jpeg = thumbnail(np.zeros((8, 8, 3), np.uint8))
    assert verified(jpeg) == jpeg
    assert verified(b"\xff\xd8\xff\xd9") is None
    assert verified(b"") is None
