"""Rows that were deleted from an indexed table: what the others lose by it, without computing the index anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.labels import label_quality
from framedex.analysis.neighbours import Graph
from framedex.analysis.removals import without
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import SelectedVectors, VectorsInMemory
from framedex.arrays import Vectors
from framedex.issue_types import OUTLIERS
from framedex.jobs.index.columns import (
    Columns,
    IndexedRows,
    Positions,
    graph_columns,
    issue_columns,
    label_columns,
    read_indexed_rows,
    read_labels,
    scatter,
    to_batches,
)
from framedex.jobs.index.index import WrittenIndex, cannot_link_items, finite, stage_progress
from framedex.progress import Progress
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, NEIGHBOURS, index_schema
from framedex.storage.tables import StoredVectors, Table

_TAKEN = 16_384  # vectors at a time
_IN_MEMORY = 512 * 2**20  # bytes of vectors that are read at once


def index_removed(
    before: Table,
    after: Table,
    gone: npt.NDArray[np.bool_],
    summary: Mapping[str, Any],
    *,
    centroids: Vectors | None,
    sums: ClusterSums | None,
    progress: Progress,
    cannot_link: Sequence[Sequence[str]] = (),
) -> WrittenIndex:
    """Compute the index columns of the rows that are left, and write them.

    Clusters lose members, and are else as they were until all is indexed anew. Rows that had a deleted one among their
    neighbours find others, and get new scores; near-duplicate groups that lost members are formed anew.

    Args:
        before: the media table with all rows, indexed.
        after: the same without the deleted ones, at its newest version; rows behind those are left without an index.
        gone: bool, shape (rows before,): the deleted ones.
        summary: of the last index: :attr:`Indexed.summary`.
        centroids: float32, shape (C, D): of the cells of the last index; None if it had none.
        sums: of large clusters, as the last index left them.
        progress: called with the stage and the share that is done; raises to stop.
        cannot_link: sets of media ids of which no two are duplicates.
    """
    progress("reading the index", 0.0)
    known = read_indexed_rows(before, centroids, summary["reach"] or 0.0)
    left = _left(before, known, gone, stage_progress(progress, "finding neighbours", 0.2, 0.6))
    count, positions = after.count(), left.positions
    further = np.full(count - int(np.count_nonzero(~gone)), -1, dtype=np.int32)
    columns: Columns = {name: np.append(known.columns[name][~gone], further) for name in CLUSTERS}
    progress("finding duplicates", 0.6)
    free = dict(summary["first_free"])
    columns |= _duplicates(known, left, gone, cannot_link_items(after, positions, cannot_link), free, count)
    scores, scale = _scores(known, left, gone, summary["uniqueness_scale"], count)
    columns |= scores
    columns |= graph_columns(left.graph, left.first, left.inverse, positions, count)
    labelled = read_labels(after, positions)
    quality = label_quality(
        left.graph, left.inverse, labelled.labels, progress=stage_progress(progress, "checking labels", 0.7, 0.8)
    )
    columns |= label_columns(quality, labelled.names, positions, count)
    limit = summary["issue_thresholds"][OUTLIERS.name]
    limits = {OUTLIERS.name: np.inf if limit is None else limit}
    columns |= issue_columns(after, columns, limits)
    progress("writing", 0.9)
    written = index_schema()
    version = tables.put_columns(after, to_batches(columns, count, written.names), written)
    sums = None if sums is None else _without(sums, before, known, gone)
    progress("writing", 1.0)
    settled = int(np.count_nonzero(~gone[: summary["settled"]]))
    return WrittenIndex(version, finite(limits), scale, free, settled, left.graph, sums)


@dataclass(frozen=True)
class _RemainingRows:
    """The items that are left, and their distinct vectors.

    Attributes:
        vectors: of the distinct rows.
        graph: their neighbours.
        changed: bool, shape (M,): distinct rows with other neighbours, or fewer copies, than before.
        kept: bool, shape (K,): which of the items there were before are left.
        positions: int64, shape (N,): where each item stands in the table now.
        first: int64, shape (M,): the first item of each distinct row.
        inverse: int64, shape (N,): the distinct row of each item.
    """

    vectors: StoredVectors
    graph: Graph
    changed: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]
    positions: Positions
    first: Positions
    inverse: Positions


def _left(before: Table, known: IndexedRows, gone: npt.NDArray[np.bool_], progress: Any) -> _RemainingRows:
    kept = ~gone[known.positions]
    positions = known.positions[kept]
    rows, item, inverse = np.unique(known.inverse[kept], return_index=True, return_inverse=True)
    # Where the first of several copies goes, the next one stands for them: rows are in the order of their first items.
    order = np.argsort(item)
    left, first = rows[order], positions[item[order]]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    inverse = rank[inverse]
    vectors = StoredVectors(before, first)
    remaining = without(known.graph, left, vectors, k=NEIGHBOURS, progress=progress)
    copies = np.bincount(known.inverse, minlength=len(known.first))[left]
    changed = remaining.touched | (np.bincount(inverse, minlength=len(left)) != copies)
    place = np.cumsum(~gone) - 1
    return _RemainingRows(vectors, remaining.graph, changed, kept, place[positions], item[order], inverse)


def _scores(
    known: IndexedRows, left: _RemainingRows, gone: npt.NDArray[np.bool_], scale: float, count: int
) -> tuple[Columns, float]:
    """Return uniqueness and outlier distance of all rows, and the scale; what nothing changed stays, as the scale."""
    changed = left.changed[left.inverse]
    rows = np.flatnonzero(left.changed)
    place_of = np.full(len(left.first), -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    graph = Graph(left.graph.rows[rows], left.graph.similarity[rows])
    distances = neighbour_distances(graph, place_of[left.inverse[changed]])
    unique, found = uniqueness(distances, scale=scale or None)
    columns: Columns = {}
    for name, values in (("uniqueness", unique), ("outlier_distance", outlier_values(distances, least=0)[0])):
        items = known.columns[name][~gone][left.positions]
        items[changed] = values
        columns[name] = scatter(items, left.positions, count)
    return columns, scale or found


def _duplicates(
    known: IndexedRows,
    left: _RemainingRows,
    gone: npt.NDArray[np.bool_],
    cannot_link: Sequence[npt.NDArray[np.int64]],
    free: dict[str, int],
    count: int,
) -> Columns:
    """Return the columns of near-duplicate groups; *free* gets the next free numbers."""
    old = np.stack([known.columns[name][~gone] for name in DUPLICATES], axis=1)[left.positions]
    coarsest = known.columns[DUPLICATES[0]]
    lost = np.unique(coarsest[gone & (coarsest >= 0)])
    copies = np.bincount(left.inverse, minlength=len(left.first))
    nearest = left.graph.similarity[:, 0] if left.graph.k else np.full(len(left.first), -1, np.float32)
    similarity = known.columns["duplicate_similarity"][~gone][left.positions]
    changed = left.changed[left.inverse]
    similarity[changed] = np.where(copies > 1, np.float32(1), nearest)[left.inverse[changed]]
    # A group lies within one of the coarsest level, and so do all near-duplicates of its members.
    rows = np.unique(left.inverse[np.isin(old[:, 0], lost)])
    if len(rows):
        items = np.flatnonzero(np.isin(left.inverse, rows))
        groups, near = _regrouped(left, rows, items, cannot_link)
        for place, name in enumerate(DUPLICATES):
            old[items, place], free[name] = keep_numbers(old[items, place], groups[:, place], first_free=free[name])
        similarity[items] = np.where(
            groups[:, 0] >= 0, near, np.minimum(similarity[items], np.float32(DUPLICATE_LEVELS[0]))
        )
    columns: Columns = {name: scatter(old[:, place], left.positions, count) for place, name in enumerate(DUPLICATES)}
    return columns | {"duplicate_similarity": scatter(similarity, left.positions, count)}


def _regrouped(
    left: _RemainingRows, rows: Positions, items: Positions, cannot_link: Sequence[npt.NDArray[np.int64]]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the groups, and the similarity to the most similar other item, of some distinct rows' items."""
    number = np.full(len(left.first), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    graph = Graph(left.graph.rows[rows], left.graph.similarity[rows]).filled()
    neighbours = number[graph.rows]
    similarity = np.where(neighbours >= 0, graph.similarity, np.float32(-1))
    cells = left.graph.cells
    cells = None if cells is None else replace(cells, of_row=cells.of_row[rows])
    place = np.full(len(left.inverse), -1, dtype=np.int64)
    place[items] = np.arange(len(items))
    sets = [place[each[place[each] >= 0]] for each in cannot_link]
    few = len(rows) * left.vectors.dimension * 4 <= _IN_MEMORY
    return duplicate_groups(
        # Crowds are compared with each other tile by tile, which reads each vector many times.
        VectorsInMemory(left.vectors.take(rows)) if few else SelectedVectors(left.vectors, rows),
        Graph(neighbours, similarity, cells),
        number[left.inverse[items]].astype(np.int64),
        DUPLICATE_LEVELS,
        cannot_link=[each for each in sets if len(each) > 1],
    )


def _without(sums: ClusterSums, before: Table, known: IndexedRows, gone: npt.NDArray[np.bool_]) -> ClusterSums:
    """Return the sums of clusters without the deleted rows."""
    lost = known.positions[gone[known.positions]]
    vectors = StoredVectors(before, lost)
    labels = np.stack([known.columns[name][lost] for name in CLUSTERS], axis=1)
    for start in range(0, len(lost), _TAKEN):
        rows = np.arange(start, min(start + _TAKEN, len(lost)))
        sums = sums.with_rows(vectors.take(rows), np.full(len(rows), -1), labels[rows])
    return sums
