"""Search queries: by vector, by meaning, by keywords, or hybrid."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from framedex.arrays import RowIds, Vectors
from framedex.search.ranking import COSINE_DISTANCE, Ranking, fuse
from framedex.search.searcher import Searcher
from framedex.search.text_queries import VectorTarget

_FUSED = 1000  # minimum length of each ranking before fusion; else ten times the limit


class Query(Protocol):
    """A search query that ranks media."""

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """Return the matching media, best first.

        Args:
            searcher: the searcher of the dataset's state.
            rows: candidate rows, ascending; None for all.
            limit: maximum number of results; None for all matches.
            diversity: 0 for the best results, up to 1 for the most diverse among the better ones.
        """
        ...


@dataclass(frozen=True)
class VectorQuery:
    """A query for media near an image's vector.

    Attributes:
        vector: float32, shape (D,), unit length, as bytes.
        most: maximum cosine distance; None for no limit.
        n_candidates: number of candidates to compare; None for the index's calibrated number.
    """

    vector: bytes
    most: float | None = None
    n_candidates: int | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
        vector = np.frombuffer(self.vector, np.float32)
        return _by_vector(searcher, vector, rows, limit, diversity, self.most, n_candidates=self.n_candidates)


@dataclass(frozen=True)
class SemanticQuery:
    """A query for media that show the meaning of a text, or whose captions have that meaning.

    Attributes:
        text: the text.
        most: maximum cosine distance; None for no limit.
    """

    text: str
    most: float | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
        meant = searcher.meaning_of(self.text)
        return _by_vector(searcher, meant.vector, rows, limit, diversity, self.most, among=meant.among)


@dataclass(frozen=True)
class KeywordQuery:
    """A query for media whose captions, labels or file names contain given words.

    Attributes:
        text: a full-text query.
        least: minimum relevance, as a share of the best score.
    """

    text: str
    least: float = 0.0

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`; diversity applies to images only and is ignored."""
        found = searcher.words(self.text, rows)
        return found.only(np.flatnonzero(found.relevance >= self.least)).first(limit)


@dataclass(frozen=True)
class HybridQuery:
    """A query that fuses the rankings by keywords and by meaning.

    Attributes:
        text: a full-text query, which is also the text for the semantic query.
    """

    text: str

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
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
