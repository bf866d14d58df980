"""Merging of tests beside each other that are equal, or that one test can express."""

from collections.abc import Hashable, Iterable, Sequence

from framedex.vql.elements import Element
from framedex.vql.key_test import KeyTest


def merged(elements: Iterable[Element], *, any_of: bool) -> list[tuple[int, Element]]:
    """Return elements with the same meaning in which tests are merged, each with the index at which it was written.

    The engine runs each test on every row, so a thousand tests for a label take a thousand times as long as one test
    for a thousand labels. Tests for labels and tags in an OR become one each, tests against labels in an AND likewise,
    and of equal tests one stays.

    Args:
        elements: beside each other.
        any_of: whether they are combined with OR; else with AND.
    """
    groups: dict[Hashable, tuple[int, list[KeyTest]]] = {}
    result: dict[int, Element] = {}
    for index, element in enumerate(elements):
        if isinstance(element, KeyTest):
            groups.setdefault(element.merge_key(any_of=any_of), (index, []))[1].append(element)
        else:
            result[index] = element
    result |= {index: _one(tests, any_of=any_of) for index, tests in groups.values()}
    return sorted(result.items())


def _one(tests: Sequence[KeyTest], *, any_of: bool) -> KeyTest:
    return tests[0] if len(tests) == 1 else type(tests[0]).merge(tests, any_of=any_of)
