"""Centroids of many cells, found through coarse centroids, so that a row is not compared with all of them."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, centroids_of, group_rows
from framedex.analysis.products import Products, near_best
from framedex.core.arrays import Vectors
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

_COARSE_ROWS = 256  # of the sample, per coarse centroid
_BLOCK = 2048
_FEWEST = 0.25  # of the mean number of rows of a centroid
_FOUND = 0.998  # share of the centroids within a reach that are found through coarse ones
_LEAST = 4  # coarse centroids of a row
_WORTH = 3  # a row is compared with so many times fewer centroids, else with all of them

Columns = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CellCentroids:
    """Centroids of cells, sorted by coarse centroid if there are coarse ones.

    Attributes:
        all: float32, shape (C, D), unit length: the centroids of cells.
        coarse: float32, shape (T, D): the coarse centroids; None if rows are compared with all centroids.
        starts: int64, shape (T + 1,): the number of the first cell of each coarse centroid, and the end.
        n_coarse: the number of coarse centroids through which the cells of a row are found.
    """

    all: Vectors
    coarse: Vectors | None = None
    starts: npt.NDArray[np.int64] | None = None
    n_coarse: int = 0

    def __len__(self) -> int:
        return len(self.all)

    @property
    def n_compared(self) -> int:
        """The number of centroids that a row is compared with, on average."""
        if self.coarse is None:
            return len(self.all)
        return len(self.coarse) + self.n_coarse * len(self.all) // len(self.coarse)

    def near(
        self, rows: Vectors, reach: float | Vectors, *, engine: Products, beyond: float | None = None
    ) -> tuple[Columns, Columns, Columns]:
        """Return the nearest cell of each row, and (rows, cells) of others that are almost as near.

        Args:
            rows: float32, shape (R, D).
            reach: see :meth:`Products.near`.
            engine: computes the matrix products.
            beyond: see :meth:`Products.near`.
        """
        if self.coarse is None:
            return engine.near(rows, self.all, reach, beyond=beyond)
        own, row, column = np.empty(len(rows), np.int64), [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            scores, first = self._scores(rows[part])
            some = reach[part] if isinstance(reach, np.ndarray) else reach
            best, near, place = near_best(scores.reshape(len(scores), -1), some, beyond)
            width = scores.shape[2]
            own[part] = first[np.arange(len(first)), best // width] + best % width
            row.append(near + start)
            column.append(first[near, place // width] + place % width)
        return own, np.concatenate(row), np.concatenate(column)

    def _scores(self, rows: Vectors) -> tuple[Vectors, Columns]:
        """Return the similarities of rows to the cells of their nearest coarse centroids, and the first cell of each.

        They have the shapes (R, P, W) and (R, P) for P coarse centroids of at most W cells; similarities are -inf
        beyond the last cell of a coarse centroid.
        """
        assert self.coarse is not None, "cells are found through coarse centroids"
        assert self.starts is not None, "cells are found through coarse centroids"
        coarse = np.argpartition(-(rows @ self.coarse.T), self.n_coarse - 1, axis=1)[:, : self.n_coarse]
        coarse.sort(axis=1)  # so that of equal scores the first centroid counts
        scores = np.full((*coarse.shape, int(np.diff(self.starts).max())), -np.inf, dtype=np.float32)
        order, starts = group_rows(coarse.ravel(), len(self.coarse))
        for number in np.flatnonzero(np.diff(starts)).tolist():
            row, place = np.divmod(order[starts[number] : starts[number + 1]], self.n_coarse)
            cells = self.all[self.starts[number] : self.starts[number + 1]]
            scores[row, place, : len(cells)] = rows[row] @ cells.T
        return scores, self.starts[coarse]


def find_cell_centroids(
    sample: Vectors, count: int, *, engine: Products, random: np.random.Generator, progress: ShareProgress
) -> CellCentroids:
    """Return about *count* centroids through coarse ones: k-means of a sample, and again of the rows of each centroid.

    Args:
        sample: float32, shape (S, D): vectors of some rows.
        count: the number of centroids.
        engine: computes the matrix products.
        random: selects where centroids begin.
        progress: called between coarse centroids.
    """
    n_coarse = max(1, round(np.sqrt(count)))
    some = np.sort(random.choice(len(sample), min(len(sample), _COARSE_ROWS * n_coarse), replace=False))
    coarse = centroids_of(
        sample[some], n_coarse, engine=engine, random=random, progress=lambda share: progress(0.3 * share)
    )
    order, starts = group_rows(assign(sample, coarse, engine=engine), n_coarse)
    parts, kept = [], []
    for number in range(n_coarse):
        rows = order[starts[number] : starts[number + 1]]
        if len(rows):
            kept.append(number)
            cells = max(1, round(count * len(rows) / len(sample)))
            parts.append(_used_centroids(sample[rows], cells, engine, random))
        progress(0.3 + 0.7 * (number + 1) / n_coarse)
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return CellCentroids(np.concatenate(parts), coarse[kept], ends, min(_LEAST, len(kept)))


def _used_centroids(sample: Vectors, count: int, engine: Products, random: np.random.Generator) -> Vectors:
    """Return at most *count* centroids, without those that are the nearest of few rows.

    Where a cluster has no structure within, few centroids get most of its rows, and all others a handful.
    """
    found = centroids_of(sample, count, engine=engine, random=random, progress=lambda _share: None)
    rows = np.bincount(assign(sample, found, engine=engine), minlength=count)
    used = rows >= min(_FEWEST * len(sample) / count, rows.max())
    return np.ascontiguousarray(found[used])


def with_few_coarse(centroids: CellCentroids, queries: Vectors, reach: Vectors) -> CellCentroids:
    """Return centroids with as few coarse centroids for a row as find nearly all cells within reach.

    Args:
        centroids: the centroids.
        queries: float32, shape (T, D): a sample of rows.
        reach: float32, shape (T,): the reach of each of them.
    """
    if centroids.coarse is None or centroids.starts is None:
        return centroids
    scores = queries @ centroids.all.T
    row, cell = true_places(scores >= scores.max(axis=1, keepdims=True) - reach[:, None])
    rank = np.argsort(np.argsort(-(queries @ centroids.coarse.T), axis=1), axis=1)
    coarse = np.searchsorted(centroids.starts, cell, side="right") - 1
    needed = int(np.quantile(rank[row, coarse], _FOUND, method="higher")) + 1
    few = replace(centroids, n_coarse=min(len(centroids.coarse), max(_LEAST, needed)))
    return few if few.n_compared * _WORTH <= len(centroids) else CellCentroids(centroids.all)
