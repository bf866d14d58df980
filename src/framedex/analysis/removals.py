"""Rows that are taken out of an index: who takes their place in the neighbour graph."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells
from framedex.analysis.lookup import Queries, look_up
from framedex.analysis.neighbours import Graph, Lists, ignore_progress, nearest
from framedex.analysis.products import Products, best_products
from framedex.analysis.vector_sources import VectorSource
from framedex.arrays import Vectors
from framedex.progress import ShareProgress

_QUERIES = 65_536  # rows that look for neighbours in one reading of all vectors
_FEW = 4096  # so few rows are all compared anew

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Remaining:
    """What a graph becomes without some of its rows.

    Attributes:
        graph: of the rows that are left, by their new numbers; each list is at least half full.
        touched: bool, shape (M',): rows whose neighbours changed.
    """

    graph: Graph
    touched: npt.NDArray[np.bool_]


def without(
    graph: Graph,
    left: Ints,
    vectors: VectorSource,
    *,
    k: int,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Remaining:
    """Return the graph of some of its rows, in a new order.

    Lists get shorter: they end with -1, of similarity -1. Rows that have lost more than half of theirs look for others
    in the cells that the graph was made with.

    Args:
        graph: of M rows.
        left: int64, shape (M',): the rows that are left, in their new order, each once.
        vectors: of the rows that are left, in that order.
        k: neighbours a row, as the graph was made with.
        engine: multiplies.
        progress: called between blocks.
    """
    count = len(left)
    engine = engine or best_products()
    cells = None if graph.cells is None else replace(graph.cells, of_row=graph.cells.of_row[left])
    if graph.k == 0 or count <= _FEW or graph.k > count - 1:
        found = nearest(vectors.take(np.arange(count)), k=k, engine=engine, progress=progress)
        return Remaining(replace(found, cells=cells), np.ones(count, dtype=bool))
    number = np.full(len(graph.rows) + 1, -1, dtype=np.int32)
    number[left] = np.arange(count)
    rows, similarity = number[graph.rows[left]], graph.similarity[left]
    touched, short = _close_gaps(rows, similarity, graph.rows[left])
    lists = Lists.of(Graph(rows, similarity), count)
    lists.clear(short)
    for start in range(0, len(short), _QUERIES):
        some = short[start : start + _QUERIES]
        _refill(some, vectors, cells, lists, engine, progress, start / len(short), len(some) / len(short))
    progress(1.0)
    return Remaining(lists.graph(cells), touched)


def _close_gaps(
    rows: npt.NDArray[np.int32], similarity: Vectors, before: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Move what is left of each list to its front, in place.

    Returns:
        touched: bool, by row: whether something was lost.
        short: int64: the rows that have lost more than half of what a full list has.
    """
    touched = np.asarray(((rows < 0) & (before >= 0)).any(axis=1))
    some = np.flatnonzero(touched)
    order = np.argsort(rows[some] < 0, axis=1, kind="stable")
    rows[some] = np.take_along_axis(rows[some], order, axis=1)
    kept = np.take_along_axis(similarity[some], order, axis=1)
    similarity[some] = np.where(rows[some] < 0, np.float32(-1), kept)
    left = (rows[some] >= 0).sum(axis=1)
    return touched, some[left < rows.shape[1] / 2]


def _refill(
    rows: Ints,
    vectors: VectorSource,
    cells: Cells | None,
    lists: Lists,
    engine: Products,
    progress: ShareProgress,
    done: float,
    share: float,
) -> None:
    """Fill the empty lists of some rows, which takes a share of the whole; all other lists are full already."""
    queries = Queries(rows, vectors.take(rows))
    look_up(queries, vectors, cells, lists, told=0, engine=engine, progress=lambda part: progress(done + share * part))
