"""What is wrong with the media, and what repeats."""

from collections.abc import Sequence

import pyarrow as pa

from framedex.analysis.issues import RULES
from framedex.errors import InvalidInput
from framedex.ids import Kind, group_id
from framedex.records import DUPLICATE_LEVELS, Condition, DuplicateGroup, IssueSummary, IssueType
from framedex.search.explore import file_name
from framedex.storage.media import Media
from framedex.vql.compile import duplicate_level

ISSUE_COLUMNS = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("issue_type", pa.string()),
        pa.field("value", pa.float32()),
        pa.field("threshold", pa.float32()),
        pa.field("confidence", pa.float32()),
        pa.field("reason", pa.string()),
    ]
)


def issue_summaries(media: Media, condition: Condition) -> list[IssueSummary]:
    """Return how often each issue was found among the media that meet a condition, in the order of their names."""
    columns = [f"issue_{issue}" for issue in IssueType]
    counts = ", ".join(f"count({column}) AS {column}" for column in columns)
    row = media.query(f"SELECT {counts} FROM chosen", condition, columns).to_pylist()[0]
    limits = media.generation.summary.get("issue_thresholds", {})
    return [
        IssueSummary(
            issue_type=issue,
            count=row[f"issue_{issue}"],
            threshold=limits.get(issue.value),
            meaning=RULES[issue].meaning if issue in RULES else "the picture cannot be decoded",
        )
        for issue in sorted(IssueType)
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
        ``media_id, file_name, path, issue_type, value, threshold, confidence, reason``; value and threshold are null
        for ``corrupted``, which has a reason instead.

    Raises:
        InvalidInput: an issue of that name does not exist, or the limit is no count.
    """
    wanted = sorted(IssueType) if kinds is None else [_issue_type(kind) for kind in kinds]
    check_limit(limit)
    return pa.concat_tables(
        [ISSUE_COLUMNS.empty_table(), *(_issues_of(media, condition, issue, limit) for issue in wanted)]
    )


def check_limit(limit: int | None) -> None:
    """Check how many rows are wanted at most.

    Raises:
        InvalidInput: it is no whole number from 0.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidInput(f"limit must be a whole number from 0, or None, not {limit!r}")


def _issue_type(name: str) -> IssueType:
    try:
        return IssueType(name)
    except ValueError:
        raise InvalidInput(f"no issue {name!r}; there are: {', '.join(sorted(IssueType))}") from None


def _issues_of(media: Media, condition: Condition, issue: IssueType, limit: int | None) -> pa.Table:
    column, rule = f"issue_{issue}", RULES.get(issue)
    value = rule.column if rule else "NULL"
    # Issues of one confidence are ordered by value: it may lie beyond where the confidence ends.
    order = "" if rule is None else f", {value} {'DESC' if rule.above else 'ASC'}"
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT media_id, path AS file_name, path, {value}::FLOAT AS value, {column} AS confidence, "
        f"{'error' if rule is None else 'NULL::VARCHAR'} AS reason "
        f"FROM chosen WHERE {column} IS NOT NULL ORDER BY confidence DESC{order}, _rowid{bound}"
    )
    columns = ["media_id", "path", column, *([rule.column] if rule else ["error"])]
    found = media.query(text, condition, columns)
    threshold = media.generation.summary.get("issue_thresholds", {}).get(issue.value)
    arrays = {
        "file_name": pa.array([file_name(path) for path in found["file_name"].to_pylist()], pa.string()),
        "issue_type": pa.repeat(pa.scalar(issue.value), len(found)),
        "threshold": pa.array([threshold] * len(found), pa.float32()),
    }
    return pa.table(
        [
            arrays.get(field.name, found[field.name] if field.name in found.column_names else None)
            for field in ISSUE_COLUMNS
        ],
        schema=ISSUE_COLUMNS,
    )


def duplicates(
    media: Media, condition: Condition, *, threshold: float, limit: int | None = None
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates at a similarity, largest first.

    Args:
        media: what is looked at.
        condition: which of it; groups of which one member is left are left out.
        threshold: similarity in [0, 1]; between two of the eight levels the stricter one is used.
        limit: at most so many groups.

    Raises:
        InvalidInput: the threshold is outside [0, 1], or the limit is no count.
    """
    check_limit(limit)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise InvalidInput(f"threshold must be a similarity from 0 to 1, not {threshold!r}")
    level = duplicate_level(threshold)
    column = f"duplicate_{level}"
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT {column} AS number, max(duplicate_similarity) AS similarity, "
        "list(media_id ORDER BY _rowid) AS media_ids, list(path ORDER BY _rowid) AS paths "
        f"FROM chosen WHERE {column} IS NOT NULL GROUP BY number HAVING count(*) > 1 "
        f"ORDER BY count(*) DESC, number{bound}"
    )
    found = media.query(text, condition, [column, "duplicate_similarity", "media_id", "path"])
    return [
        DuplicateGroup(
            group_id=group_id(media.dataset_id, Kind.DUPLICATE_GROUP, level, row["number"]),
            threshold=DUPLICATE_LEVELS[level],
            similarity=min(1.0, row["similarity"]),
            media_ids=row["media_ids"],
            file_names=[file_name(path) for path in row["paths"]],
            paths=row["paths"],
        )
        for row in found.to_pylist()
    ]
