"""Connected components: equal to merging sets pair by pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.components import connected_components
from tests.analysis.arrays import same_partition


@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=40))
def test_components__equal_merged_sets(count: int, pairs: list[tuple[int, int]]) -> None:
    """Rows are in one component exactly if a chain of pairs leads from one to the other; numbers have no gaps."""
    inside = [(a % count, b % count) for a, b in pairs]
    sets = {row: {row} for row in range(count)}
    for a, b in inside:
        merged = sets[a] | sets[b]
        sets.update(dict.fromkeys(merged, merged))
    expected = np.array([min(sets[row]) for row in range(count)])
    ends = np.array(inside, dtype=np.int64).reshape(-1, 2)
    found = connected_components(ends[:, 0], ends[:, 1], count)
    assert found.dtype == np.int32
    assert same_partition(found, expected)
    assert sorted(set(found.tolist())) == list(range(len(set(expected.tolist()))))


def test_components__of_no_rows() -> None:
    """Nothing has no components."""
    none = np.empty(0, dtype=np.int64)
    assert connected_components(none, none, 0).tolist() == []
