"""Sizes that are unlike the others."""

import numpy as np
import numpy.typing as npt

from framedex.issue_types.size import size_distance


def values_of(*values: float) -> npt.NDArray[np.float32]:
    """Return values of single precision."""
    return np.array(values, dtype=np.float32)


def test_size_distance__usual_sizes_are_near() -> None:
    """Sizes within three times the spread of the quartiles are usual, others odd, small ones too."""
    side = np.array([*np.linspace(900, 1100, 41), 10, 5000], dtype=np.float32)
    odd = size_distance(side, side) > 0.5
    assert np.flatnonzero(odd).tolist() == [41, 42]


def test_size_distance__all_of_one_size() -> None:
    """Where all pictures have one size, none is odd."""
    assert size_distance(np.full(5, 640, np.float32), np.full(5, 480, np.float32)).tolist() == [0] * 5


def test_size_distance__each_other_size_is_odd_where_the_usual_have_one() -> None:
    """Among pictures of one size, the few of another are odd; turning a picture does not change its size."""
    width = values_of(640, 640, 640, 480, 640, 640, 64)
    height = values_of(480, 480, 480, 640, 480, 480, 48)
    assert (size_distance(width, height) > 0.5).tolist() == [False] * 6 + [True]


def test_size_distance__unknown_sizes_are_unknown() -> None:
    """A picture without a size has no distance, and does not disturb the others."""
    found = size_distance(values_of(np.nan, 10, 10), values_of(10, 10, 10))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0, 0]
    assert np.isnan(size_distance(values_of(np.nan), values_of(np.nan))).all()
    assert size_distance(values_of(), values_of()).shape == (0,)


def test_size_distance__very_large_pictures() -> None:
    """The product of large sides does not overflow."""
    side = values_of(2**30, 2**30)
    assert size_distance(side, side).tolist() == [0, 0]
