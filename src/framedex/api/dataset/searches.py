"""Search methods of :class:`framedex.Dataset`."""

from collections.abc import Sequence
from typing import Any

from framedex.api.search_benchmark import SearchBenchmark
from framedex.api.view import RankedView, View
from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_media
from framedex.operations.searches import open_searcher, upload
from framedex.operations.text_searches import text_searches
from framedex.records import EntityType, TextSearches
from framedex.render.progress import progress_bar
from framedex.search.benchmark import SELECTIVITIES, measure_search
from framedex.search.query_images import Box
from framedex.search.searcher import Searcher


class DatasetSearches:
    """Searches by image, by keywords and by meaning."""

    _context: Context
    id: str

    def similar(
        self,
        query: Any,
        limit: int | None = 100,
        *,
        max_distance: float | None = None,
        bounding_box: Box | None = None,
        diversity: float = 0.0,
        relevance: float = 0.0,
        n_candidates: int | None = None,
        entity_type: str = "IMAGES",
    ) -> RankedView:
        """Return the media or objects most similar to an image, best first, and verified copies of it before others.

        The column ``copy`` of the rows says how a media item is a copy of the image, as ``cropped to 25%``; it is null
        for others. For an item of the dataset the copies are the pairs that its index stores; those of another image
        are searched, as by :meth:`copies_of`. A copy is listed at any distance and relevance. With diversity, copies
        are not searched.

        The first search of a large dataset builds a vector index, with a progress bar, and stores it with the dataset.
        A later search adds new media to the index. Filters are applied before ranking: ``similar(…).where(…)`` ranks
        only the media that pass.

        Args:
            query: the id of a media item, of an object or of an image of :meth:`upload`, a path, the bytes of a file, a
                uint8 array of shape (H, W, 3), a Pillow image, or a vector of the dataset's dimension.
            limit: the maximum number of results; None for all.
            max_distance: the maximum cosine distance of media that are no copies, 0 to 2.
            bounding_box: the part of the image to search by, in pixels: ``(x, y, width, height)``, as in previews and
                in the column ``bbox``, or a mapping with these keys.
            diversity: 0 for the nearest media; up to 1 for media near the query but unlike each other.
            relevance: the minimum relevance of media that are no copies, 0 to 1; one of 0.5 or more is a match.
            n_candidates: the number of media to compare. A larger number increases recall and latency. By default the
                smallest number with a measured recall of 98 %; see :meth:`benchmark_search`.
            entity_type: ``IMAGES`` (images and video frames) or ``OBJECTS``.

        Raises:
            InvalidInput: an argument cannot be used.
            NotFound: the media item does not exist.
            CannotDecode: the file cannot be read, or is not an image.
            NotIndexed: the dataset has no embeddings.

        Examples:
            >>> [row["image_filename"] for row in ds.similar("new/cat-9.jpg", limit=3)]
            ['cat-5.jpg', 'cat-6.jpg', 'cat-1-copy.jpg']
        """
        return self._entities(entity_type).similar(
            query,
            limit,
            max_distance=max_distance,
            bounding_box=bounding_box,
            diversity=diversity,
            relevance=relevance,
            n_candidates=n_candidates,
        )

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
        """Return the media or objects that match a text, best first.

        A keyword search matches any of the words in captions, labels and file names, ranked by BM25. It supports
        ``"a phrase"``, ``AND``, ``OR``, ``-without``, ``(…)`` and ``prefix*``. For objects it searches the captions and
        labels of the objects.

        Args:
            text: the query.
            limit: the maximum number of results; None for all.
            by: ``words``: keyword search. ``meaning``: semantic search, of images if the dataset's encoder encodes
                text, else of captions with the text encoder of the settings. ``both``: both, joined by reciprocal rank
                fusion. ``auto``: both if semantic search is possible, else keyword search.
            diversity: as in :meth:`similar`. It has no effect on keyword search; for captions, it compares the
                embeddings of the captions.
            relevance: the minimum relevance, 0 to 1; for keyword search, a fraction of the best score.
            entity_type: ``IMAGES`` (images and video frames) or ``OBJECTS``.

        Raises:
            InvalidInput: an argument cannot be used; or semantic search is impossible, because the dataset's encoder
                does not encode text, and no text encoder is set or no media have captions.

        Examples:
            >>> [row["image_filename"] for row in ds.search("cat AND stairs")]
            ['cat-5.jpg']
        """
        view = self._entities(entity_type)
        return view.search(text, limit, by=by, diversity=diversity, relevance=relevance)

    def text_searches(self) -> TextSearches:
        """Return which text searches can find something: whether there are labels, captions, and a text encoder.

        Examples:
            >>> ds.text_searches()
            TextSearches(labels=True, captions=True, semantic=False)
        """
        return text_searches(self._context, self.id)

    def upload(self, query: Any, *, bounding_box: Box | None = None) -> str:
        """Store a query image for a day; return its anchor id, for :meth:`similar`, explore and VQL ``similarity``.

        Its embedding is stored, and a JPEG of up to 1,280 pixels a side, in which its copies are searched. Arguments
        and errors are those of :meth:`similar`.

        Examples:
            >>> anchor = ds.upload("new/cat-9.jpg")
            >>> ds.where(vql.similarity("upload", anchor)).first()[0]["image_filename"]
            'cat-1-copy.jpg'
        """
        return upload(self._context, self._searcher(), query, bounding_box)

    def benchmark_search(
        self, *, queries: int = 200, k: int = 10, selectivities: Sequence[float] = SELECTIVITIES
    ) -> SearchBenchmark:
        """Measure the recall and speed of vector searches. The dataset does not change.

        A separate index is built in a temporary folder. Queries are random embeddings of the dataset, with noise of a
        quarter of their length. Filters select random media, at least *k*. Recall is relative to exact search. For
        100,000 media this takes about a minute; it can be interrupted.

        Args:
            queries: the number of queries.
            k: the number of nearest neighbours of each query.
            selectivities: one or more fractions of media that pass the filters, above 0, up to 1; searches without a
                filter, which 1 stands for, are always measured.

        Raises:
            InvalidInput: an argument is out of range.
            NotIndexed: the dataset has no embeddings.

        Examples:
            >>> ds.benchmark_search(queries=5, selectivities=[1.0])
            <framedex.SearchBenchmark: to find 0.95 of the true nearest 10, ...: recall 1.0000 ...>
        """
        with progress_bar("Measuring searches") as progress:
            searcher = self._searcher()
            return SearchBenchmark.of(
                measure_search(searcher, queries=queries, k=k, selectivities=selectivities, progress=progress)
            )

    def _entities(self, entity_type: str) -> View:
        if entity_type not in (EntityType.IMAGES, EntityType.OBJECTS):
            raise InvalidInput(f"entity_type must be IMAGES or OBJECTS, not {entity_type!r}")
        return View(self._context, self.id, objects=entity_type == EntityType.OBJECTS)

    def _searcher(self) -> Searcher:
        return open_searcher(self._context, open_media(self._context, self.id))
