"""Matching and ranking of rows: BM25F.

S. Robertson, H. Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3.6. The frequency of
a term is the sum over the fields of its occurrences × the field's weight / (1 - b + b × length / mean length). It is
then saturated. The weight of a term that n of N rows have is ln(1 + (N - n + ½) / (n + ½)), which is never negative
(Lucene's form). A phrase is one term, and so are all words with a prefix. The score of a row is the sum over the terms
that it matches; terms in parts of the query that the row does not match do not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from framedex.fulltext.query import Conjunction, Disjunction, Node, PhrasePart, Term
from framedex.fulltext.rows import Floats, RowTexts
from framedex.fulltext.segment import Longs, Segment
from framedex.fulltext.tokenizer import TextField

K1 = 1.2
B = {TextField.CAPTION: 0.75, TextField.LABELS: 0.75, TextField.FILE_NAME: 0.75}
WEIGHT = {TextField.CAPTION: 1.0, TextField.LABELS: 1.0, TextField.FILE_NAME: 0.5}
"""Weights of the fields. A file name says little about the content of an image."""
_B = np.array([B[field] for field in TextField])
_WEIGHT = np.array([WEIGHT[field] for field in TextField])


@dataclass(frozen=True)
class Hits:
    """The rows that match a node of a query.

    Attributes:
        rows: int64, shape (M,), each once, in any order.
        scores: float64, shape (M,), from 0.
    """

    rows: Longs
    scores: Floats


def search(query: Node | None, texts: RowTexts) -> Hits:
    """Return all rows that match a query, ascending, with their scores."""
    if query is None:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0))
    hits = _Search(texts).hits(query)
    order = np.argsort(hits.rows)
    return Hits(hits.rows[order], hits.scores[order])


class _Search:
    """The evaluation of one query, which looks each distinct term up once."""

    def __init__(self, texts: RowTexts) -> None:
        self._texts = texts
        self._terms: dict[Term, Hits] = {}

    def hits(self, node: Node) -> Hits:
        match node:
            case Term():
                if node not in self._terms:
                    self._terms[node] = self._of_term(node)
                return self._terms[node]
            case Disjunction():
                return self._any(node)
            case Conjunction():
                return self._all(node)
            case _:
                assert_never(node)

    def _any(self, node: Disjunction) -> Hits:
        matched, scores = np.zeros(self._texts.count, dtype=np.bool_), np.zeros(self._texts.count)
        for each in node.nodes:
            hits = self.hits(each)
            matched[hits.rows] = True
            scores[hits.rows] += hits.scores
        for each in node.boosts:
            hits = self.hits(each)
            scores[hits.rows] += hits.scores
        rows = np.flatnonzero(matched)
        return Hits(rows, scores[rows])

    def _all(self, node: Conjunction) -> Hits:
        met, scores = np.zeros(self._texts.count, dtype=np.int32), np.zeros(self._texts.count)
        for each in node.required:
            hits = self.hits(each)
            met[hits.rows] += 1
            scores[hits.rows] += hits.scores
        for each in node.excluded:
            met[self.hits(each).rows] = -1
        rows = np.flatnonzero(met == len(node.required))
        return Hits(rows, scores[rows])

    def _of_term(self, term: Term) -> Hits:
        texts, times = self._frequencies(term)
        if term.field is not None:
            in_field = self._texts.field_of(texts) == term.field
            texts, times = texts[in_field], times[in_field]
        field = self._texts.field_of(texts)
        norm = 1 - _B[field] + _B[field] * self._texts.relative_length(texts)
        rows, index = self._texts.rows_of(texts)
        rows, frequency = _summed(rows, (_WEIGHT[field] * times / norm)[index])
        weight = np.log1p((self._texts.count - len(rows) + 0.5) / (len(rows) + 0.5))
        return Hits(rows, weight * frequency / (K1 + frequency))

    def _frequencies(self, term: Term) -> tuple[Longs, Longs]:
        """Return the texts that contain a term, ascending, and the number of its occurrences in each."""
        texts, times = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for segment, base in zip(self._texts.segments, self._texts.bases, strict=False):
            text = _occurrences(segment, term.parts) >> 32
            first = np.flatnonzero(np.concatenate([[True], text[1:] != text[:-1]])) if len(text) else text
            texts.append(text[first] + base)
            times.append(np.diff(np.concatenate([first, [len(text)]])) if len(text) else text)
        return np.concatenate(texts), np.concatenate(times)


def _summed(rows: Longs, values: Floats) -> tuple[Longs, Floats]:
    """Return the distinct rows, each with the sum of its values."""
    if len(rows) < 2:
        return rows, values
    distinct, index = np.unique(rows, return_inverse=True)
    return distinct, np.bincount(index, weights=values, minlength=len(distinct)).astype(np.float64)


def _occurrences(segment: Segment, parts: Sequence[PhrasePart]) -> Longs:
    """Return the positions at which a term begins: int64, text × 2³² + position, ascending."""
    words = [
        segment.words_with_prefix(part.text) if part.is_prefix else segment.words_with_stem(part.text) for part in parts
    ]
    if not all(words):
        return np.empty(0, dtype=np.int64)
    starts: npt.NDArray[np.int64] | None = None
    # The rarest word first, so that few positions are looked up in the longer lists.
    for index in sorted(range(len(words)), key=lambda index: segment.count(words[index])):
        begins = segment.occurrences(words[index]) - index
        starts = begins if starts is None else _common(starts, begins)
    assert starts is not None, "a term has a part"
    return starts


def _common(some: Longs, others: Longs) -> Longs:
    """Return the numbers that two ascending arrays have in common."""
    at = np.searchsorted(others, some)
    at[at == len(others)] = 0
    return some[others[at] == some] if len(others) else some[:0]
