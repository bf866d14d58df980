"""The key ``ids``."""

from collections.abc import Sequence

from framedex.vql.expression import Expression
from framedex.vql.key_test import IdTest
from framedex.vql.sql_builder import SqlBuilder

_FEW = 100  # more values are looked up in a hash table; the planner takes long for many of these


class IdsTest(IdTest):
    """Media, or objects, with one of some ids; an id that does not exist passes nothing."""

    key = "ids"

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to have one of the ids."""
        if len(self.ids) <= _FEW:
            return query.one_of("media_id", self.ids, "VARCHAR")
        return query.test("media_id", "media_id IN (SELECT unnest({}::VARCHAR[]))", self.ids)


def ids(value: str | Sequence[str]) -> Expression:
    """Return the test of an id, or of one of several.

    Examples:
        >>> ds.where(vql.ids(ds.media_id("cat-1.jpg"))).count()
        1
    """
    return Expression.of(IdsTest, "is" if isinstance(value, str) else "one_of", value)
