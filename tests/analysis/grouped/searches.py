"""Searches by groups of small sets of vectors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.grouped.clusters import linkage_by_groups
from framedex.analysis.grouped.neighbours import Sizes, nearest_by_groups
from framedex.analysis.grouped.steps import Plan
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.core.blas_threads import single_threaded_blas
from framedex.executors import Executor, ThreadExecutor
from tests.analysis.arrays import Vectors

SMALL = Sizes(part_rows=1500, group_rows=2000)
Lists = tuple[npt.NDArray[np.int32], Vectors]


def found(
    vectors: Vectors, folder: Path, executor: Executor, k: int = 10, sizes: Sizes = SMALL
) -> tuple[NeighbourGraph, Plan]:
    """Return the neighbours of vectors, by place, and the plan."""
    folder.mkdir()
    with single_threaded_blas():
        return nearest_by_groups(
            VectorsInMemory(vectors), folder, k=k, sizes=sizes, executor=executor, progress=ignore_progress
        )


def by_row(graph: NeighbourGraph, plan: Plan) -> Lists:
    """Return the lists of a graph by row: neighbours and similarities."""
    row, place = plan.files.row, plan.files.place
    return np.asarray(row[graph.rows][place]), np.asarray(graph.similarity[place])


def lists_by_groups(vectors: Vectors, folder: Path, executor: Executor, k: int = 10) -> Lists:
    """Return the lists of neighbours by row."""
    return by_row(*found(vectors, folder, executor, k))


def clusters_by_groups(
    vectors: Vectors, folder: Path, cuts: Sequence[float], *, in_memory: int, dense_rows: int
) -> npt.NDArray[np.int32]:
    """Return clusters by row."""
    with ThreadExecutor(2) as executor:
        _, plan = found(vectors, folder, executor)
        labels = linkage_by_groups(
            plan, np.ones(len(vectors), np.int64), cuts,
            in_memory=in_memory, dense_rows=dense_rows, executor=executor, progress=ignore_progress,
        )  # fmt: skip
        return labels[plan.files.place]
