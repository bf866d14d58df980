"""Index update after rows were appended to an indexed table, without rebuilding the index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.additions import extend, join_clusters, join_groups
from framedex.analysis.cells import without_rows
from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.duplicates import copy_groups, duplicate_groups
from framedex.analysis.labels import label_quality
from framedex.analysis.linkage import ROUNDING
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import unique_rows
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import ConcatenatedVectors
from framedex.core.arrays import Vectors
from framedex.core.masks import true_places
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
from framedex.jobs.index.indexed_vectors import keep_rows
from framedex.jobs.index.standings import Comparison, no_standings
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.copy_pairs import CopyPairs, Pairs, video_owners
from framedex.storage.generation import IndexSummary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS, LabelDecisions
from framedex.storage.media_rows import (
    ALIKE_LEVELS,
    CLUSTERS,
    DUPLICATES,
    GROUP_LEVELS,
    GROUPS,
    NEIGHBOURS,
    NO_EMBEDDING,
    index_schema,
)
from framedex.storage.stored_vectors import StoredVectors
from framedex.storage.table_versions import Table


def index_added(
    table: Table,
    thresholds: Sequence[float],
    summary: IndexSummary,
    *,
    centroids: Vectors | None,
    sums: ClusterSums | None,
    progress: Progress,
    cannot_link: Sequence[Sequence[str]] = (),
    limits: Mapping[str, float] = NO_LIMITS,
    label_decisions: LabelDecisions = NO_LABEL_DECISIONS,
    copies: CopyPairs | None = None,
    comparison: Comparison | None = None,
) -> WrittenIndex:
    """Compute and write the index columns of appended rows, and of rows with an appended row as a neighbour.

    An added row joins the nearest cluster within each threshold, or starts a new cluster; the clusters of the other
    rows do not change. Near-duplicates, uniqueness and outlier values of a row change if an added row is among its
    nearest neighbours. The scale of uniqueness, the limit of outliers, and whether mislabels are listed do not change
    until the index is rebuilt.

    Args:
        table: the media table, at its newest version.
        thresholds: five ascending cosine distances.
        summary: summary of the last index: :attr:`WrittenIndex.summary`.
        centroids: float32, shape (C, D): the centroids of the last index's cells; None if it had no cells.
        sums: sums of large clusters, as the last index left them.
        progress: called with the stage and the completed share; raises to stop.
        cannot_link: sets of media ids; no two of a set are duplicates.
        limits: limits of issues that users set, by issue type.
        label_decisions: decisions that labels are right.
        copies: pairs of copies among all rows; None if the media have no copy descriptors.
        comparison: compares the members of near-duplicate groups; None for none.
    """
    count = table.count()
    progress("reading the index", 0.0)
    indexed = read_indexed_rows(table, centroids, summary.reach or 0.0)
    added_positions, vectors = table.vectors(start=indexed.rows)
    positions = np.concatenate([indexed.positions, added_positions])
    extended = _extend_graph(table, indexed, vectors, positions, progress)
    indexed = indexed.without_graph()
    free = first_free_of(summary)
    columns, sums = _cluster_columns(indexed, extended, positions, count, thresholds, sums, free, progress)
    columns |= _duplicate_columns(table, indexed, extended, positions, count, free, cannot_link, progress, copies)
    scores, scale = _score_columns(indexed, extended, positions, count, summary.uniqueness_scale)
    columns |= scores
    columns |= graph_columns(extended.graph, extended.first, extended.inverse, positions, count)
    codes = read_label_codes(table, positions, label_decisions)
    quality = label_quality(
        extended.graph,
        extended.inverse,
        codes.labels,
        limits=label_limits(limits),
        agreement=summary.label_agreement,
        progress=stage_progress(progress, "checking labels", 0.8, 0.9),
    )
    columns |= label_columns(quality, codes, positions, count)
    defaults = kept_defaults(summary.issue_thresholds)
    columns |= issue_columns(table, columns, defaults, limits)
    columns |= no_standings(count)
    if comparison is not None:
        columns |= comparison.columns(
            table, columns[DUPLICATES[0]], copies, lambda stage, share: progress(stage, 0.85 + 0.05 * share)
        )
    progress("writing", 0.9)
    schema = index_schema()
    version = tables.put_columns(table, to_batches(columns, count, schema.names), schema)
    progress("writing", 1.0)
    settled = indexed.rows if summary.settled is None else summary.settled
    statistics = codes.names, quality.statistics
    return WrittenIndex(
        version,
        finite(defaults),
        scale,
        free,
        settled,
        without_rows(extended.graph.cells),
        sums,
        quality.agreement,
        copies,
        statistics,
    )


@dataclass(frozen=True)
class _ExtendedRows:
    """Distinct vectors of all rows, the indexed ones first; items are rows of the table with an embedding.

    Attributes:
        indexed: the indexed vectors, in the table.
        added: float32, shape (A, D): the added vectors.
        graph: neighbours of all distinct vectors.
        touched: bool, shape (M,): true for distinct vectors whose neighbours changed.
        first: int64, shape (M,): the first item of each distinct vector.
        inverse: int64, shape (N,): the distinct vector of each item.
        n_indexed_items: the number of indexed items.
    """

    indexed: StoredVectors
    added: Vectors
    graph: NeighbourGraph
    touched: npt.NDArray[np.bool_]
    first: Positions
    inverse: Positions
    n_indexed_items: int


def _extend_graph(
    table: Table, indexed: IndexedRows, vectors: Vectors, positions: Positions, progress: Progress
) -> _ExtendedRows:
    """Return the graph extended by the added rows.

    Copies among the added rows share a distinct row. A copy of an indexed row is a separate distinct row until the
    index is rebuilt.
    """
    n_indexed_items = len(indexed.positions)
    unique, inverse = unique_rows(vectors)
    first = np.concatenate([np.searchsorted(positions, indexed.first), n_indexed_items + unique])
    stored, added = StoredVectors(table, indexed.first), keep_rows(vectors, unique)
    graph, touched = extend(
        indexed.graph, stored, added, k=NEIGHBOURS, progress=stage_progress(progress, "finding neighbours", 0.15, 0.5)
    )
    all_inverse = np.concatenate([indexed.inverse, len(indexed.first) + inverse])
    return _ExtendedRows(stored, added, graph, touched, first, all_inverse, n_indexed_items)


def _cluster_columns(
    indexed: IndexedRows,
    extended: _ExtendedRows,
    positions: Positions,
    count: int,
    thresholds: Sequence[float],
    sums: ClusterSums | None,
    free: dict[str, int],
    progress: Progress,
) -> tuple[Columns, ClusterSums | None]:
    """Return the cluster columns, and the cluster sums with the added rows; *free* is updated."""
    progress("joining clusters", 0.5)
    weights = np.bincount(extended.inverse, minlength=len(extended.first))
    labels = np.stack([indexed.columns[name][indexed.first] for name in CLUSTERS], axis=1)
    added, numbers = join_clusters(
        extended.indexed,
        extended.added,
        weights,
        extended.graph,
        labels,
        thresholds,
        [free[name] for name in CLUSTERS],
        sums=sums,
        progress=stage_progress(progress, "joining clusters", 0.5, 0.75),
    )
    free |= dict(zip(CLUSTERS, numbers, strict=True))
    if sums is not None:
        sums = sums.with_rows(extended.added, weights[len(labels) :], added)
    clusters = np.concatenate([labels, added])[extended.inverse]
    columns: Columns = {name: scatter(clusters[:, level], positions, count) for level, name in enumerate(CLUSTERS)}
    return {name: np.where(values < 0, NO_EMBEDDING, values) for name, values in columns.items()}, sums


def _duplicate_columns(
    table: Table,
    indexed: IndexedRows,
    extended: _ExtendedRows,
    positions: Positions,
    count: int,
    free: dict[str, int],
    cannot_link: Sequence[Sequence[str]],
    progress: Progress,
    copies: CopyPairs | None,
) -> Columns:
    """Return the columns of near-duplicate groups; *free* is updated."""
    progress("finding duplicates", 0.75)
    owners = video_owners(table, positions)
    before = np.stack([indexed.columns[name] for name in GROUPS], axis=1)[positions[: extended.n_indexed_items]]
    old = np.full((len(positions), len(GROUPS)), -1, dtype=np.int32)
    old[: extended.n_indexed_items] = before
    sets = cannot_link_items(cannot_link_rows(table, cannot_link), positions)
    if copies is not None:
        new, similarity = copy_groups(
            len(positions), copies.items(positions), GROUP_LEVELS, cannot_link=sets, owners=owners
        )
    elif sets:
        vectors = ConcatenatedVectors(extended.indexed, extended.added)
        new, similarity = duplicate_groups(
            vectors, extended.graph, extended.inverse, ALIKE_LEVELS, cannot_link=sets, owners=owners
        )
    else:
        pairs = _apart(_added_pairs(indexed, extended), owners)
        similarity = _similarity(indexed, extended, positions)
        old, numbers = join_groups(old, pairs, ALIKE_LEVELS, [free[name] for name in GROUPS])
        free |= dict(zip(GROUPS, numbers, strict=True))
        new = None
    if new is not None:
        for column, name in enumerate(GROUPS):
            old[:, column], free[name] = keep_numbers(old[:, column], new[:, column], first_free=free[name])
    columns: Columns = {name: scatter(old[:, column], positions, count) for column, name in enumerate(GROUPS)}
    return columns | {"duplicate_similarity": scatter(similarity, positions, count)}


def _apart(pairs: Pairs, owners: npt.NDArray[np.int32] | None) -> Pairs:
    """Return the pairs of items with different owners."""
    if owners is None:
        return pairs
    kept = (owners[pairs[0]] < 0) | (owners[pairs[0]] != owners[pairs[1]])
    return pairs[0][kept], pairs[1][kept], pairs[2][kept]


def _similarity(indexed: IndexedRows, extended: _ExtendedRows, positions: Positions) -> npt.NDArray[np.float32]:
    """Return each item's similarity to the most similar other item."""
    copies = np.bincount(extended.inverse, minlength=len(extended.first))
    nearest = extended.graph.similarity[:, 0] if extended.graph.k else np.full(len(extended.first), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[extended.inverse].astype(np.float32)
    untouched = ~extended.touched[extended.inverse[: extended.n_indexed_items]]
    previous = indexed.columns["duplicate_similarity"][positions[: extended.n_indexed_items]]
    similarity[: extended.n_indexed_items][untouched] = previous[untouched]
    return similarity


def _added_pairs(indexed: IndexedRows, extended: _ExtendedRows) -> Pairs:
    """Return (item, other item, similarity) of all near-duplicate pairs with an added item."""
    graph, min_similarity = extended.graph, DUPLICATE_LEVELS[0] - ROUNDING
    rows = np.flatnonzero(extended.touched)
    row, column = true_places(graph.similarity[rows] >= min_similarity)
    row = rows[row]
    other, score = graph.rows[row, column], graph.similarity[row, column]
    with_added = np.maximum(row, other) >= len(indexed.first)
    items = np.arange(extended.n_indexed_items, len(extended.inverse))
    copies = items[extended.first[extended.inverse[items]] != items]
    return (
        np.concatenate([extended.first[row[with_added]], copies]),
        np.concatenate([extended.first[other[with_added]], extended.first[extended.inverse[copies]]]),
        np.concatenate([score[with_added], np.ones(len(copies), np.float32)]),
    )


def _score_columns(
    indexed: IndexedRows, extended: _ExtendedRows, positions: Positions, count: int, scale: float
) -> tuple[Columns, float]:
    """Return uniqueness and outlier distance of all rows, and the scale; scores of untouched rows do not change.

    The scale changes only if there was none before, because there was nothing to compare.
    """
    changed = extended.touched[extended.inverse]
    rows = np.flatnonzero(extended.touched)
    place_of = np.full(len(extended.first), -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    graph = NeighbourGraph(extended.graph.rows[rows], extended.graph.similarity[rows])
    distances = neighbour_distances(graph, place_of[extended.inverse[changed]])
    unique, new_scale = uniqueness(distances, scale=scale or None)
    fresh = {"uniqueness": unique, "outlier_distance": outlier_values(distances, min_items=0)[0]}
    columns: Columns = {}
    for name, values in fresh.items():
        items = np.full(len(positions), np.nan, dtype=np.float32)
        items[: extended.n_indexed_items] = indexed.columns[name][positions[: extended.n_indexed_items]]
        items[changed] = values
        columns[name] = scatter(items, positions, count)
    return columns, scale or new_scale
