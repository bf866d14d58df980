"""Limits of issues: the issues of all media and objects under other limits, from stored values."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.issue_types import IssueType, JudgedBy, issue_types
from framedex.jobs.edits.labels import judge_labels
from framedex.jobs.index.columns import (
    BY_LIMIT,
    label_limits,
    limit_of_rows,
    limited_columns,
    limited_confidence,
    read_columns,
    to_batches,
)
from framedex.storage import tables
from framedex.storage.generation import Generation, Summary
from framedex.storage.label_decisions import NO_LABEL_DECISIONS, LabelDecisions, read_label_decisions
from framedex.storage.media_rows import index_schema
from framedex.storage.objects import OBJECTS, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table


def change_limits(table: Path, head: Generation, limits: Mapping[str, float]) -> tuple[dict[str, int], Summary]:
    """Write the issues of all media and objects under other limits; return versions and summary.

    Only the columns of types with another limit are written. Neighbours, groups and values stay as they are.

    Args:
        table: folder of the dataset's media table.
        head: the generation that is edited.
        limits: all limits that users set, by issue type; other types have their defaults.
    """
    before, summary = head.summary.limits, head.summary.with_(limits=dict(limits))
    changed = [each for name, each in issue_types().items() if before.get(name) != limits.get(name)]
    versions = dict(head.tables)
    of_tables = {MEDIA: (table, summary), OBJECTS: (objects_path(table), summary.of_objects())}
    decisions = {MEDIA: read_label_decisions(table, head.tables), OBJECTS: NO_LABEL_DECISIONS}
    for name, (path, own_summary) in of_tables.items():
        if name in head.tables:
            version = tables.roll_back(path, head.tables[name])
            assert version is not None, "the head has the table"
            versions[name] = _judge(Table(path, version), changed, own_summary, decisions[name], head.tables)
            tables.sync(path)
    return versions, summary


def _judge(
    table: Table,
    changed: Sequence[IssueType],
    summary: Summary,
    decisions: LabelDecisions,
    versions: Mapping[str, int],
) -> int:
    """Write the confidences of some issue types; return the new version of the table."""
    if any(each.judged_by is JudgedBy.LABELS for each in changed):
        judged = judge_labels(
            table, label_limits(summary.limits), decisions, agreement=summary.label_agreement, versions=versions
        )
        table = Table(table.path, judged.versions[MEDIA])
    limits = {
        each: np.inf if (limit := summary.limit(each.name, each.threshold)) is None else limit
        for each in changed
        if each.judged_by in BY_LIMIT
    }
    if not limits:
        return table.version
    values = read_columns(table, {name for issue, limit in limits.items() for name in limited_columns(issue, limit)})
    count = table.count()
    missing = np.full(count, np.nan, dtype=np.float32)
    of_rows = {
        issue: limit if issue.name in summary.limits else limit_of_rows(table, issue, limit, summary.issue_thresholds)
        for issue, limit in limits.items()
    }
    columns = {
        issue.confidence_column: limited_confidence(issue, values, limit, missing) for issue, limit in of_rows.items()
    }
    written = index_schema()
    schema = pa.schema([written.field(name) for name in columns])
    return tables.put_columns(table, to_batches(columns, count, schema.names), schema)
