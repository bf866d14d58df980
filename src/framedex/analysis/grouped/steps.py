"""Steps of the neighbour search by groups: functions of a plan and an item, whose result depends on nothing else.

So an executor may run the items anywhere that the files of the plan can be opened, in any order, and again if a worker
was lost.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.analysis.cell_join import CellJoin, compare_two_steps, nearest_listed
from framedex.analysis.cells import CellProbes, further_probes, group_rows
from framedex.analysis.grouped.centroids import CellCentroids
from framedex.analysis.grouped.files import GroupFiles, PlaceReader
from framedex.analysis.grouped.grouping import Grouping
from framedex.analysis.neighbour_lists import Lists, missing_directions, sorted_lists
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import CpuProducts, Products, Survivors, best_products
from framedex.analysis.reach import Reach
from framedex.analysis.vector_sources import VectorSource
from framedex.core.arrays import Vectors
from framedex.core.atomic import write_atomic
from framedex.core.masks import true_places

FIRST, SECOND = "first", "second"
"""The turns of visits."""
_QUERIES = 4096
_PROBED = 4096  # rows of which the cells that they probe are found at a time
_MEMBERS = 16384  # rows of a cell that are compared at a time
_BUNDLE_ROWS = 512  # of cells that are compared together
_STEP_ROWS = 2048
Span = tuple[int, int]
"""The first one of some rows, and the end."""


class PartSource(Protocol):
    """Source of vectors whose parts are read by other processes, too."""

    @property
    def dimension(self) -> int:
        """The number of values per row."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def part(self, start: int, stop: int) -> VectorSource:
        """Return the source of some consecutive rows."""


@dataclass(frozen=True)
class Plan:
    """Plan of the neighbour search by groups.

    It is pickled as the path of the file that :meth:`save` wrote, as workers need it once and it may be large.

    Attributes:
        files: the files.
        source: the vectors, by row.
        spans: the rows of each part that is read at a time.
        queries: float32, shape (T, D): the rows on which the reach is measured.
        tested: int64, shape (T,): their numbers.
        centroids: the centroids of the cells, in the order in which they were found; None until they are.
        reach: how far rows probe; None until it is measured.
        grouping: the order of the cells; None until all rows have a cell.
        turn: how many times cells were found again.
    """

    files: GroupFiles
    source: PartSource
    spans: tuple[Span, ...]
    queries: Vectors
    tested: npt.NDArray[np.int64]
    centroids: CellCentroids | None = None
    reach: Reach | None = None
    grouping: Grouping | None = None
    turn: int = 0

    def save(self) -> "Plan":
        """Write the plan for other processes, and return it."""
        write_atomic(self._path, pickle.dumps(self.content, pickle.HIGHEST_PROTOCOL))
        return self

    @property
    def content(self) -> dict[str, Any]:
        """The attributes by name, which are pickled as such."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def _path(self) -> Path:
        stage = (self.centroids is not None) + (self.grouping is not None)
        return self.files.folder / f"plan-{stage}-{self.turn}"

    def __reduce__(self) -> Any:
        """Return the path from which another process reads the plan."""
        return _read_plan, (self._path, self._path.stat().st_mtime_ns)

    @property
    def order(self) -> Grouping:
        """The order of the cells, which is known."""
        assert self.grouping is not None, "all rows have a cell"
        return self.grouping


@lru_cache(maxsize=1)
def _read_plan(path: Path, _time: int) -> Plan:
    return Plan(**pickle.loads(path.read_bytes()))  # noqa: S301 - written by the process that gave the item


def engine_of_worker() -> Products:
    """Return what computes products for one item at a time."""
    best = best_products()
    return CpuProducts(workers=1) if best.name == CpuProducts.name else best


def vectors_of(source: PartSource, span: Span) -> Vectors:
    """Return the vectors of consecutive rows: float32, shape (rows, D), in memory."""
    start, stop = span
    out = np.empty((stop - start, source.dimension), dtype=np.float32)
    for first, block in source.part(start, stop).blocks():
        out[first : first + len(block)] = block
    return out


def find_exact(plan: Plan, span: Span) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return (rows, similarities) of the rows of a part that are nearest to the queries, without these themselves."""
    rows = vectors_of(plan.source, span)
    found = nearest_to(plan.queries, rows, plan.files.k + 1)
    columns = np.where(found.rows < 0, -1, found.rows.astype(np.int64) + span[0])
    found.similarity[columns == plan.tested[:, None]] = -np.inf
    return columns, found.similarity


def nearest_to(queries: Vectors, rows: Vectors, k: int) -> Lists:
    """Return the lists of the k rows that are nearest to queries, unordered."""
    found, engine, own = Lists(len(queries), k), engine_of_worker(), np.arange(len(queries), dtype=np.int32)
    for start in range(0, len(rows), _QUERIES):
        ((query, column, score),) = engine.above(queries, rows[start : start + _QUERIES], found.limits, k)
        found.offer((own[query], (column + start).astype(np.int32), score))
        found.settle()
    return found


Nearest = tuple[npt.NDArray[np.int64], Vectors]
"""(rows, similarities) of the nearest rows to some queries: shape (T, k), or more while they are collected."""


def nearer(one: Nearest, other: Nearest, k: int) -> Nearest:
    """Return the k nearest rows of both."""
    near = np.concatenate([one[0], other[0]], axis=1)
    scores = np.concatenate([one[1], other[1]], axis=1)
    keep = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(near, keep, axis=1), np.take_along_axis(scores, keep, axis=1)


def none_near(queries: int) -> Nearest:
    """Return no rows for a number of queries."""
    return np.empty((queries, 0), np.int64), np.empty((queries, 0), np.float32)


def look(plan: Plan, part: int) -> npt.NDArray[np.int32]:
    """Return the cell of each row of a part."""
    assert plan.centroids is not None, "the cells are known"
    content = vectors_of(plan.source, plan.spans[part])
    return plan.centroids.near(content, 0.0, engine=engine_of_worker())[0].astype(np.int32)


def sort_part(plan: Plan, item: tuple[int, npt.NDArray[np.int32]]) -> None:
    """Write the vectors of a part of the rows to their places.

    Args:
        plan: the plan.
        item: the number of the part, and the places of its rows.
    """
    part, places = item
    content, vectors = vectors_of(plan.source, plan.spans[part]), plan.files.vectors
    order = np.argsort(places)
    for start in range(0, len(order), _QUERIES):
        some = order[start : start + _QUERIES]
        vectors[places[some]] = content[some]


@dataclass(frozen=True)
class Sending:
    """Rows of a group that visit cells of other groups.

    Attributes:
        group: the group.
        first: the first one of its rows that have not visited yet, counted within the group.
        most: the number of visits for which there is space, at least 1; a single row is sent in any case.
    """

    group: int
    first: int
    most: int


@dataclass(frozen=True)
class Sent:
    """Result of sending the rows of a group.

    Attributes:
        comparisons: the number of computed similarities.
        visits: the number of visits.
        rest: the first row of the group for which there was no space; None if all were sent.
    """

    comparisons: int
    visits: int
    rest: int | None


class _Outbox:
    """Visits of rows of a group, in the order of the rows, until there is no space for those of a further one."""

    def __init__(self, sending: Sending) -> None:
        self._most, self.visits = sending.most, 0
        self.rest: int | None = None
        self._rows = [np.empty(0, np.int32)]
        self._cells = [np.empty(0, np.int32)]

    def put(self, rows: npt.NDArray[np.int64], cells: npt.NDArray[np.int64]) -> None:
        """Add visits of rows of the group that follow those before."""
        if self.rest is not None or not len(rows):
            return
        order = np.argsort(rows, kind="stable")
        rows, cells = rows[order], cells[order]
        space = self._most - self.visits
        if len(rows) > space:
            # The visits of a row stay together. If there is no space for the very first row, it is sent nevertheless.
            last = rows[space] if self.visits or rows[space] > rows[0] else rows[0] + 1
            end = int(np.searchsorted(rows, last))
            self.rest = int(last)
            rows, cells = rows[:end], cells[:end]
        self.visits += len(rows)
        self._rows.append(rows.astype(np.int32))
        self._cells.append(cells.astype(np.int32))

    def write(self, plan: Plan, turn: str, group: int) -> None:
        """Write the visits for the groups of the cells."""
        row, cell = np.concatenate(self._rows), np.concatenate(self._cells)
        grouping = plan.order
        place = row + np.int32(grouping.places(group).start)
        plan.files.write_visits(turn, group, place, grouping.group_of(cell), cell, len(grouping))


def join_group(plan: Plan, sending: Sending) -> Sent:
    """Write the lists of a group's rows, among the rows of the group, and their visits to cells of other groups.

    Where there is no space for all visits, the rest of the rows is sent later; the lists are written at first.
    """
    files, grouping, group = plan.files, plan.order, sending.group
    places, cells = grouping.places(group), grouping.cells(group)
    vectors, own_cells = files.part(places.start, places.stop), np.asarray(files.cell[places])
    outbox, inside, compared = _Outbox(sending), [np.empty((2, 0), np.int64)], 0
    for start in range(sending.first, len(vectors), _PROBED):
        part = slice(start, start + _PROBED)
        row, cell = _probes(plan, vectors[part], own_cells[part])
        own = (cell >= cells.start) & (cell < cells.stop)
        outbox.put(row[~own] + start, cell[~own])
        compared += len(vectors[part]) * _n_compared(plan)
        if not sending.first:
            inside.append(np.stack([row[own] + start, cell[own] - cells.start]))
        elif outbox.rest is not None:
            break
    if not sending.first:
        starts = grouping.cell_starts[cells.start : cells.stop + 1] - places.start
        lists = Lists(len(vectors), files.k)
        members = [np.arange(low, high, dtype=np.int32) for low, high in pairwise(starts.tolist())]
        join = CellJoin(vectors, members, lists, engine_of_worker())
        join.within(ignore_progress)
        row, cell = np.concatenate(inside, axis=1)
        order, ends = group_rows(cell, len(members))
        join.probe(CellProbes(row[order].astype(np.int32), ends), ignore_progress)
        files.lists[places] = np.where(lists.rows < 0, -1, lists.rows + places.start)
        files.similarity[places] = lists.similarity
        files.limits[places] = lists.similarity.min(axis=1, initial=np.inf)
        compared += lists.n_comparisons
    outbox.write(plan, FIRST, group)
    return Sent(compared, outbox.visits, outbox.rest)


def _n_compared(plan: Plan) -> int:
    assert plan.centroids is not None, "the cells are known"
    return plan.centroids.n_compared


def _probes(
    plan: Plan, vectors: Vectors, own: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (rows, cells) of the cells that some rows probe beside their own, by the positions of cells.

    A row probes further cells beyond the reach until they have some rows more than it has neighbours.
    """
    assert plan.centroids is not None, "the cells are known"
    assert plan.reach is not None, "the reach is known"
    grouping, engine = plan.order, engine_of_worker()
    nearest, row, cell = plan.centroids.near(vectors, plan.reach.all, engine=engine)
    # Of cells that are equally near, rounding may take another one for the nearest than it did before.
    present = grouping.order[own]
    others = np.flatnonzero(nearest != present)
    row, cell = np.concatenate([row, others]), np.concatenate([cell, nearest[others]])
    kept = cell != present[row]
    row, cell = row[kept], cell[kept]
    sizes = np.diff(grouping.cell_starts)[grouping.rank]
    more = further_probes(vectors, plan.centroids.all, present, row, cell, sizes, 4 * plan.files.k, engine)
    return np.concatenate([row, more[0]]), grouping.rank[np.concatenate([cell, more[1]])]


def visit_group(plan: Plan, turn: str, sources: Sequence[int], group: int) -> tuple[Survivors, int]:
    """Return the candidates that rows of some groups find in the cells of one, and the number of similarities.

    Args:
        plan: the plan.
        turn: the name of the turn.
        sources: the groups of the visitors.
        group: the group that is visited.
    """
    files, grouping = plan.files, plan.order
    visiting, cells = files.visits(turn, sources, group)
    visitors, number = np.unique(visiting, return_inverse=True)
    found = Lists(len(visitors), files.k)
    found.limits = files.limits[visitors]
    known, engine = files.lists, engine_of_worker()
    starts = grouping.cell_starts[grouping.group_cells[group] : grouping.group_cells[group + 1] + 1]
    ends = np.searchsorted(cells, np.arange(grouping.group_cells[group], grouping.group_cells[group + 1] + 1))
    with PlaceReader(files) as reader:
        for first, last in bundles(starts):
            start, stop = int(starts[first]), int(starts[last])
            visitors_of_bundle = np.unique(number[ends[first] : ends[last]])
            if not len(visitors_of_bundle):
                continue
            for row, column, score in compare_visitors(
                reader, range(start, stop), visitors, visitors_of_bundle, found.limits, files.k, engine
            ):
                other = column + np.int32(start)
                new = (known[visitors[row]] != other[:, None]).all(axis=1) & (visitors[row] != other)
                found.offer((row[new], other[new], score[new]))
            found.n_comparisons += len(visitors_of_bundle) * (stop - start)
    found.settle()
    row, column = true_places(found.rows >= 0)
    return (visitors[row], found.rows[row, column], found.similarity[row, column]), found.n_comparisons


def bundles(starts: npt.NDArray[np.int64]) -> Iterator[Span]:
    """Yield (first, end) of consecutive cells that are compared together: small ones, or a single larger one.

    Small cells that lie near each other have mostly the same visitors, and to read these takes longer than to compare
    them.

    Args:
        starts: int64, shape (C + 1,): where the rows of each cell begin, and the end.
    """
    first, count = 0, len(starts) - 1
    while first < count:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _BUNDLE_ROWS, side="right")) - 1)
        if starts[last] > starts[first]:
            yield first, last
        first = last


def compare_visitors(
    reader: PlaceReader,
    members: npt.NDArray[np.int32] | range,
    visitors: npt.NDArray[np.int32],
    numbers: npt.NDArray[np.int64],
    limits: Vectors,
    k: int,
    engine: Products,
) -> Iterator[Survivors]:
    """Yield (visitor's number, member's number, similarity) above the visitors' limits, for visitors of one cell.

    Args:
        reader: reads the vectors.
        members: the places of the members of the cell.
        visitors: int32, shape (V,): the places of visitors.
        numbers: int64: the numbers of those that visit the cell, among all visitors.
        limits: float32, shape (V,): by visitor's number.
        k: see :meth:`Products.above`.
        engine: computes the matrix products.
    """
    for first in range(0, len(members), _MEMBERS):
        content = reader.take(members[first : first + _MEMBERS])
        for start in range(0, len(numbers), _QUERIES):
            some = numbers[start : start + _QUERIES]
            queries = reader.take(visitors[some])
            ((row, column, score),) = engine.above(queries, content, limits[some], k + 1)
            yield some[row], (column + first).astype(np.int32), score


def look_further(plan: Plan, sending: Sending) -> Sent:
    """Write which cells rows of a group visit that are far from their nearest neighbour."""
    assert plan.centroids is not None, "the cells are known"
    assert plan.reach is not None, "the reach is known"
    files, reach, compared = plan.files, plan.reach, 0
    places = plan.order.places(sending.group)
    nearest = files.similarity[places].max(axis=1, initial=-np.inf)
    further = reach.per_distance * np.sqrt(np.maximum(2 - 2 * nearest, 0))
    far = np.flatnonzero(further > reach.all)
    far = far[far >= sending.first]
    outbox, vectors = _Outbox(sending), files.part(places.start, places.stop)
    for start in range(0, len(far), _PROBED):
        some = far[start : start + _PROBED]
        _, row, cell = plan.centroids.near(vectors[some], further[some], engine=engine_of_worker(), beyond=reach.all)
        outbox.put(some[row], plan.order.rank[cell])
        compared += len(some) * _n_compared(plan)
        if outbox.rest is not None:
            break
    outbox.write(plan, SECOND, sending.group)
    return Sent(compared, outbox.visits, outbox.rest)


def join_with_all(plan: Plan, group: int) -> int:
    """Write the lists of a group's rows, among all rows; return the number of computed similarities."""
    files, places, engine = plan.files, plan.order.places(group), engine_of_worker()
    own = np.arange(places.start, places.stop, dtype=np.int32)
    found = Lists(len(own), files.k)
    with PlaceReader(files) as reader:
        for row, other, score in compare_visitors(
            reader, range(files.rows), own, np.arange(len(own)), found.limits, files.k, engine
        ):
            foreign = own[row] != other
            found.offer((row[foreign], other[foreign], score[foreign]))
            found.settle()
    files.lists[places], files.similarity[places], files.limits[places] = found.rows, found.similarity, found.limits
    return len(own) * files.rows


def share_lists(plan: Plan, span: Span) -> Survivors:
    """Return candidates for rows that some rows list, but that do not list these."""
    files = plan.files
    return missing_directions(files.lists, files.similarity, files.limits, slice(*span))


def note_nearest(plan: Plan, span: Span) -> None:
    """Write the nearest neighbours of some rows."""
    files, part = plan.files, slice(*span)
    files.nearest[part] = nearest_listed(files.lists[part], files.similarity[part])


def step_twice(plan: Plan, span: Span) -> Survivors:
    """Return candidates for some rows among the neighbours of their neighbours."""
    files = plan.files
    found = [
        compare_two_steps(
            files.vectors,
            np.arange(start, min(start + _STEP_ROWS, span[1]), dtype=np.int32),
            files.nearest,
            files.lists,
            files.cell,
            files.limits,
        )
        for start in range(*span, _STEP_ROWS)
    ]
    row, other, score = (np.concatenate([each[part] for each in found]) for part in range(3))
    return row, other, score


def sort_lists(plan: Plan, span: Span) -> tuple[npt.NDArray[np.int32], Vectors]:
    """Return the lists of some rows, sorted by similarity, and the similarities.

    The caller writes them: a worker that is lost between two writes would leave a list whose parts do not belong
    together, and its successor would sort that.
    """
    files, part = plan.files, slice(*span)
    rows, similarity = sorted_lists(files.lists[part], files.similarity[part], files.row)
    return rows, np.maximum(similarity, -1)
