"""What people look for: something like a picture, or what a text says."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.search.ranking import COSINE_DISTANCE, Ranking, fuse
from framedex.search.searcher import Searches
from framedex.search.text_queries import Among
from framedex.storage.media import RowIds

Vectors = npt.NDArray[np.float32]
_FUSED = 1000  # of each ranking, or ten times as many as are wanted


class Question(Protocol):
    """Something to look for."""

    def ask(self, searches: Searches, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """Return the media that fit, the best first.

        Args:
            searches: of the state that is searched.
            rows: that may be answers, ascending; None for all.
            limit: how many at most; None for all that fit at all.
            diversity: 0 for the best, to 1 for the most unlike each other among the better ones.
        """
        ...


@dataclass(frozen=True)
class Like:
    """Media like a picture, whose vector this is.

    Attributes:
        vector: float32, shape (D,), unit length, as bytes.
        most: the largest cosine distance; None for any.
        compared: how many rows to compare; None for as many as the index was measured for.
    """

    vector: bytes
    most: float | None = None
    compared: int | None = None

    def ask(self, searches: Searches, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Question.ask`."""
        vector = np.frombuffer(self.vector, np.float32)
        return _by_vector(searches, vector, rows, limit, diversity, self.most, compared=self.compared)


@dataclass(frozen=True)
class Meaning:
    """Media that show what a text means, or whose captions say it.

    Attributes:
        text: what.
        most: the largest cosine distance; None for any.
    """

    text: str
    most: float | None = None

    def ask(self, searches: Searches, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Question.ask`."""
        meant = searches.meaning_of(self.text)
        return _by_vector(searches, meant.vector, rows, limit, diversity, self.most, among=meant.among)


@dataclass(frozen=True)
class Words:
    """Media whose captions, labels or file names have some words.

    Attributes:
        text: a full-text query.
        least: the share of the best score that is enough.
    """

    text: str
    least: float = 0.0

    def ask(self, searches: Searches, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Question.ask`; variety is a matter of pictures, and has no effect here."""
        found = searches.words(self.text, rows)
        return found.only(np.flatnonzero(found.relevance >= self.least)).first(limit)


@dataclass(frozen=True)
class Both:
    """Media by words and by meaning together.

    Attributes:
        text: a full-text query, and what is meant.
    """

    text: str

    def ask(self, searches: Searches, rows: RowIds | None, limit: int | None, diversity: float) -> Ranking:
        """See :meth:`Question.ask`."""
        most = None if limit is None else max(_FUSED, 10 * limit)
        meant = Meaning(self.text).ask(searches, rows, most, diversity)
        return fuse([Words(self.text).ask(searches, rows, most, 0.0), meant]).first(limit)


def _by_vector(
    searches: Searches,
    vector: Vectors,
    rows: RowIds | None,
    limit: int | None,
    diversity: float,
    most: float | None,
    *,
    among: Among | None = None,
    compared: int | None = None,
) -> Ranking:
    if limit is None:
        return searches.all_by_distance(vector, rows, most=most, among=among)
    found = searches.nearest(vector, rows, limit=limit, diversity=diversity, among=among, compared=compared)
    if most is None:
        return found
    assert found.kind == COSINE_DISTANCE, "vectors are ranked by distance"
    return found.only(np.flatnonzero(found.score <= most))
