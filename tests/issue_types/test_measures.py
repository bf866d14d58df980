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


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("name", ["astronaut", "coffee", "rocket"])
def test_acutance__falls_with_blur(name: str) -> None:
    """Acutance falls as blur increases, from no issue to an issue."""
    import skimage.data

    pixels = getattr(skimage.data, name)()
    values = [measured(blurred(pixels, sigma))["acutance"] for sigma in (0.1, 2, 4, 8, 16)]
    assert values == sorted(values, reverse=True)
    assert "blur" not in issues_of(pixels)
    for sigma in (4, 8, 16, 25):
        assert "blur" in issues_of(blurred(pixels, sigma))


@pytest.mark.parametrize("name", ["astronaut", "coffee", "rocket"])
def test_acutance__is_not_raised_by_noise_or_frames(name: str) -> None:
    """Noise over a blurred image, and a frame around it, do not hide the blur; neither makes a sharp one blurred."""
    import skimage.data

    pixels, random = getattr(skimage.data, name)(), np.random.default_rng(0)

    def noisy(image: Pixels) -> Pixels:
        return np.asarray(np.clip(image + random.normal(0, 8, image.shape), 0, 255), np.uint8)

    def framed(image: Pixels) -> Pixels:
        return np.asarray(cv2.copyMakeBorder(image, 40, 40, 40, 40, cv2.BORDER_CONSTANT, value=WHITE), np.uint8)

    for change in (noisy, framed):
        assert "blur" not in issues_of(change(pixels))
        assert "blur" in issues_of(change(blurred(pixels, 6)))


def test_acutance__of_detail_in_the_larger_image() -> None:
    """An image that looks soft when reduced, but has fine detail in all directions at full size, is not blurred."""
    soft = blurred(photo(1, width=512, height=512), 12)
    detail = np.random.default_rng(0).normal(0, 3, soft.shape[:2])[..., None]
    grainy = np.asarray(np.clip(soft + detail, 0, 255), np.uint8)
    small = np.asarray(cv2.resize(soft, (256, 256), interpolation=cv2.INTER_AREA), np.uint8)

    def acutance(larger: Pixels) -> float:
        value = measure(small, width=512, height=512, larger=lambda: larger)["acutance"]
        assert value is not None
        return value

    limit = find_issue_type("blur").threshold
    assert limit is not None
    assert acutance(soft) < limit < acutance(grainy)


def test_brightness__dark_and_bright_images_are_found() -> None:
    """An image at a tenth of its brightness is dark, and a washed-out image is bright."""
    pixels = photo(2, width=320, height=240)
    assert "dark" in issues_of((pixels * 0.1).astype(np.uint8))
    assert "bright" in issues_of((250 + pixels * 0.02).astype(np.uint8))


def test_brightness__of_plain_colours() -> None:
    """Brightness follows the perceptual weights of the colours."""
    assert measured(flat(WHITE))["exposure"] == pytest.approx(1, abs=0.01)
    assert measured(flat(BLACK))["exposure"] == pytest.approx(0, abs=0.01)
    assert measured(flat(BLACK))["highlights"] == pytest.approx(0, abs=0.01)
    assert measured(flat(RED))["highlights"] == pytest.approx(np.sqrt(0.241), abs=0.01)
    assert measured(flat((128, 128, 128)))["highlights"] == pytest.approx(128 / 255, abs=0.01)


def test_brightness__pale_images_are_not_overexposed() -> None:
    """A pale scene without shadows, whose brightest parts stay below white, is not bright; with white parts it is."""
    pale = photo(2, width=320, height=240) * 0.3 + 135
    assert "bright" not in issues_of(np.asarray(pale, np.uint8))
    assert "bright" in issues_of(np.asarray(np.clip(pale * 1.3, 0, 255), np.uint8))


def test_brightness__overexposed_images_are_found() -> None:
    """Clipped and washed-out images are bright; a dark thing before a white wall is not, nor is a photo."""
    pixels = photo(2, width=320, height=240)
    assert "bright" in issues_of(np.asarray(np.clip(pixels * 2.5 + 60, 0, 255), np.uint8))
    assert "bright" in issues_of(np.asarray(pixels * 0.2 + 204, np.uint8))
    assert "bright" not in issues_of(pixels)
    wall = flat(WHITE, width=320, height=240).copy()
    wall[80:160, 100:200] = pixels[80:160, 100:200] // 2
    assert "bright" not in issues_of(wall)


def test_information__of_images_without_content() -> None:
    """One colour, with noise or not, gradients and images of almost no contrast have little information."""
    random = np.random.default_rng(0)
    one = flat((90, 90, 90), width=320, height=240)
    gradient = np.repeat(np.linspace(20, 220, 320, dtype=np.uint8)[None, :, None], 240, axis=0).repeat(3, axis=2)
    pixels = photo(1, width=320, height=240)
    faint = np.asarray(pixels.mean() + (pixels - pixels.mean()) * 0.06, np.uint8)
    for empty in (one, np.asarray(one + random.normal(0, 3, one.shape), np.uint8), gradient, faint):
        assert "low_information" in issues_of(empty)
    assert "low_information" not in issues_of(pixels)
    assert measured(one)["information"] == 0


def test_information__of_few_values() -> None:
    """An image of two values is not empty: masks, codes and drawings have no more."""
    board = flat(WHITE, width=320, height=240).copy()
    board[::2] = 0
    text = np.asarray(cv2.resize(board[:24, :32], (320, 240), interpolation=cv2.INTER_NEAREST), np.uint8)
    assert measured(text)["information"] > 0.3


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
