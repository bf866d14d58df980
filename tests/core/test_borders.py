"""Uniform borders are found, and nothing else of an image is cut off but the ripples beside them."""

import io

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from framedex.core.borders import LEAST_SIDE, BorderedImage, Box, cropped, inner_box
from tests.image_files import Pixels, encode, flat, photo
from tests.laws import examples

RIPPLES = 0.03


def texture(height: int, width: int, seed: int = 0) -> Pixels:
    """Return a greyscale image, each row and column of which varies: uint8, shape (height, width)."""
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


def bordered(pixels: Pixels, sides: tuple[int, int, int, int], level: int) -> Pixels:
    """Return an image with a border: pixels at the top, left, bottom and right."""
    top, left, bottom, right = sides
    return np.asarray(
        cv2.copyMakeBorder(pixels, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(level,) * 3), dtype=np.uint8
    )


def whole(grey: Pixels) -> Box:
    """Return the box of a whole image."""
    return (0, 0, grey.shape[0], grey.shape[1])


def within(box: Box, outer: Box, *, at_least: Box | None = None) -> bool:
    """Return whether a box lies in another one, and contains a third one."""
    return (
        all(mine >= other for mine, other in zip(box[:2], outer[:2], strict=True))
        and all(mine <= other for mine, other in zip(box[2:], outer[2:], strict=True))
        and (at_least is None or within(at_least, box))
    )


@pytest.mark.parametrize("size", [(120, 160), (8, 8), (9, 400), (1000, 12)])
def test_inner_box__without_borders(size: tuple[int, int]) -> None:
    """An image without a border is whole, however narrow."""
    grey = texture(*size)
    assert inner_box(grey) == whole(grey)


@pytest.mark.parametrize("level", [0, 255, 128])
@pytest.mark.parametrize(
    "sides",
    [(12, 0, 12, 0), (0, 30, 0, 30), (20, 20, 20, 20), (1, 0, 0, 0), (0, 0, 0, 7), (90, 3, 0, 150)],
    ids=["letterbox", "pillars", "frame", "line", "right", "uneven"],
)
def test_inner_box__borders(sides: tuple[int, int, int, int], level: int) -> None:
    """Borders are cut off to the pixel, and the ripples beside them; sides without a border keep all pixels."""
    grey = bordered(texture(100, 150), sides, level)
    margin = [round(RIPPLES * 100) * (side > 0) for side in sides]
    assert inner_box(grey) == (
        sides[0] + margin[0],
        sides[1] + margin[1],
        sides[0] + 100 - margin[2],
        sides[1] + 150 - margin[3],
    )


def test_inner_box__frame_within_bars() -> None:
    """A frame of another level within bars is cut off, too: its columns are uniform once the bars are gone."""
    framed = bordered(texture(100, 150), (10, 10, 10, 10), 255)
    box = inner_box(bordered(framed, (25, 0, 25, 0), 0))
    assert box == (25 + 10 + 3, 10 + 3, 25 + 110 - 3, 160 - 3)


@pytest.mark.parametrize("quality", [40, 75, 95])
def test_inner_box__borders_within_each_other(quality: int) -> None:
    """A border inside another one is cut off, though compression writes ripples between them."""
    nested = bordered(bordered(texture(200, 300), (40, 0, 40, 0), 0), (30, 30, 30, 30), 255)
    data = encode(np.repeat(nested[..., None], 3, axis=2), "JPEG", quality=quality)
    top, left, bottom, right = inner_box(np.asarray(Image.open(io.BytesIO(data)).convert("L")))
    assert 70 <= top <= 70 + 8 + 20
    assert 30 <= left <= 30 + 8 + 20
    assert 270 - 8 - 20 <= bottom <= 270
    assert 330 - 8 - 20 <= right <= 330


@pytest.mark.parametrize("quality", [40, 75, 95])
@pytest.mark.parametrize("bar", [24, 30, 33])
def test_inner_box__ripples_of_compression(bar: int, quality: int) -> None:
    """After a compression, less than one of its blocks of a bar is left, and little of the image is lost."""
    pixels = bordered(photo(1, width=320, height=240), (bar, bar, bar, bar), 0)
    shown = np.asarray(Image.open(io.BytesIO(encode(pixels, "JPEG", quality=quality))).convert("L"))
    outer = (bar - 7, bar - 7, bar + 247, bar + 327)
    least = (bar + 12, bar + 12, bar + 228, bar + 308)
    assert within(inner_box(shown), outer, at_least=least)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (7, 7), (8, 8), (2, 9), (60, 80)])
@pytest.mark.parametrize("level", [0, 255])
def test_inner_box__uniform_image(size: tuple[int, int], level: int) -> None:
    """An image of one level is all border, so it is left whole."""
    grey = np.full(size, level, np.uint8)
    assert inner_box(grey) == whole(grey)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (7, 100), (100, 7)])
def test_inner_box__too_little_inside(size: tuple[int, int]) -> None:
    """An image is left whole if less than the minimum side lies within its borders."""
    grey = bordered(texture(*size), (20, 20, 20, 20), 0)
    assert inner_box(grey) == whole(grey)


def test_inner_box__smallest_inside() -> None:
    """The smallest part within borders that counts keeps all of its pixels: no ripples are cut off."""
    grey = bordered(texture(LEAST_SIDE, LEAST_SIDE), (20, 20, 20, 20), 0)
    assert inner_box(grey) == (20, 20, 28, 28)


def test_inner_box__uniform_parts_inside() -> None:
    """Uniform rows between varied ones are part of the image."""
    grey = np.full((100, 120), 255, np.uint8)
    grey[20:30, 10:110] = texture(10, 100)
    grey[80:90, 10:110] = texture(10, 100, 1)
    box = inner_box(grey)
    assert within(box, (20, 10, 90, 110), at_least=(23, 13, 87, 107))


def test_inner_box__noise_of_a_border() -> None:
    """A few grey levels of noise are a border; more are a part of the image."""
    rng = np.random.default_rng(5)
    inner = texture(100, 150)
    for spread, is_border in ((6, True), (40, False)):
        grey = rng.integers(60, 60 + spread + 1, (140, 190)).astype(np.uint8)
        grey[20:120, 20:170] = inner
        assert (inner_box(grey) == (23, 23, 117, 167)) == is_border
        assert (inner_box(grey) == whole(grey)) != is_border


BAR = st.integers(0, 25)


@examples(200)
@given(
    st.integers(1, 40), st.integers(1, 40), st.tuples(BAR, BAR, BAR, BAR), st.integers(0, 255), st.integers(0, 2**16)
)
def test_inner_box__law(height: int, width: int, sides: tuple[int, int, int, int], level: int, seed: int) -> None:
    """The box is the whole image or has the minimum side; it is turned and mirrored with the image."""
    inner = texture(height, width, seed) // (1 + seed % 60)
    grey = bordered(inner, sides, level)
    rows, columns = grey.shape
    box = inner_box(grey)
    top, left, bottom, right = box
    assert within(box, whole(grey))
    assert box == whole(grey) or min(bottom - top, right - left) >= LEAST_SIDE
    assert inner_box(np.ascontiguousarray(grey.T)) == (left, top, right, bottom)
    assert inner_box(grey[:, ::-1]) == (top, columns - right, bottom, columns - left)
    assert inner_box(grey[::-1]) == (rows - bottom, left, rows - top, right)


def test_cropped__is_a_view() -> None:
    """A part of an image shares its memory, in grey as in colour."""
    for pixels in (texture(20, 30), photo(1, width=30, height=20)):
        part = cropped(pixels, (2, 3, 12, 25))
        assert part.shape == (10, 22, *pixels.shape[2:])
        assert np.shares_memory(part, pixels)
        np.testing.assert_array_equal(part, pixels[2:12, 3:25])
        np.testing.assert_array_equal(cropped(pixels, (0, 0, 20, 30)), pixels)


def test_bordered_image__parts() -> None:
    """The parts of an image have the same place and size."""
    pixels = photo(2, width=150, height=100)
    image = BorderedImage(bordered(pixels, (20, 20, 20, 20), 0))
    assert image.grey.shape == (140, 190)
    assert image.box == inner_box(image.grey)
    assert within(image.box, (20, 20, 120, 170))
    np.testing.assert_array_equal(image.inner_pixels, cropped(image.pixels, image.box))
    np.testing.assert_array_equal(image.inner_grey, cropped(image.grey, image.box))
    assert image.inner_pixels.shape == (*image.inner_grey.shape, 3)


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (30, 40)])
def test_bordered_image__without_structure(size: tuple[int, int]) -> None:
    """An image of one colour, however small, is its own inner part."""
    image = BorderedImage(flat((0, 0, 0), width=size[1], height=size[0]))
    np.testing.assert_array_equal(image.inner_pixels, image.pixels)
