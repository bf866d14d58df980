"""The key ``uniqueness``."""

from typing import Literal

from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Share


class UniquenessTest(KeyTest):
    """Images whose uniqueness is at least the value."""

    key = "uniqueness"
    op: Literal["uniqueness"]
    value: Share

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the score."""
        return query.test("uniqueness", "uniqueness >= {}::FLOAT", self.value)


def uniqueness(value: float) -> Expression:
    """Return the test of a uniqueness of at least the value, 0 to 1.

    Examples:
        >>> ds.where(vql.uniqueness(0.9)).count()
        2
    """
    return Expression.of(UniquenessTest, "uniqueness", value)
