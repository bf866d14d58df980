"""Odd sizes differ from the usual sizes."""

import numpy as np
import numpy.typing as npt

from framedex.issue_types.size import size_distance


def values_of(*values: float) -> npt.NDArray[np.float32]:
    """Return values as float32."""
    return np.array(values, dtype=np.float32)


def test_size_distance__usual_sizes_are_near() -> None:
    """Sizes within a factor of three of the median are usual; much larger and smaller ones are odd."""
    side = np.array([*np.linspace(900, 1100, 41), 10, 5000], dtype=np.float32)
    odd = size_distance(side, side) > 0.5
    assert np.flatnonzero(odd).tolist() == [41, 42]


def test_size_distance__all_of_one_size() -> None:
    """If all images have the same size, none is odd."""
    assert size_distance(np.full(5, 640, np.float32), np.full(5, 480, np.float32)).tolist() == [0] * 5


def test_size_distance__much_larger_or_smaller_than_equal_sizes() -> None:
    """Among images of one size, those more than three times as large or small are odd; turning changes no size."""
    width = values_of(640, 640, 640, 480, 640, 640, 64, 500, 1800, 2000)
    height = values_of(480, 480, 480, 640, 480, 480, 48, 375, 1350, 1500)
    assert (size_distance(width, height) > 0.5).tolist() == [False] * 6 + [True, False, False, True]


def test_size_distance__few_of_an_ordinary_folder() -> None:
    """Of photos of which half have one size and the rest many others, as collections have, hardly any are odd."""
    random = np.random.default_rng(0)
    long = np.where(random.random(1000) < 0.5, 500, 500 * np.exp(random.normal(0, 0.45, 1000))).astype(np.float32)
    odd = size_distance(long, long * 0.75) > 0.5
    assert odd.mean() <= 0.02


def test_size_distance__unknown_sizes_are_unknown() -> None:
    """An image without a size has no distance, and does not affect the others."""
    found = size_distance(values_of(np.nan, 10, 10), values_of(10, 10, 10))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0, 0]
    assert np.isnan(size_distance(values_of(np.nan), values_of(np.nan))).all()
    assert size_distance(values_of(), values_of()).shape == (0,)


def test_size_distance__very_large_images() -> None:
    """The product of large sides does not overflow."""
    side = values_of(2**30, 2**30)
    assert size_distance(side, side).tolist() == [0, 0]
