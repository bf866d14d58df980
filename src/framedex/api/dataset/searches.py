"""Searches of a dataset: the part of :class:`framedex.Dataset` about them."""

from collections.abc import Sequence
from typing import Any

from framedex.api.ranked_view import RankedView
from framedex.api.search_benchmark import SearchBenchmark
from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_entities
from framedex.operations.searches import image_query, open_searcher, text_query, upload
from framedex.records import EntityType
from framedex.render.progress import progress_bar
from framedex.search.benchmark import SELECTIVITIES, measure_search
from framedex.search.queries import Query
from framedex.search.query_images import Box
from framedex.search.searcher import Searcher


class DatasetSearches:
    """Searches by picture, by words and by meaning."""

    _context: Context
    id: str

    def similar(
        self,
        query: Any,
        limit: int | None = 100,
        *,
        threshold: float | None = None,
        bounding_box: Box | None = None,
        diversity: float = 0.0,
        relevance: float = 0.0,
        n_candidates: int | None = None,
        entity_type: str = "IMAGES",
    ) -> RankedView:
        """Return the media, or the objects, most like a picture, the best first.

        The first search of a larger dataset indexes its vectors, with a progress bar, and keeps the index beside the
        dataset; what is added later is indexed by the search that needs it. Filters come first: ``similar(…).where(…)``
        ranks only what passes.

        Args:
            query: the id of a media item or an object, a path, the bytes of a file, a uint8 array of shape (H, W, 3), a
                Pillow image, or a vector of the dataset's dimension.
            limit: how many at most; None for all, in order.
            threshold: the largest cosine distance, 0 to 2.
            bounding_box: the part of the picture that counts: ``{x, y, width, height}`` as shares of its sides, or
                ``(x, y, width, height)`` in pixels.
            diversity: 0 for the nearest, to 1 for the most unlike each other among the nearer ones.
            relevance: the least relevance, 0 to 1; from 0.5 on media match. With it the answer may be nothing.
            n_candidates: how many media to compare before the search ends: more find more of the true nearest, and take
                longer. None for as many as were measured to find 98 %; see :meth:`benchmark_search`.
            entity_type: ``IMAGES``, frames of videos too, or ``OBJECTS``.

        Raises:
            InvalidInput: an argument cannot be used.
            NotFound: there is no such media item.
            CannotDecode: the file cannot be read, or is no picture.
            NotIndexed: the dataset has no vectors.
        """
        with progress_bar("Indexing", late=True) as progress:
            searcher = self._searches(progress, entity_type)
            query = image_query(
                self._context, searcher, query, box=bounding_box, max_distance=threshold, n_candidates=n_candidates
            )
            searcher.index  # noqa: B018 - made here, where its progress is shown
        return self._ranked(query, entity_type, limit=limit, diversity=diversity, relevance=relevance)

    def search(
        self,
        text: str,
        limit: int | None = 100,
        *,
        by: str = "auto",
        diversity: float = 0.0,
        relevance: float = 0.0,
        entity_type: str = "IMAGES",
    ) -> RankedView:
        """Return the media, or the objects, that fit a text, the best first.

        Words are looked for in captions, labels and file names, of objects in their own: any of them, ranked by how
        rare they are; also ``"a phrase"``, ``AND``, ``OR``, ``-without``, ``(…)`` and ``begin*``.

        Args:
            text: what is looked for.
            limit: how many at most; None for all that fit.
            by: ``words``; ``meaning``, among pictures where the dataset's encoder knows texts, else among captions by
                the text encoder of the settings; ``both``, joined by reciprocal rank fusion; ``auto``: both where
                meaning can be searched, else words.
            diversity: as of :meth:`similar`; of words it has no effect; among captions it is of what these say.
            relevance: the least relevance, 0 to 1: of words a share of the best score.
            entity_type: ``IMAGES``, frames of videos too, or ``OBJECTS``.

        Raises:
            InvalidInput: an argument cannot be used; or nothing can be searched by meaning: the dataset's encoder knows
                no texts, and no text encoder is set or nothing has a caption.
        """
        with progress_bar("Indexing", late=True) as progress:
            searcher = self._searches(progress, entity_type)
            query = text_query(searcher, text, by)
            query.run(searcher, None, 1, 0.0)  # what cannot be asked is said at once, and indices are made here
        return self._ranked(query, entity_type, limit=limit, diversity=diversity, relevance=relevance)

    def upload(self, query: Any, *, bounding_box: Box | None = None) -> str:
        """Keep a picture to search by for a day, and return its anchor id, for explore and VQL ``similarity``.

        Arguments and errors are those of :meth:`similar`.
        """
        return upload(self._context, self._searches(None), query, bounding_box)

    def benchmark_search(
        self, *, queries: int = 200, k: int = 10, selectivities: Sequence[float] = SELECTIVITIES
    ) -> SearchBenchmark:
        """Measure how good and how fast searches by vector are, and return it; nothing of the dataset is touched.

        An index is made anew in a temporary folder. Queries are vectors of the dataset at random, with noise of a
        quarter of their length; filters leave media at random, at least *k*. Recall is held against exact search.
        It takes a minute or so for some 100,000 media, and can be interrupted.

        Args:
            queries: how many.
            k: how many nearest to look for.
            selectivities: shares of the media that filters leave, 0 to 1; no filter is always measured, too.

        Raises:
            InvalidInput: an argument is outside of its range.
            NotIndexed: the dataset has no vectors.
        """
        with progress_bar("Measuring searches") as progress:
            searcher = self._searches(None)
            return SearchBenchmark.of(
                measure_search(searcher, queries=queries, k=k, selectivities=selectivities, progress=progress)
            )

    def _searches(self, progress: Any, entity_type: str = EntityType.IMAGES) -> Searcher:
        if entity_type not in (EntityType.IMAGES, EntityType.OBJECTS):
            raise InvalidInput(f"entity_type must be IMAGES or OBJECTS, not {entity_type!r}")
        media = open_entities(self._context, self.id, objects=entity_type == EntityType.OBJECTS)
        return open_searcher(self._context, media, progress)

    def _ranked(self, query: Query, entity_type: str, **options: Any) -> RankedView:
        objects = entity_type == EntityType.OBJECTS
        return RankedView(self._context, self.id, (), query, objects=objects, **options)
