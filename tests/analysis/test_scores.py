"""Uniqueness and outliers follow from the distances to the nearest items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.neighbours import nearest, unique_rows
from framedex.analysis.scores import Scores, neighbour_distances, outlier_values, uniqueness
from tests.analysis.arrays import Vectors, clustered, uniform, unit
from tests.laws import examples


def distances_of(vectors: Vectors) -> Scores:
    """Return distances to the nearest other items, including copies."""
    first, inverse = unique_rows(vectors)
    return neighbour_distances(nearest(vectors[first]), inverse)


def test_distances__copies_come_first() -> None:
    """Exact copies are neighbours at distance zero."""
    base = unit(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    found = distances_of(base[[0, 0, 1, 2]])
    assert found[0, 0] == 0
    assert found[2, 0] == pytest.approx(1)
    assert found[3, 0] == pytest.approx(1)
    assert found.shape[0] == 4


@pytest.mark.parametrize("count", [0, 1])
def test_scores__nothing_to_compare_with(count: int) -> None:
    """A single item has no distances: it is unique and no outlier."""
    distances = distances_of(uniform(count, 4))
    scores, scale = uniqueness(distances)
    assert scores.tolist() == [1] * count
    assert scale == 0
    values, limit = outlier_values(distances)
    assert values.tolist() == [0] * count
    assert limit == np.inf


def test_uniqueness__items_with_a_copy_are_redundant() -> None:
    """An item with a copy has the uniqueness 0, however far the other items are."""
    base = uniform(30, 32)
    scores, _ = uniqueness(distances_of(np.concatenate([base, base[:2]])))
    assert scores[[0, 1, 30, 31]].tolist() == [0, 0, 0, 0]
    assert scores[2:30].min() > 0


def test_uniqueness__only_copies() -> None:
    """In a dataset of copies of one image every uniqueness is 0."""
    scores, scale = uniqueness(distances_of(np.tile(uniform(1, 8), (5000, 1))))
    assert not scores.any()
    assert scale == 0


def test_uniqueness__a_lonely_item_scores_highest() -> None:
    """An item far from all others has the highest uniqueness, and members of a tight group have low values."""
    crowd = clustered(50, 16, centres=1, spread=0.2)
    alone = -crowd[:1]
    scores, _ = uniqueness(distances_of(np.concatenate([crowd, alone])))
    assert scores.argmax() == 50
    assert scores[50] == 1
    assert np.median(scores[:50]) < 0.5


def test_uniqueness__with_an_earlier_scale() -> None:
    """Added items use the earlier scale, so existing values do not change."""
    distances = distances_of(clustered(200, 16))
    scores, scale = uniqueness(distances)
    again, same = uniqueness(distances[:50], scale=scale)
    np.testing.assert_array_equal(again, scores[:50])
    assert same == scale
    halved, _ = uniqueness(distances, scale=2 * scale)
    np.testing.assert_allclose(halved[scores < 1], scores[scores < 1] / 2, atol=1e-6)


@examples(60)
@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**16))
def test_scores__law(count: int, dimension: int, seed: int) -> None:
    """Uniqueness lies in [0, 1] with zero for copies; distances ascend within [0, 2]."""
    vectors = unit(np.random.default_rng(seed).integers(-1, 2, (count, dimension)) + 0.5)
    distances = distances_of(vectors)
    assert np.all(np.diff(distances, axis=1) >= 0)
    assert np.all((distances >= 0) & (distances <= 2))
    scores, scale = uniqueness(distances)
    assert scale >= 0
    assert scores.shape == (count,)
    assert np.all((scores >= 0) & (scores <= 1))
    _, inverse = unique_rows(vectors)
    assert not scores[np.bincount(inverse, minlength=1)[inverse] > 1].any()


def test_outliers__are_beyond_the_fence() -> None:
    """A few items far from a crowd are above the limit, and hardly any items of the crowd are."""
    crowd = clustered(200, 16, centres=1, spread=0.2)
    far = uniform(3, 16, seed=9)
    values, limit = outlier_values(distances_of(np.concatenate([crowd, far])))
    assert np.all(values[200:] > limit)
    assert np.count_nonzero(values[:200] > limit) <= 2


def test_outliers__need_ten_items() -> None:
    """With fewer than ten items no item is an outlier."""
    assert outlier_values(distances_of(uniform(9, 4)))[1] == np.inf
    assert outlier_values(distances_of(uniform(10, 4)))[1] < np.inf


def test_outliers__equal_distances_are_no_outliers() -> None:
    """The limit has a margin, so rounding makes no outliers of equally distant items."""
    values, limit = outlier_values(distances_of(np.eye(20, dtype=np.float32)))
    assert values.max() < limit
