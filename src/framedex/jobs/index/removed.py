"""Index update after rows were deleted from an indexed table, without rebuilding the index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import without_rows
from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.duplicates import copy_groups, duplicate_groups
from framedex.analysis.labels import label_quality
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.removals import without
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import SelectedVectors, VectorsInMemory
from framedex.core.arrays import Vectors
from framedex.core.progress import Progress
from framedex.jobs.index.columns import (
    NO_LIMITS,
    Columns,
    IndexedRows,
    Positions,
    graph_columns,
    issue_columns,
    kept_defaults,
    label_columns,
    label_limits,
    read_indexed_rows,
    read_label_codes,
    scatter,
    to_batches,
)
from framedex.jobs.index.index import (
    WrittenIndex,
    cannot_link_items,
    cannot_link_rows,
    finite,
    first_free_of,
    stage_progress,
)
from framedex.jobs.index.standings import kept_standings
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.copy_pairs import CopyPairs, video_owners
from framedex.storage.generation import IndexSummary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS, LabelDecisions
from framedex.storage.media_rows import (
    ALIKE_LEVELS,
    CLUSTERS,
    GROUP_LEVELS,
    GROUPS,
    NEAR,
    NEIGHBOURS,
    index_schema,
)
from framedex.storage.stored_vectors import StoredVectors
from framedex.storage.table_versions import Table

_BATCH_ROWS = 16_384  # vectors read at a time
_IN_MEMORY = 512 * 2**20  # bytes of vectors; larger sets are read in parts


def index_removed(
    before: Table,
    after: Table,
    deleted: npt.NDArray[np.bool_],
    summary: IndexSummary,
    *,
    centroids: Vectors | None,
    sums: ClusterSums | None,
    progress: Progress,
    cannot_link: Sequence[Sequence[str]] = (),
    limits: Mapping[str, float] = NO_LIMITS,
    label_decisions: LabelDecisions = NO_LABEL_DECISIONS,
    copies: CopyPairs | None = None,
) -> WrittenIndex:
    """Compute and write the index columns of the remaining rows.

    Clusters only lose members until the index is rebuilt. Rows with a deleted neighbour get other neighbours and new
    scores. Near-duplicate groups that lost members are rebuilt.

    Args:
        before: the media table with all rows, indexed.
        after: the table without the deleted rows, at its newest version; further rows at its end stay unindexed.
        deleted: bool, shape (rows before,): true for deleted rows.
        summary: summary of the last index: :attr:`WrittenIndex.summary`.
        centroids: float32, shape (C, D): the centroids of the last index's cells; None if it had no cells.
        sums: sums of large clusters, as the last index left them.
        progress: called with the stage and the completed share; raises to stop.
        cannot_link: sets of media ids; no two of a set are duplicates.
        limits: limits of issues that users set, by issue type.
        label_decisions: decisions that labels are right.
        copies: pairs of copies among all rows; None if the media have no copy descriptors.
    """
    progress("reading the index", 0.0)
    indexed = read_indexed_rows(before, centroids, summary.reach or 0.0)
    remaining = _remaining_rows(before, indexed, deleted, stage_progress(progress, "finding neighbours", 0.2, 0.6))
    count, positions = after.count(), remaining.positions
    unindexed = np.full(count - int(np.count_nonzero(~deleted)), -1, dtype=np.int32)
    columns: Columns = {name: np.append(indexed.columns[name][~deleted], unindexed) for name in CLUSTERS}
    progress("finding duplicates", 0.6)
    free = first_free_of(summary)
    left = None if copies is None else copies.moved(np.where(deleted, -1, np.cumsum(~deleted) - 1))
    columns |= _duplicate_columns(indexed, remaining, deleted, after, cannot_link, left, free, count)
    scores, scale = _score_columns(indexed, remaining, deleted, summary.uniqueness_scale, count)
    columns |= scores
    columns |= graph_columns(remaining.graph, remaining.first, remaining.inverse, positions, count)
    codes = read_label_codes(after, positions, label_decisions)
    quality = label_quality(
        remaining.graph,
        remaining.inverse,
        codes.labels,
        limits=label_limits(limits),
        agreement=summary.label_agreement,
        progress=stage_progress(progress, "checking labels", 0.7, 0.8),
    )
    columns |= label_columns(quality, codes, positions, count)
    defaults = kept_defaults(summary.issue_thresholds)
    columns |= issue_columns(after, columns, defaults, limits)
    columns |= {name: np.append(values, np.full(len(unindexed), np.nan, np.float32))
                for name, values in kept_standings(before, ~deleted).items()}  # fmt: skip
    progress("writing", 0.9)
    schema = index_schema()
    version = tables.put_columns(after, to_batches(columns, count, schema.names), schema)
    sums = None if sums is None else _sums_without(sums, before, indexed, deleted)
    progress("writing", 1.0)
    settled = int(np.count_nonzero(~deleted[: summary.settled]))
    statistics = codes.names, quality.statistics
    return WrittenIndex(
        version,
        finite(defaults),
        scale,
        free,
        settled,
        without_rows(remaining.graph.cells),
        sums,
        quality.agreement,
        left,
        statistics,
    )


@dataclass(frozen=True)
class _RemainingRows:
    """Remaining items, and their distinct vectors.

    Attributes:
        vectors: vectors of the distinct rows.
        graph: neighbours of the distinct rows.
        changed: bool, shape (M,): true for distinct rows with other neighbours or fewer copies than before.
        is_kept: bool, shape (K,): true for the previous items that remain.
        positions: int64, shape (N,): the row of each item in the new table.
        first: int64, shape (M,): the first item of each distinct row.
        inverse: int64, shape (N,): the distinct row of each item.
    """

    vectors: StoredVectors
    graph: NeighbourGraph
    changed: npt.NDArray[np.bool_]
    is_kept: npt.NDArray[np.bool_]
    positions: Positions
    first: Positions
    inverse: Positions


def _remaining_rows(
    before: Table, indexed: IndexedRows, deleted: npt.NDArray[np.bool_], progress: Any
) -> _RemainingRows:
    is_kept = ~deleted[indexed.positions]
    positions = indexed.positions[is_kept]
    rows, item, inverse = np.unique(indexed.inverse[is_kept], return_index=True, return_inverse=True)
    # If the first of several copies is deleted, the next copy represents them; rows are in order of first items.
    order = np.argsort(item)
    rows, first = rows[order], positions[item[order]]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    inverse = rank[inverse]
    vectors = StoredVectors(before, first)
    remaining = without(indexed.graph, rows, vectors, k=NEIGHBOURS, progress=progress)
    copies = np.bincount(indexed.inverse, minlength=len(indexed.first))[rows]
    changed = remaining.touched | (np.bincount(inverse, minlength=len(rows)) != copies)
    new_row = np.cumsum(~deleted) - 1
    return _RemainingRows(vectors, remaining.graph, changed, is_kept, new_row[positions], item[order], inverse)


def _score_columns(
    indexed: IndexedRows, remaining: _RemainingRows, deleted: npt.NDArray[np.bool_], scale: float, count: int
) -> tuple[Columns, float]:
    """Return uniqueness and outlier distance of all rows, and the scale; other scores do not change."""
    changed = remaining.changed[remaining.inverse]
    rows = np.flatnonzero(remaining.changed)
    place_of = np.full(len(remaining.first), -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    graph = NeighbourGraph(remaining.graph.rows[rows], remaining.graph.similarity[rows])
    distances = neighbour_distances(graph, place_of[remaining.inverse[changed]])
    unique, new_scale = uniqueness(distances, scale=scale or None)
    columns: Columns = {}
    for name, values in (("uniqueness", unique), ("outlier_distance", outlier_values(distances, min_items=0)[0])):
        items = indexed.columns[name][~deleted][remaining.positions]
        items[changed] = values
        columns[name] = scatter(items, remaining.positions, count)
    return columns, scale or new_scale


def _duplicate_columns(
    indexed: IndexedRows,
    remaining: _RemainingRows,
    deleted: npt.NDArray[np.bool_],
    table: Table,
    cannot_link: Sequence[Sequence[str]],
    copies: CopyPairs | None,
    free: dict[str, int],
    count: int,
) -> Columns:
    """Return the columns of near-duplicate groups; *free* is updated."""
    sets = cannot_link_items(cannot_link_rows(table, cannot_link), remaining.positions)
    owners = video_owners(table, remaining.positions)
    old = np.stack([indexed.columns[name][~deleted] for name in GROUPS], axis=1)[remaining.positions]
    if copies is not None:
        known = copies.items(remaining.positions)
        groups, similarity = copy_groups(len(old), known, GROUP_LEVELS, cannot_link=sets, owners=owners)
        for column, name in enumerate(GROUPS):
            old[:, column], free[name] = keep_numbers(old[:, column], groups[:, column], first_free=free[name])
        return _scattered(old, similarity, remaining, count)
    coarsest = indexed.columns[NEAR]
    affected = np.unique(coarsest[deleted & (coarsest >= 0)])
    n_copies = np.bincount(remaining.inverse, minlength=len(remaining.first))
    nearest = remaining.graph.similarity[:, 0] if remaining.graph.k else np.full(len(remaining.first), -1, np.float32)
    similarity = indexed.columns["duplicate_similarity"][~deleted][remaining.positions]
    changed = remaining.changed[remaining.inverse]
    if owners is None:
        similarity[changed] = np.where(n_copies > 1, np.float32(1), nearest)[remaining.inverse[changed]]
    # A group lies within one of the coarsest level, and so do all near-duplicates of its members.
    rows = np.unique(remaining.inverse[np.isin(old[:, 0], affected)])
    if len(rows):
        apart = cannot_link_rows(table, cannot_link)
        if any(len(rest) < len(ids) for rest, ids in zip(apart, cannot_link, strict=True)):
            rows = _with_near(remaining, rows, old[:, 0])  # what is gone may have kept others apart
        items = np.flatnonzero(np.isin(remaining.inverse, rows))
        groups, near = _regroup(remaining, rows, items, sets, None if owners is None else owners[items])
        for column, name in enumerate(GROUPS):
            old[items, column], free[name] = keep_numbers(old[items, column], groups[:, column], first_free=free[name])
        similarity[items] = np.where(
            groups[:, 0] >= 0, near, np.minimum(similarity[items], np.float32(DUPLICATE_LEVELS[0]))
        )
    return _scattered(old, similarity, remaining, count)


def _scattered(
    groups: npt.NDArray[np.int32], similarity: npt.NDArray[np.float32], remaining: _RemainingRows, count: int
) -> Columns:
    """Return the columns of groups and similarities of all rows."""
    columns: Columns = {
        name: scatter(groups[:, column], remaining.positions, count) for column, name in enumerate(GROUPS)
    }
    return columns | {"duplicate_similarity": scatter(similarity, remaining.positions, count)}


def _with_near(remaining: _RemainingRows, rows: Positions, groups: npt.NDArray[np.int32]) -> Positions:
    """Return distinct rows, ascending, with all that could form a group with some of them.

    Args:
        remaining: all distinct rows.
        rows: some of them.
        groups: shape (N,): the group of each item at the coarsest level; -1 for none.
    """
    inverse, graph = remaining.inverse, remaining.graph
    is_near = (graph.rows >= 0) & (graph.similarity >= DUPLICATE_LEVELS[0] - 1e-6)
    near, related = np.where(is_near, graph.rows, 0), np.zeros(len(remaining.first), dtype=bool)
    related[rows] = True
    while True:
        count = np.count_nonzero(related)
        of_groups = np.unique(groups[related[inverse] & (groups >= 0)])
        related[inverse[np.isin(groups, of_groups)]] = True
        related |= (related[near] & is_near).any(axis=1)
        related[near[related][is_near[related]]] = True
        if np.count_nonzero(related) == count:
            return np.flatnonzero(related)


def _regroup(
    remaining: _RemainingRows,
    rows: Positions,
    items: Positions,
    cannot_link: Sequence[npt.NDArray[np.int64]],
    owners: npt.NDArray[np.int32] | None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the groups of the items of some distinct rows, and the similarity to the most similar other item."""
    number = np.full(len(remaining.first), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    graph = NeighbourGraph(remaining.graph.rows[rows], remaining.graph.similarity[rows]).filled()
    neighbours = number[graph.rows]
    similarity = np.where(neighbours >= 0, graph.similarity, np.float32(-1))
    cells = remaining.graph.cells
    cells = None if cells is None else replace(cells, of_row=cells.of_row[rows])
    position = np.full(len(remaining.inverse), -1, dtype=np.int64)
    position[items] = np.arange(len(items))
    sets = [position[each[position[each] >= 0]] for each in cannot_link]
    fits_memory = len(rows) * remaining.vectors.dimension * 4 <= _IN_MEMORY
    return duplicate_groups(
        # Rows with many near-duplicates are compared tile by tile, which reads each vector many times.
        VectorsInMemory(remaining.vectors.take(rows)) if fits_memory else SelectedVectors(remaining.vectors, rows),
        NeighbourGraph(neighbours, similarity, cells),
        number[remaining.inverse[items]].astype(np.int64),
        ALIKE_LEVELS,
        cannot_link=[each for each in sets if len(each) > 1],
        owners=owners,
    )


def _sums_without(
    sums: ClusterSums, before: Table, indexed: IndexedRows, deleted: npt.NDArray[np.bool_]
) -> ClusterSums:
    """Return the sums of clusters without the deleted rows."""
    affected = indexed.positions[deleted[indexed.positions]]
    vectors = StoredVectors(before, affected)
    labels = np.stack([indexed.columns[name][affected] for name in CLUSTERS], axis=1)
    for start in range(0, len(affected), _BATCH_ROWS):
        rows = np.arange(start, min(start + _BATCH_ROWS, len(affected)))
        sums = sums.with_rows(vectors.take(rows), np.full(len(rows), -1), labels[rows])
    return sums
