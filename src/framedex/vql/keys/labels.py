"""The key ``labels``."""

from collections.abc import Hashable, Sequence
from typing import Literal, Self

from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Texts, listed


class LabelsTest(KeyTest):
    """Images by their labels; of a list, ``is`` needs all and ``one_of`` any; the other ops are the complements."""

    key = "labels"
    op: Literal["is", "is_not", "one_of", "not_one_of"]
    value: Texts

    @property
    def names(self) -> list[str]:
        """The labels as a list."""
        return listed(self.value)

    @property
    def is_negated(self) -> bool:
        """True for the negated ops."""
        return self.op in ("is_not", "not_one_of")

    @property
    def is_of_all(self) -> bool:
        """True if all of several labels are tested together."""
        return self.op in ("is", "is_not") and len(self.names) > 1

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to have any of the labels or all of them, or the complement."""
        find = query.all_of if self.is_of_all else query.any_of
        text = find("labels", self.names, "VARCHAR")
        return f"(NOT {text})" if self.is_negated else text

    def merge_key(self, *, any_of: bool) -> Hashable:
        """Return one key for all tests for labels in an OR, and for all tests against labels in an AND."""
        can_join = any_of != self.is_negated and not self.is_of_all
        return self.key if can_join else super().merge_key(any_of=any_of)

    @classmethod
    def merge(cls, tests: Sequence[Self], *, any_of: bool) -> Self:
        """Return one test of the labels of all tests."""
        if any_of == tests[0].is_negated or tests[0].is_of_all:  # equal tests
            return tests[0]
        # Each test was validated by itself; together they may have more labels than one may list.
        names = list(dict.fromkeys(name for test in tests for name in test.names))
        return tests[0].model_copy(update={"op": "one_of" if any_of else "not_one_of", "value": names})


def labels(value: str | Sequence[str], op: str | None = None) -> Expression:
    """Return the test of a label or of any of several.

    Args:
        value: a label, or several.
        op: ``one_of``: any of the labels; ``is``: all of them; ``not_one_of`` and ``is_not``: the complements. By
            default ``is`` for one label and ``one_of`` for several.

    Raises:
        InvalidFilter: as of all these functions, a value cannot be used.

    Examples:
        >>> ds.where(vql.labels(["cat", "dog"])).count()
        16
    """
    return Expression.of(LabelsTest, op or ("is" if isinstance(value, str) else "one_of"), value)
