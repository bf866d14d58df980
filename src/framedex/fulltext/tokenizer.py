"""Tokenizing of text: words, their stems, and their folded forms, which prefixes are compared with."""

import re
import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from functools import cache

from framedex.settings import NO_STEMS

GAP = "\x1f"
"""Separator between the labels of a row. It takes a position like a word, so that no phrase spans two labels."""
# Frequent English words of little meaning; our own choice.
_ENGLISH_STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between both
    but by can could did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just me more most my no nor not of off on once only or other our ours
    out over own same she should so some such than that the their theirs them then there these they this those
    through to too under until up very was we were what when where which while who whom why will with would you your
    yours
    """.split()  # noqa: SIM905 - a list of words is read more easily so
)
_POSSESSIVE = re.compile("(?<=\\w)['\u2019]s(?!\\w)")
_ASCII_WORD = re.compile(f"[0-9a-z]+|{GAP}")
_ACCENTS = re.compile("[\u0300-\u036f]")
# Scripts that put no spaces between words: kana, ideographs, Thai, Lao, Myanmar, Khmer. Each character is a word.
_SINGLE = (
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
)


class TextField(IntEnum):
    """The fields of a row that full-text search covers."""

    CAPTION = 0
    LABELS = 1
    FILE_NAME = 2


def tokenizer_key(language: str) -> str:
    """Return the versions that words and stems depend on; an index with another key must be rebuilt."""
    import Stemmer

    return f"{language} Snowball-{Stemmer.version()} Unicode-{unicodedata.unidata_version}"


def words_in(text: str, language: str) -> list[str]:
    """Return the words of a text in order, and its gaps.

    A word is a run of Unicode letters, digits and marks that begins with no mark, in NFKC and lower case; of scripts
    without spaces, each character. The English possessive ``'s`` is left out. Texts can be cut at spaces: the words of
    the parts are those of the whole.
    """
    if text.isascii():
        text = text.lower()
        if language == "english" and "'" in text:
            text = _POSSESSIVE.sub(" ", text)
        return _ASCII_WORD.findall(text)
    text = unicodedata.normalize("NFKC", text).lower()
    if language == "english":
        text = _POSSESSIVE.sub(" ", text)
    return _unicode_word().findall(text)


def stems_of(words: Sequence[str], language: str) -> list[str]:
    """Return the stem of each word by Snowball, folded."""
    import Stemmer

    if language == NO_STEMS:
        return [fold(word) for word in words]
    stemmer = Stemmer.Stemmer(language, 0)  # one for each call: they are not safe to share between threads
    return [fold(stem) for stem in stemmer.stemWords(words)]


def fold(word: str) -> str:
    """Return a word without the accents of Latin, Greek and Cyrillic; in other scripts marks are vowels."""
    if word.isascii():
        return word
    plain = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).replace("ς", "σ")
    return unicodedata.normalize("NFC", plain)


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language: beside other words they match no rows."""
    return _ENGLISH_STOP_WORDS if language == "english" else frozenset()


@cache
def _unicode_word() -> re.Pattern[str]:
    marks, usual = _marks(), f"(?![{_SINGLE}_])\\w"
    return re.compile(f"(?=\\w)[{_SINGLE}][{marks}]*|{usual}(?:{usual}|[{marks}])*|{GAP}")


@cache
def _marks() -> str:
    """Return the ranges of all combining marks, for a character class."""
    codes = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = [code for code in codes if unicodedata.category(chr(code))[0] == "M"]
    known = set(marks)
    starts = [code for code in marks if code - 1 not in known]
    ends = [code for code in marks if code + 1 not in known]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))
