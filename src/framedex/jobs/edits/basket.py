"""The basket and the keepers: columns of the media table that say what a clean-up removes, and what it leaves."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask, RowIds
from framedex.jobs.edits.rows import read_row_ids, write_rows
from framedex.storage import tables
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.table_names import IN_BASKET, KEEPER, MEDIA, KeeperMark

_TYPES = {IN_BASKET: pa.bool_(), KEEPER: pa.int8()}


def put_into_basket(
    media: Media, head: Generation, rows: Mask, *, inside: bool, keep: Mask | None = None
) -> tuple[dict[str, int], Summary]:
    """Put some media into the basket, or take them out; return the table versions and the summary of the generation.

    Only media for which this changes something are written.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        rows: bool, shape (N,): the media.
        inside: whether they are in the basket afterwards.
        keep: bool, shape (N,): media that a person chose to keep in their place; they leave the basket, and the others
            are keepers no longer. None for none.
    """
    if keep is None:
        row_ids = read_row_ids(media)[rows]
        return _edited(media, head, row_ids, {IN_BASKET: np.full(len(row_ids), inside)})
    touched = rows | keep
    marks = np.where(keep[touched], KeeperMark.CHOSEN, 0)
    values = {IN_BASKET: (rows & ~keep)[touched], KEEPER: marks}
    return _edited(media, head, read_row_ids(media)[touched], values)


def choose_keepers(media: Media, head: Generation, rows: Mask, *, keep: bool) -> tuple[dict[str, int], Summary]:
    """Make some media keepers by the choice of a person, or no keepers; the arguments are as those of a basket.

    Keepers leave the basket.
    """
    row_ids = read_row_ids(media)[rows]
    values = {KEEPER: np.full(len(row_ids), KeeperMark.CHOSEN if keep else 0)}
    if keep:
        values[IN_BASKET] = np.zeros(len(row_ids), dtype=bool)
    return _edited(media, head, row_ids, values)


def _edited(
    media: Media, head: Generation, row_ids: RowIds, values: Mapping[str, np.ndarray]
) -> tuple[dict[str, int], Summary]:
    version = write_marks(media, row_ids, values)
    if version != media.table.version:
        tables.sync(media.table.path)
    return {**head.tables, MEDIA: version}, head.summary


def marks_of(media: Media, row_ids: RowIds, column: str) -> np.ndarray:
    """Return the values of :data:`IN_BASKET` or :data:`KEEPER` of rows, shape (N,); false or 0 for null."""
    if column not in media.table.schema.names:
        return np.zeros(len(row_ids), dtype=_TYPES[column].to_pandas_dtype())
    missing = pa.scalar(0).cast(_TYPES[column])
    return np.asarray(media.values_at(row_ids, column).fill_null(missing).to_numpy(zero_copy_only=False))


def write_marks(media: Media, row_ids: RowIds, values: Mapping[str, np.ndarray]) -> int:
    """Write who is in the basket, and who is a keeper; return the table's version, the same if nothing changed.

    Args:
        media: the media, whose table is at its newest version.
        row_ids: uint64, shape (N,), unique: the rows.
        values: shape (N,), by column: the basket and the :class:`KeeperMark`; false and 0 for none.
    """
    differ = np.zeros(len(row_ids), dtype=bool)
    for name, new in values.items():
        differ |= marks_of(media, row_ids, name) != new
    if not differ.any():
        return media.table.version
    arrays = {name: pa.array(new[differ], _TYPES[name], mask=new[differ] == 0) for name, new in values.items()}
    return write_rows(media, row_ids[differ], pa.RecordBatch.from_pydict(arrays))
