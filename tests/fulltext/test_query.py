"""The query language: what queries mean, and what is said about those that mean nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import InvalidInput
from framedex.fulltext.query import Conjunction, Disjunction, Node, PhrasePart, Term, parse_query
from framedex.fulltext.tokenizer import TextField
from tests.fulltext.strategies import queries
from tests.oracles.full_text import matches


def word(text: str) -> Term:
    return Term((PhrasePart(text),))


A, B, C, D = (word(each) for each in ("aa", "bb", "cc", "dd"))


@pytest.mark.parametrize(
    ("query", "node"),
    [
        ("aa", A),
        ("aa bb", Disjunction((A, B))),
        ("aa OR bb", Disjunction((A, B))),
        ("aa AND bb", Conjunction((A, B))),
        ("aa AND bb cc AND dd", Disjunction((Conjunction((A, B)), Conjunction((C, D))))),
        ("aa OR bb AND cc", Disjunction((A, Conjunction((B, C))))),
        ("(aa OR bb) AND cc", Conjunction((Disjunction((A, B)), C))),
        ("aa bb -cc", Conjunction((Disjunction((A, B)),), (C,))),
        ("aa NOT cc bb", Conjunction((Disjunction((A, B)),), (C,))),
        ("aa AND NOT bb", Conjunction((A,), (B,))),
        ("-aa", Conjunction((), (A,))),
        ("-aa -bb", Conjunction((), (A, B))),
        ("aa (-bb)", Disjunction((A, Conjunction((), (B,))))),
        ("NOT aa AND bb cc", Disjunction((Conjunction((B,), (A,)), C))),
        ("-(aa bb)", Conjunction((), (Disjunction((A, B)),))),
        ("NOT NOT aa", Conjunction((), (Conjunction((), (A,)),))),
        ('"aa bb"', Term((PhrasePart("aa"), PhrasePart("bb")))),
        ("\u201caa bb\u201d", Term((PhrasePart("aa"), PhrasePart("bb")))),
        ("aa-bb", Term((PhrasePart("aa"), PhrasePart("bb")))),
        ("-aa-bb", Conjunction((), (Term((PhrasePart("aa"), PhrasePart("bb"))),))),
        ("aa*", Term((PhrasePart("aa", is_prefix=True),))),
        ("RUNNI*", Term((PhrasePart("runni", is_prefix=True),))),
        ('"aa b"*', Term((PhrasePart("aa"), PhrasePart("b", is_prefix=True)))),
        ("caption:aa", Term((PhrasePart("aa"),), TextField.CAPTION)),
        ('label:"aa bb"', Term((PhrasePart("aa"), PhrasePart("bb")), TextField.LABELS)),
        (
            "file:(aa bb*)",
            Disjunction(
                (Term((PhrasePart("aa"),), TextField.FILE_NAME), Term((PhrasePart("bb", True),), TextField.FILE_NAME))
            ),
        ),
        ("-file:aa", Conjunction((), (Term((PhrasePart("aa"),), TextField.FILE_NAME),))),
        ("time:aa", Term((PhrasePart("time"), PhrasePart("aa")))),
        ("caption: aa", Disjunction((word("caption"), A))),
        ("and or not aa", Disjunction((A,), tuple(map(word, ("and", "or", "not"))))),
        ("the", word("the")),
        ("the aa -bb", Conjunction((Disjunction((A,), (word("the"),)),), (B,))),
        ("the and", Disjunction((word("the"), word("and")))),
        ("the AND aa", Conjunction((word("the"), A))),
        ("… AND aa", A),
        ('"the" aa', Disjunction((word("the"), A))),
        ("running", word("run")),
        ("aa & bb - cc", Disjunction((A, B, C))),
        ('aa AND "..."', A),
        ("(!) aa", A),
        ("-! aa", A),
        ("ANDaa", word("andaa")),
        ("", None),
        ("  \n", None),
        ("❤️ ... *", None),
        ("-...", None),
        ("(...)", None),
    ],
)
def test_parse__a_table(query: str, node: Node | None) -> None:
    """What queries stand for."""
    assert parse_query(query, "english") == node


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('aa "bb', r"quotation mark at character 4 is never closed: add a \""),
        ("aa (bb", r"the \( at character 4 is never closed: add a \)"),
        ("aa bb)", r"the \) at character 6 closes nothing"),
        ("()", r"nothing in the parentheses at character 1"),
        ("AND aa", r"AND at character 1 has nothing before it"),
        ("aa (OR bb)", r"OR at character 5 has nothing before it"),
        ("aa AND", r"AND at character 4 has nothing after it"),
        ("(aa OR) bb", r"OR at character 5 has nothing after it"),
        ("aa AND OR bb", r"AND at character 4 has nothing after it"),
        ("aa OR AND bb", r"OR at character 4 has nothing after it"),
        ("aa NOT", r"NOT at character 4 has nothing after it.*\"not\""),
        ("NOT AND aa", r"NOT at character 1 has nothing after it"),
        ("d*g", r"the \* at character 2 stands before a letter"),
        ("aa *g", r"the \* at character 4 stands before a letter"),
        ("caption:-aa", r"must follow caption: at character 1"),
        ("file:label:aa", r"must follow file: at character 1"),
        ("(" * 51 + "aa" + ")" * 51, r"deeper than 50 levels at character 51"),
        ("NOT " * 51 + "aa", r"deeper than 50 levels at character 201"),
        ("a" * 10_001, r"may have 10,000 characters; this one has 10,001"),
        ("\ud800", r"lone surrogates"),
    ],
)
def test_parse__says_what_is_wrong(query: str, message: str) -> None:
    """An error says where it is, and what would be right."""
    with pytest.raises(InvalidInput, match=message):
        parse_query(query, "english")


@pytest.mark.parametrize("query", [None, 3, b"dog", ["dog"]])
def test_parse__takes_text_only(query: object) -> None:
    """What is no text is refused."""
    with pytest.raises(InvalidInput, match="must be text"):
        parse_query(query, "english")  # type: ignore[arg-type]


def test_parse__sensible_sizes_pass() -> None:
    """Fifty levels and ten thousand characters are allowed."""
    assert parse_query("(" * 50 + "aa" + ")" * 50, "english") == A
    assert parse_query("NOT " * 50 + "aa", "english") is not None
    assert parse_query("aa " * 3333, "english") is not None
    with pytest.raises(InvalidInput, match="no language"):
        parse_query("aa", "english ")


@given(queries)
def test_parse__understands_what_the_grammar_makes(query: str) -> None:
    """Queries that follow the grammar are understood, and parentheses around them change nothing but exclusion."""
    assert parse_query(f"({query})", "english") == parse_query(query, "english")


@given(st.text(alphabet='ab"()-*: ANDORT', max_size=30))
def test_parse__any_text_is_understood_or_refused(query: str) -> None:
    """No text makes it fail in another way."""
    with suppress(InvalidInput):
        parse_query(query, "english")


def test_matches__by_example() -> None:
    """A row is found by its caption, labels and file name."""
    row = {"caption": "Two dogs running", "labels": ["dark red", "car"], "file_name": "IMG_12"}
    found = ["dog", '"two dog"', "car", "img", "12", "run*", "cat dog", '"dark red"', "dog AND car", "label:red -cat"]
    missed = [
        "cat",
        '"dogs two"',
        '"red car"',
        "caption:car",
        "dog -car",
        "dog AND cat",
        "-dog",
        "...",
        '"running dark"',
    ]
    assert [query for query in found + missed if matches(query, row, "english")] == found
