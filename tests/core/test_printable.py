"""Texts that may be names: emoji of several characters are printable, hidden characters are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.printable import escaped, is_printable, is_visible

PROGRAMMER = "\U0001f469\u200d\U0001f4bb"
RAINBOW = "\U0001f3f3\ufe0f\u200d\U0001f308"
DARK_PROGRAMMER = "\U0001f469\U0001f3fd\u200d\U0001f4bb"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
HEAD_SHAKING = "\U0001f642\u200d\u2194\ufe0f"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
EMOJI = [
    PROGRAMMER,
    RAINBOW,
    DARK_PROGRAMMER,
    FAMILY,
    HEAD_SHAKING,
    ENGLAND,
    "\u2764\ufe0f",
    "1\ufe0f\u20e3",
    "\U0001f44d\U0001f3ff",
]
HIDDEN = [
    "\u200d", "a\u200db", "\u200b", "\u2060", "\ufeff", "\xad", "\u202e", "\u2066a\u2069", "\u200f", "a\n", "\0",
    f"{PROGRAMMER}\u200d", f"\u200d{PROGRAMMER}", f"{PROGRAMMER}\u202e", "\U0001f469\u200d\u200d\U0001f4bb",
    "\U0001f469\u200da", "\U000e0061", "\U0001f3f4\U000e0061",
]  # fmt: skip


@pytest.mark.parametrize("text", EMOJI)
def test_emoji__are_printable(text: str) -> None:
    """Joined emoji, skin tones, keycaps and flags are printable and seen, alone and within other text."""
    assert is_printable(text)
    assert is_printable(f"é {text}{text} b")
    assert is_visible(text)
    assert escaped(f"a {text}\t") == f"a {text}\\t"


@pytest.mark.parametrize("text", HIDDEN)
def test_hidden_characters__are_not_printable(text: str) -> None:
    """Joiners outside emoji, directions, other formats and controls are not printable, and are written as escapes."""
    assert not is_printable(text)
    assert is_printable(escaped(text))


@pytest.mark.parametrize("text", ["", " ", "\ufe0f", "\ufe0f\ufe0e", "\u0301", "\u3164", "\u2800 ", "\xa0"])
def test_text__that_nobody_sees(text: str) -> None:
    """Spaces, selectors and marks without a character, and blank letters are not visible."""
    assert not is_visible(text)
    assert is_visible(f"{text}a")


@given(st.text())
def test_escaped__is_printable(text: str) -> None:
    """Escaped texts are printable, and printable ones stay as they are."""
    assert is_printable(escaped(text))
    assert not is_printable(text) or escaped(text) == text
