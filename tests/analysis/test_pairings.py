"""Pairs of rows of two sets in the same group."""

import numpy as np

from framedex.analysis.pairings import MOST_PAIRS, closest_pairs, first_pairs
from framedex.core.arrays import Vectors


def test_first_pairs__each_row_of_both_sets() -> None:
    """Equal codes pair, negative ones do not; of a large group each row of both sets keeps some pairs."""
    a, b = first_pairs(np.array([3, -1, 5, 3]), np.array([-1, 3, 7]))
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == [(0, 1), (3, 1)]
    a, b = first_pairs(np.zeros(100, np.int64), np.zeros(300, np.int64))
    assert set(a.tolist()) == set(range(100))
    assert set(b.tolist()) == set(range(300))
    assert len(a) <= 400 * MOST_PAIRS
    assert len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(a)


def test_closest_pairs__the_most_similar_of_each_row() -> None:
    """Of a large group each row of both sets has its most similar rows of the other set, with their similarity."""
    random = np.random.default_rng(0)
    here, there = (np.asarray(random.normal(size=(rows, 8)), np.float32) for rows in (70, 50))
    here, there = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (here, there))
    codes = random.integers(-1, 3, 70), random.integers(-1, 3, 50)

    def vectors(rows: np.ndarray, others: np.ndarray) -> tuple[Vectors, Vectors]:
        return here[rows], there[others]

    a, b, similarity = closest_pairs(*codes, vectors)
    found = dict(zip(zip(a.tolist(), b.tolist(), strict=True), similarity.tolist(), strict=True))
    scores = np.where((codes[0][:, None] == codes[1]) & (codes[0][:, None] >= 0), here @ there.T, -np.inf)
    expected = set()
    for row in range(70):
        expected |= {(row, other) for other in np.argsort(-scores[row])[:MOST_PAIRS].tolist()}
    for other in range(50):
        expected |= {(row, other) for row in np.argsort(-scores[:, other])[:MOST_PAIRS].tolist()}
    assert set(found) == {pair for pair in expected if np.isfinite(scores[pair])}
    assert all(abs(value - scores[pair]) < 1e-5 for pair, value in found.items())
