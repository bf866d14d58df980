"""From JSON to filters, and where an invalid one is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given

from framedex import vql as expressions
from framedex.errors import InvalidFilter
from framedex.vql import parse
from framedex.vql.parsing import MAX_ELEMENTS, MAX_SEARCHES
from framedex.vql.values import MAX_VALUES
from tests.laws import examples
from tests.vql.strategies import filters, to_json

LABELS = {"labels": {"op": "is", "value": "cat"}}


def nested(depth: int) -> dict[str, Any]:
    """Return a test below that many `not`."""
    element: dict[str, Any] = LABELS
    for _ in range(depth):
        element = {"not": element}
    return element


def nested_list(depth: int) -> dict[str, Any]:
    """Return a test below that many `not` of lists."""
    element: dict[str, Any] = LABELS
    for _ in range(depth):
        element = {"not": [element]}
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
        ([{"duplicates": {"op": "duplicates", "value": 0.9599}}], "$[0].duplicates.value"),
        ([{"duplicates": {"op": "duplicates", "value": float("nan")}}], "$[0].duplicates.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": float("inf")}}], "$[0].uniqueness.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": "much"}}], "$[0].uniqueness.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": None}}], "$[0].uniqueness.value"),
        ([{"quality": {"of": "blur", "op": "lt"}}], "$[0].quality.value"),
        ([{"quality": {"of": "blur", "op": "missing", "value": 0.5}}], "$[0].quality.value"),
        ([{"quality": {"op": "missing"}}], "$[0].quality.of"),
        ([{"size": {"op": "missing"}}], "$[0].size.op"),
        ([{"any": LABELS}], "$[0].any"),
        ([{"any": [LABELS, {"labels": {"op": "was", "value": "cat"}}]}], "$[0].any[1].labels.op"),
        ([{"not": "cat"}], "$[0].not"),
        ([{"not": {"labels": {"op": "was", "value": "cat"}}}], "$[0].not.labels.op"),
        ([{"not": [LABELS, {"any": [{"dogs": 1}]}]}], "$[0].not[1].any[0]"),
        ([nested(50)], "$[0]" + ".not" * 50),
        ([nested(1000)], "$[0]" + ".not" * 50),
        ([nested_list(1000)], "$[0]" + ".not[0]" * 50),
        ("labels: cat", "$"),
        (b"\xff\xfe\x00", "$"),
        ("", "$"),
        ("{}", "$"),
        ('"labels"', "$"),
        ("[" * 100_000, "$"),
        ('[{"any":' * 100_000, "$"),
        ('[{"labels": {"op": "is", "value": "cat"}, "labels": {"op": "is", "value": "dog"}}]', "$"),
        ('[{"uniqueness": {"op": "uniqueness", "value": NaN}}]', "$[0].uniqueness.value"),
        ('[{"uniqueness": {"op": "uniqueness", "value": %s}}]' % ("9" * 5000), "$"),
        ([LABELS] * (MAX_ELEMENTS + 1), f"$[{MAX_ELEMENTS}]"),
        ([{"any": [LABELS] * MAX_ELEMENTS}], f"$[0].any[{MAX_ELEMENTS - 1}]"),
        ([{"labels": {"op": "one_of", "value": ["cat"] * (MAX_VALUES + 1)}}], "$[0].labels.value"),
        ([{"text": {"op": "fts", "value": str(number)}} for number in range(MAX_SEARCHES + 1)], "$"),
        ([{1: 2}], "$[0]"),
        ([{"labels": {"op": "is", "value": {"a": 1}}}], "$[0].labels.value"),
        ([{"uniqueness": {"op": "uniqueness", "value": True}}], "$[0].uniqueness.value"),
        ([{"any": [[LABELS]]}], "$[0].any[0]"),
        ([{"text": {"op": "like", "value": "cat"}}], "$[0].text.op"),
        ([{"text": {"op": "fts", "value": 3}}], "$[0].text.value"),
        ([{"text": {"op": "semantic", "value": "cat", "threshold": 1.1}}], "$[0].text.threshold"),
        ([{"similarity": {"op": "media", "value": "x", "threshold": 2.1}}], "$[0].similarity.threshold"),
        ([{"similarity": {"op": "media", "value": "x", "threshold": -0.1}}], "$[0].similarity.threshold"),
        ([{"field": {"op": "is", "value": "x"}}], "$[0].field.name"),
        ([{"field": {"name": "a", "op": "is"}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "is", "value": ["x"]}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "one_of", "value": "x"}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "missing", "value": "x"}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "between", "value": [1]}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "lt", "value": float("nan")}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "lt", "value": 10**400}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "lt", "value": True}}], "$[0].field.value"),
        ([{"field": {"name": "a", "op": "one_of", "value": ["x", None]}}], "$[0].field.value[1]"),
        ([{"file_name": {"op": "like", "value": "x"}}], "$[0].file_name.op"),
        ([{"file_name": {"op": "one_of", "value": "x"}}], "$[0].file_name.value"),
        ([{"file_name": {"op": "ends", "value": ["x"]}}], "$[0].file_name.value"),
        ([{"folder": {"op": "is", "value": ["x"]}}], "$[0].folder.value"),
        ([{"media": {"op": "is", "value": "sound"}}], "$[0].media.value"),
        ([{"size": {"op": "lt", "value": -1}}], "$[0].size.value"),
        ([{"size": {"op": "lt", "value": 0.5}}], "$[0].size.value"),
        ([{"size": {"op": "lt", "value": "5"}}], "$[0].size.value"),
        ([{"size": {"op": "lt", "value": [5, 6]}}], "$[0].size.value"),
        ([{"size": {"op": "between", "value": [6, 5]}}], "$[0].size.value"),
        ([{"size": {"op": "between", "value": [5, -6]}}], "$[0].size.value[1]"),
        ([{"size": {"op": "lt", "value": 5, "of": "depth"}}], "$[0].size.of"),
        ([{"date_added": {"op": "lt", "value": "yesterday"}}], "$[0].date_added.value"),
        ([{"date_added": {"op": "lt", "value": 2024}}], "$[0].date_added.value"),
        ([{"date_added": {"op": "between", "value": ["2024-05-02", "2024-05-01"]}}], "$[0].date_added.value"),
        ([{"batch": {"op": "is", "value": -1}}], "$[0].batch.value"),
        ([{"batch": {"op": "one_of", "value": 1}}], "$[0].batch.value"),
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
    assert to_json(parse([{"id": "a", **LABELS}, {"id": 2, **LABELS}])) == [LABELS, LABELS]


def test_parse__takes_parsed_parts() -> None:
    """What was parsed before may be part of a new filter."""
    inner = parse([LABELS])[0]
    assert parse([inner, {"not": [inner]}, {"any": [inner]}]) == parse([LABELS, {"not": [LABELS]}, {"any": [LABELS]}])


def test_parse__forty_nine_levels_are_allowed() -> None:
    """Filters of a sensible depth pass."""
    assert len(parse([nested(49)])) == 1


@pytest.mark.slow
@examples(100)
@given(filters)
def test_parse__round_trip(vql: list[Any]) -> None:
    """A parsed filter written as JSON parses to the same filter."""
    parsed = parse(vql)
    text = json.dumps(to_json(parsed))
    assert parse(json.loads(text)) == parsed


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ({"labels": {"op": "like", "value": "cat"}}, "'is', 'is_not', 'one_of' or 'not_one_of'; found 'like'"),
        ({"labels": {"op": "is", "value": 3}}, "a valid string or a valid list; found 3"),
        ({"issues": {"op": "issue", "value": "ugly"}}, "blur, bright, corrupted, dark"),
        ({"quality": {"of": "ugly", "op": "missing"}}, "no issue 'ugly'; those with a value: blur, bright, dark, "),
        ({"issues": {"op": "issue", "value": "blur", "confidence_min": 2}}, "less than or equal to 1; found 2"),
        (
            {"duplicates": {"op": "duplicates", "value": 0.9}},
            "one of the similarities 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0 or 'near'; found 0.9",
        ),
        ({"colour": 1}, "expected one key of text, similarity, labels"),
        ({"labls": {}}, "; found ['labls']; did you mean 'labels'?"),
        ({"size": {"op": "lt", "value": -1}}, "greater than or equal to 0; found -1"),
        ({"date_added": {"op": "lt", "value": "soon"}}, "'2024-05-17' for the whole day or '2024-05-17T09:30:00Z'"),
        ({"field": {"name": "a", "op": "between", "value": 1}}, "'between' takes a list of two values; found 1"),
        ({"lables": {"op": "is", "value": "cat"}}, "found ['lables']; did you mean 'labels'?"),
        ({"Not": []}, "found ['Not']; did you mean 'not'?"),
        ({"folders": {"op": "is", "value": ""}}, "did you mean 'folder'?"),
        (
            {"labels": {"op": "is", "value": "cat", "valeu": 1}},
            "expected one of op, value; found 'valeu'; did you mean",
        ),
        ({"size": {"op": "lt", "value": 5, "off": "width"}}, "of; found 'off'; did you mean 'of'?"),
        ({"labels": "cat"}, "expected an object with op, value; found 'cat'"),
        ({"id": [1], "labels": {"op": "is", "value": "cat"}}, "found [1]"),
    ],
)
def test_parse__error_names_the_value_and_what_is_allowed(element: dict[str, Any], reason: str) -> None:
    """The reason says what would be right, and what is there instead."""
    with pytest.raises(InvalidFilter) as caught:
        parse([element])
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    "value", ["x" * 10**6, [["x"] * 1000] * 1000, {"op": "x" * 10**6}], ids=["text", "list", "object"]
)
def test_parse__error_stays_short(value: Any) -> None:
    """Whatever is wrong, the message shows a little of it."""
    for element in (value, {"labels": value}, {"labels": {"op": value, "value": "cat"}}, {"any": value}):
        with pytest.raises(InvalidFilter) as caught:
            parse([element])
        assert len(str(caught.value)) < 1000


def test_parse__suggests_nothing_for_keys_that_resemble_none() -> None:
    """A suggestion is only made where a key is similar, and of one key; long ones are not compared."""
    for element in ({"palette": 1}, {"lables": 1, "tags": 1}, {"labels" * 10**5: 1}, {1: 2}):
        with pytest.raises(InvalidFilter) as caught:
            parse([element])
        assert "did you mean" not in caught.value.reason


def test_parse__what_holds_itself_is_too_deep() -> None:
    """A list without an end is an error like any other."""
    endless: dict[str, Any] = {}
    endless["not"] = [endless]
    with pytest.raises(InvalidFilter, match="nested 50 deep"):
        parse([endless])


def test_parse__takes_json_text() -> None:
    """What the interface sends is text or bytes, in any of the encodings of JSON."""
    text = json.dumps([{"labels": {"op": "is", "value": "it's; \0 🐈 קטע"}}], ensure_ascii=False)
    for given_text in (
        text,
        text.encode(),
        text.encode("utf-16"),
        bytearray(text.encode()),
        json.dumps(json.loads(text)),
    ):
        assert parse(given_text) == parse(json.loads(text))
    assert parse("[]") == ()


def test_parse__parsed_parts_count_too() -> None:
    """The limits hold for parts that were parsed before."""
    deep = parse([nested(49)])
    with pytest.raises(InvalidFilter, match="nested 50 deep"):
        parse([{"not": deep[0]}])
    many = parse([{"any": [LABELS] * 6000}])
    with pytest.raises(InvalidFilter, match="10,000 elements"):
        parse([*many, *many])


def test_parse__takes_expressions() -> None:
    """An expression is a filter, and may be an element of one, also where it says several things."""
    both = expressions.labels("cat") & expressions.uniqueness(0.5)
    assert parse(both) == parse(both.to_json())
    assert parse([{"any": [both]}]) == parse([{"any": [{"not": {"not": both.to_json()}}]}])
