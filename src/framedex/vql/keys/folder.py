"""The key ``folder``."""

from collections.abc import Sequence

from framedex.core.path_columns import FOLDER, FOLDER_LOWER
from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import PathOp, Texts, listed, text_sql


class FolderTest(ShapedTest):
    """Media by their folder: its path below the source root, with ``/`` between names, and "" for the root itself.

    Of media that are known by a URI it is the part before the file's name. ``is`` and ``one_of`` are exact; for the
    others case does not matter. ``starts`` and ``ends`` take whole names: ``starts`` with ``animals`` means that folder
    and all below it, but not ``animals2``. ``contains`` takes any part of the path.
    """

    key = "folder"
    op: PathOp
    value: Texts

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the folder."""
        if self.op == "one_of":
            return query.one_of(FOLDER.name, listed(self.value), "VARCHAR")
        lower, text = FOLDER_LOWER.name, str(self.value)
        # A slash after the beginning of a path, and before its end, keeps names whole.
        match self.op, text.rstrip("/"), text.strip("/"):
            case ("starts", "", _) | ("ends", _, ""):
                return query.test("path", "path IS NOT NULL")
            case "starts", value, _:
                return query.test(lower, f"starts_with({lower} || '/', lower({{}}::VARCHAR))", f"{value}/")
            case "ends", _, value:
                return query.test(lower, f"ends_with('/' || {lower}, lower({{}}::VARCHAR))", f"/{value}")
            case _:
                column = FOLDER.name if self.op == "is" else lower
                return query.test(column, text_sql(column, self.op), text)


def folder(op: PathOp, value: str | Sequence[str]) -> Expression:
    """Return the test of the folder below the source root; ``starts`` means the folder and all below it.

    The ops are those of :func:`file_name`.

    Examples:
        >>> ds.where(vql.folder("is", "clips")).count()
        2
    """
    return Expression.of(FolderTest, op, value)
