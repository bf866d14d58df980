"""The key ``folder``."""

from framedex.core.path_columns import FOLDER, FOLDER_LOWER
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Text, TextOp, text_sql


class FolderTest(KeyTest):
    """Media by their folder: its path below the source root, with ``/`` between names, and "" for the root itself.

    Of media that are known by a URI it is the part before the file's name. ``is`` is exact; for the others case does
    not matter. ``starts`` and ``ends`` take whole names: ``starts`` with ``animals`` means that folder and all below
    it, but not ``animals2``. ``contains`` takes any part of the path.
    """

    key = "folder"
    op: TextOp
    value: Text

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the folder."""
        lower = FOLDER_LOWER.name
        # A slash after the beginning of a path, and before its end, keeps names whole.
        match self.op, self.value.rstrip("/"), self.value.strip("/"):
            case ("starts", "", _) | ("ends", _, ""):
                return query.test("path", "path IS NOT NULL")
            case "starts", value, _:
                return query.test(lower, f"starts_with({lower} || '/', lower({{}}::VARCHAR))", f"{value}/")
            case "ends", _, value:
                return query.test(lower, f"ends_with('/' || {lower}, lower({{}}::VARCHAR))", f"/{value}")
            case _:
                column = FOLDER.name if self.op == "is" else lower
                return query.test(column, text_sql(column, self.op), self.value)


def folder(op: TextOp, value: str) -> Expression:
    """Return the test of the folder below the source root; ``starts`` means the folder and all below it.

    Examples:
        >>> ds.where(vql.folder("is", "clips")).count()
        2
    """
    return Expression.of(FolderTest, op, value)
