"""The meaning of filters in plain Python, against which the compiler is tested."""

from collections.abc import Collection, Mapping
from typing import Any, assert_never

import numpy as np

from framedex.vql.compile import NO_TAGS, duplicate_level
from framedex.vql.model import UNTAGGED, AnyOf, Duplicates, Element, Filter, Issues, Labels, Not, Tags, Uniqueness


def evaluate(vql: Filter | Collection[Element], row: Mapping[str, Any], tags: Mapping[str, int] = NO_TAGS) -> bool:
    """Return whether a row passes a filter.

    Args:
        vql: a parsed filter.
        row: values by column; missing and None are the same.
        tags: numbers of tags by id and by name.
    """
    return all(_holds(element, row, tags) for element in vql)


def _holds(element: Element, row: Mapping[str, Any], tags: Mapping[str, int]) -> bool:
    match element:
        case Labels(labels=test):
            found = bool(set(row.get("labels") or ()) & set(test.names))
            return found != (test.op in ("is_not", "not_one_of"))
        case Tags(tags=test):
            has = set(row.get("tags") or ())
            return bool(has & set(test.numbers(tags))) or (UNTAGGED in test.names and not has)
        case Issues(issues=test):
            value = row.get(f"issue_{test.value}")
            found = value is not None and bool(
                np.float32(test.confidence_min) <= value <= np.float32(test.confidence_max)
            )
            return found != (test.mode == "out")
        case Duplicates(duplicates=test):
            return row.get(f"duplicate_{duplicate_level(test.value)}") is not None
        case Uniqueness(uniqueness=test):
            score = row.get("uniqueness")
            return score is not None and bool(score >= np.float32(test.value))
        case AnyOf():
            return any(_holds(each, row, tags) for each in element.any)
        case Not():
            inner = element.negated if isinstance(element.negated, list) else [element.negated]
            return not evaluate(inner, row, tags)
        case _:
            assert_never(element)
