"""The key ``labels``."""

from collections.abc import Hashable, Sequence
from typing import Literal, Self

from framedex.vql.expression import Expression
from framedex.vql.key_test import KeyTest
from framedex.vql.sql_builder import SqlBuilder
from framedex.vql.values import Texts, listed


class LabelsTest(KeyTest):
    """Images by their labels; ``is_not`` and ``not_one_of`` are the complements."""

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

    def sql(self, query: SqlBuilder, path: str) -> str:
        """Return the test of a row to have any of the labels, or none of them."""
        text = query.any_of("labels", self.names, "VARCHAR")
        return f"(NOT {text})" if self.is_negated else text

    def merge_key(self, *, any_of: bool) -> Hashable:
        """Return one key for all tests for labels in an OR, and for all tests against labels in an AND."""
        return self.key if any_of != self.is_negated else super().merge_key(any_of=any_of)

    @classmethod
    def merge(cls, tests: Sequence[Self], *, any_of: bool) -> Self:
        """Return one test of the labels of all tests."""
        if any_of == tests[0].is_negated:  # equal tests
            return tests[0]
        # Each test was validated by itself; together they may have more labels than one may list.
        names = list(dict.fromkeys(name for test in tests for name in test.names))
        return tests[0].model_copy(update={"op": "one_of" if any_of else "not_one_of", "value": names})


def labels(value: str | Sequence[str], op: str | None = None) -> Expression:
    """Return the test of a label or of any of several.

    Args:
        value: a label, or several.
        op: ``is``, ``is_not``, ``one_of`` or ``not_one_of``; by default ``is`` for one and ``one_of`` for several.

    Raises:
        InvalidFilter: as of all these functions, a value cannot be used.
    """
    return Expression.of(LabelsTest, op or ("is" if isinstance(value, str) else "one_of"), value)
