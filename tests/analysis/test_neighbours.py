"""The neighbour graph of few rows is exact for any input; :mod:`test_recall` tests that of many rows."""

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.neighbours import check_vectors, nearest, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.errors import InvalidEmbedding, InvalidInput
from tests.analysis.arrays import Vectors, assert_sound, clustered, mapped, true_neighbours, uniform, unit
from tests.laws import examples
from tests.tuning import Tuning


def brute_force(vectors: Vectors, k: int) -> tuple[list[list[int]], Vectors]:
    """Return each row's k most similar other rows and all similarities, pair by pair, in double precision."""
    scores = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    rows = []
    for row in range(len(vectors)):
        others = [other for other in range(len(vectors)) if other != row]
        rows.append(sorted(others, key=lambda other: (-scores[row, other], other))[:k])
    return rows, scores.astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [uniform(300, 16), clustered(300, 24), uniform(50, 2)])
def test_nearest__equals_brute_force(vectors: Vectors) -> None:
    """The neighbours and their similarities are those of comparing every pair."""
    graph = nearest(vectors, k=7)
    rows, scores = brute_force(vectors, 7)
    expected = np.array([[scores[row, other] for other in rows[row]] for row in range(len(vectors))])
    np.testing.assert_allclose(graph.similarity, expected, atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(scores, graph.rows, axis=1), graph.similarity, atol=1e-6)


@pytest.mark.parametrize(
    ("count", "k", "columns"), [(0, 5, 0), (1, 5, 0), (2, 5, 1), (6, 5, 5), (5, 100, 4), (5, 0, 0)]
)
def test_nearest__at_most_all_others(count: int, k: int, columns: int) -> None:
    """If k is larger than the number of other rows, all other rows are returned, and never the row itself."""
    graph = nearest(uniform(count, 8), k=k)
    assert graph.rows.shape == graph.similarity.shape == (count, columns)
    assert graph.k == columns
    assert all(row not in graph.rows[row] for row in range(count))


def test_nearest__one_dimension() -> None:
    """In one dimension vectors are equal or opposite."""
    graph = nearest(np.array([[1], [-1], [1], [-1]], np.float32), k=3)
    assert graph.similarity.tolist() == [[1, -1, -1]] * 4
    assert graph.rows[:, 0].tolist() == [2, 3, 0, 1]


def test_nearest__equal_vectors_and_ties_are_in_row_order() -> None:
    """Neighbours with the same similarity are in row order."""
    same = np.tile(np.array([[0.6, 0.8]], np.float32), (5, 1))
    graph = nearest(same, k=4)
    assert graph.rows.tolist() == [[other for other in range(5) if other != row] for row in range(5)]
    assert np.all(graph.similarity == graph.similarity[0, 0])
    assert graph.similarity.max() <= 1


def test_nearest__blocks_are_joined_and_reported() -> None:
    """A matrix that does not fit into one block gives the same graph, and progress ends at one."""
    vectors = uniform(4500, 4, seed=3)
    shares: list[float] = []
    graph = nearest(vectors, k=3, progress=shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1
    last = vectors[-1] @ vectors.T
    last[-1] = -np.inf
    np.testing.assert_allclose(graph.similarity[-1], np.sort(last)[::-1][:3], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1023, 1024, 1025, 1026, 2048, 2049, 3073, 4200])
def test_nearest__across_the_borders_of_tiles(count: int) -> None:
    """Neighbours are exact for one row more or less than a tile, and for several tiles."""
    vectors = clustered(count, 12, seed=count, centres=5, spread=1.0)
    graph = nearest(vectors, k=9)
    assert_sound(graph, vectors, 9)
    np.testing.assert_allclose(graph.similarity, true_neighbours(vectors, 9), atol=2e-6)
    assert graph.cells is None
    assert graph.n_comparisons >= count * (count - 1) // 2


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 1023, 1030, 5000])
def test_nearest__as_many_neighbours_as_a_tile_has_rows(k: int) -> None:
    """Lists may be longer than a tile, and have all other rows if k is larger than their number."""
    vectors = uniform(1100, 5)
    graph = nearest(vectors, k=k)
    assert_sound(graph, vectors, k)
    np.testing.assert_allclose(graph.similarity, true_neighbours(vectors, graph.k), atol=2e-6)


@pytest.mark.slow
def test_nearest__of_half_precision(tmp_path: Path) -> None:
    """Float16 vectors have the neighbours of their values, in memory or in a memory-mapped, read-only file."""
    values = clustered(2100, 16).astype(np.float16)
    graph = nearest(values, k=6)
    assert_sound(graph, values, 6)
    np.testing.assert_allclose(graph.similarity, true_neighbours(values, 6), atol=2e-6)
    np.testing.assert_array_equal(nearest(mapped(tmp_path / "values", values), k=6).rows, graph.rows)


def test_nearest__does_not_depend_on_the_memory_layout(tmp_path: Path) -> None:
    """Column-major, strided, reversed and memory-mapped vectors have the same neighbours."""
    vectors = clustered(1500, 10)
    wide = np.zeros((3000, 20), np.float32)
    wide[::2, ::2] = vectors
    views = [np.asfortranarray(vectors), wide[::2, ::2], vectors[::-1].copy()[::-1], mapped(tmp_path / "it", vectors)]
    expected = nearest(vectors, k=5)
    for view in views:
        graph = nearest(view, k=5)
        np.testing.assert_array_equal(graph.rows, expected.rows)
        np.testing.assert_allclose(graph.similarity, expected.similarity, atol=1e-6)


def test_nearest__more_equal_vectors_than_neighbours() -> None:
    """Equal vectors fill each other's lists, also across tiles, and other rows keep their neighbours."""
    vectors = np.concatenate([np.tile(uniform(1, 8), (2500, 1)), uniform(60, 8, seed=1)])
    graph = nearest(vectors, k=5)
    assert_sound(graph, vectors, 5)
    assert np.all(graph.rows[:2500] < 2500)
    np.testing.assert_allclose(graph.similarity, true_neighbours(vectors, 5), atol=2e-6)


def test_nearest__half_of_the_vectors_are_zero() -> None:
    """Zero vectors have the similarity 0 to all vectors."""
    vectors = clustered(1400, 8)
    vectors[::2] = 0
    graph = nearest(vectors, k=4)
    assert_sound(graph, vectors, 4)
    assert not graph.similarity[::2].any()
    assert np.all(graph.similarity[1::2] > 0)
    assert np.all(graph.rows[1::2] % 2 == 1)


def test_nearest__one_dimension_in_many_tiles() -> None:
    """In one dimension all similarities are one or minus one, also across tiles."""
    vectors = np.where(np.arange(2100) % 3 == 0, 1, -1).astype(np.float32)[:, None]
    graph = nearest(vectors, k=5)
    assert_sound(graph, vectors, 5)
    assert np.all(graph.similarity == 1)


@pytest.mark.parametrize("recall", [0.5, 1.0, 0.0, -1.0, 2.0, float("nan")])
def test_nearest__recall_has_a_range(recall: float) -> None:
    """A recall outside of (0.5, 1) is refused, for few rows, too."""
    for count in (0, 5):
        with pytest.raises(InvalidInput, match=r"above 0\.5 and below 1"):
            nearest(uniform(count, 3), recall=recall)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("exact", [True, False])
def test_nearest__ties_do_not_depend_on_the_threads(workers: int, exact: bool, tuning: Tuning) -> None:
    """Ties are resolved in the same way in every run, although threads finish in any order."""
    tuning.gathered_candidates = 20_000
    signs = np.random.default_rng(0).random((6000, 12)) < 0.5
    vectors = unit(np.where(signs, 1.0, -1.0))
    graphs = [nearest(vectors, k=5, exact=exact, engine=CpuProducts(workers)) for _ in range(4)]
    for graph in graphs[1:]:
        np.testing.assert_array_equal(graph.rows, graphs[0].rows)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False, None])
def test_nearest__can_be_stopped_at_any_time(exact: bool | None, tuning: Tuning) -> None:
    """An error raised by progress at any time ends the work and all threads."""
    tuning.exact_rows = 1000
    vectors = uniform(3000, 8)
    for limit in (0.0, 0.05, 0.15, 0.3, 0.6, 0.99):

        def stop(share: float, limit: float = limit) -> None:
            if share >= limit:
                raise InterruptedError(f"after {limit}")

        with pytest.raises(InterruptedError, match=f"after {limit}"):
            nearest(vectors, k=3, exact=exact, engine=CpuProducts(2), progress=stop)
        assert not [each for each in threading.enumerate() if each.name.startswith("framedex-index")]


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [uniform(4200, 64), clustered(3000, 32), uniform(300, 4)])
@pytest.mark.parametrize("exact", [True, False, None])
def test_nearest__progress_ascends_to_one(exact: bool | None, vectors: Vectors, tuning: Tuning) -> None:
    """Progress never falls and ends at one, even if cells are tried and then not used."""
    tuning.exact_rows = 200
    shares: list[float] = []
    nearest(vectors, k=5, exact=exact, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] == pytest.approx(1)
    assert max(shares) <= 1 + 1e-9


@examples(60)
@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 45), st.integers(0, 2**16))
def test_nearest__law(count: int, dimension: int, k: int, seed: int) -> None:
    """Similarities descend within [-1, 1], and no other row is more similar than the listed ones."""
    values = np.random.default_rng(seed).integers(-2, 3, (count, dimension)) + 0.5
    vectors = unit(values)
    graph = nearest(vectors, k=k)
    assert np.all(np.abs(graph.similarity) <= 1)
    assert np.all(np.diff(graph.similarity, axis=1) <= 0)
    scores = vectors @ vectors.T
    for row in range(count):
        others = set(range(count)) - {row} - set(graph.rows[row].tolist())
        assert len(others) == count - 1 - graph.k
        if others and graph.k:
            assert scores[row, sorted(others)].max() <= graph.similarity[row, -1] + 1e-6


@examples(60)
@given(st.integers(0, 50), st.integers(1, 4), st.integers(0, 2**16))
def test_unique_rows__law(count: int, dimension: int, seed: int) -> None:
    """The first rows are distinct, ascending, and each row equals the first row of its set."""
    vectors = np.random.default_rng(seed).integers(-1, 2, (count, dimension)).astype(np.float32)
    first, inverse = unique_rows(vectors)
    assert np.all(np.diff(first) > 0)
    np.testing.assert_array_equal(vectors[first[inverse]], vectors)
    assert len(first) == len({tuple(row) for row in vectors.tolist()})
    assert np.all(first[inverse] <= np.arange(count))


def test_unique_rows__both_zeros_are_one() -> None:
    """A zero and a negative zero are the same number."""
    first, inverse = unique_rows(np.array([[0.0, 1.0], [-0.0, 1.0]], np.float32))
    assert first.tolist() == [0]
    assert inverse.tolist() == [0, 0]


@pytest.mark.slow
def test_unique_rows__vectors_of_signs_stay_apart() -> None:
    """Vectors that differ only in signs, such as binary embeddings, are distinct."""
    signs = np.random.default_rng(0).random((300_000, 64), dtype=np.float32) < 0.5
    vectors = np.where(signs, np.float32(0.125), np.float32(-0.125))
    first, inverse = unique_rows(vectors)
    np.testing.assert_array_equal(vectors[first[inverse]], vectors)
    assert len(first) == len(np.unique(np.packbits(signs, axis=1), axis=0))


@pytest.mark.parametrize("broken", [np.nan, np.inf, 0.0, 2.0])
def test_check_vectors__names_the_first_wrong_row(broken: float) -> None:
    """Vectors that are not finite or not of unit length are refused with their row."""
    vectors = uniform(70_000, 3)
    check_vectors(vectors)
    vectors[[66_000, 69_000]] *= broken
    with pytest.raises(InvalidEmbedding, match="row 66000 has length"):
        check_vectors(vectors)
