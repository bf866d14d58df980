"""Results of tasks of type CUSTOM_METADATA by row, stored with the tasks."""

from typing import Any

import sqlalchemy as sa

from framedex.errors import NotFound
from framedex.records import FieldResult, TaskStatus, TaskType
from framedex.storage.schema import tasks
from framedex.storage.task_rows import get_task


def keep_result(connection: sa.Connection, dataset_id: str, result: dict[str, Any]) -> None:
    """Store the result of the task that runs on a dataset; only one runs at a time.

    Args:
        connection: the transaction that completes the task.
        dataset_id: the dataset of the task.
        result: ``inserted_rows``, ``error_count`` and ``sample_errors`` of the record.
    """
    running = tasks.c.status.in_((TaskStatus.INITIALIZING, TaskStatus.RUNNING))
    is_running_task = (tasks.c.dataset_id == dataset_id, tasks.c.task_type == TaskType.CUSTOM_METADATA, running)
    connection.execute(tasks.update().where(*is_running_task).values(result=result))


def read_result(connection: sa.Connection, task_id: str) -> FieldResult:
    """Return the progress of a task of that type, and the results of its rows.

    Raises:
        NotFound: no task of that type has the id.
    """
    task = get_task(connection, task_id)
    if task.task_type is not TaskType.CUSTOM_METADATA:
        raise NotFound(f"task {task_id!r} is of type {task.task_type}, not {TaskType.CUSTOM_METADATA}")
    none = {"inserted_rows": 0, "error_count": 0, "sample_errors": []}
    result = connection.execute(sa.select(tasks.c.result).where(tasks.c.id == task_id)).scalar() or none
    failed = task.status is TaskStatus.COMPLETED and result["error_count"]
    status = "COMPLETED_WITH_ERRORS" if failed else task.status.value
    return FieldResult(task_id=task_id, status=status, progress=task.progress_percentage or 0, **result)
