"""Search queries: by vector, by meaning, by keywords, or hybrid."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from framedex.core.arrays import RowIds, Vectors
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
        max_distance: maximum cosine distance; None for no limit.
        n_candidates: number of candidates to compare; None for the index's calibrated number.
    """

    vector: bytes
    max_distance: float | None = None
    n_candidates: int | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
        vector = np.frombuffer(self.vector, np.float32)
        return _by_vector(searcher, vector, rows, limit, diversity, self.max_distance, n_candidates=self.n_candidates)


@dataclass(frozen=True)
class SemanticQuery:
    """A query for media that show the meaning of a text, or whose captions have that meaning.

    Attributes:
        text: the text.
        max_distance: maximum cosine distance; None for no limit.
    """

    text: str
    max_distance: float | None = None

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
        query = searcher.meaning_of(self.text)
        return _by_vector(searcher, query.vector, rows, limit, diversity, self.max_distance, target=query.target)


@dataclass(frozen=True)
class KeywordQuery:
    """A query for media whose captions, labels or file names contain given words.

    Attributes:
        text: a full-text query.
        min_relevance: minimum relevance, as a share of the best score.
    """

    text: str
    min_relevance: float = 0.0

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`; diversity applies to images only and is ignored."""
        ranking = searcher.words(self.text, rows)
        return ranking.only(np.flatnonzero(ranking.relevance >= self.min_relevance)).first(limit)


@dataclass(frozen=True)
class HybridQuery:
    """A query that fuses the rankings by keywords and by meaning.

    Attributes:
        text: a full-text query, which is also the text for the semantic query.
    """

    text: str

    def run(self, searcher: Searcher, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Query.run`."""
        depth = None if limit is None else max(_FUSED, 10 * limit)
        semantic = SemanticQuery(self.text).run(searcher, rows, depth, diversity)
        return fuse([KeywordQuery(self.text).run(searcher, rows, depth, 0.0), semantic]).first(limit)


def _by_vector(
    searcher: Searcher,
    vector: Vectors,
    rows: RowIds | None,
    limit: int | None,
    diversity: float,
    max_distance: float | None,
    *,
    target: VectorTarget | None = None,
    n_candidates: int | None = None,
) -> Ranking:
    if limit is None:
        return searcher.all_by_distance(vector, rows, max_distance=max_distance, target=target)
    ranking = searcher.nearest(vector, rows, limit=limit, diversity=diversity, target=target, n_candidates=n_candidates)
    if max_distance is None:
        return ranking
    assert ranking.kind == COSINE_DISTANCE, "vectors are ranked by distance"
    return ranking.only(np.flatnonzero(ranking.score <= max_distance))
