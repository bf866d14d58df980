"""The descriptors of turned and mirrored images follow from that of the image; borders do not change it much."""

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.encoders.gist import MIRRORED, POSES, Gist, cells, layouts, poses
from framedex.records import DUPLICATE_LEVELS
from tests.image_files import BLACK, WHITE, Pixels, flat, photo
from tests.laws import examples

GIST = Gist()
NEAR = DUPLICATE_LEVELS[0]
Descriptors = npt.NDArray[np.float32]


def vector(pixels: Pixels) -> Descriptors:
    """Return the descriptor of an image: shape (1, 610)."""
    return GIST.encode_images(GIST.prepare(np.ascontiguousarray(pixels))[None])


def posed(values: npt.NDArray[np.generic], pose: int) -> npt.NDArray[np.generic]:
    """Return an image, or another array, in a pose."""
    return np.ascontiguousarray(np.rot90(values[:, ::-1] if pose >= MIRRORED else values, pose % 4))


def pose_after(first: int, second: int) -> int:
    """Return the pose that is the same as two poses one after the other."""
    corners = np.arange(4).reshape(2, 2)
    both = posed(posed(corners, first), second)
    return next(pose for pose in range(POSES) if np.array_equal(posed(corners, pose), both))


@examples(60)
@given(st.integers(0, 30), st.integers(24, 300), st.integers(24, 300), st.integers(0, POSES - 1))
def test_poses__law(seed: int, width: int, height: int, pose: int) -> None:
    """The descriptor of a turned or mirrored image is nearly that pose of its descriptor, and no other pose is as near.

    It is not equal, because the energies of coarse filters are sampled at the upper left of each cell.
    """
    pixels = photo(seed, width=width, height=height)
    scores = poses(vector(pixels))[:, 0] @ vector(posed(pixels, pose).astype(np.uint8))[0]
    assert scores[pose] > 0.92
    assert scores.argmax() == pose


@pytest.mark.parametrize("pose", range(POSES))
@pytest.mark.parametrize("size", [(320, 240), (161, 93)])
def test_poses__layout_and_colours(size: tuple[int, int], pose: int) -> None:
    """The layout of a turned or mirrored image is exact but for rounding; colours, of some pixels, are nearly so."""
    pixels = photo(3, width=size[0], height=size[1])
    found, expected = vector(posed(pixels, pose).astype(np.uint8)), poses(vector(pixels))[pose]
    np.testing.assert_allclose(found[:, 512:576], expected[:, 512:576], atol=2e-3)
    np.testing.assert_allclose(found[:, 576:], expected[:, 576:], atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("pose", range(POSES))
def test_poses__orientations(pose: int) -> None:
    """Stripes at an angle are found at the angle that they have in the pose."""
    rows, columns = np.mgrid[:128, :128]
    for angle in np.pi * np.arange(8) / 8:
        wave = 128 + 100 * np.sin(2 * np.pi * 0.1 * (columns * np.cos(angle) + rows * np.sin(angle)))
        stripes = np.repeat(wave.astype(np.uint8)[..., None], 3, axis=2)
        scores = poses(vector(stripes))[:, 0] @ vector(posed(stripes, pose).astype(np.uint8))[0]
        assert scores[pose] > 0.95


@pytest.mark.parametrize("first", range(POSES))
@pytest.mark.parametrize("second", range(POSES))
def test_poses__one_after_the_other(first: int, second: int) -> None:
    """Two poses, one after the other, are a pose, exactly."""
    some = np.random.default_rng(1).normal(size=(3, GIST.dimension)).astype(np.float32)
    np.testing.assert_array_equal(poses(poses(some)[first])[second], poses(some)[pose_after(first, second)])


def test_poses__keep_all_values() -> None:
    """The first pose is the image as it is; each pose has the same values, so the same length."""
    some = np.random.default_rng(2).normal(size=(5, GIST.dimension)).astype(np.float32)
    found = poses(some)
    assert found.shape == (POSES, 5, GIST.dimension)
    np.testing.assert_array_equal(found[0], some)
    for pose in found:
        np.testing.assert_array_equal(np.sort(pose, axis=1), np.sort(some, axis=1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_poses__shape_and_type(count: int, dtype: type[np.floating]) -> None:
    """Any number of descriptors, including zero, has poses of its own type."""
    found = poses(np.ones((count, GIST.dimension), dtype))
    assert found.shape == (POSES, count, GIST.dimension)
    assert found.dtype == dtype


@pytest.mark.parametrize("colour", [BLACK, WHITE, (200, 30, 90)])
def test_poses__image_without_structure(colour: tuple[int, int, int]) -> None:
    """An image of one colour looks the same in all poses."""
    plain = vector(flat(colour))
    np.testing.assert_allclose(poses(plain), np.broadcast_to(plain, (POSES, *plain.shape)), atol=1e-3)


@pytest.mark.parametrize("pose", range(POSES))
def test_layouts__are_turned_with_the_image(pose: int) -> None:
    """A layout shows luminance by row and column: the bright corner is where it is in the image."""
    pixels = flat((30, 30, 30), width=160, height=120)
    pixels[:30, :40] = 220
    found = layouts(vector(posed(pixels, pose).astype(np.uint8)))
    assert found.shape == (1, 8, 8)
    assert found.mean() == pytest.approx(0, abs=1e-6)
    corner = np.zeros((8, 8), dtype=bool)
    corner[:2, :2] = True
    np.testing.assert_array_equal(found[0] > 0, posed(corner, pose))


def test_layouts__of_no_descriptors() -> None:
    """No descriptors have no layouts."""
    assert layouts(np.empty((0, GIST.dimension), np.float32)).shape == (0, 8, 8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("colour", [BLACK, WHITE, (40, 120, 60)])
@pytest.mark.parametrize("sides", [(40, 40, 0, 0), (0, 0, 60, 60), (30, 30, 30, 30), (0, 80, 0, 0)])
def test_similarity__borders(sides: tuple[int, int, int, int], colour: tuple[int, int, int], seed: int) -> None:
    """An image with uniform borders is a near-duplicate of the image without them."""
    pixels = photo(seed, width=320, height=240)
    framed = np.asarray(cv2.copyMakeBorder(pixels, *sides, cv2.BORDER_CONSTANT, value=colour), dtype=np.uint8)
    assert float(vector(pixels)[0] @ vector(framed)[0]) > NEAR + 0.01


def test_similarity__borders_of_different_images() -> None:
    """Equal borders do not make different images near-duplicates."""
    framed = [
        np.asarray(cv2.copyMakeBorder(photo(seed), 50, 50, 50, 50, cv2.BORDER_CONSTANT, value=WHITE), dtype=np.uint8)
        for seed in range(12)
    ]
    found = np.concatenate([vector(each) for each in framed])
    scores = found @ found.T
    np.fill_diagonal(scores, 0)
    assert scores.max() < NEAR - 0.05


def test_prepare__is_that_of_the_part_within_borders() -> None:
    """An image in a frame and the part of it that is left have the same input."""
    pixels = photo(1)
    framed = np.asarray(cv2.copyMakeBorder(pixels, 50, 50, 50, 50, cv2.BORDER_CONSTANT, value=BLACK), dtype=np.uint8)
    margin = round(0.03 * 120)
    part = np.ascontiguousarray(pixels[margin:-margin, margin:-margin])
    grey = np.asarray(cv2.cvtColor(part, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
    np.testing.assert_array_equal(GIST.prepare(framed), GIST.prepare_within(part, grey))


@pytest.mark.parametrize("seed", range(3))
def test_cells__of_equal_parts(seed: int) -> None:
    """Cells away from a banner are nearly equal, the others are not; all have unit length."""
    pixels = photo(seed, width=256, height=256)
    with_banner = pixels.copy()
    with_banner[224:] = photo(seed + 10, width=256, height=32)
    mine, other = (cells(vector(each))[0] for each in (pixels, with_banner))
    assert mine.shape == (16, 32)
    np.testing.assert_allclose(np.linalg.norm(mine, axis=1), 1, atol=1e-5)
    similarity = (mine * other).sum(axis=1)
    assert similarity[4:8].min() > 0.99
    assert similarity[12:].max() < 0.98


def test_cells__without_structure() -> None:
    """The cells of an image of one colour are 0, and no descriptors have none."""
    assert not cells(vector(np.full((64, 64, 3), 90, np.uint8))).any()
    assert cells(np.empty((0, GIST.dimension), np.float32)).shape == (0, 16, 32)
