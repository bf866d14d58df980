"""Quality issues of media."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.ranks import percentiles
from framedex.browse.explore import file_name
from framedex.core.checks import check_integer
from framedex.issue_types import MISLABELS, IssueType, JudgedBy, find_issue_type, issue_types
from framedex.issue_types.labels import USUAL_AGREEMENT
from framedex.records import IssueSummary
from framedex.storage.condition import Condition
from framedex.storage.media import Media

_DAMAGED = "its data is damaged; it was decoded with gaps"
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

_ADVICE = "embeddings of another model may help, one trained on images like these"
_ADVICE_FOR = {
    "gist": "the encoder gist compares layout and colours; an encoder that knows what images show helps, such as CLIP "
    "or a classifier in ONNX"
}
"""Advice by encoder where few labels agree with those of the neighbours."""


def issue_summaries(media: Media, condition: Condition) -> list[IssueSummary]:
    """Return the number of media with each issue among those that meet a condition, sorted by issue name."""
    # Datasets indexed before an issue type was added lack its column.
    types, columns_present = issue_types(), set(media.table.schema.names)
    columns = [each.confidence_column for each in types.values() if each.confidence_column in columns_present]
    counts = ", ".join(f"count({column}) AS {column}" for column in columns)
    row = media.query(f"SELECT {counts} FROM chosen", condition, columns).to_pylist()[0]
    summary, notes = media.generation.summary, issue_notes(media)
    return [
        IssueSummary(
            issue_type=name,
            count=row.get(issue.confidence_column, 0),
            threshold=summary.limit(name),
            meaning=issue.meaning,
            note=notes.get(name),
        )
        for name, issue in sorted(types.items())
    ]


def issue_notes(media: Media) -> dict[str, str]:
    """Return a warning, one line, for each issue type whose issues are uncertain, by the name of the type.

    Mislabels are uncertain if few labels agree with those of the neighbours. The index stores the agreement, so the
    warning stays the same until the labels are edited or the index is rebuilt.
    """
    agreement, config = media.generation.summary.label_agreement, media.generation.embedding_config
    if agreement is None or agreement >= USUAL_AGREEMENT:
        return {}
    advice = _ADVICE if config is None else _ADVICE_FOR.get(config.encoder, _ADVICE)
    return {
        MISLABELS.name: f"some mislabels may be right labels: only {math.floor(100 * agreement)} % of the labels agree "
        f"with those of the nearest images, because many labels are wrong or the encoder separates them badly; {advice}"
    }


def issues(
    media: Media, condition: Condition, *, kinds: Sequence[str] | None = None, limit: int | None = None
) -> pa.Table:
    """Return a row for each issue of each media item, sorted by issue and then worst first.

    Args:
        media: the media to inspect.
        condition: the condition that media must meet.
        kinds: names of issues; None for all.
        limit: maximum number of rows per issue.

    Returns:
        ``media_id, file_name, path, issue_type, value, threshold, percentile, confidence, reason, suggested_label``.
        ``percentile`` is the rank of the value among all media of the dataset with that measure, regardless of the
        condition: 100 is the worst in the direction of the issue, 0 the best; see
        :func:`framedex.analysis.ranks.percentiles`. Value, threshold and percentile are null for ``corrupted``,
        ``not_supported``, ``over_limit`` and ``unreadable``, which have a reason instead. Only mislabelled media have a
        suggested label.

    Raises:
        InvalidInput: an issue of that name does not exist, or the limit is not a count.
    """
    types = issue_types()
    selection = [types[name] for name in sorted(types)] if kinds is None else [find_issue_type(kind) for kind in kinds]
    check_limit(limit)
    return pa.concat_tables(
        [ISSUE_COLUMNS.empty_table(), *(_issues_of(media, condition, issue, limit) for issue in selection)]
    )


def check_limit(limit: int | None) -> None:
    """Check a maximum number of rows.

    Raises:
        InvalidInput: it is not an integer from 0.
    """
    check_integer("limit", limit, minimum=0, optional=True)


def _issues_of(media: Media, condition: Condition, issue: IssueType, limit: int | None) -> pa.Table:
    is_fault = issue.judged_by is JudgedBy.ERROR
    value = issue.column if issue.has_value else None
    column, present = issue.confidence_column, set(media.table.schema.names)
    if column not in present or (value is not None and value not in present):
        return ISSUE_COLUMNS.empty_table()
    summary = media.generation.summary
    threshold, of_labels = summary.limit(issue.name), summary.limits_of_labels(issue.name)
    details = [name for name in issue.details if name in present]
    reasons = [name for name in ("error", "gaps") if name in present]
    reason = f"COALESCE({', '.join(reasons)}, {_DAMAGED!r})"
    # Ties in confidence are ordered by value, which still differs where the confidence is capped.
    order = "" if value is None else f", {value} {'DESC' if issue.above else 'ASC'}"
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT media_id, path AS file_name, path, {value or 'NULL'}::FLOAT AS value, {column} AS confidence, "
        f"{reason if is_fault else 'NULL::VARCHAR'} AS reason, "
        f"{'suggested_label' if 'suggested_label' in details else 'NULL::VARCHAR'} AS suggested_label, "
        f"{'labels[1]' if of_labels else 'NULL'} AS label "
        f"FROM chosen WHERE {column} IS NOT NULL ORDER BY confidence DESC{order}, _rowid{bound}"
    )
    columns = [
        "media_id",
        "path",
        column,
        *([value] if value else reasons),
        *details,
        *(["labels"] if of_labels else []),
    ]
    rows = media.query(text, condition, columns)
    thresholds = [threshold] * len(rows)
    if of_labels:
        thresholds = [of_labels.get(label, threshold) for label in rows["label"].to_pylist()]
    arrays = {
        "file_name": pa.array([file_name(path) for path in rows["file_name"].to_pylist()], pa.string()),
        "issue_type": pa.repeat(pa.scalar(issue.name), len(rows)),
        "threshold": pa.array(thresholds, pa.float32()),
        "percentile": _percentiles(media, issue, rows["value"]),
    }
    return pa.table(
        [
            arrays.get(field.name, rows[field.name] if field.name in rows.column_names else None)
            for field in ISSUE_COLUMNS
        ],
        schema=ISSUE_COLUMNS,
    )


def _percentiles(media: Media, issue: IssueType, values: pa.ChunkedArray) -> pa.Array:
    """Return the percentiles of values within the whole dataset; null without a value."""
    if issue.column is None or not issue.has_value or not len(values):
        return pa.nulls(len(values), pa.float32())
    measured = _floats(media.table.scan([issue.column]).read_all().column(0))
    ranks = percentiles(_floats(values), measured[~np.isnan(measured)], above=issue.above)
    return pa.array(ranks, pa.float32(), from_pandas=True)


def _floats(column: pa.ChunkedArray) -> npt.NDArray[np.float32]:
    return np.asarray(column.to_numpy(), dtype=np.float32)
