"""Neighbours and clusters of the vectors of a table: in memory, or by groups where they do not fit into memory."""

import hashlib
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from framedex.analysis.cluster_means import ClusterSums, cluster_sums
from framedex.analysis.grouped.clusters import linkage_by_groups
from framedex.analysis.grouped.files import FileVectors, GroupFiles
from framedex.analysis.grouped.kept_clusters import KeptClusters
from framedex.analysis.grouped.neighbours import Sizes, StepRunner, nearest_by_groups, spans_of
from framedex.analysis.grouped.steps import Plan, Span, vectors_of
from framedex.analysis.linkage import DENSE_ROWS, average_linkage, number_by_first_row
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import CostCheck, ignore_cost, nearest, row_keys, unique_keys, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.core.stages import Stages
from framedex.executors import Executor
from framedex.jobs.index.columns import Positions
from framedex.jobs.index.resources import IndexResources
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import NEIGHBOURS
from framedex.storage.spill import spill_folder
from framedex.storage.stored_vectors import StoredVectors
from framedex.storage.table_versions import Table, flat

_ROW_BYTES = 2800  # of memory per row, beside its vector, for neighbours, clusters and columns
_FIXED_BYTES = 4 * DENSE_ROWS**2
_STAGES = 1  # the form of stages: one process goes on from those of another only if it is the same
_STAGE_BYTES = 4 * (len(DUPLICATE_LEVELS) + 1)  # of each item, in the stage of duplicates
_READ = 0.1  # share of the progress for reading the vectors
_KEY_ROWS = 131_072  # rows whose keys are computed at a time
_MEAN_BYTES = 32  # of memory for each value of a mean that is read: vectors, merged ones, their search

T = TypeVar("T")
Labels = npt.NDArray[np.int32]
Unique = tuple[Positions, Positions, Positions]
"""(positions, first, inverse), as in :class:`IndexedVectors`; distinct vectors are in the order of first items."""


class IndexedVectors(ABC):
    """Vectors of the items of a table, with the neighbours of the distinct ones.

    Items are the rows of the table that have a vector. Distinct vectors have numbers of their own, in an order that
    depends on the way in which they are compared.

    Attributes:
        positions: int64, shape (N,), ascending: the row of each item in the table.
        first: int64, shape (M,): the first item of each distinct vector.
        inverse: int64, shape (N,): the distinct vector of each item.
        graph: the neighbours of the distinct vectors.
        vectors: the distinct vectors, until clusters are computed.
    """

    positions: Positions
    first: Positions
    inverse: Positions
    graph: NeighbourGraph
    vectors: VectorSource

    @property
    def weights(self) -> npt.NDArray[np.int64]:
        """int64, shape (M,): the number of items of each distinct vector."""
        return np.bincount(self.inverse, minlength=len(self.first))

    @abstractmethod
    def clusters(self, thresholds: Sequence[float], progress: ShareProgress) -> Labels:
        """Return the clusters of items at several distances; it can be called once.

        Returns:
            int32, shape (N, len(thresholds)): numbers from 0, in the order of the first items.
        """

    def once(self, stage: str, given: Any, compute: Callable[[ShareProgress], T], progress: ShareProgress) -> T:
        """Return the result of a stage that compares vectors, unless a process that was killed has left it.

        Args:
            stage: the name of the stage.
            given: what decides the result, beside the vectors; it can be pickled.
            compute: computes it.
            progress: called with the completed share; raises to stop.
        """
        return compute(progress)

    @abstractmethod
    def sums(self, numbers: Labels) -> ClusterSums:
        """Return the sums of large clusters.

        Args:
            numbers: int32, shape (N, L): the clusters of items.
        """


class InMemory(IndexedVectors):
    """An index of vectors that are all in memory.

    Args:
        unique: the positions, the first items and the inverse, as in :class:`IndexedVectors`.
        vectors: float32, shape (M, D): the distinct vectors.
        progress: called with the completed share; raises to stop.
        check_cost: called before many vectors are compared; raises to stop.
    """

    def __init__(
        self, unique: Unique, vectors: Vectors, progress: ShareProgress, check_cost: CostCheck = ignore_cost
    ) -> None:
        self.positions, self.first, self.inverse = unique
        self._vectors = vectors
        self.vectors = VectorsInMemory(vectors)
        self.graph = nearest(vectors, k=NEIGHBOURS, check_cost=check_cost, progress=progress)

    @classmethod
    def of(
        cls, positions: Positions, vectors: Vectors, progress: ShareProgress, check_cost: CostCheck = ignore_cost
    ) -> "InMemory":
        """Return the index of the vectors of items: float32, shape (N, D), which are changed."""
        first, inverse = unique_rows(vectors)
        return cls((positions, first, inverse), keep_rows(vectors, first), progress, check_cost)

    def clusters(self, thresholds: Sequence[float], progress: ShareProgress) -> Labels:
        """See :meth:`IndexedVectors.clusters`."""
        found = average_linkage(self._vectors, self.weights, self.graph, thresholds, progress=progress)
        return found[self.inverse]

    def sums(self, numbers: Labels) -> ClusterSums:
        """See :meth:`IndexedVectors.sums`."""
        return cluster_sums(self.vectors, self.weights, numbers[self.first], engine=CpuProducts())


class ByGroups(IndexedVectors):
    """An index of vectors that are compared by groups, in files; distinct vectors are numbered by their places.

    Args:
        table: the table.
        column: the column of vectors.
        positions, first, inverse: as in :class:`IndexedVectors`, with distinct vectors in the order of first items.
        found: the result of the search of neighbours.
        executor: runs the steps.
        in_memory: the number of clusters whose means fit into memory.
    """

    def __init__(
        self,
        table: Table,
        column: str,
        unique: Unique,
        found: tuple[NeighbourGraph, Plan],
        executor: Executor,
        in_memory: int,
    ) -> None:
        self.positions, self._stored_first, stored_inverse = unique
        self.graph, self._plan = found
        self.first = self._stored_first[self._plan.files.row]
        self.inverse = self._plan.files.place[stored_inverse].astype(np.int64)
        self.vectors = FileVectors(self._plan.files)
        self._stored = StoredVectors(table, self.positions[self._stored_first], column=column)
        self._stored_weights = np.bincount(stored_inverse, minlength=len(self._stored_first))
        self._executor, self._in_memory = executor, in_memory

    def clusters(self, thresholds: Sequence[float], progress: ShareProgress) -> Labels:
        """See :meth:`IndexedVectors.clusters`."""
        found = linkage_by_groups(
            self._plan, self.weights, thresholds,
            in_memory=self._in_memory, executor=self._executor, progress=progress,
        )  # fmt: skip
        out = np.empty((len(self.inverse), found.shape[1]), dtype=np.int32)
        for level in range(found.shape[1]):
            out[:, level] = number_by_first_row(found[:, level][self.inverse])
        return out

    def once(self, stage: str, given: Any, compute: Callable[[ShareProgress], T], progress: ShareProgress) -> T:
        """See :meth:`IndexedVectors.once`."""

        def compute_from_vectors() -> T:
            KeptClusters(self._plan, StepRunner(self._executor, progress)).restore_vectors()
            return compute(progress)

        return Stages(self._plan.files.folder).once(f"{stage}-{_digest(pickle.dumps(given))}", compute_from_vectors)

    def sums(self, numbers: Labels) -> ClusterSums:
        """See :meth:`IndexedVectors.sums`."""
        return cluster_sums(self._stored, self._stored_weights, numbers[self._stored_first], engine=CpuProducts())


@contextmanager
def indexed_vectors(
    table: Table, column: str, resources: IndexResources | None, progress: ShareProgress
) -> Iterator[IndexedVectors]:
    """Yield the index of the vectors of a table, which needs temporary files within the block.

    Args:
        table: the table.
        column: the column of vectors.
        resources: limits; None for an index in memory.
        progress: called with the completed share; raises to stop.

    Raises:
        WorkspaceError: there is too little space on the disk for temporary files.
        InvalidInput: it would take longer than the limit of the settings.
    """
    dimension = int(table.schema.field(column).type.list_size)
    check_cost = ignore_cost if resources is None else partial(resources.check_cost, dimension=dimension)

    def comparing(share: float) -> None:
        progress(_READ + (1 - _READ) * share)

    if resources is None or _fits(table.count(), dimension, resources):
        progress(0.0)
        positions, vectors = table.vectors(column)
        progress(_READ)
        yield InMemory.of(positions, vectors, comparing, check_cost)
        return
    if column in table.overlay.columns:
        table = Table(table.path, tables.fold_edits(table))
    with resources.executor() as executor:
        unique, keys = _unique(table, column, executor, lambda share: progress(_READ * share))
    rows = len(unique[1])
    stored = StoredVectors(table, unique[0][unique[1]], column=column)
    if _fits(rows, dimension, resources):  # most of the vectors are equal
        yield InMemory(unique, vectors_of(stored, (0, rows)), comparing, check_cost)
        return
    files = GroupFiles(resources.spill, rows, dimension, min(NEIGHBOURS, rows - 1))
    # The workers end before the folder is removed, so that none writes into it meanwhile.
    key = _digest(pickle.dumps((_STAGES, dimension, files.k, keys)))
    needed = files.nbytes + len(keys) * _STAGE_BYTES
    spilling = spill_folder(resources.spill, needed, f"the index of {rows:,} vectors", key=key)
    with spilling as folder, resources.executor() as executor:
        found = nearest_by_groups(
            stored, folder, k=files.k,
            sizes=Sizes.within(resources.memory_bytes // (executor.workers + 1), dimension),
            executor=executor, check_cost=check_cost, progress=comparing,
        )  # fmt: skip
        in_memory = resources.memory_bytes // (_MEAN_BYTES * dimension)
        yield ByGroups(table, column, unique, found, executor, in_memory)


def _fits(rows: int, dimension: int, resources: IndexResources) -> bool:
    """Return whether the index of some vectors fits into memory."""
    return rows <= DENSE_ROWS or _FIXED_BYTES + rows * (4 * dimension + _ROW_BYTES) <= resources.memory_bytes


def _unique(
    table: Table, column: str, executor: Executor, progress: ShareProgress
) -> tuple[Unique, npt.NDArray[np.uint64]]:
    """Return which vectors of a table are equal, and the keys of all."""
    spans = spans_of(table.count(), _KEY_ROWS)
    positions, keys = [], []
    for done, (some, its_keys) in enumerate(
        executor.map(partial(_keys, table, column), spans, check=lambda: progress(0.0)), 1
    ):
        positions.append(some)
        keys.append(its_keys)
        progress(done / len(spans))
    all_keys = np.concatenate(keys)
    first, inverse = unique_keys(all_keys)
    return (np.concatenate(positions), first, inverse), all_keys


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _keys(table: Table, column: str, span: Span) -> tuple[Positions, npt.NDArray[np.uint64]]:
    """Return the positions of the rows of a span that have a vector, and the keys of the vectors."""
    start, stop = span
    dimension = int(table.schema.field(column).type.list_size)
    positions, keys = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for batch in table.vector_batches(column, start):
        array = batch.column(0)[: stop - start]
        valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        positions.append(valid + start)
        keys.append(row_keys(flat(array, dimension)[valid]))
        start += len(array)
        if start >= stop:
            break
    return np.concatenate(positions), np.concatenate(keys)


def keep_rows(vectors: Vectors, rows: Positions) -> Vectors:
    """Return a view of ascending rows, which are moved to the front of the array to save memory."""
    if len(rows) < len(vectors):
        for start in range(0, len(rows), 16384):
            some = rows[start : start + 16384]
            vectors[start : start + len(some)] = vectors[some]
    return vectors[: len(rows)]
