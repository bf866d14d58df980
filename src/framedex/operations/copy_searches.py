"""Searches for the copies of any image in an open dataset."""

from typing import Any

import numpy as np

from framedex.analysis.linkage import ROUNDING
from framedex.analysis.registration import SIDE
from framedex.browse.duplicates import check_similarity, difference, tells_original
from framedex.browse.explore import file_name
from framedex.core.ids import is_id
from framedex.errors import InvalidInput
from framedex.images.reading import read_image
from framedex.jobs.copy_search import CopySearchIndex, find_copies
from framedex.jobs.index.query_images import QuerySource
from framedex.jobs.overlap import SAME_FILE
from framedex.media.budget import HeldOn, shared_budget
from framedex.operations.context import Context, check_indexed, open_media
from framedex.records import DUPLICATE_LEVELS, Copy
from framedex.search.query_images import Box, QueryPixels, read_query_pixels
from framedex.storage.column_keys import columns_key
from framedex.storage.copy_pairs import CopyPairs, compared_column
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.objects import media_containing
from framedex.vql import duplicate_level


def copies_of_image(context: Context, dataset_id: str, query: Any, *, similarity: float, box: Box | None) -> list[Copy]:
    """Return the verified copies of an image; see :meth:`framedex.Dataset.copies_of`."""
    check_similarity("similarity", similarity)
    media = open_media(context, dataset_id)
    check_indexed(context, media)
    if PANEL_DESCRIPTORS not in media.table.schema.names:
        raise InvalidInput(
            "copies of an image are found by copy descriptors, and this dataset has none: it was made of embeddings, "
            "or by an old version (then ds.reindex() computes them)"
        )
    image, number = _pixels(context, media, query, box), media.table.count()
    source = QuerySource(image.pixels, image.size, image.content, is_damaged=image.is_damaged, first=number)
    folder = context.layout.keypoints(media.dataset_id)
    pairs = find_copies(media, source, _index(context, media), context.settings, folder)
    pairs = pairs.take(pairs.similarity >= DUPLICATE_LEVELS[duplicate_level(similarity)] - ROUNDING)
    return _copies(media, pairs, image, number)


def is_item(query: Any) -> bool:
    """Return whether a query has the form of the id of a media item or an object; it is no file then."""
    return isinstance(query, str) and is_id(query)


def _pixels(context: Context, media: Media, query: Any, box: Box | None) -> QueryPixels:
    detail = SIDE if box is None else None
    with HeldOn(shared_budget(context.settings.pixels_in_flight)) as budget:
        if not is_item(query):
            return read_query_pixels(query, context.settings, box=box, detail=detail, budget=budget)
        pixels = read_image(
            media_containing(media, query), query, context.settings, detail=detail, budget=budget
        ).pixels
        found = QueryPixels.of(pixels)
        return found if box is None else found.part(box)


def _index(context: Context, media: Media) -> CopySearchIndex:
    """Return the index of a state, which is made at the first search."""
    key = ("copies", columns_key(media.table, [compared_column(media.table), "width", "height"]))
    found: CopySearchIndex | None = context.selections.get(key)
    if found is None:
        found = CopySearchIndex.of(media.table)
        context.selections.put(key, found, weight=found.nbytes)
    return found


def _copies(media: Media, pairs: CopyPairs, image: QueryPixels, number: int) -> list[Copy]:
    """Return records of pairs with an image that has a number, the most similar first; ties in row order."""
    is_query = pairs.a == number
    rows = np.where(is_query, pairs.b, pairs.a)
    ascending = np.argsort(rows, kind="stable")
    row_ids = media.row_ids(EVERYTHING)[rows[ascending]]
    named = media.take(row_ids.tolist(), ["media_id", "path", "width", "height", "content_hash"])
    copies = []
    for place, row in zip(ascending.tolist(), named.to_pylist(), strict=True):
        reason, query_is_copy = pairs.reasons[place], bool(is_query[place])
        knows = reason is not None and tells_original(reason)
        sizes = np.array([[row["width"] or np.nan, row["height"] or np.nan], image.size], np.float64)
        if row["content_hash"] == image.content:
            reason = SAME_FILE
        copies.append(
            Copy(
                media_id=row["media_id"],
                file_name=file_name(row["path"]),
                path=row["path"],
                similarity=float(pairs.similarity[place]),
                reason=reason or difference(sizes[1], sizes[0], is_equal=bool(pairs.similarity[place] >= 1)),
                keep=False,
                original=("dataset" if query_is_copy else "query") if knows else None,
                share=float(pairs.shares[place]),
                covered=float(pairs.covered[place]),
                residual=float(pairs.residual[place]),
            )
        )
    return sorted(copies, key=lambda copy: copy.similarity or 0.0, reverse=True)
