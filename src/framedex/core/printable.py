"""Printable text: without control and formatting characters, except those that join emoji.

Python counts a zero-width joiner as not printable, though it makes one sign of several emoji (Unicode Technical
Standard 51, section 2.2), and the tags of a flag, too. Elsewhere such characters hide text, so there they are refused.
"""

import re
import unicodedata

_ZERO_WIDTH_JOINER = "\u200d"
_EMOJI = "[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
_ELEMENT = f"{_EMOJI}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?"
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
_SEQUENCE = re.compile(f"{_FLAG}|{_ELEMENT}(?:{_ZERO_WIDTH_JOINER}{_ELEMENT})+")
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"  # fillers of Hangul, and the empty pattern of Braille
_INVISIBLE = ("C", "M", "Z")


def is_printable(text: str) -> bool:
    """Return whether a text has no control or formatting character but those within emoji."""
    return text.isprintable() or _SEQUENCE.sub("", text).isprintable()


def is_visible(text: str) -> bool:
    """Return whether a text has a character that is seen by itself: no space, selector or mark for others."""
    return any(each not in _BLANK_LETTERS and unicodedata.category(each)[0] not in _INVISIBLE for each in text)


def escaped(text: str) -> str:
    """Return a text in which characters that are not printable are written as escape sequences of Python."""
    parts, end = [], 0
    for sequence in _SEQUENCE.finditer(text):
        parts += [_escaped(text[end : sequence.start()]), sequence[0]]
        end = sequence.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
