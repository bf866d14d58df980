"""Checks of values that come from outside: texts, numbers and flags."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypeGuard

from framedex.errors import InvalidInput

_MAX_GUESSED = 64  # characters of a misspelt name for which similar names are suggested


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, which JSON can spell but UTF-8 and tables cannot hold."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether a value is an integer; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is an integer or a float; True and False are not, NaN and the infinities are."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_fraction(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


def check_integer(name: str, value: Any, *, minimum: int, maximum: int | None = None, optional: bool = False) -> None:
    """Check that an argument is an integer in a range.

    Args:
        name: the name of the argument, for the message.
        value: the value of the argument.
        minimum: the smallest allowed value.
        maximum: the largest allowed value; None for no limit.
        optional: whether None is allowed, too.

    Raises:
        InvalidInput: the value is not allowed.
    """
    if optional and value is None:
        return
    if not is_integer(value) or value < minimum or (maximum is not None and value > maximum):
        span = f"from {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InvalidInput(f"{name} must be a whole number {span}{', or None' if optional else ''}, not {value!r}")


def check_fraction(name: str, value: Any, meaning: str = "a number") -> None:
    """Check that an argument is a number from 0 to 1.

    Args:
        name: the name of the argument, for the message.
        value: the value of the argument.
        meaning: the quantity, for the message.

    Raises:
        InvalidInput: the value is not allowed.
    """
    if not is_fraction(value):
        raise InvalidInput(f"{name} must be {meaning} from 0 to 1, not {value!r}")


def check_flag(name: str, value: Any, *, optional: bool = False) -> None:
    """Check that an argument is True or False.

    Args:
        name: the name of the argument, for the message.
        value: the value of the argument.
        optional: whether None is allowed, too.

    Raises:
        InvalidInput: the value is not allowed.
    """
    if not isinstance(value, bool) and not (optional and value is None):
        raise InvalidInput(f"{name} must be {'True, False or None' if optional else 'True or False'}, not {value!r}")


def suggestion(name: Any, names: Sequence[str]) -> str:
    """Return a clause for an error message that suggests the most similar of some names; empty if none is similar."""
    if not isinstance(name, str) or len(name) > _MAX_GUESSED:
        return ""
    similar = get_close_matches(name, names, n=1)
    return f"; did you mean {similar[0]!r}?" if similar else ""
