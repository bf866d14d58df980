"""Vectors as whole numbers of 8 and 16 bits, and their similarities to a query.

A vector is stored as a scale and two bytes a component: the first alone tells near from far (as a scalar quantiser
does, H. Jégou et al., 2011, section II), both together give the similarity to about 1e-6.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.arrays import Vectors

Rows = npt.NDArray[np.int64]

_LARGEST = 127
_PARTS = 254  # in which the second byte divides a step of the first, both ways
_BLOCK = 512  # rows that are turned into floats at a time: they stay in the processor's cache
_SHARE = 65_536  # rows that one thread takes at a time


@dataclass(frozen=True)
class Codes:
    """Vectors: ``scale * (int8 + residual / 254)``.

    Attributes:
        int8: int8, shape (M, D).
        residual: int8, shape (M, D).
        scale: float32, shape (M,).
    """

    int8: npt.NDArray[np.int8]
    residual: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scale)

    def put(self, rows: Rows, vectors: Vectors) -> None:
        """Store vectors as some rows."""
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
        """Return the vectors of some rows, of unit length: float32, shape (rows, D)."""
        found = self.int8[rows] + self.residual[rows] / np.float32(_PARTS)
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12), np.float32)

    def approximate_scores(self, query: Vectors, rows: Rows | slice) -> Vectors:
        """Return similarities by the first bytes only: float32, shape (rows,), off by about 3e-4 at 512 components."""
        return _products(self.int8, query, rows) * self.scale[rows]

    def exact_scores(self, query: Vectors, rows: Rows | slice) -> Vectors:
        """Return similarities by both bytes: float32, shape (rows,)."""
        found = _products(self.int8, query, rows) + _products(self.residual, query, rows) / np.float32(_PARTS)
        return np.asarray(found * self.scale[rows], dtype=np.float32)

    def all(self, query: Vectors, threads: Executor) -> Vectors:
        """Return the similarities of all rows by both bytes: float32, shape (M,)."""
        starts = range(0, len(self), _SHARE)
        parts = threads.map(
            lambda start: self.exact_scores(query, slice(start, min(start + _SHARE, len(self)))), starts
        )
        return np.concatenate([np.empty(0, np.float32), *parts])


def empty_codes(rows: int, dimension: int) -> Codes:
    """Return codes in memory, for :meth:`Codes.put`."""
    return Codes(np.zeros((rows, dimension), np.int8), np.zeros((rows, dimension), np.int8), np.zeros(rows, np.float32))


def _products(codes: npt.NDArray[np.int8], query: Vectors, rows: Rows | slice) -> Vectors:
    chosen = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    out = np.empty(len(chosen), np.float32)
    block = np.empty((min(_BLOCK, len(chosen)), codes.shape[1]), np.float32)
    for start in range(0, len(chosen), _BLOCK):
        stop = min(start + _BLOCK, len(chosen))
        at = slice(rows.start + start, rows.start + stop) if isinstance(rows, slice) else rows[start:stop]
        floats = block[: stop - start]
        np.copyto(floats, codes[at])
        np.dot(floats, query, out=out[start:stop])
    return out
