"""Removing rows from a graph gives the graph of the remaining rows."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.additions import extend
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest
from framedex.analysis.products import CpuProducts
from framedex.analysis.removals import Remaining, without
from framedex.analysis.vector_sources import VectorsInMemory
from tests.analysis.arrays import Vectors, clustered, recall_of, unit
from tests.laws import examples
from tests.tuning import tuned

ONE = CpuProducts(1)
Ints = npt.NDArray[np.int64]


@examples(40)
@given(st.integers(1, 60), st.floats(0, 1), st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 2**16))
def test_without__law(count: int, share: float, k: int, by_cells: bool, few: bool, seed: int) -> None:
    """After any removal and reordering, similarities are right, changed rows are marked and lists are full enough."""
    random = np.random.default_rng(seed)
    vectors = unit(random.integers(-2, 3, (count, 3)) + 0.5)
    with tuned() as tuning:
        tuning.cell_rows = 5
        tuning.rebuilt_rows = 1000 if few else 0
        tuning.removal_queries = 7
        before = nearest(vectors, k=k, exact=not by_cells, engine=ONE)
        left = random.permutation(np.flatnonzero(random.random(count) < share))
        found = without(before, left, VectorsInMemory(vectors[left]), k=k, engine=ONE)
        rest = vectors[left]
        assert_right(found, rest, before, left)
        more = unit(random.integers(-2, 3, (5, 3)) + 0.5)
        if len(left) and found.graph.k:
            grown, _ = extend(found.graph, VectorsInMemory(rest), more, k=found.graph.k, engine=ONE)
            everything = np.concatenate([rest, more])
            assert_true(grown, everything)
            new = NeighbourGraph(grown.rows[len(left) :], grown.similarity[len(left) :])
            assert (new.rows >= 0).all()
            again = without(
                grown, np.arange(3, len(everything)), VectorsInMemory(everything[3:]), k=grown.k, engine=ONE
            )
            assert_true(again.graph, everything[3:])


def assert_right(found: Remaining, rest: Vectors, before: NeighbourGraph, left: Ints) -> None:
    """Check that lists keep their remaining neighbours in order, and that lists that lost most are full again."""
    assert_true(found.graph, rest)
    number = np.full(len(before.rows), -1)
    number[left] = np.arange(len(left))
    for row, old in enumerate(left):
        kept = [number[other] for other in before.rows[old] if number[other] >= 0]
        new = [other for other in found.graph.rows[row] if other >= 0]
        assert bool(found.touched[row]) >= (len(kept) < before.k)
        assert 2 * len(new) >= min(found.graph.k, len(left) - 1)
        if found.graph.k == before.k and 2 * len(kept) >= before.k and not found.touched.all():
            assert sorted(new) == sorted(kept)


def assert_true(graph: NeighbourGraph, vectors: Vectors) -> None:
    """Check that lists have other rows, each once, most similar first, with their similarities, and gaps at the end."""
    for row, (others, scores) in enumerate(zip(graph.rows.tolist(), graph.similarity, strict=True)):
        held = [other for other in others if other >= 0]
        assert others == held + [-1] * (len(others) - len(held))
        assert len(set(held) - {row}) == len(held)
        np.testing.assert_allclose(scores[: len(held)], vectors[held] @ vectors[row], atol=2e-6)
        assert (np.diff(scores) <= 0).all()
    filled = graph.filled()
    assert (filled.rows >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_without__keeps_the_recall(exact: bool) -> None:
    """Rows that lost neighbours have the recall of a rebuilt graph."""
    vectors = clustered(6000, 24, centres=40, spread=0.6)
    before = nearest(vectors, k=10, exact=exact)
    left = np.flatnonzero(np.random.default_rng(0).random(6000) < 0.8)
    shares: list[float] = []
    found = without(before, left, VectorsInMemory(vectors[left]), k=10, progress=shares.append)
    assert_true(found.graph, vectors[left])
    full = (found.graph.rows >= 0).mean()
    assert full > 0.75
    assert recall_of(found.graph, vectors[left]) >= (1.0 if exact else 0.95) * full - 0.001
    assert 0.5 < found.touched.mean() < 1
    assert (found.graph.cells is None) is exact
    assert shares == sorted(shares)
    assert shares[-1] == 1
