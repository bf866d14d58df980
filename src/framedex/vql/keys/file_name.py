"""The key ``file_name``."""

from collections.abc import Sequence

from framedex.core.path_columns import FILE, FILE_LOWER
from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import PathOp, Texts, listed, text_sql


class FileNameTest(ShapedTest):
    """Media by the name of their file, the last part of its path or URI.

    ``is`` and ``one_of`` are exact; for the others case does not matter.
    """

    key = "file_name"
    op: PathOp
    value: Texts

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the file's name."""
        if self.op == "one_of":
            return query.one_of(FILE.name, listed(self.value), "VARCHAR")
        column = FILE.name if self.op == "is" else FILE_LOWER.name
        return query.test(column, text_sql(column, self.op), self.value)


def file_name(op: PathOp, value: str | Sequence[str]) -> Expression:
    """Return the test of the file's name: ``is``, ``contains``, ``starts`` or ``ends``, or ``one_of`` several names.

    Examples:
        >>> ds.where(vql.file_name("starts", "cat-")).count()
        9
    """
    return Expression.of(FileNameTest, op, value)
