"""The basket: the media that a user has put aside, as a column of the media table."""

import numpy as np
import pyarrow as pa

from framedex.core.arrays import Mask
from framedex.jobs.edits.rows import read_row_ids, write_rows
from framedex.storage import tables
from framedex.storage.generation import Generation, Summary
from framedex.storage.media import Media
from framedex.storage.table_names import IN_BASKET, MEDIA

_SCHEMA = pa.schema([pa.field(IN_BASKET, pa.bool_())])


def put_into_basket(media: Media, head: Generation, rows: Mask, *, inside: bool) -> tuple[dict[str, int], Summary]:
    """Put some media into the basket, or take them out; return the table versions and the summary of the generation.

    Only media for which this changes something are written.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        rows: bool, shape (N,): the media.
        inside: whether they are in the basket afterwards.
    """
    row_ids, table = read_row_ids(media)[rows], media.table
    if IN_BASKET in table.schema.names:
        before = media.values_at(row_ids, IN_BASKET).fill_null(False).to_numpy(zero_copy_only=False)
    else:
        before = np.zeros(len(row_ids), dtype=bool)
    changed = row_ids[before != inside]
    if not len(changed):
        return {**head.tables, MEDIA: table.version}, head.summary
    values = pa.array([True if inside else None] * len(changed), pa.bool_())
    version = write_rows(media, changed, pa.record_batch([values], schema=_SCHEMA))
    tables.sync(table.path)
    return {**head.tables, MEDIA: version}, head.summary
