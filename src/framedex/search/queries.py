"""What people look for: something like a picture, or what a text says."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from framedex.arrays import RowIds, Vectors
from framedex.search.ranking import COSINE_DISTANCE, Ranking, fuse
from framedex.search.searcher import Searcher
from framedex.search.text_queries import VectorTarget

_FUSED = 1000  # of each ranking, or ten times as many as are wanted


class Query(Protocol):
    """Something to look for."""

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """Return the media that fit, the best first.

        Args:
            searcher: of the state that is searched.
            rows: that may be answers, ascending; None for all.
            limit: how many at most; None for all that fit at all.
            diversity: 0 for the best, to 1 for the most unlike each other among the better ones.
        """
        ...


@dataclass(frozen=True)
class VectorQuery:
    """Media like a picture, whose vector this is.

    Attributes:
        vector: float32, shape (D,), unit length, as bytes.
        most: the largest cosine distance; None for any.
        n_candidates: how many rows to compare; None for as many as the index was measured for.
    """

    vector: bytes
    most: float | None = None
    n_candidates: int | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.ask`."""
        vector = np.frombuffer(self.vector, np.float32)
        return _by_vector(searcher, vector, rows, limit, diversity, self.most, n_candidates=self.n_candidates)


@dataclass(frozen=True)
class SemanticQuery:
    """Media that show what a text means, or whose captions say it.

    Attributes:
        text: what.
        most: the largest cosine distance; None for any.
    """

    text: str
    most: float | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.ask`."""
        meant = searcher.meaning_of(self.text)
        return _by_vector(searcher, meant.vector, rows, limit, diversity, self.most, among=meant.among)


@dataclass(frozen=True)
class KeywordQuery:
    """Media whose captions, labels or file names have some words.

    Attributes:
        text: a full-text query.
        least: the share of the best score that is enough.
    """

    text: str
    least: float = 0.0

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.ask`; variety is a matter of pictures, and has no effect here."""
        found = searcher.words(self.text, rows)
        return found.only(np.flatnonzero(found.relevance >= self.least)).first(limit)


@dataclass(frozen=True)
class HybridQuery:
    """Media by words and by meaning together.

    Attributes:
        text: a full-text query, and what is meant.
    """

    text: str

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.ask`."""
        most = None if limit is None else max(_FUSED, 10 * limit)
        meant = SemanticQuery(self.text).run(searcher, rows, most, diversity)
        return fuse([KeywordQuery(self.text).run(searcher, rows, most, 0.0), meant]).first(limit)


def _by_vector(
    searcher: Searcher,
    vector: Vectors,
    rows: RowIds | None,
    limit: int | None,
    diversity: float,
    most: float | None,
    *,
    among: VectorTarget | None = None,
    n_candidates: int | None = None,
) -> Ranking:
    if limit is None:
        return searcher.all_by_distance(vector, rows, most=most, among=among)
    found = searcher.nearest(vector, rows, limit=limit, diversity=diversity, among=among, n_candidates=n_candidates)
    if most is None:
        return found
    assert found.kind == COSINE_DISTANCE, "vectors are ranked by distance"
    return found.only(np.flatnonzero(found.score <= most))
