"""The query language: text to a tree.

Words side by side find rows with any of them, those with more and rarer ones first. ``AND`` binds tighter than that
and ``OR``, which says the same as side by side. ``-x`` and ``NOT x`` leave out of their group what x finds: ``a b -c``
is (a or b) and not c, and ``-c`` alone is all but c. ``"a phrase"`` is words in that order in one field, ``pre*`` the
words that begin so, and ``caption:x``, ``label:x``, ``file:x`` look into one field. Parentheses group. What is several
words though written as one, as ``well-known``, is a phrase. Operators are in upper case. Words that say little, as
``the``, find nothing beside bare words that say more, and only rank; parts without any word, as ``&``, are left out.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from framedex.errors import InvalidInput
from framedex.fulltext.words import GAP, Field, fold, stems_of, stop_words, words_of
from framedex.settings import check_language

MOST_CHARACTERS = 10_000
MOST_NESTED = 50
FIELDS = {"caption": Field.CAPTION, "label": Field.LABELS, "file": Field.FILE_NAME}
"""The names of fields in queries."""


@dataclass(frozen=True)
class Part:
    """What one place of a phrase may be.

    Attributes:
        text: a stem, or the folded beginning of words.
        is_prefix: which of the two.
    """

    text: str
    is_prefix: bool = False


@dataclass(frozen=True)
class Term:
    """Words one after the other; most terms are of one.

    Attributes:
        parts: at least one.
        field: where they are looked for; None for all fields.
    """

    parts: tuple[Part, ...]
    field: Field | None = None


@dataclass(frozen=True)
class AnyOf:
    """Rows that one of several finds.

    Attributes:
        nodes: at least one.
        more: what adds to the scores of these rows, and finds none by itself.
    """

    nodes: tuple["Node", ...]
    more: tuple["Node", ...] = ()


@dataclass(frozen=True)
class AllOf:
    """Rows that all of some, and none of others find.

    Attributes:
        every: what must be found; if it is empty, all rows are.
        none: what must not.
    """

    every: tuple["Node", ...]
    none: tuple["Node", ...] = ()


Node = Term | AnyOf | AllOf


@dataclass(frozen=True)
class _Token:
    """A piece of a query: an operator, a parenthesis, a field, or words.

    Attributes:
        kind: ``(``, ``)``, ``AND``, ``OR``, ``NOT``, ``field`` or ``words``.
        place: of its first character, from 1.
        text: what is written.
        is_prefix: a ``*`` follows.
        is_quoted: it stood between quotation marks.
    """

    kind: str
    place: int
    text: str
    is_prefix: bool = False
    is_quoted: bool = False


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<open>\()
  | (?P<close>\))
  | "(?P<quoted>[^"]*)"(?P<star>\*?)
  | (?P<unclosed>")
  | (?:(?<=[\s(:])|(?<=\A))(?P<minus>-)(?=[^\s)-])
  | (?P<operator>AND|OR|NOT)(?=[\s()"]|\Z)
  | (?P<field>caption|label|file):(?=[^\s)])
  | (?P<word>[^\s()"]+)
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', GAP: " "})
_INNER_STAR = re.compile(r"\*(?=\w)")


_CANNOT_FOLLOW = (")", "OR", "AND")


def parse(query: str, language: str) -> Node | None:
    """Return what a query asks for; None if there is no word in it, which finds nothing.

    Raises:
        InvalidInput: it cannot be understood; the message says where, and what would be right. Or there is no such
            language.
    """
    check_language(language)
    if not isinstance(query, str):
        raise InvalidInput(f"a full-text query must be text, not {query!r}")
    if len(query) > MOST_CHARACTERS:
        raise InvalidInput(f"a full-text query may have {MOST_CHARACTERS:,} characters; this one has {len(query):,}")
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise InvalidInput("a full-text query must be valid Unicode, without lone surrogates")
    return _Parser(_tokens(query.translate(_QUOTES)), language).whole()


def _tokens(query: str) -> list[_Token]:
    tokens, place = [], 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        assert match is not None, "any character belongs to some token"
        if match.lastgroup != "space":
            tokens.append(_token(match))
        place = match.end()
    return tokens


def _token(match: re.Match[str]) -> _Token:
    place, text = match.start() + 1, match[0]
    if match["unclosed"]:
        raise InvalidInput(f'the quotation mark at character {place} is never closed: add a " where the phrase ends')
    if match["quoted"] is not None:
        return _Token("words", place, match["quoted"], bool(match["star"]), is_quoted=True)
    if match["minus"]:
        return _Token("NOT", place, text)
    if match["word"]:
        return _word(text, place)
    return _Token("field" if match["field"] else text, place, match["field"] or text)


def _word(text: str, place: int) -> _Token:
    bare = text.rstrip("*")
    if (star := _INNER_STAR.search(bare)) is not None:
        raise InvalidInput(
            f"the * at character {place + star.start()} stands before a letter; it can only follow the beginning of a "
            "word, as in hors*; quote text that has a * of its own"
        )
    return _Token("words", place, bare, is_prefix=bare != text)


class _Parser:
    """Recursive descent; each method reads on from where the last one stopped."""

    def __init__(self, tokens: Sequence[_Token], language: str) -> None:
        self._tokens, self._at, self._language = tokens, 0, language
        self._stop_words = stop_words(language)
        self._depth = 0

    def whole(self) -> Node | None:
        """Return the tree of all tokens."""
        node = self._group(None)
        if (token := self._next()) is not None:
            raise InvalidInput(f"the ) at character {token.place} closes nothing: remove it, or add a ( before it")
        return node

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, kind: str) -> _Token | None:
        token = self._next()
        if token is None or token.kind != kind:
            return None
        self._at += 1
        return token

    def _operator(self, kind: str) -> _Token | None:
        """Take an operator, if it comes next, which something must follow."""
        operator = self._take(kind)
        if operator is not None:
            after = self._next()
            if after is None or after.kind in _CANNOT_FOLLOW:
                raise _dangling(operator, "after")
        return operator

    def _group(self, field: Field | None) -> Node | None:
        """Read alternatives up to the end or a closing parenthesis."""
        found: list[Node] = []
        stopped: list[Node] = []
        excluded: list[Node] = []
        is_first = True
        while (token := self._next()) is not None and token.kind != ")":
            if not is_first and self._operator("OR") is not None:
                token = self._tokens[self._at]
            is_first = False
            nodes, is_negation = self._conjunction(field)
            if is_negation:
                excluded += nodes
            elif (node := _all_of(nodes)) is not None:
                (stopped if self._is_stop_word(token, node) else found).append(node)
        return _excluding(_any_of(found, stopped), excluded)

    def _is_stop_word(self, token: _Token, node: Node) -> bool:
        is_word = isinstance(node, Term) and len(node.parts) == 1 and node.field is None
        is_bare = token.kind == "words" and not token.is_quoted and not token.is_prefix
        if not is_word or not is_bare:
            return False
        return not self._stop_words.isdisjoint(words_of(token.text, self._language)[:1])  # none in what was left out

    def _conjunction(self, field: Field | None) -> tuple[list[Node], bool]:
        """Read what ``AND`` joins; if that is a negation alone, return what it negates, and True."""
        token = self._next()
        if token is not None and token.kind == "NOT":
            negated = self._negated(field)
            nodes = [] if negated is None else [negated]
            if (after := self._next()) is None or after.kind != "AND":
                return nodes, True
            nodes = [AllOf((), (node,)) for node in nodes]
        else:
            nodes = _present(self._operand(field))
        while self._operator("AND") is not None:
            nodes += _present(self._operand(field))
        return nodes, False

    def _operand(self, field: Field | None) -> Node | None:
        token = self._next()
        if token is None or token.kind != "NOT":
            return self._primary(field)
        negated = self._negated(field)
        return None if negated is None else AllOf((), (negated,))

    def _negated(self, field: Field | None) -> Node | None:
        """Return what a ``NOT``, which comes next, negates."""
        operator = self._operator("NOT")
        assert operator is not None, "callers look before they read on"
        with self._deeper(operator):
            return self._operand(field)

    @contextmanager
    def _deeper(self, token: _Token) -> Iterator[None]:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise InvalidInput(
                f"the query is nested deeper than {MOST_NESTED} levels at character {token.place}: simplify it"
            )
        yield
        self._depth -= 1

    def _primary(self, field: Field | None) -> Node | None:
        """Read a term or what is in parentheses."""
        token = self._next()
        assert token is not None, "callers look before they read on"
        self._at += 1
        if token.kind == "words":
            return self._term(token, field)
        if token.kind == "field":
            after = self._next()
            if after is None or after.kind not in ("words", "("):
                raise InvalidInput(f"a word, phrase or ( must follow {token.text}: at character {token.place}")
            return self._primary(FIELDS[token.text])
        if token.kind != "(":
            raise _dangling(token, "before")
        if self._take(")") is not None:
            raise InvalidInput(f"there is nothing in the parentheses at character {token.place}: remove them")
        with self._deeper(token):
            node = self._group(field)
        if self._take(")") is None:
            raise InvalidInput(f"the ( at character {token.place} is never closed: add a )")
        return node

    def _term(self, token: _Token, field: Field | None) -> Term | None:
        words = words_of(token.text, self._language)
        if not words:
            return None
        parts = [Part(stem) for stem in stems_of(words, self._language)]
        if token.is_prefix:
            parts[-1] = Part(fold(words[-1]), is_prefix=True)
        return Term(tuple(parts), field)


def _present(node: Node | None) -> list[Node]:
    return [] if node is None else [node]


def _dangling(operator: _Token, side: str) -> InvalidInput:
    shown = operator.text
    return InvalidInput(
        f"{shown} at character {operator.place} has nothing {side} it: add what it shall join, or quote it to find "
        f'the word, as in "{shown.lower()}"'
    )


def _all_of(nodes: Sequence[Node]) -> Node | None:
    """Return what all nodes find, in as few nodes as that takes."""
    if len(nodes) < 2:
        return nodes[0] if nodes else None
    every: list[Node] = []
    none: list[Node] = []
    for node in nodes:
        if isinstance(node, AllOf):
            every += node.every
            none += node.none
        else:
            every.append(node)
    return AllOf(tuple(every), tuple(none))


def _any_of(found: Sequence[Node], stopped: Sequence[Node]) -> Node | None:
    """Return any of some nodes; stop words alone find something, beside others they only rank."""
    if not found:
        found, stopped = stopped, ()
    if len(found) == 1 and not stopped:
        return found[0]
    return AnyOf(tuple(found), tuple(stopped)) if found else None


def _excluding(found: Node | None, excluded: Sequence[Node]) -> Node | None:
    """Return what a node finds, without what others find."""
    return AllOf(tuple(_present(found)), tuple(excluded)) if excluded else found
