"""From JSON to a filter, or to an error that says where it is wrong and what would be right."""

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from framedex.errors import InvalidFilter
from framedex.vql.expression import Expression
from framedex.vql.model import KEYS, Element, Filter, Objects, Similarity, Text, walk
from framedex.vql.values import shown

MAX_DEPTH = 50
"""How deep elements may be nested."""
MAX_ELEMENTS = 10_000
"""How many elements a filter may have, at all depths together."""
MAX_SEARCHES = 50
"""How many different searches a filter may ask for; tests of the objects in media count, too."""


def parse(vql: Sequence[Any] | None) -> Filter:
    """Return the filter that a JSON array describes; None and an empty array mean everything.

    Args:
        vql: the array as Python objects; or as JSON text, ``str`` or ``bytes``; or an expression. Elements may be
            objects, expressions, and parts of filters that were parsed before.

    Raises:
        InvalidFilter: with the JSON path of the part that is wrong. A filter has at most 10,000 elements, nested at
            most 50 deep, asks for at most 50 different searches, and gives at most 10,000 values in a list.
    """
    if vql is None:
        return ()
    if isinstance(vql, str | bytes | bytearray):
        vql = _decode(vql)
    if not isinstance(vql, Sequence) or isinstance(vql, str | bytes | bytearray):
        raise InvalidFilter("$", f"a filter is an array of objects, not {shown(vql)}")
    parser = _Parser()
    found = tuple(parser.element(part, f"$[{place}]", 1) for place, part in enumerate(vql))
    asked = {
        element.model_dump_json() for element, _ in walk(found) if isinstance(element, Text | Similarity | Objects)
    }
    if (count := len(asked)) > MAX_SEARCHES:
        raise InvalidFilter("$", f"a filter may ask for {MAX_SEARCHES} different searches; this one has {count}")
    return found


def _decode(text: str | bytes | bytearray) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except InvalidFilter:
        raise
    except RecursionError:
        raise InvalidFilter("$", f"filters may be nested {MAX_DEPTH} deep; this is deeper") from None
    except ValueError as error:  # malformed JSON, an unknown encoding, a number of thousands of digits
        raise InvalidFilter("$", f"a filter is JSON; this is none: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InvalidFilter("$", f"an object has each key once; found {shown(keys)}")
    return found


class _Parser:
    """Parses one filter, and counts its elements."""

    def __init__(self) -> None:
        self.count = 0

    def element(self, part: Any, path: str, depth: int) -> Element:
        if isinstance(part, Expression):
            part = part.element
        if isinstance(part, tuple(KEYS.values())):
            return self.parsed(part, path, depth)  # type: ignore[arg-type] # KEYS holds exactly the members of Element
        self.counted(path, depth)
        if not isinstance(part, dict):
            raise InvalidFilter(path, f"expected an object with one key, not {shown(part)}")
        keys = [key for key in part if key != "id"]
        if len(keys) != 1 or keys[0] not in KEYS:
            meant = get_close_matches(keys[0], KEYS, 1) if len(keys) == 1 and isinstance(keys[0], str) else []
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise InvalidFilter(path, f"expected one key of {', '.join(KEYS)}; found {shown(keys)}{hint}")
        key = keys[0]
        content = {**part, key: self.inner(key, part[key], f"{path}.{key}", depth)}
        try:
            return KEYS[key].model_validate(content)  # type: ignore[return-value] # as above
        except ValidationError as error:
            raise _as_filter_error(error, content, path) from None

    def inner(self, key: str, inner: Any, path: str, depth: int) -> Any:
        """Return the value of an element, parsed where it holds further elements."""
        if key == "any" and not isinstance(inner, list | tuple):
            raise InvalidFilter(path, f"expected an array of elements, not {shown(inner)}")
        if key in ("any", "not") and isinstance(inner, list | tuple):
            return [self.element(each, f"{path}[{place}]", depth + 1) for place, each in enumerate(inner)]
        return self.element(inner, path, depth + 1) if key == "not" else inner

    def parsed(self, part: Element, path: str, depth: int) -> Element:
        """Return a part that was parsed before; what it holds counts here too."""
        for _, below in walk((part,)):
            self.counted(path, depth + below - 1)
        return part

    def counted(self, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidFilter(path, f"filters may be nested {MAX_DEPTH} deep")
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise InvalidFilter(path, f"a filter may have {MAX_ELEMENTS:,} elements; this one has more")


def _as_filter_error(error: ValidationError, content: Any, path: str) -> InvalidFilter:
    """Return what is wrong at the place that lies deepest in the filter: what any of the errors there would allow."""
    errors = error.errors(include_url=False)
    where = [_steps(each["loc"], content, missing=_is_missing(each)) for each in errors]
    deepest = max(where, key=len)
    found = [each for each, steps in zip(errors, where, strict=True) if steps == deepest]
    # What one member of a union says of the value is worth more than that it does not have the type of another.
    found = [each for each in found if not each["type"].endswith("_type")] or found
    allowed, place = _either(each["msg"] for each in found), path + "".join(deepest)
    return InvalidFilter(place, allowed if _is_missing(found[0]) else f"{allowed}; found {shown(found[0]['input'])}")


def _is_missing(error: Any) -> bool:
    """Return whether an error is about a key that lacks, or whose default is wrong where it does."""
    return error["type"] == "missing" or error["input"] is None


def _either(messages: Iterable[str]) -> str:
    first, *others = dict.fromkeys(each.removeprefix("Value error, ") for each in messages)
    return " or ".join([first, *(each.removeprefix("Input should be ") for each in others)])


def _steps(loc: Sequence[int | str], content: Any, *, missing: bool) -> list[str]:
    """Return pydantic's location as steps of a JSON path: it also names the members of unions, which are no steps.

    Args:
        loc: the location.
        content: what was parsed.
        missing: whether its last part is a key that lacks.
    """
    steps: list[str] = []
    for place, part in enumerate(loc):
        if isinstance(part, int) and isinstance(content, Sequence):
            steps.append(f"[{part}]")
            content = content[part]
        elif isinstance(content, Mapping) and (part in content or (missing and place == len(loc) - 1)):
            steps.append(f".{part}")
            content = content.get(part)
    return steps
