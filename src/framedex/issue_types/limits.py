"""Limits of issue types: which types have one, and which values a user may set."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from framedex.errors import InvalidInput
from framedex.issue_types.base import IssueType, JudgedBy
from framedex.issue_types.registry import built_in_types, is_built_in, issue_types
from framedex.records import DUPLICATE_LEVELS

_LARGEST = 1e38  # values are float32


def valued_types() -> Mapping[str, IssueType]:
    """Return the issue types with a value, and so with a limit, by name."""
    return {name: each for name, each in issue_types().items() if each.has_value}


def find_valued_type(name: object) -> IssueType:
    """Return the issue type with a name and a value.

    Raises:
        InvalidInput: the name is unknown, or the type has no value.
    """
    valued = valued_types()
    if isinstance(name, str) and name in valued:
        return valued[name]
    is_known = isinstance(name, str) and name in issue_types()
    problem = f"the issue {name!r} has no value and no limit" if is_known else f"no issue {name!r}"
    raise InvalidInput(f"{problem}; those with a value: {', '.join(sorted(valued))}")


def check_issue_limit(name: object, limit: object) -> float:
    """Return the limit that a user sets for an issue type.

    The bounded values of built-in types are shares from 0 to 1, and the others distances from 0. Near-duplicates are
    grouped at eight similarities, so their limit is one of these.

    Raises:
        InvalidInput: the type is unknown or has no limit, or the limit is outside of the type's values.
    """
    issue = find_valued_type(name)
    low, high = _limit_range(issue)
    number = _finite(limit)
    if number is None or not low <= number <= high:
        allowed = "a finite number" + (f" from {low:g}" if low > -_LARGEST else "")
        allowed += f" to {high:g}" if high < _LARGEST else ""
        raise InvalidInput(f"the limit of {issue.name!r} must be {allowed}, not {limit!r:.80}")
    if issue.judged_by is JudgedBy.GROUP and number not in DUPLICATE_LEVELS:
        levels = ", ".join(map(str, DUPLICATE_LEVELS))
        raise InvalidInput(f"the limit of {issue.name!r} must be one of {levels}, not {limit!r}")
    return number


def _finite(value: object) -> float | None:
    """Return a finite number as float; None for other values."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def _limit_range(issue: IssueType) -> tuple[float, float]:
    """Return the least and the greatest limit of an issue type."""
    if issue.judged_by is JudgedBy.GROUP:
        return DUPLICATE_LEVELS[0], DUPLICATE_LEVELS[-1]
    if is_built_in(issue):
        return 0.0, _LARGEST if issue.worst is None else 1.0
    worst = -_LARGEST if issue.worst is None else issue.worst
    if issue.above:
        return -_LARGEST, _LARGEST if issue.worst is None else worst
    return worst, _LARGEST


def _check_name(name: str) -> str:
    try:
        return find_valued_type(name).name
    except InvalidInput as error:
        raise ValueError(str(error)) from None


ValuedIssueName = Annotated[
    str,
    AfterValidator(_check_name),
    WithJsonSchema(
        {
            "type": "string",
            "title": "ValuedIssueName",
            "examples": sorted(each.name for each in built_in_types() if each.has_value),
        }
    ),
]
"""The name of an issue type with a value, for pydantic models; see :data:`framedex.vql.keys.issues.IssueName`."""
