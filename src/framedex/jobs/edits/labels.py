"""Label issues after labels were edited: of all media, or only of those whose neighbours changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.labels import LabelQuality, LabelStatistics, label_quality
from framedex.analysis.neighbours import NeighbourGraph
from framedex.core.arrays import Mask
from framedex.issue_types import JudgedBy, LabelLimits, issue_types
from framedex.jobs.edits.rows import are_few, read_numbers, read_row_ids, write_few
from framedex.jobs.index.columns import (
    label_codes,
    label_columns,
    label_limits,
    read_indexed_rows,
    read_label_codes,
    to_batch,
    to_batches,
)
from framedex.storage import tables
from framedex.storage.generation import Generation
from framedex.storage.label_statistics import read_label_statistics, write_label_statistics
from framedex.storage.media import Media
from framedex.storage.media_rows import NEIGHBOURS, index_schema
from framedex.storage.table_names import LABEL_STATISTICS, MEDIA
from framedex.storage.tables import Table

_ALL = 20_000  # rows up to which all are judged: it takes a tenth of a second
_BLOCK_ROWS = 65_536
_SINGLE = 4  # values up to which each is looked for by itself
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


def judge_labels(table: Table, limits: LabelLimits, *, agreement: float | None = None) -> Judged:
    """Compute the label issues of all media, or objects, from their stored neighbours.

    Args:
        table: the table, at its newest version, with labels that have changed since it was indexed.
        limits: limits of the issues.
        agreement: the agreement of the labels with the neighbours, if they have not changed; None to compute it.

    Returns:
        The version of the table, under the name ``media``, and that of the statistics of the labels of media if they
        have changed.
    """
    indexed = read_indexed_rows(table, None, 0.0)
    labelled = read_label_codes(table, indexed.positions)
    quality = label_quality(indexed.graph, indexed.inverse, labelled.labels, limits=limits, agreement=agreement)
    count = table.count()
    columns = label_columns(quality, labelled.names, indexed.positions, count)
    names = _names()
    schema = pa.schema([index_schema().field(name) for name in names])
    versions = {MEDIA: tables.put_columns(table, to_batches(columns, count, names), schema)}
    if table.path.stem == MEDIA and agreement is None:
        statistics = quality.statistics
        versions[LABEL_STATISTICS] = write_label_statistics(
            table.path, labelled.names, statistics.typical, statistics.limit
        )
    return Judged(versions, quality.agreement)


def judge_edited(media: Media, head: Generation, edited: Rows) -> Judged:
    """Compute the label issues of media whose labels were edited, and of those that have them as neighbours.

    In a large dataset they follow from the statistics of labels of the last index. Once labels of more than a few media
    were edited since, all media are judged again, and the statistics with them.

    Args:
        media: the media after the edit, whose table is at its newest version.
        head: the generation that is edited.
        edited: the rows whose labels were edited.
    """
    table, limits, agreement = media.table, label_limits(head.summary.limits), head.summary.label_agreement
    if table.count() <= _ALL or agreement is None or LABEL_STATISTICS not in head.tables:
        return judge_labels(table, limits)
    if "labels" not in table.overlay.columns:  # the edits were many, and are in the files
        return judge_labels(table, limits)
    part = _changed_part(media, edited)
    if part is None:
        return judge_labels(table, limits)
    labelled = label_codes(media.take(part.row_ids.tolist(), ["labels"]).column(0).combine_chunks())
    statistics = read_label_statistics(table.path, head.tables, labelled.names)
    assert statistics is not None, "the head has the table"
    # The arrays of an empty class list have one value, see `LabelEntries.count`.
    typical, limit = (each if len(each) else np.full(1, np.nan) for each in statistics)
    quality = label_quality(
        part.graph,
        part.inverse,
        labelled.labels,
        limits=limits,
        agreement=agreement,
        statistics=LabelStatistics(typical, limit),
    )
    return Judged({MEDIA: _write_part(table, part, quality, labelled.names)}, agreement)


@dataclass(frozen=True)
class _Part:
    """The media whose label issues may change, and all media that decide them.

    Attributes:
        row_ids: uint64, shape (N,): of these media, in row order.
        graph: the neighbours of their M distinct vectors; those of vectors whose media do not change are arbitrary.
        inverse: int64, shape (N,): the distinct vector of each media item.
        changes: bool, shape (N,): whether its issues may change.
    """

    row_ids: npt.NDArray[np.uint64]
    graph: NeighbourGraph
    inverse: Rows
    changes: Mask


def _changed_part(media: Media, edited: Rows) -> _Part | None:
    """Return the part of the media whose label issues may change; None if it is most of them."""
    original = read_numbers(media, "original").astype(np.int64)
    count, distinct = len(original), int(np.count_nonzero(original == np.arange(len(original))))
    sources = np.unique(original[edited])
    sources = sources[sources >= 0]
    looking = np.union1d(sources, _rows_with_neighbour(media, sources, count))
    if not are_few(media.table, len(looking)):
        return None
    row_ids = read_row_ids(media)
    k = min(NEIGHBOURS, max(distinct - 1, 0))
    lists = media.take(row_ids[looking].tolist(), ["neighbours", "neighbour_similarity"])
    near, similarity = (
        lists.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, NEIGHBOURS)[:, :k]
        for name in lists.schema.names
    )
    needed = np.union1d(looking, near[near >= 0])
    number = np.full(count + 1, -1, dtype=np.int32)  # the last entry maps -1, the end of a list
    number[needed] = np.arange(len(needed))
    graph = NeighbourGraph(np.zeros((len(needed), k), dtype=np.int32), np.zeros((len(needed), k), dtype=np.float32))
    graph.rows[number[looking]], graph.similarity[number[looking]] = number[near], similarity
    of_row = number[original]  # no original maps to -1, too
    rows = np.flatnonzero(of_row >= 0)
    is_looking = np.zeros(len(needed), dtype=bool)
    is_looking[number[looking]] = True
    inverse = of_row[rows].astype(np.int64)
    return _Part(row_ids[rows], graph, inverse, is_looking[inverse])


def _rows_with_neighbour(media: Media, sources: Rows, count: int) -> Rows:
    """Return the rows that have one of some rows in their list of neighbours."""
    is_source = np.zeros(count + 1, dtype=bool)  # the last entry is for -1, the end of a list
    is_source[sources] = True
    found, start = [np.empty(0, dtype=np.int64)], 0
    for lists in _blocks(media):
        listed = np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
        near = lists.flatten().to_numpy(zero_copy_only=False)  # without the lists that are null
        if len(sources) <= _SINGLE:
            at = np.concatenate([np.flatnonzero(near == each) for each in sources.tolist()] or [listed[:0]])
        else:
            at = np.flatnonzero(is_source[near])
        found.append(start + listed[at // NEIGHBOURS])
        start += len(lists)
    return np.unique(np.concatenate(found))


def _blocks(media: Media) -> Iterator[pa.FixedSizeListArray]:
    for batch in media.scan(["neighbours"]):
        for start in range(0, batch.num_rows, _BLOCK_ROWS):
            yield batch.column(0).slice(start, _BLOCK_ROWS)


def _write_part(table: Table, part: _Part, quality: LabelQuality, names: pa.Array) -> int:
    places = np.flatnonzero(part.changes)
    columns = label_columns(quality, names, np.arange(len(part.row_ids)), len(part.row_ids))
    return write_few(table, part.row_ids[places], to_batch(columns, _names()).take(pa.array(places)))


def _names() -> list[str]:
    """Return the columns of the issues about labels."""
    judged = [each for each in issue_types().values() if each.judged_by is JudgedBy.LABELS]
    return [name for each in judged for name in (*each.computed_columns, each.confidence_column)]
