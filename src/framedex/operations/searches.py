"""Searches of an open dataset: what they need of the workspace, and what the interface's parameters ask for."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.checks import check_fraction, check_integer, is_number
from framedex.encoders import decode_side_px
from framedex.errors import InvalidInput
from framedex.images.reading import read_image
from framedex.operations.context import Context
from framedex.progress import Progress
from framedex.records import Condition
from framedex.search.conditions import condition_of
from framedex.search.queries import HybridQuery, KeywordQuery, Query, SemanticQuery, VectorQuery
from framedex.search.query_images import Box, as_vector, crop, encode_picture, encoder_of, is_file, read_pixels
from framedex.search.ranking import COSINE_DISTANCE, Ranking, fuse
from framedex.search.searcher import Caches, Searcher
from framedex.search.text_queries import check_text
from framedex.search.uploads import is_upload, keep_upload, read_upload
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view, media_containing
from framedex.storage.tables import ROW_ID
from framedex.vql import Filter, leading_searches
from framedex.vql import searches as searches_in

_UPLOAD, _MEDIA = "UPLOAD", "MEDIA"
_BY = ("auto", "words", "meaning", "both")


def open_searcher(context: Context, media: Media, progress: Progress | None = None) -> Searcher:
    """Return the searches of a state of a dataset, among its media or among objects."""
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
    """Return the condition that a filter stands for, with what its searches find.

    Raises:
        InvalidFilter: the filter does not suit the dataset.
        InvalidInput: a search cannot be done on this dataset.
        NotFound: there is no such media item or upload to search by.
    """
    tests = searches_in(vql)
    if is_empty_object_view(media):
        nothing = pa.schema([pa.field(ROW_ID, pa.uint64())]).empty_table()
        condition_of(media, vql, dict.fromkeys(tests, nothing))
        return Condition("FALSE")
    return condition_of(media, vql, open_searcher(context, media).found(tests) if tests else None)


def order_of(context: Context, media: Media, vql: Filter, condition: Condition) -> Ranking | None:
    """Return the media of a filter in the order of what all of them were searched by; None if there is no such search.

    Args:
        context: the workspace.
        media: what is filtered.
        vql: the filter.
        condition: that it stands for.
    """
    tests = leading_searches(vql)
    if not tests:
        return None
    searcher = open_searcher(context, media)
    rows = media.row_ids(condition)
    rankings = [searcher.ranked(test, rows) for test in tests]
    return rankings[0] if len(rankings) == 1 else fuse(rankings)


def image_query(
    context: Context,
    searcher: Searcher,
    query: Any,
    *,
    box: Box | None = None,
    most: float | None = None,
    n_candidates: int | None = None,
) -> VectorQuery:
    """Return the question for media like a picture.

    Args:
        context: the workspace.
        searcher: of the dataset.
        query: id of a media item or an object, path, bytes, array or Pillow image; or a vector.
        box: the part of the picture that counts.
        most: the largest cosine distance.
        n_candidates: how many rows to compare; None for as many as the index was measured for.

    Raises:
        InvalidInput: the query or the box cannot be used.
        NotFound: there is no such media item.
        CannotDecode: the file cannot be read, or is no picture.
    """
    if most is not None and not (is_number(most) and 0 <= most <= 2):
        raise InvalidInput(f"threshold is the largest cosine distance, 0 to 2, not {most!r}")
    check_integer("compared", n_candidates, minimum=1, optional=True)
    return VectorQuery(_vector(context, searcher, query, box).tobytes(), most, n_candidates)


def _vector(context: Context, searcher: Searcher, query: Any, box: Box | None) -> Any:
    if (vector := as_vector(query, searcher.config)) is not None:
        if box is not None:
            raise InvalidInput("a bounding box is a part of a picture; a vector has none")
        return vector
    if isinstance(query, str) and not is_file(query) and not _is_path(query):
        if box is None:
            return searcher.vector_of(query)
        encoder = encoder_of(searcher.embedding)
        media = media_containing(searcher.media, query)
        return encode_picture(crop(read_image(media, query, context.settings).pixels, box), encoder)
    encoder = encoder_of(searcher.embedding)
    return encode_picture(read_pixels(query, context.settings, box=box, detail=decode_side_px(encoder)), encoder)


def _is_path(query: str) -> bool:
    """Return whether a text that names no file here was meant as a path all the same."""
    return any(mark in query for mark in ("/", "\\", "."))


def upload(context: Context, searcher: Searcher, query: Any, box: Box | None = None) -> str:
    """Keep a picture to search by, and return its anchor id; arguments and errors as :func:`image_query`."""
    return keep_upload(searcher.caches.uploads, _vector(context, searcher, query, box))


def text_query(searcher: Searcher, text: str | None, by: str) -> Query:
    """Return the question for media that fit a text.

    Args:
        searcher: of the dataset.
        text: what is looked for.
        by: ``words``, ``meaning``, ``both``, or ``auto``: both where meaning can be searched, else words.

    Raises:
        InvalidInput: an argument cannot be used.
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
    """Return the media that the parameters of explore ask for, the best first; None if they do not ask for an order.

    Args:
        context: the workspace.
        media: what is explored.
        condition: which of it.
        caption: text that is looked for: by meaning where that can be searched, else by its words.
        textual_similarity_threshold: 0 to 1; only media are kept whose distance to the caption is below. For words the
            distance is one less the share of the best score.
        anchor_media_id: a media item, an object, or a picture that was uploaded.
        anchor_type: ``MEDIA`` or ``UPLOAD``; None for whichever it is.

    Raises:
        InvalidInput: a parameter cannot be used, or two ask for different orders.
        NotFound: there is no such media item or upload.
    """
    most = _share(textual_similarity_threshold)
    if caption is not None and anchor_media_id is not None:
        raise InvalidInput("give either caption or anchor_media_id: media are ordered by one of them")
    if most is not None and caption is None:
        raise InvalidInput("textual_similarity_threshold goes with caption")
    if anchor_type is not None and anchor_media_id is None:
        raise InvalidInput("anchor_type goes with anchor_media_id")
    if caption is None and anchor_media_id is None:
        return None
    if caption is not None:
        check_text(caption)  # before captions are indexed for it
    searcher = open_searcher(context, media)
    if anchor_media_id is not None:
        query = _anchor(searcher, anchor_media_id, anchor_type)
    else:
        query = text_query(searcher, caption, "meaning" if searcher.knows_meaning else "words")
    found = query.run(searcher, searcher.rows_of(condition), None, 0.0)
    if most is None:
        return found
    distance = found.score if found.kind == COSINE_DISTANCE else 1 - found.relevance
    return found.only(np.flatnonzero(distance < most))


def _anchor(searcher: Searcher, anchor_id: str, anchor_type: str | None) -> Query:
    kind = anchor_type or (_UPLOAD if is_upload(searcher.caches.uploads, anchor_id) else _MEDIA)
    if kind not in (_UPLOAD, _MEDIA):
        raise InvalidInput(f"anchor_type must be {_UPLOAD} or {_MEDIA}, not {anchor_type!r}")
    if kind == _UPLOAD:
        return VectorQuery(read_upload(searcher.caches.uploads, anchor_id).tobytes())
    return VectorQuery(searcher.vector_of(anchor_id).tobytes())


def _share(value: float | None) -> float | None:
    if value is None:
        return None
    check_fraction("textual_similarity_threshold", value)
    return float(value)


def explore_elements(labels: Any, tags: Any) -> list[dict[str, Any]]:
    """Return the VQL that the parameters ``labels`` and ``tags`` of explore stand for.

    Args:
        labels: a list of labels, the same as JSON, or a bare list as ``[dog,puppy]``; media that have any of them.
        tags: likewise of tags; ``untagged`` stands for having none.

    Raises:
        InvalidInput: one is nothing of that.
    """
    found: list[dict[str, Any]] = []
    if labels is not None:
        found.append({"labels": {"op": "one_of", "value": _listed("labels", labels)}})
    if tags is not None:
        found.append({"tags": {"op": "is", "value": _listed("tags", tags)}})
    return found


def _listed(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        value = _of_text(value)
    if isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        return list(value)
    raise InvalidInput(f"{name} must be a list of texts, or such a list as JSON, not {value!r}")


def _of_text(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        inner = text.strip().removeprefix("[").removesuffix("]")
        return [part.strip().strip("\"'") for part in inner.split(",") if part.strip()]
    return [found] if isinstance(found, str) else found
