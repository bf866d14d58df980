"""Cannot-link items are never in one group, and all other groups are unchanged."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory
from tests.analysis.arrays import Vectors, at_angles, same_partition, uniform, unit
from tests.laws import examples

LEVELS = (0.5, 0.8, 0.95, 1.0)
Groups = list[list[int]]


def groups(
    vectors: Vectors, cannot_link: Sequence[Sequence[int]], levels: tuple[float, ...] = LEVELS, *, k: int = 100
) -> tuple[Groups, list[float]]:
    """Return group numbers by item and level, and the similarity to the most similar item, with cannot-link sets."""
    first, inverse = unique_rows(vectors)
    sets = [np.array(each, dtype=np.int64) for each in cannot_link]
    found, similarity = duplicate_groups(
        VectorsInMemory(vectors[first]),
        nearest(vectors[first], k=k, engine=CpuProducts(1)),
        inverse,
        levels,
        cannot_link=sets,
    )
    assert found.dtype == np.int32
    assert similarity.dtype == np.float32
    return found.tolist(), similarity.tolist()


def slowly(scores: Vectors, cannot_link: Sequence[Sequence[int]], level: float) -> list[int]:
    """Return groups at a level, joined pair by pair from the most similar one on, in plain Python."""
    count = len(scores)
    group = [{item} for item in range(count)]
    for a, b in sorted(combinations(range(count), 2), key=lambda pair: -float(scores[pair])):
        both = group[a] | group[b]
        if scores[a, b] >= level - 1e-6 and not any(len(both & set(each)) > 1 for each in cannot_link):
            for item in both:
                group[item] = both
    return [min(each) if len(each) > 1 else -1 for each in group]


@st.composite
def cases(draw: st.DrawFn, *, tied: bool) -> tuple[Vectors, list[list[int]]]:
    """Return vectors, with equal ones if *tied*, and cannot-link sets of their rows."""
    count = draw(st.integers(2, 14))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = random.integers(-1, 2, (count, 2)) + 0.5 if tied else random.normal(size=(count, 3))
    sets = st.lists(st.integers(0, count - 1), min_size=2, max_size=4, unique=True)
    return unit(values), draw(st.lists(sets, min_size=1, max_size=4))


def test_cannot_link__a_pair_is_no_group() -> None:
    """A cannot-link pair of near-duplicates is no group, and has no other similar item."""
    found, similarity = groups(at_angles(0, 5, 90), [[0, 1]])
    assert found == [[-1] * 4] * 3
    assert similarity[:2] == pytest.approx([0, np.cos(np.radians(85))], abs=1e-6)


def test_cannot_link__an_item_between_joins_the_nearer_one() -> None:
    """A chain is split at its weakest pair; the item between stays with the more similar one."""
    found, similarity = groups(at_angles(0, 10, 25), [[0, 2]], (0.9,))
    assert found == [[0], [0], [-1]]
    assert similarity == pytest.approx([np.cos(np.radians(each)) for each in (10, 10, 15)])


def test_cannot_link__whole_group() -> None:
    """A group disappears at each level if no two members may be linked."""
    found, _ = groups(at_angles(0, 1, 2, 3, 4), [[0, 1, 2, 3, 4]])
    assert found == [[-1] * 4] * 5


def test_cannot_link__copies_of_one_vector() -> None:
    """Two cannot-link copies are separated; a third copy joins one of them, and all have the similarity 1."""
    found, similarity = groups(at_angles(0, 0, 0, 90), [[0, 1]])
    assert sorted(each[0] for each in found) == [-1, -1, 0, 0]
    assert found[2] == [0] * 4
    assert found[3] == [-1] * 4
    assert similarity[:3] == [1, 1, 1]


def test_cannot_link__only_copies() -> None:
    """Two cannot-link copies without a third one are single, with the similarity of the next other item."""
    found, similarity = groups(at_angles(0, 0, 70), [[0, 1]])
    assert found == [[-1] * 4] * 3
    assert similarity == pytest.approx([np.cos(np.radians(70))] * 3, abs=1e-6)


def test_cannot_link__does_not_touch_other_groups() -> None:
    """Groups without constrained items keep their members and similarities."""
    vectors = np.concatenate([at_angles(0, 4), -at_angles(0, 4)])
    found, similarity = groups(vectors, [[0, 1]], (0.9,))
    assert found == [[-1], [-1], [0], [0]]
    assert similarity[2:] == groups(vectors, [])[1][2:]


def test_cannot_link__items_that_are_unlike_anyway() -> None:
    """Cannot-link sets of items that are no near-duplicates change only the most similar item."""
    vectors = uniform(40, 16)
    found, similarity = groups(vectors, [[3, 30]], (0.9,))
    before = groups(vectors, [], (0.9,))
    assert found == before[0]
    assert [each for place, each in enumerate(similarity) if place not in {3, 30}] == [
        each for place, each in enumerate(before[1]) if place not in {3, 30}
    ]
    scores = vectors @ vectors.T
    for item, other in ((3, 30), (30, 3)):
        rest = np.delete(scores[item], [item, other])
        assert similarity[item] == pytest.approx(rest.max(), abs=1e-6)


@pytest.mark.slow
@examples(150)
@given(cases(tied=False))
def test_cannot_link__equals_joining_pair_by_pair(case: tuple[Vectors, list[list[int]]]) -> None:
    """Groups are joined from the most similar pair on, without pairs that would put cannot-link items together."""
    vectors, cannot_link = case
    scores = np.clip(vectors @ vectors.T, -1, 1)
    found, similarity = groups(vectors, cannot_link)
    for place, level in enumerate(LEVELS):
        expected = slowly(scores, cannot_link, level)
        column = [each[place] for each in found]
        assert [each == -1 for each in column] == [each == -1 for each in expected]
        assert same_partition(np.array(column), np.array(expected))
    for item in range(len(vectors)):
        foes = {item}.union(*(each for each in cannot_link if item in each))
        others = [scores[item, other] for other in range(len(vectors)) if other not in foes]
        assert similarity[item] == pytest.approx(max(others, default=-1), abs=1e-6)


@examples(150)
@given(cases(tied=True), st.integers(1, 20))
def test_cannot_link__law(case: tuple[Vectors, list[list[int]]], k: int) -> None:
    """Groups contain no cannot-link items, are nested, and no possible join is missing, even with copies and ties."""
    vectors, cannot_link = case
    found, _ = groups(vectors, cannot_link, k=max(k, len(np.unique(vectors, axis=0))))
    free, _ = groups(vectors, [])
    scores = vectors @ vectors.T
    named = {item for each in cannot_link for item in each}
    for place, level in enumerate(LEVELS):
        column = [each[place] for each in found]
        assert {*column} - {-1} == {*range(max(column) + 1)}
        for each in cannot_link:
            kept = [column[item] for item in each if column[item] >= 0]
            assert len(set(kept)) == len(kept)
        members = [
            {other for other, its in enumerate(column) if its == own >= 0} | {item} for item, own in enumerate(column)
        ]
        for item, other in combinations(range(len(column)), 2):
            if column[item] == column[other] >= 0:
                assert free[item][place] == free[other][place] >= 0
                assert place == 0 or found[item][place - 1] == found[other][place - 1] >= 0
            elif scores[item, other] >= level:
                both = members[item] | members[other]
                assert any(len(both & set(each)) > 1 for each in cannot_link)
        touched = {free[item][0] for item in named}
        rest = [item for item in range(len(column)) if free[item][0] not in touched]
        assert same_partition(np.array([column[item] for item in rest]), np.array([free[item][place] for item in rest]))
