"""The key ``media``."""

from typing import Literal, assert_never

from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder


class MediaTest(KeyTest):
    """Media of a kind: images, frames of videos, or videos: their frames, and videos that have none."""

    key = "media"
    op: Literal["is"]
    value: Literal["image", "video", "video_frame"]

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of the kind. A row without a kind is an image."""
        match self.value:
            case "video":
                return query.test("kind", "kind IN ('video', 'video_frame')")
            case "video_frame":
                return query.test("kind", "kind = {}::VARCHAR", self.value)
            case "image":
                return f"(NOT {query.test('kind', 'kind <> {}::VARCHAR', self.value)})"
            case _:
                assert_never(self.value)


def media(value: str) -> Expression:
    """Return the test of a kind of media: ``image``, ``video`` or ``video_frame``.

    Examples:
        >>> ds.where(vql.media("video_frame")).count()
        2
    """
    return Expression.of(MediaTest, "is", value)
