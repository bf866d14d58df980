"""Mean vectors of clusters, which are merged pair by pair."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import RowCells
from framedex.core.arrays import Floats, Vectors

_BYTES = 1 << 19  # of vectors multiplied at a time; they stay in the processor's cache
_AHEAD = 32  # times as many vectors are expected to be read next

Rows = npt.NDArray[np.integer]
Weights = npt.NDArray[np.float64]


def slices(count: int, size: int) -> Iterator[slice]:
    """Yield slices of at most *size* of *count* items."""
    size = max(1, size)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class Means(ABC):
    """Mean vectors of clusters, which are numbered from 0.

    Args:
        weights: float64, shape (A,): the number of items of each cluster.
        dimension: the number of values of a vector.

    Attributes:
        cells: the cells of the means, which the searches among them find.
    """

    def __init__(self, weights: Weights, dimension: int) -> None:
        self.weights, self.dimension = weights.copy(), dimension
        self.cells = RowCells.unknown(len(weights))
        self._size = max(1, _BYTES // (4 * max(1, dimension)))
        self._of_thread = threading.local()

    def __len__(self) -> int:
        return len(self.weights)

    @abstractmethod
    def of(self, rows: Rows, out: Vectors | None = None) -> Vectors:
        """Return the means of clusters: float32, shape (len(rows), D), in *out* if it is given."""

    def kept(self, rows: Rows) -> Self:
        """Return the means of some clusters, renumbered from 0; these means are not used any more.

        Args:
            rows: the clusters, ascending.
        """
        kept = self._kept(rows)
        kept.cells = self.cells.taken(rows)
        return kept

    @abstractmethod
    def _kept(self, rows: Rows) -> Self:
        """Return the means of some clusters, whose cells are not known."""

    @abstractmethod
    def _put(self, keep: Rows, gone: Rows) -> Callable[[slice, Vectors], None]:
        """Return what stores the means of a slice of merged pairs as those of the first cluster of each pair."""

    @abstractmethod
    def expect(self, rows: Rows) -> None:
        """Prepare to return the means of clusters, some ten thousand at most, which are read next."""

    def _parts(self, rows: Rows, others: Rows) -> Iterator[slice]:
        """Yield slices of pairs of clusters that fit into the buffers."""
        for part in slices(len(rows), self._size):
            if part.start % (_AHEAD * self._size) == 0:
                for each in (rows, others):
                    self.expect(each[part.start : part.start + _AHEAD * self._size])
            yield part

    def _buffers(self) -> tuple[Vectors, Vectors]:
        """Return buffers of this thread: float32, shape (size of a part, D)."""
        found: tuple[Vectors, Vectors] | None = getattr(self._of_thread, "buffers", None)
        if found is None:
            shape = self._size, self.dimension
            found = self._of_thread.buffers = np.empty(shape, np.float32), np.empty(shape, np.float32)
        return found

    def products(self, rows: Rows, others: Rows) -> Floats:
        """Return the similarities of pairs of clusters; pairs with the same first cluster should be consecutive.

        Several threads may call it.
        """
        out = np.empty(len(rows), dtype=np.float32)
        for part in self._parts(rows, others):
            row = rows[part]
            first = np.diff(row, prepend=-1) != 0
            one, other = (each[: len(row)] for each in self._buffers())
            np.take(self.of(row[first]), np.cumsum(first) - 1, axis=0, out=one, mode="clip")
            np.einsum("ij,ij->i", one, self.of(others[part], other), out=out[part])
        return out

    def merge(self, keep: Rows, gone: Rows) -> None:
        """Merge pairs of clusters; the first of each pair gets the mean and weight of both."""
        total = self.weights[keep] + self.weights[gone]
        share = (self.weights[gone] / total).astype(np.float32)[:, None]
        put = self._put(keep, gone)
        for part in self._parts(keep, gone):
            one, other = (
                self.of(each[part], buffer[: len(each[part])])
                for each, buffer in zip((keep, gone), self._buffers(), strict=True)
            )
            one *= 1 - share[part]
            other *= share[part]
            put(part, one + other)
        self.weights[keep] = total
        self.cells.is_known[keep] = False


class MeanVectors(Means):
    """Means in memory; those of merged clusters are kept beside the given ones, which do not change.

    Args:
        vectors: float32 or float16, shape (A, D): the mean vectors; may be memory-mapped.
        weights: float64, shape (A,): the number of items of each cluster.
    """

    def __init__(self, vectors: Vectors, weights: Weights) -> None:
        super().__init__(weights, vectors.shape[1])
        self.vectors = vectors
        # At most half of the clusters are merged ones at a time. Memory that is not written is not used.
        self._merged = np.empty((len(vectors) // 2 + 1, vectors.shape[1]), dtype=np.float32)
        self._place = np.full(len(vectors), -1, dtype=np.int32)
        self._used = 0
        self._unused = np.empty(0, dtype=np.int32)

    def of(self, rows: Rows, out: Vectors | None = None) -> Vectors:
        """See :meth:`Means.of`."""
        if out is None:
            out = np.empty((len(rows), self.dimension), dtype=np.float32)
        place = self._place[rows]
        merged = np.flatnonzero(place >= 0)
        given = rows.copy()
        given[merged] = 0  # any row: those of merged clusters are replaced
        if self.vectors.dtype == out.dtype:
            np.take(self.vectors, given, axis=0, out=out, mode="clip")
        else:
            out[:] = self.vectors[given]
        out[merged] = self._merged[place[merged]]
        return out

    def expect(self, rows: Rows) -> None:
        """See :meth:`Means.expect`: they are in memory."""

    def _kept(self, rows: Rows) -> Self:
        """See :meth:`Means.kept`."""
        return type(self)(self.of(rows), self.weights[rows])

    def _put(self, keep: Rows, gone: Rows) -> Callable[[slice, Vectors], None]:
        """Return what stores means where they are kept, and note the places that become unused."""
        own, other = self._place[keep], self._place[gone]
        places = np.where(own >= 0, own, other)
        new = np.flatnonzero(places < 0)
        again, self._unused = np.split(self._unused, [len(new)])
        fresh = np.arange(self._used, self._used + len(new) - len(again), dtype=np.int32)
        self._used += len(fresh)
        places[new] = np.concatenate([again, fresh])
        # These are still read, so other pairs do not get them yet.
        self._unused = np.concatenate([self._unused, other[(own >= 0) & (other >= 0)]])

        def put(part: slice, means: Vectors) -> None:
            self._merged[places[part]] = means
            self._place[keep[part]] = places[part]

        return put
