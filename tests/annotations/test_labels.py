"""Labels are parsed in all forms that tables use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations.labels import parse_labels


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        (None, ()),
        ("", ()),
        ("   ", ()),
        (float("nan"), ()),
        ([], ()),
        ("[]", ()),
        ("dog", ("dog",)),
        (" hot dog ", ("hot dog",)),
        ("dog, puppy", ("dog, puppy",)),
        ('["dog", "puppy"]', ("dog", "puppy")),
        ("[dog, puppy]", ("dog", "puppy")),
        ("['dog', 'puppy']", ("dog", "puppy")),
        ("[dog]", ("dog",)),
        ("[1, 2]", ("1", "2")),
        ("[dog,]", ("dog",)),
        (["dog", "puppy", "dog", " "], ("dog", "puppy")),
        (("a",), ("a",)),
        (["a", None], ("a",)),
        ('["a", null]', ("a",)),
        (3, ("3",)),
        (0, ("0",)),
        (True, ("True",)),
        ("[not closed", ("[not closed",)),
    ],
)
def test_parse_labels__forms(cell: Any, labels: tuple[str, ...]) -> None:
    """A list, a JSON array, a bare list and a single label are parsed; empty cells mean no labels."""
    assert parse_labels(cell) == labels


@given(st.lists(st.text()))
def test_parse_labels__law(names: list[str]) -> None:
    """A list gives its distinct names without surrounding spaces, in order; parsing them again changes nothing."""
    parsed = parse_labels(names)
    cleaned = [name.replace("\0", "\N{REPLACEMENT CHARACTER}").strip() for name in names]  # tables hold no NUL
    assert parsed == tuple(dict.fromkeys(name for name in cleaned if name))
    assert parse_labels(parsed) == parsed


def test_parse__null_characters_and_depth() -> None:
    """Null characters become U+FFFD; deep nesting does not crash the parser."""
    assert parse_labels("a\0b") == ("a\ufffdb",)
    assert len(parse_labels("[" * 20_000 + "]")) == 1
