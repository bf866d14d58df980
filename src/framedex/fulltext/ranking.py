"""Finding rows and ranking them: BM25F.

S. Robertson, H. Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3.6. How often a term
occurs is summed over the fields, each weighted and divided by 1 - b + b × (its length over the mean length), and then
saturated; the weight of a term is ln(1 + (N - n + ½) / (n + ½)), which is never negative (Lucene's form), where n of N
rows have it. A phrase, and all words with a prefix, are one term of their own. The score of a row is the sum over the
terms by which it was found; those in parts of the query that it does not meet do not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.fulltext.query import AllOf, AnyOf, Node, Part, Term
from framedex.fulltext.rows import Floats, RowTexts
from framedex.fulltext.segment import Longs, Segment
from framedex.fulltext.words import Field

K1 = 1.2
B = {Field.CAPTION: 0.75, Field.LABELS: 0.75, Field.FILE_NAME: 0.75}
WEIGHT = {Field.CAPTION: 1.0, Field.LABELS: 1.0, Field.FILE_NAME: 0.5}
"""How much an occurrence in a field counts. A file name is a weak sign of what a picture shows."""
_B = np.array([B[field] for field in Field])
_WEIGHT = np.array([WEIGHT[field] for field in Field])


@dataclass(frozen=True)
class Hits:
    """Rows that a part of a query finds.

    Attributes:
        rows: int64, shape (M,), each once, in any order.
        scores: float64, shape (M,), from 0.
    """

    rows: Longs
    scores: Floats


def search(query: Node | None, texts: RowTexts) -> Hits:
    """Return all rows that a query finds, ascending, with their scores."""
    if query is None:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0))
    hits = _Search(texts).hits(query)
    order = np.argsort(hits.rows)
    return Hits(hits.rows[order], hits.scores[order])


class _Search:
    """One search. Terms that come again are looked for once."""

    def __init__(self, texts: RowTexts) -> None:
        self._texts = texts
        self._terms: dict[Term, Hits] = {}

    def hits(self, node: Node) -> Hits:
        match node:
            case Term():
                if node not in self._terms:
                    self._terms[node] = self._of_term(node)
                return self._terms[node]
            case AnyOf():
                return self._any(node)
            case AllOf():
                return self._all(node)

    def _any(self, node: AnyOf) -> Hits:
        found, scores = np.zeros(self._texts.count, dtype=np.bool_), np.zeros(self._texts.count)
        for each in node.nodes:
            hits = self.hits(each)
            found[hits.rows] = True
            scores[hits.rows] += hits.scores
        for each in node.more:
            hits = self.hits(each)
            scores[hits.rows] += hits.scores
        rows = np.flatnonzero(found)
        return Hits(rows, scores[rows])

    def _all(self, node: AllOf) -> Hits:
        met, scores = np.zeros(self._texts.count, dtype=np.int32), np.zeros(self._texts.count)
        for each in node.every:
            hits = self.hits(each)
            met[hits.rows] += 1
            scores[hits.rows] += hits.scores
        for each in node.none:
            met[self.hits(each).rows] = -1
        rows = np.flatnonzero(met == len(node.every))
        return Hits(rows, scores[rows])

    def _of_term(self, term: Term) -> Hits:
        found, times = self._frequencies(term)
        if term.field is not None:
            chosen = self._texts.field_of(found) == term.field
            found, times = found[chosen], times[chosen]
        field = self._texts.field_of(found)
        norm = 1 - _B[field] + _B[field] * self._texts.relative_length(found)
        rows, place = self._texts.rows_of(found)
        rows, frequency = _summed(rows, (_WEIGHT[field] * times / norm)[place])
        weight = np.log1p((self._texts.count - len(rows) + 0.5) / (len(rows) + 0.5))
        return Hits(rows, weight * frequency / (K1 + frequency))

    def _frequencies(self, term: Term) -> tuple[Longs, Longs]:
        """Return the texts that have a term, ascending, and how often each has it."""
        found, times = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for segment, base in zip(self._texts.segments, self._texts.bases, strict=False):
            text = _occurrences(segment, term.parts) >> 32
            first = np.flatnonzero(np.concatenate([[True], text[1:] != text[:-1]])) if len(text) else text
            found.append(text[first] + base)
            times.append(np.diff(np.concatenate([first, [len(text)]])) if len(text) else text)
        return np.concatenate(found), np.concatenate(times)


def _summed(rows: Longs, values: Floats) -> tuple[Longs, Floats]:
    """Return each row once, with the sum of its values."""
    if len(rows) < 2:
        return rows, values
    distinct, place = np.unique(rows, return_inverse=True)
    return distinct, np.bincount(place, weights=values, minlength=len(distinct)).astype(np.float64)


def _occurrences(segment: Segment, parts: Sequence[Part]) -> Longs:
    """Return where a term begins: int64, text × 2³² + position, ascending."""
    words = [
        segment.words_with_prefix(part.text) if part.is_prefix else segment.words_with_stem(part.text) for part in parts
    ]
    if not all(words):
        return np.empty(0, dtype=np.int64)
    found: npt.NDArray[np.int64] | None = None
    # From the rarest on, so that little is left to be looked for among the others.
    for place in sorted(range(len(words)), key=lambda place: segment.count(words[place])):
        begins = segment.occurrences(words[place]) - place
        found = begins if found is None else _common(found, begins)
    assert found is not None, "a term has a part"
    return found


def _common(some: Longs, others: Longs) -> Longs:
    """Return those of some ascending numbers that are among others, which ascend too."""
    at = np.searchsorted(others, some)
    at[at == len(others)] = 0
    return some[others[at] == some] if len(others) else some[:0]
