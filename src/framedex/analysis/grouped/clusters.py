"""Clusters by average linkage of rows that do not fit into memory.

The merges are those of :mod:`framedex.analysis.reciprocal`. First the clusters of each group merge in the memory of a
worker, as far as those of other groups do not matter. The clusters that are left merge in the main process: their lists
are in memory, their means in the file of vectors, in the order of their cells, where the means that a merge needs lie
near each other. Searches run by group. The means that are left after each one are moved together, and read as soon as
they fit into memory.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from framedex.analysis.grouped.files import PlaceReader
from framedex.analysis.grouped.group_merges import merge_within_groups
from framedex.analysis.grouped.kept_clusters import KeptClusters, LeftClusters
from framedex.analysis.grouped.means import GroupSearch, StoredMeans
from framedex.analysis.grouped.neighbours import StepRunner
from framedex.analysis.grouped.steps import Plan
from framedex.analysis.linkage import DENSE_ROWS, Labels, check_cuts, cut, floor_of, link_rest, merge_by_lists
from framedex.analysis.mean_vectors import MeanVectors
from framedex.analysis.reciprocal import ClusterLists, Merges, search_in_memory
from framedex.core.progress import ShareProgress
from framedex.executors import Executor

_WITHIN = 0.5  # of the progress: merges within groups


def linkage_by_groups(
    plan: Plan,
    weights: npt.NDArray[np.int64],
    cuts: Sequence[float],
    *,
    in_memory: int,
    dense_rows: int = DENSE_ROWS,
    seed: int = 0,
    executor: Executor,
    progress: ShareProgress,
) -> Labels:
    """Return flat clusters at several distances; see :func:`framedex.analysis.linkage.average_linkage`.

    Args:
        plan: the plan of a search of neighbours that is complete; its file of vectors is overwritten with means. If a
            killed process kept clusters in its folder, the merges go on from these.
        weights: int64, shape (N,): the number of identical items, by place.
        cuts: cosine distances, ascending.
        in_memory: the number of clusters whose means fit into memory.
        dense_rows: maximum number of clusters that are linked with all distances in memory.
        seed: seed of the random samples.
        executor: runs the searches.
        progress: called between blocks of work; raises to stop.

    Returns:
        int32, shape (N, len(cuts)): cluster numbers from 0, in order of their first places.

    Raises:
        InvalidInput: the cuts do not ascend within (0, 2].
    """
    check_cuts(cuts)
    floor, count, runner = floor_of(cuts), len(weights), StepRunner(executor, progress)
    kept = KeptClusters(plan, runner)
    if (found := kept.take(floor)) is None:
        kept.restore_vectors()
        kept.overwrite_vectors()
        within = runner.between(0.0, _WITHIN)
        merged = merge_within_groups(plan, weights, floor=floor, seed=seed, runner=runner, progress=within)
        found = LeftClusters(merged.merges, merged.names, merged.weights, merged.near, floor)
        del merged

    def read_if_few(clusters: ClusterLists) -> None:
        means = clusters.means
        if isinstance(means, StoredMeans) and len(clusters) <= max(in_memory, dense_rows):
            read = MeanVectors(means.of(np.arange(len(means))), means.weights)
            clusters.use(read, search_in_memory(floor, seed, None))

    def after_search(clusters: ClusterLists) -> None:
        read_if_few(clusters)
        kept.keep(clusters, merges, floor)

    a, b, similarity = found.merges
    merges: list[Merges] = [(a.astype(np.int64), b.astype(np.int64), similarity)]
    with PlaceReader(plan.files) as reader:
        means = StoredMeans(reader, found.weights)
        search = GroupSearch(plan, floor=floor, seed=seed, runner=runner)
        clusters = ClusterLists(means, found.near, found.names, floor=floor, search=search)
        del found  # its lists become shorter and are replaced
        after_search(clusters)
        merge_by_lists(clusters, merges, dense_rows, runner.between(_WITHIN, 1.0), after=after_search)
        rest = clusters.means.of(np.arange(len(clusters)))
    merges.append(link_rest(clusters.names, rest, clusters.means.weights, floor, lambda _share: None))
    progress(1.0)
    return cut(merges, cuts, count)
