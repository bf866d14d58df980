"""Building of a vector index: cells, codes, and the number of candidates that a search needs."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, cell_count, find_centroids
from framedex.analysis.codes import Codes, empty_codes
from framedex.analysis.products import best_products
from framedex.analysis.quantized_ivf import NEAREST, Block, QuantizedIvf, sorted_by_cell
from framedex.core.arrays import RowIds, Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.progress import Progress
from framedex.search.vectors.folder import (
    FilePart,
    PartWriter,
    StoredIndex,
    begin_index,
    finish_index,
)
from framedex.storage.media import Media
from framedex.storage.objects import table_path
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.table_versions import Table
from framedex.storage.vector_files import Addresses, FileRows, files_with, row_ids_of, vector_blocks

RECALL = 0.98
"""The recall that searches are calibrated for, with queries from the dataset."""
_QUERIES = 24
_LEAST_COMPARED = 2048
_FEW_BYTES = 2**23  # of compared codes, which are read and compared in a few milliseconds
_CANDIDATES_SHARE = 0.8  # of the time of testing searches, for the number of candidates
_REACH_QUERIES = 256
_REACH_MARGIN = 0.05  # for queries from outside, which are harder
_AHEAD = 16  # blocks of vectors that are encoded at a time
_SAMPLED = 32  # sampled rows per cell for a new clustering
_CELLS, _CENTROID, _EMBEDDING = "cells", "centroid", "embedding"


@dataclass(frozen=True)
class IndexSource:
    """The vectors of a dataset at one state, as input of an index.

    Attributes:
        media: the dataset's state.
        column: name of the vector column.
        dimension: length of the vectors.
        files: the files with the vectors, by name, in row order.
        row_ids: uint64, shape (N,), ascending: ids of all rows.
    """

    media: Media
    column: str
    dimension: int
    files: dict[str, FileRows]
    row_ids: RowIds

    @classmethod
    def of(cls, media: Media, column: str) -> "IndexSource":
        """Return the source for the vectors of a state."""
        dimension = int(media.table.schema.field(column).type.list_size)
        return cls(media, column, dimension, files_with(media.table, column), row_ids_of(media.table))

    def stored_cells(self) -> tuple[Vectors | None, npt.NDArray[np.int32]]:
        """Return the cells of the dataset's neighbour search.

        Returns:
            centroids: float32, shape (C, D); None if these vectors have no cells.
            cell: int32, shape (N,): the cell of each row; -1 if unknown.
        """
        unknown = np.full(len(self.row_ids), -1, np.int32)
        media, version = self.media, self.media.generation.tables.get(_CELLS)
        if version is None or self.column != _EMBEDDING:
            return None, unknown
        centroids = Table(table_path(media, _CELLS), version).vectors(_CENTROID)[1]
        columns = media.table.scan(["original", "cell"]).read_all()
        original, cell = (columns.column(name).fill_null(-1).to_numpy() for name in ("original", "cell"))
        original = RowNumbers.of(media.table.overlay).rows(original)
        of_original = np.where(original >= 0, cell[original], -1).astype(np.int32)
        return centroids, np.where(of_original < len(centroids), of_original, -1)


def make_small(source: IndexSource) -> StoredIndex:
    """Return an in-memory index that compares all rows."""
    one = np.zeros((1, source.dimension), np.float32)
    part = _make_part(source, source.files, one, np.full(len(source.row_ids), -1, np.int32), None, _quietly)
    return StoredIndex(one, len(source.row_ids), [part])


def make_index(source: IndexSource, folder: Path, progress: Progress) -> StoredIndex:
    """Build an index of all rows in a folder, and return it.

    Raises:
        OSError: the index cannot be written; leftovers are removed with the next index.
    """
    centroids, cell = source.stored_cells()
    if centroids is None:
        centroids = _find_cells(source, progress)
    path = begin_index(folder, centroids)
    part = _make_part(source, source.files, centroids, cell, path, progress)
    cells = QuantizedIvf(centroids, [part.part])
    testing = "testing searches"
    n_candidates = measure_candidates(cells, lambda share: progress(testing, _CANDIDATES_SHARE * share))
    reach = measure_search_reach(
        cells, n_candidates, lambda share: progress(testing, _CANDIDATES_SHARE + (1 - _CANDIDATES_SHARE) * share)
    )
    folder = finish_index(
        path, column=source.column, dimension=source.dimension, n_candidates=n_candidates, reach=reach
    )
    return StoredIndex(centroids, n_candidates, [part], folder, reach)


def extend_index(source: IndexSource, index: StoredIndex, *, keep: bool, progress: Progress) -> StoredIndex:
    """Return an index extended by a part with the missing files, in its folder or in memory only."""
    missing = {name: each for name, each in source.files.items() if not any(name in part.files for part in index.parts)}
    if not missing:
        return index
    unknown = np.full(len(source.row_ids), -1, np.int32)
    part = _make_part(source, missing, index.centroids, unknown, index.folder if keep else None, progress)
    return replace(index, parts=[*index.parts, part])


def _quietly(_stage: str, _share: float) -> None:
    pass


def _make_part(
    source: IndexSource,
    files: Mapping[str, FileRows],
    centroids: Vectors,
    cell: npt.NDArray[np.int32],
    folder: Path | None,
    progress: Progress,
) -> FilePart:
    """Return the rows of some files in cells; *cell* has the known cells."""
    counts = {name: each.rows for name, each in files.items()}
    numbers = Addresses(counts, source.files).numbers(source.row_ids)
    cell = _assigned(source, numbers >= 0, centroids, np.where(numbers >= 0, cell, -1), progress)
    positions = np.flatnonzero(cell >= 0)
    target, starts = sorted_by_cell(cell[positions], len(centroids))
    code_of = np.full(len(cell), -1, np.int64)
    code_of[positions] = target
    sorted_numbers = np.empty(len(positions), np.int64)
    sorted_numbers[target] = numbers[positions]
    if folder is None:
        codes = empty_codes(len(positions), source.dimension)
        _encode(source, codes, code_of, progress)
        return FilePart(counts, Block(codes, starts), sorted_numbers)
    writer = PartWriter(folder, len(positions), source.dimension)
    try:
        _encode(source, writer.codes, code_of, progress)
        return writer.finish(counts, starts, sorted_numbers)
    except BaseException:
        writer.give_up()
        raise


def _assigned(
    source: IndexSource,
    requested: npt.NDArray[np.bool_],
    centroids: Vectors,
    cell: npt.NDArray[np.int32],
    progress: Progress,
) -> npt.NDArray[np.int32]:
    """Return the cell of each requested row with a vector, -1 for other rows."""
    cell, unknown = cell.copy(), requested & (cell < 0)
    engine, assigned, count = best_products(), 0, max(int(unknown.sum()), 1)
    for positions, vectors in vector_blocks(source.media.table, source.column, unknown):
        cell[positions] = 0 if len(centroids) == 1 else assign(vectors, centroids, engine=engine)
        assigned += len(positions)
        progress("vectors into cells", assigned / count)
    return cell


def _encode(source: IndexSource, codes: Codes, code_of: npt.NDArray[np.int64], progress: Progress) -> None:
    """Fill codes with the vectors of the rows that have a position in them."""
    encoded, count = 0, max(len(codes), 1)
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="framedex-codes") as pool:
        pending = []
        for positions, vectors in vector_blocks(source.media.table, source.column, code_of >= 0):
            pending.append(pool.submit(codes.put, code_of[positions], vectors))
            if len(pending) > _AHEAD:
                pending.pop(0).result()
            encoded += len(positions)
            progress("vectors", encoded / count)
        for each in pending:
            each.result()


def _find_cells(source: IndexSource, progress: Progress) -> Vectors:
    """Return centroids computed from a sample of the rows."""
    count = cell_count(len(source.row_ids))
    random = np.random.default_rng(0)
    sampled = np.zeros(len(source.row_ids), bool)
    sampled[random.choice(len(sampled), min(len(sampled), _SAMPLED * count), replace=False)] = True
    blocks = [vectors for _, vectors in vector_blocks(source.media.table, source.column, sampled)]
    sample = np.concatenate([np.empty((0, source.dimension), np.float32), *blocks])
    return find_centroids(
        sample,
        min(count, max(len(sample), 1)),
        engine=best_products(),
        random=random,
        progress=lambda share: progress("finding cells", share),
    )


def measure_candidates(cells: QuantizedIvf, progress: Callable[[float], None]) -> int:
    """Return the number of candidates that a search needs for the target recall.

    The measurement uses rows of the dataset as queries. The result is doubled, because queries from outside are harder.
    """
    everything = cells.select(np.ones(len(cells), bool))
    rows = np.random.default_rng(0).choice(len(cells), min(_QUERIES, len(cells)), replace=False)
    queries = cells.vectors(rows)
    with (
        single_threaded_blas(),
        ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="framedex-codes") as threads,
    ):
        nearest = cells.largest(queries, NEAREST, threads, progress)
    k, lowest = nearest.shape[1], nearest.min(axis=1, initial=1)
    n_candidates = _LEAST_COMPARED
    while n_candidates < len(cells):
        recalls = [
            (cells.nearest(query, k, everything, n_candidates=n_candidates)[1] >= least - 1e-6).sum() / k
            for query, least in zip(queries, lowest, strict=True)
        ]
        if np.mean(recalls) >= RECALL:
            break
        n_candidates *= 2
    return min(2 * n_candidates, max(len(cells), 1))


def measure_search_reach(
    cells: QuantizedIvf, n_candidates: int, progress: Callable[[float], None], *, few_bytes: int = _FEW_BYTES
) -> float | None:
    """Return the reach of searches for up to 100 results; None where they compare all rows, or few.

    Most queries have their results in much fewer cells than the hardest ones, which decide about the number of
    candidates. The measurement uses rows of the dataset as queries: with the reach they have the same results.

    Args:
        cells: the index.
        n_candidates: the number of candidates of a search.
        progress: receives the share of the measured queries.
        few_bytes: size of the codes that are compared without one.
    """
    if n_candidates >= len(cells) or n_candidates * cells.centroids.shape[1] <= few_bytes:
        return None
    everything = cells.select(np.ones(len(cells), bool))
    rows = np.random.default_rng(1).choice(len(cells), min(_REACH_QUERIES, len(cells)), replace=False)
    reach = -1.0
    for number, query in enumerate(cells.vectors(np.sort(rows))):
        reach = max(reach, float(cells.reaches(query, everything, n_candidates).max(initial=-1)))
        progress((number + 1) / len(rows))
    return reach + _REACH_MARGIN
