"""Neighbours of some rows among all rows, which are read from their source block by block."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells, RowCells, cell_count, find_centroids, group_rows, probe_cells, take_rows
from framedex.analysis.neighbour_lists import Lists
from framedex.analysis.neighbours import DEFAULT_RECALL, ignore_progress
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products, run_all
from framedex.analysis.reach import ExactNeighbours, exact_neighbours_of_some
from framedex.analysis.vector_sources import VectorsInMemory, VectorSource
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

_QUERIES = 1024
_TILE = 4096
_COMPARED_PAIRS = 50_000_000  # up to this number of pairs, comparing all takes half a second or less
_RENEWED = 0.5  # cells are found again if less than this share of the vectors remains
_BUNDLE_PRODUCTS = 1 << 17  # minimum number of similarities that a thread computes at a time

Rows = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Queries:
    """Rows that search for their neighbours.

    Attributes:
        numbers: int64, shape (Q,), ascending: the rows' numbers among all rows.
        vectors: float32, shape (Q, D).
    """

    numbers: Rows
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.numbers)


class NeighbourSearch:
    """A repeated search of neighbours among vectors that become fewer.

    Cells are found again only when half of the vectors is gone. Until then the vectors are assigned to the same
    centroids, and rows probe them within the same reach. A later reach is never smaller: the fewer vectors are similar
    enough, the fewer of a sample have neighbours in other cells, and a sample without any has the reach 0.

    Args:
        recall: the requested share of true neighbours, if there are so many pairs that cells are used.
        min_similarity: only more similar rows are neighbours.
        seed: seed of the random samples.
        engine: computes the matrix products; by default on the GPU if there is one, else on the CPU.
    """

    def __init__(
        self,
        *,
        recall: float = DEFAULT_RECALL,
        min_similarity: float = -np.inf,
        seed: int = 0,
        engine: Products | None = None,
    ) -> None:
        self._recall, self._min_similarity, self._seed, self._engine = recall, min_similarity, seed, engine
        self._cells: Cells | None = None

    def nearest_of(
        self,
        rows: Rows,
        vectors: Vectors,
        *,
        k: int,
        known: RowCells | None = None,
        exact: ExactNeighbours | None = None,
        progress: ShareProgress = ignore_progress,
    ) -> tuple[npt.NDArray[np.int32], Vectors]:
        """Return the k nearest neighbours of some rows among all rows, without the row itself.

        Args:
            rows: int, shape (Q,), ascending: the rows that search.
            vectors: float32, shape (N, D): the vectors of all rows.
            k: neighbours per row; at most N - 1 are returned.
            known: the cells of all rows as earlier calls found them, which are updated; by default none is known.
            exact: exact neighbours of a sample of the rows, if they were found already.
            progress: called between blocks.

        Returns:
            rows: int32, shape (Q, ≤ k): the neighbours' rows, most similar first; ties in row order. Lists of rows with
                fewer neighbours end with -1.
            similarity: float32, the same shape: descending; -1 where there is no neighbour.
        """
        lists = Lists(
            len(vectors), min(k, len(vectors) - 1), min_similarity=self._min_similarity, gathered=k * len(rows)
        )
        lists.changed[:] = False
        many = len(rows) * len(vectors) > _COMPARED_PAIRS
        engine = self._engine or (best_products() if many else CpuProducts())
        cells = self._cells_of(vectors, k, known or RowCells.unknown(len(vectors)), exact, engine) if many else None
        queries = Queries(rows, take_rows(vectors, rows))
        look_up(queries, VectorsInMemory(vectors), cells, lists, update_below=0, engine=engine, progress=progress)
        graph = lists.graph(cells)
        return graph.rows[rows], graph.similarity[rows]

    def _cells_of(
        self, vectors: Vectors, k: int, known: RowCells, exact: ExactNeighbours | None, engine: Products
    ) -> Cells:
        """Return the cells of all rows."""
        if self._cells is None or len(vectors) < _RENEWED * len(self._cells.of_row):
            random = np.random.default_rng(self._seed)
            centroids = find_centroids(
                vectors, cell_count(len(vectors)), engine=engine, random=random, progress=ignore_progress
            )
            if exact is None:
                exact = exact_neighbours_of_some(vectors, k=k, engine=engine, random=random, progress=ignore_progress)
            measured = exact.reach_in(
                centroids, vectors, recall=self._recall, min_similarity=self._min_similarity, engine=engine
            )
            reach = measured.closest if self._cells is None else max(measured.closest, self._cells.reach)
            known.is_known[:] = False
            known.find(vectors, centroids, engine=engine)
            self._cells = Cells(centroids, known.of_row, reach)
            return self._cells
        known.find(vectors, self._cells.centroids, engine=engine)
        return replace(self._cells, of_row=known.of_row)


def look_up(
    queries: Queries,
    vectors: VectorSource,
    cells: Cells | None,
    lists: Lists,
    *,
    update_below: int,
    engine: Products,
    progress: ShareProgress,
) -> Cells | None:
    """Offer candidate neighbours of some rows to their lists.

    Args:
        queries: the rows that search for neighbours.
        vectors: the vectors of all N rows, in the order of their numbers; read once.
        cells: cells for the queries to probe; queries with higher numbers than the rows of the cells are added to them.
            None: queries are compared with all rows.
        lists: neighbour lists of all N rows.
        update_below: rows with lower numbers are offered the queries as candidates, too.
        engine: computes the matrix products.
        progress: called between parts of blocks.

    Returns:
        The cells of all rows.
    """
    search = _Search(queries, lists, update_below, engine)
    if cells is None:
        for start, block in vectors.blocks():
            pairs: list[tuple[Rows, Rows]] = [
                (np.arange(row, min(row + _QUERIES, len(queries))), np.arange(member, min(member + _TILE, len(block))))
                for row in range(0, len(queries), _QUERIES)
                for member in range(0, len(block), _TILE)
            ]
            search.compare(start, block, pairs, progress)
        return None
    count = len(cells.centroids)
    of_row, inside, probing = _probing_queries(
        queries, cells, len(vectors), lists, engine, lambda share: progress(0.2 * share)
    )
    for start, block in vectors.blocks():
        order, starts = group_rows(of_row[start : start + len(block)], count)
        pairs = [
            (queries_of[cell][low : low + _QUERIES], order[starts[cell] : starts[cell + 1]])
            for queries_of in (inside, probing)  # the first lists limit what is selected from other cells
            for cell in np.flatnonzero(np.diff(starts))
            for low in range(0, len(queries_of[cell]), _QUERIES)
        ]
        search.compare(start, block, pairs, lambda share: progress(0.2 + 0.8 * share))
    lists.settle()
    if lists.min_similarity == -np.inf:
        lists.complete(vectors, engine, queries.numbers)
    return replace(cells, of_row=of_row)


def _probing_queries(
    queries: Queries, cells: Cells, rows: int, lists: Lists, engine: Products, progress: ShareProgress
) -> tuple[npt.NDArray[np.int32], list[Rows], list[Rows]]:
    """Return the cell of each row, and for each cell the positions of the queries in it and of those that probe it."""
    count, n_indexed = len(cells.centroids), len(cells.of_row)
    others = np.delete(cells.of_row, queries.numbers[queries.numbers < n_indexed])
    own, probes = probe_cells(
        queries.vectors,
        cells.centroids,
        cells.reach,
        min_rows=4 * lists.rows.shape[1],
        occupancy=np.bincount(others, minlength=count),
        engine=engine,
        progress=progress,
    )
    of_row = np.concatenate([cells.of_row, np.empty(rows - n_indexed, np.int32)])
    of_row[queries.numbers] = own
    order, starts = group_rows(own, count)
    inside: list[Rows] = [order[low:high] for low, high in pairwise(starts)]
    return of_row, inside, [probes.into(cell) for cell in range(count)]


class _Search:
    """Comparison of queries with blocks of rows.

    Args:
        queries: the rows that search for neighbours.
        lists: neighbour lists of all rows.
        update_below: rows with lower numbers are offered the queries as candidates, too.
        engine: computes the matrix products.
    """

    def __init__(self, queries: Queries, lists: Lists, update_below: int, engine: Products) -> None:
        self._queries, self._lists, self._update_below, self._engine = queries, lists, update_below, engine

    def compare(self, start: int, block: Vectors, pairs: Sequence[tuple[Rows, Rows]], progress: ShareProgress) -> None:
        """Compare queries with rows of a block, and offer near rows to the lists.

        Args:
            start: the number of the block's first row.
            block: the block's vectors.
            pairs: (positions of queries, positions in the block) to compare with each other.
            progress: called with the completed share of all blocks.
        """
        bundles, scratch = _bundles(pairs), _Scratch(max((len(member) for _, member in pairs), default=0))

        def compared(tasks: list[_Task]) -> list[Survivors]:
            return [
                offer for task in tasks for offer in self._offers(task, start, scratch.rows_of(block, task.members))
            ]

        def collect(position: int, offers: list[Survivors]) -> None:
            for each in offers:
                self._lists.offer(each)
            progress((start + len(block) * (position + 1) / len(bundles)) / len(self._lists.rows))

        tasks = (self._tasks(bundle, start) for bundle in bundles)
        run_all(self._engine, compared, tasks, after=collect)
        if start + len(block) == len(self._lists.rows):
            progress(1.0)

    def _tasks(self, bundle: Sequence[tuple[Rows, Rows]], start: int) -> "list[_Task]":
        # The limits are read here: on a thread, its timing would decide between equally near neighbours.
        limits = self._lists.limits
        return [
            _Task(
                row,
                member,
                limits[self._queries.numbers[row]],
                limits[member + start] if start < self._update_below else None,
            )
            for row, member in bundle
        ]

    def _offers(self, task: "_Task", start: int, members: Vectors) -> list[Survivors]:
        numbers, k = self._queries.numbers[task.rows], self._lists.rows.shape[1]
        content = self._queries.vectors[task.rows]
        survivors = self._engine.above(content, members, task.limits, k + 1, reverse_limits=task.reverse_limits)
        row, column, score = survivors[0]
        one, other = numbers[row], task.members[column] + start
        foreign = one != other
        offers: list[Survivors] = [(one[foreign], other[foreign], score[foreign])]
        if task.reverse_limits is not None:
            member, query, same_score = survivors[1]
            offers.append((task.members[member] + start, numbers[query], same_score))
        return offers


@dataclass(frozen=True)
class _Task:
    """Queries to compare with rows of a block.

    Attributes:
        rows: positions of the queries.
        members: positions in the block.
        limits: float32: the similarity that a candidate must exceed, for each query.
        reverse_limits: float32: the same for each row of the block; None if these rows get no candidates.
    """

    rows: Rows
    members: Rows
    limits: Vectors
    reverse_limits: Vectors | None


class _Scratch(threading.local):
    """Reused memory of each thread for the rows of a cell; allocating new arrays takes longer than the product."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rows: Vectors | None = None

    def rows_of(self, block: Vectors, rows: Rows) -> Vectors:
        """Return rows as float32; the next call on this thread overwrites them."""
        if block.dtype != np.float32:
            return take_rows(block, rows)
        if self._rows is None:
            self._rows = np.empty((self._max_rows, block.shape[1]), dtype=np.float32)
        return np.take(block, rows, axis=0, out=self._rows[: len(rows)], mode="clip")


def _bundles(pairs: Sequence[tuple[Rows, Rows]]) -> list[Sequence[tuple[Rows, Rows]]]:
    """Return consecutive pairs in bundles that are large enough for a thread; single cells are too small."""
    sizes = np.cumsum([len(row) * len(member) for row, member in pairs])
    ends = np.unique(np.append(np.flatnonzero(np.diff(sizes // _BUNDLE_PRODUCTS, prepend=0)), len(pairs)))
    return [pairs[start:end] for start, end in pairwise([0, *ends.tolist()]) if end > start]
