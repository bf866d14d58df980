"""Cells: the parts of the space that vectors are sorted into, so that each is compared with those nearby only.

Centroids are found by spherical k-means on a sample (J. Sivic & A. Zisserman, "Video Google", 2003, for the idea of
an inverted file of cells; I. Dhillon & D. Modha, 2001, for k-means by cosine). A row looks into each cell whose
centroid is nearly as near as that of its own: within a *reach* that is measured on a sample of rows, whose exact
neighbours are known, for the recall that is wanted. Rows within a cluster so look into one or two cells, rows between
clusters into many.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.products import Products, run_all
from framedex.arrays import Vectors
from framedex.progress import ShareProgress

_CELL_ROWS = 500
_SAMPLE_ROWS = 32  # for each centroid
_ROUNDS = 6
_TESTED = 512  # rows whose exact neighbours are found to measure the reach
_BLOCK = 4096
_MOST_LISTED = 64  # cells that a row with sparse surroundings looks into at most


@dataclass(frozen=True)
class Cells:
    """A division of rows into cells.

    Attributes:
        centroids: float32, shape (C, D), unit length.
        of_row: int32, shape (N,): the cell of each row.
        reach: how much less similar than its own a centroid may be for a row to look into its cell.
    """

    centroids: Vectors
    of_row: npt.NDArray[np.int32]
    reach: float


@dataclass(frozen=True)
class CellProbes:
    """Which rows look into which cells, beside their own: row numbers grouped by cell.

    Attributes:
        rows: int32: the rows that look into cell 0, then those of cell 1…
        starts: int64, shape (C + 1,): where each cell's rows begin.
    """

    rows: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    def into(self, cell: int) -> npt.NDArray[np.int32]:
        """Return the rows that look into a cell."""
        return self.rows[self.starts[cell] : self.starts[cell + 1]]


def take_rows(vectors: Vectors, rows: npt.NDArray[np.integer] | slice) -> Vectors:
    """Return some rows as float32 in memory, of a matrix that may be float16 or memory-mapped."""
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def cell_count(rows: int) -> int:
    """Return how many cells that many rows are sorted into.

    Cells of some 500 rows; above a million rows their number grows with the root only, so that comparing every row with
    every centroid does not outgrow the rest.
    """
    return max(1, int(min(rows / _CELL_ROWS, 2 * np.sqrt(rows))))


def find_centroids(
    vectors: Vectors, count: int, *, engine: Products, random: np.random.Generator, progress: ShareProgress
) -> Vectors:
    """Return centroids of *count* cells: float32, shape (count, D), unit length."""
    chosen = random.choice(len(vectors), min(len(vectors), _SAMPLE_ROWS * count), replace=False)
    sample = take_rows(vectors, np.sort(chosen))
    centroids = _unit(sample[np.sort(random.choice(len(sample), count, replace=False))])
    for turn in range(_ROUNDS):
        cell = assign(sample, centroids, engine=engine)
        centroids = _moved(sample, cell, centroids, random)
        progress((turn + 1) / _ROUNDS)
    return centroids


def assign(vectors: Vectors, centroids: Vectors, *, engine: Products) -> npt.NDArray[np.int32]:
    """Return the cell of each row: int32, shape (N,)."""
    cell = np.empty(len(vectors), dtype=np.int32)

    def note(place: int, columns: npt.NDArray[np.int64]) -> None:
        cell[place * _BLOCK : place * _BLOCK + len(columns)] = columns

    run_all(
        engine,
        lambda start: engine.largest(take_rows(vectors, slice(start, start + _BLOCK)), centroids, 1)[0][:, 0],
        range(0, len(vectors), _BLOCK),
        after=note,
    )
    return cell


def _moved(sample: Vectors, cell: npt.NDArray[np.int32], centroids: Vectors, random: np.random.Generator) -> Vectors:
    """Return the mean directions of the cells; cells that nobody chose begin anew at random rows."""
    order, starts = group_rows(cell, len(centroids))
    sizes = np.diff(starts)
    sums = np.empty_like(centroids)
    held = np.flatnonzero(sizes)
    sums[held] = np.add.reduceat(sample[order], starts[held], axis=0)
    empty = np.flatnonzero(sizes == 0)
    sums[empty] = sample[random.integers(0, len(sample), len(empty))]
    return _unit(sums)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def group_rows(group: npt.NDArray[np.integer], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (order, starts): rows sorted by group, stable, and where each of *count* groups begins, and the end."""
    order = np.argsort(group, kind="stable")
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(group, minlength=count), out=starts[1:])
    return order, starts


def measure_reach(
    vectors: Vectors,
    centroids: Vectors,
    *,
    k: int,
    recall: float,
    least: float = -np.inf,
    engine: Products,
    random: np.random.Generator,
    progress: ShareProgress,
) -> tuple[float, float]:
    """Return the reach at which rows find their neighbours, and how many rows a row is then compared with.

    Args:
        vectors: all rows.
        centroids: of the cells.
        k: neighbours a row.
        recall: wanted share of the true neighbours, below 1.
        least: only neighbours at least that similar are to be found.
        engine: multiplies.
        random: chooses the rows that are tested.
        progress: called between blocks.

    Returns:
        reach: a difference of similarities.
        compared: rows in the cells that a row looks into, on average.
    """
    tested = np.sort(random.choice(len(vectors), min(_TESTED, len(vectors)), replace=False))
    queries = take_rows(vectors, tested)
    neighbours, similarity = _exact(vectors, tested, queries, k, engine, progress)
    to_centroids = queries @ centroids.T
    own = to_centroids.max(axis=1, keepdims=True)
    cell = assign(take_rows(vectors, neighbours.ravel()), centroids, engine=engine).reshape(neighbours.shape)
    behind = (own - np.take_along_axis(to_centroids, cell, axis=1))[similarity >= least]
    # One standard error more, because the sample's rows are few.
    missed = 1 - recall
    error = np.sqrt(missed * recall / len(tested))
    reach = float(np.quantile(behind, 1 - max(missed - error, missed / 2))) if len(behind) else 0.0
    # Cells are about equally likely to be hit, weighted with their sizes, so tested rows stand for all of them.
    sizes = np.bincount(cell.ravel(), minlength=len(centroids)) * (len(vectors) / cell.size)
    looked = to_centroids >= own - reach
    return reach, float((looked * sizes).sum(axis=1).mean())


def _exact(
    vectors: Vectors,
    tested: npt.NDArray[np.int64],
    queries: Vectors,
    k: int,
    engine: Products,
    progress: ShareProgress,
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return (rows, similarities) of the exact neighbours of a few rows among all, without themselves: shape (T, k)."""
    block = 16384
    best = np.full((len(tested), 0), -1, dtype=np.int64)
    scores = np.empty((len(tested), 0), dtype=np.float32)

    def note(place: int, found: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        nonlocal best, scores
        best = np.concatenate([best, found[0] + place * block], axis=1)
        scores = np.concatenate([scores, found[1]], axis=1)
        scores[best == tested[:, None]] = -np.inf
        keep = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best, scores = np.take_along_axis(best, keep, axis=1), np.take_along_axis(scores, keep, axis=1)
        progress(min(1.0, (place + 1) * block / len(vectors)))

    def compare(start: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        rows = take_rows(vectors, slice(start, start + block))
        return engine.largest(queries, rows, min(k + 1, len(rows)))

    run_all(engine, compare, range(0, len(vectors), block), after=note)
    return best, scores


def probe_cells(
    vectors: Vectors,
    centroids: Vectors,
    reach: float,
    *,
    least: int,
    held: npt.NDArray[np.int64] | None = None,
    engine: Products,
    progress: ShareProgress,
) -> tuple[npt.NDArray[np.int32], CellProbes]:
    """Return the cell of each row, and which other cells each row looks into.

    Args:
        vectors: float32, shape (N, D).
        centroids: of the cells.
        reach: see :class:`Cells`.
        least: a row looks into more cells than the reach says until they hold so many rows, itself among them.
        held: int64, shape (C,): how many other rows each cell holds.
        engine: multiplies.
        progress: called between blocks of rows.
    """
    count = len(vectors)
    cell = np.empty(count, dtype=np.int32)
    rows: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    cells: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]

    def note(place: int, found: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> None:
        own, row, column = found
        start = place * _BLOCK
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
    sizes = np.bincount(cell, minlength=len(centroids)) + (0 if held is None else held)
    more = _further(vectors, centroids, cell, np.concatenate(rows), np.concatenate(cells), sizes, least, engine)
    flat = np.concatenate([*cells, more[1]])
    order, starts = group_rows(flat, len(centroids))
    return cell, CellProbes(np.concatenate([*rows, more[0]])[order], starts)


def _further(
    vectors: Vectors,
    centroids: Vectors,
    cell: npt.NDArray[np.int32],
    row: npt.NDArray[np.int32],
    column: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int64],
    least: int,
    engine: Products,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return (rows, cells) of the further looks of rows that would be compared with too few others."""
    seen = sizes[cell] + np.bincount(row, weights=sizes[column], minlength=len(cell))
    few = np.flatnonzero(seen < least)
    rows: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    cells: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    again = seen[row] < least
    looked = row[again].astype(np.int64) * len(centroids) + column[again]
    listed = min(_MOST_LISTED, len(centroids))
    for start in range(0, len(few), _BLOCK):
        some = few[start : start + _BLOCK]
        nearest, _ = engine.largest(take_rows(vectors, some), centroids, listed)
        before = np.cumsum(sizes[nearest], axis=1) - sizes[nearest]
        wanted = (before < least) & (nearest != cell[some][:, None])
        place, rank = np.nonzero(wanted)
        new = ~np.isin(some[place] * len(centroids) + nearest[place, rank], looked)
        rows.append(some[place][new].astype(np.int32))
        cells.append(nearest[place, rank][new].astype(np.int32))
    return np.concatenate(rows), np.concatenate(cells)
