"""The query language: parsing of text to a syntax tree.

- ``a b`` and ``a OR b`` match rows with any of the words; rows with more and rarer words come first.
- ``a AND b`` matches rows with both. It binds tighter than ``OR``.
- ``-a`` and ``NOT a`` exclude the matches of ``a`` from their group: ``a b -c`` is (a or b) and not c, and ``-c`` alone
  is all rows but the matches of c.
- ``"a phrase"`` matches words in that order in one field, and ``pre*`` words with that prefix.
- ``caption:a``, ``label:a`` and ``file:a`` search one field. Parentheses group.

Text that is no such expression, as ``a 19" rack`` or ``smile :(``, is taken as words. Operators are in upper case. A
token of several words, as ``well-known``, is a phrase. Beside other bare words a stop word, as ``the``, matches no rows
and only adds to scores. Parts without any word, as ``&``, are ignored.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from framedex.core.checks import has_lone_surrogate
from framedex.errors import InvalidInput
from framedex.fulltext.tokenizer import GAP, TextField, fold, stems_of, stop_words, words_in
from framedex.settings import check_language

MAX_CHARACTERS = 10_000
MAX_DEPTH = 50
FIELDS = {"caption": TextField.CAPTION, "label": TextField.LABELS, "file": TextField.FILE_NAME}
"""The names of fields in queries."""


@dataclass(frozen=True)
class PhrasePart:
    """One position of a phrase.

    Attributes:
        text: a stem, or the folded prefix of words.
        is_prefix: whether it is a prefix.
    """

    text: str
    is_prefix: bool = False


@dataclass(frozen=True)
class Term:
    """A word, or a phrase of several.

    Attributes:
        parts: one for each word, at least one.
        field: the searched field; None for all fields.
    """

    parts: tuple[PhrasePart, ...]
    field: TextField | None = None


@dataclass(frozen=True)
class Disjunction:
    """The rows that match any of several nodes.

    Attributes:
        nodes: at least one.
        boosts: nodes that add to the scores of these rows, and match no others.
    """

    nodes: tuple["Node", ...]
    boosts: tuple["Node", ...] = ()


@dataclass(frozen=True)
class Conjunction:
    """The rows that match all required nodes and no excluded one.

    Attributes:
        required: nodes; if there are none, all rows match.
        excluded: nodes.
    """

    required: tuple["Node", ...]
    excluded: tuple["Node", ...] = ()


Node = Term | Disjunction | Conjunction


@dataclass(frozen=True)
class _Token:
    """A piece of a query: an operator, a parenthesis, a field, or words.

    Attributes:
        kind: ``(``, ``)``, ``AND``, ``OR``, ``NOT``, ``field`` or ``words``.
        position: of its first character, from 1.
        text: as it is written.
        is_prefix: whether a ``*`` follows.
        is_quoted: whether it stands between quotation marks.
    """

    kind: str
    position: int
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
_PLAIN_WORD = re.compile(r'[^\s()"*]+')


_CANNOT_FOLLOW = (")", "OR", "AND")


def parse_query(query: str, language: str) -> Node | None:
    """Return the syntax tree of a query; None if it has no word, and matches nothing.

    Raises:
        InvalidInput: the query is no text, or too long. Or there is no such language.
    """
    check_language(language)
    if not isinstance(query, str):
        raise InvalidInput(f"a full-text query must be text, not {query!r}")
    if len(query) > MAX_CHARACTERS:
        raise InvalidInput(f"a full-text query may have {MAX_CHARACTERS:,} characters; this one has {len(query):,}")
    if has_lone_surrogate(query):
        query = query.encode("utf-8", "replace").decode()
    text = query.translate(_QUOTES)
    try:
        return _Parser(_tokens(text), language).whole()
    except _NoExpression:
        words = [_Token("words", match.start() + 1, match[0]) for match in _PLAIN_WORD.finditer(text)]
        return _Parser(words, language).whole()


class _NoExpression(Exception):
    """A text that is no expression."""


def _tokens(query: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        assert match is not None, "any character belongs to some token"
        if match.lastgroup != "space":
            tokens.append(_token(match))
        position = match.end()
    return tokens


def _token(match: re.Match[str]) -> _Token:
    position, text = match.start() + 1, match[0]
    if match["unclosed"]:
        raise _NoExpression(f"the quotation mark at character {position} is never closed")
    if match["quoted"] is not None:
        return _Token("words", position, match["quoted"], bool(match["star"]), is_quoted=True)
    if match["minus"]:
        return _Token("NOT", position, text)
    if match["word"]:
        return _word(text, position)
    return _Token("field" if match["field"] else text, position, match["field"] or text)


def _word(text: str, position: int) -> _Token:
    bare = text.rstrip("*")
    if (star := _INNER_STAR.search(bare)) is not None:
        raise _NoExpression(f"the * at character {position + star.start()} stands before a letter")
    return _Token("words", position, bare, is_prefix=bare != text)


class _Parser:
    """A parser by recursive descent; each method consumes tokens from the current position."""

    def __init__(self, tokens: Sequence[_Token], language: str) -> None:
        self._tokens, self._at, self._language = tokens, 0, language
        self._stop_words = stop_words(language)
        self._depth = 0

    def whole(self) -> Node | None:
        """Return the tree of all tokens."""
        node = self._group(None)
        if (token := self._next()) is not None:
            raise _NoExpression(f"the ) at character {token.position} closes nothing")
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
        """Consume an operator, if it is the next token, and check that an operand follows."""
        operator = self._take(kind)
        if operator is not None:
            after = self._next()
            if after is None or after.kind in _CANNOT_FOLLOW:
                raise _dangling(operator, "after")
        return operator

    def _group(self, field: TextField | None) -> Node | None:
        """Parse alternatives up to the end or a closing parenthesis."""
        alternatives: list[Node] = []
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
                (stopped if self._is_stop_word(token, node) else alternatives).append(node)
        return _excluding(_any_of(alternatives, stopped), excluded)

    def _is_stop_word(self, token: _Token, node: Node) -> bool:
        is_word = isinstance(node, Term) and len(node.parts) == 1 and node.field is None
        is_bare = token.kind == "words" and not token.is_quoted and not token.is_prefix
        if not is_word or not is_bare:
            return False
        first = words_in(token.text, self._language)[:1]  # nothing in a token without words
        return not self._stop_words.isdisjoint(first)

    def _conjunction(self, field: TextField | None) -> tuple[list[Node], bool]:
        """Return the operands of a chain of ``AND`` and False; of a negation alone, its operand and True."""
        token = self._next()
        if token is not None and token.kind == "NOT":
            negated = self._negated(field)
            nodes = [] if negated is None else [negated]
            if (after := self._next()) is None or after.kind != "AND":
                return nodes, True
            nodes = [Conjunction((), (node,)) for node in nodes]
        else:
            nodes = _present(self._operand(field))
        while self._operator("AND") is not None:
            nodes += _present(self._operand(field))
        return nodes, False

    def _operand(self, field: TextField | None) -> Node | None:
        token = self._next()
        if token is None or token.kind != "NOT":
            return self._primary(field)
        negated = self._negated(field)
        return None if negated is None else Conjunction((), (negated,))

    def _negated(self, field: TextField | None) -> Node | None:
        """Return the operand of a ``NOT``, which is the next token."""
        operator = self._operator("NOT")
        assert operator is not None, "callers check the next token first"
        with self._deeper(operator):
            return self._operand(field)

    @contextmanager
    def _deeper(self, token: _Token) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _NoExpression(f"it is nested deeper than {MAX_DEPTH} levels at character {token.position}")
        yield
        self._depth -= 1

    def _primary(self, field: TextField | None) -> Node | None:
        """Parse a term or a group in parentheses."""
        token = self._next()
        assert token is not None, "callers check the next token first"
        self._at += 1
        if token.kind == "words":
            return self._term(token, field)
        if token.kind == "field":
            after = self._next()
            if after is None or after.kind not in ("words", "("):
                raise _NoExpression(f"nothing follows {token.text}: at character {token.position}")
            return self._primary(FIELDS[token.text])
        if token.kind != "(":
            raise _dangling(token, "before")
        if self._take(")") is not None:
            raise _NoExpression(f"there is nothing in the parentheses at character {token.position}")
        with self._deeper(token):
            node = self._group(field)
        if self._take(")") is None:
            raise _NoExpression(f"the ( at character {token.position} is never closed")
        return node

    def _term(self, token: _Token, field: TextField | None) -> Term | None:
        words = words_in(token.text, self._language)
        if not words:
            return None
        parts = [PhrasePart(stem) for stem in stems_of(words, self._language)]
        if token.is_prefix:
            parts[-1] = PhrasePart(fold(words[-1]), is_prefix=True)
        return Term(tuple(parts), field)


def _present(node: Node | None) -> list[Node]:
    return [] if node is None else [node]


def _dangling(operator: _Token, side: str) -> _NoExpression:
    return _NoExpression(f"{operator.text} at character {operator.position} has nothing {side} it")


def _all_of(nodes: Sequence[Node]) -> Node | None:
    """Return the conjunction of some nodes, with nested ones flattened."""
    if len(nodes) < 2:
        return nodes[0] if nodes else None
    required: list[Node] = []
    excluded: list[Node] = []
    for node in nodes:
        if isinstance(node, Conjunction):
            required += node.required
            excluded += node.excluded
        else:
            required.append(node)
    return Conjunction(tuple(required), tuple(excluded))


def _any_of(nodes: Sequence[Node], stopped: Sequence[Node]) -> Node | None:
    """Return the disjunction of some nodes; stop words are boosts, unless there are no other nodes."""
    if not nodes:
        nodes, stopped = stopped, ()
    if len(nodes) == 1 and not stopped:
        return nodes[0]
    return Disjunction(tuple(nodes), tuple(stopped)) if nodes else None


def _excluding(node: Node | None, excluded: Sequence[Node]) -> Node | None:
    """Return a node without the matches of others."""
    return Conjunction(tuple(_present(node)), tuple(excluded)) if excluded else node
