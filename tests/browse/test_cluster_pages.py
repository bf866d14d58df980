"""Pages of clusters, compared with a plain Python computation."""

from collections import defaultdict
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.browse.cluster_pages import ClusterPage, cluster_page
from framedex.search.ranking import COSINE_DISTANCE, Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import Media

_NUMBERS = st.lists(st.integers(0, 6) | st.just(2**31 - 1), min_size=1, max_size=60)


def _page(numbers: list[Any], *, ranked: list[int] | None, first: int, count: int) -> ClusterPage:
    """Return a page of rows whose ids are 100, 101, … and whose clusters are given."""
    values = pa.array(numbers, pa.string() if isinstance(numbers[0], str) else pa.int32())
    row_ids = 100 + np.arange(len(numbers), dtype=np.uint64)
    media = SimpleNamespace(
        values=lambda _condition, _level: (row_ids, values),
        values_at=lambda rows, _level: values.take(pa.array((rows - 100).astype(int))),
    )
    ranking = None
    if ranked is not None:
        score = np.linspace(0, 1, len(ranked), dtype=np.float32)
        ranking = Ranking(row_ids[ranked], score, COSINE_DISTANCE, 1 - score)
    return cluster_page(cast("Media", media), Condition(), "cluster_0", first=first, count=count, ranking=ranking)


def _expected(numbers: list[int], order: list[int], *, by_rank: bool) -> list[tuple[int, list[int]]]:
    members: dict[int, list[int]] = defaultdict(list)
    for row in order:
        members[numbers[row]].append(100 + row)
    found = list(members.items())  # in order of first members
    return found if by_rank else sorted(found, key=lambda each: -len(each[1]))


@pytest.mark.parametrize("by_rank", [False, True])
@given(numbers=_NUMBERS, count=st.integers(1, 4), data=st.data())
def test_page__equals_plain_python(by_rank: bool, numbers: list[int], count: int, data: Any) -> None:
    order = data.draw(st.permutations(range(len(numbers)))) if by_rank else list(range(len(numbers)))
    order = order[: data.draw(st.integers(1, len(order)))] if by_rank else order
    expected = _expected(numbers, order, by_rank=by_rank)
    seen = []
    for first in range(0, len(expected) + count, count):
        page = _page(numbers, ranked=order if by_rank else None, first=first, count=count)
        assert page.sizes == [len(rows) for _, rows in expected[first : first + count]]
        assert page.owners().tolist() == [
            name for name, size in zip(page.numbers, page.sizes, strict=True) for _ in range(size)
        ]
        ends = np.cumsum([0, *page.sizes])
        rows = [page.row_ids[start:stop].tolist() for start, stop in pairwise(ends)]
        seen += list(zip(page.numbers, rows, strict=True))
        assert page.first_members(2)[0] == [each[:2] for each in rows]
    assert seen == expected


def test_page__scores_are_those_of_the_best() -> None:
    page = _page([1, 2, 1], ranked=[2, 1, 0], first=0, count=5)
    assert page.first_members(1) == ([[102], [101]], [[0.0], [0.5]])
    assert _page([1, 2, 1], ranked=None, first=0, count=5).first_members(1) == ([[100], [101]], [[0.0], [0.0]])


def test_page__of_nothing() -> None:
    page = _page([1], ranked=[], first=0, count=5)
    assert page.numbers == []
    assert page.first_members(3) == ([], [])


@pytest.mark.parametrize("ranked", [None, [3, 2, 1, 0]])
def test_page__of_texts_leaves_out_what_has_none(ranked: list[int] | None) -> None:
    page = _page(["b", None, "a", "b"], ranked=ranked, first=0, count=5)
    assert (page.numbers, page.sizes) == (["b", "a"], [2, 1])
    assert page.owners().tolist() == ["b", "b", "a"]
    assert page.row_ids.tolist() == ([100, 103, 102] if ranked is None else [103, 100, 102])
