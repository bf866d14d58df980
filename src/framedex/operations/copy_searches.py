"""Searches for the copies of any image in an open dataset, which come first among what is similar to it."""

import hashlib
from typing import Any

import numpy as np

from framedex.analysis.linkage import ROUNDING
from framedex.analysis.registration import SIDE
from framedex.browse.duplicates import check_similarity, difference, tells_original
from framedex.browse.explore import file_name
from framedex.core.arrays import RowIds
from framedex.core.ids import is_id
from framedex.errors import InvalidInput
from framedex.images.reading import read_image
from framedex.jobs.copy_search import INDEX_PREFIX, CopySearchIndex, find_copies
from framedex.jobs.edits.decisions import read_decisions
from framedex.jobs.index.query_images import QuerySource
from framedex.jobs.overlap import SAME_FILE
from framedex.media.budget import Budget, HeldOn, shared_budget
from framedex.operations.context import Context, check_indexed, open_media
from framedex.records import DUPLICATE_LEVELS, Copy
from framedex.search.query_images import Box, QueryImage, QueryPixels, read_query_pixels
from framedex.search.ranking import Ranking
from framedex.search.searcher import Searcher
from framedex.storage.column_keys import columns_key
from framedex.storage.copy_pairs import CopyPairs, compared_column, pairs_with
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.objects import media_containing
from framedex.vql import duplicate_level

_MOST_PIXELS, _KEPT_SIDE = 2**22, 1280  # of an image that a view keeps; the largest size at which images are compared
_SIZE = ("width", "height")
_WEIGHT = 2**10  # bytes of a record


def copies_of_image(context: Context, dataset_id: str, query: Any, *, similarity: float, box: Box | None) -> list[Copy]:
    """Return the verified copies of an image; see :meth:`framedex.Dataset.copies_of`."""
    check_similarity("similarity", similarity)
    media = open_media(context, dataset_id)
    check_indexed(context, media)
    if not has_descriptors(media):
        raise InvalidInput(
            "copies of an image are found by copy descriptors, and this dataset has none: it was made of embeddings, "
            "or by an old version (then ds.reindex() computes them)"
        )
    least = DUPLICATE_LEVELS[duplicate_level(similarity)] - ROUNDING
    copies = _copies_by_row(context, media, _pixels(context, media, query, box)).values()
    return [copy for copy in copies if (copy.similarity or 0) >= least]


def has_descriptors(media: Media) -> bool:
    """Return whether the copies of any image can be found among media."""
    return media.parents is None and PANEL_DESCRIPTORS in media.table.schema.names


def copies_first(
    context: Context, searcher: Searcher, image: QueryImage, ranking: Ranking, rows: RowIds | None, limit: int | None
) -> Ranking:
    """Return a ranking by the distance to an image with its verified copies first, the most similar copy first.

    A copy is among the results at any distance.

    Args:
        context: the workspace.
        searcher: of the state.
        image: the image.
        ranking: the ranking.
        rows: uint64, ascending: the rows among which it is; None for all.
        limit: the maximum number of rows; None for all.
    """
    media = searcher.media
    if image.shown is None or not has_descriptors(media):
        return ranking
    if isinstance(image.shown, str):
        copies = _stored_copies(media, image.shown)
    else:
        copies = {row: copy.reason for row, copy in _copies_by_row(context, media, image.shown).items()}
    row_ids = np.fromiter(copies, np.uint64, len(copies))
    if rows is not None:
        row_ids = row_ids[np.isin(row_ids, rows)]
    first = searcher.by_distance(image.vector, row_ids)
    return ranking.behind(first, copies).first(limit) if len(first) else ranking


def to_keep(image: QueryPixels) -> QueryPixels:
    """Return an image in a size in which a view keeps it."""
    return image if image.pixels.size <= 3 * _MOST_PIXELS else image.reduced_to(_KEPT_SIDE)


def is_item(query: Any) -> bool:
    """Return whether a query has the form of the id of a media item or an object; it is no file then."""
    return isinstance(query, str) and is_id(query)


def _pixels(context: Context, media: Media, query: Any, box: Box | None) -> QueryPixels:
    with HeldOn(shared_budget(context.settings.pixels_in_flight)) as budget:
        if is_item(query):
            return read_item(context, media, query, box, budget)
        return read_searched_file(context, query, budget, box)


def read_item(context: Context, media: Media, item_id: str, box: Box | None, budget: Budget) -> QueryPixels:
    """Return the pixels of an item, or of a part of it, in which copies are searched.

    Raises:
        NotFound: there is no such item, or its file is missing.
        CannotDecode: its file is no image.
        InvalidInput: the box is none.
    """
    detail, media = SIDE if box is None else None, media_containing(media, item_id)
    found = QueryPixels.of(read_image(media, item_id, context.settings, detail=detail, budget=budget).pixels)
    return found if box is None else found.part(box)


def read_searched_file(context: Context, query: Any, budget: Budget, box: Box | None = None) -> QueryPixels:
    """Return the pixels in which copies of another image are searched; see :func:`read_query_pixels`."""
    return read_query_pixels(query, context.settings, box=box, detail=SIDE if box is None else None, budget=budget)


def _index(context: Context, media: Media) -> CopySearchIndex:
    """Return the index of a state, which is made at the first search and kept in a file."""
    key = ("copies", columns_key(media.table, [compared_column(media.table), *_SIZE]))
    found: CopySearchIndex | None = context.selections.get(key)
    if found is None:
        name = hashlib.blake2b(repr(key).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        path = context.layout.keypoints(media.dataset_id) / f"{INDEX_PREFIX}{name}.npz"
        found = CopySearchIndex.read(path)
        if found is None:
            found = CopySearchIndex.of(media.table)
            if not context.catalog.read_only:
                found.write(path)
        context.selections.put(key, found, weight=found.nbytes)
    return found


def _stored_copies(media: Media, media_id: str) -> dict[int, str]:
    """Return what was done to the stored copies of an item by their rows, the item first; nothing for another table.

    Media that a person called no duplicates are no copies.
    """
    own = media.find_row_ids([media_id])
    if not own:
        return {}
    decisions = read_decisions(media.table.path, media.generation.tables)
    others = {each for decision in decisions if media_id in decision.media_ids for each in decision.media_ids}
    pairs = pairs_with(media.table, media.generation.tables, media_id)
    rows = media.find_row_ids([each for each in pairs if each not in others])
    order = sorted(rows, key=lambda each: (-pairs[each].similarity, rows[each]))
    row_ids = [own[media_id], *(rows[each] for each in order)]
    first, *further = media.take(row_ids, ["content_hash", *_SIZE]).to_pylist()
    size, content = (first["width"], first["height"]), first["content_hash"]
    copies = {own[media_id]: SAME_FILE}
    for each, row in zip(order, further, strict=True):
        reason = _reason(pairs[each].reason, pairs[each].similarity, row, size, content)
        if pairs[each].is_verified or reason == SAME_FILE:
            copies[rows[each]] = reason
    return copies


def _reason(
    reason: str | None, similarity: float, row: dict[str, Any], size: tuple[int | None, ...], content: bytes | None
) -> str:
    """Return what was done to the copy of two images; of two sizes, the smaller one counts as that of the copy.

    Args:
        reason: what the pixels show.
        similarity: of the two.
        row: the stored image.
        size: width and height of the other one.
        content: its hash.
    """
    if content is not None and row["content_hash"] == content:
        return SAME_FILE
    sides = (np.array([each or np.nan for each in pair], np.float64) for pair in (size, (row["width"], row["height"])))
    smaller, larger = sorted(sides, key=np.prod)
    return reason or difference(smaller, larger, is_equal=similarity >= 1)


def _copies_by_row(context: Context, media: Media, image: QueryPixels) -> dict[int, Copy]:
    """Return the verified copies of an image by their rows, the most similar first; ties in row order."""
    columns = ["media_id", "path", "content_hash", *_SIZE]
    key = ("copies of", columns_key(media.table, [*columns, compared_column(media.table)]), repr(image))
    known: dict[int, Copy] | None = context.selections.get(key)
    if known is not None:
        return known
    number = media.table.count()
    source = QuerySource(image.pixels, image.size, image.content, is_damaged=image.is_damaged, first=number)
    folder = context.layout.keypoints(media.dataset_id)
    pairs, is_whole = find_copies(media, source, _index(context, media), context.settings, folder)
    rows = np.where(pairs.a == number, pairs.b, pairs.a)
    order = np.lexsort((rows, -pairs.similarity))
    row_ids = media.row_ids(EVERYTHING)[rows[order]].tolist()
    named = media.take(row_ids, columns).to_pylist()
    copies = {
        row_id: _copy(pairs, place, row, image, is_copy=bool(pairs.a[place] == number))
        for row_id, row, place in zip(row_ids, named, order.tolist(), strict=True)
    }
    if is_whole:  # files that are missing now may be back at the next search
        context.selections.put(key, copies, weight=_WEIGHT * (1 + len(copies)))
    return copies


def _copy(pairs: CopyPairs, place: int, row: dict[str, Any], image: QueryPixels, *, is_copy: bool) -> Copy:
    """Return the record of a pair with an image, which is its copy or its original."""
    similarity, reason = float(pairs.similarity[place]), pairs.reasons[place]
    knows = reason is not None and tells_original(reason)
    return Copy(
        media_id=row["media_id"],
        file_name=file_name(row["path"]),
        path=row["path"],
        similarity=similarity,
        reason=_reason(reason, similarity, row, image.size, image.content),
        keep=False,
        original=("dataset" if is_copy else "query") if knows else None,
        share=float(pairs.shares[place]),
        covered=float(pairs.covered[place]),
        residual=float(pairs.residual[place]),
    )
