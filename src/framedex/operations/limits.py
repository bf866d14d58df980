"""Limits of issues that users set for a dataset; each change is one generation."""

from collections.abc import Mapping, Sequence
from typing import Any

from framedex.errors import InvalidInput
from framedex.issue_types import check_issue_limit, find_valued_type, valued_types
from framedex.jobs.edits.journal import NewStep
from framedex.jobs.edits.limits import change_limits
from framedex.operations.context import Context, open_media
from framedex.operations.short_edits import editing
from framedex.records import IssueLimit


def dataset_limits(context: Context, dataset_id: str) -> dict[str, IssueLimit]:
    """Return the limits of a dataset by issue type, sorted by name; errors as in :func:`open_media`."""
    summary = open_media(context, dataset_id).generation.summary
    return {
        name: IssueLimit(
            issue_type=name,
            limit=summary.limit(name, issue.threshold),
            default=summary.default_limit(name, issue.threshold),
            is_set=name in summary.limits,
            above=issue.above,
            meaning=issue.meaning,
        )
        for name, issue in sorted(valued_types().items())
    }


def set_limits(context: Context, dataset_id: str, limits: Mapping[str, Any]) -> None:
    """Set limits of issue types, and the issues that follow, as one generation; None stands for the default.

    Raises:
        InvalidInput: no limit is given, a type is unknown or has no limit, or a limit is outside of its range.
        Conflict: a task is in progress.
    """
    if not limits:
        raise InvalidInput("set_limits needs the limit of an issue type, as in set_limits(blur=0.4)")
    checked = {
        find_valued_type(name).name: None if limit is None else check_issue_limit(name, limit)
        for name, limit in limits.items()
    }
    with editing(context, dataset_id, "set_limits") as edit:
        current = edit.job.limits
        changed = {name: limit for name, limit in {**current, **checked}.items() if limit is not None}
        if changed != current:
            step = NewStep("set_limits", change={"limits": {"before": dict(current), "after": changed}})
            edit.commit(*change_limits(edit.job.table, edit.job.head, changed), step=step)


def reset_limits(context: Context, dataset_id: str, names: Sequence[Any]) -> None:
    """Return limits to their defaults, and store the issues that follow, as one generation.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        names: issue types; empty for all.

    Raises:
        InvalidInput: a type is unknown or has no limit.
        Conflict: a task is in progress.
    """
    with editing(context, dataset_id, "reset_limits") as edit:
        current = edit.job.limits
        for name in names:
            if name not in current:  # a type whose plugin is gone can be reset, too
                find_valued_type(name)
        remaining = {name: limit for name, limit in current.items() if names and name not in names}
        if remaining != current:
            step = NewStep("reset_limits", change={"limits": {"before": dict(current), "after": remaining}})
            edit.commit(*change_limits(edit.job.table, edit.job.head, remaining), step=step)
