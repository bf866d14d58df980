"""Vectors that may lie anywhere: in memory, or in a table from which some are read at a time."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import take_rows
from framedex.arrays import Vectors

Rows = npt.NDArray[np.integer]
_BLOCK_ROWS = 16384


class VectorSource(Protocol):
    """Vectors, float32 of unit length, that are read block by block or a few at a time."""

    @property
    def dimension(self) -> int:
        """Values in each row."""

    def __len__(self) -> int:
        """Return how many there are."""

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield (number of the first row, vectors) of all rows in order; the next block may overwrite the last one."""

    def take(self, rows: Rows) -> Vectors:
        """Return the vectors of some rows, in any order: float32, shape (len(rows), D), in memory."""


class VectorsInMemory:
    """The rows of a matrix.

    Args:
        vectors: float32 or float16, shape (N, D); may be memory-mapped.
    """

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    @property
    def dimension(self) -> int:
        """Values in each row."""
        return int(self._vectors.shape[1])

    def __len__(self) -> int:
        return len(self._vectors)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield all rows at once, as they lie."""
        yield 0, self._vectors

    def take(self, rows: Rows) -> Vectors:
        """Return some rows."""
        return take_rows(self._vectors, rows)


class ConcatenatedVectors:
    """Rows, and further ones behind them.

    Args:
        first: wherever they are.
        more: float32, shape (A, D).
    """

    def __init__(self, first: VectorSource, more: Vectors) -> None:
        self._first, self._more = first, more

    @property
    def dimension(self) -> int:
        """Values in each row."""
        return int(self._more.shape[1])

    def __len__(self) -> int:
        return len(self._first) + len(self._more)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield the blocks of the first rows, and the further ones at once."""
        yield from self._first.blocks()
        yield len(self._first), self._more

    def take(self, rows: Rows) -> Vectors:
        """Return some rows of either kind."""
        behind = rows >= len(self._first)
        if behind.all():
            return take_rows(self._more, rows - len(self._first))
        out = np.empty((len(rows), self._more.shape[1]), dtype=np.float32)
        out[~behind] = self._first.take(rows[~behind])
        out[behind] = self._more[rows[behind] - len(self._first)]
        return out


class SelectedVectors:
    """Some rows of others, numbered anew.

    Args:
        stored: the others.
        rows: int64, shape (M,), ascending: which.
    """

    def __init__(self, stored: VectorSource, rows: Rows) -> None:
        self._stored, self._rows = stored, rows

    @property
    def dimension(self) -> int:
        """Values in each row."""
        return self._stored.dimension

    def __len__(self) -> int:
        return len(self._rows)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield the rows, some thousand at a time."""
        for start in range(0, len(self._rows), _BLOCK_ROWS):
            yield start, self._stored.take(self._rows[start : start + _BLOCK_ROWS])

    def take(self, rows: Rows) -> Vectors:
        """Return some rows."""
        return self._stored.take(self._rows[rows])
