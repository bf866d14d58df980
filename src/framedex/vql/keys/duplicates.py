"""The key ``duplicates``."""

from typing import Annotated, Literal

from pydantic import AfterValidator, WithJsonSchema

from framedex.records import DUPLICATE_LEVELS
from framedex.storage.media_rows import DUPLICATES, NEAR
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Share


def _of_a_level(similarity: float) -> float:
    if similarity < DUPLICATE_LEVELS[0]:
        raise ValueError(f"near-duplicates have one of the similarities {', '.join(map(str, DUPLICATE_LEVELS))}")
    return similarity


NearImages = Literal["near"]
"""The value for images that are alike, whether they are copies or not, instead of a similarity."""
_Similarity = Annotated[
    Share, AfterValidator(_of_a_level), WithJsonSchema({"type": "number", "minimum": DUPLICATE_LEVELS[0], "maximum": 1})
]


class DuplicatesTest(KeyTest):
    """Members of near-duplicate groups formed at that similarity, or at the next stricter of the eight levels.

    The value ``near`` stands for all images that are alike: near images and copies.
    """

    key = "duplicates"
    op: Literal["duplicates"]
    value: _Similarity | NearImages

    @property
    def column(self) -> str:
        """The column of the groups at the level of the test."""
        return group_column(self.value)

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to be in a group."""
        return query.test(self.column, f"{self.column} IS NOT NULL")


def group_column(value: float | str) -> str:
    """Return the column of the groups of a similarity, or of near images: ``near``.

    Examples:
        >>> vql.group_column(0.96), vql.group_column("near")
        ('duplicate_0', 'near')
    """
    return (*DUPLICATES, NEAR)[duplicate_level(value)]


def duplicate_level(similarity: float | str) -> int:
    """Return the index of the level that serves a similarity: the same one, or the next stricter of the eight.

    Groups of near images, ``near``, have the index after those of the levels.

    Examples:
        >>> vql.duplicate_level(0.97), vql.duplicate_level(0.975), vql.duplicate_level("near")
        (1, 2, 8)
    """
    if isinstance(similarity, str):
        return len(DUPLICATE_LEVELS)
    return next(index for index, level in enumerate(DUPLICATE_LEVELS) if level >= similarity)


def duplicates(value: float | NearImages = 0.96) -> Expression:
    """Return the test of being near-duplicate to something, at a cosine similarity from 0.96 to 1.

    With ``near`` it is the test of being alike something, as images of one burst are, and copies.

    Examples:
        >>> ds.where(vql.duplicates(0.96)).count(), ds.where(vql.duplicates(1.0)).count()
        (4, 2)
    """
    return Expression.of(DuplicatesTest, "duplicates", value)
