"""Searching the media of a dataset, or the objects in them, at one state: by picture, by meaning, by words."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.analysis.relevance import Relevance
from framedex.arrays import RowIds, Vectors
from framedex.encoders import TextEncoder, choose_text_encoder
from framedex.errors import InvalidInput, NotFound, NotIndexed
from framedex.forks import cached_property
from framedex.progress import Progress
from framedex.records import Condition, EmbeddingConfig
from framedex.search.captions.captions import encode, open_captions
from framedex.search.captions.index import CaptionIndex
from framedex.search.query_images import PRECOMPUTED, encoder_of
from framedex.search.ranking import BM25, COSINE_DISTANCE, Ranking, diversified, ranked
from framedex.search.text.full_text import full_text
from framedex.search.text_queries import EncodedQuery, VectorTarget, check_text
from framedex.search.uploads import read_upload
from framedex.search.vectors.indices import VectorIndex, VectorIndices
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.objects import media_containing
from framedex.vql import SearchTest, SimilarityTest, TextTest

MATCH = 0.5
"""The relevance from which on a search that was given no threshold takes something for a match."""
_VARIED = 5  # times as many as are wanted are looked at for variety
_EXACT = 1e-6  # by which similarities from codes are off


@dataclass(frozen=True)
class Caches:
    """Where what searches need is kept.

    Attributes:
        vectors, texts, captions: folders of the media, or of the objects.
        uploads: folder of the dataset.
        keep: whether they may be written to.
    """

    vectors: Path
    texts: Path
    captions: Path
    uploads: Path
    keep: bool


@dataclass(frozen=True)
class Searcher:
    """Searches of the media of a dataset at one state.

    Attributes:
        media: the state.
        config: how its media were encoded; None if they were not.
        settings: limits and defaults.
        indices: the vectors that are open.
        caches: where indices are kept.
        progress: hears how far the making of an index is.
    """

    media: Media
    config: EmbeddingConfig | None
    settings: Settings
    indices: VectorIndices
    caches: Caches
    progress: Progress | None = field(default=None, compare=False)

    @cached_property
    def index(self) -> VectorIndex:
        """The vectors.

        Raises:
            NotIndexed: there are none.
        """
        folder = self.caches.vectors if self.caches.keep else None
        self.embedding  # noqa: B018 - raises where there are no vectors
        return self.indices.open(self.media, folder=folder, progress=self.progress)

    @property
    def embedding(self) -> EmbeddingConfig:
        """How the media were encoded.

        Raises:
            NotIndexed: they were not.
        """
        if self.config is None:
            raise NotIndexed("Dataset has no embedding config")
        return self.config

    def vector_of(self, media_id: str) -> Vectors:
        """Return the vector of a media item or an object: float32, shape (D,), unit length.

        Raises:
            NotFound: there is no such item, or it has no vector: its file cannot be decoded.
        """
        place = media_containing(self.media, media_id)
        if place.table is self.media.table:
            vector = self.index.vector(place.found[media_id])
        else:
            held = place.find(media_id, ["embedding"])["embedding"]
            vector = None if held is None else np.asarray(held, np.float32)
        if vector is None:
            raise NotFound(f"media {media_id!r} has no embedding to compare others with: it could not be decoded")
        return vector

    def meaning_of(self, text: str) -> EncodedQuery:
        """Return what a text means: by the dataset's own encoder where that knows texts, else by the text encoder.

        Raises:
            InvalidInput: the text cannot be used; neither encoder is there; or no media item has a caption.
        """
        check_text(text)
        if (encoder := self._multimodal) is not None:
            return EncodedQuery(encode(encoder, [text])[0], self.index)
        if (encoder := self._text_encoder) is None:
            raise InvalidInput(
                f"searching by meaning needs an encoder of pictures and texts, or one of texts for the captions; this "
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
        """The captions by their vectors.

        Raises:
            InvalidInput: there is no text encoder of the name that is set, or it does not return what it should.
        """
        encoder, progress = self._text_encoder, self.progress
        assert encoder is not None, "callers look whether one is set"
        return open_captions(
            self.media,
            encoder,
            folder=self.caches.captions,
            keep=self.caches.keep,
            progress=None if progress is None else lambda share: progress("captions", share),
        )

    @property
    def knows_meaning(self) -> bool:
        """Whether texts can be compared with the media, or with their captions."""
        if self._multimodal is not None:
            return True
        return self._text_encoder is not None and len(self.captions) > 0

    @cached_property
    def _multimodal(self) -> TextEncoder | None:
        """The dataset's own encoder, if it knows texts."""
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
        among: VectorTarget | None = None,
        n_candidates: int | None = None,
    ) -> Ranking:
        """Return the media nearest to a vector, of those in some rows.

        Args:
            vector: float32, shape (D,), unit length.
            rows: that may be answers, ascending; None for all.
            limit: how many.
            diversity: 0 for the nearest, to 1 for the most unlike each other among the nearer ones.
            among: what a text's vector is compared with; None for a picture's.
            n_candidates: how many rows to compare; None for as many as the index was measured for.
        """
        index = among or self.index
        selection = None if rows is None else index.select(rows)
        wanted = limit * _VARIED if diversity else limit
        row_ids, similarity = index.nearest(vector, wanted, selection, n_candidates=n_candidates)
        found = self._ranking(row_ids, similarity, self._relevance(vector, among))
        if not diversity:
            return found
        vectors = [index.vector(int(row)) for row in found.row_ids]
        stacked = np.stack([each for each in vectors if each is not None]) if vectors else np.empty((0, len(vector)))
        return found.only(diversified(1 - found.score, stacked.astype(np.float32), limit, diversity))

    def all_by_distance(
        self, vector: Vectors, rows: RowIds | None, *, most: float | None = None, among: VectorTarget | None = None
    ) -> Ranking:
        """Return all media of some rows that have a vector, the nearest first.

        Args:
            vector: float32, shape (D,), unit length.
            rows: that may be answers, ascending; None for all.
            most: only those of at most that cosine distance.
            among: what a text's vector is compared with; None for a picture's.
        """
        index = among or self.index
        similarity = index.similarities(vector)
        row_ids = index.row_ids
        if rows is not None:
            places = np.searchsorted(row_ids, rows)
            row_ids, similarity = rows, similarity[places]
        least = -np.inf if most is None else 1 - most - _EXACT
        held = similarity >= least  # never of NaN, the rows without a vector
        return self._ranking(row_ids[held], similarity[held], self._relevance(vector, among))

    def words(self, query: str, rows: RowIds | None) -> Ranking:
        """Return the media that a full-text query finds, of those in some rows, the best first."""
        progress = self.progress
        found = full_text(
            self.media,
            query,
            folder=self.caches.texts,
            keep=self.caches.keep,
            language=self.settings.language,
            progress=None if progress is None else lambda share: progress("texts", share),
        )
        row_ids, scores = found.row_ids, found.scores
        if rows is not None:
            held = np.isin(row_ids, rows, assume_unique=True)
            row_ids, scores = row_ids[held], scores[held]
        best = float(scores.max(initial=0))
        share = scores / best if best > 0 else np.ones_like(scores)
        return ranked(row_ids, scores, BM25, share.astype(np.float32))

    def _ranking(self, row_ids: RowIds, similarity: Vectors, relevance: Relevance) -> Ranking:
        distance = np.clip(1 - similarity, 0, 2).astype(np.float32)
        return ranked(row_ids, distance, COSINE_DISTANCE, lambda distance: relevance.of(1 - distance))

    def _relevance(self, vector: Vectors, among: VectorTarget | None) -> Relevance:
        return self.index.relevance if among is None else among.relevance_of(vector)

    def found(self, tests: Iterable[SearchTest]) -> dict[SearchTest, pa.Table]:
        """Return what searches within a filter find: ``_rowid`` and ``score``.

        Raises:
            NotFound: there is no such media item or upload.
            InvalidInput: a search cannot be done on this dataset.
        """
        return {test: self.ranked(test, None).table() for test in tests}

    def ranked(self, test: SearchTest, rows: RowIds | None) -> Ranking:
        """Return what a search within a filter finds in some rows, the best first; None for all rows.

        Raises:
            NotFound: there is no such media item or upload.
            InvalidInput: the search cannot be done on this dataset.
        """
        match test:
            case TextTest(op="fts"):
                found = self.words(test.value, rows)
                return _at_least(found, 0.0 if test.threshold is None else test.threshold)
            case TextTest():
                meant = self.meaning_of(test.value)
                least = test.threshold
                if least is None:  # few match, so that few are put in order
                    least = meant.among.relevance_of(meant.vector).least(MATCH)
                found = self.all_by_distance(meant.vector, rows, most=1 - least, among=meant.among)
                return found if test.threshold is not None else _at_least(found, MATCH)
            case SimilarityTest():
                is_media = test.op == "media"
                vector = self.vector_of(test.value) if is_media else read_upload(self.caches.uploads, test.value)
                found = self.all_by_distance(vector, rows, most=test.threshold)
                return found if test.threshold is not None else _at_least(found, MATCH)
            case _:
                raise AssertionError(f"no search for the key {test.key!r}")


def _at_least(ranking: Ranking, relevance: float) -> Ranking:
    return ranking.only(np.flatnonzero(ranking.relevance >= relevance))
