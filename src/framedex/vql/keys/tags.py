"""The key ``tags``."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, Self

from framedex.storage.table_names import IN_BASKET
from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Texts, listed

UNTAGGED = "untagged"
"""A name in the place of a tag, for images that have none. No tag can have it."""
BASKET = "basket"
"""A name in the place of a tag, for images in the basket. No tag can have it, but for one of an older version."""


class TagsTest(KeyTest):
    """Images that have any of some tags, by id or name; ``untagged`` means none, ``basket`` being in the basket."""

    key = "tags"
    is_of_media = True
    op: Literal["is"]
    value: Texts

    @property
    def names(self) -> list[str]:
        """The ids or names of the tags as a list."""
        return listed(self.value)

    def numbers(self, tags: Mapping[str, int]) -> list[int]:
        """Return the numbers of the tags that exist, ascending.

        Args:
            tags: numbers of tags by id and by name.
        """
        return sorted({tags[name] for name in self.names if name in tags and name != UNTAGGED})

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to have any of the tags."""
        text = query.any_of("tags", self.numbers(query.scope.tags), "INTEGER")
        if BASKET in self.names and BASKET not in query.scope.tags:
            text = f"({text} OR {query.test(IN_BASKET, IN_BASKET)})"
        if UNTAGGED not in self.names:
            return text
        return f"({text} OR (NOT {query.test('tags', 'len(tags) > 0')}))"

    def merge_key(self, *, any_of: bool) -> Hashable:
        """Return one key for all tests of tags in an OR."""
        return self.key if any_of else super().merge_key(any_of=any_of)

    @classmethod
    def merge(cls, tests: Sequence[Self], *, any_of: bool) -> Self:
        """Return one test of the tags of all tests."""
        if not any_of:  # equal tests
            return tests[0]
        # Each test was validated by itself; together they may have more tags than one may list.
        names = list(dict.fromkeys(name for test in tests for name in test.names))
        return tests[0].model_copy(update={"value": names})


def tags(value: str | Sequence[str]) -> Expression:
    """Return the test of a tag, by name or id, or of any of several.

    ``untagged`` stands for having none, ``basket`` for the images in the basket.

    Examples:
        >>> ds.where(vql.tags("reviewed")).count(), ds.where(vql.tags("untagged")).count()
        (3, 30)
    """
    return Expression.of(TagsTest, "is", value)
