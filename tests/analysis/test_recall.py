"""The neighbour graph by cells has nearly all true neighbours, and is valid otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.neighbours import nearest
from framedex.analysis.products import CpuProducts
from tests.analysis.arrays import Vectors, assert_sound, clustered, crowd, recall_of, uniform, unit
from tests.laws import examples, rest_slow
from tests.tuning import Tuning, tuned

CLUSTERED = clustered(6000, 32, centres=60, spread=0.6)
UNIFORM = uniform(5000, 6)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [pytest.param(CLUSTERED, id="clustered"), pytest.param(UNIFORM, id="uniform")])
@pytest.mark.parametrize("recall", [0.8, 0.99])
def test_recall__is_the_requested_one(vectors: Vectors, recall: float) -> None:
    """The share of true neighbours is the requested one, within the error of the sample."""
    graph = nearest(vectors, k=10, exact=False, recall=recall)
    assert_sound(graph, vectors, 10)
    assert graph.cells is not None
    assert recall_of(graph, vectors) >= recall - 0.015


@pytest.mark.slow
def test_far_rows__find_their_nearest_neighbour() -> None:
    """Rows far from all others, which by the recall alone would miss it most often, have their nearest neighbour."""
    near = clustered(14_000, 24, centres=100, spread=0.3)
    vectors = np.concatenate([near, unit(near[:2000] + uniform(2000, 24, seed=1))])
    graph = nearest(vectors, k=10, exact=False)
    far = np.arange(14_000, 16_000)
    scores = vectors[far] @ vectors.T
    scores[np.arange(len(far)), far] = -1
    assert_sound(graph, vectors, 10)
    assert (graph.similarity[far, 0] < scores.max(axis=1) - 1e-5).mean() <= 0.005


def test_share__is_mutual() -> None:
    """A row that is near enough for the list of its neighbour is in it, once, even if the search found it one way."""
    vectors = uniform(300, 8)
    true = nearest(vectors, k=5, exact=True)
    lists = Lists.of(true, 300)
    lost = np.arange(0, 300, 3)
    for values, nothing in ((lists.rows, -1), (lists.similarity, -np.inf)):
        values[lost] = np.roll(values[lost], -1, axis=1)
        values[lost, -1] = nothing
    lists.limits[lost], lists.changed[lost] = -np.inf, True
    mutual = [row for row in lost.tolist() if row in lists.rows[true.rows[row, 0]]]
    lists.share()
    graph = lists.graph(None)
    assert len(mutual) > 50
    for row in {*range(300)} - {*lost.tolist()} | {*mutual}:
        assert graph.rows[row, 0] == true.rows[row, 0]
        assert len({*graph.rows[row].tolist()}) == 5


@pytest.mark.slow
def test_recall__costs_less_than_all_pairs() -> None:
    """Rows of clusters are compared with few others, and with more rows for a higher recall."""
    compared = [nearest(CLUSTERED, k=10, exact=False, recall=recall).n_comparisons for recall in (0.8, 0.99)]
    assert compared[0] <= compared[1] < len(CLUSTERED) ** 2 / 2


@pytest.mark.slow
def test_cells__are_those_of_the_rows() -> None:
    """The graph has its cells: unit centroids, a cell for each row, and the reach."""
    cells = nearest(CLUSTERED, k=10, exact=False).cells
    assert cells is not None
    np.testing.assert_allclose(np.linalg.norm(cells.centroids, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(cells.of_row, (CLUSTERED @ cells.centroids.T).argmax(axis=1))
    assert cells.reach >= 0


@pytest.mark.slow
def test_cells__depend_on_the_seed_only() -> None:
    """The same seed gives the same graph and cells on any number of threads; another seed gives another sample."""

    def found(seed: int, workers: int) -> NeighbourGraph:
        return nearest(CLUSTERED, k=10, exact=False, seed=seed, engine=CpuProducts(workers))

    first, same, other = found(3, 2), found(3, 2), found(4, 2)
    np.testing.assert_array_equal(first.rows, same.rows)
    np.testing.assert_array_equal(first.similarity, same.similarity)
    assert first.cells is not None
    assert same.cells is not None
    assert other.cells is not None
    np.testing.assert_array_equal(first.cells.centroids, same.cells.centroids)
    assert first.cells.reach == same.cells.reach
    assert not np.array_equal(first.cells.centroids, other.cells.centroids)
    np.testing.assert_allclose(found(3, 1).similarity, first.similarity, atol=2e-6)


@pytest.mark.slow
def test_cells__are_not_used_without_structure(tuning: Tuning) -> None:
    """For directions without structure all pairs are compared, and the graph is exact; clusters use cells."""
    tuning.exact_rows = 1000
    tuning.small_product_cost = 1.0
    vectors = uniform(3000, 64)
    graph = nearest(vectors, k=10)
    assert graph.cells is None
    assert recall_of(graph, vectors) == 1
    assert nearest(clustered(6000, 32, centres=60, spread=0.1), k=5).cells is not None


@pytest.mark.slow
def test_cells__of_half_precision() -> None:
    """Float16 vectors are sorted into cells, too."""
    values = CLUSTERED[:3000].astype(np.float16)
    graph = nearest(values, k=10, exact=False)
    assert_sound(graph, values, 10)
    assert recall_of(graph, values) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("count", "k"), [(10_000, 5), (2500, 300)])
@pytest.mark.parametrize("spread", rest_slow([0.0, 1e-6, 0.01], 2, long=2))
def test_cells__ten_thousand_near_copies(spread: float, count: int, k: int) -> None:
    """A large crowd of equal or nearly equal vectors has full and right lists, as have other rows."""
    vectors = np.concatenate([crowd(uniform(1, 8)[0], count, spread=spread), uniform(400, 8, seed=1)])
    graph = nearest(vectors, k=k, exact=False)
    assert_sound(graph, vectors, k)
    assert np.all(graph.rows[:count] < count)


@pytest.mark.slow
def test_cells__half_of_the_vectors_are_zero() -> None:
    """Zero vectors, which are equally near to all cells, have full lists and do not affect others."""
    vectors = clustered(2400, 16, centres=20)
    vectors[::2] = 0
    graph = nearest(vectors, k=6, exact=False)
    assert_sound(graph, vectors, 6)
    assert recall_of(graph, vectors) >= 0.95


@pytest.mark.slow
def test_cells__of_one_row() -> None:
    """Rows that are alone in their cell probe other cells until they have enough candidates."""
    alone = np.eye(8, dtype=np.float32)
    vectors = np.concatenate([crowd(alone[0], 3000, spread=0.05), alone[1:], -alone])
    graph = nearest(vectors, k=12, exact=False)
    assert_sound(graph, vectors, 12)
    assert recall_of(graph, vectors) >= 0.95


@examples(60)
@given(
    st.integers(0, 60),
    st.integers(1, 4),
    st.integers(0, 70),
    st.integers(1, 12),
    st.sampled_from([1, 64]),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_cells__law(count: int, dimension: int, k: int, size: int, most: int, tied: bool, seed: int) -> None:
    """With few rows, small cells, few probes and many ties every list is full, in order and right."""
    random = np.random.default_rng(seed)
    values = random.integers(-1, 2, (count, dimension)) + 0.5 if tied else random.normal(size=(count, dimension))
    vectors = unit(values)
    with tuned() as tuning:
        tuning.cell_rows = size
        tuning.probed_cells = most
        graph = nearest(vectors, k=k, exact=False, engine=CpuProducts(1))
    assert_sound(graph, vectors, k)
