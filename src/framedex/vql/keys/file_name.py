"""The key ``file_name``."""

from framedex.core.path_columns import FILE, FILE_LOWER
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Text, TextOp, text_sql


class FileNameTest(KeyTest):
    """Media by the name of their file, the last part of its path or URI.

    ``is`` is exact; for the others case does not matter.
    """

    key = "file_name"
    op: TextOp
    value: Text

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the file's name."""
        column = FILE.name if self.op == "is" else FILE_LOWER.name
        return query.test(column, text_sql(column, self.op), self.value)


def file_name(op: TextOp, value: str) -> Expression:
    """Return the test of the file's name: ``is``, ``contains``, ``starts`` or ``ends``.

    Examples:
        >>> ds.where(vql.file_name("starts", "cat-")).count()
        9
    """
    return Expression.of(FileNameTest, op, value)
