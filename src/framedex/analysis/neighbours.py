"""Neighbour graph: the k nearest neighbours of each row by cosine similarity, the basis of all further analysis.

If there are few rows, all pairs are compared. Many rows are sorted into cells (see :mod:`framedex.analysis.cells`), and
each row is compared with the rows of the cells that it probes: an inverted-file self-join (H. Jégou, M. Douze &
C. Schmid, "Product quantization for nearest neighbor search", 2011, without the quantisation). The reach of the probes
is measured for the requested recall; rows that are far from all that they found probe further. If cells cost more than
comparing all pairs, as with directions without any structure, all pairs are compared.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cell_join import CellJoin
from framedex.analysis.cells import (
    CellProbes,
    Cells,
    cell_count,
    find_centroids,
    group_rows,
    probe_cells,
    probe_further,
    take_rows,
)
from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products, run_all
from framedex.analysis.reach import Reach, measure_reach
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidEmbedding, InvalidInput

DEFAULT_K = 20
DEFAULT_RECALL = 0.97
_EXACT_ROWS = 20_000  # up to this number, comparing all pairs takes a second or two
_TILE = 1024  # rows of a block when all pairs are compared
OVERHEAD = 2.0
"""The cost of small products, sorting and gathering, relative to large products."""


CostCheck = Callable[[float], None]
"""Called with the number of multiply-adds that will be needed; raises if these are too many."""


def ignore_cost(_multiply_adds: float) -> None:
    """Begin, whatever it costs."""


def ignore_progress(_share: float) -> None:
    """Ignore the progress."""


def check_vectors(vectors: Vectors) -> None:
    """Check that vectors are finite and of unit length.

    Raises:
        InvalidEmbedding: a vector is not; the message names the first such row.
    """
    for start in range(0, len(vectors), 65536):
        lengths = np.linalg.norm(vectors[start : start + 65536], axis=1)
        invalid = np.flatnonzero(~(np.abs(lengths - 1) < 1e-3))
        if len(invalid):
            row = start + int(invalid[0])
            raise InvalidEmbedding(
                f"row {row} has length {lengths[invalid[0]]}; vectors must be finite, of unit length"
            )


def nearest(
    vectors: npt.NDArray[np.floating],
    *,
    k: int = DEFAULT_K,
    recall: float = DEFAULT_RECALL,
    min_similarity: float = -np.inf,
    seed: int = 0,
    exact: bool | None = None,
    engine: Products | None = None,
    check_cost: CostCheck = ignore_cost,
    progress: ShareProgress = ignore_progress,
) -> NeighbourGraph:
    """Return the k nearest neighbours of each row, without the row itself.

    Memory in addition to the vectors: 8·k bytes per row for the result, and some 100 MB for blocks. The same input and
    seed give the same graph on the same machine.

    Args:
        vectors: float32 or float16, shape (N, D), unit length; may be memory-mapped. Exact copies should be removed
            before (:func:`unique_rows`): more than k copies fill each other's lists.
        k: neighbours per row; at most N - 1 are returned.
        recall: the requested share of true neighbours, above 0.5, below 1; a higher recall takes longer. It is measured
            on a sample, so it holds within about one percent.
        min_similarity: the recall applies to neighbours with at least this similarity; there is no guarantee for
            others.
        seed: seed of the random sample.
        exact: True compares all pairs, False always uses cells; None selects the cheaper way for the recall.
        engine: computes the matrix products; by default on the GPU if there is one, else on the CPU.
        check_cost: called before many rows are compared; raises to stop.
        progress: called between blocks.

    Raises:
        InvalidInput: the recall is outside its range.
    """
    if not 0.5 < recall < 1:
        raise InvalidInput(f"recall must be above 0.5 and below 1, not {recall!r}")
    count = len(vectors)
    k = max(0, min(k, count - 1))
    lists = Lists(count, k)
    if k == 0:
        return lists.graph(None)
    engine = engine or (best_products() if count > _EXACT_ROWS else CpuProducts())
    if exact is False or (exact is None and count > _EXACT_ROWS):
        cells = _by_cells(
            vectors, lists, k, recall, min_similarity, seed, engine, check_cost, progress, forced=exact is False
        )
        if cells is not None:
            return lists.graph(cells)
        progress = _rest(progress, 0.2)
    _by_tiles(vectors, lists, engine, progress)
    return lists.graph(None)


def _rest(progress: ShareProgress, done: float) -> ShareProgress:
    return lambda share: progress(done + (1 - done) * share)


def _by_tiles(vectors: Vectors, lists: Lists, engine: Products, progress: ShareProgress) -> None:
    """Compare all pairs of rows, each pair once."""
    count, k = lists.rows.shape
    tile = max(_TILE, k + 1)
    starts = range(0, count, tile)

    def within(start: int) -> tuple[npt.NDArray[np.int64], Vectors]:
        rows = take_rows(vectors, slice(start, start + tile))
        return engine.largest(rows, rows, min(k, len(rows) - 1), own=True)

    def note(position: int, result: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        start = position * tile
        lists.put(np.arange(start, start + len(result[0])), result[0] + start, result[1])

    run_all(engine, within, starts, after=note)
    pairs = [(a, b) for distance in range(1, len(starts)) for a, b in zip(starts, starts[distance:], strict=False)]

    def with_limits(pair: tuple[int, int]) -> tuple[slice, slice, Vectors, Vectors]:
        # The limits are read here: on a thread, its timing would decide between equally near neighbours.
        a, b = (slice(start, start + tile) for start in pair)
        return a, b, lists.limits[a].copy(), lists.limits[b].copy()

    def between(item: tuple[slice, slice, Vectors, Vectors]) -> list[Survivors]:
        a, b, limits, reverse_limits = item
        return engine.above(take_rows(vectors, a), take_rows(vectors, b), limits, k, reverse_limits=reverse_limits)

    def collect(position: int, result: list[Survivors]) -> None:
        a, b = pairs[position]
        (row, column, score), (other, back, same) = result
        lists.offer((row + a, column + b, score))
        lists.offer((other + b, back + a, same))
        progress((position + 1) / len(pairs))

    run_all(engine, between, map(with_limits, pairs), after=collect)
    lists.n_comparisons += count * (count + tile) // 2
    if not pairs:
        progress(1.0)


def _by_cells(
    vectors: Vectors,
    lists: Lists,
    k: int,
    recall: float,
    min_similarity: float,
    seed: int,
    engine: Products,
    check_cost: CostCheck,
    progress: ShareProgress,
    *,
    forced: bool,
) -> Cells | None:
    """Compare each row with the rows of the cells that it probes; return None if comparing all pairs is cheaper."""
    count, random = len(vectors), np.random.default_rng(seed)
    cells = cell_count(count)
    centroids = find_centroids(
        vectors, cells, engine=engine, random=random, progress=lambda share: progress(0.1 * share)
    )
    reach = measure_reach(
        vectors,
        centroids,
        k=k,
        recall=recall,
        min_similarity=min_similarity,
        engine=engine,
        random=random,
        progress=lambda share: progress(0.1 + 0.1 * share),
    )
    if not forced and OVERHEAD * (cells + reach.n_candidates) > count / 2:
        check_cost(count / 2 * count * vectors.shape[1])
        return None
    check_cost(OVERHEAD * (cells + reach.n_candidates) * count * vectors.shape[1])
    of_row, probes = probe_cells(
        vectors,
        centroids,
        reach.all,
        min_rows=4 * k,
        engine=engine,
        progress=lambda share: progress(0.2 + 0.1 * share),
    )
    lists.n_comparisons += count * cells
    order, starts = group_rows(of_row, cells)
    join = CellJoin(vectors, [order[a:b].astype(np.int32) for a, b in pairwise(starts)], lists, engine)
    join.within(lambda share: progress(0.3 + 0.3 * share))
    join.probe(probes, lambda share: progress(0.6 + 0.2 * share))
    _probe_again(
        vectors, lists, join, centroids, probes, of_row, reach, engine, lambda share: progress(0.8 + 0.15 * share)
    )
    lists.share()
    join.two_steps(of_row, lambda share: progress(0.95 + 0.05 * share))
    lists.complete(VectorsInMemory(vectors), engine)
    progress(1.0)
    return Cells(centroids, of_row, reach.closest)


def _probe_again(
    vectors: Vectors,
    lists: Lists,
    join: CellJoin,
    centroids: Vectors,
    probes: CellProbes,
    of_row: npt.NDArray[np.int32],
    reach: Reach,
    engine: Products,
    progress: ShareProgress,
) -> None:
    """Compare rows that are far from the nearest one that they found with the rows of further cells."""
    further = reach.per_distance * np.sqrt(np.maximum(2 - 2 * lists.similarity.max(axis=1), 0))
    far = np.flatnonzero(further > reach.all)
    probes = probe_further(
        vectors,
        centroids,
        probes,
        of_row,
        rows=far,
        reach=further[far],
        engine=engine,
        progress=lambda share: progress(0.3 * share),
    )
    lists.n_comparisons += len(far) * len(centroids)
    join.probe(probes, lambda share: progress(0.3 + 0.7 * share), again=True)


def unique_rows(vectors: Vectors) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first row of each set of identical rows, and the number of each row's set.

    Without this, thousands of exact copies would fill each other's neighbour lists and hide all other neighbours.

    Returns:
        first: int64, shape (M,), ascending.
        inverse: int64, shape (N,): ``vectors[first[inverse]]`` equals ``vectors``.
    """
    return unique_keys(row_keys(vectors))


def unique_keys(keys: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first row of each set of equal keys, and the number of each row's set; see :func:`unique_rows`."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def row_keys(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key per row; equal rows have equal keys, and collisions have a probability of about N²/2⁶⁵."""
    multipliers = np.random.default_rng(0x5EED).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), 2048):
        block = np.ascontiguousarray(vectors[start : start + 2048], dtype=np.float32)
        bits = (block + np.float32(0)).view(np.uint32).astype(np.uint64)
        # Values that differ in few bits, such as the sign, must not cancel out in the sum: spread them over 64 bits.
        bits *= np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
        keys[start : start + len(block)] = (bits * multipliers).sum(axis=1, dtype=np.uint64)
    return keys
