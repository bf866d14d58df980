"""Parsed filters: tuples of elements, which are tests or hold other elements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from framedex.vql.key_test import KeyTest, SearchTest


@dataclass(frozen=True)
class AnyOf:
    """An element that holds where at least one of its elements does; nowhere if it has none."""

    elements: "tuple[Element, ...]"


@dataclass(frozen=True)
class Not:
    """The complement of an element, or of several combined with AND.

    Attributes:
        negated: an element, or the elements of a list.
    """

    negated: "Element | tuple[Element, ...]"


Element: TypeAlias = KeyTest | AnyOf | Not
Filter: TypeAlias = tuple[Element, ...]


def children(element: Element) -> tuple[Element, ...]:
    """Return the elements that an element holds directly."""
    match element:
        case AnyOf():
            return element.elements
        case Not():
            return element.negated if isinstance(element.negated, tuple) else (element.negated,)
        case KeyTest():
            return ()
        case _:
            assert_never(element)


def walk(vql: Filter) -> Iterator[tuple[Element, int]]:
    """Yield all elements of a filter in the order in which they are written, each with its depth, from 1."""
    # An explicit stack: elements may be nested deeper than Python calls may be.
    stack: list[tuple[Element, int]] = [(element, 1) for element in reversed(vql)]
    while stack:
        element, depth = stack.pop()
        yield element, depth
        stack.extend((child, depth + 1) for child in reversed(children(element)))


def is_of_media(element: Element) -> bool:
    """Return whether a filter of objects asks an element of the media that the objects are in."""
    if isinstance(element, KeyTest):
        return element.is_of_media
    inner = children(element)
    return bool(inner) and all(map(is_of_media, inner))


def searches(vql: Filter) -> tuple[SearchTest, ...]:
    """Return the distinct tests of a filter that need a search, in the order in which they are written.

    Examples:
        >>> len(vql.searches(vql.parse(vql.text("fts", "cat") | vql.text("fts", "dog"))))
        2
    """
    return tuple(dict.fromkeys(element for element, _ in walk(vql) if isinstance(element, SearchTest)))


def leading_searches(vql: Filter) -> tuple[SearchTest, ...]:
    """Return the distinct searches with an order that all rows of a filter are results of: those outside of others.

    Examples:
        >>> test = vql.text("fts", "cat")
        >>> len(vql.leading_searches(vql.parse(test))), len(vql.leading_searches(vql.parse(~test)))
        (1, 0)
    """
    return tuple(dict.fromkeys(element for element in vql if isinstance(element, SearchTest) and element.ranks))


def to_json(vql: Filter) -> list[dict[str, Any]]:
    """Return the JSON array that describes a filter; :func:`framedex.vql.parse` returns the filter again.

    Examples:
        >>> vql.to_json(vql.parse(vql.labels("cat") & vql.uniqueness(0.5)))
        [{'labels': {'op': 'is', 'value': 'cat'}}, {'uniqueness': {'op': 'uniqueness', 'value': 0.5}}]
    """
    return [_element_json(element) for element in vql]


def _element_json(element: Element) -> dict[str, Any]:
    match element:
        case AnyOf():
            return {"any": to_json(element.elements)}
        case Not():
            negated = element.negated
            return {"not": to_json(negated) if isinstance(negated, tuple) else _element_json(negated)}
        case KeyTest():
            return {element.key: element.model_dump(mode="json", exclude_none=True)}
        case _:
            assert_never(element)
