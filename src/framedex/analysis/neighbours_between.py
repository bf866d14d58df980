"""Neighbours of the rows of two sets in the other set, by cosine similarity.

As for the neighbour graph of one set (:mod:`framedex.analysis.neighbours`), few rows are all compared. Of many, each
row is compared with the rows of the other set in the cells that it probes. So neither time nor memory grow with the
number of pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import CellProbes, cell_count, find_centroids, group_rows, probe_cells
from framedex.analysis.cells import take_rows as take
from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products, run_all
from framedex.analysis.reach import measure_reach
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

_EXACT_PAIRS = 50_000_000  # up to this number, comparing all pairs takes a second or less
_TILE = 1024  # rows of a set compared at a time; larger tiles take more memory and no less time
_OVERHEAD = 2.0  # cost of small products, sorting and gathering, relative to large products

Rows = npt.NDArray[np.integer]


def nearest_between(
    here: npt.NDArray[np.floating],
    there: npt.NDArray[np.floating],
    *,
    k: int,
    recall: float,
    seed: int = 0,
    exact: bool | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> NeighbourGraph:
    """Return the k nearest neighbours of each row of two sets in the other set.

    Memory in addition to the vectors: 8·k bytes per row for the result, and some 100 MB for blocks.

    Args:
        here: float32 or float16, shape (N, D), unit length.
        there: float32 or float16, shape (M, D), unit length.
        k: neighbours per row.
        recall: the requested share of true neighbours, above 0.5, below 1, measured on a sample. Near neighbours are
            found more often than far ones.
        seed: seed of the random samples.
        exact: True compares all pairs, False always uses cells; None selects the cheaper way for the recall.
        engine: computes the matrix products; by default on the GPU if there is one, else on the CPU.
        progress: called between blocks.

    Returns:
        The graph of N + M rows, those of *here* first. Lists end with -1 where the other set has fewer than k rows.
    """
    lists = Lists(len(here) + len(there), k)
    if not len(here) or not len(there):
        return lists.graph(None)
    is_large = len(here) * len(there) > _EXACT_PAIRS
    engine = engine or (best_products() if is_large else CpuProducts())
    sides = (_Side(here, 0), _Side(there, len(here)))
    if exact is False or (exact is None and is_large):
        join = _CellJoin.of(sides, k, recall, np.random.default_rng(seed), engine, _part(progress, 0.0, 0.4))
        if exact is False or _OVERHEAD * join.n_candidates < len(here) * len(there):
            join.run(lists, engine, _part(progress, 0.4, 1.0))
            return lists.graph(None)
        progress = _part(progress, 0.4, 1.0)
    pairs = [
        (np.arange(a, min(a + _TILE, len(here))), np.arange(b, min(b + _TILE, len(there))))
        for a in range(0, len(here), _TILE)
        for b in range(0, len(there), _TILE)
    ]
    _compare(sides, iter(pairs), len(pairs), lists, engine, progress, both_ways=True)
    lists.settle()
    return lists.graph(None)


def _part(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    return lambda share: progress(start + (end - start) * share)


@dataclass(frozen=True)
class _Side:
    """One of the two sets.

    Attributes:
        vectors: shape (N, D).
        first: the number of its first row among all rows.
    """

    vectors: npt.NDArray[np.floating]
    first: int


_Sides = tuple[_Side, _Side]


def _compare(
    sides: _Sides,
    pairs: Iterator[tuple[Rows, Rows]],
    count: int,
    lists: Lists,
    engine: Products,
    progress: ShareProgress,
    *,
    both_ways: bool,
) -> None:
    """Compare rows of the first side with rows of the second one, and offer them to the lists of the first, or of both.

    Args:
        sides: the side whose rows search, and the other one.
        pairs: rows of both sides to compare.
        count: the number of pairs.
        lists: the lists of all rows.
        engine: computes the matrix products.
        progress: called between pairs.
        both_ways: whether the rows of the second side search, too.
    """
    one, other = sides
    k = lists.rows.shape[1]

    def with_limits(pair: tuple[Rows, Rows]) -> tuple[Rows, Rows, Vectors, Vectors | None]:
        # The limits are read here: on a thread, its timing would decide between equally near neighbours.
        a, b = pair
        return a, b, lists.limits[a + one.first], lists.limits[b + other.first] if both_ways else None

    def compared(item: tuple[Rows, Rows, Vectors, Vectors | None]) -> list[Survivors]:
        a, b, limits, reverse_limits = item
        found = engine.above(take(one.vectors, a), take(other.vectors, b), limits, k, reverse_limits=reverse_limits)
        row, column, score = found[0]
        offers: list[Survivors] = [(a[row] + one.first, b[column] + other.first, score)]
        if both_ways:
            back, mine, same = found[1]
            offers.append((b[back] + other.first, a[mine] + one.first, same))
        return offers

    def offer(position: int, offers: list[Survivors]) -> None:
        for each in offers:
            lists.offer(each)
        progress((position + 1) / count)

    run_all(engine, compared, map(with_limits, pairs), after=offer)


@dataclass(frozen=True)
class _CellJoin:
    """A comparison of the rows of two sets by cells.

    Attributes:
        sides: the sets.
        members: the rows of each set in each cell.
        probes: the rows of each set that probe cells other than their own.
        n_candidates: about the number of pairs that are compared.
    """

    sides: _Sides
    members: tuple[list[Rows], list[Rows]]
    probes: tuple[CellProbes, CellProbes]
    n_candidates: float

    @classmethod
    def of(
        cls,
        sides: _Sides,
        k: int,
        recall: float,
        random: np.random.Generator,
        engine: Products,
        progress: ShareProgress,
    ) -> "_CellJoin":
        """Sort the rows into cells, of which the larger set has the centroids."""
        larger = max(sides, key=lambda side: len(side.vectors)).vectors
        count = cell_count(len(larger))
        centroids = find_centroids(larger, count, engine=engine, random=random, progress=_part(progress, 0.0, 0.3))
        members: list[list[Rows]] = []
        probes, n_candidates = [], 0.0
        for number, (side, other) in enumerate((sides, sides[::-1])):
            start = 0.3 + 0.35 * number
            reach = measure_reach(
                other.vectors,
                centroids,
                queries=side.vectors,
                k=k,
                recall=recall,
                engine=engine,
                random=random,
                progress=_part(progress, start, start + 0.15),
            )
            of_row, its_probes = probe_cells(
                side.vectors,
                centroids,
                reach.closest,
                min_rows=0,
                engine=engine,
                progress=_part(progress, start + 0.15, start + 0.35),
            )
            order, starts = group_rows(of_row, count)
            members.append([order[a:b] for a, b in pairwise(starts.tolist())])
            probes.append(its_probes)
            n_candidates += len(side.vectors) * (count + reach.n_candidates)
        return cls(sides, (members[0], members[1]), (probes[0], probes[1]), n_candidates)

    def run(self, lists: Lists, engine: Products, progress: ShareProgress) -> None:
        """Compare the rows of each cell with those of the other set in it, and of those that probe it."""
        within: list[tuple[Rows, Rows]] = [*zip(*self.members, strict=True)]
        self._compare(self.sides, within, lists, engine, _part(progress, 0.0, 0.3), both_ways=True)
        for number in range(2):
            into: list[tuple[Rows, Rows]] = [
                (self.probes[number].into(cell), rows) for cell, rows in enumerate(self.members[1 - number])
            ]
            sides = self.sides if number == 0 else self.sides[::-1]
            start = 0.3 + 0.35 * number
            self._compare(sides, into, lists, engine, _part(progress, start, start + 0.35), both_ways=False)
        lists.settle()
        lists.share()
        progress(1.0)

    @staticmethod
    def _compare(
        sides: _Sides,
        pairs: list[tuple[Rows, Rows]],
        lists: Lists,
        engine: Products,
        progress: ShareProgress,
        *,
        both_ways: bool,
    ) -> None:
        count = sum(_tiles(len(a)) * _tiles(len(b)) for a, b in pairs)
        if not count:
            return
        parts = (
            (a[low : low + _TILE], b[start : start + _TILE])
            for a, b in pairs
            for low in range(0, len(a), _TILE)
            for start in range(0, len(b), _TILE)
        )
        _compare(sides, parts, count, lists, engine, progress, both_ways=both_ways)
        lists.settle()


def _tiles(rows: int) -> int:
    return -(-rows // _TILE)
