"""The parts of an image that may be images of their own are found and described; plain images have none."""

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.borders import BorderedImage, Box
from framedex.encoders import copy_descriptor
from framedex.encoders.copy_descriptor import (
    DIMENSION,
    describe,
    is_copy_descriptor,
    panels,
    prepare_panels,
    prepare_whole,
)
from framedex.encoders.gist import Gist
from framedex.records import DUPLICATE_LEVELS
from tests.image_files import BLACK, Pixels, flat, photo
from tests.laws import examples

NEAR = DUPLICATE_LEVELS[0]
SEEDS = range(4)


def grey(pixels: Pixels) -> Pixels:
    """Return the greyscale image."""
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def screenshot(pixels: Pixels) -> Pixels:
    """Return a page of 400×500 pixels with lines of text and an image of 320×240 pixels."""
    page = flat((245, 245, 245), width=400, height=500)
    page[120:360, 40:360] = pixels
    for row in (20, 50, 420, 450):
        cv2.putText(page, "some words of text", (20, row), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (30, 30, 30), 2)
    page[[2, 80, 497], :] = 0
    return page


def similarity(described: npt.NDArray[np.float32], pixels: Pixels) -> float:
    """Return the highest similarity of descriptors to that of an image."""
    return float((described @ describe(prepare_whole(BorderedImage(pixels))[None])[0]).max())


def described_panels(pixels: Pixels) -> npt.NDArray[np.float32]:
    """Return the descriptors of the panels of an image, which has some."""
    prepared = prepare_panels(BorderedImage(pixels))
    assert prepared is not None
    return describe(prepared)


def overlap(box: Box, other: Box) -> float:
    """Return the intersection over union of two parts of an image."""

    def area(top: int, left: int, bottom: int, right: int) -> int:
        return max(0, bottom - top) * max(0, right - left)

    common = area(*np.maximum(box[:2], other[:2]).tolist(), *np.minimum(box[2:], other[2:]).tolist())
    return common / (area(*box) + area(*other) - common)


@pytest.mark.parametrize("seed", SEEDS)
def test_panels__photo_in_a_screenshot(seed: int) -> None:
    """The photo in a page is a panel, and its descriptor is that of the photo."""
    pixels = photo(seed, width=320, height=240)
    page = screenshot(pixels)
    assert max(overlap(box, (120, 40, 360, 360)) for box in panels(grey(page))) > 0.95
    assert similarity(described_panels(page), pixels) > NEAR
    assert similarity(describe(prepare_whole(BorderedImage(page))[None]), pixels) < NEAR


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_panels__two_photos(seed: int, axis: int) -> None:
    """Two photos side by side, or one above the other, are two panels; each has the descriptor of its photo."""
    both = [photo(seed, width=320, height=240), photo(seed + 20, width=320, height=240)]
    joined = np.concatenate(both, axis=axis)
    boxes = panels(grey(joined))
    size = (240, 320)
    for number in range(2):
        start = [0, 0]
        start[axis] = number * size[axis]
        expected = (start[0], start[1], start[0] + 240, start[1] + 320)
        assert max(overlap(box, expected) for box in boxes) > 0.97
        assert similarity(described_panels(joined), both[number]) > NEAR


def test_panels__photos_of_different_widths() -> None:
    """A seam need not be in the middle."""
    parts = [photo(1, width=200, height=240), photo(2, width=360, height=240)]
    described = described_panels(np.concatenate(parts, axis=1))
    assert [similarity(described, part) > NEAR for part in parts] == [True, True]


def test_panels__seam_near_an_edge() -> None:
    """A narrow strip at an edge is no panel of its own."""
    parts = [photo(1, width=30, height=240), photo(2, width=360, height=240)]
    assert panels(grey(np.concatenate(parts, axis=1))) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [(320, 240), (160, 120), (100, 400)])
def test_panels__plain_photo(size: tuple[int, int], seed: int) -> None:
    """A photo alone has no panels, in a frame or without."""
    pixels = photo(seed, width=size[0], height=size[1])
    assert panels(grey(pixels)) == []
    assert prepare_panels(BorderedImage(pixels)) is None
    framed = np.asarray(cv2.copyMakeBorder(pixels, 30, 30, 30, 30, cv2.BORDER_CONSTANT, value=BLACK), dtype=np.uint8)
    assert prepare_panels(BorderedImage(framed)) is None


@pytest.mark.parametrize("level", [0, 90, 255])
@pytest.mark.parametrize("size", [(1, 1), (1, 400), (23, 400), (24, 24), (25, 31), (200, 300)])
def test_panels__no_structure(size: tuple[int, int], level: int) -> None:
    """An image of one level has no panels, whatever its size."""
    assert panels(np.full(size, level, np.uint8)) == []


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (23, 500), (500, 23)])
def test_panels__tiny_image(size: tuple[int, int]) -> None:
    """An image that is too small for a panel has none, though it consists of two parts."""
    halves = np.zeros((*size, 3), np.uint8)
    halves[:, size[1] // 2 :] = 255
    assert panels(grey(halves)) == []
    assert prepare_panels(BorderedImage(halves)) is None


def test_prepare_panels__too_narrow() -> None:
    """Parts beside a seam that are too narrow are left out."""
    dark, bright = photo(1, width=20, height=100) // 3, 255 - photo(2, width=50, height=100) // 3
    joined = np.concatenate([dark, bright], axis=1)
    assert len(panels(grey(joined))) == 2
    prepared = prepare_panels(BorderedImage(joined))
    assert prepared is not None
    assert len(prepared) == 1


@examples(100)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 30), st.integers(0, 2**16))
def test_panels__law(height: int, width: int, block: int, seed: int) -> None:
    """Panels of any image lie within it and are not empty; their inputs are as those of an image."""
    rng = np.random.default_rng(seed)
    some = rng.integers(0, 256, (-(-height // block), -(-width // block)), dtype=np.uint8)
    blocks = np.ascontiguousarray(np.kron(some, np.ones((block, block), np.uint8))[:height, :width])
    for top, left, bottom, right in panels(blocks):
        assert 0 <= top < bottom <= height
        assert 0 <= left < right <= width
    prepared = prepare_panels(BorderedImage(np.repeat(blocks[..., None], 3, axis=2)))
    if prepared is not None:
        assert prepared.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(describe(prepared), axis=1), 1, atol=1e-5)


def test_prepare_whole__is_the_input_of_the_built_in_encoder() -> None:
    """A dataset whose encoder is the built-in one needs no further descriptors: they are its embeddings."""
    pixels = photo(5)
    np.testing.assert_array_equal(prepare_whole(BorderedImage(pixels)), Gist().prepare(pixels))
    assert Gist.dimension == DIMENSION
    assert is_copy_descriptor("gist")
    assert not is_copy_descriptor("open-clip:ViT-B-32")


def test_describe__of_nothing() -> None:
    """No inputs have no descriptors."""
    width = len(prepare_whole(BorderedImage(photo(1))))
    assert describe(np.empty((0, width), np.float32)).shape == (0, DIMENSION)


def test_all__is_defined() -> None:
    """All that the module offers is there, the poses of the encoder among it."""
    assert [name for name in copy_descriptor.__all__ if not hasattr(copy_descriptor, name)] == []
