"""Tasks: the list, the values of its filters, abort and retry."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query

from framedex.access import Action
from framedex.errors import NotFound, NotRetryable
from framedex.records import TaskFilters, TaskPage, TaskRecord, TaskStatus, TaskType
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, OpenedTask, Service
from framedex.service.server_paths import without_folders

router = routes("tasks")

_Text = Annotated[str | None, Query(max_length=1000)]
_Column = Literal["start_time", "status", "task_type", "dataset_name", "dataset_id", "created_by"]
_MAX_PAGE = 2**31


@router.get("/tasks")
@needs(Action.TASK_VIEW)
def get_tasks(
    service: Service,
    actor: CurrentActor,
    dataset_id: UUID | None = None,
    dataset_name: _Text = None,
    task_type: TaskType | None = None,
    task_status: TaskStatus | None = None,
    created_by: _Text = None,
    start_time_from: _Text = None,
    start_time_to: _Text = None,
    sort_by: _Column = "start_time",
    sort_order: Literal["asc", "desc"] = "desc",
    page: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 1,
    page_size: Annotated[int, Query(ge=5, le=50)] = 20,
) -> TaskPage:
    """Return a page of the tasks of datasets that the user may view."""
    query: dict[str, Any] = {
        "dataset_id": None if dataset_id is None else str(dataset_id), "dataset_name": dataset_name,
        "task_type": task_type, "status": task_status, "created_by": created_by, "start_time_from": start_time_from,
        "start_time_to": start_time_to, "sort_by": sort_by, "sort_order": sort_order, "page": page,
        "page_size": page_size,
    }  # fmt: skip
    found = service.hub.tasks.search(actor, **query)
    return found.model_copy(update={"tasks": [_shown(each) for each in found.tasks]})


@router.get("/tasks/filters")
@needs(Action.TASK_VIEW)
def get_task_filters(
    service: Service, actor: CurrentActor, start_time_from: _Text = None, start_time_to: _Text = None
) -> TaskFilters:
    """Return the values that occur in the tasks of datasets that the user may view."""
    return service.hub.tasks.filters(actor, start_time_from, start_time_to)


@router.post("/tasks/{task_id}/abort")
@needs(Action.TASK_ABORT)
def post_task_abort(task_id: str, task: OpenedTask) -> TaskRecord:
    """Abort a task, and wait until it has ended."""
    return _shown(task.abort())


@router.post("/tasks/{task_id}/retry")
@needs(Action.TASK_RETRY, invalid_status=400)
def post_task_retry(task_id: str, task: OpenedTask) -> TaskRecord:
    """Run a task that failed or was aborted again."""
    try:
        task.retry()
    except NotFound as error:  # the dataset that an enrichment began with
        raise NotRetryable(str(error)) from None
    started = {"status": TaskStatus.INITIALIZING, "status_message": "starting", "error_message": None, "end_time": None}
    return _shown(task.record.model_copy(update=started))


def _shown(record: TaskRecord) -> TaskRecord:
    """Return a record whose messages do not tell where files of the server are."""
    message, error = without_folders(record.status_message), record.error_message
    changes = {"status_message": message, "error_message": None if error is None else without_folders(error)}
    return record.model_copy(update=changes)
