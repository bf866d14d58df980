"""Predictions that leave out an item are those of a fit without it."""

import numpy as np
import pytest

from framedex.analysis.linear_head import LinearHead
from tests.analysis.arrays import uniform
from tests.analysis.test_labels import labels_of
from tests.tuning import Tuning

PENALTY = 0.05


@pytest.mark.parametrize("size", [4, 60])
def test_held_out__is_a_fit_without_the_item(size: int, tuning: Tuning) -> None:
    """The prediction for each item, of one label or of several, equals that of ridge regression on all others."""
    tuning.head_penalties, tuning.head_block = (PENALTY,), 7  # type: ignore[assignment] # a constant of one number
    random, vectors = np.random.default_rng(1), uniform(30, size)
    rows = random.permutation(30)[:24]
    items = [random.permutation(3)[: 1 + row % 2].tolist() for row in range(24)]
    labels = labels_of(items, 4)
    found = LinearHead.of(vectors, rows).fit(labels).held_out(labels, np.arange(24))
    x = vectors[rows].astype(np.float64)
    y = np.array([[code in each for code in range(4)] for each in items], np.float64)
    penalty = 24 * PENALTY * x.var(axis=0).sum()
    for row in range(24):
        others = np.arange(24) != row
        mean, target = x[others].mean(axis=0), y[others].mean(axis=0)
        centred = x[others] - mean
        weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(size), centred.T @ (y[others] - target))
        np.testing.assert_allclose(found[row], target + (x[row] - mean) @ weights, atol=1e-4)
