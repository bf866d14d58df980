"""Rows of cells are compared with those that probe them, each pair once."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.cell_join import CellJoin
from framedex.analysis.cells import CellProbes, group_rows
from framedex.analysis.neighbour_lists import Lists
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import CpuProducts
from tests.analysis.arrays import Vectors, uniform

COUNT, CELLS, K = 900, 9, 6


def joined(vectors: Vectors, cell: npt.NDArray[np.int64], *probes: npt.NDArray[np.bool_]) -> Lists:
    """Return the lists after rows were compared with their cells, and then with those that they probe, by turns.

    Args:
        vectors: shape (N, D).
        cell: shape (N,): the cell of each row.
        probes: bool, shape (N, C): whether a row probes a cell, in each turn.
    """
    order, starts = group_rows(cell, CELLS)
    lists = Lists(len(vectors), K)
    join = CellJoin(vectors, [order[a:b].astype(np.int32) for a, b in pairwise(starts)], lists, CpuProducts(2))
    join.within(ignore_progress)
    for turn, asks in enumerate(probes):
        row, probed = np.nonzero(asks & (cell[:, None] != np.arange(CELLS)))
        order, ends = group_rows(probed, CELLS)
        join.probe(CellProbes(row[order].astype(np.int32), ends), ignore_progress, again=turn > 0)
    return lists


def expected(vectors: Vectors, cell: npt.NDArray[np.int64], asks: npt.NDArray[np.bool_]) -> list[set[int]]:
    """Return the nearest rows of each row among its own cell and those that it probes, by all products."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    sees = asks[:, cell] | (cell[:, None] == cell)
    return [set(row.tolist()) for row in np.argsort(-np.where(sees, scores, -np.inf), axis=1)[:, :K]]


@pytest.fixture(name="cell")
def cells_of_rows() -> npt.NDArray[np.int64]:
    """Return the cells of rows, which are in no order; the last cell but one is empty."""
    cell = np.random.default_rng(3).integers(0, CELLS, COUNT)
    return np.where(cell == CELLS - 2, 0, cell)


def test_probe__one_product_for_two_cells(cell: npt.NDArray[np.int64]) -> None:
    """If all rows probe all cells, the lists are exact after each pair of rows of two cells was multiplied once."""
    vectors, every = uniform(COUNT, 24), np.ones((COUNT, CELLS), dtype=bool)
    lists = joined(vectors, cell, every)
    assert [set(row) for row in lists.rows.tolist()] == expected(vectors, cell, every)
    sizes = np.bincount(cell, minlength=CELLS)
    assert lists.n_comparisons == (COUNT**2 - (sizes**2).sum()) // 2 + (sizes**2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.5, 0.65, 0.9])
def test_probe__finds_what_rows_ask_for(cell: npt.NDArray[np.int64], share: float) -> None:
    """A row has at least the nearest ones of the cells that it probes, whether most rows of its cell probe or few."""
    vectors, asks = uniform(COUNT, 24), np.random.default_rng(0).random((COUNT, CELLS)) < share
    lists = joined(vectors, cell, asks)
    scores = vectors @ vectors.T
    for row, nearest in enumerate(expected(vectors, cell, asks)):
        found = lists.rows[row].tolist()
        assert len(set(found)) == K
        np.testing.assert_allclose(lists.similarity[row], scores[row, found], atol=1e-6)
        assert lists.similarity[row].min() >= min(scores[row, list(nearest)]) - 1e-6


def test_probe__again_lists_no_row_twice(cell: npt.NDArray[np.int64]) -> None:
    """Rows that were compared for the sake of others may probe later, and do not list what they have already."""
    vectors = uniform(COUNT, 24)
    most = np.random.default_rng(0).random((COUNT, CELLS)) < 0.8
    lists = joined(vectors, cell, most, ~most)
    assert [set(row) for row in lists.rows.tolist()] == expected(vectors, cell, np.ones_like(most))
