"""Images are resized to the input by one of three rules."""

from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders.onnx_images import fit_image, normalise_image
from tests.image_files import BLUE, GREEN, RED, WHITE, Pixels, flat, photo, quadrants
from tests.laws import examples


def fit(pixels: Pixels, height: int, width: int, resize: Any, *, crop: float = 1.0, fill: int = 114) -> Pixels:
    """Return a resized image."""
    return fit_image(pixels, height, width, resize=resize, crop=crop, fill=fill)


def test_stretch__shows_everything() -> None:
    """All four corners are visible, in other proportions."""
    found = fit(quadrants(width=64, height=48), 20, 20, "stretch")
    assert [tuple(found[y, x]) for y, x in product((2, 17), (2, 17))] == [RED, GREEN, BLUE, WHITE]


def test_crop__shows_the_middle() -> None:
    """Both ends of the longer side are cropped; a smaller fraction crops all sides."""
    wide = flat(RED, width=300, height=100)
    wide[:, 100:200] = GREEN
    for image in (wide, wide.transpose(1, 0, 2)):
        assert (fit(np.ascontiguousarray(image), 10, 10, "crop") == GREEN).all()
    framed = flat(RED, width=100, height=100)
    framed[10:90, 10:90] = GREEN
    assert (fit(framed, 16, 16, "crop", crop=0.8) == GREEN).all()
    assert not (fit(framed, 16, 16, "crop", crop=0.9) == GREEN).all()


def test_letterbox__shows_everything_between_bars() -> None:
    """The whole image is centred in its proportions; the rest has the fill level."""
    found = fit(flat(RED, width=40, height=20), 32, 32, "letterbox", fill=7)
    assert (found[8:24] == RED).all()
    assert (found[:8] == 7).all()
    assert (found[24:] == 7).all()


@pytest.mark.parametrize("resize", ["stretch", "crop", "letterbox"])
def test_size__kept_as_it_is(resize: Any) -> None:
    """An image in the right size is unchanged."""
    pixels = photo(1, width=40, height=40)
    np.testing.assert_array_equal(fit(pixels, 40, 40, resize), pixels)


def test_shrinking__averages() -> None:
    """Sides that shrink are averaged, even if the other side grows; a fine pattern becomes an even grey."""
    stripes = np.zeros((4, 400, 3), np.uint8)
    stripes[:, ::2] = 200
    found = fit(stripes, 40, 40, "stretch")
    assert (found == 100).all()
    np.testing.assert_array_equal(
        fit(photo(2, width=90, height=60), 20, 30, "stretch"),
        cv2.resize(photo(2, width=90, height=60), (30, 20), interpolation=cv2.INTER_AREA),
    )


@examples(60)
@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(["stretch", "crop", "letterbox"]),
    st.floats(0.01, 1),
)
def test_fitted__law(height: int, width: int, rows: int, columns: int, resize: Any, crop: float) -> None:
    """Any image gets any size by any rule; a single colour stays, except for bars."""
    pixels = flat((10, 20, 30), width=width, height=height)
    found = fit(pixels, rows, columns, resize, crop=crop, fill=99)
    assert found.shape == (rows, columns, 3)
    assert found.dtype == np.uint8
    own = (found == (10, 20, 30)).all(axis=2)
    assert own.any()
    assert (own | (found == 99).all(axis=2)).all()
    if resize != "letterbox":
        assert own.all()


@pytest.mark.parametrize("reverse", [False, True])
def test_normalised__as_pixel_by_pixel(reverse: bool) -> None:
    """Values equal those of whole pixels exactly, with the colours in the requested order."""
    pixels, step = photo(3), np.array([0.0171, 0.0175, 1 / 255], np.float32)
    black = np.array([2.1, 0.0, 1.8], np.float32)
    ordered = pixels[:, :, ::-1] if reverse else pixels
    found = normalise_image(pixels, step, black, reverse=reverse)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (ordered * step - black).transpose(2, 0, 1))
