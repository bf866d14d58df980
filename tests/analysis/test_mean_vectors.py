"""Mean vectors of clusters and their similarities are those of the items, however they are merged and stored."""

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.mean_vectors import MeanVectors
from tests.analysis.arrays import uniform
from tests.tuning import Tuning


@pytest.fixture(autouse=True)
def small_parts(tuning: Tuning) -> None:
    """Make parts of a few rows, so that every operation needs several."""
    tuning.multiplied_bytes = 4 * 8 * 3


def merge(
    clusters: MeanVectors, items: list[set[int]], keep: npt.NDArray[np.int32], gone: npt.NDArray[np.int32]
) -> None:
    """Merge pairs of clusters, and the sets of their items."""
    clusters.merge(keep, gone)
    for one, other in zip(keep.tolist(), gone.tolist(), strict=True):
        items[one] |= items[other]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_mean_vectors__of_merged_clusters(dtype: str) -> None:
    """After several rounds of merges each mean and each product is that of the clusters' items."""
    random = np.random.default_rng(0)
    vectors: npt.NDArray[np.floating] = uniform(64, 8).astype(dtype)
    weights = random.integers(1, 5, len(vectors)).astype(np.float64)
    clusters, items = MeanVectors(vectors, weights), [{row} for row in range(len(vectors))]
    rows = np.arange(len(vectors), dtype=np.int32)
    while len(rows) > 3:
        keep, gone = np.split(random.permutation(rows)[: len(rows) // 4 * 2], 2)
        merge(clusters, items, keep, gone)
        rows = np.setdiff1d(rows, gone)
        members = [sorted(items[row]) for row in rows]
        means = np.stack(
            [np.average(vectors[each].astype(np.float64), axis=0, weights=weights[each]) for each in members]
        )
        np.testing.assert_allclose(clusters.of(rows), means, atol=1e-5)
        np.testing.assert_allclose(clusters.weights[rows], [weights[each].sum() for each in members])
        one, other = (each.ravel() for each in np.indices((len(rows), len(rows))))
        np.testing.assert_allclose(clusters.products(rows[one], rows[other]), (means @ means.T).ravel(), atol=1e-5)


def test_mean_vectors__places_are_used_again_in_the_next_round_only() -> None:
    """The mean of a new cluster does not replace one that a later pair of the same round still needs."""
    vectors = uniform(40, 8)
    clusters, items = MeanVectors(vectors, np.ones(40)), [{row} for row in range(40)]
    rows = np.arange(40, dtype=np.int32)
    merge(clusters, items, rows[:8], rows[8:16])
    keep = np.concatenate([rows[16:28], rows[:4]])  # pairs of single rows come before pairs of merged clusters
    merge(clusters, items, keep, np.concatenate([rows[28:], rows[4:8]]))
    means = np.stack([vectors[sorted(items[row])].mean(axis=0) for row in keep])
    np.testing.assert_allclose(clusters.of(keep), means, atol=1e-6)
