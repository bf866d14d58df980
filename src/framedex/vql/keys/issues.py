"""The key ``issues``."""

from typing import Annotated, Literal

from pydantic import AfterValidator, WithJsonSchema

from framedex.errors import InvalidInput
from framedex.issue_types import built_in_types, find_issue_type, issue_types
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Share

NORMAL = "normal"
"""The value that stands for media without any issue."""


def _check_value(name: str) -> str:
    try:
        return name if name == NORMAL else find_issue_type(name).name
    except InvalidInput as error:
        raise ValueError(str(error)) from None


IssueName = Annotated[
    str,
    AfterValidator(_check_value),
    WithJsonSchema(
        {
            "type": "string",
            "title": "IssueName",
            "examples": sorted([*(issue.name for issue in built_in_types()), NORMAL]),
        }
    ),
]
"""The name of an issue type, or ``normal``.

Names of plugins are allowed, so the JSON Schema lists the built-in names as examples only.
"""


class IssuesTest(KeyTest):
    """Images with an issue of that confidence (``in``), or all others (``out``); ``normal``: without any issue."""

    key = "issues"
    op: Literal["issue"]
    value: IssueName
    mode: Literal["in", "out"] = "in"
    confidence_min: Share = 0.0
    confidence_max: Share = 1.0

    @property
    def columns(self) -> list[str]:
        """The columns of the confidences: that of the issue, or those of all issues."""
        return [f"issue_{name}" for name in (issue_types() if self.value == NORMAL else (self.value,))]

    @property
    def is_negated(self) -> bool:
        """True if media pass that have none of the issues."""
        return (self.mode == "out") != (self.value == NORMAL)

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a confidence to lie between the limits, or of none to do so."""
        limits = self.confidence_min, self.confidence_max
        between = "{column} BETWEEN {{}}::FLOAT AND {{}}::FLOAT"
        tests = [query.test(column, between.format(column=column), *limits) for column in self.columns]
        text = tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"
        return f"(NOT {text})" if self.is_negated else text


def issues(
    value: str, mode: str | None = None, *, confidence_min: float | None = None, confidence_max: float | None = None
) -> Expression:
    """Return the test of an issue, with a confidence from 0 to 1 between limits; *mode* ``out`` for all others.

    The value ``normal`` tests for no issue whose confidence is between the limits.

    Examples:
        >>> ds.where(vql.issues("dark")).count(), ds.where(vql.issues("normal")).count()
        (1, 24)
    """
    options = {"mode": mode, "confidence_min": confidence_min, "confidence_max": confidence_max}
    return Expression.of(IssuesTest, "issue", value, **options)
