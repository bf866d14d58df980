"""The query language: what queries mean, and what is said about those that mean nothing."""

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
    ("query", "words"),
    [
        ('aa "bb', "aa bb"),
        ("aa (bb", "aa bb"),
        ("aa bb)", "aa bb"),
        ("()", ""),
        ("AND aa", "and aa"),
        ("aa (OR bb)", "aa or bb"),
        ("aa AND", "aa and"),
        ("(aa OR) bb", "aa or bb"),
        ("aa AND OR bb", "aa and or bb"),
        ("aa NOT", "aa not"),
        ("NOT", "not"),
        ("NOT AND aa", "not and aa"),
        ("aa OR", "aa or"),
        ("d*g", "d g"),
        ("aa *g", "aa g"),
        ("caption:-aa", "caption-aa"),
        ('a 19" rack', "a 19 rack"),
        ("dog (small", "dog small"),
        ("smile :(", "smile"),
        ("(" * 51 + "aa" + ")" * 51, "aa"),
        ("NOT " * 51 + "aa", "not " * 51 + "aa"),
        ("aa \ud800", "aa"),
    ],
)
def test_parse__words_of_no_expression(query: str, words: str) -> None:
    """Text that is no expression stands for its words, so that a sentence is never an error."""
    assert parse_query(query, "english") == parse_query(words, "english")


def test_parse__of_a_text_that_is_too_long() -> None:
    """A text of more characters than queries may have is refused."""
    with pytest.raises(InvalidInput, match=r"may have 10,000 characters; this one has 10,001"):
        parse_query("a" * 10_001, "english")


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
def test_parse__any_text_is_understood(query: str) -> None:
    """No text makes it fail."""
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
