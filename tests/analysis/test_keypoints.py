"""A part of an image is found in another one, with its scale and turn; different images share nothing."""

import cv2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.analysis.keypoints import MOST, SIDE, Keypoints, SharedView, find_keypoints, shared_view
from tests.image_files import Pixels, photo
from tests.laws import examples

WIDTH, HEIGHT = 320, 240
SEEDS = range(4)


def grey(seed: int, *, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """Return a greyscale photo."""
    return np.asarray(cv2.cvtColor(photo(seed, width=width, height=height), cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def scaled(image: Pixels, factor: float) -> Pixels:
    """Return an image in another size."""
    method = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, None, fx=factor, fy=factor, interpolation=method), dtype=np.uint8)


def turned(image: Pixels, degrees: float) -> Pixels:
    """Return an image that is turned clockwise about its middle, its corners filled with its reflection."""
    matrix = cv2.getRotationMatrix2D((image.shape[1] / 2, image.shape[0] / 2), -degrees, 1)
    size = (image.shape[1], image.shape[0])
    return np.asarray(cv2.warpAffine(image, matrix, size, borderMode=cv2.BORDER_REFLECT), dtype=np.uint8)


def framed(image: Pixels, sides: int, level: int) -> Pixels:
    """Return an image within a uniform frame."""
    return np.asarray(
        cv2.copyMakeBorder(image, sides, sides, sides, sides, cv2.BORDER_CONSTANT, value=level), dtype=np.uint8
    )


def shared(a: Pixels, b: Pixels) -> SharedView | None:
    """Return the part that two images share."""
    return shared_view(find_keypoints(a), find_keypoints(b))


def assert_shared(a: Pixels, b: Pixels, *, scale: float, turn: float, share: float, other_share: float) -> None:
    """Check what two images share, within the precision of keypoints."""
    view = shared(a, b)
    assert view is not None
    assert view.scale == pytest.approx(scale, rel=0.03)
    assert (view.turn - turn + 180) % 360 - 180 == pytest.approx(0, abs=1)
    assert -180 <= view.turn < 180
    assert view.share == pytest.approx(share, abs=0.03)
    assert view.other_share == pytest.approx(other_share, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_shared_view__crop(seed: int) -> None:
    """A crop is all of itself and a part of the image; it is enlarged to the side in which keypoints are found."""
    image = grey(seed, width=640, height=480)
    part = image[40:440, 80:560]
    share = 400 * 480 / (640 * 480)
    assert_shared(image, part, scale=640 / 480, turn=0, share=share, other_share=1)
    assert_shared(part, image, scale=480 / 640, turn=0, share=1, other_share=share)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("degrees", [5, -5, 30])
def test_shared_view__turned(degrees: int, seed: int) -> None:
    """A turned image is found with the angle, clockwise, and only the corners are missing."""
    image = grey(seed)
    view = shared(image, turned(image, degrees))
    assert view is not None
    assert view.turn == pytest.approx(degrees, abs=1)
    assert view.scale == pytest.approx(1, rel=0.03)
    assert 0.7 < view.share < 0.99
    assert view.other_share == pytest.approx(view.share, abs=0.02)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_shared_view__quarter_turns(quarters: int, seed: int) -> None:
    """An image that is turned by quarters is found with the angle, and is all of the image."""
    image = grey(seed)
    other = np.ascontiguousarray(np.rot90(image, -quarters))
    assert_shared(image, other, scale=1, turn=90 * quarters, share=1, other_share=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factor", [0.4, 0.5, 2.0, 3.3])
def test_shared_view__scaled(factor: float, seed: int) -> None:
    """Sizes above the one in which keypoints are found do not show in the scale; smaller ones do."""
    image = grey(seed)
    assert_shared(image, scaled(image, factor), scale=min(1.0, factor), turn=0, share=1, other_share=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("level", [0, 255])
def test_shared_view__framed(level: int, seed: int) -> None:
    """An image in a frame is found whole; the frame is no part of it, and known as uniform."""
    image = grey(seed)
    inside = framed(image, 40, level)
    share = WIDTH * HEIGHT / inside.size
    assert_shared(image, inside, scale=SIDE / inside.shape[1], turn=0, share=1, other_share=share)
    assert find_keypoints(image).inner == 1
    assert find_keypoints(inside).inner == pytest.approx(share, abs=0.08)


def test_shared_view__is_a_scene_within_another() -> None:
    """A small copy within another image is found with its place."""
    scene, image = grey(8), grey(9)
    scene[60:180, 100:260] = cv2.resize(image, (160, 120), interpolation=cv2.INTER_AREA)
    assert_shared(image, scene, scale=0.5, turn=0, share=1, other_share=0.25)


def test_shared_view__of_an_image_with_itself() -> None:
    """An image shares all with itself."""
    image = grey(3)
    assert_shared(image, image, scale=1, turn=0, share=1, other_share=1)


def test_shared_view__is_reproducible() -> None:
    """The same images give the same result, to the last digit."""
    a, b = find_keypoints(grey(1)), find_keypoints(turned(grey(1), 7))
    first = shared_view(a, b)
    assert first is not None
    assert [shared_view(a, b) for _ in range(3)] == [first] * 3


@pytest.mark.slow
def test_shared_view__different_images() -> None:
    """No two of some unrelated images share a part."""
    found = [find_keypoints(grey(seed)) for seed in range(16)]
    pairs = [(a, b) for a in range(16) for b in range(a)]
    assert [pair for pair in pairs if shared_view(found[pair[0]], found[pair[1]])] == []


def test_shared_view__mirrored_image() -> None:
    """A mirrored image is another one: whoever looks for it mirrors it back first."""
    image = grey(2)
    assert shared(image, np.ascontiguousarray(image[:, ::-1])) is None


@pytest.mark.parametrize("level", [0, 255])
def test_shared_view__equal_frames(level: int) -> None:
    """Equal uniform frames are no copies, if different images are within."""
    assert shared(framed(grey(1), 60, level), framed(grey(2), 60, level)) is None


@pytest.mark.parametrize(
    ("equal", "area", "is_copy"),
    [
        (30, (100, 200, 120, 15), False),  # as a caption
        (30, (100, 120, 100, 60), True),
        (16, (0, 0, WIDTH, HEIGHT), False),  # among 216 in the same part
        (30, (0, 0, WIDTH, HEIGHT), True),
    ],
)
def test_shared_view__equal_keypoints(equal: int, area: tuple[int, int, int, int], is_copy: bool) -> None:
    """Equal keypoints prove a copy if they span enough of the shared part, and are enough of those within."""
    random = np.random.default_rng(1)
    left, top, width, height = area
    places = (random.random((equal, 2)) * (width, height) + (left, top)).astype(np.float32)
    descriptors = random.integers(0, 256, (equal, 32), np.uint8)

    def image() -> Keypoints:
        others = (random.random((200, 2)) * (WIDTH, HEIGHT)).astype(np.float32)
        own = random.integers(0, 256, (200, 32), np.uint8)
        return Keypoints(np.concatenate([places, others]), np.concatenate([descriptors, own]), WIDTH, HEIGHT)

    assert (shared_view(image(), image()) is not None) == is_copy


def test_shared_view__equal_marks() -> None:
    """A small mark, as a date, does not make copies of different images."""
    images = [grey(seed) for seed in (4, 5)]
    for image in images:
        cv2.putText(image, "2031-05-07", (225, 232), cv2.FONT_HERSHEY_SIMPLEX, 0.45, 255, 1)
    assert shared(*images) is None


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (15, 20), (31, 200), (200, 31), (2000, 12)])
def test_find_keypoints__tiny_image(size: tuple[int, int]) -> None:
    """An image with too few pixels has no keypoints, and shares nothing with itself."""
    image = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    found = find_keypoints(image)
    assert found.points.shape == (0, 2)
    assert found.descriptors.shape == (0, 32)
    assert max(found.width, found.height) <= SIDE
    assert min(found.width, found.height) >= 1
    assert shared_view(found, found) is None


@pytest.mark.parametrize("border", [0, 24])
@pytest.mark.parametrize("seed", SEEDS)
def test_shared_view__small_version(seed: int, border: int) -> None:
    """An image of 64 pixels is the whole of its original, also within a border, and no part of another image."""
    image = framed(grey(seed), border, 255)
    small = scaled(image, 64 / image.shape[1])
    view = shared(image, small)
    assert view is not None
    width = min(image.shape[1], SIDE)
    assert view.scale == pytest.approx(64 / width)
    assert (view.turn, view.share, view.other_share) == (0, 1, 1)
    assert (view.box[3], view.other_box) == (width, (0, 0, *small.shape))
    assert shared(framed(grey(seed + 1), border, 255), small) is None
    assert shared(image, np.ascontiguousarray(small[:, ::-1])) is None


def test_shared_view__small_images_without_content() -> None:
    """Small images of one grey, or with a hint of noise, share nothing."""
    random = np.random.default_rng(0)
    for noise in (1, 3):
        flat = random.integers(120, 120 + noise, (48, 64), dtype=np.uint8)
        assert shared(flat, flat) is None


def test_shared_view__large_images_are_not_compared_as_a_whole() -> None:
    """Two large images without keypoints share nothing, though they are equal."""
    gradient = np.repeat(np.linspace(0, 255, 320).astype(np.uint8)[None], 240, axis=0)
    assert shared(gradient, gradient) is None


@pytest.mark.parametrize("level", [0, 77, 255])
def test_find_keypoints__flat_image(level: int) -> None:
    """An image without structure has no keypoints, and shares nothing with any image."""
    plain = find_keypoints(np.full((200, 300), level, np.uint8))
    assert (len(plain.points), len(plain.descriptors), plain.inner) == (0, 0, 1)
    assert shared_view(plain, plain) is None
    assert shared_view(plain, find_keypoints(grey(1))) is None
    assert shared_view(find_keypoints(grey(1)), plain) is None


def test_find_keypoints__lie_within_the_borders() -> None:
    """Keypoints have the coordinates of the whole image, and none lies on its frame, which need not be even."""
    image = grey(1, width=200, height=150)
    uneven = np.asarray(cv2.copyMakeBorder(image, 10, 60, 80, 20, cv2.BORDER_CONSTANT, value=255), dtype=np.uint8)
    found = find_keypoints(uneven)
    assert (found.width, found.height) == (300, 220)
    assert (found.points >= [80, 10]).all()
    assert (found.points < [280, 160]).all()


@examples(60)
@example(95, 116, 8, 225)
@given(st.integers(1, 120), st.integers(1, 120), st.integers(1, 20), st.integers(0, 2**16))
def test_find_keypoints__law(height: int, width: int, block: int, seed: int) -> None:
    """Any image has at most the maximum number of keypoints, all of them within it, one descriptor for each."""
    rng = np.random.default_rng(seed)
    some = rng.integers(0, 256, (-(-height // block), -(-width // block)), dtype=np.uint8)
    found = find_keypoints(np.kron(some, np.ones((block, block), np.uint8))[:height, :width])
    assert found.points.dtype == np.float32
    assert found.descriptors.dtype == np.uint8
    assert len(found.points) == len(found.descriptors) <= MOST
    assert ((found.points >= 0) & (found.points < [found.width, found.height])).all()
    assert 0 < found.inner <= 1
    view = shared_view(found, found)
    assert view is None or view.share == pytest.approx(1, abs=0.05)


@examples(60)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 2**16), st.booleans())
def test_shared_view__law_of_any_keypoints(count: int, other: int, seed: int, on_a_line: bool) -> None:
    """Any keypoints, many at one place or on one line among them, give valid shares or none."""
    rng = np.random.default_rng(seed)

    def keypoints(number: int) -> Keypoints:
        points = rng.integers(0, 320, (number, 2)).astype(np.float32)
        points[:, 1] = 5 if on_a_line else points[:, 1]
        few = rng.integers(0, 256, (4, 32), dtype=np.uint8)
        near = few[rng.integers(0, 4, number)] ^ (rng.random((number, 32)) < 0.1).astype(np.uint8)
        return Keypoints(points, near, 320, 320)

    a, b = keypoints(count), keypoints(other)
    for view in (shared_view(a, b), shared_view(a, a)):
        if view is not None:
            assert not on_a_line
            assert 0 <= view.share <= 1
            assert 0 <= view.other_share <= 1
