"""Scalar-quantised vectors with 8 and 16 bits per component, and their similarities to a query.

A vector is stored as a scale and two bytes per component. The first byte gives an approximate similarity (scalar
quantisation: H. Jégou et al., 2011, section II). Both bytes together give the similarity to about 1e-6.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors
from framedex.core.mapped_arrays import announce

Rows = npt.NDArray[np.int64]

_LARGEST = 127
_PARTS = 254  # steps of the second byte in a step of the first, from -127 to 127
_BLOCK = 512  # rows that are converted to floats at a time, which fit into the processor's cache
_SHARE = 65_536  # rows that one thread takes at a time


@dataclass(frozen=True)
class Codes:
    """Quantised vectors: ``scale * (int8 + residual / 254)``.

    Attributes:
        int8: int8, shape (M, D): the first byte of each component.
        residual: int8, shape (M, D): the second byte.
        scale: float32, shape (M,).
    """

    int8: npt.NDArray[np.int8]
    residual: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scale)

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Store vectors in rows."""
        largest = np.abs(vectors).max(axis=1, initial=0)
        scale = np.where(largest > 0, largest / _LARGEST, 1).astype(np.float32)
        steps = vectors / scale[:, None]
        int8 = np.rint(steps)
        self.int8[rows] = int8
        self.residual[rows] = np.rint((steps - int8) * _PARTS)
        self.scale[rows] = scale

    def vector(self, row: int) -> Vectors:
        """Return the vector of a row, of unit length: float32, shape (D,)."""
        vector: Vectors = self.vectors(np.array([row]))[0]
        return vector

    def vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of rows, of unit length: float32, shape (rows, D)."""
        _announce_rows(self.int8, rows)
        _announce_rows(self.residual, rows)
        vectors = self.int8[rows] + self.residual[rows] / np.float32(_PARTS)
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)

    def announce(self, starts: Rows, stops: Rows) -> None:
        """Let the system begin to read the first bytes of ascending runs of rows, for approximate scores."""
        announce(self.int8, starts, stops)

    def approximate_scores(self, query: Vectors, rows: Rows | slice) -> Vectors:
        """Return similarities from the first bytes: float32, shape (rows,), with an error of about 3e-4 at D = 512."""
        return _products(self.int8, query, rows) * self.scale[rows]

    def deviations(self, rows: Rows) -> Vectors:
        """Return the standard deviations of approximate scores of rows: float32, shape (rows,).

        They are those of rounding errors that are independent of each other and of a query of unit length.
        """
        return np.asarray(self.scale[rows] / np.sqrt(np.float32(12)))

    def exact_scores(self, query: Vectors, rows: Rows | slice) -> Vectors:
        """Return similarities from both bytes: float32, shape (rows,)."""
        if isinstance(rows, slice):  # of single rows approximate scores were computed before
            _announce_rows(self.int8, rows)
        _announce_rows(self.residual, rows)
        products = _products(self.int8, query, rows) + _products(self.residual, query, rows) / np.float32(_PARTS)
        return np.asarray(products * self.scale[rows], dtype=np.float32)

    def all(self, query: Vectors, threads: Executor) -> Vectors:
        """Return the similarities of all rows from both bytes: float32, shape (M,)."""
        starts = range(0, len(self), _SHARE)
        parts = threads.map(
            lambda start: self.exact_scores(query, slice(start, min(start + _SHARE, len(self)))), starts
        )
        return np.concatenate([np.empty(0, np.float32), *parts])

    def largest(self, queries: Vectors, k: int, threads: Executor) -> Iterator[tuple[int, Vectors]]:
        """Yield (rows, float32 of shape (Q, ≤ k)) for parts of the rows: their largest similarities to each query.

        All rows are read once, and may be much larger than memory. Similarities are those of :meth:`all`, but for
        rounding errors of floats.

        Args:
            queries: float32, shape (Q, D), unit length.
            k: the number of similarities for each query and part.
            threads: threads with a BLAS of one thread each.
        """
        starts = range(0, len(self), _SHARE)
        for start, found in zip(starts, threads.map(lambda at: self._largest(queries, k, at), starts), strict=True):
            yield min(_SHARE, len(self) - start), found

    def _largest(self, queries: Vectors, k: int, start: int) -> Vectors:
        stop = min(start + _SHARE, len(self))
        _announce_rows(self.int8, slice(start, stop))
        _announce_rows(self.residual, slice(start, stop))
        scores = np.empty((len(queries), stop - start), np.float32)
        for first in range(start, stop, _BLOCK):
            rows = slice(first, min(first + _BLOCK, stop))
            vectors = (self.int8[rows] + self.residual[rows] / np.float32(_PARTS)) * self.scale[rows, None]
            np.matmul(queries, vectors.T, out=scores[:, first - start : rows.stop - start])
        few = scores.shape[1] <= k
        return scores if few else np.partition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :].copy()


def empty_codes(rows: int, dimension: int) -> Codes:
    """Return codes of zeros in memory, to be filled by :meth:`Codes.put`."""
    return Codes(np.zeros((rows, dimension), np.int8), np.zeros((rows, dimension), np.int8), np.zeros(rows, np.float32))


def _announce_rows(codes: npt.NDArray[np.int8], rows: Rows | slice) -> None:
    """Let the system begin to read rows, which may be in any order."""
    starts = np.array([rows.start]) if isinstance(rows, slice) else np.sort(rows)
    announce(codes, starts, np.array([rows.stop]) if isinstance(rows, slice) else starts + 1)


def _products(codes: npt.NDArray[np.int8], query: Vectors, rows: Rows | slice) -> Vectors:
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    out = np.empty(len(numbers), np.float32)
    block = np.empty((min(_BLOCK, len(numbers)), codes.shape[1]), np.float32)
    codes = np.asarray(codes)  # each slice of a memmap takes microseconds
    for start in range(0, len(numbers), _BLOCK):
        stop = min(start + _BLOCK, len(numbers))
        at = slice(rows.start + start, rows.start + stop) if isinstance(rows, slice) else rows[start:stop]
        floats = block[: stop - start]
        np.copyto(floats, codes[at])
        np.vecdot(floats, query, out=out[start:stop])  # unlike np.dot: a row's score depends on no other row
    return out
