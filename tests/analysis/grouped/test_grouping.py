"""Groups have all cells, as many rows as are allowed, and clusters of many cells undivided."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.grouped.grouping import group_cells
from tests.analysis.arrays import crowd, uniform
from tests.laws import examples


@examples(30)
@given(sizes=st.lists(st.integers(0, 500), min_size=1, max_size=60), most=st.integers(1, 2000), seed=st.integers(0, 9))
def test_groups__have_each_cell_once_and_few_rows(sizes: list[int], most: int, seed: int) -> None:
    """A group has at most the allowed rows, or a single cell; equal centroids are divided, too."""
    centroids = uniform(len(sizes), 8, seed=seed)
    centroids[::3] = centroids[0]
    grouping = group_cells(centroids, np.array(sizes, dtype=np.int64), most)
    assert sorted(grouping.order.tolist()) == list(range(len(sizes)))
    np.testing.assert_array_equal(grouping.order[grouping.rank], np.arange(len(sizes)))
    np.testing.assert_array_equal(np.diff(grouping.cell_starts), np.array(sizes)[grouping.order])
    assert grouping.group_cells[0] == 0
    assert grouping.group_cells[-1] == len(sizes)
    for cells, rows in zip(np.diff(grouping.group_cells), np.diff(grouping.group_starts), strict=True):
        assert cells == 1 or (cells > 0 and rows <= most)


def test_groups__leave_cells_that_lie_close_together_in_one() -> None:
    """The cells of a cluster without structure stay together, wherever among all cells it lies."""
    parts = [uniform(400, 64, seed=9), *(crowd(uniform(1, 64, seed=seed)[0], 40, spread=0.3) for seed in range(5))]
    of_crowd = np.repeat(np.arange(-1, 5), [400, 40, 40, 40, 40, 40])
    grouping = group_cells(np.concatenate(parts), np.full(600, 500), 60_000)
    group = grouping.group_of(grouping.rank)
    divided = [len(np.unique(group[of_crowd == number])) for number in range(5)]
    assert divided == [1] * 5
    assert len(grouping) >= 5
