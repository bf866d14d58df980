"""The key ``objects``."""

from collections.abc import Sequence
from typing import Literal

from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.scope import Related, Scope
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Positive, Share, Texts, listed


class ObjectsTest(KeyTest):
    """Media by the objects in them: at least so many that have any of some labels; of any label without a value.

    With ``confidence_min`` only objects with at least that confidence count, and none without a confidence. In a filter
    of objects the test is about the media item that an object is in.
    """

    key = "objects"
    is_of_media = True
    is_costly = True
    op: Literal["has"]
    value: Texts | None = None
    min_count: Positive = 1
    confidence_min: Share | None = None

    @property
    def names(self) -> list[str] | None:
        """The labels as a list; None for any."""
        return None if self.value is None else listed(self.value)

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a media item to hold that many objects."""
        objects = SqlBuilder(Scope(("labels", "confidence")))
        parts = [] if self.names is None else [objects.any_of("labels", self.names, "VARCHAR")]
        if self.confidence_min is not None:
            parts.append(objects.test("confidence", "confidence >= {}::DOUBLE", self.confidence_min))
        condition = objects.condition(" AND ".join(parts) or "TRUE")
        statement = f"SELECT parent_id AS media_id FROM chosen GROUP BY parent_id HAVING count(*) >= {self.min_count}"
        related = Related(of_objects=True, condition=condition, statement=statement, columns=("parent_id",))
        return query.related("media_id", related, path)


def objects(
    value: str | Sequence[str] | None = None, *, min_count: int | None = None, confidence_min: float | None = None
) -> Expression:
    """Return the test of media to hold objects of a label, or of any of several; of any label without a value.

    Args:
        value: a label, or several.
        min_count: the smallest number of objects; by default 1.
        confidence_min: the smallest confidence, 0 to 1, of objects that count.

    Examples:
        >>> ds.where(vql.objects("cat", min_count=2)).count()
        2
    """
    return Expression.of(ObjectsTest, "has", value, min_count=min_count, confidence_min=confidence_min)
