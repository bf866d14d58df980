"""Rows that were appended to an indexed table: what they join, without computing the index anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.additions import extend, join_clusters, join_groups
from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.labels import label_quality
from framedex.analysis.linkage import ROUNDING
from framedex.analysis.neighbours import Graph, unique_rows
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import ConcatenatedVectors
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
from framedex.jobs.index.index import WrittenIndex, cannot_link_items, finite, keep_rows, stage_progress
from framedex.progress import Progress
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, NEIGHBOURS, NO_EMBEDDING, index_schema
from framedex.storage.tables import StoredVectors, Table


def index_added(
    table: Table,
    thresholds: Sequence[float],
    summary: Mapping[str, Any],
    *,
    centroids: Vectors | None,
    sums: ClusterSums | None,
    progress: Progress,
    cannot_link: Sequence[Sequence[str]] = (),
) -> WrittenIndex:
    """Compute the index columns of rows that were appended, and of those that they touch; write them.

    Added rows join the nearest cluster within each threshold or found their own; clusters of the other rows do not
    change. Near-duplicates, uniqueness and outliers of rows change where an added row is among their nearest. The scale
    of uniqueness and the limit of outliers stay as they were until all is indexed anew.

    Args:
        table: the media table, at its newest version.
        thresholds: five ascending cosine distances.
        summary: of the last index: :attr:`Indexed.summary`.
        centroids: float32, shape (C, D): of the cells of the last index; None if it had none.
        sums: of large clusters, as the last index left them.
        progress: called with the stage and the share that is done; raises to stop.
        cannot_link: sets of media ids of which no two are duplicates.
    """
    count = table.count()
    progress("reading the index", 0.0)
    known = read_indexed_rows(table, centroids, summary["reach"] or 0.0)
    places, vectors = table.vectors(start=known.rows)
    positions = np.concatenate([known.positions, places])
    more = _extended(table, known, vectors, positions, progress)
    free = dict(summary["first_free"])
    columns, sums = _clusters(known, more, positions, count, thresholds, sums, free, progress)
    columns |= _duplicates(table, known, more, positions, count, free, cannot_link, progress)
    scores, scale = _scores(known, more, positions, count, summary["uniqueness_scale"])
    columns |= scores
    columns |= graph_columns(more.graph, more.first, more.inverse, positions, count)
    labelled = read_labels(table, positions)
    quality = label_quality(
        more.graph, more.inverse, labelled.labels, progress=stage_progress(progress, "checking labels", 0.8, 0.9)
    )
    columns |= label_columns(quality, labelled.names, positions, count)
    limit = summary["issue_thresholds"][OUTLIERS.name]
    limits = {OUTLIERS.name: np.inf if limit is None else limit}
    columns |= issue_columns(table, columns, limits)
    progress("writing", 0.9)
    written = index_schema()
    version = tables.put_columns(table, to_batches(columns, count, written.names), written)
    progress("writing", 1.0)
    return WrittenIndex(version, finite(limits), scale, free, summary["settled"], more.graph, sums)


@dataclass(frozen=True)
class _ExtendedRows:
    """The distinct vectors of all rows, the known ones first.

    Attributes:
        known: the vectors that are known, in the table.
        added: float32, shape (A, D): those that are not.
        graph: their neighbours.
        touched: bool, shape (M,): those whose neighbours changed.
        first: int64, shape (M,): the first item of each.
        inverse: int64, shape (N,): the distinct row of each item, a row of the table that has an embedding.
        known_items: how many of the items are known.
    """

    known: StoredVectors
    added: Vectors
    graph: Graph
    touched: npt.NDArray[np.bool_]
    first: Positions
    inverse: Positions
    known_items: int


def _extended(
    table: Table, known: IndexedRows, vectors: Vectors, positions: Positions, progress: Progress
) -> _ExtendedRows:
    """Find the neighbours of added rows.

    Copies among the added rows are one distinct row; a copy of a known row is one beside it until all is indexed anew.
    """
    known_items = len(known.positions)
    unique, inverse = unique_rows(vectors)
    first = np.concatenate([np.searchsorted(positions, known.first), known_items + unique])
    stored, added = StoredVectors(table, known.first), keep_rows(vectors, unique)
    graph, touched = extend(
        known.graph, stored, added, k=NEIGHBOURS, progress=stage_progress(progress, "finding neighbours", 0.15, 0.5)
    )
    all_inverse = np.concatenate([known.inverse, len(known.first) + inverse])
    return _ExtendedRows(stored, added, graph, touched, first, all_inverse, known_items)


def _clusters(
    known: IndexedRows,
    more: _ExtendedRows,
    positions: Positions,
    count: int,
    thresholds: Sequence[float],
    sums: ClusterSums | None,
    free: dict[str, int],
    progress: Progress,
) -> tuple[Columns, ClusterSums | None]:
    """Return the columns of clusters, and their sums with the added rows; *free* gets the next free numbers."""
    progress("joining clusters", 0.5)
    weights = np.bincount(more.inverse, minlength=len(more.first))
    labels = np.stack([known.columns[name][known.first] for name in CLUSTERS], axis=1)
    added, numbers = join_clusters(
        more.known,
        more.added,
        weights,
        more.graph,
        labels,
        thresholds,
        [free[name] for name in CLUSTERS],
        sums=sums,
        progress=stage_progress(progress, "joining clusters", 0.5, 0.75),
    )
    free |= dict(zip(CLUSTERS, numbers, strict=True))
    if sums is not None:
        sums = sums.with_rows(more.added, weights[len(labels) :], added)
    clusters = np.concatenate([labels, added])[more.inverse]
    columns: Columns = {name: scatter(clusters[:, level], positions, count) for level, name in enumerate(CLUSTERS)}
    return {name: np.where(values < 0, NO_EMBEDDING, values) for name, values in columns.items()}, sums


def _duplicates(
    table: Table,
    known: IndexedRows,
    more: _ExtendedRows,
    positions: Positions,
    count: int,
    free: dict[str, int],
    cannot_link: Sequence[Sequence[str]],
    progress: Progress,
) -> Columns:
    """Return the columns of near-duplicate groups; *free* gets the next free numbers."""
    progress("finding duplicates", 0.75)
    before = np.stack([known.columns[name] for name in DUPLICATES], axis=1)[positions[: more.known_items]]
    old = np.full((len(positions), len(DUPLICATES)), -1, dtype=np.int32)
    old[: more.known_items] = before
    sets = cannot_link_items(table, positions, cannot_link)
    similarity = _similarity(known, more, positions)
    if sets:
        vectors = ConcatenatedVectors(more.known, more.added)
        new, similarity = duplicate_groups(vectors, more.graph, more.inverse, DUPLICATE_LEVELS, cannot_link=sets)
        for place, name in enumerate(DUPLICATES):
            old[:, place], free[name] = keep_numbers(old[:, place], new[:, place], first_free=free[name])
    else:
        pairs = _added_pairs(known, more)
        old, numbers = join_groups(old, pairs, DUPLICATE_LEVELS, [free[name] for name in DUPLICATES])
        free |= dict(zip(DUPLICATES, numbers, strict=True))
    columns: Columns = {name: scatter(old[:, place], positions, count) for place, name in enumerate(DUPLICATES)}
    return columns | {"duplicate_similarity": scatter(similarity, positions, count)}


def _similarity(known: IndexedRows, more: _ExtendedRows, positions: Positions) -> npt.NDArray[np.float32]:
    """Return each item's similarity to the most similar other one."""
    copies = np.bincount(more.inverse, minlength=len(more.first))
    nearest = more.graph.similarity[:, 0] if more.graph.k else np.full(len(more.first), -1, np.float32)
    similarity = np.where(copies > 1, np.float32(1), nearest)[more.inverse].astype(np.float32)
    untouched = ~more.touched[more.inverse[: more.known_items]]
    held = known.columns["duplicate_similarity"][positions[: more.known_items]]
    similarity[: more.known_items][untouched] = held[untouched]
    return similarity


def _added_pairs(known: IndexedRows, more: _ExtendedRows) -> tuple[Positions, Positions, npt.NDArray[np.float32]]:
    """Return (item, other item, similarity) of all near-duplicate pairs with an added item."""
    graph, least = more.graph, DUPLICATE_LEVELS[0] - ROUNDING
    rows = np.flatnonzero(more.touched)
    row, place = np.nonzero(graph.similarity[rows] >= least)
    row = rows[row]
    other, score = graph.rows[row, place], graph.similarity[row, place]
    with_added = np.maximum(row, other) >= len(known.first)
    items = np.arange(more.known_items, len(more.inverse))
    copies = items[more.first[more.inverse[items]] != items]
    return (
        np.concatenate([more.first[row[with_added]], copies]),
        np.concatenate([more.first[other[with_added]], more.first[more.inverse[copies]]]),
        np.concatenate([score[with_added], np.ones(len(copies), np.float32)]),
    )


def _scores(
    known: IndexedRows, more: _ExtendedRows, positions: Positions, count: int, scale: float
) -> tuple[Columns, float]:
    """Return uniqueness and outlier distance of all rows, and the scale; scores of rows that nothing touched stay.

    The scale stays, too, but where there was none because there was nothing to compare.
    """
    changed = more.touched[more.inverse]
    rows = np.flatnonzero(more.touched)
    place_of = np.full(len(more.first), -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    graph = Graph(more.graph.rows[rows], more.graph.similarity[rows])
    distances = neighbour_distances(graph, place_of[more.inverse[changed]])
    unique, found = uniqueness(distances, scale=scale or None)
    fresh = {"uniqueness": unique, "outlier_distance": outlier_values(distances, least=0)[0]}
    columns: Columns = {}
    for name, values in fresh.items():
        items = np.full(len(positions), np.nan, dtype=np.float32)
        items[: more.known_items] = known.columns[name][positions[: more.known_items]]
        items[changed] = values
        columns[name] = scatter(items, positions, count)
    return columns, scale or found
