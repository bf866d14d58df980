"""The best image of a group does not depend on the order of its members."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.keeping import BestMembers, Criterion, best_members

TOLERANCES = ((0.01, 0.0), (0.0, 0.02), (0.02, 0.0), (0.0, 2.0))
"""The relative and the absolute tolerance of the four criteria in each test."""
KNOWN = st.one_of(st.sampled_from([0.0, 0.5, 0.51, 0.52, 100.0, 99.0, 98.9]), st.floats(-1e6, 1e6))
MEMBER = st.tuples(*[st.one_of(st.just(math.nan), KNOWN)] * len(TOLERANCES))
GROUPS = st.lists(st.lists(MEMBER, min_size=1, max_size=6), min_size=1, max_size=5)
Member = tuple[float, ...]


def kept(groups: list[list[Member]], order: npt.NDArray[np.int64] | None = None) -> BestMembers:
    sizes = np.array([len(group) for group in groups])
    values = np.array([member for group in groups for member in group], dtype=np.float64)
    criteria = [Criterion(values[:, place], *tolerance) for place, tolerance in enumerate(TOLERANCES)]
    return best_members(sizes, criteria, np.arange(len(values)) if order is None else order)


def by_words(group: list[Member]) -> int:
    """Return the position of the best member by applying the documented rules one by one."""
    left = list(range(len(group)))
    for place, (relative, absolute) in enumerate(TOLERANCES):
        known = [member for member in left if not math.isnan(group[member][place])]
        if known:
            best = max(group[member][place] for member in known)
            left = [member for member in known if group[member][place] >= best - abs(best) * relative - absolute]
    return left[0]


def same(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    return np.array_equal(left, right)


@given(GROUPS)
def test_best_members__follow_the_documented_rules(groups: list[list[Member]]) -> None:
    """Each criterion keeps the members that tie with the best, and the first remaining member is the result."""
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    assert kept(groups).best.tolist() == [start + by_words(group) for start, group in zip(starts, groups, strict=True)]


@given(GROUPS, st.randoms(use_true_random=False))
def test_best_members__do_not_depend_on_the_order(groups: list[list[Member]], random: Any) -> None:
    """Shuffled members give the same best members, excluded members and counts."""
    sizes = [len(group) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]])
    shuffled = np.concatenate(
        [start + random.sample(range(size), size) for start, size in zip(starts, sizes, strict=True)]
    )
    values = [member for group in groups for member in group]
    mixed = iter([values[place] for place in shuffled])
    first = kept(groups)
    second = kept([[next(mixed) for _ in group] for group in groups], shuffled.astype(np.int64))
    assert same(shuffled[second.best], first.best)
    assert same(np.where(second.rival < 0, -1, shuffled[second.rival]), first.rival)
    assert same(second.left, first.left)
    assert same(second.known, first.known)


@given(GROUPS)
def test_best_members__groups_are_independent(groups: list[list[Member]]) -> None:
    """A group has the same result alone and among other groups."""
    start = 0
    whole = kept(groups)
    assert same(whole.best, kept(groups).best)
    for number, group in enumerate(groups):
        alone = kept([group])
        assert alone.best[0] + start == whole.best[number]
        assert same(alone.left[0], whole.left[number])
        start += len(group)


@given(GROUPS)
def test_best_members__values_before_missing_values(groups: list[list[Member]]) -> None:
    """The best member has a value of the first criterion if any member has one, and criteria never add members."""
    found = kept(groups)
    flat = [member for group in groups for member in group]
    for number, group in enumerate(groups):
        assert math.isnan(flat[found.best[number]][0]) == all(math.isnan(member[0]) for member in group)
        left = [len(group), *found.left[number].tolist()]
        assert left == sorted(left, reverse=True)
        assert left[-1] >= 1


def test_best_members__explain_the_choice() -> None:
    """Each criterion has the number of remaining members, the best excluded one, and whether any value was known."""
    nan = math.nan
    found = kept([[(100, 0.5, nan, 0), (99.5, 0.6, nan, 0), (50, 0.9, nan, 0), (70, 0.9, nan, 0), (nan, 1, nan, 0)]])
    assert found.best.tolist() == [1]
    assert found.left.tolist() == [[2, 1, 1, 1]]
    assert found.rival.tolist() == [[3, 0, -1, -1]]
    assert found.known.tolist() == [[True, True, False, True]]


def test_best_members__of_no_groups() -> None:
    """No groups give empty results."""
    nothing = np.empty(0)
    found = best_members(np.empty(0, np.int64), [Criterion(nothing)], np.empty(0, np.int64))
    assert (len(found.best), found.left.shape) == (0, (0, 1))
