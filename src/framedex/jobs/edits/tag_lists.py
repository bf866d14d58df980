"""Which rows of the media table have which tags."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.arrays import Mask
from framedex.jobs.edits.rows import read_batches
from framedex.storage import tables
from framedex.storage.definitions import TAGGED_SCHEMA, TAGS
from framedex.storage.tables import Table


def with_tag(media: Table, rows: Mask, number: int, at: datetime) -> int:
    """Write that some rows have a tag; return the new version. Those that have it already keep its date.

    Args:
        media: the media table, at its newest version.
        rows: bool, shape (N,): which.
        number: of the tag.
        at: the date of those that have it from now on.
    """
    at_us = round(at.timestamp() * 1e6)
    return _rewrite(media, rows, lambda tagged, some: tagged.put_on(some, number, at_us))


def without_tag(media: Table, rows: Mask, number: int) -> int | None:
    """Write that some rows do not have a tag; return the new version, or None where nothing was to be written."""
    if TAGS not in media.schema.names or not rows.any():
        return None
    return _rewrite(media, rows, lambda tagged, some: tagged.take_off(some, number))


def count_tags(media: Table) -> Mapping[int, int]:
    """Return how many media have each tag, by number; what is not in it has none."""
    if TAGS not in media.schema.names:
        return {}
    counts = np.zeros(0, dtype=np.int64)
    for batch in media.scan([TAGS]):
        found = np.bincount(batch.column(0).flatten().to_numpy(), minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    return dict(enumerate(counts.tolist()))


@dataclass(frozen=True)
class _Tagged:
    """The tags of some rows.

    Attributes:
        lengths: int64, shape (rows,): how many each has.
        numbers: int32, shape (L,): of the first row, of the second, ...
        dates: int64, shape (L,): when each was put on, in microseconds since 1970.
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
        """Which row each of the numbers belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def put_on(self, rows: Mask, number: int, at_us: int) -> "_Tagged":
        has = np.zeros(len(rows), dtype=bool)
        has[self.row[self.numbers == number]] = True
        new = rows & ~has
        ends = np.cumsum(self.lengths)[new]
        return _Tagged(self.lengths + new, np.insert(self.numbers, ends, number), np.insert(self.dates, ends, at_us))

    def take_off(self, rows: Mask, number: int) -> "_Tagged":
        row = self.row
        kept = ~(rows[row] & (self.numbers == number))
        return _Tagged(np.bincount(row[kept], minlength=len(rows)), self.numbers[kept], self.dates[kept])

    def batch(self) -> pa.RecordBatch:
        offsets = pa.array(np.concatenate([[0], np.cumsum(self.lengths)]), pa.int32())
        none = pa.array(self.lengths == 0)
        dates = pa.array(self.dates).cast(TAGGED_SCHEMA.field(1).type.value_type)
        arrays = [pa.ListArray.from_arrays(offsets, each, mask=none) for each in (pa.array(self.numbers), dates)]
        return pa.RecordBatch.from_arrays(arrays, schema=TAGGED_SCHEMA)


def _rewrite(media: Table, rows: Mask, change: Callable[[_Tagged, Mask], _Tagged]) -> int:
    def batches() -> Iterator[pa.RecordBatch]:
        for start, held in read_batches(media, TAGGED_SCHEMA):
            yield change(_Tagged.of(held), rows[start : start + held.num_rows]).batch()

    return tables.put_columns(media, batches(), TAGGED_SCHEMA)
