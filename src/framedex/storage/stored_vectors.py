"""Vectors of a table that do not fit in memory: read in blocks, or by number."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from framedex.storage.table_versions import Table, flat

_BATCH_ROWS, _BLOCK_BYTES = 8192, 128 * 2**20


class StoredVectors:
    """Vectors that are read from a table on demand.

    Args:
        table: the table.
        places: int64, shape (M,), ascending: 0-based positions of rows with a vector, in row order.
        column: name of the column.
        block_bytes: size limit of a block.
    """

    def __init__(
        self,
        table: Table,
        positions: npt.NDArray[np.int64],
        *,
        column: str = "embedding",
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        self._table, self._positions, self._column = table, positions, column
        self.dimension = int(table.schema.field(column).type.list_size)
        self._block_rows = max(_BATCH_ROWS, block_bytes // (4 * self.dimension))

    def __len__(self) -> int:
        return len(self._positions)

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Yield (number of the first row, float32 of shape (≤ block, D)) for all rows in order.

        Only one block is in memory: the next block overwrites it.
        """
        if not len(self._positions):
            return
        out = np.empty((min(self._block_rows, len(self._positions)), self.dimension), dtype=np.float32)
        first, filled, start = 0, 0, int(self._positions[0])
        for batch in self._table.vector_batches(self._column, start):
            if first + filled == len(self._positions):  # the rest of the table is not read
                break
            end = start + batch.num_rows
            content, used = flat(batch.column(0), self.dimension), 0
            positions = self._positions[first + filled : np.searchsorted(self._positions, end)] - start
            while used < len(positions):
                selection = positions[used : used + len(out) - filled]
                np.take(content, selection, axis=0, out=out[filled : filled + len(selection)], mode="clip")
                used, filled = used + len(selection), filled + len(selection)
                if filled == len(out):
                    yield first, out
                    first, filled = first + filled, 0
            start = end
        if filled:
            yield first, out[:filled]

    def part(self, start: int, stop: int) -> "StoredVectors":
        """Return the source of some consecutive vectors."""
        return StoredVectors(self._table, self._positions[start:stop], column=self._column)

    def take(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Return some vectors by number, in any order: float32, shape (len(rows), D)."""
        if not len(rows):
            return np.empty((0, self.dimension), dtype=np.float32)
        numbers, order = np.unique(rows, return_inverse=True)
        column = self._table.take_positions(self._positions[numbers], self._column)
        return np.ascontiguousarray(flat(column, self.dimension)[order])
