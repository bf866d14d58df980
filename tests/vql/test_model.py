"""What a filter may say, and where an invalid one is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from framedex.errors import InvalidFilter
from framedex.vql import json_schema, parse
from framedex.vql.model import KEYS
from tests.vql.strategies import filters

LABELS = {"labels": {"op": "is", "value": "cat"}}


def nested(depth: int) -> dict[str, Any]:
    """Return a test below that many `not`."""
    element: dict[str, Any] = LABELS
    for _ in range(depth):
        element = {"not": element}
    return element


@pytest.mark.parametrize(
    ("vql", "path"),
    [
        ("labels", "$"),
        ({"labels": {"op": "is", "value": "cat"}}, "$"),
        (7, "$"),
        (["labels"], "$[0]"),
        ([None], "$[0]"),
        ([{}], "$[0]"),
        ([LABELS, {"colour": {"op": "is", "value": "red"}}], "$[1]"),
        ([{**LABELS, "uniqueness": {"op": "uniqueness", "value": 1}}], "$[0]"),
        ([{"labels": "cat"}], "$[0].labels"),
        ([{"labels": {"value": "cat"}}], "$[0].labels.op"),
        ([{"labels": {"op": "like", "value": "cat"}}], "$[0].labels.op"),
        ([{"labels": {"op": "is"}}], "$[0].labels.value"),
        ([{"labels": {"op": "is", "value": 3}}], "$[0].labels.value"),
        ([{"labels": {"op": "one_of", "value": ["cat", 3]}}], "$[0].labels.value[1]"),
        ([{"labels": {"op": "is", "value": "\ud800"}}], "$[0].labels.value"),
        ([{"labels": {"op": "one_of", "value": ["cat", "\ud800"]}}], "$[0].labels.value[1]"),
        ([{"labels": {"op": "is", "value": "cat", "case": True}}], "$[0].labels.case"),
        ([{"id": [1], **LABELS}], "$[0].id"),
        ([LABELS, {"issues": {"op": "issue", "value": "ugly"}}], "$[1].issues.value"),
        ([{"tags": {"op": "one_of", "value": ["keep"]}}], "$[0].tags.op"),
        ([{"tags": {"op": "is", "value": ["keep", 3]}}], "$[0].tags.value[1]"),
        ([{"tags": {"op": "is", "value": None}}], "$[0].tags.value"),
        ([{"issues": {"op": "is", "value": "blur"}}], "$[0].issues.op"),
        ([{"issues": {"op": "issue", "value": "blur", "mode": "both"}}], "$[0].issues.mode"),
        ([{"issues": {"op": "issue", "value": "blur", "confidence_min": -0.1}}], "$[0].issues.confidence_min"),
        ([{"issues": {"op": "issue", "value": "blur", "confidence_max": 1.1}}], "$[0].issues.confidence_max"),
        ([{"duplicates": {"op": "duplicates", "value": 1.5}}], "$[0].duplicates.value"),
        ([{"duplicates": {"op": "duplicates", "value": float("nan")}}], "$[0].duplicates.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": float("inf")}}], "$[0].uniqueness.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": "much"}}], "$[0].uniqueness.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": None}}], "$[0].uniqueness.value"),
        ([{"any": LABELS}], "$[0].any"),
        ([{"any": [LABELS, {"labels": {"op": "was", "value": "cat"}}]}], "$[0].any[1].labels.op"),
        ([{"not": "cat"}], "$[0].not"),
        ([{"not": {"labels": {"op": "was", "value": "cat"}}}], "$[0].not.labels.op"),
        ([{"not": [LABELS, {"any": [{"dogs": 1}]}]}], "$[0].not[1].any[0]"),
        ([nested(50)], "$[0]" + ".not" * 50),
    ],
)
def test_parse__error_names_the_json_path(vql: Any, path: str) -> None:
    """An invalid filter is refused with the path of the part that is wrong."""
    with pytest.raises(InvalidFilter) as caught:
        parse(vql)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"invalid filter at {path}: ")


@pytest.mark.parametrize("vql", [None, [], ()])
def test_parse__nothing_means_everything(vql: Any) -> None:
    """No filter and an empty filter are the same."""
    assert parse(vql) == ()


def test_parse__ignores_ids() -> None:
    """Elements may carry an id for the client's own use."""
    assert [each.model_dump(by_alias=True) for each in parse([{"id": "a", **LABELS}, {"id": 2, **LABELS}])] == [
        LABELS,
        LABELS,
    ]


def test_parse__takes_parsed_parts() -> None:
    """What was parsed before may be part of a new filter."""
    inner = parse([LABELS])[0]
    assert parse([inner, {"not": [inner]}, {"any": [inner]}]) == parse([LABELS, {"not": [LABELS]}, {"any": [LABELS]}])


def test_parse__forty_nine_levels_are_allowed() -> None:
    """Filters of a sensible depth pass."""
    assert len(parse([nested(49)])) == 1


@settings(max_examples=100, deadline=None)
@given(filters)
def test_parse__round_trip(vql: list[Any]) -> None:
    """A parsed filter written as JSON parses to the same filter."""
    parsed = parse(vql)
    text = json.dumps([element.model_dump(mode="json", by_alias=True) for element in parsed])
    assert parse(json.loads(text)) == parsed


def test_schema__is_published_for_all_keys() -> None:
    """The JSON Schema describes an array whose elements are the six kinds, under their names on the wire."""
    schema = json_schema()
    assert schema["type"] == "array"
    kinds = [part["$ref"].rpartition("/")[2] for part in schema["items"]["anyOf"]]
    required = [schema["$defs"][kind]["required"] for kind in kinds]
    assert required == [[key] for key in KEYS]
    assert all(schema["$defs"][kind]["additionalProperties"] is False for kind in kinds)
    assert json.loads(json.dumps(schema)) == schema
