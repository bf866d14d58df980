"""Search over the media of a dataset, or its objects, at one state: by vector, by meaning, by keywords."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.analysis.relevance import Relevance
from framedex.core.arrays import RowIds, Vectors
from framedex.core.forks import cached_property
from framedex.core.progress import Progress
from framedex.encoders import TextEncoder, choose_text_encoder
from framedex.errors import InvalidInput, NotFound, NotIndexed
from framedex.records import EmbeddingConfig
from framedex.search.captions.captions import encode, open_captions
from framedex.search.captions.index import CaptionIndex
from framedex.search.query_images import PRECOMPUTED, encoder_of
from framedex.search.ranking import BM25, COSINE_DISTANCE, Ranking, diversified, ranked
from framedex.search.text.full_text import full_text
from framedex.search.text_queries import EncodedQuery, VectorTarget, check_text
from framedex.search.uploads import read_upload
from framedex.search.vectors.indices import VectorIndex, VectorIndices
from framedex.settings import Settings
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.objects import media_containing
from framedex.vql import SearchTest, SimilarityTest, TextTest

MATCH = 0.5
"""Minimum relevance of a match in a search without a threshold."""
_VARIED = 5  # candidates per result for diversity
_EXACT = 1e-6  # error of similarities computed from codes


@dataclass(frozen=True)
class Caches:
    """Cache folders for search.

    Attributes:
        vectors, texts, captions: folders for the media, or for the objects.
        uploads: folder of uploaded query images of the dataset.
        keep: whether the folders may be written to.
    """

    vectors: Path
    texts: Path
    captions: Path
    uploads: Path
    keep: bool


@dataclass(frozen=True)
class Searcher:
    """Search over the media of a dataset at one state.

    Attributes:
        media: the dataset's state.
        config: the encoder settings of its index; None if it has no embeddings.
        settings: limits and defaults.
        indices: the open vector indices.
        caches: the cache folders of the indices.
        progress: receives the progress of building an index.
    """

    media: Media
    config: EmbeddingConfig | None
    settings: Settings
    indices: VectorIndices
    caches: Caches
    progress: Progress | None = field(default=None, compare=False)

    @cached_property
    def index(self) -> VectorIndex:
        """The vector index of the state.

        Raises:
            NotIndexed: the dataset has no vectors.
        """
        folder = self.caches.vectors if self.caches.keep else None
        self.embedding  # noqa: B018 - raises where there are no vectors
        return self.indices.open(self.media, folder=folder, progress=self.progress)

    @property
    def embedding(self) -> EmbeddingConfig:
        """The encoder settings of the dataset's index.

        Raises:
            NotIndexed: the dataset has no vectors.
        """
        if self.config is None:
            raise NotIndexed("Dataset has no embedding config")
        return self.config

    def vector_of(self, media_id: str) -> Vectors:
        """Return the vector of a media item or an object: float32, shape (D,), unit length.

        Raises:
            NotFound: the item does not exist, or it has no vector because its file cannot be decoded.
        """
        media = media_containing(self.media, media_id)
        if media.table is self.media.table:
            vector = self.index.vector(media.row_id_of[media_id])
        else:
            values = media.find(media_id, ["embedding"])["embedding"]
            vector = None if values is None else np.asarray(values, np.float32)
        if vector is None:
            raise NotFound(f"media {media_id!r} has no embedding to compare others with: it could not be decoded")
        return vector

    def meaning_of(self, text: str) -> EncodedQuery:
        """Return the embedding of a text, by the dataset's own encoder if it encodes texts, else by the text encoder.

        Raises:
            InvalidInput: the text cannot be used; neither encoder is installed; or no media item has a caption.
        """
        check_text(text)
        if (encoder := self._multimodal) is not None:
            return EncodedQuery(encode(encoder, [text])[0], self.index)
        if (encoder := self._text_encoder) is None:
            raise InvalidInput(
                f"searching by meaning needs an encoder of images and texts, or one of texts for the captions; this "
                f"dataset was indexed with {self.embedding.encoder!r}, and no text encoder is set. Enrich it with "
                "MULTIMODEL_IMAGE_ENCODING or CAPTION_IMAGES, name a text encoder in FRAMEDEX_TEXT_ENCODER to search "
                "captions by, or search for words in captions, labels and file names"
            )
        if not len(self.captions):
            raise InvalidInput(
                f"the text encoder {encoder.name!r} searches captions by meaning, and no media of this dataset has "
                "one. Enrich it with CAPTION_IMAGES or set captions, or search for words in labels and file names"
            )
        return EncodedQuery(encode(encoder, [text])[0], self.captions)

    @cached_property
    def captions(self) -> CaptionIndex:
        """The index of caption embeddings.

        Raises:
            InvalidInput: the configured text encoder does not exist, or returns invalid results.
        """
        encoder, progress = self._text_encoder, self.progress
        assert encoder is not None, "callers check that one is set"
        return open_captions(
            self.media,
            encoder,
            folder=self.caches.captions,
            keep=self.caches.keep,
            progress=None if progress is None else lambda share: progress("captions", share),
        )

    @property
    def knows_meaning(self) -> bool:
        """True if texts can be compared with the media or with their captions."""
        if self._multimodal is not None:
            return True
        return self._text_encoder is not None and len(self.captions) > 0

    @cached_property
    def _multimodal(self) -> TextEncoder | None:
        """The dataset's own encoder if it encodes texts, else None."""
        if self.config is None or self.config.encoder == PRECOMPUTED:
            return None
        encoder: object = encoder_of(self.config)
        return encoder if isinstance(encoder, TextEncoder) else None

    @cached_property
    def _text_encoder(self) -> TextEncoder | None:
        name = self.settings.text_encoder
        return None if name is None else choose_text_encoder(name)

    def rows_of(self, condition: Condition) -> RowIds | None:
        """Return the rows that meet a condition, ascending; None for all."""
        return None if condition == Condition() else self.media.row_ids(condition)

    def nearest(
        self,
        vector: Vectors,
        rows: RowIds | None,
        *,
        limit: int,
        diversity: float = 0.0,
        target: VectorTarget | None = None,
        n_candidates: int | None = None,
    ) -> Ranking:
        """Return the media nearest to a vector among candidate rows.

        Args:
            vector: float32, shape (D,), unit length.
            rows: candidate rows, ascending; None for all.
            limit: number of results.
            diversity: 0 for the nearest, up to 1 for the most diverse among the nearer ones.
            target: the index for a text's vector; None for an image's vector.
            n_candidates: number of candidates to compare; None for the index's calibrated number.
        """
        index = target or self.index
        selection = None if rows is None else index.select(rows)
        count = limit * _VARIED if diversity else limit
        row_ids, similarity = index.nearest(vector, count, selection, n_candidates=n_candidates)
        ranking = self._ranking(row_ids, similarity, self._relevance(vector, target))
        if not diversity:
            return ranking
        vectors = [index.vector(int(row)) for row in ranking.row_ids]
        stacked = np.stack([each for each in vectors if each is not None]) if vectors else np.empty((0, len(vector)))
        return ranking.only(diversified(1 - ranking.score, stacked.astype(np.float32), limit, diversity))

    def all_by_distance(
        self,
        vector: Vectors,
        rows: RowIds | None,
        *,
        max_distance: float | None = None,
        target: VectorTarget | None = None,
    ) -> Ranking:
        """Return all candidate rows with a vector, nearest first.

        Args:
            vector: float32, shape (D,), unit length.
            rows: candidate rows, ascending; None for all.
            max_distance: maximum cosine distance.
            target: the index for a text's vector; None for an image's vector.
        """
        index = target or self.index
        similarity = index.similarities(vector)
        row_ids = index.row_ids
        if rows is not None:
            positions = np.searchsorted(row_ids, rows)
            row_ids, similarity = rows, similarity[positions]
        min_similarity = -np.inf if max_distance is None else 1 - max_distance - _EXACT
        mask = similarity >= min_similarity  # False for NaN, the rows without a vector
        return self._ranking(row_ids[mask], similarity[mask], self._relevance(vector, target))

    def by_distance(self, vector: Vectors, row_ids: RowIds) -> Ranking:
        """Return those of a few rows that have a vector, in their order, with their distances."""
        found = [(row, own) for row in row_ids.tolist() if (own := self.index.vector(row)) is not None]
        similarity = np.array([own @ vector for _, own in found], np.float32)
        rows = np.array([row for row, _ in found], np.uint64)
        return self._ranking(rows, similarity, self._relevance(vector, None), Ranking)

    def words(self, query: str, rows: RowIds | None) -> Ranking:
        """Return the candidate rows that match a full-text query, best first."""
        progress = self.progress
        matches = full_text(
            self.media,
            query,
            folder=self.caches.texts,
            keep=self.caches.keep,
            language=self.settings.language,
            progress=None if progress is None else lambda share: progress("texts", share),
        )
        row_ids, scores = matches.row_ids, matches.scores
        if rows is not None:
            mask = np.isin(row_ids, rows, assume_unique=True)
            row_ids, scores = row_ids[mask], scores[mask]
        best = float(scores.max(initial=0))
        share = scores / best if best > 0 else np.ones_like(scores)
        return ranked(row_ids, scores, BM25, share.astype(np.float32))

    def _ranking(
        self, row_ids: RowIds, similarity: Vectors, relevance: Relevance, make: Callable[..., Ranking] = ranked
    ) -> Ranking:
        distance = np.clip(1 - similarity, 0, 2).astype(np.float32)
        return make(row_ids, distance, COSINE_DISTANCE, lambda distance: relevance.of(1 - distance))

    def _relevance(self, vector: Vectors, target: VectorTarget | None) -> Relevance:
        return self.index.relevance if target is None else target.relevance_of(vector)

    def results(self, tests: Iterable[SearchTest]) -> dict[SearchTest, pa.Table]:
        """Return the results of the searches in a filter: ``_rowid`` and ``score``.

        Raises:
            NotFound: the media item or upload does not exist.
            InvalidInput: this dataset does not support the search.
        """
        return {test: self.ranked(test, None).table() for test in tests}

    def ranked(self, test: SearchTest, rows: RowIds | None) -> Ranking:
        """Return the results of a search in a filter among candidate rows, best first; None for all rows.

        Raises:
            NotFound: the media item or upload does not exist.
            InvalidInput: this dataset does not support the search.
        """
        match test:
            case TextTest(op="fts"):
                ranking = self.words(test.value, rows)
                return _at_least(ranking, 0.0 if test.threshold is None else test.threshold)
            case TextTest():
                query = self.meaning_of(test.value)
                min_similarity = test.threshold
                if min_similarity is None:  # few rows match, so only few are sorted
                    min_similarity = query.target.relevance_of(query.vector).min_similarity(MATCH)
                ranking = self.all_by_distance(query.vector, rows, max_distance=1 - min_similarity, target=query.target)
                return ranking if test.threshold is not None else _at_least(ranking, MATCH)
            case SimilarityTest():
                is_media = test.op == "media"
                vector = self.vector_of(test.value) if is_media else read_upload(self.caches.uploads, test.value).vector
                ranking = self.all_by_distance(vector, rows, max_distance=test.threshold)
                return ranking if test.threshold is not None else _at_least(ranking, MATCH)
            case _:
                raise AssertionError(f"no search for the key {test.key!r}")


def _at_least(ranking: Ranking, relevance: float) -> Ranking:
    return ranking.only(np.flatnonzero(ranking.relevance >= relevance))
