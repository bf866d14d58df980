"""The key ``issues``."""

from typing import Literal

from framedex.issue_types import IssueName
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Share


class IssuesTest(KeyTest):
    """Images with an issue of that confidence (``in``), or all others (``out``)."""

    key = "issues"
    op: Literal["issue"]
    value: IssueName
    mode: Literal["in", "out"] = "in"
    confidence_min: Share = 0.0
    confidence_max: Share = 1.0

    @property
    def column(self) -> str:
        """The column of the issue's confidence."""
        return f"issue_{self.value}"

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the issue's confidence to lie between the limits, or not to."""
        limits = f"{self.column} BETWEEN {{}}::FLOAT AND {{}}::FLOAT"
        text = query.test(self.column, limits, self.confidence_min, self.confidence_max)
        return f"(NOT {text})" if self.mode == "out" else text


def issues(
    value: str, mode: str | None = None, *, confidence_min: float | None = None, confidence_max: float | None = None
) -> Expression:
    """Return the test of an issue, with a confidence from 0 to 1 between limits; *mode* ``out`` for all others."""
    options = {"mode": mode, "confidence_min": confidence_min, "confidence_max": confidence_max}
    return Expression.of(IssuesTest, "issue", value, **options)
