"""The searches that a filter asks for."""

from framedex.vql import SimilarityTest, TextTest, leading_searches, parse, searches


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
