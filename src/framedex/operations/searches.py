"""Searches of an open dataset: queries from the arguments of users and of the interface."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.core.checks import check_fraction, check_integer, is_number
from framedex.core.progress import Progress
from framedex.encoders import decode_side_px
from framedex.errors import InvalidInput
from framedex.media.budget import HeldOn, shared_budget
from framedex.operations.context import Context, check_indexed
from framedex.operations.copy_searches import copies_first, has_descriptors, read_item, read_searched_file, to_keep
from framedex.operations.maps import rows_inside
from framedex.search.conditions import condition_of
from framedex.search.queries import HybridQuery, KeywordQuery, Query, SemanticQuery, VectorQuery
from framedex.search.query_images import (
    Box,
    QueryImage,
    as_vector,
    encode_image,
    encoder_of,
    is_file,
    read_query_pixels,
)
from framedex.search.ranking import COSINE_DISTANCE, Ranking, fuse
from framedex.search.searcher import Caches, Searcher
from framedex.search.text_queries import check_text
from framedex.search.uploads import is_upload, keep_upload, read_upload
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import ROW_ID
from framedex.vql import Filter, MapRegionTest, SearchTest, leading_searches
from framedex.vql import searches as searches_in

_UPLOAD, _MEDIA = "UPLOAD", "MEDIA"
_BY = ("auto", "words", "meaning", "both")


def open_searcher(context: Context, media: Media, progress: Progress | None = None) -> Searcher:
    """Return a searcher for a state of a dataset's media, or objects.

    Raises:
        Conflict: the dataset is being created and has no index yet.
    """
    check_indexed(context, media)
    layout, dataset_id = context.layout, media.dataset_id
    owner = dataset_id if media.parents is None else media.parents.dataset_id
    caches = Caches(
        vectors=layout.vectors(dataset_id),
        texts=layout.texts(dataset_id),
        captions=layout.captions(dataset_id),
        uploads=layout.anchors(owner),
        keep=not context.catalog.read_only,
    )
    return Searcher(media, media.generation.embedding_config, context.settings, context.indices, caches, progress)


def condition_for(context: Context, media: Media, vql: Filter) -> Condition:
    """Return the condition of a filter, including the results of its searches.

    Raises:
        InvalidFilter: the filter does not suit the dataset.
        InvalidInput: the dataset does not support a search.
        NotFound: a query's media item or upload does not exist.
    """
    tests = searches_in(vql)
    if is_empty_object_view(media):
        nothing = pa.schema([pa.field(ROW_ID, pa.uint64())]).empty_table()
        condition_of(media, vql, dict.fromkeys(tests, nothing))
        return Condition("FALSE")
    return condition_of(media, vql, search_results(context, open_searcher(context, media), tests) if tests else None)


def search_results(context: Context, searcher: Searcher, tests: Sequence[SearchTest]) -> dict[SearchTest, pa.Table]:
    """Return the rows that the searches of a filter find, with the column ``_rowid``.

    Raises:
        InvalidInput: the dataset does not support a search.
        NotFound: a query's media item or upload does not exist, or there is no map.
    """
    regions = [test for test in tests if isinstance(test, MapRegionTest)]
    found = searcher.results(test for test in tests if test not in regions)
    for test in regions:
        found[test] = pa.table({ROW_ID: rows_inside(context, searcher.media, test.value)})
    return found


def order_of(context: Context, media: Media, vql: Filter, condition: Condition) -> Ranking | None:
    """Return the filtered media in the order of the searches that all of them match; None if there is no such search.

    Args:
        context: the workspace.
        media: the filtered media.
        vql: the filter.
        condition: the condition of the filter.
    """
    tests = leading_searches(vql)
    if not tests:
        return None
    searcher = open_searcher(context, media)
    rows = media.row_ids(condition)
    rankings = [searcher.ranked(test, rows) for test in tests]
    return rankings[0] if len(rankings) == 1 else fuse(rankings)


def query_image(
    context: Context, searcher: Searcher, query: Any, *, box: Box | None = None, with_copies: bool = True
) -> QueryImage:
    """Return an image to search by.

    Args:
        context: the workspace.
        searcher: of the dataset.
        query: id of a media item, an object or an upload, path, bytes, array or Pillow image; or a vector.
        box: bounding box of the part of the image to use.
        with_copies: whether its copies will be searched, too, which needs its pixels.

    Raises:
        InvalidInput: the query or the box is invalid.
        NotFound: the media item does not exist.
        CannotDecode: the file cannot be read, or is not an image.
    """
    if (vector := as_vector(query, searcher.config)) is not None:
        if box is not None:
            raise InvalidInput("a bounding box is a part of an image; a vector has none")
        return QueryImage(vector)
    if isinstance(query, str) and is_upload(searcher.caches.uploads, query):
        if box is not None:
            raise InvalidInput("a bounding box is a part of an image; upload that part of it alone")
        return read_upload(searcher.caches.uploads, query)
    is_item = isinstance(query, str) and not is_file(query) and not names_path(query)
    if is_item and box is None:
        return QueryImage(searcher.vector_of(query), query)
    encoder, media = encoder_of(searcher.embedding), searcher.media
    with HeldOn(shared_budget(context.settings.pixels_in_flight)) as budget:
        if is_item:
            found = read_item(context, media, query, box, budget)
        else:
            side = decode_side_px(encoder)
            found = read_query_pixels(query, context.settings, box=box, detail=side, budget=budget)
        vector = encode_image(found.pixels, encoder)
        if not with_copies or not has_descriptors(media):
            return QueryImage(vector)
        if not found.is_whole:  # copies are searched at another size
            found = read_searched_file(context, query, budget)
        return QueryImage(vector, to_keep(found))


def vector_query(image: QueryImage, max_distance: float | None = None, n_candidates: int | None = None) -> VectorQuery:
    """Return the query for media similar to an image.

    Args:
        image: the image.
        max_distance: maximum cosine distance, 0 to 2.
        n_candidates: number of rows to compare exactly; None for the number measured for the index.

    Raises:
        InvalidInput: a number is invalid.
    """
    if max_distance is not None and not (is_number(max_distance) and 0 <= max_distance <= 2):
        raise InvalidInput(f"threshold is the largest cosine distance, 0 to 2, not {max_distance!r}")
    check_integer("n_candidates", n_candidates, minimum=1, optional=True)
    return VectorQuery(image.vector.tobytes(), max_distance, n_candidates)


def names_path(query: str) -> bool:
    """Return whether a text that is not an existing file looks like a path."""
    return any(mark in query for mark in ("/", "\\", "."))


def upload(context: Context, searcher: Searcher, query: Any, box: Box | None = None) -> str:
    """Store an image to search by, and return its anchor id; arguments and errors as for :func:`query_image`."""
    return keep_upload(searcher.caches.uploads, query_image(context, searcher, query, box=box))


def text_query(searcher: Searcher, text: str | None, by: str) -> Query:
    """Return the query for media that match a text.

    Args:
        searcher: of the dataset.
        text: the text.
        by: ``words``, ``meaning``, ``both``, or ``auto``: both if semantic search is available, else words.

    Raises:
        InvalidInput: an argument is invalid.
    """
    if by not in _BY:
        raise InvalidInput(f"by must be one of {', '.join(_BY)}, not {by!r}")
    text = check_text(text)
    if by == "auto":
        by = "both" if searcher.knows_meaning else "words"
    return KeywordQuery(text) if by == "words" else SemanticQuery(text) if by == "meaning" else HybridQuery(text)


def explore_ranking(
    context: Context,
    media: Media,
    condition: Condition,
    *,
    caption: str | None,
    textual_similarity_threshold: float | None,
    anchor_media_id: str | None,
    anchor_type: str | None,
) -> Ranking | None:
    """Return the ranking that the parameters of explore request, best first; None if they request no order.

    Args:
        context: the workspace.
        media: the explored media.
        condition: the filter.
        caption: query text: semantic search if it is available, else keyword search.
        textual_similarity_threshold: 0 to 1; maximum distance to the caption, exclusive. For keyword search the
            distance is one minus the score divided by the best score.
        anchor_media_id: id of a media item, an object, or an uploaded image.
        anchor_type: ``MEDIA`` or ``UPLOAD``; None to detect it.

    Raises:
        InvalidInput: a parameter is invalid, or two request different orders.
        NotFound: the media item or upload does not exist.
    """
    max_distance = _check_threshold(textual_similarity_threshold)
    if caption is not None and anchor_media_id is not None:
        raise InvalidInput("give either caption or anchor_media_id: media are ordered by one of them")
    if max_distance is not None and caption is None:
        raise InvalidInput("textual_similarity_threshold goes with caption")
    if anchor_type is not None and anchor_media_id is None:
        raise InvalidInput("anchor_type goes with anchor_media_id")
    if caption is None and anchor_media_id is None:
        return None
    if caption is not None:
        check_text(caption)  # before captions are indexed for it
    searcher = open_searcher(context, media)
    rows = searcher.rows_of(condition)
    if anchor_media_id is not None:
        image = _anchor(searcher, anchor_media_id, anchor_type)
        result = vector_query(image).run(searcher, rows, None, 0.0)
        return copies_first(context, searcher, image, result, rows, None)
    query = text_query(searcher, caption, "meaning" if searcher.knows_meaning else "words")
    result = query.run(searcher, rows, None, 0.0)
    if max_distance is None:
        return result
    distance = result.score if result.kind == COSINE_DISTANCE else 1 - result.relevance
    return result.only(np.flatnonzero(distance < max_distance))


def _anchor(searcher: Searcher, anchor_id: str, anchor_type: str | None) -> QueryImage:
    kind = anchor_type or (_UPLOAD if is_upload(searcher.caches.uploads, anchor_id) else _MEDIA)
    if kind not in (_UPLOAD, _MEDIA):
        raise InvalidInput(f"anchor_type must be {_UPLOAD} or {_MEDIA}, not {anchor_type!r}")
    if kind == _UPLOAD:
        return read_upload(searcher.caches.uploads, anchor_id)
    return QueryImage(searcher.vector_of(anchor_id), anchor_id)


def _check_threshold(value: float | None) -> float | None:
    if value is None:
        return None
    check_fraction("textual_similarity_threshold", value)
    return float(value)


def explore_elements(labels: Any, tags: Any) -> list[dict[str, Any]]:
    """Return the VQL of the parameters ``labels`` and ``tags`` of explore.

    Args:
        labels: a list of labels, the same as JSON, or a bare list such as ``[dog,puppy]``.
        tags: the same for tags; ``untagged`` matches media without tags.

    Raises:
        InvalidInput: a parameter has another form.
    """
    result: list[dict[str, Any]] = []
    if labels is not None:
        result.append({"labels": {"op": "one_of", "value": _as_list("labels", labels)}})
    if tags is not None:
        result.append({"tags": {"op": "is", "value": _as_list("tags", tags)}})
    return result


def _as_list(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        value = _parse_list(value)
    if isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        return list(value)
    raise InvalidInput(f"{name} must be a list of texts, or such a list as JSON, not {value!r}")


def _parse_list(text: str) -> Any:
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        inner = text.strip().removeprefix("[").removesuffix("]")
        return [part.strip().strip("\"'") for part in inner.split(",") if part.strip()]
    return [result] if isinstance(result, str) else result
