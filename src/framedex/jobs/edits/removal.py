"""Deletion of few media of a large dataset: only what follows from them is written, beside the files of the columns.

It leads to what :func:`framedex.jobs.index.removed.index_removed` writes for all rows, which takes over where more than
the neighbours of the deleted media would change.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.cluster_means import ClusterSums
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.core.arrays import Mask, RowIds, Vectors
from framedex.issue_types import JudgedBy, issue_types
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import regroup, related_rows, widest_groups
from framedex.jobs.edits.labels import judge_part
from framedex.jobs.edits.neighbourhood import GraphPart, Neighbourhood, among, graph_part
from framedex.jobs.edits.numbered_rows import NumberedRows
from framedex.jobs.index.columns import limited_confidence, to_batch
from framedex.jobs.index.finish import means_path, read_sums
from framedex.storage import tables
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import read_label_decisions
from framedex.storage.media import Media
from framedex.storage.media_rows import CLUSTERS, index_schema
from framedex.storage.overlay import REMOVED, Values, merge_values
from framedex.storage.table_names import COPIES, LABEL_STATISTICS, MEANS, MEDIA
from framedex.storage.table_versions import ROW_ID, Table, flat
from framedex.storage.videos import VIDEOS

_ALL = 20_000  # rows up to which the index columns of all are written: it takes a tenth of a second
_MOST = 2_000  # deleted rows
_FEW, _SHARE = 1024, 4  # rows of a table whose lists may change: at most so many, or this part of the rows
_MOST_EDITED = 2**17  # values of a column beside its file, and at most half of its values
_SCORES = ("uniqueness", "outlier_distance")
_CHANGING = frozenset((*_SCORES, "duplicate_similarity"))
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Removed:
    """Tables without the deleted media.

    Attributes:
        versions: of all tables of the new generation.
        summary: of the new generation.
    """

    versions: dict[str, int]
    summary: Summary


def remove_few(job: JobContext, media: Media, row_ids: RowIds) -> Removed | None:
    """Delete few rows of a large dataset; return None, and write nothing, where this is not possible.

    Args:
        job: the context of the job.
        media: the media, whose table is at its newest version.
        row_ids: uint64: the rows to delete.
    """
    head = job.head
    if head.n_images <= _ALL or len(row_ids) > _MOST or VIDEOS in head.tables or not _has_all(media, head):
        return None
    around = Neighbourhood(media)
    rows = np.sort(around.numbered.find_row_ids(row_ids))
    gone = np.zeros(around.numbered.count, dtype=bool)
    gone[rows] = True
    copies = around.numbered.copies(head)
    beside = NO_PAIRS if copies is None else copies.take(copies.shares < 1)
    if (gone[beside.a] | gone[beside.b]).any():
        return None  # a collage may belong to another group then
    lists = _Lists.without(around, rows, gone)
    if lists is None or len(lists.changing) > max(_FEW, head.n_images // _SHARE):
        return None
    with ThreadPoolExecutor(2, thread_name_prefix="framedex-removal") as pool:
        labels = pool.submit(_label_changes, media, head, around, lists, gone)
        sums = pool.submit(_write_sums, job, media, around.numbered, rows)
        changes, free = _unlabelled_changes(job, media, around, lists, gone, copies)
        _merge(changes, labels.result())
        versions = sums.result()
    version = _write(media, changes, around.row_ids[rows])
    summary = head.summary
    settled = summary.settled
    if settled is not None:
        settled -= int(np.count_nonzero(around.numbered.rows(rows) < settled))
    return Removed(
        {**head.tables, MEDIA: version, **versions},
        summary.with_(first_free={**summary.first_free, **free}, settled=settled),
    )


def _unlabelled_changes(
    job: JobContext, media: Media, around: Neighbourhood, lists: "_Lists", gone: Mask, copies: CopyPairs | None
) -> tuple[dict[str, Values], dict[str, int]]:
    """Return the changed values of the other media but for label issues, and the next free group numbers.

    Args:
        job: the context of the job.
        media: the media.
        around: their neighbours.
        lists: the neighbour lists that change.
        gone: bool, shape (rows,): the deleted rows, by number.
        copies: pairs of copies among all media; None where similar embeddings are duplicates.
    """
    part = graph_part(lists.original, lists.changing, lists.near, lists.similarity)
    changes = _index_changes(media, around, lists, np.flatnonzero(gone))
    _merge(changes, _score_changes(media, job.head, around.row_ids, lists, part))
    kept = None if copies is None else copies.take(~gone[copies.a] & ~gone[copies.b])
    groups, free = _group_changes(job, media, around, gone, copies, kept, changes.get("duplicate_similarity"))
    _merge(changes, groups)
    return changes, free


def _has_all(media: Media, head: Generation) -> bool:
    """Return whether all that is needed is stored, and nothing else follows from what changes."""
    derived = (each.derived for each in issue_types().values() if each.derived is not None)
    if any(not _CHANGING.isdisjoint(each.inputs) for each in derived):
        return False
    return LABEL_STATISTICS in head.tables and set(index_schema().names) <= set(media.table.schema.names)


@dataclass(frozen=True)
class _Lists:
    """The neighbour lists that change, without the deleted rows. Rows are given by number.

    Attributes:
        original: int32, shape (rows,): for each row the row of its distinct vector; -1 for deleted rows.
        changing: int64, shape (R,), ascending: the rows of distinct vectors whose lists or copies change.
        near: int64, shape (R, k): their neighbours; -1 at the end of a list.
        similarity: float32, shape (R, k); -1 at the end of a list.
        moved: by row that was deleted: the row, of the same vector, that has its list and its cell now.
        fewer: int64, ascending: the rows of distinct vectors, with the same list, that lost copies.
    """

    original: npt.NDArray[np.int32]
    changing: Rows
    near: Rows
    similarity: Vectors
    moved: Mapping[int, int]
    fewer: Rows

    @classmethod
    def without(cls, around: Neighbourhood, rows: Rows, gone: Mask) -> "_Lists | None":
        """Return the lists without some rows; None if a list lacks more than half of its neighbours then."""
        original = around.original.copy()
        gone_lists = rows[original[rows] == rows]
        copies_left = np.setdiff1d(np.unique(original[rows]), [*gone_lists, -1])
        original[rows] = -1
        heirs = np.flatnonzero(among(original, gone_lists))
        moved = {int(original[row]): row for row in heirs[::-1].tolist()}  # the first row of each vector remains
        original[heirs] = [moved[each] for each in original[heirs].tolist()]
        listing = around.listing(gone_lists)
        kept = np.union1d(listing[~gone[listing]], copies_left)
        sources = np.concatenate([kept, np.array(list(moved), dtype=np.int64)])
        near, similarity = around.lists(sources)
        lost = (near >= 0) & gone[near]
        heir_of = np.array([moved.get(each, -1) for each in gone_lists.tolist()], dtype=np.int64)
        near[lost] = heir_of[np.searchsorted(gone_lists, near[lost])]
        order = np.argsort(near < 0, axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        similarity = np.where(near < 0, np.float32(-1), np.take_along_axis(similarity, order, axis=1))
        if len(near) and bool(((near >= 0).sum(axis=1) < around.k / 2).any()):
            return None
        changing = np.concatenate([kept, np.array(list(moved.values()), dtype=np.int64)])
        order = np.argsort(changing)
        return cls(original, changing[order], near[order], similarity[order], moved, copies_left)


def _index_changes(media: Media, around: Neighbourhood, lists: _Lists, rows: Rows) -> dict[str, Values]:
    """Return the changed columns that name rows, and the numbers of the deleted rows."""
    width = index_schema().field("neighbours").type.list_size
    near = np.full((len(lists.changing), width), -1, np.int32)
    similarity = np.full(near.shape, -1, np.float32)
    near[:, : lists.near.shape[1]], similarity[:, : lists.near.shape[1]] = lists.near, lists.similarity
    columns = {"neighbours": near, "neighbour_similarity": similarity}
    row_ids = around.row_ids
    changes = _changes(to_batch(columns, list(columns)), row_ids[lists.changing])
    changes[REMOVED] = rows.astype(np.uint64), pa.repeat(pa.scalar(value=True), len(rows))
    if lists.moved:
        heirs = np.flatnonzero(among(lists.original, np.array(list(lists.moved.values()), dtype=np.int64)))
        _merge(changes, _changes(to_batch({"original": lists.original[heirs]}, ["original"]), row_ids[heirs]))
        before, after = (np.array(list(each), dtype=np.int64) for each in (lists.moved, lists.moved.values()))
        cells = pa.RecordBatch.from_arrays(
            [media.table.take(row_ids[before].tolist(), ["cell"]).column(0).combine_chunks()], names=["cell"]
        )
        _merge(changes, _changes(cells, row_ids[after]))
    return changes


def _score_changes(
    media: Media, head: Generation, row_ids: RowIds, lists: _Lists, part: GraphPart
) -> dict[str, Values]:
    """Return the scores of media whose neighbours or copies changed, and the issues that follow."""
    graph = NeighbourGraph(part.graph.rows[: part.changing], part.graph.similarity[: part.changing])
    distances = neighbour_distances(graph, part.inverse[part.changes])
    scale = head.summary.uniqueness_scale or None
    columns: dict[str, Any] = {
        "uniqueness": uniqueness(distances, scale=scale)[0],
        "outlier_distance": outlier_values(distances, min_items=0)[0],
    }
    missing = np.full(len(distances), np.nan, dtype=np.float32)
    for each in issue_types().values():
        if each.judged_by is JudgedBy.LIMIT and each.column in _SCORES:
            default = head.summary.default_limit(each.name, each.threshold)
            limit = head.summary.limits.get(each.name, np.inf if default is None else default)
            columns[each.confidence_column] = limited_confidence(each, columns, limit, missing)
    if COPIES not in head.tables:
        copies = np.bincount(part.inverse, minlength=len(part.graph.rows))
        nearest = part.graph.similarity[:, 0] if part.graph.k else np.full(len(copies), -1, np.float32)
        columns["duplicate_similarity"] = np.where(copies > 1, np.float32(1), nearest)[part.inverse][part.changes]
    return _changes(to_batch(columns, list(columns)), row_ids[part.rows[part.changes]])


def _label_changes(
    media: Media, head: Generation, around: Neighbourhood, lists: _Lists, gone: Mask
) -> dict[str, Values]:
    """Return the label issues of media whose neighbours changed, or lost copies, which vote together."""
    if head.summary.label_agreement is None:
        return {}
    others = np.setdiff1d(around.listing(lists.fewer), lists.changing)
    others = others[~gone[others]]
    near, similarity = around.lists(others)
    changing = np.concatenate([lists.changing, others])
    order = np.argsort(changing)
    part = graph_part(
        lists.original,
        changing[order],
        np.concatenate([lists.near, near])[order],
        np.concatenate([lists.similarity, similarity])[order],
    )
    places = np.flatnonzero(part.changes)
    decisions = read_label_decisions(media.table.path, head.tables)
    values = judge_part(media, head, part, around.numbered, decisions).take(pa.array(places))
    return _changes(values, around.row_ids[part.rows[places]])


def _group_changes(
    job: JobContext,
    media: Media,
    around: Neighbourhood,
    gone: Mask,
    copies: CopyPairs | None,
    kept: CopyPairs | None,
    nearest: Values | None,
) -> tuple[dict[str, Values], dict[str, int]]:
    """Return the columns about duplicates of media whose groups may change, and the next free group numbers.

    These are the groups that lose a member. Where a decision is about one of their members, these are also all groups
    that would be one with them without decisions: the deleted media may have kept others apart.

    Args:
        job: the context of the job.
        media: the media.
        around: their neighbours.
        gone: bool, shape (rows,): the deleted rows.
        copies: pairs of copies, or None.
        kept: those among the others, or None.
        nearest: changed similarities to the nearest other media.
    """
    numbered = around.numbered
    row_of = numbered.find_all({each for ids in job.cannot_link for each in ids})
    sets = [np.array([row_of[each] for each in ids if each in row_of], dtype=np.int64) for ids in job.cannot_link]
    group = widest_groups(numbered)
    is_member = among(group, np.unique(group[gone & (group >= 0)]))
    if any((is_member[each] | gone[each]).any() for each in sets):  # else no group was kept apart from these
        members = related_rows(around, np.flatnonzero(gone), copies)
    else:
        members = np.flatnonzero(is_member)
    members = members[~gone[members]]
    if not len(members):
        return {}, {}
    sets = [each[~gone[each]] for each in sets]
    values, free = regroup(media, numbered, members, kept, sets, job.head, nearest=nearest)
    return _changes(values, numbered.row_ids[members]), free


def _write_sums(job: JobContext, media: Media, numbered: NumberedRows, rows: Rows) -> dict[str, int]:
    """Write the sums of clusters without the vectors of some rows; return the version of their table by name."""
    sums = read_sums(job.table, job.head)
    if sums is None:
        return {}
    vectors = media.table.take(numbered.row_ids[rows].tolist(), ["embedding"]).column(0).combine_chunks()
    is_present = vectors.is_valid().to_numpy(zero_copy_only=False)
    content = flat(vectors, vectors.type.list_size)[is_present]
    clusters = numbered.take(rows[is_present], CLUSTERS)
    labels = np.stack([each.to_numpy(zero_copy_only=False) for each in clusters], axis=1)
    changed = sums.with_rows(content, np.full(len(content), -1), labels)
    places = np.flatnonzero(changed.weights != sums.weights)
    return {MEANS: _put_sums(job, changed, places)} if len(places) else {}


def _put_sums(job: JobContext, sums: ClusterSums, places: Rows) -> int:
    path = means_path(job.table)
    version = tables.roll_back(path, job.head.tables[MEANS])
    assert version is not None, "the head has the table"
    table = Table(path, version)
    ids = table.scan([], row_ids=True).read_all().column(ROW_ID).to_numpy()[places]
    values = pa.FixedSizeListArray.from_arrays(pa.array(sums.sums[places].ravel()), sums.sums.shape[1])
    written = tables.put_values(table, {"weight": (ids, pa.array(sums.weights[places])), "sum": (ids, values)})
    tables.sync(path)
    return written


def _write(media: Media, changes: Mapping[str, Values], row_ids: RowIds) -> int:
    """Write changed values, delete rows, and return the new version of the media table."""
    table = media.table
    edited = Table(table.path, tables.put_values(table, changes))
    after = Table(table.path, tables.delete_row_ids(edited, row_ids.tolist()))
    if media.columns is not None:
        media.columns.follow_deletion(table, after, row_ids)
    most = max(_FEW, min(after.count() // 2, _MOST_EDITED))
    if any(after.overlay.count(name) > most for name in changes):
        return tables.fold_edits(after)
    return after.version


def _changes(values: pa.RecordBatch, row_ids: RowIds) -> dict[str, Values]:
    """Return values of rows by column, in the order of row ids."""
    order = np.argsort(row_ids)
    ordered = values.take(pa.array(order))
    return {name: (row_ids[order], ordered.column(name)) for name in values.schema.names}


def _merge(changes: dict[str, Values], later: Mapping[str, Values]) -> None:
    """Add later changes, which replace earlier ones of the same values."""
    for name, values in later.items():
        changes[name] = merge_values([changes[name], values]) if name in changes else values
