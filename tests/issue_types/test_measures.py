"""Measures of quality tell good pictures from bad ones, at any size."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.quality import measure
from framedex.issue_types import find_issue_type, measure_columns
from tests.laws import examples
from tests.pictures import BLACK, RED, WHITE, Pixels, flat, photo

MEASURED = [
    "blur",
    "dark",
    "bright",
    "odd_aspect_ratio",
    "low_information",
    "grayscale",
]


def measured(pixels: Pixels) -> dict[str, float]:
    """Return the measures of a whole picture."""
    values = measure(pixels, width=pixels.shape[1], height=pixels.shape[0])
    return {name: value for name, value in values.items() if value is not None}


def issues_of(pixels: Pixels) -> set[str]:
    """Return the issues of a picture by its own measures."""
    values = measured(pixels)
    found = set()
    for issue in MEASURED:
        rule = find_issue_type(issue)
        assert rule.threshold is not None
        value = values[str(rule.column)]
        if value > rule.threshold if rule.above else value < rule.threshold:
            found.add(issue)
    return found


def blurred(pixels: Pixels, sigma: float) -> Pixels:
    """Return a picture out of focus."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma), dtype=np.uint8)


@pytest.mark.parametrize("seed", range(5))
def test_measure__a_good_picture_has_no_issue(seed: int) -> None:
    """A sharp, well exposed, colourful picture passes."""
    assert issues_of(photo(seed, width=320, height=240)) == set()


@pytest.mark.parametrize("name", ["astronaut", "coffee", "rocket"])
def test_sharpness__falls_with_blur(name: str) -> None:
    """The more a photograph is blurred, the lower its sharpness, from no issue down to one."""
    import skimage.data

    pixels = getattr(skimage.data, name)()
    values = [measured(blurred(pixels, sigma))["sharpness"] for sigma in (0.1, 2, 4, 8, 16, 25)]
    assert values == sorted(values, reverse=True)
    assert "blur" not in issues_of(pixels)
    assert "blur" in issues_of(blurred(pixels, 25))


def test_brightness__dark_and_bright_pictures_are_found() -> None:
    """A picture at a tenth of its light is dark, one washed out is bright, and neither is the other."""
    pixels = photo(2, width=320, height=240)
    assert "dark" in issues_of((pixels * 0.1).astype(np.uint8))
    assert "bright" in issues_of((250 + pixels * 0.02).astype(np.uint8))


def test_brightness__of_plain_colours() -> None:
    """Brightness follows the perceived weight of the colours."""
    assert measured(flat(WHITE))["shadows"] == pytest.approx(1, abs=0.01)
    assert measured(flat(BLACK))["highlights"] == pytest.approx(0, abs=0.01)
    assert measured(flat(RED))["highlights"] == pytest.approx(np.sqrt(0.241), abs=0.01)
    assert measured(flat((128, 128, 128)))["highlights"] == pytest.approx(128 / 255, abs=0.01)


def test_entropy__flat_pictures_hold_no_information() -> None:
    """One colour has the entropy of its channels alone, in a grey file none; noise has the most: log₂ 768 bits."""
    assert measured(flat((90, 90, 90)))["entropy"] == pytest.approx(np.log2(3) / 10, abs=1e-6)
    assert measure(flat((90, 90, 90)), width=9, height=9, bands=1)["entropy"] == 0
    assert "low_information" in issues_of(flat((90, 90, 90)))
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    assert measured(noise)["entropy"] == pytest.approx(np.log2(768) / 10, abs=0.01)


def test_colourfulness__grey_pictures_are_found() -> None:
    """Equal channels mean grey, even with the small differences that JPEG makes; a faint tint does not."""
    grey = np.repeat(photo(3)[..., :1], 3, axis=2)
    assert measured(grey)["colourfulness"] == 0
    noisy = grey.astype(int) + np.random.default_rng(0).integers(0, 2, grey.shape)
    assert "grayscale" in issues_of(np.clip(noisy, 0, 255).astype(np.uint8))
    tinted = np.clip(grey.astype(int) + np.array([12, 0, 0]), 0, 255).astype(np.uint8)
    assert "grayscale" not in issues_of(tinted)


def test_colourfulness__one_coloured_corner_is_not_grey() -> None:
    """A picture that is mostly grey but has a coloured part is a colour picture."""
    pixels = np.repeat(photo(3)[..., :1], 3, axis=2)
    pixels[:30, :40] = RED
    assert "grayscale" not in issues_of(pixels)


def test_aspect_ratio__is_of_the_whole_picture() -> None:
    """The ratio is that of the sizes that were given, which the reduced pixels may only approximate."""
    assert measure(photo(0), width=1000, height=200)["aspect_ratio"] == 0.2
    assert measure(photo(0), width=200, height=1000)["aspect_ratio"] == 0.2
    assert measure(photo(0), width=7, height=7)["aspect_ratio"] == 1


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 5000), (5000, 1), (20, 30_000), (65, 63)]
)
def test_measure__odd_shapes(shape: tuple[int, int]) -> None:
    """The smallest, the thinnest and the longest pictures have finite measures within [0, 1]."""
    for pixels in (photo(4, width=shape[1], height=shape[0]), flat(WHITE, width=shape[1], height=shape[0])):
        values = measured(pixels)
        assert all(isinstance(value, float) and 0 <= value <= 1 for value in values.values()), values
        assert list(values) == measure_columns()


@examples(40)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 1000))
def test_measure__law(width: int, height: int, seed: int) -> None:
    """Whatever the size and the content, each measure lies in [0, 1]."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, int(rng.integers(1, 257)), (height, width, 3), dtype=np.uint8)
    assert all(0 <= value <= 1 for value in measured(pixels).values())


def test_measure__does_not_depend_on_memory_layout() -> None:
    """A view with strides has the measures of its copy."""
    pixels = photo(5, width=320, height=240)[::-1, ::2]
    assert measured(pixels) == measured(np.ascontiguousarray(pixels))
