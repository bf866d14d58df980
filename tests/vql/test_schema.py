"""The JSON Schema of filters, and the table of keys in the documents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from framedex.vql import json_schema, parse
from framedex.vql.registry import COMBINATIONS, KEYS
from framedex.vql.schema import keys_table, schema_text, with_table
from tests.laws import examples
from tests.vql.strategies import filters, to_json

PUBLISHED = Path(__file__).parents[2] / "docs" / "vql.schema.json"
DOCUMENT = PUBLISHED.with_name("vql.md")
VALIDATOR = Draft202012Validator(json_schema())


def test_schema__is_published_for_all_keys() -> None:
    """The JSON Schema describes an array whose elements are of all kinds, under their names on the wire."""
    schema = json_schema()
    assert schema["type"] == "array"
    assert schema["items"] == {"$ref": "#/$defs/Element"}
    kinds = [part["$ref"].rpartition("/")[2] for part in schema["$defs"]["Element"]["anyOf"]]
    required = [schema["$defs"][kind]["required"] for kind in kinds]
    assert required == [[key] for key in (*KEYS, *COMBINATIONS)]
    assert all(schema["$defs"][kind]["additionalProperties"] is False for kind in kinds)


def test_schema__file_is_current() -> None:
    """The published file is what the models say; ``make schema`` writes it."""
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text()


@pytest.mark.slow
def test_schema__is_a_schema() -> None:
    """It obeys the rules of JSON Schemas."""
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.slow
@examples(100)
@given(filters)
def test_schema__allows_what_parses(vql: list[Any]) -> None:
    """A filter that parses is valid by the schema, as it was written and as it is written again."""
    VALIDATOR.validate(vql)
    VALIDATOR.validate(to_json(parse(vql)))


@pytest.mark.parametrize(
    "element",
    [
        {},
        {"colour": 1},
        {"labels": {"op": "like", "value": "cat"}},
        {"labels": {"op": "is", "value": 3}},
        {"labels": {"op": "is", "value": "cat"}, "tags": {"op": "is", "value": "x"}},
        {"uniqueness": {"op": "uniqueness", "value": 1.5}},
        {"duplicates": {"op": "duplicates", "value": 0.95}},
        {"size": {"op": "between", "value": 3}},
        {"size": {"op": "lt", "value": [3, 4]}},
        {"field": {"name": "a", "op": "one_of", "value": "x"}},
        {"field": {"name": "a", "op": "is", "value": ["x"]}},
        {"batch": {"op": "is", "value": [1]}},
        {"text": {"op": "fts", "value": "x", "threshold": 2}},
        {"any": {"labels": {"op": "is", "value": "cat"}}},
        {"not": [{"dogs": 1}]},
    ],
)
def test_schema__refuses_what_does_not_parse(element: dict[str, Any]) -> None:
    """What clients can check before they send it: keys, ops, types, ranges, and which ops take lists."""
    assert not VALIDATOR.is_valid([element])


def test_document__has_an_example_of_each_key() -> None:
    """The examples of the document parse, are valid by the schema, and show every key."""
    examples = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)]
    for example in examples:
        assert parse(example)
        VALIDATOR.validate(example)
    assert {key for example in examples for element in example for key in element} == {*KEYS, *COMBINATIONS}


def test_document__table_is_current() -> None:
    """The table of keys has a row for each, with its ops; ``make schema`` writes it."""
    document = DOCUMENT.read_text("utf-8")
    assert with_table(document) == document
    rows = keys_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(KEYS)
    assert "| `labels` | `is`, `is_not`, `one_of`, `not_one_of` | Images by their labels;" in keys_table()
