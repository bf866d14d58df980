"""Means of clusters are the same from stored sums, from sums with added rows, and from sums on request."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.cluster_means import ClusterMeans, cluster_sums
from framedex.analysis.linkage import Labels
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.core.arrays import Vectors
from tests.analysis.arrays import uniform
from tests.laws import examples
from tests.tuning import Tuning, tuned

ONE = CpuProducts(1)
Ints = npt.NDArray[np.int64]


def nested(rows: int, random: np.random.Generator) -> Labels:
    """Return clusters of three levels, with gaps between their numbers."""
    fine = random.integers(0, max(rows // 2, 1), rows) * 3 + 1
    return np.stack([fine, fine // 4, fine // 32], axis=1).astype(np.int32)


def mean(vectors: Vectors, weights: Ints, label: npt.NDArray[np.int32], number: int) -> Vectors:
    """Return the weighted mean of a cluster, by definition."""
    rows = label == number
    return np.average(vectors[rows], axis=0, weights=weights[rows]).astype(np.float32)


@examples(60)
@given(st.integers(1, 120), st.integers(0, 40), st.integers(1, 6), st.floats(0, 1), st.integers(0, 2**16))
def test_of__is_the_mean_with_or_without_stored_sums(known: int, added: int, large: int, few: float, seed: int) -> None:
    """Stored sums, sums with added rows, and sums of rows read one by one or in blocks give the mean of the members."""
    random = np.random.default_rng(seed)
    vectors, labels = uniform(known + added, 5, seed=seed), nested(known + added, random)
    weights = random.integers(1, 4, known + added)
    with tuned() as tuning:
        tuning.stored_mean_rows = large
        tuning.stored_means_share = float(random.choice([0.1, 5]))
        tuning.few_rows_share = few
        tuning.mean_run_rows = 16
        kept = cluster_sums(VectorsInMemory(vectors[:known]), weights[:known], labels[:known], engine=ONE)
        kept = kept.with_rows(vectors[known:], weights[known:], labels[known:])
        means = ClusterMeans(VectorsInMemory(vectors), weights, labels, kept, ONE)
        for level in range(3):
            numbers = np.unique(labels[:, level]).astype(np.int64)
            chosen = numbers[random.random(len(numbers)) < 0.7]
            expected = [mean(vectors, weights, labels[:, level], number) for number in chosen]
            np.testing.assert_allclose(means.of(level, chosen), np.reshape(expected, (-1, 5)), atol=2e-6)


def test_cluster_sums__of_large_clusters(tuning: Tuning) -> None:
    """Sums are stored for clusters with many rows, at each level, up to a share of all rows."""
    sizes = [200, 100, *[1] * 700]
    labels = np.repeat(np.arange(len(sizes)), sizes)[:, None].astype(np.int32).repeat(2, axis=1)
    sums = cluster_sums(VectorsInMemory(uniform(1000, 3)), np.ones(1000, np.int64), labels, engine=ONE)
    assert sums.find(0, np.array([0, 1, 2])).tolist() == [0, 1, -1]
    assert sums.find(1, np.array([0, 1, 2])).tolist() == [2, 3, -1]
    assert sums.weights.tolist() == [200, 100, 200, 100]
    tuning.stored_means_share = 0.0
    tuning.stored_mean_rows = 2
    fewer = cluster_sums(VectorsInMemory(uniform(1000, 3)), np.ones(1000, np.int64), labels, engine=ONE)
    assert fewer.find(0, np.array([0, 1])).tolist() == [0, -1]
    assert len(fewer.keys) == 2


def test_cluster_sums__of_no_rows() -> None:
    """Without rows no sums are stored or found."""
    sums = cluster_sums(VectorsInMemory(uniform(0, 3)), np.empty(0, np.int64), np.empty((0, 5), np.int32), engine=ONE)
    assert len(sums.keys) == 0
    assert sums.find(2, np.array([1, 2])).tolist() == [-1, -1]
