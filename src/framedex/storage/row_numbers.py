"""Row numbers in index columns, which name rows by their places when the index was written.

A deletion of few rows does not write these columns again. It lists the numbers of the deleted rows in the overlay of
the table, so that all later places can be found.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.forks import cached_property
from framedex.storage.overlay import REMOVED, Overlay

_MANY = 4096  # more numbers are looked up in a table
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowNumbers:
    """The relation of row numbers in index columns to the present rows of a table.

    Attributes:
        removed: int64, shape (R,), ascending: the numbers of rows that were deleted since.
    """

    removed: Rows

    @classmethod
    def of(cls, overlay: Overlay) -> "RowNumbers":
        """Return the numbers of a table with an overlay."""
        if REMOVED not in overlay.columns:
            return cls(np.empty(0, dtype=np.int64))
        return cls(overlay.values(REMOVED)[0].astype(np.int64))

    def rows(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of numbers, in their type; -1 for deleted rows, and for -1."""
        if not len(self.removed):
            return numbers
        if numbers.size > _MANY:
            last = self.removed[-1].astype(numbers.dtype)
            rows = self._rows_up_to_last[np.minimum(numbers, last)]
            return np.where(numbers > last, numbers - len(self.removed), rows).astype(numbers.dtype, copy=False)
        places = np.searchsorted(self.removed, numbers)
        is_removed = self.removed[np.minimum(places, len(self.removed) - 1)] == numbers
        return np.where(is_removed | (numbers < 0), -1, numbers - places).astype(numbers.dtype)

    @cached_property
    def _rows_up_to_last(self) -> npt.NDArray[np.int32]:
        """The rows of the numbers up to the last removed one, and -1 at the end, as the row of -1."""
        is_removed = np.zeros(int(self.removed[-1]) + 2, dtype=bool)
        is_removed[self.removed] = is_removed[-1] = True
        return np.where(is_removed, -1, np.cumsum(~is_removed) - 1).astype(np.int32)

    def numbers(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the numbers of rows, in their type; -1 for -1."""
        if not len(self.removed):
            return rows
        passed = np.searchsorted(self.removed - np.arange(len(self.removed)), rows, side="right")
        return np.where(rows < 0, -1, rows + passed).astype(rows.dtype)

    def renumbered(self, values: pa.Array) -> pa.Array:
        """Return a column of row numbers, or of lists of them, with the present rows in the place of the numbers.

        Args:
            values: int32, or fixed-size lists of int32; nulls stay.
        """
        missing = values.is_null()
        if pa.types.is_fixed_size_list(values.type):
            width = values.type.list_size
            numbers = values.values.slice(values.offset * width, len(values) * width).fill_null(-1).to_numpy()
            rows = pa.array(self.rows(numbers), values.type.value_type)
            return pa.FixedSizeListArray.from_arrays(rows, type=values.type, mask=missing)
        numbers = values.fill_null(-1).to_numpy()
        return pa.array(self.rows(numbers), values.type, mask=missing.to_numpy(zero_copy_only=False))
