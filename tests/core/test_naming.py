"""Names that people give: which are allowed, and names of copies."""

from typing import Any

import pytest

from framedex.core.naming import check_dataset_name, check_line, check_name, copy_name
from framedex.errors import Conflict, InvalidInput


@pytest.mark.parametrize(
    "name",
    ["", " ", "\t", "a\nb", "\0", "\ud800", "\ufe0f", "\u3164 ", "a\u200db", "x" * 256, "taken back", None, 5, ["a"]],
)
def test_check_name__refuses_what_is_no_name(name: Any) -> None:
    """A name is 1 to 255 printable characters that mean nothing else; the message shows what was given."""
    with pytest.raises(InvalidInput) as raised:
        check_name("tag", name, reserved=["taken back"])
    assert "tag" in str(raised.value)


@pytest.mark.parametrize("name", ["a", "é ü", "x" * 255, "/", "'; --", " a ", "keep \U0001f469\u200d\U0001f4bb"])
def test_check_name__takes_printable_text(name: str) -> None:
    """Anything that can be printed is a name, once."""
    check_name("tag", name)
    with pytest.raises(Conflict, match="exists already"):
        check_name("tag", name, taken=[name])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a/b", "must not contain slashes"),
        ("a\\b", "must not contain slashes"),
        ("a\nb", "no control characters"),
        (None, "None"),
    ],
)
def test_check_dataset_name__refuses_slashes_too(name: Any, reason: str) -> None:
    """A dataset's name may become part of a file's name, so it has must not contain slashes."""
    with pytest.raises(InvalidInput, match=reason):
        check_dataset_name(name)
    assert check_dataset_name("naïve; --") is None  # type: ignore[func-returns-value] # that is the claim


def test_check_name__may_be_longer_where_its_kind_allows() -> None:
    """The limit of characters belongs to the kind, and the message names it."""
    check_name("snapshot", "x" * 400, max_length=400)
    with pytest.raises(InvalidInput, match="a snapshot has at most 400 characters; this has 1,000"):
        check_name("snapshot", "x" * 1000, max_length=400)


def test_check_name__message_is_a_sentence() -> None:
    """The message has the right article, and calls a text that is not the name of something by its own noun."""
    with pytest.raises(InvalidInput, match=r"^the name of an organization is text that is not empty, not ''$"):
        check_name("organization", "")
    with pytest.raises(Conflict, match=r"^an organization named 'x' exists already"):
        check_name("organization", "x", taken=["x"])
    with pytest.raises(
        InvalidInput, match=r"^a first name has no control characters, only printable ones; this is '\\n.'$"
    ):
        check_line("a first name", "\n.")


def test_copy_name__is_free_and_short_enough() -> None:
    """A copy is named by what made it, with a number from the second on, and the name is cut where it is too long."""
    assert copy_name("a", "clone", ["a"]) == "a (clone)"
    assert copy_name("a", "clone", ["a", "a (clone)", "a (clone 2)"]) == "a (clone 3)"
    longest = copy_name("x" * 255, "clone", [])
    assert (len(longest), longest[-8:]) == (255, " (clone)")
