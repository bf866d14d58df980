"""Sums of rows by group."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.runs import add_by_group, sum_runs
from tests.laws import examples
from tests.tuning import Tuning


@examples(60)
@given(st.lists(st.integers(1, 40), max_size=12), st.integers(1, 5), st.integers(0, 99))
def test_sum_runs__are_the_sums_of_groups(sizes: list[int], dimension: int, seed: int) -> None:
    """The groups are those given, each once, with the sums of their rows; groups without rows may lie between them."""
    random = np.random.default_rng(seed)
    numbers = np.cumsum(random.integers(1, 4, len(sizes)))
    group = np.repeat(numbers, sizes)
    values = random.integers(-50, 50, (len(group), dimension)).astype(np.float32)
    expected = [values[group == number].sum(axis=0) for number in numbers]
    found, sums = sum_runs(values.copy(), group)
    assert found.tolist() == numbers.tolist()
    assert sums.dtype == np.float32
    np.testing.assert_array_equal(sums, np.reshape(expected, (-1, dimension)))


def test_sum_runs__rounds_little() -> None:
    """The error of a sum of many values grows with the logarithm of their number."""
    values = np.full((100_000, 1), 0.1, dtype=np.float32)
    _, sums = sum_runs(values, np.zeros(100_000, dtype=np.int32))
    np.testing.assert_allclose(sums, 10_000, rtol=3e-7)


def test_add_by_group__in_parts(tuning: Tuning) -> None:
    """Rows are added to the sums of their groups, in any order, also to those of groups that several parts share."""
    tuning.run_rows = 16
    random = np.random.default_rng(0)
    group = random.integers(0, 5, 100)
    values = random.integers(-50, 50, (100, 3)).astype(np.float64)
    sums = np.ones((6, 3))
    add_by_group(sums, values, group)
    np.testing.assert_array_equal(sums, [1 + values[group == number].sum(axis=0) for number in range(6)])
