"""Tag columns of the media table: for each row, the numbers and dates of its tags."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import Mask, RowIds
from framedex.jobs.edits.rows import are_few, read_batches, read_row_ids, write_few
from framedex.storage import tables
from framedex.storage.definitions import TAGGED_SCHEMA, TAGS
from framedex.storage.media import Media


def with_tag(media: Media, rows: Mask, number: int, at: datetime) -> int:
    """Add a tag to some rows; return the table's new version. Rows that have the tag keep its date.

    Args:
        media: the media, whose table is at its newest version.
        rows: bool, shape (N,): the rows.
        number: of the tag.
        at: date for rows that get the tag.
    """
    at_us = round(at.timestamp() * 1e6)
    return _rewrite_tags(media, rows, lambda tagged, selected: tagged.put_on(selected, number, at_us))


def without_tag(media: Media, rows: Mask, number: int) -> int | None:
    """Remove a tag from some rows; return the table's new version, or None if nothing was written."""
    if TAGS not in media.table.schema.names or not rows.any():
        return None
    return _rewrite_tags(media, rows, lambda tagged, selected: tagged.take_off(selected, number))


def count_tags(media: Media) -> Mapping[int, int]:
    """Return the number of media per tag, by the tag's number; tags without media may be missing."""
    table = media.table
    if TAGS not in table.schema.names:
        return {}
    # The counts of the files, and what the edits beside them change: edits follow one another, files stay.
    stored = replace(media, table=table.unedited)
    counts = sum((_counts(batch.column(0)) for batch in stored.scan([TAGS])), Counter[int]())
    if TAGS in table.overlay.columns:
        row_ids, values = table.overlay.values(TAGS)
        places = np.flatnonzero(np.isin(row_ids, read_row_ids(media), assume_unique=True))  # others were deleted
        before = stored.take(row_ids[places].tolist(), [TAGS], keep=True).column(0).combine_chunks()
        counts.subtract(_counts(before))
        counts.update(_counts(values.take(pa.array(places))))
    return counts


def rows_with_tag(media: Media, number: int) -> Mask:
    """Return the mask of rows that have a tag: bool, shape (rows,)."""
    mask = np.zeros(media.table.count(), dtype=bool)
    start = 0
    for batch in media.scan([TAGS]) if TAGS in media.table.schema.names else ():
        lists = batch.column(0)
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        rows = np.repeat(np.arange(len(lists)), lengths)
        mask[start + rows[lists.flatten().to_numpy(zero_copy_only=False) == number]] = True
        start += len(lists)
    return mask


def _counts(numbers: pa.ListArray) -> "Counter[int]":
    counts = np.bincount(numbers.flatten().to_numpy())
    return Counter(dict(enumerate(counts.tolist())))


@dataclass(frozen=True)
class _Tagged:
    """Tags of some rows.

    Attributes:
        lengths: int64, shape (rows,): number of tags of each row.
        numbers: int32, shape (L,): tag numbers of the first row, of the second, ...
        dates: int64, shape (L,): date of each tag, in microseconds since 1970.
    """

    lengths: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    dates: npt.NDArray[np.int64]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "_Tagged":
        numbers, dates = batch.columns
        lengths = np.asarray(numbers.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        return cls(lengths, numbers.flatten().to_numpy(), dates.flatten().cast(pa.int64()).to_numpy())

    @property
    def row(self) -> npt.NDArray[np.int64]:
        """The row of each tag number: int64, shape (L,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def put_on(self, rows: Mask, number: int, at_us: int) -> "_Tagged":
        has = np.zeros(len(rows), dtype=bool)
        has[self.row[self.numbers == number]] = True
        new = rows & ~has
        ends = np.cumsum(self.lengths)[new]
        return _Tagged(self.lengths + new, np.insert(self.numbers, ends, number), np.insert(self.dates, ends, at_us))

    def take_off(self, rows: Mask, number: int) -> "_Tagged":
        row = self.row
        keep = ~(rows[row] & (self.numbers == number))
        return _Tagged(np.bincount(row[keep], minlength=len(rows)), self.numbers[keep], self.dates[keep])

    def batch(self) -> pa.RecordBatch:
        offsets = pa.array(np.concatenate([[0], np.cumsum(self.lengths)]), pa.int32())
        is_empty = pa.array(self.lengths == 0)
        dates = pa.array(self.dates).cast(TAGGED_SCHEMA.field(1).type.value_type)
        arrays = [pa.ListArray.from_arrays(offsets, each, mask=is_empty) for each in (pa.array(self.numbers), dates)]
        return pa.RecordBatch.from_arrays(arrays, schema=TAGGED_SCHEMA)


def _rewrite_tags(media: Media, rows: Mask, change: Callable[[_Tagged, Mask], _Tagged]) -> int:
    table, selected = media.table, np.flatnonzero(rows)
    if are_few(table, len(selected)):
        row_ids = read_row_ids(media)[selected]
        before = _Tagged.of(_tags_at(media, row_ids))
        after = change(before, np.ones(len(selected), dtype=bool))
        changed = np.flatnonzero(after.lengths != before.lengths)
        return write_few(table, row_ids[changed], after.batch().take(pa.array(changed)))

    def batches() -> Iterator[pa.RecordBatch]:
        for start, batch_rows in read_batches(table, TAGGED_SCHEMA):
            yield change(_Tagged.of(batch_rows), rows[start : start + batch_rows.num_rows]).batch()

    return tables.put_columns(table, batches(), TAGGED_SCHEMA)


def _tags_at(media: Media, row_ids: RowIds) -> pa.RecordBatch:
    if TAGS not in media.table.schema.names:
        nulls = [pa.nulls(len(row_ids), field.type) for field in TAGGED_SCHEMA]
        return pa.RecordBatch.from_arrays(nulls, schema=TAGGED_SCHEMA)
    taken = media.take(row_ids.tolist(), TAGGED_SCHEMA.names, keep=True).combine_chunks()
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in taken.columns], schema=TAGGED_SCHEMA)
