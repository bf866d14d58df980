"""Beside its pixels, a decoded image brings a sample of those that were decoded, for statistics of their values."""

import numpy as np
import pytest
from PIL import Image

from framedex.media.decode import decode
from tests.image_files import encode, flat, oriented, photo, quadrants


@pytest.mark.parametrize("file_format", ["PNG", "JPEG"])
@pytest.mark.parametrize("size", [(1, 1), (128, 128), (129, 50), (640, 480), (3, 1000), (30_000, 20)])
def test_sample__is_small_and_spread_over_the_image(file_format: str, size: tuple[int, int]) -> None:
    """It has at most 128 pixels a side, small images are taken whole."""
    image = decode(encode(photo(1, width=size[0], height=size[1]), file_format), max_pixels=10**7)
    height, width = image.sample.shape[:2]
    assert (height, width) == image.pixels.shape[:2] or max(height, width) <= 128
    assert min(height, width) >= 1
    assert image.sample.dtype == np.uint8


def test_sample__holds_pixels_not_averages() -> None:
    """Every value of the sample is one of the image."""
    bits = np.random.default_rng(0).integers(0, 2, (480, 640, 1), dtype=np.uint8) * np.uint8(255)
    image = decode(encode(np.repeat(bits, 3, axis=2), "PNG"), max_pixels=10**7, detail=100)
    assert set(np.unique(image.sample).tolist()) == {0, 255}
    assert len(np.unique(image.pixels)) > 2


def test_sample__is_upright() -> None:
    """Orientation is applied to the sample too."""
    for file_format in ("JPEG", "PNG"):
        image = decode(oriented(quadrants(width=640, height=320), 6, file_format), max_pixels=10**7, detail=64)
        assert image.sample.shape[0] < image.sample.shape[1] + 64
        assert image.sample[2, 2].tolist() == pytest.approx([255, 0, 0], abs=4)


@pytest.mark.parametrize(
    ("mode", "file_format", "bands"),
    [("L", "JPEG", 1), ("RGB", "JPEG", 3), ("CMYK", "JPEG", 3), ("L", "PNG", 1), ("1", "PNG", 1), ("LA", "PNG", 1),
     ("I;16", "PNG", 1), ("RGB", "PNG", 3), ("P", "PNG", 3), ("RGBA", "PNG", 3), ("F", "TIFF", 1)],
)  # fmt: skip
def test_bands__of_the_file(mode: str, file_format: str, bands: int) -> None:
    """Grey files have one band whatever their depth, all others three."""
    image = Image.fromarray(flat((90, 90, 90)))
    image = Image.fromarray(np.full((48, 64), 9, np.uint16)) if mode == "I;16" else image.convert(mode)
    assert decode(encode(image, file_format), max_pixels=10**7).bands == bands
