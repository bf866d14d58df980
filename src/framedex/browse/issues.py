"""What is wrong with the media."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.ranks import percentiles
from framedex.browse.explore import file_name
from framedex.checks import check_integer
from framedex.issue_types import IssueType, find_issue_type, issue_types
from framedex.records import Condition, IssueSummary
from framedex.storage.media import Media

ISSUE_COLUMNS = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("issue_type", pa.string()),
        pa.field("value", pa.float32()),
        pa.field("threshold", pa.float32()),
        pa.field("percentile", pa.float32()),
        pa.field("confidence", pa.float32()),
        pa.field("reason", pa.string()),
        pa.field("suggested_label", pa.string()),
    ]
)


def issue_summaries(media: Media, condition: Condition) -> list[IssueSummary]:
    """Return how often each issue was found among the media that meet a condition, in the order of their names."""
    # A dataset that was indexed before an issue was known has no column of it.
    types, there = issue_types(), set(media.table.schema.names)
    columns = [each.confidence_column for each in types.values() if each.confidence_column in there]
    counts = ", ".join(f"count({column}) AS {column}" for column in columns)
    row = media.query(f"SELECT {counts} FROM chosen", condition, columns).to_pylist()[0]
    limits = media.generation.summary.get("issue_thresholds", {})
    return [
        IssueSummary(
            issue_type=name,
            count=row.get(issue.confidence_column, 0),
            threshold=limits.get(name),
            meaning=issue.meaning,
        )
        for name, issue in sorted(types.items())
    ]


def issues(
    media: Media, condition: Condition, *, kinds: Sequence[str] | None = None, limit: int | None = None
) -> pa.Table:
    """Return a row for each issue of each media item, by issue and then worst first.

    Args:
        media: what is looked at.
        condition: which of it.
        kinds: names of issues; None for all.
        limit: at most so many rows of each issue.

    Returns:
        ``media_id, file_name, path, issue_type, value, threshold, percentile, confidence, reason, suggested_label``.
        ``percentile`` is where the value stands among all media of the dataset that have that measure, whether they
        meet the condition or not: 100 is the worst in the direction of the issue, 0 the best; see
        :func:`framedex.analysis.ranks.percentiles`. Value, threshold and percentile are null for ``corrupted``, which
        has a reason instead. Only mislabelled media have a suggested label.

    Raises:
        InvalidInput: an issue of that name does not exist, or the limit is no count.
    """
    types = issue_types()
    wanted = [types[name] for name in sorted(types)] if kinds is None else [find_issue_type(kind) for kind in kinds]
    check_limit(limit)
    return pa.concat_tables(
        [ISSUE_COLUMNS.empty_table(), *(_issues_of(media, condition, issue, limit) for issue in wanted)]
    )


def check_limit(limit: int | None) -> None:
    """Check how many rows are wanted at most.

    Raises:
        InvalidInput: it is no whole number from 0.
    """
    check_integer("limit", limit, minimum=0, optional=True)


def _issues_of(media: Media, condition: Condition, issue: IssueType, limit: int | None) -> pa.Table:
    column, value, there = issue.confidence_column, issue.column, set(media.table.schema.names)
    if column not in there or (value is not None and value not in there):
        return ISSUE_COLUMNS.empty_table()
    details = [name for name in issue.details if name in there]
    # Issues of one confidence are ordered by value: it may lie beyond where the confidence ends.
    order = "" if value is None else f", {value} {'DESC' if issue.above else 'ASC'}"
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT media_id, path AS file_name, path, {value or 'NULL'}::FLOAT AS value, {column} AS confidence, "
        f"{'error' if value is None else 'NULL::VARCHAR'} AS reason, "
        f"{'suggested_label' if 'suggested_label' in details else 'NULL::VARCHAR'} AS suggested_label "
        f"FROM chosen WHERE {column} IS NOT NULL ORDER BY confidence DESC{order}, _rowid{bound}"
    )
    columns = ["media_id", "path", column, value or "error", *details]
    found = media.query(text, condition, columns)
    threshold = media.generation.summary.get("issue_thresholds", {}).get(issue.name)
    arrays = {
        "file_name": pa.array([file_name(path) for path in found["file_name"].to_pylist()], pa.string()),
        "issue_type": pa.repeat(pa.scalar(issue.name), len(found)),
        "threshold": pa.array([threshold] * len(found), pa.float32()),
        "percentile": _percentiles(media, issue, found["value"]),
    }
    return pa.table(
        [
            arrays.get(field.name, found[field.name] if field.name in found.column_names else None)
            for field in ISSUE_COLUMNS
        ],
        schema=ISSUE_COLUMNS,
    )


def _percentiles(media: Media, issue: IssueType, values: pa.ChunkedArray) -> pa.Array:
    """Return the percentiles of values among those of the whole dataset; null where there is no value."""
    if issue.column is None or not len(values):
        return pa.nulls(len(values), pa.float32())
    measured = _floats(media.table.scan([issue.column]).read_all().column(0))
    ranks = percentiles(_floats(values), measured[~np.isnan(measured)], above=issue.above)
    return pa.array(ranks, pa.float32(), from_pandas=True)


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float32]:
    return np.asarray(column.to_numpy(), dtype=np.float32)
