"""The key ``missing``."""

from typing import ClassVar, Literal

from pydantic import StrictBool

from framedex.storage.media_rows import MISSING_SINCE
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder


class MissingTest(KeyTest):
    """Media whose files were gone at the last ``sync``, and objects in them; with ``false`` all others."""

    key = "missing"
    is_of_media: ClassVar[bool] = True
    op: Literal["is"]
    value: StrictBool

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the mark."""
        text = query.test(MISSING_SINCE.name, f"{MISSING_SINCE.name} IS NOT NULL")
        return text if self.value else f"(NOT {text})"


def missing(value: bool = True) -> Expression:
    """Return the test of media whose files were gone at the last :meth:`framedex.Dataset.sync`, or of all others.

    Examples:
        >>> ds.where(vql.missing()).count(), ds.where(vql.missing(False)).count()
        (0, 33)
    """
    return Expression.of(MissingTest, "is", value)
