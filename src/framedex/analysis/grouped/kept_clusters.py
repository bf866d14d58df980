"""Clusters that are left after some merges, kept for a process that goes on after a kill.

The file of vectors is overwritten with means, so it has room for a copy of those of the clusters that are left.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.grouped.neighbours import OVERWRITTEN, StepRunner, write_vectors
from framedex.analysis.grouped.steps import Plan
from framedex.analysis.mean_vectors import Weights, slices
from framedex.analysis.near_clusters import NearClusters
from framedex.analysis.reciprocal import ClusterLists, Merges
from framedex.core.arrays import Floats
from framedex.core.stages import Stages, stages_outlast_processes

_CLUSTERS = "clusters"
_EVERY_S = 300.0  # between two times at which clusters are kept
_COPIED = 16384  # means that are copied at a time
_ENTRY, _CLUSTER, _MERGE = 9, 20, 12  # bytes of an entry of a list, of what else is kept of a cluster, and of a merge


@dataclass(frozen=True)
class LeftClusters:
    """Clusters that are left after some merges.

    Attributes:
        merges: the merges, whose places may be int32.
        names: int64, shape (A,): the place of a row of each cluster.
        weights: float64, shape (A,).
        near: the near clusters.
        floor: minimum similarity of a merge.
        first: where the copy of their means begins in the file of vectors.
    """

    merges: tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], Floats]
    names: npt.NDArray[np.int64]
    weights: Weights
    near: NearClusters
    floor: float
    first: int = 0


class KeptClusters:
    """Keeps clusters from time to time, and gives them back.

    Args:
        plan: the plan, with its files.
        runner: has the progress, which raises to stop.
    """

    def __init__(self, plan: Plan, runner: StepRunner) -> None:
        self._plan, self._files, self._runner = plan, plan.files, runner
        self._stages = Stages(plan.files.folder)
        self._copy = range(0)  # the places of the last copy of means
        self._kept_at = time.monotonic()

    def restore_vectors(self) -> None:
        """Write the vectors of the rows to their file, if a killed process overwrote them with means."""
        if self._stages.get(OVERWRITTEN):
            self._stages.remove(_CLUSTERS)
            write_vectors(self._plan, self._runner, 0.0, 0.0)
            self._stages.remove(OVERWRITTEN)

    def overwrite_vectors(self) -> None:
        """Note that the vectors are overwritten from now on."""
        self._stages.put(OVERWRITTEN, True)

    def take(self, floor: float) -> LeftClusters | None:
        """Return the clusters that were kept, whose means are moved to the front of the file; None if there are none.

        Args:
            floor: minimum similarity of a merge; those of another one do not count.
        """
        found: LeftClusters | None = self._stages.get(_CLUSTERS)
        if found is None or found.floor != floor:
            return None
        self._copy = range(found.first, found.first + len(found.names))
        for part in slices(len(found.names), _COPIED):
            self._runner.check()
            self._files.write(part.start, self._files.part(found.first + part.start, found.first + part.stop))
        return found

    def keep(self, clusters: ClusterLists, merges: Sequence[Merges], floor: float) -> None:
        """Keep clusters before the next merges, if it is time and there is room.

        Their means need room in the file of vectors, and the rest takes half of the space of visits, which are over, so
        that it does not replace the last one before it is complete. On a full disk the last one stays.

        Args:
            clusters: the clusters, whose means may be at the front of the file.
            merges: all merges so far.
            floor: minimum similarity of a merge.
        """
        count, end = len(clusters), self._files.rows
        first = end - count if self._copy.stop <= end - count or not len(self._copy) else self._copy.start - count
        size = count * (_ENTRY * self._files.k + _CLUSTER) + _MERGE * sum(len(each[0]) for each in merges)
        has_room = first >= count and 2 * size <= self._files.visits_nbytes
        if not has_room or time.monotonic() < self._kept_at + _EVERY_S or not stages_outlast_processes():
            return
        for part in slices(count, _COPIED):
            self._runner.check()
            rows = np.arange(part.start, part.stop)
            clusters.means.expect(rows)
            self._files.write(first + part.start, clusters.means.of(rows))
        near = [clusters.near_of(part).nearest(self._files.k) for part in slices(count, _COPIED)]
        lists = NearClusters.joined(near)
        a, b, similarity = (np.concatenate([each[part] for each in merges]) for part in range(3))
        joined = a.astype(np.int32), b.astype(np.int32), similarity
        with suppress(OSError):
            self._stages.put(
                _CLUSTERS, LeftClusters(joined, clusters.names, clusters.means.weights, lists, floor, first)
            )
            self._copy, self._kept_at = range(first, first + count), time.monotonic()
