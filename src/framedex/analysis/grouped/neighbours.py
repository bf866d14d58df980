"""Neighbour graph of rows that do not fit into memory.

It is the search of :mod:`framedex.analysis.neighbours`, on files: the same cells and the same reach, and each row is
compared with the same rows. First all rows are sorted by cell, in groups of near cells that fit into memory (see
:mod:`framedex.analysis.grouped.grouping`). Then each group is read once for the comparisons among its own rows, and
once in each round for rows of other groups that visit its cells. So a vector is mostly read together with its
neighbours, by a process that holds one group, and only lists are kept of all rows.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import Cells, assign, centroids_of, sample_rows
from framedex.analysis.grouped import steps
from framedex.analysis.grouped.centroids import CellCentroids, find_cell_centroids, with_few_coarse
from framedex.analysis.grouped.files import FileVectors, GroupFiles
from framedex.analysis.grouped.grouping import group_cells
from framedex.analysis.grouped.steps import FIRST, SECOND, PartSource, Plan, Sending, Sent, Span
from framedex.analysis.neighbour_lists import Lists, NeighbourGraph
from framedex.analysis.neighbours import DEFAULT_K, DEFAULT_RECALL, OVERHEAD, CostCheck, ignore_cost
from framedex.analysis.products import Products, Survivors
from framedex.analysis.reach import reach_of, tested_rows
from framedex.analysis.vector_sources import VectorSource
from framedex.core.arrays import Floats, Vectors
from framedex.core.progress import ShareProgress
from framedex.core.stages import Stages
from framedex.executors import Executor

CELL_ROWS = 500
"""The number of rows of a cell, on average."""
_FLAT_CELLS = 4096  # up to this number, rows are compared with all centroids
_TAKEN = 8192  # rows that are read by number at a time
OVERWRITTEN = "overwritten"
"""The stage from which on the file of vectors may have means in their place."""
_ORDER, _NEIGHBOURS = "order", "neighbours"  # the stages in which vectors are sorted, and lists are complete
_LARGER = 2  # groups of a killed process may be so many times larger than those for the memory that is free now
_CHECKED = 65536
_SIZED = 65536  # rows of which the sizes of cells are estimated
_GROUPS = 8  # of a round at least; rounds decide how products are rounded, so they do not depend on the workers
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Sizes:
    """Sizes of what is in memory at a time.

    Attributes:
        part_rows: rows that are read at a time.
        group_rows: rows of a group.
    """

    part_rows: int
    group_rows: int

    @classmethod
    def within(cls, worker_bytes: int, dimension: int) -> "Sizes":
        """Return sizes for workers that may take a number of bytes each, beside their programs."""
        rows = max(2048, min(worker_bytes // 4, 256 * 2**20) // (4 * max(1, dimension)))
        return cls(max(1024, rows // 2), rows)


class StepRunner:
    """Runs steps on an executor, with progress.

    Args:
        executor: runs the items.
        progress: called after each item, and at least twice a second with the last share; raises to stop.
    """

    def __init__(self, executor: Executor, progress: ShareProgress) -> None:
        self._executor, self._progress, self._share = executor, progress, 0.0

    def check(self) -> None:
        """Report the last share again; raises to stop."""
        self._progress(self._share)

    def note(self, share: float) -> None:
        """Report the completed share of the whole search."""
        self._share = share
        self._progress(share)

    def between(self, start: float, end: float) -> ShareProgress:
        """Return the progress of a part of the whole search."""
        return lambda share: self.note(start + (end - start) * share)

    def run(
        self, function: Callable[[T], R], items: Sequence[Any], start: float, end: float
    ) -> Generator[R, None, None]:
        """Yield the results of items in order; the share of the whole search goes from *start* to *end*."""
        for done, result in enumerate(self._executor.map(function, items, check=self.check), 1):
            yield result
            self.note(start + (end - start) * done / len(items))

    def each(
        self, function: Callable[[T], R], items: Iterable[Any], count: int, progress: ShareProgress
    ) -> Generator[R, None, None]:
        """Yield the results of *count* items in order, with a progress of their own."""
        for done, result in enumerate(self._executor.map(function, items, check=self.check), 1):
            yield result
            progress(done / count)

    def all(self, function: Callable[[T], R], items: Sequence[Any], start: float, end: float) -> list[R]:
        """Return the results of items in order."""
        return list(self.run(function, items, start, end))


def nearest_by_groups(
    source: PartSource,
    folder: Path,
    *,
    k: int = DEFAULT_K,
    recall: float = DEFAULT_RECALL,
    seed: int = 0,
    sizes: Sizes,
    executor: Executor,
    check_cost: CostCheck = ignore_cost,
    progress: ShareProgress,
) -> tuple[NeighbourGraph, Plan]:
    """Return the k nearest neighbours of each row, as :func:`framedex.analysis.neighbours.nearest` does, and the plan.

    The rows of the graph are places: rows in the order of their cells. Its arrays are mapped files.

    Args:
        source: the vectors, more than k rows.
        folder: a folder for files, on a disk, with space for :attr:`GroupFiles.nbytes`. It is empty, or has the files
            of a search of the same vectors that was killed; then the search goes on from the stages that it completed.
        k: neighbours per row.
        recall: see :func:`framedex.analysis.neighbours.nearest`.
        seed: seed of the random samples.
        sizes: sizes of what is in memory at a time.
        executor: runs the steps; its workers open files of the folder.
        check_cost: called before the rows are compared; raises to stop.
        progress: called between steps; raises to stop.
    """
    runner, stages = StepRunner(executor, progress), Stages(folder)
    found_plan = stages.get(_ORDER)
    has_vectors = stages.get(_NEIGHBOURS) is not None or stages.get(OVERWRITTEN) is None  # as far as they are needed
    if found_plan is None or not has_vectors or found_plan["sizes"].group_rows > _LARGER * sizes.group_rows:
        stages.remove(_ORDER)  # first, as no other stage counts without it
        stages.clear()
        plan = _start(source, folder, k, seed, sizes, recall, runner)
        check_cost(_multiply_adds(plan))
        plan = _sort(plan, _look(plan, runner), sizes, runner)
        content = {**plan.content, "source": None, "files": None}
        stages.once(_ORDER, lambda: {"sizes": sizes, "content": content})
    else:  # the folder may have moved, and the table may have another version
        files = GroupFiles(folder, len(source), source.dimension, k)
        plan = Plan(**{**found_plan["content"], "source": source, "files": files}).save()
    n_comparisons = stages.once(_NEIGHBOURS, lambda: _search(plan, runner))
    files, grouping = plan.files, plan.order
    assert plan.centroids is not None, "the cells are known"
    assert plan.reach is not None, "the reach is known"
    found = Cells(plan.centroids.all[grouping.order], np.asarray(files.cell), plan.reach.closest)
    return NeighbourGraph(files.lists, files.similarity, found, n_comparisons), plan


def _search(plan: Plan, runner: StepRunner) -> int:
    """Write the sorted lists of all rows; return the number of computed similarities."""
    files = plan.files
    for turn in (FIRST, SECOND):  # visits of a killed process
        files.remove_visits(turn, range(len(plan.order)))
    lists = _compare(plan, runner)
    _complete(plan, lists, runner)
    ordered = runner.run(partial(steps.sort_lists, plan), plan.spans, 0.98, 1.0)
    for (start, stop), (rows, similarity) in zip(plan.spans, ordered, strict=True):
        files.lists[start:stop], files.similarity[start:stop] = rows, similarity
    return lists.n_comparisons


def _start(
    source: PartSource, folder: Path, k: int, seed: int, sizes: Sizes, recall: float, runner: StepRunner
) -> Plan:
    """Return a plan with cells and the reach."""
    count, random = len(source), np.random.default_rng(seed)
    cells = max(1, count // CELL_ROWS)
    files = GroupFiles(folder, count, source.dimension, k)
    files.create()
    engine = steps.engine_of_worker()
    sample = _take(source.part(0, count), sample_rows(count, cells, random))
    find = runner.between(0.0, 0.05)
    if cells <= _FLAT_CELLS:
        centroids = CellCentroids(centroids_of(sample, cells, engine=engine, random=random, progress=find))
    else:
        centroids = find_cell_centroids(sample, cells, engine=engine, random=random, progress=find)
    sizes_of_cells = sizes_of(centroids, sample, count, engine)
    del sample
    tested = tested_rows(count, random)
    queries = _take(source.part(0, count), tested)
    plan = Plan(files, source, spans_of(count, sizes.part_rows), queries, tested).save()
    near, similarity = _exact(plan, runner)
    of_near = assign(_take(source.part(0, count), near.ravel()), centroids.all, engine=engine).reshape(near.shape)
    reach = reach_of(queries, of_near, similarity, centroids.all, count, recall=recall, sizes=sizes_of_cells)
    distance = np.sqrt(np.maximum(2 - 2 * similarity[:, 0], 0))
    widest = np.maximum(reach.all, reach.per_distance * distance)
    return replace(plan, centroids=with_few_coarse(centroids, queries, widest), reach=reach).save()


def sizes_of(centroids: CellCentroids, sample: Vectors, count: int, engine: Products) -> Floats:
    """Return about how many of all rows each cell has, from a sample of them."""
    some = sample[:: max(1, len(sample) // _SIZED)]
    cells, _, _ = centroids.near(some, 0.0, engine=engine)
    found = np.bincount(cells, minlength=len(centroids)) * (count / len(some))
    return np.asarray(found, dtype=np.float32)


def spans_of(count: int, size: int) -> tuple[Span, ...]:
    """Return consecutive spans of at most *size* of *count* rows."""
    return tuple((start, min(start + size, count)) for start in range(0, count, size))


def _take(source: VectorSource, rows: npt.NDArray[np.int64]) -> Vectors:
    """Return rows by number, some thousand at a time."""
    out = np.empty((len(rows), source.dimension), dtype=np.float32)
    for start in range(0, len(rows), _TAKEN):
        out[start : start + _TAKEN] = source.take(rows[start : start + _TAKEN])
    return out


def _exact(plan: Plan, runner: StepRunner) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return (rows, similarities) of the exact neighbours of the tested rows: shape (T, k)."""
    near = steps.none_near(len(plan.tested))
    for found in runner.run(partial(steps.find_exact, plan), plan.spans, 0.05, 0.1):
        near = steps.nearer(near, found, plan.files.k)
    return near


def _look(plan: Plan, runner: StepRunner) -> npt.NDArray[np.int32]:
    """Return the cell of each row, as the cells were found."""
    return np.concatenate(runner.all(partial(steps.look, plan), range(len(plan.spans)), 0.1, 0.2))


def _sort(plan: Plan, cells: npt.NDArray[np.int32], sizes: Sizes, runner: StepRunner) -> Plan:
    """Sort the rows by cell; return the plan with groups."""
    assert plan.centroids is not None, "the cells are known"
    files, count = plan.files, len(plan.centroids)
    grouping = group_cells(plan.centroids.all, np.bincount(cells, minlength=count), sizes.group_rows)
    plan = replace(plan, grouping=grouping).save()
    row = np.argsort(grouping.rank[cells], kind="stable").astype(np.int32)
    place = np.empty_like(row)
    place[row] = np.arange(len(row), dtype=np.int32)
    files.row[:], files.place[:] = row, place
    files.cell[:] = np.repeat(np.arange(count, dtype=np.int32), np.diff(grouping.cell_starts))
    write_vectors(plan, runner, 0.2, 0.3)
    return plan


def write_vectors(plan: Plan, runner: StepRunner, start: float, end: float) -> None:
    """Write the vectors to their places, as a share of the progress from *start* to *end*."""
    place = plan.files.place
    items = [(part, np.array(place[low:high])) for part, (low, high) in enumerate(plan.spans)]
    runner.all(partial(steps.sort_part, plan), items, start, end)


def _compare(plan: Plan, runner: StepRunner) -> Lists:
    """Compare the rows; return their lists."""
    assert plan.centroids is not None, "the cells are known"
    files, groups = plan.files, range(len(plan.order))
    if _compares_all(plan):
        compared = sum(runner.run(partial(steps.join_with_all, plan), groups, 0.3, 0.95))
        lists = Lists.over(files.lists, files.similarity)
    else:
        compared = files.rows * plan.centroids.n_compared
        compared += _in_rounds(plan, FIRST, steps.join_group, runner, 0.3, 0.65)
        compared += _in_rounds(plan, SECOND, steps.look_further, runner, 0.65, 0.85)
        lists = Lists.over(files.lists, files.similarity)
        _offer_all(files, lists, runner.run(partial(steps.share_lists, plan), plan.spans, 0.85, 0.88))
        runner.all(partial(steps.note_nearest, plan), plan.spans, 0.88, 0.9)
        _offer_all(files, lists, runner.run(partial(steps.step_twice, plan), plan.spans, 0.9, 0.97))
    lists.n_comparisons += compared
    return lists


def _in_rounds(
    plan: Plan, turn: str, step: Callable[[Plan, Sending], Sent], runner: StepRunner, start: float, end: float
) -> int:
    """Run a step for all groups, and let the rows that it sends to other groups visit them; return the comparisons.

    They visit whenever further groups would probably exceed the space for visits, or rows of a group wait for space.

    Args:
        plan: the plan.
        turn: the name of the turn.
        step: writes visits of rows of a group.
        runner: runs the steps.
        start: the share of the whole search that is done.
        end: the share that is done afterwards.
    """
    files, groups, some = plan.files, len(plan.order), _GROUPS
    waiting = [(group, 0) for group in range(groups)]
    compared = visits = visited = 0
    sources: list[int] = []
    reached = start

    def share(sent: int, visited: int) -> float:
        nonlocal reached  # groups whose rows wait for space are not done after all
        reached = max(reached, start + (end - start) * (sent + visited) / (2 * groups))
        return reached

    while waiting:
        chunk, waiting = waiting[:some], waiting[some:]
        done = groups - len(waiting)
        most = max(1, (files.most_visits - visits) // len(chunk))
        items = [Sending(group, first, most) for group, first in chunk]
        shares = share(done - len(chunk), visited), share(done, visited)
        rest = []
        for item, sent in zip(items, runner.run(partial(step, plan), items, *shares), strict=True):
            compared, visits = compared + sent.comparisons, visits + sent.visits
            rest += [] if sent.rest is None else [(item.group, sent.rest)]
        sources, waiting = [*sources, *(item.group for item in items)], rest + waiting
        # Groups differ, so what half of the space suffices for is written next.
        some = int((files.most_visits - visits) / (2 * max(1.0, visits / len(sources))))
        if some < _GROUPS or rest or not waiting:
            before, visited = visited, groups - len(waiting)
            compared += _visit(plan, turn, sources, runner, share(visited, before), share(visited, visited))
            files.remove_visits(turn, sources)
            some, visits, sources = max(_GROUPS, len(chunk)), 0, []
    return compared


def _compares_all(plan: Plan) -> bool:
    """Return whether comparing all rows is cheaper than cells."""
    return OVERHEAD * _per_row(plan) > plan.files.rows / 2


def _per_row(plan: Plan) -> float:
    """Return the number of centroids and rows that a row is compared with."""
    assert plan.centroids is not None, "the cells are known"
    assert plan.reach is not None, "the reach is known"
    return plan.centroids.n_compared + plan.reach.n_candidates


def _multiply_adds(plan: Plan) -> float:
    """Return about how many multiplications the comparison of all rows takes."""
    rows = plan.files.rows
    return rows * plan.files.dimension * (rows if _compares_all(plan) else OVERHEAD * _per_row(plan))


def _visit(plan: Plan, turn: str, sources: Sequence[int], runner: StepRunner, start: float, end: float) -> int:
    """Let rows of some groups visit all groups; add what they find to their lists, and return the comparisons.

    A group with many visits may take as long as all others together, so it is begun first.
    """
    files, compared = plan.files, 0
    lists = Lists.over(files.lists, files.similarity)
    step = partial(steps.visit_group, plan, turn, sources)
    longest_first = np.argsort(-files.count_visits(turn, sources), kind="stable").tolist()
    for candidates, comparisons in runner.run(step, longest_first, start, end):
        lists.offer(candidates)
        compared += comparisons
    lists.settle()
    files.limits[:] = lists.limits
    return compared


def _offer_all(files: GroupFiles, lists: Lists, candidates: Iterable[Survivors]) -> None:
    """Offer candidates to the lists once all of them are found, as workers read the lists meanwhile."""
    for each in list(candidates):
        lists.offer(each)
    lists.settle()
    files.limits[:] = lists.limits


def _complete(plan: Plan, lists: Lists, runner: StepRunner) -> None:
    """Fill lists that are not full."""
    short = [
        start + np.flatnonzero(lists.rows[start : start + _CHECKED].min(axis=1) < 0)
        for start in range(0, plan.files.rows, _CHECKED)
    ]
    lists.complete(FileVectors(plan.files), steps.engine_of_worker(), np.concatenate(short))
    runner.note(0.98)
