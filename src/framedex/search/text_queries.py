"""Text queries: validation, encoding, and the interface of the indices that they are compared with."""

from dataclasses import dataclass
from typing import Any, Protocol

from framedex.analysis.relevance import Relevance
from framedex.core.arrays import RowIds, Vectors
from framedex.core.checks import has_lone_surrogate
from framedex.errors import InvalidInput
from framedex.fulltext.query import MAX_CHARACTERS


def check_text(text: Any) -> str:
    """Return a text that is valid as a query.

    Raises:
        InvalidInput: the text has no word, is too long, or is not valid Unicode.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"a text to search by has at least one word, not {text!r}")
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"a text to search by may have {MAX_CHARACTERS:,} characters; this one has {len(text):,}")
    if has_lone_surrogate(text):
        raise InvalidInput("a text to search by must be valid Unicode, without lone surrogates")
    return text


class VectorTarget(Protocol):
    """An index of vectors by row: embeddings of images, or of captions."""

    row_ids: RowIds

    def select(self, row_ids: RowIds) -> Any:
        """Return the selection for :meth:`nearest` with the rows that pass a filter."""
        ...

    def nearest(
        self, query: Vectors, k: int, selection: Any = None, *, n_candidates: int | None = None
    ) -> tuple[RowIds, Vectors]:
        """Return the nearest rows and their similarities, nearest first."""
        ...

    def similarities(self, query: Vectors) -> Vectors:
        """Return the similarity of each row, NaN for rows without a vector."""
        ...

    def relevance_of(self, query: Vectors) -> Relevance:
        """Return the relevance scale of similarities to a text's vector."""
        ...

    def vector(self, row_id: int) -> Vectors | None:
        """Return the vector of a row; None if the row has no vector."""
        ...


@dataclass(frozen=True)
class EncodedQuery:
    """The embedding of a text query.

    Attributes:
        vector: float32, shape (D,), unit length.
        target: the index to compare it with: images, or captions.
    """

    vector: Vectors
    target: VectorTarget
