"""The built-in encoder gives similar vectors to edits of one image, and distant ones to different images."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders import Encoder
from framedex.encoders.gist import Gist
from framedex.media.decode import decode
from framedex.records import DUPLICATE_LEVELS
from tests.image_files import BLACK, BLUE, GREEN, RED, WHITE, Pixels, encode, flat, photo
from tests.laws import examples

GIST = Gist()
NEAR = DUPLICATE_LEVELS[0]


def vectors(*images: Pixels) -> npt.NDArray[np.float32]:
    """Return the vectors of images."""
    return GIST.encode_images(np.stack([GIST.prepare(each) for each in images]))


def similarity(left: Pixels, right: Pixels) -> float:
    """Return the cosine similarity of two images."""
    one, other = vectors(left, right)
    return float(one @ other)


def compressed(pixels: Pixels, file_format: str, quality: int) -> Pixels:
    """Return an image after lossy compression."""
    found: Pixels = decode(encode(pixels, file_format, quality=quality), max_pixels=10**7).pixels
    return found


def resized(pixels: Pixels, factor: float) -> Pixels:
    """Return an image in another size."""
    return np.asarray(cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def brightened(pixels: Pixels, factor: float) -> Pixels:
    """Return an image with another brightness."""
    return np.asarray(np.clip(pixels * factor, 0, 255), dtype=np.uint8)


def test_gist__is_an_encoder() -> None:
    """It satisfies the protocol, with ascending thresholds and the documented length."""
    assert isinstance(GIST, Encoder)
    assert (GIST.name, GIST.dimension) == ("gist", 610)
    assert len(GIST.thresholds) == 5
    assert list(GIST.thresholds) == sorted(set(GIST.thresholds))


def test_vectors__shape_type_and_length() -> None:
    """Vectors are float32 in C order, of unit length, for any number of images, including zero."""
    found = vectors(*(photo(seed) for seed in range(5)))
    assert found.shape == (5, 610)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert GIST.encode_images(np.empty((0, len(GIST.prepare(photo(0)))), np.float32)).shape == (0, 610)


def test_vectors__do_not_depend_on_the_batch() -> None:
    """The vector of an image does not depend on its batch, so copies have equal vectors."""
    prepared = np.stack([GIST.prepare(photo(seed)) for seed in range(33)])
    whole = GIST.encode_images(prepared)
    for size in (1, 2, 7, 32):
        parts = [GIST.encode_images(prepared[start : start + size]) for start in range(0, 33, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_vectors__do_not_depend_on_threads() -> None:
    """Images prepared on several threads have the same vectors."""
    images = [photo(seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as pool:
        prepared = np.stack(list(pool.map(GIST.prepare, images)))
    np.testing.assert_array_equal(GIST.encode_images(prepared), vectors(*images))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda pixels: resized(pixels, 0.5), id="half"),
        pytest.param(lambda pixels: resized(pixels, 2), id="double"),
        pytest.param(lambda pixels: compressed(pixels, "JPEG", 90), id="jpeg90"),
        pytest.param(lambda pixels: compressed(pixels, "JPEG", 30), id="jpeg30"),
        pytest.param(lambda pixels: compressed(pixels, "WEBP", 75), id="webp"),
        pytest.param(lambda pixels: brightened(pixels, 0.8), id="darker"),
        pytest.param(lambda pixels: brightened(pixels, 1.2), id="brighter"),
    ],
)
def test_similarity__edits_are_near(edit: Callable[[Pixels], Pixels], seed: int) -> None:
    """Changes of size, compression and brightness keep an image in its group of near-duplicates."""
    pixels = photo(seed, width=320, height=240)
    assert similarity(pixels, edit(pixels)) > NEAR


def test_similarity__different_images_are_far() -> None:
    """No two of fifty unrelated images are near-duplicates."""
    found = vectors(*(photo(seed) for seed in range(50)))
    scores = found @ found.T
    np.fill_diagonal(scores, 0)
    assert scores.max() < NEAR - 0.05


def test_similarity__reflection_and_rotation_are_other_images() -> None:
    """Reflected and rotated images have other vectors."""
    pixels = photo(3)
    assert similarity(pixels, pixels[:, ::-1]) < NEAR
    assert similarity(pixels, pixels[::-1, ::-1]) < NEAR


def test_flat__colours_and_levels_are_told_apart() -> None:
    """Images without structure differ by brightness and colour, and have finite vectors of unit length."""
    plain = [flat(colour) for colour in (BLACK, WHITE, RED, GREEN, BLUE, (128, 128, 128))]
    found = vectors(*plain)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    scores = found @ found.T
    np.fill_diagonal(scores, -1)
    assert scores.max() < NEAR
    assert scores[0, 1] < 0.1  # black and white
    assert similarity(flat((100, 100, 100)), flat((102, 102, 102))) > NEAR


def test_flat__rounding_is_not_lifted() -> None:
    """Single pixels that differ by one level do not change a plain image much."""
    nearly = flat((90, 90, 90))
    nearly[5::20, 5::20] += 1
    assert similarity(flat((90, 90, 90)), nearly) > NEAR


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (30_000, 20), (2, 3)])
def test_vectors__odd_sizes(size: tuple[int, int]) -> None:
    """The smallest and the longest images have vectors, too."""
    assert np.linalg.norm(vectors(photo(1, width=size[0], height=size[1]))[0]) == pytest.approx(1, abs=1e-6)


@examples(40)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**16))
def test_vectors__law(width: int, height: int, seed: int) -> None:
    """Any pixels give a finite vector of unit length, which is reproducible, also for views with strides."""
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(0, 257, 2).tolist())
    pixels = rng.integers(low, max(high, low + 1), (height, width, 3)).clip(0, 255).astype(np.uint8)
    found = vectors(pixels)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found[0]) == pytest.approx(1, abs=1e-5)
    turned = np.ascontiguousarray(pixels[:, ::-1])[:, ::-1]
    np.testing.assert_array_equal(vectors(turned), found)
