"""Groups that continue a previous group keep its number, and no number is used twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.stability import keep_numbers
from tests.analysis.arrays import same_partition

NUMBERS = st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5)), max_size=30)
"""(old group, new group) of each item."""


def kept(old: list[int], new: list[int], first_free: int = 100) -> tuple[list[int], int]:
    """Return the numbers of the new groups, and the next free one."""
    numbers, free = keep_numbers(np.array(old, np.int32), np.array(new, np.int32), first_free=first_free)
    assert numbers.dtype == np.int32
    return numbers.tolist(), free


@pytest.mark.parametrize(
    ("old", "new", "numbers", "free"),
    [
        pytest.param([], [], [], 100, id="nothing"),
        pytest.param([7, 7, 3, -1], [0, 0, 1, -1], [7, 7, 3, -1], 100, id="unchanged"),
        pytest.param([-1, -1, -1], [0, 0, 1], [100, 100, 101], 102, id="first"),
        pytest.param([7, 7, 7, 3], [2, 2, 0, 1], [7, 7, 100, 3], 101, id="most of one"),
        pytest.param([7, 7, 7, 7], [0, 0, 1, 1], [100, 100, 101, 101], 102, id="halves"),
        pytest.param([7, 7, 3, 3, 3], [0, 0, 0, 0, 0], [3, 3, 3, 3, 3], 100, id="joined"),
        pytest.param([7, 7, 3, 3], [0, 0, 0, 0], [3, 3, 3, 3], 100, id="joined, the same size"),
        pytest.param([7, 7, 7], [-1, -1, 0], [-1, -1, 100], 101, id="shrunk below half"),
        pytest.param([7, -1, -1, -1], [0, 0, 0, 0], [7, 7, 7, 7], 100, id="grown"),
        pytest.param([7, 7], [-1, -1], [-1, -1], 100, id="gone"),
        pytest.param([-1, 7], [5, 2], [100, 7], 101, id="numbers with gaps"),
    ],
)
def test_keep_numbers__by_the_majority(old: list[int], new: list[int], numbers: list[int], free: int) -> None:
    """A group has the number of the old group with most members in it, if these are more than half of the old group."""
    assert kept(old, new) == (numbers, free)


def test_keep_numbers__new_ones_in_the_order_of_their_groups() -> None:
    """Groups that continue no previous group get unused numbers in their own order, without gaps."""
    assert kept([-1, 4, -1, -1], [3, 1, 0, 2], first_free=5) == ([7, 4, 5, 6], 8)


@given(NUMBERS, st.integers(6, 9))
def test_keep_numbers__law(items: list[tuple[int, int]], first_free: int) -> None:
    """The partition is unchanged; continued numbers have the majority of the old members, and others are new."""
    old, new = ([item[side] for item in items] for side in range(2))
    numbers, free = kept(old, new, first_free)
    assert same_partition(np.array(numbers), np.array(new))
    assert [each == -1 for each in numbers] == [each == -1 for each in new]
    fresh = sorted({each for each in numbers if each >= first_free})
    assert fresh == [*range(first_free, free)]
    assert free >= first_free
    for number in set(numbers) - {-1, *fresh}:
        shared = sum(before == after == number for before, after in zip(old, numbers, strict=True))
        assert 2 * shared > old.count(number)
    for before in set(old) - {-1} - set(numbers):
        inside = [after for each, after in zip(old, numbers, strict=True) if each == before]
        for after in set(inside) - {-1}:
            # The number is gone: the group has no majority anywhere, or a larger part of another group is with it.
            rival = sum(own == after == theirs for own, theirs in zip(numbers, old, strict=True))
            assert 2 * inside.count(after) <= len(inside) or rival >= inside.count(after)


@given(NUMBERS, st.permutations(range(6)))
def test_keep_numbers__unchanged_groups_keep_theirs(items: list[tuple[int, int]], order: list[int]) -> None:
    """The same groups in any numbering keep their numbers, and no new number is used."""
    old = [item[0] for item in items]
    new = [order[each] if each >= 0 else -1 for each in old]
    assert kept(old, new, 6) == (old, 6)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=12, max_size=12), min_size=2, max_size=6))
def test_keep_numbers__over_many_rebuilds(times: list[list[int]]) -> None:
    """Over many rebuilds no number is reused, and the next free number never falls."""
    numbers, free = kept([-1] * 12, times[0], 0)
    given_up: set[int] = set()
    for new in times[1:]:
        later, free_later = kept(numbers, new, free)
        assert free_later >= free
        given_up |= set(numbers) - set(later) - {-1}
        assert not given_up & set(later)
        numbers, free = later, free_later
