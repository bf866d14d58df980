"""Sources of vectors: matrices in memory, or tables that are read in parts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import take_rows
from framedex.core.arrays import Vectors
from framedex.core.mapped_files import mapped_at_random, read_matrix

Rows = npt.NDArray[np.integer]
_BLOCK_ROWS = 16384


class VectorSource(Protocol):
    """Source of float32 vectors of unit length, read block by block or by row numbers."""

    @property
    def dimension(self) -> int:
        """The number of values per row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield (first row number, vectors) of consecutive blocks; a block may overwrite the previous one."""

    def take(self, rows: Rows) -> Vectors:
        """Return the vectors of rows, in any order: float32, shape (len(rows), D), in memory."""


class VectorsInMemory:
    """Source of vectors from a matrix.

    Args:
        vectors: float32 or float16, shape (N, D); may be memory-mapped.
    """

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    @property
    def dimension(self) -> int:
        """The number of values per row."""
        return int(self._vectors.shape[1])

    def __len__(self) -> int:
        return len(self._vectors)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield all rows as one block, without a copy."""
        yield 0, self._vectors

    def take(self, rows: Rows) -> Vectors:
        """Return rows as float32."""
        return take_rows(self._vectors, rows)

    def part(self, start: int, stop: int) -> "VectorsInMemory":
        """Return the source of some consecutive rows, without a copy."""
        return VectorsInMemory(self._vectors[start:stop])


class ConcatenatedVectors:
    """Concatenation of a source and added rows.

    Args:
        first: the source of the first rows.
        added: float32, shape (A, D): the rows that follow.
    """

    def __init__(self, first: VectorSource, added: Vectors) -> None:
        self._first, self._added = first, added

    @property
    def dimension(self) -> int:
        """The number of values per row."""
        return int(self._added.shape[1])

    def __len__(self) -> int:
        return len(self._first) + len(self._added)

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield the blocks of the first rows, then the added rows as one block."""
        yield from self._first.blocks()
        yield len(self._first), self._added

    def take(self, rows: Rows) -> Vectors:
        """Return rows of both parts as float32."""
        is_added = rows >= len(self._first)
        if is_added.all():
            return take_rows(self._added, rows - len(self._first))
        out = np.empty((len(rows), self._added.shape[1]), dtype=np.float32)
        out[~is_added] = self._first.take(rows[~is_added])
        out[is_added] = self._added[rows[is_added] - len(self._first)]
        return out


class SelectedVectors:
    """Selected rows of a source, renumbered from 0.

    Args:
        stored: the source.
        rows: int64, shape (M,), ascending: the selected rows.
    """

    def __init__(self, stored: VectorSource, rows: Rows) -> None:
        self._stored, self._rows = stored, rows

    @property
    def dimension(self) -> int:
        """The number of values per row."""
        return self._stored.dimension

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, part: slice) -> Vectors:
        """Return a slice of the rows as float32."""
        return self._stored.take(self._rows[part])

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield blocks of some thousand rows."""
        for start in range(0, len(self._rows), _BLOCK_ROWS):
            yield start, self._stored.take(self._rows[start : start + _BLOCK_ROWS])

    def take(self, rows: Rows) -> Vectors:
        """Return rows as float32."""
        return self._stored.take(self._rows[rows])


@dataclass(frozen=True)
class VectorsInFile:
    """Source of vectors from a file of nothing but their values, which other processes open by its path.

    Attributes:
        path: float32 values, row by row.
        dimension: the number of values per row, D.
        start, stop: the rows of the file that are the source's.
    """

    path: Path
    dimension: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __reduce__(self) -> Any:
        """Return the parts without the opened file."""
        return VectorsInFile, (self.path, self.dimension, self.start, self.stop)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, D)."""
        return len(self), self.dimension

    def __getitem__(self, rows: slice | Rows) -> Vectors:
        """Return rows as of a matrix, in memory: consecutive ones, or some by number."""
        if not isinstance(rows, slice):
            return self.take(rows)
        first, last, _ = rows.indices(len(self))
        return read_matrix(self.path, np.float32, self.dimension, self.start + first, self.start + max(first, last))

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield blocks of some thousand rows."""
        for first in range(0, len(self), _BLOCK_ROWS):
            yield first, self[first : first + _BLOCK_ROWS]

    def take(self, rows: Rows) -> Vectors:
        """Return rows as float32."""
        if not len(rows):
            return np.empty((0, self.dimension), np.float32)
        return take_rows(self._mapped, np.asarray(rows, np.int64) + self.start)

    def part(self, start: int, stop: int) -> "VectorsInFile":
        """Return the source of some consecutive rows."""
        return replace(self, start=self.start + start, stop=self.start + stop)

    @cached_property
    def _mapped(self) -> Vectors:
        return mapped_at_random(self.path, np.float32, self.dimension)
