"""Mean vectors of clusters; those of coarse levels are kept with an index: summing them up reads every vector."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import rows_of
from framedex.analysis.products import Products, Vectors, run_all

_CHUNK = 32768
_LEAST_KEPT = 4096
_MOST_KEPT = 0.02  # of the rows: the share of the vectors' own size that keeping sums may take

Labels = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClusterSums:
    """The sums of all clusters of one level.

    Attributes:
        level: the finest one that has few clusters.
        numbers: int64, shape (Q,), ascending: the clusters.
        weights: int64, shape (Q,): items in each.
        sums: float32, shape (Q, D): of the items' vectors.
    """

    level: int
    numbers: Ints
    weights: Ints
    sums: Vectors

    def with_rows(self, vectors: Vectors, weights: Ints, labels: Labels) -> "ClusterSums":
        """Return the sums with further rows in them: float32 (A, D), int64 (A,), and their clusters, int32 (A, L)."""
        label = labels[:, self.level].astype(np.int64)
        numbers = np.union1d(self.numbers, label)
        total = np.zeros((len(numbers), self.sums.shape[1]), dtype=np.float32)
        count = np.zeros(len(numbers), dtype=np.int64)
        held = np.searchsorted(numbers, self.numbers)
        total[held], count[held] = self.sums, self.weights
        place = np.searchsorted(numbers, label)
        np.add.at(total, place, rows_of(vectors, slice(None)) * weights[:, None].astype(np.float32))
        np.add.at(count, place, weights)
        return ClusterSums(self.level, numbers, count, total)


def cluster_sums(vectors: Vectors, weights: Ints, labels: Labels, *, engine: Products) -> ClusterSums | None:
    """Return the sums of the finest level that has few clusters; None where all levels have many, or there are no rows.

    Args:
        vectors: float32 or float16, shape (M, D).
        weights: int64, shape (M,): how many items each row stands for.
        labels: int32, shape (M, L): cluster numbers, finest level first.
        engine: its threads do the work.
    """
    if not len(labels):
        return None
    most = max(_LEAST_KEPT, int(_MOST_KEPT * len(labels)))
    for level in range(labels.shape[1]):
        numbers, group = np.unique(labels[:, level], return_inverse=True)
        if len(numbers) <= most:
            sums = _add(vectors, weights, np.arange(len(labels)), group, engine)
            counts = np.bincount(group, weights=weights, minlength=len(numbers)).astype(np.int64)
            return ClusterSums(level, numbers.astype(np.int64), counts, sums.astype(np.float32))
    return None


class ClusterMeans:
    """The means of clusters, by level and number.

    Args:
        vectors: float32 or float16, shape (≥ M, D).
        weights: int64, shape (M,): how many items each row stands for.
        labels: int32, shape (M, L): cluster numbers, finest level first, nested.
        kept: sums that are there already; finer levels are summed up for the clusters that are asked for.
        engine: its threads do the work.
    """

    def __init__(
        self, vectors: Vectors, weights: Ints, labels: Labels, kept: ClusterSums | None, engine: Products
    ) -> None:
        self._vectors, self._weights, self._labels, self._kept, self._engine = vectors, weights, labels, kept, engine

    def of(self, level: int, numbers: Ints) -> Vectors:
        """Return the means of some clusters, float32 of shape (len(numbers), D); the numbers ascend."""
        if not len(numbers):
            return np.empty((0, self._vectors.shape[1]), dtype=np.float32)
        label = self._labels[:, level]
        if self._kept is not None and level >= self._kept.level:
            return self._summed_up(self._kept, label, numbers)
        wanted = np.full(int(label.max()) + 1, -1, dtype=np.int64)
        wanted[numbers] = np.arange(len(numbers))
        rows = np.flatnonzero(wanted[label] >= 0)
        group = wanted[label[rows]]
        sums = _add(self._vectors, self._weights, rows, group, self._engine)
        weights = np.bincount(group, weights=self._weights[rows], minlength=len(numbers))
        return (sums / weights[:, None]).astype(np.float32)

    def _summed_up(self, kept: ClusterSums, label: Labels, numbers: Ints) -> Vectors:
        parent = np.full(int(kept.numbers.max()) + 1, -1, dtype=np.int64)
        parent[self._labels[:, kept.level]] = label
        place = np.searchsorted(numbers, parent[kept.numbers])
        inside = (place < len(numbers)) & (numbers[np.minimum(place, len(numbers) - 1)] == parent[kept.numbers])
        finer = np.flatnonzero(inside)
        finer = finer[np.argsort(place[finer], kind="stable")]
        starts = np.searchsorted(place[finer], np.arange(len(numbers)))
        sums = np.add.reduceat(kept.sums[finer], starts, axis=0, dtype=np.float64)
        weights = np.add.reduceat(kept.weights[finer], starts)
        return (sums / weights[:, None]).astype(np.float32)


def _add(
    vectors: Vectors, weights: Ints, rows: Ints, group: npt.NDArray[np.integer], engine: Products
) -> npt.NDArray[np.float64]:
    """Return the weighted sums of rows by group, each of which has a row: float64, shape (groups, D)."""
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    sums = np.zeros((int(group[-1]) + 1, vectors.shape[1]))

    def add(start: int) -> tuple[npt.NDArray[np.integer], Vectors]:
        part = slice(start, start + _CHUNK)
        content = rows_of(vectors, rows[part]) * weights[rows[part], None].astype(np.float32)
        first = np.flatnonzero(np.diff(group[part], prepend=-1))
        return group[part][first], np.add.reduceat(content, first, axis=0)

    def collect(_place: int, found: tuple[npt.NDArray[np.integer], Vectors]) -> None:
        sums[found[0]] += found[1]

    run_all(engine, add, range(0, len(rows), _CHUNK), after=collect)
    return sums
