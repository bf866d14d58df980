"""Rows of one state of a dataset as a selection in its present state, and whether they have changed meanwhile."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.editable_values import editable_values
from framedex.errors import Conflict, NotFound
from framedex.jobs.edits.journal import TAG_COLUMNS
from framedex.operations.context import Context, open_media
from framedex.operations.steps import SelectedRows, Step
from framedex.storage import datasets
from framedex.storage.definitions import stored_fields
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_names import IN_BASKET, KEEPER, MEDIA

_BLOCK_ROWS = 8192
_CONTENT = "content_hash"


@dataclass(frozen=True)
class PinnedRows(Step):
    """The rows that a selection had in one state of the dataset, in their order; those that are gone are left out.

    Attributes:
        media: the media, or the objects, in that state.
        row_ids: uint64: the rows there.
        name: a text that is equal for equal rows of equal states.
        is_strict: whether rows that have changed since are a conflict.
    """

    media: Media = field(repr=False)
    row_ids: RowIds = field(repr=False, compare=False)
    name: str
    is_strict: bool = False

    is_kept: ClassVar[bool] = False

    @property
    def key(self) -> Hashable:
        """The name of the rows."""
        return "pinned", self.name

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows that are still among those of a selection.

        Raises:
            Conflict: rows have changed, and must not.
        """
        media = selection.media
        if self.is_strict and have_changed(self.media, self.row_ids, media):
            raise Conflict("the rows have changed since they were read; read them again")
        if is_empty_object_view(media) or is_empty_object_view(self.media):
            return SelectedRows(media, np.empty(0, np.uint64))
        if media.generation.id == self.media.generation.id:
            is_whole = selection.condition() == EVERYTHING
            return SelectedRows(media, self.row_ids) if is_whole else selection.within(self.row_ids)
        return selection.reordered(selection.rows_of(self.media.values_at(self.row_ids, "media_id")))


def rows_of_ids(media: Media, ids: list[str]) -> RowIds:
    """Return the rows with some ids, in the order of the ids: uint64.

    Raises:
        NotFound: an id is not among the media; the message names it.
    """
    found = media.with_row_ids([each for each in ids if each.isascii()]).row_id_of
    missing = next((each for each in ids if each not in found), None)
    if missing is not None:
        raise NotFound(f"no media {missing!r} in this dataset")
    return np.array([found[each] for each in ids], np.uint64)


def media_at(context: Context, dataset_id: str, generation_id: str) -> Media:
    """Return the media of a dataset in an earlier state.

    Raises:
        NotFound: the state was freed, or there never was such a state.
    """
    media = open_media(context, dataset_id, early=True)
    if media.generation.id == generation_id:
        return media
    with context.catalog.read() as connection:
        generation = datasets.find_generation(connection, dataset_id, generation_id)
    table = context.columns.open(media.table.path, generation.tables[MEDIA])
    return replace(media, generation=generation, table=table)


def have_changed(media: Media, row_ids: RowIds, present: Media) -> bool:
    """Return whether rows of an earlier state are gone, or have other labels, captions, tags, fields or files now.

    Args:
        media: the media in the earlier state.
        row_ids: uint64: the rows there.
        present: the media in the present state.
    """
    if present.generation.id == media.generation.id or not len(row_ids):
        return False
    now = SelectedRows(present, EVERYTHING).rows_of(media.values_at(row_ids, "media_id"))
    if len(now) < len(row_ids):
        return True
    if media.generation.tables[MEDIA] == present.generation.tables[MEDIA]:
        return False
    names = _edited_columns(media, present)
    for start in range(0, len(now), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        pairs = zip(_values(media, row_ids[block], names), _values(present, now[block], names), strict=True)
        if any(not before.equals(after) for before, after in pairs):
            return True
    return False


def _edited_columns(*states: Media) -> list[str]:
    fields = {each.column.name for media in states for each in stored_fields(media)}
    return sorted({*editable_values(), *TAG_COLUMNS, IN_BASKET, KEEPER, _CONTENT, *fields})


def _values(media: Media, row_ids: RowIds, names: list[str]) -> Iterator[pa.Array]:
    """Yield the values of columns; those of a column that a table lacks are null."""
    present = [name for name in names if name in media.table.schema.names]
    rows = media.take(row_ids.tolist(), present)
    for name in names:
        values = rows[name].combine_chunks() if name in present else pa.nulls(len(row_ids))
        yield pa.nulls(len(row_ids)) if values.null_count == len(values) else values
