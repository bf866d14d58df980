"""Task that measures the search of neighbours by groups: how many rows visit other groups, and how often."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from framedex.analysis.grouped.files import GroupFiles
from framedex.analysis.grouped.neighbours import Sizes, nearest_by_groups
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.core.blas_threads import single_threaded_blas
from framedex.executors import ThreadExecutor

Answer = dict[str, Any]
_THREADS = 2


class Visits:
    """Visits that the groups wrote, counted.

    Attributes:
        visits: (row, cell of another group).
        visitors: (row, other group): so many vectors of other groups are read.
        groups: the number of groups.
    """

    def __init__(self) -> None:
        self.visits = self.visitors = self.groups = 0

    def add(self, places: Any, groups: Any, count: int) -> None:
        """Count the visits of a group."""
        self.visits += len(places)
        self.visitors += len(np.unique(places.astype(np.int64) * count + groups))
        self.groups = count


@contextmanager
def _counted() -> Iterator[Visits]:
    """Yield what is counted in the block."""
    found, write = Visits(), GroupFiles.write_visits

    def counted(self: GroupFiles, turn: str, source: int, places: Any, groups: Any, cells: Any, count: int) -> None:
        found.add(places, groups, count)
        write(self, turn, source, places, groups, cells, count)

    GroupFiles.write_visits = counted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        GroupFiles.write_visits = write  # type: ignore[method-assign]


def visits(vectors: str, sample: str, k: int, groups: int, target: str, folder: Path, **_: Any) -> Answer:
    """Find neighbours of all rows by groups; write those of the sampled rows.

    Args:
        vectors: a NumPy file, of distinct rows.
        sample: a NumPy file with rows.
        k: neighbours a row.
        groups: about how many groups there are.
        target: a NumPy file for the neighbours' rows.
        folder: has space for the vectors.
    """
    held, rows = np.load(vectors, mmap_mode="r"), np.load(sample)
    group_rows = -(-len(held) // groups)
    spill = folder / "spill"
    spill.mkdir()
    last = [0]

    def tell(share: float) -> None:
        if int(20 * share) > last[0]:
            last[0] = int(20 * share)
            print(f"{share:.0%}", file=sys.stderr, flush=True)

    with _counted() as counted, single_threaded_blas(), ThreadExecutor(_THREADS) as executor:
        started = time.perf_counter()
        graph, plan = nearest_by_groups(
            VectorsInMemory(held), spill, k=k, sizes=Sizes(max(1024, group_rows // 2), group_rows),
            executor=executor, progress=tell,
        )  # fmt: skip
        seconds = time.perf_counter() - started
    row, place = np.asarray(plan.files.row), np.asarray(plan.files.place)
    np.save(target, row[np.asarray(graph.rows)[place[rows]]])
    count, compares_all = len(held), graph.n_comparisons >= len(held) ** 2
    return {
        "seconds": seconds,
        "groups": len(plan.order),
        "compared": graph.n_comparisons / count,
        "visits": len(graph.cells.centroids) - 1 if compares_all and graph.cells else counted.visits / count,
        "visitors": len(plan.order) - 1 if compares_all else counted.visitors / count,
    }
