"""Mean vectors of clusters; sums of large ones are kept with an index: summing them up reads every vector."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.products import Products, run_all
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.arrays import Vectors

_CHUNK = 4096
_FEW = 0.2  # of all rows: fewer are read one by one
_LARGE = 8  # rows of a cluster whose sum is kept, or more where those are many
_MOST_KEPT = 0.04  # of the rows: the share of the vectors' own size that keeping sums may take
_LEVEL = 1 << 32

Labels = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClusterSums:
    """The sums of large clusters, at all levels.

    Attributes:
        keys: int64, shape (Q,), ascending: level · 2³² + number.
        weights: int64, shape (Q,): items in each.
        sums: float32, shape (Q, D): of the items' vectors.
    """

    keys: Ints
    weights: Ints
    sums: Vectors

    def find(self, level: int, numbers: npt.NDArray[np.integer]) -> Ints:
        """Return where clusters of one level are, -1 for those that are not kept."""
        keys = level * _LEVEL + numbers.astype(np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        return np.where(self.keys[place] == keys, place, -1) if len(self.keys) else np.full(len(keys), -1)

    def with_rows(self, vectors: Vectors, weights: Ints, labels: Labels) -> "ClusterSums":
        """Return the sums with further rows in them: float32 (A, D), int64 (A,), and their clusters, int32 (A, L)."""
        sums, total = self.sums.copy(), self.weights.copy()
        for level in range(labels.shape[1]):
            place = self.find(level, labels[:, level])
            held = np.flatnonzero(place >= 0)
            np.add.at(sums, place[held], vectors[held] * weights[held, None].astype(np.float32))
            np.add.at(total, place[held], weights[held])
        return ClusterSums(self.keys, total, sums)


def cluster_sums(vectors: Vectors, weights: Ints, labels: Labels, *, engine: Products) -> ClusterSums:
    """Return the sums of clusters with many rows.

    Args:
        vectors: float32 or float16, shape (M, D).
        weights: int64, shape (M,): how many items each row stands for.
        labels: int32, shape (M, L): cluster numbers, finest level first, nested.
        engine: its threads do the work.
    """
    dimension = vectors.shape[1]
    keys, totals, parts = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((0, dimension), np.float32)]
    inside, finer = np.zeros(len(labels), dtype=bool), np.empty((0, dimension))
    example = np.empty(0, dtype=np.int64)
    least = _least_kept(labels)
    for level in range(labels.shape[1] if len(labels) else 0):
        label = labels[:, level]
        numbers = np.flatnonzero(np.bincount(label) >= least)
        place = np.full(int(label.max()) + 1, -1, dtype=np.int64)
        place[numbers] = np.arange(len(numbers))
        of_row = place[label]
        # A cluster is those of the next finer level within it, and the rows that are in none that is kept.
        rows = np.flatnonzero((of_row >= 0) & ~inside)
        sums = _add(VectorsInMemory(vectors), weights, rows, of_row[rows], len(numbers), engine)
        np.add.at(sums, of_row[example], finer)
        inside, finer = of_row >= 0, sums
        example = np.unique(of_row, return_index=True)[1][-len(numbers) :] if len(numbers) else example[:0]
        keys.append(level * _LEVEL + numbers)
        totals.append(np.bincount(of_row[inside], weights=weights[inside], minlength=len(numbers)).astype(np.int64))
        parts.append(sums.astype(np.float32))
    return ClusterSums(np.concatenate(keys), np.concatenate(totals), np.concatenate(parts))


def _least_kept(labels: Labels) -> int:
    """Return how many rows a cluster must have for its sum to be kept."""
    sizes = np.concatenate([np.empty(0, np.int64), *(np.bincount(label) for label in labels.T)])
    least = _LARGE
    while (sizes >= least).sum() > max(_MOST_KEPT * len(labels), _LARGE):
        least *= 2
    return least


class ClusterMeans:
    """The means of clusters, by level and number.

    Args:
        vectors: of the M rows.
        weights: int64, shape (M,): how many items each row stands for.
        labels: int32, shape (M, L): cluster numbers, finest level first, nested.
        kept: sums that are there already; other clusters that are asked for are summed up.
        engine: its threads do the work.
    """

    def __init__(
        self, vectors: VectorSource, weights: Ints, labels: Labels, kept: ClusterSums | None, engine: Products
    ) -> None:
        self._vectors, self._weights, self._labels, self._kept, self._engine = vectors, weights, labels, kept, engine

    def of(self, level: int, numbers: Ints) -> Vectors:
        """Return the means of some clusters, float32 of shape (len(numbers), D); the numbers ascend."""
        out = np.empty((len(numbers), self._vectors.dimension), dtype=np.float32)
        place = np.full(len(numbers), -1) if self._kept is None else self._kept.find(level, numbers)
        kept, other = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
        if self._kept is not None:
            out[kept] = self._kept.sums[place[kept]] / self._kept.weights[place[kept], None]
        if len(other):
            out[other] = self._summed_up(self._labels[:, level], numbers[other])
        return out

    def _summed_up(self, label: Labels, numbers: Ints) -> Vectors:
        wanted = np.full(int(label.max()) + 1, -1, dtype=np.int64)
        wanted[numbers] = np.arange(len(numbers))
        rows = np.flatnonzero(wanted[label] >= 0)
        group = wanted[label[rows]]
        sums = _add(self._vectors, self._weights, rows, group, len(numbers), self._engine)
        weights = np.bincount(group, weights=self._weights[rows], minlength=len(numbers))
        return (sums / weights[:, None]).astype(np.float32)


def _add(
    vectors: VectorSource, weights: Ints, rows: Ints, group: npt.NDArray[np.integer], count: int, engine: Products
) -> npt.NDArray[np.float64]:
    """Return the weighted sums of rows by group: float64, shape (count, D).

    Args:
        vectors: of all rows.
        weights: of all rows.
        rows: ascending.
        group: of those rows.
        count: how many groups there are.
        engine: its threads do the work.
    """
    sums = np.zeros((count, vectors.dimension))
    if len(rows) < _FEW * len(vectors):
        _add_to(sums, vectors, rows, weights[rows], group, engine)
        return sums
    for start, block in vectors.blocks():
        inside = slice(*np.searchsorted(rows, [start, start + len(block)]))
        _add_to(sums, VectorsInMemory(block), rows[inside] - start, weights[rows[inside]], group[inside], engine)
    return sums


def _add_to(
    sums: npt.NDArray[np.float64],
    vectors: VectorSource,
    rows: Ints,
    weights: Ints,
    group: npt.NDArray[np.integer],
    engine: Products,
) -> None:
    """Add weighted rows to the sums of their groups."""
    order = np.argsort(group, kind="stable")
    rows, weights, group = rows[order], weights[order], group[order]

    def add(start: int) -> tuple[npt.NDArray[np.integer], Vectors]:
        part = slice(start, start + _CHUNK)
        content = vectors.take(rows[part]) * weights[part, None].astype(np.float32)
        first = np.flatnonzero(np.diff(group[part], prepend=-1))
        return group[part][first], np.add.reduceat(content, first, axis=0)

    def collect(_place: int, found: tuple[npt.NDArray[np.integer], Vectors]) -> None:
        sums[found[0]] += found[1]

    run_all(engine, add, range(0, len(rows), _CHUNK), after=collect)
