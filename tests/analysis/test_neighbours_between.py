"""Neighbours of the rows of two sets in the other set."""

import numpy as np
import pytest

from framedex.analysis.neighbours_between import nearest_between
from framedex.core.arrays import Vectors


def unit(vectors: np.ndarray) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def clustered(rows: int, seed: int, centres: Vectors) -> Vectors:
    random = np.random.default_rng(seed)
    near = centres[random.integers(0, len(centres), rows)]
    return unit(near + 0.3 / np.sqrt(centres.shape[1]) * random.normal(size=near.shape))


CENTRES = unit(np.random.default_rng(1).normal(size=(40, 32)))
HERE, THERE = clustered(3000, 2, CENTRES), clustered(2000, 3, CENTRES)


def brute_force(mine: Vectors, others: Vectors, k: int) -> np.ndarray:
    return np.argsort(-(mine @ others.T), axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("exact", [None, True])
def test_nearest_between__equals_brute_force(exact: bool | None) -> None:
    """Few rows are all compared: each row of both sets has its nearest rows of the other set, and no others."""
    graph = nearest_between(HERE[:150], THERE[:90], k=5, recall=0.9, exact=exact)
    assert graph.rows[:150].tolist() == (brute_force(HERE[:150], THERE[:90], 5) + 150).tolist()
    assert graph.rows[150:].tolist() == brute_force(THERE[:90], HERE[:150], 5).tolist()
    vectors = np.concatenate([HERE[:150], THERE[:90]])
    for row in (0, 149, 150, 239):
        assert graph.similarity[row] == pytest.approx(vectors[graph.rows[row]] @ vectors[row], abs=1e-5)


@pytest.mark.slow
def test_nearest_between__by_cells() -> None:
    """Cells find the requested share of the neighbours, and compare a part of all pairs; planted copies are found."""
    there = THERE.copy()
    there[:50] = unit(HERE[100:150] + 0.002 * np.random.default_rng(4).normal(size=(50, 32)))
    graph = nearest_between(HERE, there, k=5, recall=0.9, exact=False)
    true = np.concatenate([brute_force(HERE, there, 5) + len(HERE), brute_force(there, HERE, 5)])
    hits = (graph.rows[:, :, None] == true[:, None, :]).any(axis=2)
    assert hits.mean() >= 0.9
    assert graph.rows[100:150, 0].tolist() == list(range(len(HERE), len(HERE) + 50))
    assert graph.rows[len(HERE) : len(HERE) + 50, 0].tolist() == list(range(100, 150))


def test_nearest_between__small_sets() -> None:
    """Lists end with -1 where the other set is smaller than k; without rows there are no neighbours."""
    graph = nearest_between(HERE[:3], THERE[:2], k=5, recall=0.9)
    assert (graph.rows >= 0).sum(axis=1).tolist() == [2, 2, 2, 3, 3]
    assert nearest_between(HERE[:0], THERE[:2], k=5, recall=0.9).rows.tolist() == [[-1] * 5] * 2
