"""The best image of a group does not depend on the order of its members."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.keeping import BestMembers, Criterion, LastCriterion, MemberFiles, best_members

TOLERANCES = ((0.01, 0.0), (0.0, 0.02), (0.02, 0.0), (0.0, 2.0))
"""The relative and the absolute tolerance of the four criteria in each test."""
KNOWN = st.one_of(st.sampled_from([0.0, 0.5, 0.51, 0.52, 100.0, 99.0, 98.9]), st.floats(-1e6, 1e6))
VALUES = st.tuples(*[st.one_of(st.just(math.nan), KNOWN)] * len(TOLERANCES))
NAMES = ("a", "b", "aa", "aaa")
MEMBER = st.tuples(VALUES, st.sampled_from(NAMES), st.sampled_from(["x", "y", None]))
"""Values, the file name, and the content, which is unknown if it is None."""
ORDER, NAME, EQUAL_NAME = LastCriterion
GROUPS = st.lists(st.lists(MEMBER, min_size=1, max_size=6), min_size=1, max_size=5)
Member = tuple[tuple[float, ...], str, str | None]


def kept(groups: list[list[Member]], order: npt.NDArray[np.int64] | None = None) -> BestMembers:
    sizes = np.array([len(group) for group in groups])
    members = [member for group in groups for member in group]
    values = np.array([each for each, _, _ in members], dtype=np.float64)
    criteria = [Criterion(values[:, place], *tolerance) for place, tolerance in enumerate(TOLERANCES)]

    def files(tied: npt.NDArray[np.int64]) -> MemberFiles:
        chosen = [members[number] for number in tied]
        return MemberFiles.of([name for _, name, _ in chosen], [content for _, _, content in chosen])

    return best_members(sizes, criteria, np.arange(len(values)) if order is None else order, files)


def by_words(group: list[Member]) -> tuple[int, LastCriterion, int]:
    """Return the best member by applying the documented rules one by one.

    Returns:
        position: of the best member.
        last: the last criterion.
        compared: the number of members that it compared.
    """
    left = list(range(len(group)))
    for place, (relative, absolute) in enumerate(TOLERANCES):
        known = [member for member in left if not math.isnan(group[member][0][place])]
        if known:
            best = max(group[member][0][place] for member in known)
            left = [member for member in known if group[member][0][place] >= best - abs(best) * relative - absolute]
    content = group[left[0]][2]
    equal = [member for member in left if content is not None and group[member][2] == content] or left[:1]
    least = min(len(group[member][1]) for member in equal)
    shortest = [member for member in equal if len(group[member][1]) == least]
    if equal == left and len(left) > 1:
        return (shortest[0], NAME, len(left)) if len(shortest) == 1 else (shortest[0], ORDER, len(shortest))
    return shortest[0], ORDER if shortest[0] == left[0] else EQUAL_NAME, len(left)


def same(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> bool:
    return np.array_equal(left, right)


@given(GROUPS)
def test_best_members__follow_the_documented_rules(groups: list[list[Member]]) -> None:
    """Each criterion keeps the members that tie with the best; of the rest, names and order decide."""
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    result = kept(groups)
    shown = zip((result.best - starts).tolist(), result.last.tolist(), result.compared.tolist(), strict=True)
    assert list(shown) == [by_words(group) for group in groups]


def chosen(*files: tuple[str, str | None]) -> tuple[int, LastCriterion, int]:
    """Return the member that is kept of equally good ones with some names and contents, and the last criterion."""
    result = kept([[((1.0, 1.0, 1.0, 1.0), name, content) for name, content in files]])
    return int(result.best[0]), LastCriterion(result.last[0]), int(result.compared[0])


def test_best_members__of_equal_files() -> None:
    """Of equal files the shortest name is kept, then the first in order; others are not compared by their names."""
    assert chosen(("flower-copy.jpg", "x"), ("flower.jpg", "x")) == (1, NAME, 2)
    assert chosen(("a (1).jpg", "x"), ("b.jpg", "x"), ("a.jpg", "x")) == (1, ORDER, 2)
    assert chosen(("long.jpg", "x"), ("a.jpg", "y")) == (0, ORDER, 2)
    assert chosen(("long.jpg", None), ("a.jpg", None)) == (0, ORDER, 2)
    assert chosen(("b-copy.jpg", "x"), ("a.jpg", "y"), ("b.jpg", "x"), ("c.jpg", "x")) == (2, EQUAL_NAME, 4)
    assert chosen(("b.jpg", "x"), ("a.jpg", "y"), ("b-copy.jpg", "x")) == (0, ORDER, 3)
    assert chosen(("alone.jpg", "x")) == (0, ORDER, 1)


@pytest.mark.slow
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
    assert same(second.last, first.last)
    assert same(second.compared, first.compared)


@pytest.mark.slow
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
        assert math.isnan(flat[found.best[number]][0][0]) == all(math.isnan(member[0][0]) for member in group)
        left = [len(group), *found.left[number].tolist()]
        assert left == sorted(left, reverse=True)
        assert left[-1] >= 1


def test_best_members__explain_the_choice() -> None:
    """Each criterion has the number of remaining members, the best excluded one, and whether any value was known."""
    nan = math.nan
    values = [(100, 0.5, nan, 0), (99.5, 0.6, nan, 0), (50, 0.9, nan, 0), (70, 0.9, nan, 0), (nan, 1, nan, 0)]
    found = kept([[(each, "a", "x") for each in values]])
    assert found.best.tolist() == [1]
    assert found.left.tolist() == [[2, 1, 1, 1]]
    assert found.rival.tolist() == [[3, 0, -1, -1]]
    assert found.known.tolist() == [[True, True, False, True]]


def test_best_members__of_no_groups() -> None:
    """No groups give empty results."""
    nothing = np.empty(0)
    found = best_members(
        np.empty(0, np.int64), [Criterion(nothing)], np.empty(0, np.int64), lambda _: MemberFiles.of([], [])
    )
    assert (len(found.best), found.left.shape) == (0, (0, 1))
