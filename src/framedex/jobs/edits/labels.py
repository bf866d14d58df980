"""Label issues after labels were edited: of all media, or only of those whose neighbours changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.labels import LabelStatistics, label_quality
from framedex.core.arrays import Mask, RowIds
from framedex.issue_types import JudgedBy, LabelLimits, issue_types
from framedex.jobs.edits.neighbourhood import GraphPart, Neighbourhood, graph_part
from framedex.jobs.edits.numbered_rows import NumberedRows
from framedex.jobs.edits.rows import are_few, write_changes, write_few
from framedex.jobs.index.columns import (
    IndexedRows,
    indexed_columns,
    label_codes,
    label_codes_of,
    label_columns,
    label_limits,
    read_indexed_rows,
    read_label_codes,
    to_batch,
    to_batches,
)
from framedex.storage import tables
from framedex.storage.column_keys import columns_key
from framedex.storage.generation import Generation
from framedex.storage.label_decisions import LabelDecisions, read_label_decisions
from framedex.storage.label_statistics import read_label_statistics, write_label_statistics
from framedex.storage.media import Media
from framedex.storage.media_rows import index_schema
from framedex.storage.overlay import REMOVED
from framedex.storage.row_positions import positions_of
from framedex.storage.table_names import LABEL_STATISTICS, MEDIA
from framedex.storage.table_versions import ROW_ID, Table

_ALL = 20_000  # rows up to which all are judged: it takes a tenth of a second
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """Written label issues.

    Attributes:
        versions: of the tables that were written, by name.
        agreement: the agreement of the labels with the neighbours, for the summary.
    """

    versions: dict[str, int]
    agreement: float | None = field(default=None)


def judge_labels(
    table: Table,
    limits: LabelLimits,
    decisions: LabelDecisions,
    *,
    agreement: float | None = None,
    versions: Mapping[str, int] | None = None,
) -> Judged:
    """Compute the label issues of all media, or objects, from their stored neighbours.

    Args:
        table: the table, at its newest version, with labels that have changed since it was indexed.
        limits: limits of the issues.
        decisions: decisions that labels are right.
        agreement: the agreement of the labels with the neighbours, if they have not changed; None to compute it.
        versions: of the tables of the head, by name, if labels have not changed: its statistics of labels go on to
            decide, which a deletion of few media leaves as they were. None to compute statistics.

    Returns:
        The version of the table, under the name ``media``, and that of the statistics of the labels of media if they
        have changed.
    """
    indexed = read_indexed_rows(table, None, 0.0)
    labelled = read_label_codes(table, indexed.positions, decisions)
    is_known = agreement is not None and table.path.stem == MEDIA
    quality = label_quality(
        indexed.graph,
        indexed.inverse,
        labelled.labels,
        limits=limits,
        agreement=agreement,
        statistics=_statistics(table, versions or {}, labelled.names) if is_known else None,
    )
    count = table.count()
    columns = label_columns(quality, labelled, indexed.positions, count)
    names = _names()
    schema = pa.schema([index_schema().field(name) for name in names])
    written = {MEDIA: tables.put_columns(table, to_batches(columns, count, names), schema)}
    if table.path.stem == MEDIA and agreement is None:
        statistics = quality.statistics
        written[LABEL_STATISTICS] = write_label_statistics(
            table.path, labelled.names, statistics.typical, statistics.limit
        )
    return Judged(written, quality.agreement)


def _statistics(table: Table, versions: Mapping[str, int], names: pa.Array) -> LabelStatistics | None:
    """Return the stored statistics of some labels of media; None if there are none."""
    stored = read_label_statistics(table.path, versions, names)
    if stored is None:
        return None
    # The arrays of an empty class list have one value, see `LabelEntries.count`.
    typical, limit = (each if len(each) else np.full(1, np.nan) for each in stored)
    return LabelStatistics(typical, limit)


def _indexed(media: Media) -> IndexedRows:
    """Return the indexed rows of media, from memory if possible, as edits of labels leave them as they are."""
    if media.columns is None:
        return read_indexed_rows(media.table, None, 0.0)
    key = "indexed rows", columns_key(media.table, indexed_columns() | {REMOVED})
    indexed: IndexedRows = media.columns.hold(key, lambda: read_indexed_rows(media.table, None, 0.0))
    return indexed


def write_judged(media: Media, head: Generation, row_ids: RowIds, labels: pa.Array) -> Judged | None:
    """Write labels of few media of a small dataset, and the label issues that change by them, as one version.

    The dataset has no statistics of labels afterwards: only edits of large datasets read them, and an index, without
    which no dataset grows, writes them.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        row_ids: uint64, shape (N,), ascending: the rows.
        labels: their labels.

    Returns:
        None, and nothing is written, if the dataset is large, lacks columns, or many issues change.
    """
    table, names = media.table, _names()
    if _has_statistics(table, head) or not {"labels", *names} <= set(table.schema.names):
        return None
    stored = pa.Table.from_batches(media.scan([ROW_ID, "labels", *names])).combine_chunks()
    all_ids = stored[ROW_ID].to_numpy()
    positions = positions_of(all_ids, row_ids)
    if positions is None:
        return None
    places = np.arange(len(all_ids))
    places[positions] = len(all_ids) + np.arange(len(row_ids))
    before = stored["labels"].combine_chunks()
    column = pa.concat_arrays([before, labels.cast(before.type)]).take(pa.array(places))
    decisions, indexed = read_label_decisions(table.path, head.tables), _indexed(media)
    labelled = label_codes_of(table, column, indexed.positions, decisions)
    quality = label_quality(
        indexed.graph, indexed.inverse, labelled.labels, limits=label_limits(head.summary.limits), agreement=None
    )
    values = to_batch(label_columns(quality, labelled, indexed.positions, len(column)), names)
    changes = {"labels": (row_ids, labels)}
    for name in names:
        rows = np.flatnonzero(_differ(stored[name].combine_chunks(), values[name]))
        if not are_few(table, len(rows)):
            return None
        if len(rows):
            order = np.argsort(all_ids[rows])
            changes[name] = all_ids[rows][order], values[name].take(pa.array(rows[order]))
    return Judged({MEDIA: write_changes(table, changes)}, quality.agreement)


def _differ(old: pa.Array, new: pa.Array) -> Mask:
    """Return whether the values of two columns differ in each row: bool, shape (rows,)."""
    differ = pc.or_kleene(pc.not_equal(old, new), pc.xor(old.is_null(), new.is_null()))
    return np.asarray(differ.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def judge_edited(media: Media, head: Generation, edited: Rows) -> Judged:
    """Compute the label issues of media whose labels were edited, and of those that have them as neighbours.

    In a large dataset they follow from the statistics of labels of the last index. Once labels of more than a few media
    were edited since, all media are judged again, and the statistics with them.

    Args:
        media: the media after the edit, whose table is at its newest version.
        head: the generation that is edited.
        edited: the rows whose labels were edited.
    """
    table, limits = media.table, label_limits(head.summary.limits)
    decisions = read_label_decisions(table.path, head.tables)
    if "labels" not in table.overlay.columns:  # the edits were many, and are in the files
        return judge_labels(table, limits, decisions)
    if not _has_statistics(table, head):
        return judge_labels(table, limits, decisions)
    around = Neighbourhood(media)
    sources = _sources(around, around.numbered.numbers(edited))
    changing = np.union1d(sources, around.listing(sources))
    if not are_few(table, len(changing)):
        return judge_labels(table, limits, decisions)
    return _judge_few(media, head, around, changing, decisions)


def judge_decided(media: Media, head: Generation, decided: Rows, decisions: LabelDecisions) -> Judged:
    """Compute the label issues of media about which decisions changed; labels and neighbours have not.

    Args:
        media: the media, whose table is at its newest version.
        head: the generation that is edited.
        decided: the rows of the media.
        decisions: all decisions after the change.
    """
    around = Neighbourhood(media)
    changing = _sources(around, around.numbered.numbers(decided))
    if _has_statistics(media.table, head) and are_few(media.table, len(changing)):
        return _judge_few(media, head, around, changing, decisions)
    summary = head.summary
    return judge_labels(
        media.table,
        label_limits(summary.limits),
        decisions,
        agreement=summary.label_agreement,
        versions=head.tables,
    )


def _has_statistics(table: Table, head: Generation) -> bool:
    """Return whether a table is large, and there are statistics by which few rows are judged."""
    return table.count() > _ALL and head.summary.label_agreement is not None and LABEL_STATISTICS in head.tables


def _sources(around: Neighbourhood, rows: Rows) -> Rows:
    """Return the rows of the distinct vectors of some rows, ascending; all by number."""
    sources = np.unique(around.original[rows])
    return sources[sources >= 0].astype(np.int64)


def _judge_few(
    media: Media, head: Generation, around: Neighbourhood, changing: Rows, decisions: LabelDecisions
) -> Judged:
    """Compute and write the label issues of the media with some distinct vectors, by the statistics of the head."""
    part = graph_part(around.original, changing, *around.lists(changing))
    values = judge_part(media, head, part, around.numbered, decisions)
    places = np.flatnonzero(part.changes)
    version = write_few(media.table, around.row_ids[part.rows[places]], values.take(pa.array(places)))
    return Judged({MEDIA: version}, head.summary.label_agreement)


def judge_part(
    media: Media, head: Generation, part: GraphPart, numbered: NumberedRows, decisions: LabelDecisions
) -> pa.RecordBatch:
    """Return the columns of the issues about labels for the media of a part, by the statistics of the last index.

    Args:
        media: the media.
        head: a generation with statistics of labels.
        part: of the media.
        numbered: the rows of the media by number.
        decisions: decisions that labels are right.
    """
    labels, *media_ids = numbered.take(part.rows, ["labels", *(["media_id"] if decisions else [])])
    right = decisions.hold(media_ids[0], labels) if media_ids else np.zeros(len(labels), dtype=bool)
    labelled = label_codes(labels, right)
    statistics = _statistics(media.table, head.tables, labelled.names)
    assert statistics is not None, "the head has the table"
    quality = label_quality(
        part.graph,
        part.inverse,
        labelled.labels,
        limits=label_limits(head.summary.limits),
        agreement=head.summary.label_agreement,
        statistics=statistics,
        judged=part.changing,
    )
    columns = label_columns(quality, labelled, np.arange(len(part.rows)), len(part.rows))
    return to_batch(columns, _names())


def _names() -> list[str]:
    """Return the columns of the issues about labels."""
    judged = [each for each in issue_types().values() if each.judged_by is JudgedBy.LABELS]
    return [name for each in judged for name in (*each.computed_columns, each.confidence_column)]
