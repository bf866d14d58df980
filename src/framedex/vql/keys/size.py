"""The key ``size``."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from framedex.vql.expression import Expression
from framedex.vql.key_test import OrderedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Count, Order


class SizeTest(OrderedTest):
    """Media by the size of their file in bytes, or by their width or height in pixels."""

    key = "size"
    op: Order
    value: Count | Annotated[list[Count], Field(max_length=2)]
    of: Literal["bytes", "width", "height"] = "bytes"

    @property
    def column(self) -> str:
        """The column of the size."""
        return "size_bytes" if self.of == "bytes" else self.of

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the size."""
        return self.ordered_sql(query, self.column, "BIGINT")


def size(op: Order, value: int | Sequence[int], of: str | None = None) -> Expression:
    """Return the test of a size: of the file in ``bytes``, or of the ``width`` or ``height`` in pixels.

    Examples:
        >>> ds.where(vql.size("gt", 300, of="width")).count()
        1
    """
    return Expression.of(SizeTest, op, value, of=of)
