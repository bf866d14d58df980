"""Rows to an index: neighbours, clusters, duplicates, labels, scores and issues, as columns of the media table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.cluster_means import ClusterSums, cluster_sums
from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.labels import label_quality
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbours import Graph, nearest, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.arrays import Vectors
from framedex.issue_types import OUTLIERS
from framedex.jobs.index.columns import (
    Columns,
    Positions,
    graph_columns,
    issue_columns,
    label_columns,
    read_labels,
    scatter,
    to_batches,
)
from framedex.progress import Progress, ShareProgress
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, NEIGHBOURS, NO_EMBEDDING, index_columns_of, index_schema
from framedex.storage.tables import Table

"""Called with the name of the stage and the share of the whole that is done, 0 to 1; raises to stop."""

FIRST_NUMBERS = dict.fromkeys(CLUSTERS, NO_EMBEDDING + 1) | dict.fromkeys(DUPLICATES, 0)


@dataclass(frozen=True)
class WrittenIndex:
    """What indexing wrote.

    Attributes:
        version: of the media table.
        thresholds: the limit of each issue in this dataset; None where it could not be set.
        uniqueness_scale: the distance that has uniqueness 1.
        first_free: by column of clusters and groups: the least number that was never used.
        settled: how many of the table's first rows were grouped all at once; those behind them joined later.
        graph: the neighbours, with the cells that they were found by.
        sums: of large clusters.
        unread: rows that lack measures because their image could not be read; they keep the values they had.
    """

    version: int
    thresholds: dict[str, float | None]
    uniqueness_scale: float
    first_free: dict[str, int]
    settled: int
    graph: Graph = field(repr=False, compare=False)
    sums: ClusterSums | None = field(default=None, repr=False, compare=False)
    unread: int = field(default=0, compare=False)

    @property
    def summary(self) -> dict[str, Any]:
        """What is stored of it with the generation."""
        return {
            "issue_thresholds": self.thresholds,
            "uniqueness_scale": self.uniqueness_scale,
            "first_free": self.first_free,
            "settled": self.settled,
            "reach": self.graph.cells.reach if self.graph.cells else None,
        }


def index(
    table: Table,
    thresholds: Sequence[float],
    *,
    progress: Progress,
    first_free: Mapping[str, int] | None = None,
    settled: int | None = None,
    cannot_link: Sequence[Sequence[str]] = (),
) -> WrittenIndex:
    """Compute all index columns of a media table and write them; return what was written.

    Where the table has been indexed before, clusters and groups that keep most of their members keep their numbers.

    Args:
        table: the media table, at its newest version.
        thresholds: five ascending cosine distances.
        progress: called with the stage and the share that is done; raises to stop.
        first_free: by column of clusters and groups: numbers below it were used before.
        settled: how many rows the last index of all covered; by default all that there are.
        cannot_link: sets of media ids of which no two are duplicates.
    """
    count = table.count()
    progress("loading vectors", 0.0)
    positions, vectors = table.vectors()
    progress("finding neighbours", 0.05)
    first, inverse = unique_rows(vectors)
    vectors = keep_rows(vectors, first)
    graph = nearest(vectors, k=NEIGHBOURS, progress=stage_progress(progress, "finding neighbours", 0.05, 0.35))
    columns, limits, scale = _by_graph(table, vectors, graph, positions, inverse, cannot_link, progress, count)
    weights = np.bincount(inverse, minlength=len(first))
    clusters = average_linkage(
        vectors, weights, graph, thresholds, progress=stage_progress(progress, "clustering", 0.5, 0.9)
    )[inverse]
    columns |= {name: scatter(clusters[:, level], positions, count) for level, name in enumerate(CLUSTERS)}
    free = _keep_numbers(
        table, columns, dict(FIRST_NUMBERS | dict(first_free or {})), count if settled is None else settled
    )
    numbers = np.stack([columns[name][positions[first]] for name in CLUSTERS], axis=1)
    sums = cluster_sums(vectors, weights, numbers, engine=CpuProducts())
    del vectors
    progress("writing", 0.9)
    columns |= graph_columns(graph, first, inverse, positions, count)
    columns |= {name: np.where(columns[name] < 0, NO_EMBEDDING, columns[name]) for name in CLUSTERS}
    columns |= issue_columns(table, columns, limits)
    progress("writing", 0.92)
    bare = Table(table.path, tables.compact(table, without=index_columns_of(table.schema.names)))
    written = index_schema()
    version = tables.put_columns(bare, to_batches(columns, count, written.names), written)
    progress("writing", 1.0)
    return WrittenIndex(version, finite(limits), scale, free, count, graph, sums)


def _by_graph(
    table: Table,
    vectors: Vectors,
    graph: Graph,
    positions: Positions,
    inverse: Positions,
    cannot_link: Sequence[Sequence[str]],
    progress: Progress,
    count: int,
) -> tuple[Columns, dict[str, float], float]:
    """Return the columns that follow from the neighbours, the limit of outliers, and the scale of uniqueness."""
    progress("finding duplicates", 0.35)
    groups, similarity = duplicate_groups(
        VectorsInMemory(vectors),
        graph,
        inverse,
        DUPLICATE_LEVELS,
        cannot_link=cannot_link_items(table, positions, cannot_link),
        progress=stage_progress(progress, "finding duplicates", 0.35, 0.45),
    )
    labels = read_labels(table, positions)
    quality = label_quality(
        graph, inverse, labels.labels, progress=stage_progress(progress, "checking labels", 0.45, 0.5)
    )
    distances = neighbour_distances(graph, inverse)
    outliers, limit = outlier_values(distances)
    unique, scale = uniqueness(distances)
    columns: Columns = {name: scatter(groups[:, level], positions, count) for level, name in enumerate(DUPLICATES)}
    columns |= {
        "duplicate_similarity": scatter(similarity, positions, count),
        "uniqueness": scatter(unique, positions, count),
        "outlier_distance": scatter(outliers, positions, count),
    }
    return columns | label_columns(quality, labels.names, positions, count), {OUTLIERS.name: limit}, scale


def stage_progress(progress: Progress, stage: str, start: float, end: float) -> ShareProgress:
    """Return a progress of one stage, which takes the whole from *start* to *end*."""
    return lambda share: progress(stage, start + (end - start) * share)


def keep_rows(vectors: Vectors, rows: Positions) -> Vectors:
    """Return some rows, ascending, moved to the front of the same memory, so that no second copy is needed."""
    if len(rows) < len(vectors):
        for start in range(0, len(rows), 16384):
            some = rows[start : start + 16384]
            vectors[start : start + len(some)] = vectors[some]
    return vectors[: len(rows)]


def cannot_link_items(
    table: Table, positions: Positions, cannot_link: Sequence[Sequence[str]]
) -> list[npt.NDArray[np.int64]]:
    """Return sets of media ids as sets of places among the rows that have an embedding; what is gone is left out."""
    if not cannot_link:
        return []
    wanted = {identifier for each in cannot_link for identifier in each}
    place_of: dict[str, int] = {}
    start = 0
    for batch in table.scan(["media_id"]):
        place_of |= {
            identifier: start + place
            for place, identifier in enumerate(batch.column(0).to_pylist())
            if identifier in wanted
        }
        start += batch.num_rows
    rows = [np.array([place_of[each] for each in ids if each in place_of], dtype=np.int64) for ids in cannot_link]
    found = [np.searchsorted(positions, each[np.isin(each, positions)]) for each in rows]
    return [each for each in found if len(each) > 1]


def _keep_numbers(table: Table, columns: Columns, first_free: dict[str, int], settled: int) -> dict[str, int]:
    """Give the new clusters and groups the numbers of those that they continue, in place; return the next free ones.

    What a cluster was is said by its settled members; those that joined it later count where it has no others.
    """
    had = set(table.schema.names)
    for name in FIRST_NUMBERS:
        new = columns[name]
        old = np.full(len(new), -1, dtype=np.int32)
        if name in had:
            held = table.scan([name]).read_all().column(0).fill_null(-1).to_numpy()
            old = np.where(held < FIRST_NUMBERS[name], -1, held).astype(np.int32)
            joined = old[settled:]
            joined[np.isin(joined, old[:settled])] = -1
        columns[name], first_free[name] = keep_numbers(old, new, first_free=first_free[name])
    return first_free


def finite(limits: Mapping[str, float]) -> dict[str, float | None]:
    """Return limits as JSON can hold them: None for infinite ones."""
    return {name: limit if np.isfinite(limit) else None for name, limit in limits.items()}
