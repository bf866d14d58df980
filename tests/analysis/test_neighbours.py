"""The neighbour graph is exact, whatever the shape of the input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framedex.analysis.neighbours import check_vectors, nearest, unique_rows
from framedex.errors import InvalidEmbedding
from tests.analysis.arrays import Vectors, clustered, uniform, unit


def brute_force(vectors: Vectors, k: int) -> tuple[list[list[int]], Vectors]:
    """Return each row's k most similar other rows and all similarities, pair by pair, in double precision."""
    scores = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    rows = []
    for row in range(len(vectors)):
        others = [other for other in range(len(vectors)) if other != row]
        rows.append(sorted(others, key=lambda other: (-scores[row, other], other))[:k])
    return rows, scores.astype(np.float32)


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
    """With fewer rows than neighbours asked for, all other rows come back, and never the row itself."""
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
    """Neighbours of the same similarity stand in row order."""
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 45), st.integers(0, 2**16))
def test_nearest__law(count: int, dimension: int, k: int, seed: int) -> None:
    """Similarities descend within [-1, 1], and what is left out is no more similar than what is there."""
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


@settings(max_examples=60, deadline=None)
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


def test_unique_rows__vectors_of_signs_stay_apart() -> None:
    """Vectors that differ in their signs alone, as binary embeddings do, are not taken for each other."""
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
