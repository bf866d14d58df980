"""The searches that a filter asks for, and its JSON."""

import json
from typing import Any

import pytest
from hypothesis import given

from framedex.vql import SimilarityTest, TextTest, leading_searches, parse, searches, to_json
from tests.laws import examples
from tests.vql import strategies


def test_searches__are_distinct_and_in_order() -> None:
    """Each different search is named once, at whatever depth it stands."""
    text = {"text": {"op": "fts", "value": "cat"}}
    closer = {"similarity": {"op": "media", "value": "m", "threshold": 0.25}}
    vql = parse(
        [{"any": [{"not": [closer]}, text]}, text, {"id": "x", **text}, {"labels": {"op": "is", "value": "cat"}}]
    )
    wanted = (SimilarityTest(op="media", value="m", threshold=0.25), TextTest(op="fts", value="cat"))
    assert searches(vql) == wanted
    assert len({*wanted, *searches(vql)}) == 2
    assert searches(()) == ()


def test_leading_searches__stand_in_no_other_element() -> None:
    """All rows of a filter are results of its leading searches; those within other elements may lack some."""
    cat, dog = ({"text": {"op": "fts", "value": value}} for value in ("cat", "dog"))
    assert leading_searches(parse([cat, {"any": [dog]}, {"not": dog}, cat])) == (TextTest(op="fts", value="cat"),)


@pytest.mark.slow
@examples(300)
@given(strategies.filters)
def test_to_json__is_parsed_to_the_same_filter(elements: list[dict[str, Any]]) -> None:
    """The JSON of a filter, also as text, describes the same filter."""
    vql = parse(elements)
    assert parse(json.dumps(to_json(vql))) == vql
