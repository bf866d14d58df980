"""The key ``source``."""

from collections.abc import Sequence
from typing import Literal

from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Texts, listed


class SourceTest(ShapedTest):
    """Objects by their source: the format of their annotations, or the id of the model that detected them."""

    key = "source"
    op: Literal["is", "one_of"]
    value: Texts

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the source."""
        return query.one_of("source", listed(self.value), "VARCHAR")


def source(value: str | Sequence[str]) -> Expression:
    """Return the test of an object's source: a format of annotations or a model's id, or any of several.

    Examples:
        >>> ds.objects.where(vql.source("csv")).count()
        9
    """
    return Expression.of(SourceTest, "is" if isinstance(value, str) else "one_of", value)
