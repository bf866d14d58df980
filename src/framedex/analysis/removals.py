"""Removal of rows from a neighbour graph, with new neighbours for the remaining rows."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells
from framedex.analysis.lookup import Queries, look_up
from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.products import Products, best_products
from framedex.analysis.vector_sources import VectorSource
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

_QUERIES = 65_536  # rows that search for neighbours in one pass over all vectors
_FEW = 4096  # up to this number of remaining rows, the graph is rebuilt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Remaining:
    """Neighbour graph of the remaining rows after a removal.

    Attributes:
        graph: neighbours of the remaining rows, by their new numbers; each list is at least half full.
        touched: bool, shape (M',): true for rows whose neighbours changed.
    """

    graph: NeighbourGraph
    touched: npt.NDArray[np.bool_]


def without(
    graph: NeighbourGraph,
    rows: Ints,
    vectors: VectorSource,
    *,
    k: int,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Remaining:
    """Return the neighbour graph restricted to some rows, in a new order.

    Lists get shorter: they end with -1, with the similarity -1. Rows that have lost more than half of their neighbours
    search for new ones in the cells of the graph.

    Args:
        graph: neighbours of M rows.
        rows: int64, shape (M',): the remaining rows, in their new order, each once.
        vectors: vectors of the remaining rows, in their new order.
        k: neighbours per row, as in the existing graph.
        engine: computes the matrix products.
        progress: called between blocks.
    """
    count = len(rows)
    engine = engine or best_products()
    cells = None if graph.cells is None else replace(graph.cells, of_row=graph.cells.of_row[rows])
    if graph.k == 0 or count <= _FEW or graph.k > count - 1:
        rebuilt = nearest(vectors.take(np.arange(count)), k=k, engine=engine, progress=progress)
        return Remaining(replace(rebuilt, cells=cells), np.ones(count, dtype=bool))
    number = np.full(len(graph.rows) + 1, -1, dtype=np.int32)
    number[rows] = np.arange(count)
    neighbours, similarity = number[graph.rows[rows]], graph.similarity[rows]
    touched, short = _close_gaps(neighbours, similarity, graph.rows[rows])
    lists = Lists.of(NeighbourGraph(neighbours, similarity), count)
    lists.clear(short)
    for start in range(0, len(short), _QUERIES):
        some = short[start : start + _QUERIES]
        _refill(some, vectors, cells, lists, engine, progress, start / len(short), len(some) / len(short))
    progress(1.0)
    return Remaining(lists.graph(cells), touched)


def _close_gaps(
    rows: npt.NDArray[np.int32], similarity: Vectors, before: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Move the remaining neighbours of each list to its front, in place.

    Returns:
        touched: bool, by row: true if the list has lost a neighbour.
        short: int64: the rows whose lists are less than half full.
    """
    touched = np.asarray(((rows < 0) & (before >= 0)).any(axis=1))
    some = np.flatnonzero(touched)
    order = np.argsort(rows[some] < 0, axis=1, kind="stable")
    rows[some] = np.take_along_axis(rows[some], order, axis=1)
    compacted = np.take_along_axis(similarity[some], order, axis=1)
    similarity[some] = np.where(rows[some] < 0, np.float32(-1), compacted)
    remaining = (rows[some] >= 0).sum(axis=1)
    return touched, some[remaining < rows.shape[1] / 2]


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
    """Fill the empty lists of some rows; *done* and *share* place this step within the whole progress."""
    queries = Queries(rows, vectors.take(rows))
    look_up(
        queries,
        vectors,
        cells,
        lists,
        update_below=0,
        engine=engine,
        progress=lambda part: progress(done + share * part),
    )
