"""The key ``confidence``."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from framedex.vql.expression import Expression
from framedex.vql.key_test import OrderedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Order, Share


class ConfidenceTest(OrderedTest):
    """Objects by the confidence of their detection, 0 to 1; objects without one pass no such test."""

    key = "confidence"
    op: Order
    value: Share | Annotated[list[Share], Field(max_length=2)]

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the confidence."""
        return self.ordered_sql(query, "confidence", "DOUBLE")


def confidence(op: Order, value: float | Sequence[float]) -> Expression:
    """Return the test of an object's confidence, 0 to 1: ``confidence("ge", 0.5)``.

    Examples:
        >>> ds.objects.where(vql.confidence("ge", 0.75)).count()
        2
    """
    return Expression.of(ConfidenceTest, op, value)
