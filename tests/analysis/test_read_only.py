"""The index engine does not change its input: it works on read-only arrays."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.additions import extend, join_clusters, join_groups
from framedex.analysis.cells import Cells
from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.label_entries import Labels
from framedex.analysis.labels import label_quality
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import check_vectors, nearest, unique_rows
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import VectorsInMemory
from tests.analysis.arrays import clustered

Item = TypeVar("Item", bound=np.generic)
LEVELS = (0.96, 0.99, 1.0)
CUTS = (0.05, 0.3)


def locked(values: npt.NDArray[Item]) -> npt.NDArray[Item]:
    """Return a read-only copy of values."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def locked_graph(graph: NeighbourGraph) -> NeighbourGraph:
    """Return a graph with read-only arrays."""
    cells = graph.cells and Cells(locked(graph.cells.centroids), locked(graph.cells.of_row), graph.cells.reach)
    return NeighbourGraph(locked(graph.rows), locked(graph.similarity), cells, graph.n_comparisons)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("exact", [True, False])
def test_index__from_read_only_arrays(exact: bool, kind: Any) -> None:
    """Every step from vectors to scores, groups, clusters and additions works with read-only input."""
    items: npt.NDArray[Any] = locked(clustered(1600, 16, centres=40, spread=0.3)[np.r_[0:1600, 0:50]].astype(kind))
    check_vectors(items.astype(np.float32))
    first, inverse = (locked(each) for each in unique_rows(items))
    vectors, weights = locked(items[first]), locked(np.bincount(inverse))
    graph = locked_graph(nearest(vectors, k=5, exact=exact))
    cannot_link = [locked(np.array([0, 1600])), locked(np.array([1, 2, 3]))]
    groups, _ = duplicate_groups(VectorsInMemory(vectors), graph, inverse, LEVELS, cannot_link=cannot_link)
    for rows in (100, 10_000):
        labels = average_linkage(vectors, weights, graph, CUTS, dense_rows=rows)
    codes = locked(np.arange(len(items), dtype=np.int32) % 3)
    label_quality(graph, inverse, Labels(codes, locked(np.arange(len(items) + 1)), 3))
    distances = locked(neighbour_distances(graph, inverse))
    uniqueness(distances)
    outlier_values(distances)
    keep_numbers(locked(groups[:, 0]), locked(groups[:, 1]), first_free=2000)

    known, added = VectorsInMemory(vectors), locked(clustered(100, 16, seed=1).astype(kind))
    extended, _ = extend(graph, known, added, k=5)
    heavier = locked(np.append(weights, np.ones(100, np.int64)))
    join_clusters(known, added, heavier, locked_graph(extended), locked(labels), CUTS, [1600, 1600])
    pairs = (locked(np.array([3, 4])), locked(np.array([8, 9])), locked(np.array([0.97, 1], np.float32)))
    join_groups(locked(groups), pairs, LEVELS, [1600] * 3)
