"""The search for the overlap of two views: copies of media of one in the other."""

import hashlib
from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from framedex.api.overlap import OVERLAP_COLUMNS, Overlap
from framedex.api.result_pages import ThumbnailSource
from framedex.browse.duplicates import check_similarity
from framedex.errors import InvalidInput
from framedex.jobs.overlap import OverlapPairs, OverlapSide, find_overlap, side_of
from framedex.operations.context import Context, check_indexed
from framedex.operations.pinned_rows import PinnedRows
from framedex.operations.starting import load_job_context
from framedex.operations.steps import SelectedRows, Steps
from framedex.render.progress import progress_bar
from framedex.storage import datasets
from framedex.storage.media import Media
from framedex.vql import duplicate_level


class OverlappingView(ThumbnailSource, Protocol):
    """A view whose media are compared with those of another one."""

    _context: Context
    _dataset_id: str

    def _media(self) -> Media: ...

    def _selection(self, media: Media) -> SelectedRows: ...

    def _with(self, steps: Steps) -> Self: ...


Source = TypeVar("Source", bound=OverlappingView)


def overlap_of(here: Source, there: Any, *, similarity: float, exact: bool) -> Overlap[Source]:
    """Return the overlap of two views; see :meth:`framedex.View.overlap`."""
    check_similarity("similarity", similarity)
    sides = _side(here), _side(there)
    if here._dataset_id == there._dataset_id and np.array_equal(sides[0].row_ids, sides[1].row_ids):
        raise InvalidInput("the two views have the same media; duplicates() finds the copies within a view")
    key = _key(sides, similarity, exact)
    pairs: OverlapPairs | None = here._context.selections.get(key)
    if pairs is None:
        with progress_bar("Overlap", late=True) as progress:
            show = progress or (lambda _stage, _share: None)
            pairs = find_overlap(*sides, level=duplicate_level(similarity), exact=exact, progress=show)
        here._context.selections.put(key, pairs, weight=pairs.nbytes)
    views = here, there

    def select(side: int, ids: pa.Array) -> Source:
        view, column = views[side], ("here_id", "there_id")[side]
        rows = (pairs.here, pairs.there)[side]
        _, first = np.unique(rows, return_index=True)
        return view._with((PinnedRows(sides[side].media, rows[np.sort(first)], f"{key} {column} {len(ids)}"),))

    return Overlap(_table(sides, pairs), views, [_dataset_name(each) for each in views], select)


def _table(sides: tuple[OverlapSide, OverlapSide], pairs: OverlapPairs) -> pa.Table:
    columns = [
        side.media.values_at(rows, name)
        for name in ("media_id", "path")
        for side, rows in zip(sides, (pairs.here, pairs.there), strict=True)
    ]
    arrays = [*columns, *(pa.array(each) for each in (pairs.similarity, pairs.copies, pairs.reasons))]
    types = OVERLAP_COLUMNS.types
    return pa.table([each.cast(kind) for each, kind in zip(arrays, types, strict=True)], schema=OVERLAP_COLUMNS)


def _key(sides: tuple[OverlapSide, OverlapSide], similarity: float, exact: bool) -> Hashable:
    """Return a value that is equal for equal sets of media in equal states."""
    digests = [hashlib.blake2b(each.row_ids.tobytes(), digest_size=16).hexdigest() for each in sides]
    return "overlap", *digests, *(each.media.generation.id for each in sides), duplicate_level(similarity), exact


def _side(view: Any) -> OverlapSide:
    media = view._media()
    check_indexed(view._context, media)
    return side_of(load_job_context(view._context, view._dataset_id), media, view._selection(media).row_ids())


def _dataset_name(view: OverlappingView) -> str:
    with view._context.catalog.read() as connection:
        return datasets.find_dataset(connection, view._dataset_id).display_name
