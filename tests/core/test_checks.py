"""Checks of arguments: which values pass, and what the message says of others."""

from typing import Any

import pytest

from framedex.core.checks import (
    check_flag,
    check_fraction,
    check_integer,
    has_lone_surrogate,
    is_integer,
    is_number,
    suggestion,
)
from framedex.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "is_broken"), [("", False), ("plain", False), ("🐈 é", False), ("\ud800", True), ("é\udfff", True)]
)
def test_has_lone_surrogate__of_halves_alone(text: str, is_broken: bool) -> None:
    """Half of a pair cannot be written as UTF-8; characters beyond the first plane can."""
    assert has_lone_surrogate(text) is is_broken
    if is_broken:
        with pytest.raises(UnicodeEncodeError):
            text.encode()


@pytest.mark.parametrize("value", [True, False, None, "1", [1], 1 + 0j])
def test_numbers__truth_values_and_texts_are_none(value: Any) -> None:
    """True would pass for 1 otherwise."""
    assert not is_number(value)
    assert not is_integer(value)
    with pytest.raises(InvalidInput, match="n must be a whole number"):
        check_integer("n", value, minimum=0)
    with pytest.raises(InvalidInput, match="n must be a number"):
        check_fraction("n", value)


@pytest.mark.parametrize(
    ("value", "options", "reason"),
    [
        (0, {"minimum": 1}, "n must be a whole number from 1, not 0"),
        (11, {"minimum": 1, "maximum": 10}, "n must be a whole number from 1 to 10, not 11"),
        (1.0, {"minimum": 1, "optional": True}, "n must be a whole number from 1, or None, not 1.0"),
        (None, {"minimum": 1}, "not None"),
    ],
)
def test_check_integer__names_the_range_and_the_value(value: Any, options: dict[str, Any], reason: str) -> None:
    """Values at the limits pass, others do not."""
    with pytest.raises(InvalidInput, match=reason):
        check_integer("n", value, **options)
    check_integer("n", 1, **options)
    check_integer("n", None, minimum=1, optional=True)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), 10**400])
def test_check_fraction__is_from_0_to_1(value: float) -> None:
    """Both limits pass, whole numbers too; NaN does not."""
    with pytest.raises(InvalidInput, match="share must be a similarity from 0 to 1, not"):
        check_fraction("share", value, "a similarity")
    for each in (0, 0.5, 1):
        check_fraction("share", each)


def test_check_flag__is_no_number() -> None:
    """1 is not True; None passes where it is allowed."""
    for value, optional in ((1, False), ("yes", True), (None, False)):
        with pytest.raises(InvalidInput, match="flag must be True"):
            check_flag("flag", value, optional=optional)
    check_flag("flag", value=False)
    check_flag("flag", None, optional=True)


def test_suggestion__is_the_most_similar_name() -> None:
    """A clause for a message where a name is similar; nothing where none is, or where the name cannot be compared."""
    assert suggestion("lables", ["tags", "labels"]) == "; did you mean 'labels'?"
    for name in ("colour", "", "labels" * 100, None, 3):
        assert suggestion(name, ["tags", "labels"]) == ""
