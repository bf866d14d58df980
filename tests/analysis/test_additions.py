"""Rows that are added to an index get the neighbours, clusters and groups of a rebuilt index."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis import cluster_means
from framedex.analysis.additions import extend, join_clusters, join_groups
from framedex.analysis.linkage import Labels, average_linkage
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory
from tests.analysis.arrays import (
    Vectors,
    assert_sound,
    clustered,
    crowd,
    pair_f1,
    recall_of,
    same_partition,
    uniform,
    unit,
)
from tests.laws import examples
from tests.tuning import Tuning, tuned

CUTS = (0.02, 0.05, 0.1, 0.2, 0.4)
ONE = CpuProducts(1)  # for few rows it is quicker without threads
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]


def extended(before: NeighbourGraph, vectors: Vectors, **options: Any) -> tuple[NeighbourGraph, npt.NDArray[np.bool_]]:
    """Return a graph extended by all rows after the indexed ones."""
    known = len(before.rows)
    return extend(before, VectorsInMemory(vectors[:known]), vectors[known:], **options)


def assert_touched(touched: npt.NDArray[np.bool_], graph: NeighbourGraph, before: NeighbourGraph) -> None:
    """Check that touched rows are those with added neighbours, and the added rows."""
    known = len(before.rows)
    assert touched[known:].all()
    np.testing.assert_array_equal(touched[:known], (graph.rows[:known] >= known).any(axis=1))
    same = ~touched[:known]
    np.testing.assert_array_equal(graph.similarity[:known][same], before.similarity[same])


@pytest.mark.slow
@pytest.mark.parametrize(("known", "count"), [(100, 101), (1000, 1500), (2000, 2001), (30, 2000), (700, 700)])
def test_extend__equals_comparing_all(known: int, count: int) -> None:
    """The extended graph equals the graph of all rows, and rows with changed neighbours are marked."""
    vectors = clustered(count, 16, seed=count, centres=8, spread=0.8)
    before = nearest(vectors[:known], k=10)
    graph, touched = extended(before, vectors, k=10)
    assert_sound(graph, vectors, 10)
    np.testing.assert_allclose(graph.similarity, nearest(vectors, k=10).similarity, atol=2e-6)
    assert_touched(touched, graph, before)


def test_extend__in_blocks(tuning: Tuning) -> None:
    """More added rows than one batch of queries, and more rows than one tile, find each other, too."""
    tuning.lookup_queries = 64
    tuning.lookup_tile_rows = 100
    vectors = clustered(700, 12, centres=4, spread=0.8)
    shares: list[float] = []
    graph, _ = extended(nearest(vectors[:300], k=8), vectors, k=8, progress=shares.append)
    assert_sound(graph, vectors, 8)
    np.testing.assert_allclose(graph.similarity, nearest(vectors, k=8).similarity, atol=2e-6)
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.slow
@pytest.mark.parametrize("added", [0, 1, 1000])
def test_extend__by_cells(added: int) -> None:
    """Added rows use the existing cells, and find nearly as many neighbours as in a rebuilt graph."""
    vectors = clustered(4000 + added, 24, centres=40, spread=0.6)
    before = nearest(vectors[:4000], k=10, exact=False)
    assert before.cells is not None
    shares: list[float] = []
    graph, touched = extended(before, vectors, k=10, progress=shares.append)
    assert_sound(graph, vectors, 10)
    assert_touched(touched, graph, before)
    assert recall_of(graph, vectors) >= recall_of(nearest(vectors, k=10, exact=False), vectors) - 0.02
    assert graph.cells is not None
    np.testing.assert_array_equal(graph.cells.centroids, before.cells.centroids)
    np.testing.assert_array_equal(graph.cells.of_row[:4000], before.cells.of_row)
    np.testing.assert_array_equal(graph.cells.of_row, (vectors @ graph.cells.centroids.T).argmax(axis=1))
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.slow
def test_extend__repeatedly() -> None:
    """Rows that are added in many steps give the graph of all rows, exactly or with the same recall."""
    vectors = clustered(3000, 16, centres=30, spread=0.6)
    for exact, recall in ((True, 1.0), (False, 0.94)):
        graph = nearest(vectors[:2000], k=8, exact=exact)
        for count in range(2100, 3001, 100):
            graph, _ = extended(graph, vectors[:count], k=8)
        assert_sound(graph, vectors, 8)
        assert recall_of(graph, vectors) >= recall


def test_extend__fewer_indexed_rows_than_neighbours() -> None:
    """A graph with fewer rows than neighbours gets full lists, and all rows are marked as changed."""
    vectors = uniform(60, 8)
    for known in (0, 1, 5):
        graph, touched = extended(nearest(vectors[:known], k=20), vectors, k=20)
        np.testing.assert_array_equal(graph.rows, nearest(vectors, k=20).rows)
        assert touched.all()


def test_extend__copies_of_indexed_rows() -> None:
    """An added copy and its original are nearest neighbours, even if copies fill all lists."""
    vectors = uniform(500, 12)
    added = vectors[[7, 7, 9]]
    graph, touched = extended(nearest(vectors, k=2), np.concatenate([vectors, added]), k=2)
    assert graph.rows[[7, 500, 501]].tolist() == [[500, 501], [7, 501], [7, 500]]
    assert graph.rows[9, 0] == 502
    assert graph.rows[502, 0] == 9
    assert touched[[7, 9]].all()


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_extend__ties_do_not_depend_on_the_threads(exact: bool) -> None:
    """Ties are resolved in the same way in every run."""
    signs = np.random.default_rng(0).random((5000, 10)) < 0.5
    vectors = unit(np.where(signs, 1.0, -1.0))
    before = nearest(vectors[:2500], k=5, exact=exact)
    graphs = [extended(before, vectors, k=5, engine=CpuProducts(4))[0] for _ in range(3)]
    for graph in graphs:
        assert_sound(graph, vectors, 5)
        np.testing.assert_array_equal(graph.rows, graphs[0].rows)


@examples(60)
@given(st.integers(0, 30), st.integers(0, 20), st.integers(1, 8), st.booleans(), st.integers(0, 2**16))
def test_extend__law(known: int, added: int, k: int, by_cells: bool, seed: int) -> None:
    """Lists are full, similarities are right and changed rows are marked, even with few rows, ties and tiny cells."""
    vectors = unit(np.random.default_rng(seed).integers(-2, 3, (known + added, 3)) + 0.5)
    with tuned() as tuning:
        tuning.cell_rows = 5
        before = nearest(vectors[:known], k=k, exact=not by_cells, engine=ONE)
        graph, touched = extended(before, vectors, k=k, engine=ONE)
    assert_sound(graph, vectors, k)
    if 0 < before.k == graph.k:
        assert_touched(touched, graph, before)


def joined(
    known: Vectors, added: Vectors, *, k: int = 20, cuts: Sequence[float] = CUTS, with_sums: bool = False
) -> tuple[Labels, Labels, list[int]]:
    """Return the clusters of indexed rows, the clusters of added rows, and the next free numbers."""
    vectors = np.concatenate([known, added])
    graph = nearest(known, k=k, engine=ONE)
    labels = average_linkage(known, np.ones(len(known), np.int64), graph, cuts)
    grown, _ = extended(graph, vectors, k=k, engine=ONE)
    free = [int(each) for each in labels.max(axis=0, initial=-1) + 1]
    weights = np.ones(len(vectors), np.int64)
    sums = (
        cluster_means.cluster_sums(VectorsInMemory(known), weights[: len(known)], labels, engine=ONE)
        if with_sums
        else None
    )
    found, later = join_clusters(
        VectorsInMemory(known), added, weights, grown, labels, cuts, free, sums=sums, engine=ONE
    )
    assert found.shape == (len(added), len(cuts))
    assert found.dtype == np.int32
    assert np.all(found >= 0)
    for level in range(len(cuts)):
        fresh = sorted({*found[:, level].tolist()} - {*labels[:, level].tolist()})
        assert fresh == [*range(free[level], later[level])]
    return labels, found, later


def assert_nested(labels: Labels) -> None:
    """Check that each cluster lies within one of the next level."""
    for fine, coarse in zip(labels.T, labels.T[1:], strict=False):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))


def test_join_clusters__a_copy_joins_its_original() -> None:
    """An added copy of an indexed row is in the same cluster at every level."""
    known = clustered(300, 24, spread=0.1)
    labels = average_linkage(known, np.ones(300, np.int64), nearest(known), CUTS)
    alone = np.flatnonzero(np.bincount(labels[:, 0])[labels[:, 0]] == 1)
    rows = np.concatenate([alone[:5], [0, 17, 299]])
    labels, found, _ = joined(known, known[rows])
    np.testing.assert_array_equal(found, labels[rows])


def test_join_clusters__more_than_a_neighbour_list_holds() -> None:
    """A crowd of added rows that are nearest to each other joins the cluster of an indexed row near them."""
    known = clustered(600, 32, centres=20, spread=0.3)
    centre = crowd(known[0], 1, spread=0.1)[0]
    added = crowd(centre, 60, spread=0.01)
    assert (known[:1] @ added.T).min() > 1 - CUTS[0]
    labels, found, _ = joined(known, added)
    assert found.tolist() == [labels[0].tolist()] * 60


def test_join_clusters__far_rows_start_new_clusters() -> None:
    """Rows far from all indexed rows start new clusters; two near ones share a cluster."""
    known = clustered(300, 32, centres=5, spread=0.2)
    far = uniform(3, 32, seed=9)
    near = crowd(far[0], 1, spread=0.05)
    labels, found, free = joined(known, np.concatenate([far, near]))
    assert np.all(found[:, 0] > labels[:, 0].max())
    assert found[3].tolist() == found[0].tolist()
    assert len(set(found[:, 0].tolist())) == 3
    assert free[0] == labels[:, 0].max() + 4


def test_join_clusters__too_far_for_the_finest_level() -> None:
    """A row joins a cluster at the first level at which it is within the cut, and so its coarser clusters."""
    known = np.eye(4, dtype=np.float32)
    added = unit(np.array([[0.9, 0.0, 0.0, np.sqrt(1 - 0.81)]]))
    labels, found, _ = joined(known, added, k=4, cuts=(0.05, 0.2, 0.3))
    assert found[0, 0] == 4
    assert found[0, 1:].tolist() == labels[0, 1:].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("large", [None, 1, 4, 100])
def test_join_clusters__agree_with_linking_all_rows(large: int | None, tuning: Tuning) -> None:
    """For well-separated clusters, added rows get the clusters of average linkage over all rows."""
    tuning.stored_mean_rows = large or 8
    tuning.stored_means_share = 1
    tuning.mean_run_rows = 100
    tuning.addition_pairs = 50
    vectors = clustered(900, 48, centres=25, spread=0.15)
    labels, found, _ = joined(vectors[:600], vectors[600:], with_sums=large is not None)
    every = np.concatenate([labels, found])
    assert_nested(every)
    anew = average_linkage(vectors, np.ones(900, np.int64), nearest(vectors), CUTS)
    assert same_partition(every[:, -1], anew[:, -1])
    for level in range(len(CUTS)):
        assert pair_f1(every[:, level], anew[:, level]) > 0.85


def test_join_clusters__by_the_weights() -> None:
    """The mean of a cluster is weighted by items, so heavy rows decide whether an added row is within the cut."""
    vectors = unit(np.array([[1, 0, 0], [0.95, 0.3122499, 0], [0.8, 0.6, 0]]))
    labels = np.zeros((2, 1), np.int32)
    cut = 1 - float(vectors[2] @ (vectors[0] + vectors[1])) / 2
    for weights, expected in (([1, 1, 1], 0), ([9, 1, 1], 1), ([1, 9, 1], 0)):
        found, _ = join_clusters(
            VectorsInMemory(vectors[:2]), vectors[2:], np.array(weights), nearest(vectors), labels, [cut], [1]
        )
        assert found.tolist() == [[expected]]


@pytest.mark.parametrize(("known", "added"), [(0, 0), (0, 30), (30, 0), (1, 1)])
def test_join_clusters__few_rows(known: int, added: int) -> None:
    """Clusters can be joined with no indexed rows, no added rows, or one of each."""
    vectors = clustered(known + added, 8, centres=3, spread=0.3)
    labels, found, free = joined(vectors[:known], vectors[known:])
    assert len(labels) == known
    assert_nested(found)
    if not known:
        anew = average_linkage(vectors, np.ones(added, np.int64), nearest(vectors), CUTS)
        assert all(same_partition(found[:, level], anew[:, level]) for level in range(len(CUTS)))
        assert free == [int(each) for each in anew.max(axis=0, initial=-1) + 1]


@examples(60)
@given(st.integers(0, 40), st.integers(0, 30), st.integers(1, 12), st.integers(0, 2**16))
def test_join_clusters__law(known: int, added: int, k: int, seed: int) -> None:
    """Clusters stay nested, even with ties, and rows of a new cluster are within its cut."""
    vectors = unit(np.random.default_rng(seed).integers(-2, 3, (known + added, 4)) + 0.5)
    labels, found, _ = joined(vectors[:known], vectors[known:], k=k)
    every = np.concatenate([labels, found])
    assert_nested(every)
    for level, cut in enumerate(CUTS):
        for number in set(found[:, level].tolist()) - set(labels[:, level].tolist()):
            members = vectors[every[:, level] == number]
            pairs = members @ members.T
            count = len(members)
            # Clusters that grew at finer levels are within those cuts, so the mean of all pairs is within this cut.
            assert count == 1 or 1 - (pairs.sum() - np.trace(pairs)) / (count * (count - 1)) <= cut + 1e-4


def links(items: list[tuple[int, int, float]]) -> Pairs:
    """Return pairs as arrays."""
    a, b, similarity = zip(*items, strict=True) if items else ((), (), ())
    return np.array(a, np.int64), np.array(b, np.int64), np.array(similarity, np.float32)


def chosen(pairs: Pairs, some: npt.NDArray[np.bool_]) -> Pairs:
    """Return some of the pairs."""
    return pairs[0][some], pairs[1][some], pairs[2][some]


def grouped(groups: list[list[int]], items: list[tuple[int, int, float]], free: list[int]) -> tuple[Labels, list[int]]:
    """Return groups of two levels, 0.9 and 0.99, after adding pairs."""
    return join_groups(np.array(groups, np.int32).reshape(-1, 2), links(items), (0.9, 0.99), free)


@pytest.mark.parametrize(
    ("groups", "pairs", "expected", "free"),
    [
        pytest.param([], [], [], [5, 5], id="nothing"),
        pytest.param([[0, -1], [0, -1]], [], [[0, -1], [0, -1]], [5, 5], id="no pairs"),
        pytest.param([[-1, -1], [-1, -1]], [(1, 0, 0.95)], [[5, -1], [5, -1]], [6, 5], id="a new group"),
        pytest.param([[-1, -1], [-1, -1]], [(0, 1, 1.0)], [[5, 5], [5, 5]], [6, 6], id="a new group at both levels"),
        pytest.param([[3, 2], [3, 2], [-1, -1]], [(2, 0, 0.95)], [[3, 2], [3, 2], [3, -1]], [5, 5], id="joined"),
        pytest.param(
            [[1, -1], [1, -1], [4, -1], [4, -1], [4, -1], [-1, -1]],
            [(5, 0, 0.92), (5, 3, 0.92)],
            [[4, -1]] * 6,
            [5, 5],
            id="the larger gives its number",
        ),
        pytest.param(
            [[4, -1], [4, -1], [1, -1], [1, -1], [-1, -1]],
            [(4, 0, 0.92), (4, 3, 0.92)],
            [[1, -1]] * 5,
            [5, 5],
            id="of equals the first",
        ),
    ],
)
def test_join_groups__by_pairs(
    groups: list[list[int]], pairs: list[tuple[int, int, float]], expected: list[list[int]], free: list[int]
) -> None:
    """Groups that a pair connects become one, with the number of the largest; items without a group start a new one."""
    found, later = grouped(groups, pairs, [5, 5])
    assert found.tolist() == expected
    assert later == free


@examples(100)
@given(st.integers(0, 25), st.integers(0, 15), st.integers(0, 2**16))
def test_join_groups__equal_the_components_of_all_pairs(known: int, added: int, seed: int) -> None:
    """Groups of indexed items, joined by the pairs with an added item, are the connected components of all pairs."""
    random = np.random.default_rng(seed)
    count, levels = known + added, (0.9, 0.99)
    rows, columns = np.triu_indices(count, 1)
    some = random.random(len(rows)) < 1.5 / max(count, 1)
    pairs: Pairs = (rows[some], columns[some], random.choice([0.5, 0.95, 0.995], int(some.sum())).astype(np.float32))
    with_added = columns[some] >= known
    nothing = np.full((count, 2), -1, np.int32)
    before, free = join_groups(nothing, chosen(pairs, ~with_added), levels, [0, 0])
    found, later = join_groups(before, chosen(pairs, with_added), levels, free)
    anew, _ = join_groups(nothing, pairs, levels, [0, 0])
    for place, level in enumerate(levels):
        column = found[:, place]
        assert same_partition(column, anew[:, place])
        assert np.array_equal(column == -1, anew[:, place] == -1)
        near = pairs[2] >= level
        assert np.all(column[pairs[0][near]] == column[pairs[1][near]])
        assert np.all(column[pairs[0][near]] >= 0)
        for number in set(column.tolist()) - {-1}:
            inside = before[column == number, place]
            sizes = np.bincount(inside[inside >= 0], minlength=1)
            assert number >= free[place] if not sizes.any() else sizes[number] == sizes.max()
        assert free[place] <= later[place]
        assert column.max(initial=-1) < later[place]
