"""Labels of items, and their entries by distinct row, from which label quality is computed."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from framedex.errors import InvalidInput

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Labels:
    """Labels of N items, any number per item.

    Attributes:
        codes: int32, shape (L,), in [0, count): the labels of the first item, of the second item, …
        offsets: int64, shape (N + 1,): item i has ``codes[offsets[i]:offsets[i + 1]]``.
        count: the number of different labels.
    """

    codes: Codes
    offsets: Ints
    count: int


def check_labels(labels: Labels, items: int) -> None:
    """Check that labels are those of a number of items.

    Raises:
        InvalidInput: the offsets do not fit the items, or a code is outside of its range.
    """
    offsets, codes = labels.offsets, labels.codes
    if len(offsets) != items + 1 or offsets[0] != 0 or offsets[-1] != len(codes) or (np.diff(offsets) < 0).any():
        raise InvalidInput(f"offsets of {items} items must ascend from 0 to {len(codes)}, the number of codes")
    if len(codes) and not (codes.min() >= 0 and codes.max() < labels.count):
        raise InvalidInput(f"codes must be in [0, {labels.count}), not {codes.min()} to {codes.max()}")


@dataclass(frozen=True)
class LabelEntries:
    """Labels of rows: E entries (row, label), ascending; and P pairs (item, label), in order of rows.

    Attributes:
        count: the number of different labels.
        items: the number of items, N.
        starts: int64, shape (M + 1,): the first entry of each row.
        row, code: int64, shape (E,): the row and the label of each entry.
        item_counts: int64, shape (E,): the number of items of the row with the label.
        labelled: int64, shape (M,): the number of items of the row with any label.
        entry: int64, shape (P,): the entry of each pair.
        first: int64, shape (Q,): the first pair of each labelled item.
        item: int64, shape (Q,): the labelled items.
    """

    count: int
    items: int
    starts: Ints
    row: Ints
    code: Ints
    item_counts: Ints
    labelled: Ints
    entry: Ints
    first: Ints
    item: Ints

    @classmethod
    def of(cls, inverse: npt.NDArray[np.integer], labels: Labels, rows: int) -> "LabelEntries":
        """Return the label entries of rows from the labels of items; repeated labels of an item count once."""
        count = max(labels.count, 1)
        order = np.argsort(inverse, kind="stable")
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        pairs = np.unique(np.repeat(position, np.diff(labels.offsets)) * count + labels.codes)
        positions = pairs // count
        first = np.flatnonzero(np.diff(positions, prepend=-1))
        item = order[positions[first]]
        keys, entry, item_counts = np.unique(
            inverse[order[positions]].astype(np.int64) * count + pairs % count, return_inverse=True, return_counts=True
        )
        return cls(
            count=count,
            items=len(inverse),
            starts=np.searchsorted(keys, np.arange(rows + 1) * count),
            row=keys // count,
            code=keys % count,
            item_counts=item_counts,
            labelled=np.bincount(inverse[item], minlength=rows),
            entry=entry,
            first=first,
            item=item,
        )

    def part(self, start: int, stop: int) -> "LabelEntries":
        """Return the entries of a range of rows, renumbered from 0."""
        entries = slice(self.starts[start], self.starts[stop])
        pairs = slice(*np.searchsorted(self.entry, (entries.start, entries.stop)))
        items = slice(*np.searchsorted(self.first, (pairs.start, pairs.stop)))
        return replace(
            self,
            starts=self.starts[start : stop + 1] - entries.start,
            row=self.row[entries] - start,
            code=self.code[entries],
            item_counts=self.item_counts[entries],
            labelled=self.labelled[start:stop],
            entry=self.entry[pairs] - entries.start,
            first=self.first[items] - pairs.start,
            item=self.item[items],
        )

    def count_items(self, row: npt.NDArray[np.integer], code: Ints) -> Ints:
        """Return the number of items of each row with a label."""
        low, end = self.starts[row], self.starts[row + 1]
        high = end
        # Searching a row's few entries is several times faster than a search among all keys.
        for _ in range(int(np.diff(self.starts).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            less = (middle < high) & (self.code.take(middle, mode="clip") < code)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        exists = (low < end) & (self.code.take(low, mode="clip") == code)
        return np.where(exists, self.item_counts.take(low, mode="clip"), 0)

    def by_label(self, values: Floats) -> Floats:
        """Return the sum of the entries' values over the pairs of each label."""
        return np.bincount(self.code, values * self.item_counts, minlength=self.count).astype(np.float64)

    def by_item(self, values: Floats) -> Scores:
        """Return values of labelled items for all items, NaN for items without a label."""
        out = np.full(self.items, np.nan, dtype=np.float32)
        out[self.item] = values
        return out
