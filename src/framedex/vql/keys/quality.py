"""The key ``quality``."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from framedex.issue_types import ValuedIssueName, find_valued_type
from framedex.vql.expression import Expression
from framedex.vql.key_test import OrderedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Order, Span

_Value = Annotated[float, Field(strict=True, ge=-1e38, le=1e38, allow_inf_nan=False)]


class QualityTest(OrderedTest):
    """Images by the measured value of an issue type (``of``), whether or not they have the issue.

    ``missing``, without a value of its own, passes images that have no measured value.
    """

    key = "quality"
    of: ValuedIssueName
    value: Annotated[
        _Value | Annotated[list[_Value], Field(max_length=2)] | None,
        Field(validate_default=True),
    ] = None

    @property
    def column(self) -> str:
        """The column of the value."""
        return str(find_valued_type(self.of).column)

    @staticmethod
    def span_of(value: float) -> Span:
        """Return a value as float32, the type of stored values."""
        stored = float(np.float32(value))
        return stored, stored

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the value, or of its absence."""
        return self.ordered_sql(query, self.column, "FLOAT")


def quality(of: str, op: Literal[Order, "missing"], value: float | Sequence[float] | None = None) -> Expression:
    """Return the test of the value of an issue type: ``quality("blur", "lt", 0.5)``, ``quality("blur", "missing")``.

    Examples:
        >>> ds.where(vql.quality("dark", "lt", 0.3)).count()
        1
    """
    return Expression.of(QualityTest, op, value, of=of)
