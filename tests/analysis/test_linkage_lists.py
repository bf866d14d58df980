"""Merging by neighbour lists gives the clusters of all distances, in any order of the rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis import linkage, reciprocal
from framedex.analysis.linkage import Labels, average_linkage, number_by_first_row
from framedex.analysis.mean_vectors import Means
from framedex.analysis.near_clusters import Ints
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest
from framedex.analysis.products import CpuProducts
from framedex.analysis.reciprocal import ClusterLists, Search, search_in_memory
from framedex.core.progress import ShareProgress
from tests.analysis.arrays import Vectors, clustered, mapped, pair_f1, reference_clusters, same_partition, uniform, unit
from tests.laws import examples, rest_slow
from tests.tuning import Tuning, tuned

CUTS = (0.05, 0.12, 0.3, 0.6, 0.9)
ONE = CpuProducts(1)  # for few rows it is quicker without threads


@pytest.fixture(autouse=True, scope="module", params=["few", "many"])
def searching(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let clusters search as where there are few, and as where there are many."""
    with tuned() as tuning:
        if request.param == "many":
            tuning.choosing_clusters = 0
        yield


def clusters(
    vectors: npt.NDArray[np.floating],
    *,
    k: int = 20,
    cuts: Sequence[float] = CUTS,
    weights: npt.NDArray[np.int64] | None = None,
    **options: Any,
) -> Labels:
    """Return the clusters by neighbour lists, by default of rows with the weight 1."""
    if weights is None:
        weights = np.ones(len(vectors), np.int64)
    return average_linkage(
        vectors, weights, nearest(vectors, k=k, engine=ONE), cuts, **{"dense_rows": 20, "engine": ONE, **options}
    )


def assert_nested(found: Labels) -> None:
    """Check that clusters are numbered by their first rows, and that each lies within one of the next level."""
    for column in found.T:
        np.testing.assert_array_equal(column, number_by_first_row(column))
    for fine, coarse in zip(found.T, found.T[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max(initial=-1) + 1


@pytest.mark.slow
def test_lists__are_handed_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share out lists; one thread would read what another is writing if one was handed out twice.

    A search that misses neighbours makes it likely: its own clusters are added to the lists of others.
    """
    choose, asked = ClusterLists._choose, list[int]()

    def checked(lists: ClusterLists, rows: npt.NDArray[np.int32]) -> None:
        assert len(np.unique(rows)) == len(rows)
        choose(lists, rows)

    def missing(*arguments: Any) -> Search:
        search = search_in_memory(*arguments)

        def half(rows: Ints, means: Means, k: int, progress: ShareProgress) -> tuple[Ints, Ints, Vectors]:
            asked.append(len(rows))
            answered, found, similarity = search(rows, means, k, progress)
            found[::2], similarity[::2] = np.roll(found[::2], -1, axis=1), np.roll(similarity[::2], -1, axis=1)
            found[::2, -1], similarity[::2, -1] = -1, -1
            return answered, found, similarity

        return half

    monkeypatch.setattr(ClusterLists, "_choose", checked)
    monkeypatch.setattr(linkage, "search_in_memory", missing)
    clusters(clustered(3000, 16, centres=60, spread=0.5), k=3)
    assert max(asked) > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(clustered(400, 32), id="clustered"),
        pytest.param(clustered(300, 8, seed=2, centres=3, spread=1.5), id="loose"),
        pytest.param(uniform(300, 6), id="uniform"),
        pytest.param(uniform(300, 64, seed=2), id="uniform-high"),
    ],
)
@pytest.mark.parametrize("k", rest_slow([3, 400, 20], 2))
def test_lists__equal_scipy(vectors: Vectors, k: int) -> None:
    """The partition at each cut equals SciPy's, even if lists are short."""
    found = clusters(vectors, k=k)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[:, level], reference_clusters(vectors, cut)), cut


@pytest.mark.slow
def test_lists__weights_stand_for_identical_rows() -> None:
    """Weighted rows give SciPy's clusters of all rows with copies."""
    random = np.random.default_rng(0)
    distinct, weights = clustered(150, 12, centres=6, spread=1.0), random.integers(1, 5, 150)
    found = clusters(distinct, weights=weights)
    every = np.repeat(np.arange(150), weights)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[every, level], reference_clusters(distinct[every], cut)), cut


@pytest.mark.slow
def test_lists__progress_ascends_to_one() -> None:
    """Progress never falls from one round to the next, and ends at one."""
    shares: list[float] = []
    clusters(clustered(500, 8, centres=3, spread=1.5), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


def test_lists__can_be_stopped() -> None:
    """An error raised by progress within a round ends the work."""

    def stop(share: float) -> None:
        if share > 0.3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        clusters(uniform(300, 16), progress=stop)


def test_lists__hub_with_many_neighbours() -> None:
    """A hub joins as many rows as in SciPy if they are near it, and beyond the widest cut from each other."""
    spokes = np.eye(151, dtype=np.float64)
    vectors = unit(0.25 * spokes[:1] + np.sqrt(1 - 0.25**2) * spokes)
    vectors[0] = spokes[0]
    vectors = unit(vectors + 0.003 * np.random.default_rng(0).normal(size=vectors.shape))
    found = clusters(vectors, cuts=[0.5, 0.9])
    assert_nested(found)
    expected = reference_clusters(vectors, 0.9)
    assert same_partition(found[:, 1], expected)


def test_lists__equal_similarities_in_a_ring() -> None:
    """Merging ends for a ring of equally near rows."""
    count = 60
    ring = (np.eye(count) + np.roll(np.eye(count), 1, axis=1))[np.r_[0:count:2, 1:count:2]]
    found = clusters(unit(ring), k=4, cuts=[0.3, 0.9])
    assert_nested(found)
    assert found[:, 0].max() == count - 1
    assert found[:, 1].max() < count / 2


@pytest.mark.slow
def test_lists__rows_along_a_circle() -> None:
    """Rows along a circle, each nearest to the next one, end as one cluster."""
    angles = np.cumsum(np.linspace(0.02, 0.001, 300))
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))[np.random.default_rng(0).permutation(300)]
    found = clusters(vectors, k=2, cuts=[0.001, 2.0])
    assert_nested(found)
    assert not found[:, 1].any()
    assert 10 < found[:, 0].max() < 200


@pytest.mark.slow
def test_lists__equal_vectors_are_one_cluster() -> None:
    """More unmerged copies than a list holds are one cluster at every cut."""
    vectors = np.repeat(uniform(3, 16), 120, axis=0)
    found = clusters(vectors, k=5)
    assert np.all(found.reshape(3, 120, -1) == found[::120, None])
    assert found[:, 0].max() == 2


@pytest.mark.slow
def test_lists__of_half_precision_in_a_file(tmp_path: Path) -> None:
    """Memory-mapped, read-only float16 vectors give the clusters of their values."""
    values = clustered(300, 16).astype(np.float16)
    found = clusters(mapped(tmp_path / "values", values))
    np.testing.assert_array_equal(found, clusters(values.astype(np.float32)))


@examples(60)
@given(
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 10),
    st.integers(0, 2**16),
)
def test_lists__law(count: int, dimension: int, k: int, seed: int) -> None:
    """Clusters are nested with ties, weights and short lists, and no two of them are within a cut."""
    random = np.random.default_rng(seed)
    vectors = unit(random.integers(-2, 3, (count, dimension)) + 0.5)
    weights = random.integers(1, 5, count)
    found = clusters(vectors, k=k, weights=weights, dense_rows=3)
    assert_nested(found)
    for level, cut in enumerate(CUTS):
        labels = found[:, level]
        sums = np.stack([(vectors * weights[:, None])[labels == each].sum(axis=0) for each in range(labels.max() + 1)])
        means = sums / np.bincount(labels, weights)[:, None]
        distances = 1 - means @ means.T
        np.fill_diagonal(distances, np.inf)
        assert distances.min() > cut - 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(clustered(2500, 32, centres=60, spread=0.6), id="clustered"),
        pytest.param(clustered(1500, 16, centres=3, spread=1.5), id="loose"),
        pytest.param(uniform(1500, 12), id="uniform"),
    ],
)
def test_lists__do_not_depend_on_the_order_of_rows(vectors: Vectors) -> None:
    """Rows in another order are in the same clusters at every cut."""
    order = np.random.default_rng(1).permutation(len(vectors))
    found, shuffled = clusters(vectors, dense_rows=100), clusters(vectors[order], dense_rows=100)
    for level, cut in enumerate(CUTS):
        assert same_partition(found[order, level], shuffled[:, level]), cut


@pytest.mark.slow
def test_lists__a_neighbour_that_lists_the_row_is_found() -> None:
    """A row merges with its nearest one, even if only the nearest one lists it."""
    vectors = clustered(300, 16, centres=8, spread=1.0)
    graph = nearest(vectors, k=8, engine=ONE)
    rows, similarity = graph.rows.copy(), graph.similarity.copy()
    one = np.flatnonzero(rows[rows[:, 0], 0] == np.arange(300))[0]
    assert rows[rows[one, 0], 0] == one  # the two are each other's nearest; only the second keeps the first
    rows[one, :-1], similarity[one, :-1] = rows[one, 1:], similarity[one, 1:]
    found = average_linkage(
        vectors, np.ones(300, np.int64), NeighbourGraph(rows, similarity), CUTS, dense_rows=20, engine=ONE
    )
    np.testing.assert_array_equal(found, clusters(vectors))


@pytest.mark.slow
def test_lists__fewer_search_if_those_go_first_that_may_be_merged(
    tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster without structure fewer clusters search, and the clusters are those of all distances."""
    asked: dict[int, int] = {}

    def counting(*arguments: Any) -> Search:
        search = search_in_memory(*arguments)

        def count(rows: Ints, means: Means, k: int, progress: ShareProgress) -> tuple[Ints, Ints, Vectors]:
            asked[reciprocal._MANY] = asked.get(reciprocal._MANY, 0) + len(rows)
            return search(rows, means, k, progress)

        return count

    monkeypatch.setattr(linkage, "search_in_memory", counting)
    vectors = unit(uniform(1, 64) + 0.5 * uniform(3000, 64, seed=1))
    for many in (0, len(vectors) + 1):
        tuning.choosing_clusters = many
        found = clusters(vectors, k=8, cuts=[0.12, 0.3], dense_rows=100)
        assert same_partition(found[:, 0], reference_clusters(vectors, 0.12))
    assert asked[0] < 0.85 * asked[len(vectors) + 1]


@pytest.mark.slow
def test_lists__neighbours_by_cells(tuning: Tuning) -> None:
    """Searches of merged clusters in cells, with other samples, lead to the same clusters."""
    tuning.compared_pairs = 100
    vectors = clustered(3000, 16, centres=40, spread=0.5)
    found = clusters(vectors, dense_rows=100)
    for level, cut in enumerate(CUTS):
        assert pair_f1(found[:, level], clusters(vectors, dense_rows=5000)[:, level]) > 0.999, cut
    assert same_partition(clusters(vectors, dense_rows=100, seed=1)[:, 2], found[:, 2])
