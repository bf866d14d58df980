"""Cells contain near rows, and each row probes enough of them."""

from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.cells import (
    CellProbes,
    assign,
    cell_count,
    find_centroids,
    group_rows,
    probe_cells,
    probe_further,
)
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import CpuProducts
from framedex.analysis.reach import measure_reach
from tests.analysis.arrays import clustered, uniform, unit
from tests.laws import examples

ENGINE = CpuProducts(2)


def test_cell_count__grows_with_the_rows() -> None:
    """The number of cells is at least one, one per 500 rows, and grows more slowly above a million rows."""
    counts = [cell_count(rows) for rows in (1, 499, 1000, 50_000, 1_000_000, 100_000_000)]
    assert counts == [1, 1, 2, 100, 2000, 20_000]


def test_find_centroids__are_directions_of_clusters() -> None:
    """With more cells than clusters nearly all rows are near a centroid, and the result depends on the seed only."""
    vectors = clustered(3000, 32, centres=6, spread=0.1)
    found = [
        find_centroids(vectors, 30, engine=ENGINE, random=np.random.default_rng(seed), progress=ignore_progress)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    np.testing.assert_allclose(np.linalg.norm(found[0], axis=1), 1, atol=1e-5)
    assert np.quantile((vectors @ found[0].T).max(axis=1), 0.05) > 0.9


def test_assign__is_the_nearest_centroid() -> None:
    """Each row, in blocks, belongs to the cell whose centroid is nearest."""
    vectors, centroids = uniform(9000, 8), uniform(20, 8, seed=1)
    np.testing.assert_array_equal(assign(vectors, centroids, engine=ENGINE), (vectors @ centroids.T).argmax(axis=1))


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(10, 12))
def test_group_rows__law(groups: list[int], count: int) -> None:
    """The rows of each group are consecutive and in order, from its start to the start of the next group."""
    order, starts = group_rows(np.array(groups, dtype=np.int64), count)
    parts = [order[a:b].tolist() for a, b in pairwise(starts)]
    assert parts == [[row for row, own in enumerate(groups) if own == group] for group in range(count)]


@pytest.mark.slow
def test_measure_reach__grows_with_the_recall() -> None:
    """Reach and candidates grow with the recall, and probing within the reach gives that recall."""
    vectors = clustered(6000, 24, centres=40, spread=0.8)
    centroids = find_centroids(vectors, 12, engine=ENGINE, random=np.random.default_rng(0), progress=ignore_progress)
    found = [
        measure_reach(
            vectors,
            centroids,
            k=10,
            recall=recall,
            engine=ENGINE,
            random=np.random.default_rng(0),
            progress=ignore_progress,
        )
        for recall in (0.7, 0.9, 0.99)
    ]
    for values in zip(*map(astuple, found), strict=True):
        assert 0 <= values[0] < values[-1]
        assert [*values] == sorted(values)
    assert all(each.all <= each.closest for each in found)
    assert found[-1].n_candidates <= 1.1 * len(vectors)


@examples(60)
@given(
    st.integers(0, 60), st.integers(1, 12), st.floats(0, 1.5), st.integers(0, 80), st.booleans(), st.integers(0, 2**16)
)
def test_probe_cells__law(count: int, cells: int, reach: float, least: int, others: bool, seed: int) -> None:
    """Rows probe all other cells within the reach, none twice, and get enough candidates if there are enough."""
    random = np.random.default_rng(seed)
    vectors, centroids = (unit(random.normal(size=(rows, 3))) for rows in (count, cells))
    held = random.integers(0, 5, cells) if others else None
    cell, looks = probe_cells(
        vectors, centroids, reach, min_rows=least, occupancy=held, engine=ENGINE, progress=ignore_progress
    )
    scores = vectors @ centroids.T
    np.testing.assert_array_equal(cell, scores.argmax(axis=1))
    pairs = [(row, into) for into in range(cells) for row in looks.into(into).tolist()]
    assert len(set(pairs)) == len(pairs) == len(looks.rows)
    assert all(cell[row] != into for row, into in pairs)
    within = scores >= scores.max(axis=1, keepdims=True) - reach + 1e-6
    within[np.arange(count), cell] = False
    assert set(pairs) >= set(zip(*(each.tolist() for each in np.nonzero(within)), strict=True))
    sizes = np.bincount(cell, minlength=cells) + (0 if held is None else held)
    seen = sizes[cell]
    for row, into in pairs:
        seen[row] += sizes[into]
    assert np.all(seen >= min(least, sizes.sum()))


@pytest.mark.parametrize("reach", [0.0, 0.1])
def test_probe_cells__zero_vectors_probe_all_cells(reach: float) -> None:
    """A vector of zeros is equally near to all centroids, so it probes all cells."""
    cell, looks = probe_cells(
        np.zeros((3, 4), np.float32), uniform(5, 4), reach, min_rows=0, engine=ENGINE, progress=ignore_progress
    )
    assert sorted([*looks.rows.tolist(), *range(3)]) == sorted([*range(3)] * 5)
    assert len(set(cell.tolist())) == 1


def test_probe_further__is_what_a_larger_reach_adds() -> None:
    """Some rows, each by its own reach, probe the cells within it that they had not probed."""
    vectors = clustered(9000, 16, centres=40, spread=0.8)
    centroids = find_centroids(vectors, 18, engine=ENGINE, random=np.random.default_rng(0), progress=ignore_progress)
    own, before = probe_cells(vectors, centroids, 0.05, min_rows=1, engine=ENGINE, progress=ignore_progress)
    rows = np.arange(1, 9000, 2)
    reach = np.linspace(0, 0.3, len(rows), dtype=np.float32)
    further = probe_further(
        vectors, centroids, before, own, rows=rows, reach=reach, engine=ENGINE, progress=ignore_progress
    )
    found = {(row, cell) for cell in range(18) for row in further.into(cell).tolist()}
    assert len(found) == len(further.rows)
    scores = vectors @ centroids.T
    gap = scores.max(axis=1, keepdims=True) - scores
    allowed = np.zeros(len(vectors))
    allowed[rows] = reach
    row, cell = np.nonzero((gap > 0.05) & (gap <= allowed[:, None]) & (np.arange(18) != own[:, None]))
    near_the_limit = np.isclose(gap, allowed[:, None], atol=1e-6) | np.isclose(gap, 0.05, atol=1e-6)
    assert {pair for pair in found if not near_the_limit[pair]} == {
        pair for pair in zip(row.tolist(), cell.tolist(), strict=True) if not near_the_limit[pair]
    }
    nothing = probe_further(
        vectors, centroids, before, own, rows=rows[:0], reach=reach[:0], engine=ENGINE, progress=ignore_progress
    )
    assert len(nothing.rows) == 0


def test_probe_further__not_into_the_own_cell() -> None:
    """A row does not probe its own cell, where another centroid is as near, and rounding decides on the nearest."""
    vectors, centroids = unit(np.ones((6, 4))), unit(np.ones((3, 4)))
    nothing = CellProbes(np.empty(0, np.int32), np.zeros(4, np.int64))
    own = np.array([0, 1, 2, 0, 1, 2], np.int32)
    further = probe_further(
        vectors, centroids, nothing, own,
        rows=np.arange(6), reach=np.full(6, 0.1, np.float32), engine=ENGINE, progress=ignore_progress,
    )  # fmt: skip
    assert all(own[row] != cell for cell in range(3) for row in further.into(cell))
    assert len(further.rows) >= 6
