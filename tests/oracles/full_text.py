"""What full-text search means, in plain Python, one row at a time; the index is tested against it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framedex.fulltext.query import Conjunction, Disjunction, Node, PhrasePart, Term, parse_query
from framedex.fulltext.ranking import K1, WEIGHT, B
from framedex.fulltext.tokenizer import GAP, TextField, fold, stems_of, words_in

Row = Mapping[str, Any]
"""A row's ``caption`` and ``file_name`` (text or None) and ``labels`` (a list of texts, or None)."""
_Words = dict[TextField, list[str]]


def matches(query: str, row: Row, language: str) -> bool:
    """Return whether a query finds a row.

    Raises:
        InvalidInput: the query cannot be understood.
    """
    node, words = parse_query(query, language), _words(row, language)
    return node is not None and _score(node, lambda term: float(bool(_times(term, words, language)))) is not None


def scores(query: str, rows: Sequence[Row], language: str) -> list[float | None]:
    """Return the score of each of all rows of a table; None for those that a query does not find.

    Raises:
        InvalidInput: the query cannot be understood.
    """
    node, words = parse_query(query, language), [_words(row, language) for row in rows]
    if node is None:
        return [None] * len(rows)
    means = {field: _mean([_length(each[field]) for each in words]) for field in TextField}

    def of_term(place: int) -> Callable[[Term], float]:
        def score(term: Term) -> float:
            n = sum(bool(_times(term, each, language)) for each in words)
            frequency = sum(
                WEIGHT[field] * times / (1 - B[field] + B[field] * _length(words[place][field]) / means[field])
                for field, times in _times(term, words[place], language).items()
            )
            return math.log(1 + (len(rows) - n + 0.5) / (n + 0.5)) * frequency / (K1 + frequency)

        return score

    return [_score(node, of_term(place)) for place in range(len(rows))]


def _words(row: Row, language: str) -> _Words:
    labels = f" {GAP} ".join(row.get("labels") or ())
    texts = {TextField.CAPTION: row.get("caption"), TextField.LABELS: labels, TextField.FILE_NAME: row.get("file_name")}
    return {field: words_in(text or "", language) for field, text in texts.items()}


def _length(words: list[str]) -> int:
    return sum(word != GAP for word in words)


def _mean(lengths: list[int]) -> float:
    having = [length for length in lengths if length]
    return sum(having) / len(having) if having else 1.0


def _times(term: Term, words: _Words, language: str) -> dict[TextField, int]:
    """Return how often a term occurs in each field that has it."""
    fields = TextField if term.field is None else (term.field,)
    found = {field: _count(term.parts, words[field], language) for field in fields}
    return {field: times for field, times in found.items() if times}


def _count(parts: tuple[PhrasePart, ...], words: list[str], language: str) -> int:
    stems = stems_of(words, language)
    return sum(
        all(
            words[place + step] != GAP
            and (
                fold(words[place + step]).startswith(part.text) if part.is_prefix else stems[place + step] == part.text
            )
            for step, part in enumerate(parts)
        )
        for place in range(len(words) - len(parts) + 1)
    )


def _score(node: Node, of_term: Callable[[Term], float]) -> float | None:
    """Return the score of a row; None if it is not found."""
    match node:
        case Term():
            return of_term(node) or None
        case Disjunction():
            found = [score for each in node.nodes if (score := _score(each, of_term)) is not None]
            more = [_score(each, of_term) or 0.0 for each in node.boosts]
            return sum(found) + sum(more) if found else None
        case Conjunction():
            every = [_score(each, of_term) for each in node.required]
            none = [_score(each, of_term) for each in node.excluded]
            if any(score is None for score in every) or any(score is not None for score in none):
                return None
            return sum(score for score in every if score is not None)
