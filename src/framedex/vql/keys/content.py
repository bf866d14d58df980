"""The key ``content``."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from framedex.storage.media_rows import CONTENT
from framedex.vql.expression import Expression
from framedex.vql.key_test import ShapedTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import listed

_Kind = Literal["photo", "page", "drawing", "mask", "screenshot", "other"]


class ContentTest(ShapedTest):
    """Images by the kind of their content: photos, pages of text, drawings, masks, screenshots."""

    key = "content"
    op: Literal["is", "one_of"]
    value: _Kind | Annotated[list[_Kind], Field(max_length=6)]

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the kind."""
        return query.one_of(CONTENT.name, listed(self.value), "VARCHAR")


def content(value: str | Sequence[str]) -> Expression:
    """Return the test of a kind of content, or of any of several.

    They are ``photo``, ``page``, ``drawing``, ``mask``, ``screenshot`` and ``other``.

    Examples:
        >>> ds.where(vql.content("photo")).count(), ds.where(vql.content(["page", "drawing"])).count()
        (32, 0)
    """
    return Expression.of(ContentTest, "is" if isinstance(value, str) else "one_of", value)
