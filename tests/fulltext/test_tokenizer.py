"""Words, stems and folded forms."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import InvalidInput
from framedex.fulltext.tokenizer import GAP, fold, stems_of, stop_words, words_in
from framedex.settings import check_language, languages
from tests.fulltext.strategies import texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A red car.", ["a", "red", "car"]),
        ("IMG_1234-b", ["img", "1234", "b"]),
        ("the dog's, the dogs'", ["the", "dog", "the", "dogs"]),
        ("the dog\u2019s caf\u00e9", ["the", "dog", "caf\u00e9"]),
        ("don't its' 's", ["don", "t", "its", "s"]),
        ("\uff21\uff22\uff23 \ufb01ne \u00bd", ["abc", "fine", "1", "2"]),
        ("e\u0301te\u0301", ["\u00e9t\u00e9"]),
        ("東京タワーab", ["東", "京", "タ", "ワ", "ー", "ab"]),
        ("ﾀﾜ・", ["タ", "ワ"]),
        ("한국어 사진", ["한국어", "사진"]),
        ("कुत्ता दौड़ता", ["कुत्ता", "दौड़ता"]),
        ("ไทยดี", ["ไ", "ท", "ย", "ดี"]),
        ("❤️ … \u200d ++", []),
        ("", []),
        (f"a {GAP} b", ["a", GAP, "b"]),
        (f"é{GAP}b", ["é", GAP, "b"]),
        ("one\u2003two\u00a0three", ["one", "two", "three"]),
    ],
)  # fmt: skip
def test_words_of__a_table(text: str, words: list[str]) -> None:
    """Letters, digits and marks make words, whatever the script."""
    assert words_in(text, "english") == words


def test_words_of__a_possessive_is_english() -> None:
    """In other languages 's is a word."""
    assert words_in("l'homme d's", "french") == ["l", "homme", "d", "s"]


@given(st.text(), st.text(), st.sampled_from(" \t\n\r\x0b\x0c"), st.sampled_from(["english", "french"]))
def test_words_of__can_be_cut_at_spaces(first: str, second: str, space: str, language: str) -> None:
    """The words of parts between spaces are those of the whole, which lets equal parts be looked at once."""
    assert words_in(first + space + second, language) == words_in(first, language) + words_in(second, language)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_words_of__ascii_takes_a_short_cut_to_the_same(text: str) -> None:
    """What has a character of another script besides has the same words besides."""
    assert words_in(text, "english") == words_in(f"{text} \u00e9", "english")[:-1]


@given(texts | st.text())
def test_words_of__are_of_letters_and_digits(text: str) -> None:
    """No word is empty, has a space, or begins with a mark; and its words are itself."""
    for word in words_in(text, "none"):
        if word != GAP:
            assert re.fullmatch(r"[^\W_].*", word)
            assert not any(character.isspace() or character == "_" for character in word)


@pytest.mark.slow
def test_words_of__knows_all_marks() -> None:
    """A mark of any script belongs to the letter before it."""
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    assert len(marks) > 2000
    assert all(words_in(f"a{mark}", "none") == [unicodedata.normalize("NFKC", f"a{mark}").lower()] for mark in marks)


def test_stems_of__forms_of_a_word_have_one() -> None:
    """Forms of a word have one stem, and accents make no difference to it."""
    assert len(set(stems_of(["run", "runs", "running"], "english"))) == 1
    assert stems_of(["café", "cafés"], "english") == stems_of(["cafe", "cafes"], "english")
    assert stems_of(["running"], "none") == ["running"]
    assert stems_of([], "german") == []


def test_stems_of__figures_stay() -> None:
    """Figures are their own stems in all languages, which lets them be passed over."""
    figures = [str(number) for number in (0, 1, 7, 12, 1999, 20261121, 10**20)]
    for language in languages():
        assert stems_of(figures, language) == figures


def test_fold__leaves_vowels_of_other_scripts() -> None:
    """Accents of European scripts go; what changes the meaning elsewhere stays."""
    assert [fold(word) for word in ("été", "ñandú", "йод", "ὀδός", "कुत्ता", "が", "한")] == [
        "ete", "nandu", "иод", "οδοσ", "कुत्ता", "が", "한",
    ]  # fmt: skip


def test_stop_words__are_words() -> None:
    """Each stop word is one word as it stands."""
    assert all(words_in(word, "english") == [word] for word in stop_words("english"))
    assert stop_words("german") == frozenset()


def test_check_language__names_those_there_are() -> None:
    """An unknown language is refused with the list of what would be right."""
    assert all(check_language(language) == language for language in languages())
    with pytest.raises(InvalidInput, match=r"no language 'klingon'.*english.*none"):
        check_language("klingon")
