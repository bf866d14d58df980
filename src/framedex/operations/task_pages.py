"""Pages of the task list, with the filters and sort orders of the interface."""

from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypedDict

from framedex.core.checks import check_integer
from framedex.errors import InvalidInput
from framedex.operations.context import Context
from framedex.records import TaskFilters, TaskPage, TaskStatus, TaskType
from framedex.storage import task_rows
from framedex.storage.task_rows import TaskQuery

_EQUAL = ("dataset_id", "dataset_name", "task_type", "status", "created_by")
_SORTED_BY = ("start_time", "status", "task_type", "dataset_name", "dataset_id", "created_by")
_ENUMS: dict[str, type[StrEnum]] = {"task_type": TaskType, "status": TaskStatus}
_PAGE_SIZES = range(5, 51)


class TaskSearch(TypedDict, total=False):
    """Arguments of :meth:`framedex.Workspace.tasks`, where they are explained."""

    datasets: Collection[str] | None
    deleted_by: str | None
    dataset_id: str | None
    dataset_name: str | None
    task_type: TaskType | str | None
    status: TaskStatus | str | None
    created_by: str | None
    start_time_from: datetime | str | None
    start_time_to: datetime | str | None
    sort_by: str
    sort_order: str
    page: int
    page_size: int


def list_tasks(
    context: Context,
    *,
    datasets: Collection[str] | None = None,
    deleted_by: str | None = None,
    start_time_from: datetime | str | None = None,
    start_time_to: datetime | str | None = None,
    sort_by: str = "start_time",
    sort_order: str = "desc",
    page: int = 1,
    page_size: int = 20,
    **equal: str | None,
) -> TaskPage:
    """Return a page of tasks; see :meth:`framedex.Workspace.tasks`.

    Raises:
        InvalidInput: an argument is unknown or out of range.
    """
    _check_one_of("sort_by", sort_by, _SORTED_BY)
    _check_one_of("sort_order", sort_order, ("asc", "desc"))
    check_integer("page", page, minimum=1)
    check_integer("page_size", page_size, minimum=_PAGE_SIZES[0], maximum=_PAGE_SIZES[-1])
    query = TaskQuery(
        _conditions(equal),
        _ids(datasets),
        _user(deleted_by),
        parse_time("start_time_from", start_time_from),
        parse_time("start_time_to", start_time_to),
        sort_by,
        descending=sort_order == "desc",
    )
    with context.catalog.read() as connection:
        tasks = task_rows.list_tasks(connection, query, limit=page_size, offset=(page - 1) * page_size)
        total = task_rows.count_tasks(connection, query)
    return TaskPage(tasks=tasks, total=total, page=page, page_size=page_size)


def task_filters(
    context: Context,
    start_from: datetime | str | None,
    start_to: datetime | str | None,
    ids: Collection[str] | None,
    deleted_by: str | None = None,
) -> TaskFilters:
    """Return the filter values of tasks within a time range.

    Raises:
        InvalidInput: a time, or the ids of datasets, are invalid.
    """
    first, last = parse_time("start_time_from", start_from), parse_time("start_time_to", start_to)
    query = TaskQuery({}, _ids(ids), _user(deleted_by), first, last)
    with context.catalog.read() as connection:
        names, ids, types, creators = (
            task_rows.distinct_values(connection, query, column)
            for column in ("dataset_name", "dataset_id", "task_type", "created_by")
        )
    return TaskFilters(dataset_names=names, dataset_ids=ids, task_types=types, created_by=creators)


def _conditions(equal: dict[str, str | None]) -> dict[str, str]:
    conditions = {}
    for name, value in equal.items():
        if name not in _EQUAL:
            raise InvalidInput(f"tasks cannot be filtered by {name!r}; there are: {', '.join(_EQUAL)}")
        if value is None:
            continue
        if name in _ENUMS:
            _check_one_of(name, value, [each.value for each in _ENUMS[name]])
        elif not isinstance(value, str):
            raise InvalidInput(f"{name} must be text, not {value!r}")
        conditions[name] = str(value)
    return conditions


def _ids(datasets: Any) -> list[str] | None:
    if datasets is None:
        return None
    if isinstance(datasets, str) or not isinstance(datasets, Collection):
        raise InvalidInput(f"datasets must be a list of ids, not {datasets!r}")
    ids = list(datasets)
    for each in ids:
        if not isinstance(each, str):
            raise InvalidInput(f"datasets must be a list of ids, which are texts, not {each!r}")
    return ids


def _user(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise InvalidInput(f"deleted_by must be the name of a user, not {name!r}")
    return name


def _check_one_of(name: str, value: Any, allowed: Any) -> None:
    if value not in tuple(allowed):
        raise InvalidInput(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def parse_time(name: str, value: datetime | str | None) -> datetime | None:
    """Return a time in UTC; a time without a zone is interpreted as UTC.

    Raises:
        InvalidInput: the value is not a time.
    """
    if value is None:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a time as in 2026-01-31T12:00:00Z, not {value!r}") from None
