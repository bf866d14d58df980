"""Groups of alike rows in an order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.alike_runs import alike_runs
from framedex.core.arrays import Vectors
from tests.laws import examples


def walk(seed: int, count: int, step: float) -> Vectors:
    """Return the unit vectors of a random walk that sometimes jumps, and sometimes stands."""
    random = np.random.default_rng(seed)
    steps = random.normal(0, step, (count, 5)) * random.choice([0, 1, 1, 20], (count, 1))
    places = np.cumsum(steps, axis=0) + random.normal(size=5)
    return np.asarray(places / np.linalg.norm(places, axis=1, keepdims=True), dtype=np.float32)


@examples(80)
@given(st.integers(0, 999), st.integers(0, 600), st.sampled_from([0.01, 0.05, 0.3]), st.sampled_from([0.9, 0.96, 1.0]))
def test_alike_runs__any_two_members_are_alike(seed: int, count: int, step: float, minimum: float) -> None:
    """Any two rows of a group are alike, and no row begins a group although an earlier one could take it."""
    vectors = walk(seed, count, step)
    group, nearest = alike_runs(vectors, minimum)
    similarity = vectors @ vectors.T
    for first in np.unique(group):
        members = np.flatnonzero(group == first)
        assert members[0] == first
        among = similarity[np.ix_(members, members)]
        assert (among[~np.eye(len(members), dtype=bool)] >= minimum - 1e-6).all()
        expected = np.where(np.eye(len(members), dtype=bool), -1, among).max(axis=1)
        np.testing.assert_allclose(nearest[members], expected, atol=1e-6)
        for earlier in np.unique(group[:first]):
            assert similarity[first, :first][group[:first] == earlier].min() < minimum + 1e-6


@examples(40)
@given(st.integers(0, 999), st.integers(1, 700), st.integers(1, 300))
def test_alike_runs__within_a_window(seed: int, count: int, window: int) -> None:
    """A group has no row far after its first one, so each row was compared with all of its group."""
    vectors = walk(seed, count, 0.02)
    group, _ = alike_runs(vectors, 0.95, window=window)
    assert (np.arange(count) - group <= window).all()
    similarity = vectors @ vectors.T
    assert (similarity[group[:, None] == group] >= 0.95 - 1e-6).all()
