"""Neighbours of some rows among all rows, which are read where they are stored, block by block."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells, group_rows, probe_cells, take_rows
from framedex.analysis.neighbours import Lists
from framedex.analysis.products import Products, Survivors, run_all
from framedex.analysis.vector_sources import VectorSource
from framedex.arrays import Vectors
from framedex.progress import ShareProgress

_QUERIES = 4096
_TILE = 16384
_HANDED = 1 << 17  # similarities that a thread computes at a time, or more

Rows = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Queries:
    """Rows whose neighbours are wanted.

    Attributes:
        numbers: int64, shape (Q,), ascending: among all rows.
        vectors: float32, shape (Q, D).
    """

    numbers: Rows
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.numbers)


def look_up(
    queries: Queries,
    vectors: VectorSource,
    cells: Cells | None,
    lists: Lists,
    *,
    told: int,
    engine: Products,
    progress: ShareProgress,
) -> Cells | None:
    """Offer the neighbours of some rows to their lists.

    Args:
        queries: those rows.
        vectors: all N rows, in the order of their numbers; they are read once.
        cells: which queries look into; those that stand behind the rows of the cells are sorted into them. None:
            queries are compared with all rows.
        lists: of all N rows.
        told: rows below that number get queries as candidates, too.
        engine: multiplies.
        progress: called between parts of blocks.

    Returns:
        the cells of all rows.
    """
    search = _Search(queries, lists, told, engine)
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
    of_row, visitors = _visitors(queries, cells, len(vectors), lists, engine, lambda share: progress(0.2 * share))
    for start, block in vectors.blocks():
        order, starts = group_rows(of_row[start : start + len(block)], count)
        pairs = [
            (visitors[cell][low : low + _QUERIES], order[starts[cell] : starts[cell + 1]])
            for cell in np.flatnonzero(np.diff(starts))
            for low in range(0, len(visitors[cell]), _QUERIES)
        ]
        search.compare(start, block, pairs, lambda share: progress(0.2 + 0.8 * share))
    lists.settle()
    lists.complete(vectors, engine, queries.numbers)
    return replace(cells, of_row=of_row)


def _visitors(
    queries: Queries, cells: Cells, rows: int, lists: Lists, engine: Products, progress: ShareProgress
) -> tuple[npt.NDArray[np.int32], list[Rows]]:
    """Return the cell of each of all rows, and the places of the queries that look into each cell, or are in it."""
    count, known = len(cells.centroids), len(cells.of_row)
    others = np.delete(cells.of_row, queries.numbers[queries.numbers < known])
    own, looks = probe_cells(
        queries.vectors,
        cells.centroids,
        cells.reach,
        least=4 * lists.rows.shape[1],
        held=np.bincount(others, minlength=count),
        engine=engine,
        progress=progress,
    )
    of_row = np.concatenate([cells.of_row, np.empty(rows - known, np.int32)])
    of_row[queries.numbers] = own
    order, starts = group_rows(own, count)
    return of_row, [np.concatenate([order[starts[cell] : starts[cell + 1]], looks.into(cell)]) for cell in range(count)]


class _Search:
    """Compares queries with blocks of rows.

    Args:
        queries: rows whose neighbours are wanted.
        lists: of all rows.
        told: rows below that number get queries as candidates, too.
        engine: multiplies.
    """

    def __init__(self, queries: Queries, lists: Lists, told: int, engine: Products) -> None:
        self._queries, self._lists, self._told, self._engine = queries, lists, told, engine

    def compare(self, start: int, block: Vectors, pairs: Sequence[tuple[Rows, Rows]], progress: ShareProgress) -> None:
        """Compare queries with rows of a block, and offer what is near to the lists.

        Args:
            start: the number of the block's first row.
            block: its vectors.
            pairs: (places of queries, places in the block) to compare with each other.
            progress: called with the share of all blocks that is done.
        """
        bundles, scratch = _bundled(pairs), _Scratch(max((len(member) for _, member in pairs), default=0))

        def compared(tasks: list[_Task]) -> list[Survivors]:
            return [
                found for task in tasks for found in self._offers(task, start, scratch.rows_of(block, task.members))
            ]

        def collect(place: int, found: list[Survivors]) -> None:
            for each in found:
                self._lists.offer(each)
            progress((start + len(block) * (place + 1) / len(bundles)) / len(self._lists.rows))

        handed = (self._handed(bundle, start) for bundle in bundles)
        run_all(self._engine, compared, handed, after=collect)
        if start + len(block) == len(self._lists.rows):
            progress(1.0)

    def _handed(self, bundle: Sequence[tuple[Rows, Rows]], start: int) -> "list[_Task]":
        # Limits as they are now: read on a thread, its timing would decide between equally near neighbours.
        least = self._lists.least
        return [
            _Task(row, member, least[self._queries.numbers[row]], least[member + start] if start < self._told else None)
            for row, member in bundle
        ]

    def _offers(self, task: "_Task", start: int, members: Vectors) -> list[Survivors]:
        numbers, k = self._queries.numbers[task.rows], self._lists.rows.shape[1]
        content = self._queries.vectors[task.rows]
        found = self._engine.above(content, members, task.least, k + 1, back=task.back)
        row, column, score = found[0]
        one, other = numbers[row], task.members[column] + start
        foreign = one != other
        offers: list[Survivors] = [(one[foreign], other[foreign], score[foreign])]
        if task.back is not None:
            member, visitor, same = found[1]
            offers.append((task.members[member] + start, numbers[visitor], same))
        return offers


@dataclass(frozen=True)
class _Task:
    """Queries that are compared with rows of a block.

    Attributes:
        rows: places of the queries.
        members: places in the block.
        least: float32: what a candidate must exceed for each query.
        back: float32: and for each row of the block; None if those get no candidates.
    """

    rows: Rows
    members: Rows
    least: Vectors
    back: Vectors | None


class _Scratch(threading.local):
    """Memory of each thread for the rows of a cell: the pages of a new array each time take longer than the product."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: Vectors | None = None

    def rows_of(self, block: Vectors, rows: Rows) -> Vectors:
        """Return some rows as float32; the next call on this thread overwrites them."""
        if block.dtype != np.float32:
            return take_rows(block, rows)
        if self._rows is None:
            self._rows = np.empty((self._most, block.shape[1]), dtype=np.float32)
        return np.take(block, rows, axis=0, out=self._rows[: len(rows)], mode="clip")


def _bundled(pairs: Sequence[tuple[Rows, Rows]]) -> list[Sequence[tuple[Rows, Rows]]]:
    """Return runs of pairs that are worth handing to a thread: single cells are small."""
    sizes = np.cumsum([len(row) * len(member) for row, member in pairs])
    ends = np.unique(np.append(np.flatnonzero(np.diff(sizes // _HANDED, prepend=0)), len(pairs)))
    return [pairs[start:end] for start, end in pairwise([0, *ends.tolist()]) if end > start]
