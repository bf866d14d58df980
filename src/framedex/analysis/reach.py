"""The reach of rows: which cells a row probes, so that a search among cells has a requested recall.

It is measured on a sample of rows with exact neighbours. See :mod:`framedex.analysis.cells`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import assign, take_rows
from framedex.analysis.products import Products, run_all
from framedex.core.arrays import Floats, Vectors
from framedex.core.progress import ShareProgress

_TESTED = 512  # rows with exact neighbours, to measure the reach
_CLOSEST = 3  # neighbours per row that are missed more rarely, because they decide about clusters and duplicates
_CLOSEST_MISSED = 1 / 15  # of the share of all neighbours that may be missed
_CLOSEST_COST = 1.2  # maximum number of compared rows for the closest neighbours, relative to that for the recall
_FAR_MISSED = 1 / 60  # of the share of all neighbours, that may have a larger difference for their distance
_SMALL_DISTANCE = 1e-3  # rounding decides about smaller ones
_BLOCK = 4096


@dataclass(frozen=True)
class Reach:
    """The reach of rows: the maximum difference between the similarities to their own centroid and to those they probe.

    Attributes:
        all: the reach for the recall of all neighbours, for the first of two turns.
        closest: the reach for one turn: fewer of the three closest neighbours are missed, unless this takes many more
            comparisons.
        per_distance: in a second turn a row probes cells within this many times the Euclidean distance to the nearest
            neighbour that it found.
        n_candidates: rows that a row is compared with in both turns, on average.
    """

    all: float
    closest: float
    per_distance: float
    n_candidates: float


@dataclass(frozen=True)
class ExactNeighbours:
    """Exact neighbours of a sample of rows.

    Attributes:
        vectors: float32, shape (T, D): the sample.
        neighbours: int64, shape (T, k): the rows of their neighbours, most similar first.
        similarity: float32, shape (T, k).
    """

    vectors: Vectors
    neighbours: npt.NDArray[np.int64]
    similarity: Vectors

    def reach_in(
        self, centroids: Vectors, vectors: Vectors, *, recall: float, min_similarity: float, engine: Products
    ) -> Reach:
        """Return the reach for a recall in cells of all rows; see :func:`measure_reach`."""
        listed = take_rows(vectors, self.neighbours.ravel())
        cell = assign(listed, centroids, engine=engine).reshape(self.neighbours.shape)
        return reach_of(
            self.vectors, cell, self.similarity, centroids, len(vectors), recall=recall, min_similarity=min_similarity
        )


def measure_reach(
    vectors: Vectors,
    centroids: Vectors,
    *,
    k: int,
    recall: float,
    min_similarity: float = -np.inf,
    queries: Vectors | None = None,
    engine: Products,
    random: np.random.Generator,
    progress: ShareProgress,
) -> Reach:
    """Return the reach for a recall, from a sample of rows with exact neighbours.

    Args:
        vectors: all rows.
        centroids: centroids of the cells.
        queries: other rows that search among them, of which the sample is; by default they search each other.
        k: neighbours per row.
        recall: requested share of the true neighbours, below 1.
        min_similarity: only neighbours with at least this similarity count.
        engine: computes the matrix products.
        random: selects the sample of rows.
        progress: called between blocks.
    """
    exact = exact_neighbours_of_some(vectors, k=k, queries=queries, engine=engine, random=random, progress=progress)
    return exact.reach_in(centroids, vectors, recall=recall, min_similarity=min_similarity, engine=engine)


def exact_neighbours_of_some(
    vectors: Vectors,
    *,
    k: int,
    queries: Vectors | None = None,
    engine: Products,
    random: np.random.Generator,
    progress: ShareProgress,
) -> ExactNeighbours:
    """Return exact neighbours of a sample of rows; see :func:`measure_reach`."""
    searching = vectors if queries is None else queries
    sample = tested_rows(len(searching), random)
    some = take_rows(searching, sample)
    own_rows = sample if searching is vectors else np.full_like(sample, -1)
    return ExactNeighbours(some, *_exact(vectors, own_rows, some, k, engine, progress))


def tested_rows(rows: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the rows on which a reach is measured, ascending."""
    return np.sort(random.choice(rows, min(_TESTED, rows), replace=False))


def reach_of(
    queries: Vectors,
    cell: npt.NDArray[np.int32],
    similarity: Vectors,
    centroids: Vectors,
    rows: int,
    *,
    recall: float,
    min_similarity: float = -np.inf,
    sizes: Floats | None = None,
) -> Reach:
    """Return the reach for a recall, from a sample of rows with exact neighbours.

    Args:
        queries: float32, shape (T, D): the sample.
        cell: int32, shape (T, k): the cells of their exact neighbours.
        similarity: float32, shape (T, k): the similarities of these, descending.
        centroids: centroids of the cells.
        rows: the number of rows among which they search.
        recall: requested share of the true neighbours, below 1.
        min_similarity: only neighbours with at least this similarity count.
        sizes: float32, shape (C,): about the number of rows of each cell; by default estimated from the neighbours,
            which is too much where there are many more cells than neighbours.
    """
    to_centroids = queries @ centroids.T
    own = to_centroids.max(axis=1, keepdims=True)
    difference, near = own - np.take_along_axis(to_centroids, cell, axis=1), similarity >= min_similarity
    if not near.any():
        near[:, 0] = True
        difference[:, 0] = 0
    behind, closest = difference[near], difference[:, :_CLOSEST][near[:, :_CLOSEST]]
    missed = 1 - recall
    reach = float(np.quantile(behind, recall))
    # The sample is small, so one standard error is added where no second turn follows.
    error = np.sqrt(missed * recall / len(queries))
    safe = float(np.quantile(behind, 1 - max(missed - error, missed / 2)))
    distance = np.sqrt(np.maximum(2 - 2 * similarity, 0))
    ratio = np.where(distance > _SMALL_DISTANCE, difference / np.maximum(distance, _SMALL_DISTANCE), 0)
    per_distance = float(np.quantile(ratio[near], 1 - _FAR_MISSED * missed))
    # The sizes of cells are estimated from the cells of the sample's neighbours.
    if sizes is None:
        sizes = np.bincount(cell.ravel(), minlength=len(centroids)) * (rows / cell.size)

    def n_candidates(reach: float | Vectors) -> float:
        return float(((to_centroids >= own - reach) * sizes).sum(axis=1).mean())

    limit = _CLOSEST_COST * n_candidates(safe)
    further = max(0.0, float(np.quantile(closest, 1 - _CLOSEST_MISSED * missed)) - safe)
    options = (safe + further * np.linspace(1, 0, 9)).tolist()
    return Reach(
        all=reach,
        closest=next(option for option in options if n_candidates(option) <= limit),
        per_distance=per_distance,
        n_candidates=n_candidates(np.maximum(reach, per_distance * distance[:, :1])),
    )


def _exact(
    vectors: Vectors,
    sample_rows: npt.NDArray[np.int64],
    queries: Vectors,
    k: int,
    engine: Products,
    progress: ShareProgress,
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return (rows, similarities) of the exact neighbours of sampled rows, without the row itself: shape (T, k)."""
    block = _BLOCK
    best = np.full((len(sample_rows), 0), -1, dtype=np.int64)
    scores = np.empty((len(sample_rows), 0), dtype=np.float32)

    def note(position: int, result: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        nonlocal best, scores
        best = np.concatenate([best, result[0] + position * block], axis=1)
        scores = np.concatenate([scores, result[1]], axis=1)
        scores[best == sample_rows[:, None]] = -np.inf
        keep = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best, scores = np.take_along_axis(best, keep, axis=1), np.take_along_axis(scores, keep, axis=1)
        progress(min(1.0, (position + 1) * block / len(vectors)))

    def compare(start: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        rows = take_rows(vectors, slice(start, start + block))
        return engine.largest(queries, rows, min(k + 1, len(rows)))

    run_all(engine, compare, range(0, len(vectors), block), after=note)
    return best, scores
