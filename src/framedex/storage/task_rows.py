"""Rows of tasks. Each function takes an open connection of the catalog."""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict, NotFound
from framedex.ids import new_id
from framedex.records import DatasetRecord, TaskRecord, TaskStatus, TaskType
from framedex.storage.datasets import mark_broken, now
from framedex.storage.schema import datasets, tasks

LEASE = timedelta(seconds=30)
_RUNNING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)


def insert_task(
    connection: sa.Connection, dataset: DatasetRecord, *, task_type: TaskType, created_by: str, owner: str
) -> str:
    """Add a task in status INITIALIZING and return its id."""
    task_id, start = new_id(), now()
    connection.execute(
        tasks.insert().values(
            id=task_id,
            dataset_id=dataset.id,
            dataset_name=dataset.display_name,
            created_by=created_by,
            task_type=task_type,
            status=TaskStatus.INITIALIZING,
            status_message="starting",
            start_time=start,
            heartbeat_at=start,
            owner=owner,
        )
    )
    return task_id


def update_task(connection: sa.Connection, task_id: str, **values: Any) -> None:
    """Set columns of a task's row, and its heartbeat."""
    connection.execute(tasks.update().where(tasks.c.id == task_id).values(heartbeat_at=now(), **values))


def finish_task(connection: sa.Connection, task_id: str, status: TaskStatus, **values: Any) -> None:
    """Put a task into a final status, with its end time."""
    update_task(connection, task_id, status=status, end_time=now(), **values)


def update_progress(connection: sa.Connection, task_id: str, percent: int, stage: str) -> None:
    """Store how far a running task is."""
    connection.execute(
        tasks.update()
        .where(tasks.c.id == task_id, tasks.c.status == TaskStatus.RUNNING)
        .values(heartbeat_at=now(), progress_percentage=percent, status_message=stage)
    )


def check_owned(connection: sa.Connection, task_id: str, owner: str) -> None:
    """Check that a task is still running and this process's own, before its result is committed.

    Raises:
        Conflict: it was given up as interrupted meanwhile, for example while the machine was asleep.
    """
    row = connection.execute(sa.select(tasks.c.status, tasks.c.owner).where(tasks.c.id == task_id)).one()
    if row.status not in _RUNNING or row.owner != owner:
        raise Conflict(f"task {task_id} was given up as {row.status} while it ran; its result is not committed")


def get_task(connection: sa.Connection, task_id: str) -> TaskRecord:
    """Return a task.

    Raises:
        NotFound: there is none of that id.
    """
    row = connection.execute(_select().where(tasks.c.id == task_id)).one_or_none()
    if row is None:
        raise NotFound(f"no task {task_id!r}")
    return _record(row)


def list_tasks(connection: sa.Connection, *, dataset_id: str | None = None) -> list[TaskRecord]:
    """Return tasks, newest first."""
    query = _select().order_by(tasks.c.start_time.desc(), tasks.c.id)
    if dataset_id is not None:
        query = query.where(tasks.c.dataset_id == dataset_id)
    return [_record(row) for row in connection.execute(query).all()]


def fail_interrupted(connection: sa.Connection) -> int:
    """Fail the tasks whose process has shown no sign of life, and mark their datasets; return how many."""
    dead = connection.execute(
        sa.select(tasks.c.id, tasks.c.dataset_id).where(
            tasks.c.status.in_(_RUNNING), tasks.c.heartbeat_at < now() - LEASE
        )
    ).all()
    for task_id, dataset_id in dead:
        finish_task(connection, task_id, TaskStatus.FAILED, error_message="interrupted", status_message="interrupted")
        mark_broken(connection, dataset_id)
    return len(dead)


def has_interrupted(connection: sa.Connection) -> bool:
    """Return whether :func:`fail_interrupted` would change something."""
    query = sa.select(tasks.c.id).where(tasks.c.status.in_(_RUNNING), tasks.c.heartbeat_at < now() - LEASE).limit(1)
    return connection.execute(query).first() is not None


def running(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return the type of the task of a dataset that is under way; None if there is none."""
    query = sa.select(tasks.c.task_type).where(tasks.c.dataset_id == dataset_id, tasks.c.status.in_(_RUNNING)).limit(1)
    return connection.execute(query).scalar()


def is_busy(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether a task of the dataset is under way."""
    return running(connection, dataset_id) is not None


def _select() -> sa.Select[Any]:
    return sa.select(tasks, datasets.c.status.label("dataset_status")).outerjoin(
        datasets, datasets.c.id == tasks.c.dataset_id
    )


def _record(row: Any) -> TaskRecord:
    return TaskRecord(
        task_id=row.id,
        dataset_id=row.dataset_id,
        dataset_name=row.dataset_name,
        dataset_status=(row.dataset_status or "DELETED").replace(" ", "_"),
        created_by=row.created_by,
        task_type=TaskType(row.task_type),
        status=TaskStatus(row.status),
        status_message=row.status_message,
        progress_percentage=row.progress_percentage,
        error_message=row.error_message,
        start_time=row.start_time,
        end_time=row.end_time,
    )
