"""Linking in blocks gives the clusters of linking all rows at once, exactly or within the slack."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis import linkage
from framedex.analysis.linkage import Labels, average_linkage, number_by_first_row
from framedex.analysis.neighbours import nearest
from framedex.analysis.products import CpuProducts
from tests.analysis.arrays import Vectors, clustered, mapped, pair_f1, reference_clusters, same_partition, uniform, unit
from tests.laws import examples

CUTS = (0.05, 0.12, 0.3, 0.6, 0.9)
ONE = CpuProducts(1)  # for few rows it is quicker without threads


def clusters(
    vectors: npt.NDArray[np.floating],
    *,
    k: int = 20,
    cuts: Sequence[float] = CUTS,
    weights: npt.NDArray[np.int64] | None = None,
    block_rows: int = 40,
    **options: Any,
) -> Labels:
    """Return the clusters from small blocks, by default of rows with the weight 1."""
    if weights is None:
        weights = np.ones(len(vectors), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkage, "_BLOCK_ROWS", block_rows)
        return average_linkage(
            vectors, weights, nearest(vectors, k=k, engine=ONE), cuts, **{"dense_rows": 20, "engine": ONE, **options}
        )


def assert_nested(found: Labels) -> None:
    """Check that clusters are numbered by their first rows, and that each lies within one of the next level."""
    for column in found.T:
        np.testing.assert_array_equal(column, number_by_first_row(column))
    for fine, coarse in zip(found.T, found.T[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max(initial=-1) + 1


@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(clustered(400, 32), id="clustered"),
        pytest.param(clustered(300, 8, seed=2, centres=3, spread=1.5), id="loose"),
        pytest.param(uniform(300, 6), id="uniform"),
        pytest.param(uniform(300, 64, seed=2), id="uniform-high"),
    ],
)
@pytest.mark.parametrize("block_rows", [30, 100])
@pytest.mark.parametrize("k", [3, 20, 400])
def test_blocks__without_slack_equal_scipy(vectors: Vectors, block_rows: int, k: int) -> None:
    """Without slack every merge is in the exact order, and the partition at each cut equals SciPy's."""
    found = clusters(vectors, k=k, block_rows=block_rows, slack=0.0)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[:, level], reference_clusters(vectors, cut)), cut


def test_blocks__without_slack_weights_stand_for_identical_rows() -> None:
    """Weighted rows give SciPy's clusters of all rows with copies."""
    random = np.random.default_rng(0)
    distinct, weights = clustered(150, 12, centres=6, spread=1.0), random.integers(1, 5, 150)
    found = clusters(distinct, weights=weights, slack=0.0)
    every = np.repeat(np.arange(150), weights)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[every, level], reference_clusters(distinct[every], cut)), cut


@pytest.mark.parametrize("seed", range(3))
def test_blocks__with_slack_are_nearly_exact(seed: int) -> None:
    """In clustered data, the slack changes few pairs of rows in a common cluster."""
    vectors = clustered(1200, 32, seed=seed, centres=30, spread=0.5)
    found = clusters(vectors, dense_rows=100, block_rows=150)
    assert_nested(found)
    for level, cut in enumerate(CUTS[:-1]):  # at 0.9 the directions of whole clusters decide, by hardly anything
        assert pair_f1(found[:, level], reference_clusters(vectors, cut)) > 0.97, cut


def test_blocks__progress_ascends_to_one() -> None:
    """Progress never falls from one round to the next, and ends at one."""
    shares: list[float] = []
    clusters(clustered(500, 8, centres=3, spread=1.5), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


def test_blocks__can_be_stopped() -> None:
    """An error raised by progress within a round ends the work."""

    def stop(share: float) -> None:
        if share > 0.3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        clusters(uniform(300, 16), progress=stop)


@pytest.mark.parametrize("slack", [0.0, 0.005])
def test_blocks__hub_with_many_neighbours(slack: float) -> None:
    """A hub joins as many rows as in SciPy if they are near it, and beyond the widest cut from each other."""
    spokes = np.eye(151, dtype=np.float64)
    vectors = unit(0.25 * spokes[:1] + np.sqrt(1 - 0.25**2) * spokes)
    vectors[0] = spokes[0]
    vectors = unit(vectors + 0.003 * np.random.default_rng(0).normal(size=vectors.shape))
    found = clusters(vectors, cuts=[0.5, 0.9], slack=slack)
    assert_nested(found)
    expected = reference_clusters(vectors, 0.9)
    assert same_partition(found[:, 1], expected) or slack > 0
    assert abs(len(np.unique(expected)) - found[:, 1].max() - 1) <= 1


@pytest.mark.parametrize("slack", [0.0, 0.005])
def test_blocks__no_two_near_ones_share_a_block(slack: float) -> None:
    """Linking ends for a ring of equally near rows whose neighbours are in different blocks."""
    count = 60
    ring = (np.eye(count) + np.roll(np.eye(count), 1, axis=1))[np.r_[0:count:2, 1:count:2]]
    found = clusters(unit(ring), k=4, cuts=[0.3, 0.9], block_rows=10, slack=slack)
    assert_nested(found)
    assert found[:, 0].max() == count - 1
    assert found[:, 1].max() < count / 2


@pytest.mark.parametrize("slack", [0.0, 0.005])
def test_blocks__that_wait_for_each_other(slack: float) -> None:
    """Rows along a circle that is cut into blocks, each nearest to the next one, end as one cluster."""
    angles = np.cumsum(np.linspace(0.02, 0.001, 300))
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))[np.random.default_rng(0).permutation(300)]
    found = clusters(vectors, k=2, cuts=[0.001, 2.0], slack=slack)
    assert_nested(found)
    assert not found[:, 1].any()
    assert 10 < found[:, 0].max() < 200


@pytest.mark.parametrize("slack", [0.0, 0.005])
def test_blocks__equal_vectors_are_one_cluster(slack: float) -> None:
    """More unmerged copies than one block are one cluster at every cut."""
    vectors = np.repeat(uniform(3, 16), 120, axis=0)
    found = clusters(vectors, k=5, slack=slack)
    assert np.all(found.reshape(3, 120, -1) == found[::120, None])
    assert found[:, 0].max() == 2


def test_blocks__of_half_precision_in_a_file(tmp_path: Path) -> None:
    """Memory-mapped, read-only float16 vectors give the clusters of their values."""
    values = clustered(300, 16).astype(np.float16)
    found = clusters(mapped(tmp_path / "values", values))
    np.testing.assert_array_equal(found, clusters(values.astype(np.float32)))


@examples(60)
@given(
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 10),
    st.integers(2, 12),
    st.sampled_from([0.0, 0.005, 0.3]),
    st.integers(0, 2**16),
)
def test_blocks__law(count: int, dimension: int, k: int, block_rows: int, slack: float, seed: int) -> None:
    """Clusters are nested with ties, weights and tiny blocks; without slack no two of them are within a cut."""
    random = np.random.default_rng(seed)
    vectors = unit(random.integers(-2, 3, (count, dimension)) + 0.5)
    weights = random.integers(1, 5, count)
    found = clusters(vectors, k=k, weights=weights, block_rows=block_rows, dense_rows=3, slack=slack)
    assert_nested(found)
    for level, cut in enumerate(CUTS if slack == 0 else ()):
        labels = found[:, level]
        sums = np.stack([(vectors * weights[:, None])[labels == each].sum(axis=0) for each in range(labels.max() + 1)])
        means = sums / np.bincount(labels, weights)[:, None]
        distances = 1 - means @ means.T
        np.fill_diagonal(distances, np.inf)
        assert distances.min() > cut - 1e-4
