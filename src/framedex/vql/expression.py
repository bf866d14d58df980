"""Filters as Python expressions."""

from collections.abc import Sequence
from typing import Any, overload

from framedex.errors import InvalidInput
from framedex.vql.values import shown


class Expression(Sequence[dict[str, Any]]):
    """A filter that is combined by operators: ``&`` for both, ``|`` for either, ``~`` for all others.

    It is the sequence of its elements, which are combined with AND, and goes wherever a filter goes.
    """

    def __init__(self, elements: Sequence[dict[str, Any]]) -> None:
        self._elements = list(elements)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the filter as it is on the wire: an array of objects of one key."""
        return list(self._elements)

    @property
    def element(self) -> dict[str, Any]:
        """The expression as one element: what it says is said twice to be false where it has several."""
        return self._elements[0] if len(self) == 1 else {"not": {"not": self._elements}}

    def __and__(self, other: "Expression") -> "Expression":
        return Expression([*self, *other]) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: "Expression") -> "Expression":
        return Expression([{"any": [*self._ways, *other._ways]}]) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> "Expression":
        negated = self._elements[0].get("not") if len(self) == 1 else None
        if negated is not None:
            return Expression(negated if isinstance(negated, list) else [negated])
        return Expression([{"not": self._elements[0] if len(self) == 1 else self._elements}])

    @property
    def _ways(self) -> list[dict[str, Any]]:
        """The elements of which at least one holds."""
        ways: list[dict[str, Any]] | None = self._elements[0].get("any") if len(self) == 1 else None
        return [self.element] if ways is None else ways

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._elements[place]

    def __len__(self) -> int:
        return len(self._elements)

    def __bool__(self) -> bool:
        raise InvalidInput("an expression is neither true nor false; combine expressions by &, | and ~")

    def __eq__(self, other: object) -> bool:
        """Return whether both are written alike."""
        return isinstance(other, Expression) and self._elements == other._elements

    __hash__ = None  # type: ignore[assignment] # it holds objects, which have no hash

    def __repr__(self) -> str:
        return f"<VQL {shown(self._elements)}>"
