"""Filters as Python expressions."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Self, overload

from framedex.errors import InvalidInput
from framedex.vql.key_test import KeyTest
from framedex.vql.validation import validated
from framedex.vql.values import shown


class Expression(Sequence[dict[str, Any]]):
    """A filter that operators combine: ``&`` for both, ``|`` for either, ``~`` for all others.

    It is the sequence of its elements, which are combined with AND, and every function that takes a filter takes it.

    Examples:
        >>> kept = vql.labels(["cat", "dog"]) & ~vql.issues("mislabels")
        >>> kept.to_json()
        [{'labels': {'op': 'one_of', 'value': ['cat', 'dog']}}, {'not': {'issues': {'op': 'issue', 'value':
          'mislabels'}}}]
        >>> ds.where(kept).count()
        15
    """

    def __init__(self, elements: Sequence[dict[str, Any]]) -> None:
        self._elements = list(elements)

    @classmethod
    def of(cls, test: type[KeyTest], op: str, value: Any, **options: Any) -> Self:
        """Return the test of a key as an expression.

        Args:
            test: the test of the key.
            op: its op.
            value: its value; left out if it is None.
            options: its other fields; those that are None are left out.

        Raises:
            InvalidFilter: the test is not valid; with the JSON path of the wrong part.
        """
        content = {**options, "op": op, "value": _plain(value)}
        content = {name: each for name, each in content.items() if each is not None}
        validated(test, content, f"$[0].{test.key}")
        return cls([{test.key: content}])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the filter as JSON: an array of objects of one key."""
        return list(self._elements)

    @property
    def element(self) -> dict[str, Any]:
        """The expression as one element; several elements are wrapped in a double negation to make one."""
        return self._elements[0] if len(self) == 1 else {"not": {"not": self._elements}}

    def __and__(self, other: "Expression") -> "Expression":
        return Expression([*self, *other]) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: "Expression") -> "Expression":
        return (
            Expression([{"any": [*self._alternatives, *other._alternatives]}])
            if isinstance(other, Expression)
            else NotImplemented
        )

    def __invert__(self) -> "Expression":
        negated = self._elements[0].get("not") if len(self) == 1 else None
        if negated is not None:
            return Expression(negated if isinstance(negated, list) else [negated])
        return Expression([{"not": self._elements[0] if len(self) == 1 else self._elements}])

    @property
    def _alternatives(self) -> list[dict[str, Any]]:
        """The elements of which at least one holds."""
        elements: list[dict[str, Any]] | None = self._elements[0].get("any") if len(self) == 1 else None
        return [self.element] if elements is None else elements

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._elements[index]

    def __len__(self) -> int:
        return len(self._elements)

    def __bool__(self) -> bool:
        raise InvalidInput("an expression is neither true nor false; combine expressions by &, | and ~")

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same elements."""
        return isinstance(other, Expression) and self._elements == other._elements

    __hash__ = None  # type: ignore[assignment] # its elements are dicts, which have no hash

    def __repr__(self) -> str:
        return f"<VQL {shown(self._elements)}>"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, date):  # and so a datetime
        return value.isoformat()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
