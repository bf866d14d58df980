"""The JSON Schema of the language and the table of its keys, derived from the registry."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from framedex.vql.key_test import KeyTest
from framedex.vql.parsing import Identified
from framedex.vql.registry import TESTS

TABLE_START, TABLE_END = "<!-- keys: written by `make schema` -->", "<!-- end of keys -->"
_ELEMENT = {"$ref": "#/$defs/Element"}
_ARRAY = {"type": "array", "items": _ELEMENT}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of filters.

    Examples:
        >>> vql.json_schema()["type"]
        'array'
    """
    references, definitions = models_json_schema([(test, "validation") for test in TESTS])
    elements = {_title(test.key): _keyed(test.key, references[test, "validation"]) for test in TESTS}
    elements["AnyOf"] = {
        **_keyed("any", _ARRAY),
        "description": '``{"any": […]}``: at least one of the elements holds; nothing passes an empty list.',
    }
    elements["Not"] = {
        **_keyed("not", {"anyOf": [_ELEMENT, _ARRAY]}),
        "description": '``{"not": …}``: the complement of an element, or of a list combined with AND.',
    }
    union = {"Element": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in elements]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "VQL",
        "description": "A filter of media: elements of one key each, combined with AND.",
        **_ARRAY,
        "$defs": {**union, **elements, **_described(definitions["$defs"])},
    }


def _described(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return definitions with what their docstrings say to all, without examples in Python."""
    found = {}
    for name, each in definitions.items():
        text = each.get("description", "").partition("\n\nExamples:")[0]
        found[name] = {**each, "description": text} if text else each
    return found


def _keyed(key: str, value: Any) -> dict[str, Any]:
    """Return the JSON Schema of an element: an object of one key."""
    return {
        "type": "object",
        "description": f'``{{"{key}": …}}``.',
        "properties": {**Identified.model_json_schema()["properties"], key: value},
        "required": [key],
        "additionalProperties": False,
    }


def _title(key: str) -> str:
    return "".join(part.capitalize() for part in key.split("_"))


def schema_text() -> str:
    """Return the JSON Schema as text, as it is published."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def keys_table() -> str:
    """Return a table of the keys in Markdown."""
    rows = [f"| `{test.key}` | {_ops(test)} | {_summary(test)} |" for test in TESTS]
    return "\n".join(["| key | ops | passes |", "|---|---|---|", *rows])


def _ops(test: type[KeyTest]) -> str:
    ops = test.model_json_schema()["properties"]["op"]
    return ", ".join(f"`{op}`" for op in ops.get("enum", [ops.get("const")]))


def _summary(test: type[KeyTest]) -> str:
    return (test.__doc__ or "").partition("\n")[0].replace("``", "`")


def with_table(document: str) -> str:
    """Return a document with the table of keys between its marks."""
    before, _, rest = document.partition(TABLE_START)
    _, _, after = rest.partition(TABLE_END)
    return f"{before}{TABLE_START}\n{keys_table()}\n{TABLE_END}{after}"
