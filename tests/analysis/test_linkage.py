"""Clusters are those of sequential average linkage, cut at several distances."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.linkage import Labels, average_linkage, number_by_first_row
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.errors import InvalidInput
from tests.analysis.arrays import Vectors, clustered, reference_clusters, same_partition, uniform, unit
from tests.laws import examples

CUTS = (0.05, 0.12, 0.3, 0.6, 0.9)
ONE = CpuProducts(1)  # for few rows it is quicker without threads


def clusters(
    vectors: Vectors, *, k: int = 20, cuts: Any = CUTS, weights: npt.NDArray[np.int64] | None = None
) -> Labels:
    """Return the clusters of vectors, by default with the weight 1."""
    if weights is None:
        weights = np.ones(len(vectors), np.int64)
    return average_linkage(vectors, weights, nearest(vectors, k=k, engine=ONE), cuts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(clustered(400, 32), id="clustered"),
        pytest.param(clustered(300, 8, seed=1, centres=3, spread=1.5), id="loose"),
        pytest.param(uniform(300, 6), id="uniform"),
        pytest.param(uniform(300, 64, seed=2), id="uniform-high"),
        pytest.param(uniform(200, 2, seed=3), id="circle"),
    ],
)
@pytest.mark.parametrize("k", [2, 20])
def test_average_linkage__equals_scipy(vectors: Vectors, k: int) -> None:
    """At every cut the partition equals SciPy's, whatever the quality of the neighbour graph."""
    found = clusters(vectors, k=k)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[:, level], reference_clusters(vectors, cut)), cut


@pytest.mark.parametrize("seed", range(3))
def test_average_linkage__a_weight_stands_for_identical_rows(seed: int) -> None:
    """Weighted distinct rows give SciPy's clusters of all rows with copies."""
    rng = np.random.default_rng(seed)
    distinct = clustered(120, 12, seed=seed, centres=6, spread=1.0)
    every = distinct[rng.permutation(np.repeat(np.arange(120), rng.integers(1, 6, 120)))]
    first, inverse = unique_rows(every)
    found = clusters(every[first], weights=np.bincount(inverse))[inverse]
    for level, cut in enumerate(CUTS):
        assert same_partition(found[:, level], reference_clusters(every, cut)), cut


@examples(40)
@given(st.integers(2, 120), st.integers(2, 8), st.integers(1, 130), st.integers(0, 2**16))
def test_average_linkage__does_not_depend_on_the_candidates(count: int, dimension: int, k: int, seed: int) -> None:
    """A graph of few neighbours and a complete one lead to the same clusters."""
    vectors = clustered(count, dimension, seed=seed, centres=4, spread=1.0)
    np.testing.assert_array_equal(clusters(vectors, k=k), clusters(vectors, k=count))


@examples(60)
@given(
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(1, 10),
    st.lists(st.floats(0.001, 2), min_size=1, max_size=5, unique=True).map(sorted),
    st.integers(0, 2**16),
)
def test_average_linkage__law(count: int, dimension: int, k: int, cuts: list[float], seed: int) -> None:
    """Clusters are nested, numbered by first rows, and no two remaining clusters are within a cut, even with ties."""
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-2, 3, (count, dimension)) + 0.5)
    weights = rng.integers(1, 5, count)
    found = clusters(vectors, k=k, cuts=cuts, weights=weights)
    for fine, coarse in zip(found.T, found.T[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1
    for level, cut in enumerate(cuts):
        labels = found[:, level]
        np.testing.assert_array_equal(labels, number_by_first_row(labels))
        sums = np.stack([(vectors * weights[:, None])[labels == each].sum(axis=0) for each in range(labels.max() + 1)])
        means = sums / np.bincount(labels, weights)[:, None]
        distances = 1 - means @ means.T
        np.fill_diagonal(distances, np.inf)
        assert distances.min() > cut - 1e-4


@pytest.mark.parametrize("count", [0, 1, 2])
def test_average_linkage__few_rows(count: int) -> None:
    """No rows, one row and two rows can be clustered."""
    vectors = unit(np.array([[1.0, 0.0], [1.0, 0.6]])[:count]) if count else np.zeros((0, 2), np.float32)
    expected = {0: [], 1: [[0] * 5], 2: [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0]]}[count]
    assert clusters(vectors).tolist() == expected


def test_average_linkage__one_dimension() -> None:
    """In one dimension there are at most two clusters, and a cut of 2 joins them."""
    vectors = np.array([[1], [-1], [1], [-1]], np.float32)
    assert clusters(vectors, cuts=[0.1, 1.9, 2.0]).tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0]]


def test_average_linkage__pairs_exactly_at_the_cut_belong_together() -> None:
    """A distance equal to the cut is within it, despite rounding."""
    vectors = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert clusters(vectors, cuts=[0.39, 0.4]).tolist() == [[0, 0], [1, 0]]


def test_average_linkage__thousands_of_copies_are_one_cluster() -> None:
    """Copies of one vector are one row with that weight."""
    vectors = np.tile(uniform(1, 32), (5000, 1))
    first, inverse = unique_rows(vectors)
    assert len(first) == 1
    assert not clusters(vectors[first], weights=np.bincount(inverse))[inverse].any()


def test_average_linkage__unmerged_copies_are_one_cluster_as_well() -> None:
    """Equal vectors are one cluster, even if they were not merged into one row."""
    assert not clusters(np.tile(uniform(1, 8), (300, 1))).any()


@pytest.mark.parametrize(
    "cuts", [[], [0.0, 0.1], [0.1, 0.1], [0.2, 0.1], [-0.1, 0.2], [0.1, 2.5], [float("nan")], [0.1, float("nan")]]
)
def test_average_linkage__cuts_must_ascend(cuts: list[float]) -> None:
    """Cuts out of order or outside of the range of distances are refused."""
    with pytest.raises(InvalidInput, match="ascending cosine distances in"):
        clusters(uniform(4, 3), cuts=cuts)


def test_average_linkage__can_be_stopped() -> None:
    """An error raised by progress ends the work."""

    def stop(share: float) -> None:
        raise InterruptedError(f"at {share}")

    vectors = clustered(100, 8)
    with pytest.raises(InterruptedError, match="at 0"):
        average_linkage(vectors, np.ones(100, np.int64), nearest(vectors), CUTS, progress=stop)


def test_number_by_first_row__keeps_the_partition() -> None:
    """Clusters are numbered in order of first appearance."""
    assert number_by_first_row(np.array([7, 3, 7, 9, 3])).tolist() == [0, 1, 0, 2, 1]
    assert number_by_first_row(np.array([], dtype=np.int64)).tolist() == []
