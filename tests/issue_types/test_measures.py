"""Quality measures separate good images from bad ones, at any size."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.quality import measure
from framedex.issue_types import find_issue_type, measure_columns
from tests.image_files import BLACK, RED, WHITE, Pixels, flat, photo
from tests.laws import examples

MEASURED = [
    "blur",
    "dark",
    "bright",
    "odd_aspect_ratio",
    "low_information",
    "grayscale",
]


def measured(pixels: Pixels) -> dict[str, float]:
    """Return the measures of an image at full size."""
    values = measure(pixels, width=pixels.shape[1], height=pixels.shape[0])
    return {name: value for name, value in values.items() if value is not None}


def issues_of(pixels: Pixels) -> set[str]:
    """Return the issues of an image from its measures."""
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
    """Return a blurred image."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), sigma), dtype=np.uint8)


@pytest.mark.parametrize("seed", range(5))
def test_measure__a_good_image_has_no_issue(seed: int) -> None:
    """A sharp, well-exposed, colourful image has no issue."""
    assert issues_of(photo(seed, width=320, height=240)) == set()


@pytest.mark.parametrize("name", ["astronaut", "coffee", "rocket"])
def test_sharpness__falls_with_blur(name: str) -> None:
    """Sharpness falls as blur increases, from no issue to an issue."""
    import skimage.data

    pixels = getattr(skimage.data, name)()
    values = [measured(blurred(pixels, sigma))["sharpness"] for sigma in (0.1, 2, 4, 8, 16, 25)]
    assert values == sorted(values, reverse=True)
    assert "blur" not in issues_of(pixels)
    assert "blur" in issues_of(blurred(pixels, 25))


def test_brightness__dark_and_bright_images_are_found() -> None:
    """An image at a tenth of its brightness is dark, and a washed-out image is bright."""
    pixels = photo(2, width=320, height=240)
    assert "dark" in issues_of((pixels * 0.1).astype(np.uint8))
    assert "bright" in issues_of((250 + pixels * 0.02).astype(np.uint8))


def test_brightness__of_plain_colours() -> None:
    """Brightness follows the perceptual weights of the colours."""
    assert measured(flat(WHITE))["shadows"] == pytest.approx(1, abs=0.01)
    assert measured(flat(BLACK))["highlights"] == pytest.approx(0, abs=0.01)
    assert measured(flat(RED))["highlights"] == pytest.approx(np.sqrt(0.241), abs=0.01)
    assert measured(flat((128, 128, 128)))["highlights"] == pytest.approx(128 / 255, abs=0.01)


def test_entropy__plain_images_have_low_information() -> None:
    """A plain colour has the entropy of its channels only, a plain grey file 0, and noise log₂ 768 bits."""
    assert measured(flat((90, 90, 90)))["entropy"] == pytest.approx(np.log2(3) / 10, abs=1e-6)
    assert measure(flat((90, 90, 90)), width=9, height=9, bands=1)["entropy"] == 0
    assert "low_information" in issues_of(flat((90, 90, 90)))
    noise = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    assert measured(noise)["entropy"] == pytest.approx(np.log2(768) / 10, abs=0.01)


def test_colourfulness__grey_images_are_found() -> None:
    """Equal channels are greyscale, even with small differences as from JPEG; a faint tint is not."""
    grey = np.repeat(photo(3)[..., :1], 3, axis=2)
    assert measured(grey)["colourfulness"] == 0
    noisy = grey.astype(int) + np.random.default_rng(0).integers(0, 2, grey.shape)
    assert "grayscale" in issues_of(np.clip(noisy, 0, 255).astype(np.uint8))
    tinted = np.clip(grey.astype(int) + np.array([12, 0, 0]), 0, 255).astype(np.uint8)
    assert "grayscale" not in issues_of(tinted)


def test_colourfulness__one_coloured_corner_is_not_grey() -> None:
    """A mostly grey image with a coloured part is not greyscale."""
    pixels = np.repeat(photo(3)[..., :1], 3, axis=2)
    pixels[:30, :40] = RED
    assert "grayscale" not in issues_of(pixels)


def test_aspect_ratio__of_the_original_size() -> None:
    """The aspect ratio is that of the original size, not of the reduced pixels."""
    assert measure(photo(0), width=1000, height=200)["aspect_ratio"] == 0.2
    assert measure(photo(0), width=200, height=1000)["aspect_ratio"] == 0.2
    assert measure(photo(0), width=7, height=7)["aspect_ratio"] == 1


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 5000), (5000, 1), (20, 30_000), (65, 63)]
)
def test_measure__odd_shapes(shape: tuple[int, int]) -> None:
    """The smallest, thinnest and longest images have finite measures within [0, 1]."""
    for pixels in (photo(4, width=shape[1], height=shape[0]), flat(WHITE, width=shape[1], height=shape[0])):
        values = measured(pixels)
        assert all(isinstance(value, float) and 0 <= value <= 1 for value in values.values()), values
        assert list(values) == measure_columns()


@examples(40)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 1000))
def test_measure__law(width: int, height: int, seed: int) -> None:
    """Each measure is in [0, 1] for any size and content."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, int(rng.integers(1, 257)), (height, width, 3), dtype=np.uint8)
    assert all(0 <= value <= 1 for value in measured(pixels).values())


def test_measure__does_not_depend_on_memory_layout() -> None:
    """A strided view has the measures of its copy."""
    pixels = photo(5, width=320, height=240)[::-1, ::2]
    assert measured(pixels) == measured(np.ascontiguousarray(pixels))
