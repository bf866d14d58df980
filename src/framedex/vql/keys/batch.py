"""The key ``batch``."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import MAX_VALUES, BatchNumber, listed


class BatchTest(ShapedTest):
    """Media by the number of the addition that brought them: 0 is the creation, 1 the first addition."""

    key = "batch"
    op: Literal["is", "one_of"]
    value: BatchNumber | Annotated[list[BatchNumber], Field(max_length=MAX_VALUES)]

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the batch."""
        return query.one_of("batch", listed(self.value), "INTEGER")


def batch(value: int | Sequence[int]) -> Expression:
    """Return the test of the addition that brought media, or of any of several; 0 is the creation.

    Examples:
        >>> task = ds.add_media("new")
        >>> ds.where(vql.batch(1)).count()
        3
    """
    return Expression.of(BatchTest, "one_of" if isinstance(value, Sequence) else "is", value)
