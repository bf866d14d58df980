"""Row numbers in index columns, which name rows by their places when the index was written.

A deletion of few rows does not write these columns again. It lists the numbers of the deleted rows in the overlay of
the table, so that all later places can be found.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.storage.overlay import REMOVED
from framedex.storage.tables import Table

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowNumbers:
    """The relation of row numbers in index columns to the present rows of a table.

    Attributes:
        removed: int64, shape (R,), ascending: the numbers of rows that were deleted since.
    """

    removed: Rows

    @classmethod
    def of(cls, table: Table) -> "RowNumbers":
        """Return the numbers of a table."""
        if REMOVED not in table.overlay.columns:
            return cls(np.empty(0, dtype=np.int64))
        return cls(table.overlay.values(REMOVED)[0].astype(np.int64))

    def rows(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of numbers, in their type; -1 for deleted rows, and for -1."""
        if not len(self.removed):
            return numbers
        places = np.searchsorted(self.removed, numbers)
        is_removed = self.removed[np.minimum(places, len(self.removed) - 1)] == numbers
        return np.where(is_removed | (numbers < 0), -1, numbers - places).astype(numbers.dtype)

    def numbers(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the numbers of rows, in their type; -1 for -1."""
        if not len(self.removed):
            return rows
        passed = np.searchsorted(self.removed - np.arange(len(self.removed)), rows, side="right")
        return np.where(rows < 0, -1, rows + passed).astype(rows.dtype)
