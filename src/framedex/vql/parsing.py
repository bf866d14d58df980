"""Parsing of filters: from JSON to elements, or to an error that names the wrong part and the allowed values."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from framedex.core.checks import suggestion
from framedex.errors import InvalidFilter
from framedex.vql.elements import AnyOf, Element, Filter, Not, walk
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.registry import COMBINATIONS, KEYS
from framedex.vql.validation import validated
from framedex.vql.values import shown

MAX_DEPTH = 50
"""Levels to which elements may be nested."""
MAX_ELEMENTS = 10_000
"""Elements that a filter may have, at all depths together."""
MAX_SEARCHES = 50
"""Different searches that a filter may ask for; tests of the objects in media count, too."""
_KEYS = (*KEYS, *COMBINATIONS)


class Identified(BaseModel):
    """The part of an element beside its key."""

    model_config = ConfigDict(extra="forbid")
    id: str | int | None = Field(default=None, description="ignored")


def parse(vql: Sequence[Any] | None) -> Filter:
    """Return the filter that a JSON array describes; None and an empty array select everything.

    Args:
        vql: the array as Python objects; or as JSON text, ``str`` or ``bytes``; or an expression. Elements may be
            objects, expressions, and parts of filters that were parsed before.

    Raises:
        InvalidFilter: with the JSON path of the part that is wrong. A filter has at most 10,000 elements, nested at
            most 50 deep, asks for at most 50 different searches, and gives at most 10,000 values in a list.

    Examples:
        >>> vql.parse('[{"labels": {"op": "is", "value": "cat"}}]')
        (LabelsTest(op='is', value='cat'),)
        >>> vql.parse([{"lables": "cat"}])
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidFilter: invalid filter at $[0]: expected one key of text, ...; did you mean 'labels'?
    """
    if vql is None:
        return ()
    if isinstance(vql, str | bytes | bytearray):
        vql = _decode(vql)
    if not isinstance(vql, Sequence) or isinstance(vql, str | bytes | bytearray):
        raise InvalidFilter("$", f"a filter is an array of objects, not {shown(vql)}")
    parser = _Parser()
    parsed = tuple(parser.element(part, f"$[{index}]", 1) for index, part in enumerate(vql))
    costly = {
        (element.key, element.model_dump_json())
        for element, _ in walk(parsed)
        if isinstance(element, KeyTest) and element.is_costly
    }
    if (count := len(costly)) > MAX_SEARCHES:
        raise InvalidFilter("$", f"a filter may ask for {MAX_SEARCHES} different searches; this one has {count}")
    return parsed


def _decode(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except InvalidFilter:
        raise
    except RecursionError:
        raise InvalidFilter("$", f"filters may be nested {MAX_DEPTH} deep; this is deeper") from None
    except ValueError as error:  # malformed JSON, an unknown encoding, a number of thousands of digits
        raise InvalidFilter("$", f"a filter is JSON; this is not: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InvalidFilter("$", f"an object has each key once; found {shown(keys)}")
    return content


class _Parser:
    """The parser of one filter, which counts its elements."""

    def __init__(self) -> None:
        self.count = 0

    def element(self, part: Any, path: str, depth: int) -> Element:
        if isinstance(part, Expression):
            part = part.element
        if isinstance(part, KeyTest | AnyOf | Not):
            return self.parsed(part, path, depth)
        self.check_limits(path, depth)
        if not isinstance(part, dict):
            raise InvalidFilter(path, f"expected an object with one key, not {shown(part)}")
        keys = [key for key in part if key != "id"]
        if len(keys) != 1 or keys[0] not in _KEYS:
            guess = suggestion(keys[0], _KEYS) if len(keys) == 1 else ""
            raise InvalidFilter(path, f"expected one key of {', '.join(_KEYS)}; found {shown(keys)}{guess}")
        key = keys[0]
        if "id" in part:
            validated(Identified, {"id": part["id"]}, path)
        return self.value(key, part[key], f"{path}.{key}", depth)

    def value(self, key: str, value: Any, path: str, depth: int) -> Element:
        """Return the element of a key and its value."""
        if key not in COMBINATIONS:
            return validated(KEYS[key], value, path)
        if key == "not":
            is_list = isinstance(value, list | tuple)
            return Not(self.elements(value, path, depth + 1) if is_list else self.element(value, path, depth + 1))
        if not isinstance(value, list | tuple):
            raise InvalidFilter(path, f"expected an array of elements, not {shown(value)}")
        return AnyOf(self.elements(value, path, depth + 1))

    def elements(self, parts: Sequence[Any], path: str, depth: int) -> tuple[Element, ...]:
        return tuple(self.element(part, f"{path}[{index}]", depth) for index, part in enumerate(parts))

    def parsed(self, part: Element, path: str, depth: int) -> Element:
        """Return a part that was parsed before; the elements that it holds count, too."""
        for _, below in walk((part,)):
            self.check_limits(path, depth + below - 1)
        return part

    def check_limits(self, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidFilter(path, f"filters may be nested {MAX_DEPTH} deep")
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise InvalidFilter(path, f"a filter may have {MAX_ELEMENTS:,} elements; this one has more")
