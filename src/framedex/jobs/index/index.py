"""Index of all rows: neighbours, clusters, duplicates, labels, scores and issues, as columns of the media table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.cells import Cells, without_rows
from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.duplicates import copy_groups, duplicate_groups
from framedex.analysis.labels import LabelStatistics, label_quality
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.analysis.stability import keep_numbers
from framedex.core.progress import Progress, ShareProgress
from framedex.issue_types import OUTLIERS, LabelLimits
from framedex.jobs.index.columns import (
    NO_LIMITS,
    Columns,
    Positions,
    graph_columns,
    issue_columns,
    label_columns,
    label_limits,
    own_defaults,
    read_label_codes,
    scatter,
    to_batches,
)
from framedex.jobs.index.indexed_vectors import IndexedVectors, InMemory, indexed_vectors
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.standings import Comparison, no_standings
from framedex.storage import tables
from framedex.storage.copy_pairs import CopyPairs, read_descriptors, video_owners
from framedex.storage.generation import IndexSummary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS, LabelDecisions
from framedex.storage.media_rows import (
    ALIKE_LEVELS,
    CLUSTERS,
    DUPLICATES,
    GROUP_LEVELS,
    GROUPS,
    NEAR,
    NO_EMBEDDING,
    index_columns_of,
    index_schema,
)
from framedex.storage.table_versions import Table

Groups = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Groups of each level and similarities, as :func:`duplicate_groups` returns them."""
FIRST_NUMBERS = dict.fromkeys(CLUSTERS, NO_EMBEDDING + 1) | dict.fromkeys(GROUPS, 0)


@dataclass(frozen=True)
class WrittenIndex:
    """Result of indexing.

    Attributes:
        version: version of the media table.
        thresholds: the default limit of each issue in this dataset; None if it could not be computed.
        uniqueness_scale: the distance with uniqueness 1.
        first_free: by column of clusters and groups: the lowest number that was never used.
        settled: the number of the table's first rows that were grouped by the last rebuild; further rows were added
            later.
        cells: the centroids and the reach of the search, without the cells of rows; None if all rows were compared.
        sums: sums of large clusters.
        label_agreement: the share of labels that agree with those of the neighbours; None if there is nothing to
            compare.
        copies: pairs of copies; None if the media have no copy descriptors.
        label_statistics: the labels, and their statistics; None if they were not computed.
        unread: the number of rows without some values because their image could not be read; they keep their values.
        undescribed: whether some of them have no copy descriptor.
    """

    version: int
    thresholds: dict[str, float | None]
    uniqueness_scale: float
    first_free: dict[str, int]
    settled: int
    cells: Cells | None = field(repr=False, compare=False)
    sums: ClusterSums | None = field(default=None, repr=False, compare=False)
    label_agreement: float | None = None
    copies: CopyPairs | None = field(default=None, repr=False, compare=False)
    label_statistics: tuple[pa.Array, LabelStatistics] | None = field(default=None, repr=False, compare=False)
    unread: int = field(default=0, compare=False)
    undescribed: bool = field(default=False, compare=False)

    @property
    def summary(self) -> IndexSummary:
        """The values of the index for the summary of the generation."""
        return IndexSummary(
            issue_thresholds=self.thresholds,
            uniqueness_scale=self.uniqueness_scale,
            first_free=self.first_free,
            settled=self.settled,
            reach=self.cells.reach if self.cells else None,
            label_agreement=self.label_agreement,
        )


def index(
    table: Table,
    thresholds: Sequence[float],
    *,
    progress: Progress,
    first_free: Mapping[str, int] | None = None,
    settled: int | None = None,
    cannot_link: Sequence[Sequence[str]] = (),
    limits: Mapping[str, float] = NO_LIMITS,
    label_decisions: LabelDecisions = NO_LABEL_DECISIONS,
    copies: CopyPairs | None = None,
    comparison: Comparison | None = None,
    resources: IndexResources | None = None,
) -> WrittenIndex:
    """Compute and write all index columns of a media table.

    If the table was indexed before, clusters and groups with most of their previous members keep their numbers.

    Args:
        table: the media table, at its newest version.
        thresholds: five ascending cosine distances.
        progress: called with the stage and the completed share; raises to stop.
        first_free: by column of clusters and groups: lower numbers were used before.
        settled: the number of rows in the last rebuild; by default all rows.
        cannot_link: sets of media ids; no two of a set are duplicates.
        limits: limits of issues that users set, by issue type.
        label_decisions: decisions that labels are right.
        copies: pairs of copies among the rows; None if the media have no copy descriptors.
        comparison: compares the members of near-duplicate groups; None for none.
        resources: decide whether it is computed in memory, or by groups with temporary files; by default in memory.

    Raises:
        WorkspaceError: there is too little space on the disk for temporary files.
    """
    count = table.count()
    progress("loading vectors", 0.0)
    finding = stage_progress(progress, "finding neighbours", 0.0, 0.35)
    with indexed_vectors(table, "embedding", resources, finding) as vectors:
        graph, positions, first, inverse = vectors.graph, vectors.positions, vectors.first, vectors.inverse
        columns, defaults, scale, judged = _graph_results(
            table,
            vectors,
            cannot_link,
            label_limits(limits),
            label_decisions,
            progress,
            count,
            copies,
        )
        clusters = vectors.clusters(thresholds, stage_progress(progress, "clustering", 0.5, 0.85))
        columns |= {name: scatter(clusters[:, level], positions, count) for level, name in enumerate(CLUSTERS)}
        free = _keep_numbers(
            table, columns, dict(FIRST_NUMBERS | dict(first_free or {})), count if settled is None else settled
        )
        sums = vectors.sums(np.stack([columns[name][positions] for name in CLUSTERS], axis=1))
        columns |= no_standings(count)
        if comparison is not None:
            columns |= comparison.columns(table, columns[DUPLICATES[0]], copies, _part(progress, 0.85, 0.9))
        progress("writing", 0.9)
        columns |= graph_columns(graph, first, inverse, positions, count)
        columns |= {name: np.where(columns[name] < 0, NO_EMBEDDING, columns[name]) for name in CLUSTERS}
        defaults |= own_defaults(table)
        columns |= issue_columns(table, columns, defaults, limits)
        progress("writing", 0.92)
        unindexed = Table(table.path, tables.compact(table, without=index_columns_of(table.schema.names)))
        schema = index_schema()
        version = tables.put_columns(unindexed, to_batches(columns, count, schema.names), schema)
        progress("writing", 1.0)
        agreement, statistics = judged
        cells = without_rows(graph.cells)  # temporary files are held by nothing that is returned
        return WrittenIndex(version, finite(defaults), scale, free, count, cells, sums, agreement, copies, statistics)


def _graph_results(
    table: Table,
    vectors: IndexedVectors,
    cannot_link: Sequence[Sequence[str]],
    limits_of_labels: LabelLimits,
    label_decisions: LabelDecisions,
    progress: Progress,
    count: int,
    copies: CopyPairs | None,
) -> tuple[Columns, dict[str, float], float, tuple[float | None, tuple[pa.Array, LabelStatistics]]]:
    """Return (columns, defaults, scale, (agreement, statistics)), as computed from the neighbours.

    The defaults are limits of issues, the scale is that of uniqueness, the agreement is that of labels with neighbours,
    and the statistics are those of labels.
    """
    progress("finding duplicates", 0.35)
    graph, positions, inverse = vectors.graph, vectors.positions, vectors.inverse
    apart = cannot_link_items(cannot_link_rows(table, cannot_link), positions)
    owners = video_owners(table, positions)
    if copies is not None:
        known = copies.items(positions)
        groups, similarity = copy_groups(len(positions), known, GROUP_LEVELS, cannot_link=apart, owners=owners)
    else:
        groups, similarity = vectors.once(
            "duplicates",
            (apart, owners),
            lambda finding: duplicate_groups(
                vectors.vectors, graph, inverse, ALIKE_LEVELS, cannot_link=apart, owners=owners, progress=finding
            ),
            stage_progress(progress, "finding duplicates", 0.35, 0.45),
        )
    labels = read_label_codes(table, positions, label_decisions)
    quality = label_quality(
        graph,
        inverse,
        labels.labels,
        limits=limits_of_labels,
        progress=stage_progress(progress, "checking labels", 0.45, 0.5),
    )
    distances = neighbour_distances(graph, inverse)
    outliers, limit = outlier_values(distances)
    unique, scale = uniqueness(distances)
    columns: Columns = {name: scatter(groups[:, level], positions, count) for level, name in enumerate(GROUPS)}
    columns |= {
        "duplicate_similarity": scatter(similarity, positions, count),
        "uniqueness": scatter(unique, positions, count),
        "outlier_distance": scatter(outliers, positions, count),
    }
    columns |= label_columns(quality, labels, positions, count)
    return columns, {OUTLIERS.name: limit}, scale, (quality.agreement, (labels.names, quality.statistics))


def duplicates_among(
    table: Table, copies: CopyPairs | None, cannot_link: Sequence[Positions], rows: Positions
) -> Groups:
    """Return the duplicate groups among some rows of a media table that form groups with no others.

    Args:
        table: the media table.
        copies: pairs of copies; None where similar embeddings are duplicates.
        cannot_link: sets of rows; no two of a set are duplicates.
        rows: the ascending rows to group; those without an embedding are in no group.
    """
    if copies is not None:
        return copy_groups(
            len(rows),
            copies.items(rows),
            GROUP_LEVELS,
            cannot_link=cannot_link_items(cannot_link, rows),
            owners=video_owners(table, rows),
        )
    described, content = read_descriptors(table, rows)
    vectors = InMemory.of(rows[described], content, lambda _share: None)
    groups, similarity = duplicate_groups(
        vectors.vectors,
        vectors.graph,
        vectors.inverse,
        ALIKE_LEVELS,
        cannot_link=cannot_link_items(cannot_link, vectors.positions),
        owners=video_owners(table, vectors.positions),
    )
    return scatter(groups, described, len(rows)), np.nan_to_num(scatter(similarity, described, len(rows)), nan=-1)


def stage_progress(progress: Progress, stage: str, start: float, end: float) -> ShareProgress:
    """Return the progress of one stage, as the part from *start* to *end* of the whole progress."""
    return lambda share: progress(stage, start + (end - start) * share)


def _part(progress: Progress, start: float, end: float) -> Progress:
    """Return the progress of several stages, as the part from *start* to *end* of the whole progress."""
    return lambda stage, share: progress(stage, start + (end - start) * share)


def cannot_link_rows(table: Table, cannot_link: Sequence[Sequence[str]]) -> list[Positions]:
    """Return sets of media ids as sets of rows of a table, without deleted media."""
    if not cannot_link:
        return []
    requested = sorted({identifier for each in cannot_link for identifier in each})
    values = pa.array(requested, pa.string())
    row_of: dict[str, int] = {}
    start = 0
    for batch in table.scan(["media_id"]):
        places = pc.index_in(batch.column(0), value_set=values)
        for offset in np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)).tolist():
            row_of[requested[places[offset].as_py()]] = start + offset
        start += batch.num_rows
    return [np.array([row_of[each] for each in ids if each in row_of], dtype=np.int64) for ids in cannot_link]


def cannot_link_items(rows: Sequence[Positions], positions: Positions) -> list[Positions]:
    """Return sets of rows as sets of positions among the ascending rows with an embedding, of two or more each."""
    items = [np.searchsorted(positions, each[np.isin(each, positions)]) for each in rows]
    return [each for each in items if len(each) > 1]


def _keep_numbers(table: Table, columns: Columns, first_free: dict[str, int], settled: int) -> dict[str, int]:
    """Change the numbers of clusters and groups, in place, to continue the previous ones; return the next free numbers.

    The settled members of a previous cluster decide. Members that joined it later count only if it has no others.
    """
    existing = set(table.schema.names)
    for name in FIRST_NUMBERS:
        new = columns[name]
        old = np.full(len(new), -1, dtype=np.int32)
        if name in existing:
            previous = table.scan([name]).read_all().column(0).fill_null(-1).to_numpy()
            old = np.where(previous < FIRST_NUMBERS[name], -1, previous).astype(np.int32)
            joined = old[settled:]
            joined[np.isin(joined, old[:settled])] = -1
        columns[name], first_free[name] = keep_numbers(old, new, first_free=first_free[name])
    return first_free


def first_free_of(summary: IndexSummary) -> dict[str, int]:
    """Return the lowest number that was never used, by column; older versions had no groups of what is alike."""
    return {NEAR: summary.first_free[DUPLICATES[0]]} | summary.first_free


def finite(limits: Mapping[str, float]) -> dict[str, float | None]:
    """Return limits for JSON, with None for infinite ones."""
    return {name: limit if np.isfinite(limit) else None for name, limit in limits.items()}
