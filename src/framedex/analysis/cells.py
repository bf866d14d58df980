"""Cells of an inverted file: a partition of the vectors, so that each vector is compared with nearby ones only.

Centroids are computed by spherical k-means on a sample (J. Sivic & A. Zisserman, "Video Google", 2003, for inverted
files; I. Dhillon & D. Modha, 2001, for k-means with cosine similarity). A row probes each cell whose centroid is nearly
as similar as the centroid of its own cell. The maximum difference is the *reach*. It is measured for the requested
recall (:mod:`framedex.analysis.reach`). So rows inside of a cluster probe one or two cells, and rows between
clusters probe many.

Most nearest neighbours that are missed so are those of rows far from all others. So in a second turn such rows probe
further cells: the farther the nearest neighbour that was found, the larger the difference that another one may have.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from framedex.analysis.products import Products, run_all
from framedex.analysis.runs import add_by_group
from framedex.core.arrays import Vectors
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

_CELL_ROWS = 500
_SAMPLE_ROWS = 32  # per centroid
_ROUNDS = 6
_BLOCK = 4096
_MAX_PROBES = 64  # cells that a row in a sparse region probes at most


@dataclass(frozen=True)
class Cells:
    """Partition of rows into cells.

    Attributes:
        centroids: float32, shape (C, D), unit length.
        of_row: int32, shape (N,): the cell of each row.
        reach: a row probes a cell if its centroid is at most this much less similar than the row's own centroid.
    """

    centroids: Vectors
    of_row: npt.NDArray[np.int32]
    reach: float


@dataclass(frozen=True)
class RowCells:
    """The cells of rows that change, as they were found last.

    Attributes:
        of_row: int32, shape (N,): the cell of each row.
        is_known: bool, shape (N,): whether it was found since the row changed.
    """

    of_row: npt.NDArray[np.int32]
    is_known: npt.NDArray[np.bool_]

    @classmethod
    def unknown(cls, rows: int) -> "RowCells":
        """Return the cells of rows of which none was found yet."""
        return cls(np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=bool))

    def taken(self, rows: npt.NDArray[np.integer]) -> "RowCells":
        """Return the cells of some rows, renumbered from 0."""
        return RowCells(self.of_row[rows], self.is_known[rows])

    def find(self, vectors: Vectors, centroids: Vectors, *, engine: Products) -> None:
        """Find the cells that are not known."""
        if self.is_known.any():
            rows = np.flatnonzero(~self.is_known)
            self.of_row[rows] = assign(vectors, centroids, engine=engine, rows=rows)
        else:  # no row has to be copied
            self.of_row[:] = assign(vectors, centroids, engine=engine)
        self.is_known[:] = True


def without_rows(cells: Cells | None) -> Cells | None:
    """Return the centroids and the reach of cells, without the cells of rows."""
    return None if cells is None else replace(cells, of_row=np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class CellProbes:
    """Rows that probe cells other than their own, grouped by cell.

    Attributes:
        rows: int32: the rows that probe cell 0, then the rows that probe cell 1…
        starts: int64, shape (C + 1,): the index in *rows* at which each cell begins, and the end.
    """

    rows: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    def into(self, cell: int) -> npt.NDArray[np.int32]:
        """Return the rows that probe a cell."""
        return self.rows[self.starts[cell] : self.starts[cell + 1]]


class RowBlocks(Protocol):
    """A matrix, or anything of which slices of rows are read."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, part: slice, /) -> Vectors:
        """Return a slice of the rows."""


def take_rows(vectors: Any, rows: npt.NDArray[np.integer] | slice) -> Vectors:
    """Return rows of a matrix, which may be float16 or memory-mapped, as float32 in memory."""
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def cell_count(rows: int) -> int:
    """Return the number of cells for a number of rows.

    A cell has about 500 rows. Above a million rows the number of cells grows with the square root of the rows, which
    limits the cost of comparing every row with every centroid.
    """
    return max(1, int(min(rows / _CELL_ROWS, 2 * np.sqrt(rows))))


def find_centroids(
    vectors: Vectors, count: int, *, engine: Products, random: np.random.Generator, progress: ShareProgress
) -> Vectors:
    """Return the centroids of *count* cells: float32, shape (count, D), unit length."""
    sample = take_rows(vectors, sample_rows(len(vectors), count, random))
    return centroids_of(sample, count, engine=engine, random=random, progress=progress)


def sample_rows(rows: int, count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows of which the centroids of *count* cells are found: some per cell, ascending."""
    return np.sort(random.choice(rows, min(rows, _SAMPLE_ROWS * count), replace=False))


def centroids_of(
    sample: Vectors, count: int, *, engine: Products, random: np.random.Generator, progress: ShareProgress
) -> Vectors:
    """Return the centroids of *count* cells of a sample: float32, shape (count, D), unit length."""
    centroids = _unit(sample[np.sort(random.choice(len(sample), count, replace=False))])
    for turn in range(_ROUNDS):
        cell = assign(sample, centroids, engine=engine)
        centroids = _mean_directions(sample, cell, centroids, random)
        progress((turn + 1) / _ROUNDS)
    return centroids


def assign(
    vectors: Vectors, centroids: Vectors, *, engine: Products, rows: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.int32]:
    """Return the cell of each row, or of some rows: int32, shape (N,)."""
    count = len(vectors) if rows is None else len(rows)
    cell = np.empty(count, dtype=np.int32)

    def compare(start: int) -> npt.NDArray[np.int64]:
        part = slice(start, start + _BLOCK)
        return engine.largest(take_rows(vectors, part if rows is None else rows[part]), centroids, 1)[0][:, 0]

    def note(position: int, columns: npt.NDArray[np.int64]) -> None:
        cell[position * _BLOCK : position * _BLOCK + len(columns)] = columns

    run_all(engine, compare, range(0, count, _BLOCK), after=note)
    return cell


def _mean_directions(
    sample: Vectors, cell: npt.NDArray[np.int32], centroids: Vectors, random: np.random.Generator
) -> Vectors:
    """Return the mean directions of the cells; an empty cell restarts at a random row."""
    sums = np.zeros_like(centroids)
    add_by_group(sums, sample, cell)
    empty = np.flatnonzero(np.bincount(cell, minlength=len(centroids)) == 0)
    sums[empty] = sample[random.integers(0, len(sample), len(empty))]
    return _unit(sums)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def group_rows(group: npt.NDArray[np.integer], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (order, starts): row numbers sorted by group (stable), and the start of each group, and the end."""
    order = np.argsort(group, kind="stable")
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(group, minlength=count), out=starts[1:])
    return order, starts


def probe_cells(
    vectors: RowBlocks,
    centroids: Vectors,
    reach: float,
    *,
    min_rows: int,
    occupancy: npt.NDArray[np.int64] | None = None,
    engine: Products,
    progress: ShareProgress,
) -> tuple[npt.NDArray[np.int32], CellProbes]:
    """Return the cell of each row, and the other cells that each row probes.

    Args:
        vectors: float32, shape (N, D); read by slices alone where *min_rows* is 0.
        centroids: centroids of the cells.
        reach: see :class:`Cells`.
        min_rows: a row probes further cells beyond the reach until they contain this many rows, including itself.
        occupancy: int64, shape (C,): the number of further rows in each cell, which are not in *vectors*.
        engine: computes the matrix products.
        progress: called between blocks of rows.
    """
    count = len(vectors)
    cell = np.empty(count, dtype=np.int32)
    rows: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    cells: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]

    def note(position: int, result: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> None:
        own, row, column = result
        start = position * _BLOCK
        cell[start : start + len(own)] = own
        rows.append((row + start).astype(np.int32))
        cells.append(column.astype(np.int32))
        progress(min(1.0, (start + _BLOCK) / count))

    run_all(
        engine,
        lambda start: engine.near(take_rows(vectors, slice(start, start + _BLOCK)), centroids, reach),
        range(0, count, _BLOCK),
        after=note,
    )
    sizes = np.bincount(cell, minlength=len(centroids)) + (0 if occupancy is None else occupancy)
    few = cast("Vectors", vectors)  # more than slices are read only where rows have too few candidates
    further = further_probes(few, centroids, cell, np.concatenate(rows), np.concatenate(cells), sizes, min_rows, engine)
    flat = np.concatenate([*cells, further[1]])
    order, starts = group_rows(flat, len(centroids))
    return cell, CellProbes(np.concatenate([*rows, further[0]])[order], starts)


def probe_further(
    vectors: Vectors,
    centroids: Vectors,
    probes: CellProbes,
    of_row: npt.NDArray[np.int32],
    *,
    rows: npt.NDArray[np.integer],
    reach: Vectors,
    engine: Products,
    progress: ShareProgress,
) -> CellProbes:
    """Return the cells within a larger reach that some rows have not probed.

    Args:
        vectors: float32, shape (N, D).
        centroids: centroids of the cells.
        probes: the probes of all rows before, without those of their own cells.
        of_row: int32, shape (N,): the cell of each row.
        rows: shape (R,): the rows that probe again.
        reach: float32, shape (R,): how far each of them does.
        engine: computes the matrix products.
        progress: called between blocks of rows.
    """
    count = len(centroids)
    again = np.zeros(len(vectors), dtype=bool)
    again[rows] = True
    before = again[probes.rows]
    cell = np.repeat(np.arange(count), np.diff(probes.starts))[before]
    probed = np.sort(probes.rows[before].astype(np.int64) * count + cell)
    keys: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]

    def near(start: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        part = slice(start, start + _BLOCK)
        return engine.near(take_rows(vectors, rows[part]), centroids, reach[part])

    def note(position: int, result: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> None:
        _, row, column = result
        # The nearest centroid may be another one now, where rounding decides.
        other = of_row[rows[position * _BLOCK + row]] != column
        row, column = row[other], column[other]
        found = rows[position * _BLOCK + row].astype(np.int64) * count + column
        place = np.searchsorted(probed, found)
        known = place < len(probed)
        known[known] = probed[place[known]] == found[known]
        keys.append(found[~known])
        progress(min(1.0, (position + 1) * _BLOCK / len(rows)))

    run_all(engine, near, range(0, len(rows), _BLOCK), after=note)
    new = np.concatenate(keys)
    order, starts = group_rows(new % count, count)
    return CellProbes((new // count).astype(np.int32)[order], starts)


def further_probes(
    vectors: Vectors,
    centroids: Vectors,
    cell: npt.NDArray[np.integer],
    row: npt.NDArray[np.integer],
    column: npt.NDArray[np.integer],
    sizes: npt.NDArray[np.int64],
    min_rows: int,
    engine: Products,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return (rows, cells) of the further probes of rows that have too few candidates within the reach."""
    seen = sizes[cell] + np.bincount(row, weights=sizes[column], minlength=len(cell))
    few = np.flatnonzero(seen < min_rows)
    rows: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    cells: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    again = seen[row] < min_rows
    probed = row[again].astype(np.int64) * len(centroids) + column[again]
    n_nearest = min(_MAX_PROBES, len(centroids))
    for start in range(0, len(few), _BLOCK):
        some = few[start : start + _BLOCK]
        nearest, _ = engine.largest(take_rows(vectors, some), centroids, n_nearest)
        before = np.cumsum(sizes[nearest], axis=1) - sizes[nearest]
        needed = (before < min_rows) & (nearest != cell[some][:, None])
        item, rank = true_places(needed)
        new = ~np.isin(some[item] * len(centroids) + nearest[item, rank], probed)
        rows.append(some[item][new].astype(np.int32))
        cells.append(nearest[item, rank][new].astype(np.int32))
    return np.concatenate(rows), np.concatenate(cells)
