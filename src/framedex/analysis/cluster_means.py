"""Mean vectors of clusters. The sums of large clusters are stored with an index, because summing reads all vectors."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.mean_vectors import slices
from framedex.analysis.products import Products, run_all
from framedex.analysis.runs import RUN_ROWS, add_by_group, sum_runs
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.core.arrays import Vectors

_FEW = 0.2  # of all rows: fewer rows are read one by one
_MIN_ROWS = 8  # of a cluster with a stored sum; doubled if there are many such clusters
_MAX_STORED = 0.04  # of the rows: stored sums take at most this share of the vectors' size
_LEVEL = 1 << 32

Labels = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClusterSums:
    """Vector sums of large clusters, at all levels.

    Attributes:
        keys: int64, shape (Q,), ascending: level · 2³² + number.
        weights: int64, shape (Q,): the number of items of each cluster.
        sums: float32, shape (Q, D): the sum of the items' vectors.
    """

    keys: Ints
    weights: Ints
    sums: Vectors

    def find(self, level: int, numbers: npt.NDArray[np.integer]) -> Ints:
        """Return the positions of clusters of one level, -1 for clusters without a stored sum."""
        keys = level * _LEVEL + numbers.astype(np.int64)
        position = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        return np.where(self.keys[position] == keys, position, -1) if len(self.keys) else np.full(len(keys), -1)

    def with_rows(self, vectors: Vectors, weights: Ints, labels: Labels) -> "ClusterSums":
        """Return the sums with added rows.

        Args:
            vectors: float32, shape (A, D).
            weights: int64, shape (A,); negative weights subtract rows.
            labels: int32, shape (A, L): the clusters of the rows.
        """
        sums, total = self.sums.copy(), self.weights.copy()
        for level in range(labels.shape[1]):
            position = self.find(level, labels[:, level])
            stored = np.flatnonzero(position >= 0)
            np.add.at(sums, position[stored], vectors[stored] * weights[stored, None].astype(np.float32))
            np.add.at(total, position[stored], weights[stored])
        return ClusterSums(self.keys, total, sums)


def cluster_sums(vectors: VectorSource, weights: Ints, labels: Labels, *, engine: Products) -> ClusterSums:
    """Return the sums of clusters with many rows.

    Args:
        vectors: the vectors of M rows.
        weights: int64, shape (M,): the number of identical items for each row.
        labels: int32, shape (M, L): cluster numbers, finest level first, nested.
        engine: provides the threads.
    """
    n_levels = labels.shape[1] if len(labels) else 0
    min_rows, levels, first = _min_stored_rows(labels), list[_StoredLevel](), 0
    for level in range(n_levels):
        levels.append(_StoredLevel.of(labels[:, level], min_rows, first))
        first += len(levels[-1].numbers)
    # A row is added to its finest stored cluster, so that all vectors are read once.
    finest = np.full(len(labels), -1, dtype=np.int32)
    for each in reversed(levels):
        np.copyto(finest, each.of_row, where=each.of_row >= 0)
    rows = np.flatnonzero(finest >= 0)
    sums = _sum_by_group(vectors, weights, rows, finest[rows], first, engine)
    total = np.bincount(finest[rows], weights=weights[rows], minlength=first).astype(np.int64)
    for finer, coarser in pairwise(levels):  # a large cluster is within a large one of the next level
        parent = coarser.of_row[finer.example]
        np.add.at(total, parent, total[finer.part])
        add_by_group(sums, sums[finer.part], parent)
    keys = [level * _LEVEL + each.numbers for level, each in enumerate(levels)]
    return ClusterSums(np.concatenate([np.empty(0, np.int64), *keys]), total, sums.astype(np.float32))


@dataclass(frozen=True)
class _StoredLevel:
    """The clusters of a level with stored sums, whose positions follow each other.

    Attributes:
        numbers: int64, shape (Q,), ascending: their cluster numbers.
        of_row: int32, shape (M,): the position of the cluster of each row; -1 for clusters without a stored sum.
        example: int64, shape (Q,): a row of each cluster.
        part: their positions.
    """

    numbers: Ints
    of_row: npt.NDArray[np.int32]
    example: Ints
    part: slice

    @classmethod
    def of(cls, label: Labels, min_rows: int, first: int) -> "_StoredLevel":
        """Return the clusters with at least *min_rows* rows, whose positions begin with *first*."""
        sizes = np.bincount(label)
        numbers = np.flatnonzero(sizes >= min_rows)
        position = np.full(len(sizes), -1, dtype=np.int32)
        position[numbers] = first + np.arange(len(numbers), dtype=np.int32)
        example = np.empty(len(sizes), dtype=np.int64)
        example[label] = np.arange(len(label))
        return cls(numbers, position[label], example[numbers], slice(first, first + len(numbers)))


def _min_stored_rows(labels: Labels) -> int:
    """Return the minimum number of rows of a cluster with a stored sum."""
    sizes = np.concatenate([np.empty(0, np.int64), *(np.bincount(label) for label in labels.T)])
    min_rows = _MIN_ROWS
    while (sizes >= min_rows).sum() > max(_MAX_STORED * len(labels), _MIN_ROWS):
        min_rows *= 2
    return min_rows


class ClusterMeans:
    """Means of clusters, by level and number.

    Args:
        vectors: vectors of the M rows.
        weights: int64, shape (M,): the number of identical items for each row.
        labels: int32, shape (M, L): cluster numbers, finest level first, nested.
        sums: stored sums; other clusters are summed on request.
        engine: provides the threads.
    """

    def __init__(
        self, vectors: VectorSource, weights: Ints, labels: Labels, sums: ClusterSums | None, engine: Products
    ) -> None:
        self._vectors, self._weights, self._labels, self._sums, self._engine = vectors, weights, labels, sums, engine

    def of(self, level: int, numbers: Ints) -> Vectors:
        """Return the means of clusters: float32, shape (len(numbers), D); the numbers ascend."""
        out = np.empty((len(numbers), self._vectors.dimension), dtype=np.float32)
        position = np.full(len(numbers), -1) if self._sums is None else self._sums.find(level, numbers)
        stored, other = np.flatnonzero(position >= 0), np.flatnonzero(position < 0)
        if self._sums is not None:
            out[stored] = self._sums.sums[position[stored]] / self._sums.weights[position[stored], None]
        if len(other):
            out[other] = self._compute_means(self._labels[:, level], numbers[other])
        return out

    def _compute_means(self, label: Labels, numbers: Ints) -> Vectors:
        position = np.full(int(label.max()) + 1, -1, dtype=np.int64)
        position[numbers] = np.arange(len(numbers))
        rows = np.flatnonzero(position[label] >= 0)
        group = position[label[rows]]
        sums = _sum_by_group(self._vectors, self._weights, rows, group, len(numbers), self._engine)
        weights = np.bincount(group, weights=self._weights[rows], minlength=len(numbers))
        return (sums / weights[:, None]).astype(np.float32)


def _sum_by_group(
    vectors: VectorSource, weights: Ints, rows: Ints, group: npt.NDArray[np.integer], count: int, engine: Products
) -> npt.NDArray[np.float64]:
    """Return the weighted sums of rows by group: float64, shape (count, D).

    Args:
        vectors: vectors of all rows.
        weights: weights of all rows.
        rows: rows to sum, ascending.
        group: the group of each of these rows.
        count: the number of groups.
        engine: provides the threads.
    """
    sums = np.zeros((count, vectors.dimension))
    if len(rows) < _FEW * len(vectors):
        _add_groups(sums, vectors, rows, weights[rows], group, engine)
        return sums
    for start, block in vectors.blocks():
        inside = slice(*np.searchsorted(rows, [start, start + len(block)]))
        _add_groups(sums, VectorsInMemory(block), rows[inside] - start, weights[rows[inside]], group[inside], engine)
    return sums


def _add_groups(
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

    def add(part: slice) -> tuple[npt.NDArray[np.integer], Vectors]:
        content = vectors.take(rows[part])
        if (weights[part] != 1).any():
            content *= weights[part, None].astype(np.float32)
        return sum_runs(content, group[part])

    def collect(_place: int, partial_sums: tuple[npt.NDArray[np.integer], Vectors]) -> None:
        sums[partial_sums[0]] += partial_sums[1]

    run_all(engine, add, slices(len(rows), RUN_ROWS), after=collect)
