"""Rows of tasks. Each function takes an open connection of the catalog."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.core.ids import new_id
from framedex.errors import Aborted, Conflict, NotFound
from framedex.records import DatasetRecord, DatasetStatus, TaskRecord, TaskStatus, TaskType
from framedex.storage.datasets import find_dataset, mark_broken, now, update_dataset
from framedex.storage.owners import has_died, this_process
from framedex.storage.row_values import reading_row
from framedex.storage.schema import datasets, tasks

_LOG = logging.getLogger(__name__)
INTERRUPTED = "interrupted"
"""Status message of a failed task whose process ended; the error message has the reason."""
_RUNNING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)
_IN_PROGRESS = sa.select(tasks.c.id, tasks.c.dataset_id, tasks.c.owner, tasks.c.heartbeat_at).where(
    sa.or_(*(tasks.c.status == status for status in _RUNNING))
)
_SOURCE = "source"  # key in the config of a task that derives a dataset from another
_OTHER = "other"  # the same for the second dataset of a merge


def insert_task(
    connection: sa.Connection,
    dataset: DatasetRecord,
    *,
    task_type: TaskType,
    created_by: str,
    config: dict[str, Any] | None = None,
    task_id: str | None = None,
) -> str:
    """Add a task of this process in status INITIALIZING and return its id.

    Args:
        connection: of the catalog.
        dataset: the dataset to work on.
        task_type: type of the task.
        created_by: the user who started it.
        config: parameters with which any process can run the task; None if only this one can.
        task_id: id of the task; None for a new one.

    Raises:
        Conflict: a task has the id.
    """
    start = now()
    if task_id is None:
        task_id = new_id()
    elif connection.execute(sa.select(tasks.c.id).where(tasks.c.id == task_id)).first() is not None:
        raise Conflict(f"task {task_id} was started already")
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
            owner=this_process(),
            config=config,
        )
    )
    return task_id


def update_task(connection: sa.Connection, task_id: str, **values: Any) -> None:
    """Set columns of a task's row, and its heartbeat."""
    connection.execute(tasks.update().where(tasks.c.id == task_id).values(heartbeat_at=now(), **values))


def finish_task(connection: sa.Connection, task_id: str, status: TaskStatus, **values: Any) -> None:
    """Set a task's final status and end time."""
    start = connection.execute(sa.select(tasks.c.start_time).where(tasks.c.id == task_id)).scalar_one()
    end = max(start, now())  # the clock may have been set back
    update_task(connection, task_id, status=status, end_time=end, **values)


def update_progress(connection: sa.Connection, task_id: str, percent: int, stage: str) -> None:
    """Store the progress of a running task."""
    connection.execute(
        tasks.update()
        .where(tasks.c.id == task_id, tasks.c.status == TaskStatus.RUNNING)
        .values(heartbeat_at=now(), progress_percentage=percent, status_message=stage)
    )


def restart_task(connection: sa.Connection, task_id: str) -> None:
    """Restart an ended task as this process's own, in status INITIALIZING."""
    update_task(
        connection,
        task_id,
        status=TaskStatus.INITIALIZING,
        status_message="starting",
        error_message=None,
        end_time=None,
        abort_requested=False,
        owner=this_process(),
    )


def request_abort(connection: sa.Connection, task_id: str) -> TaskRecord:
    """Request that the process of a task aborts it; return the task, which still runs.

    Raises:
        Conflict: the task has already ended, or is being aborted.
        NotFound: no task has that id.
    """
    record = get_task(connection, task_id)
    if record.status.final:
        raise Conflict(f"task {task_id} cannot be aborted: it is {record.status}")
    if is_abort_requested(connection, task_id):
        raise Conflict(f"task {task_id} cannot be aborted: it is being aborted already")
    connection.execute(tasks.update().where(tasks.c.id == task_id).values(abort_requested=True))
    return record


def is_abort_requested(connection: sa.Connection, task_id: str) -> bool:
    """Return whether a task should abort."""
    return bool(connection.execute(sa.select(tasks.c.abort_requested).where(tasks.c.id == task_id)).scalar())


def is_own(connection: sa.Connection, task_id: str) -> bool:
    """Return whether a task is running and still owned by this process: neither failed as interrupted nor restarted."""
    row = connection.execute(sa.select(tasks.c.status, tasks.c.owner).where(tasks.c.id == task_id)).one_or_none()
    return row is not None and row.status in _RUNNING and row.owner == this_process()


def check_owned(connection: sa.Connection, task_id: str) -> None:
    """Check that a task is still running, owned by this process and not to be aborted, before a commit.

    Raises:
        Conflict: the task was failed as interrupted meanwhile, for example while the machine was asleep.
        Aborted: another process requested its abort.
    """
    query = sa.select(tasks.c.status, tasks.c.owner, tasks.c.abort_requested).where(tasks.c.id == task_id)
    row = connection.execute(query).one()
    if row.status not in _RUNNING or row.owner != this_process():
        raise Conflict(f"task {task_id} was given up as {row.status} while it ran; its result is not committed")
    if row.abort_requested:
        raise Aborted("aborted on request")


def read_config(connection: sa.Connection, task_id: str) -> dict[str, Any] | None:
    """Return the parameters of a task; None if only the process that started it has them."""
    value: dict[str, Any] | None = connection.execute(sa.select(tasks.c.config).where(tasks.c.id == task_id)).scalar()
    return value


def read_resume(connection: sa.Connection, task_id: str) -> dict[str, Any] | None:
    """Return the last checkpoint of a task; None without one."""
    value: dict[str, Any] | None = connection.execute(sa.select(tasks.c.resume).where(tasks.c.id == task_id)).scalar()
    return value


def get_task(connection: sa.Connection, task_id: str) -> TaskRecord:
    """Return a task.

    Raises:
        NotFound: no task has that id.
    """
    try:
        row = connection.execute(_select().where(tasks.c.id == task_id)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so not an id
        row = None
    if row is None:
        raise NotFound(f"no task {task_id!r}")
    return _record(row)


@dataclass(frozen=True)
class TaskQuery:
    """A selection and an order of tasks.

    Attributes:
        equal: required values by column: ``dataset_id, dataset_name, task_type, status, created_by``.
        datasets: ids of the datasets; None for all datasets, also deleted ones.
        deleted_by: with *datasets*: also the tasks that this user started in datasets that were deleted since.
        start_from, start_to: bounds of the start time, both inclusive.
        sort_by: name of a column.
        descending: whether the order is descending.
    """

    equal: Mapping[str, str] = field(default_factory=dict)
    datasets: Sequence[str] | None = None
    deleted_by: str | None = None
    start_from: datetime | None = None
    start_to: datetime | None = None
    sort_by: str = "start_time"
    descending: bool = True

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on the table of tasks."""
        conditions = [tasks.c[name] == value for name, value in self.equal.items()]
        if self.datasets is not None:  # one parameter, because SQLite limits their number
            ids = sa.func.json_each(json.dumps(list(self.datasets))).table_valued("value")
            allowed: sa.ColumnElement[bool] = tasks.c.dataset_id.in_(sa.select(ids.c.value))
            if self.deleted_by is not None:
                is_deleted = tasks.c.dataset_id.not_in(sa.select(datasets.c.id))
                allowed = sa.or_(allowed, sa.and_(tasks.c.created_by == self.deleted_by, is_deleted))
            conditions.append(allowed)
        if self.start_from is not None:
            conditions.append(tasks.c.start_time >= self.start_from)
        if self.start_to is not None:
            conditions.append(tasks.c.start_time <= self.start_to)
        return conditions


def list_tasks(
    connection: sa.Connection, query: TaskQuery = TaskQuery(), *, limit: int | None = None, offset: int = 0
) -> list[TaskRecord]:
    """Return tasks in the order of the query; ties are in the order of start time and id."""
    column = tasks.c[query.sort_by]
    order = [column.desc() if query.descending else column.asc(), tasks.c.start_time.desc(), tasks.c.id]
    rows = connection.execute(_select().where(*query.conditions()).order_by(*order).limit(limit).offset(offset)).all()
    return [_record(row) for row in rows]


def count_tasks(connection: sa.Connection, query: TaskQuery) -> int:
    """Return the number of tasks."""
    return int(
        connection.execute(sa.select(sa.func.count()).select_from(tasks).where(*query.conditions())).scalar_one()
    )


def distinct_values(connection: sa.Connection, query: TaskQuery, column: str) -> list[str]:
    """Return the distinct values of a column of some tasks, sorted."""
    values = sa.select(tasks.c[column]).where(*query.conditions()).distinct().order_by(tasks.c[column])
    return list(connection.execute(values).scalars())


def fail_interrupted(connection: sa.Connection, *, every: bool = False) -> int:
    """Fail the tasks whose process is gone or has no recent heartbeat; return their number.

    The statuses of their datasets are set accordingly.

    Args:
        connection: of the catalog.
        every: fail all tasks that run, as in a copy of the catalog, which no process of theirs changes.
    """
    dead = _dead(connection, every=every)
    for task_id, dataset_id in dead:
        finish_task(connection, task_id, TaskStatus.FAILED, error_message=INTERRUPTED, status_message=INTERRUPTED)
        mark_broken(connection, dataset_id)
        release_source(connection, task_id)
        _LOG.info("task %s is failed, as its process has ended or was silent", task_id)
    return len(dead)


def list_interrupted(connection: sa.Connection) -> list[TaskRecord]:
    """Return the failed tasks whose process ended, oldest first, that are the last tasks of existing datasets."""
    later = tasks.alias()
    newest = ~sa.exists().where(
        later.c.dataset_id == tasks.c.dataset_id,
        later.c.start_time > tasks.c.start_time,
        later.c.task_type != TaskType.MAP,
    )
    query = _select().where(
        tasks.c.status == TaskStatus.FAILED, tasks.c.status_message == INTERRUPTED, datasets.c.id.is_not(None), newest
    )
    return [_record(row) for row in connection.execute(query.order_by(tasks.c.start_time, tasks.c.id)).all()]


def has_interrupted(connection: sa.Connection) -> bool:
    """Return whether :func:`fail_interrupted` would change something."""
    return bool(_dead(connection))


def _dead(connection: sa.Connection, *, every: bool = False) -> list[tuple[str, str]]:
    rows = connection.execute(_IN_PROGRESS).all()
    return [(row.id, row.dataset_id) for row in rows if every or _is_dead(row)]


def _is_dead(row: Any) -> bool:
    with reading_row("tasks", row.id):
        return has_died(row.id, row.owner, row.heartbeat_at, now=now())


def forget_checkpoints(connection: sa.Connection) -> None:
    """Forget the checkpoints of all tasks, so that tasks that are retried start from scratch."""
    connection.execute(tasks.update().where(tasks.c.resume.is_not(None)).values(resume=sa.null()))


def running(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return the type of the task that runs on a dataset, or enriches it; None if no task does.

    Tasks that make a map change nothing of their dataset, and do not count.
    """
    query = sa.select(tasks.c.task_type).where(
        sa.or_(tasks.c.dataset_id == dataset_id, _enriches(dataset_id)),
        tasks.c.status.in_(_RUNNING),
        tasks.c.task_type != TaskType.MAP,
    )
    return connection.execute(query.limit(1)).scalar()


def running_on(connection: sa.Connection, dataset_id: str) -> str | None:
    """Return the type of the task that runs on a dataset, or makes another one of it; None if no task does."""
    made_of = sa.or_(*(tasks.c.config[name].as_string() == dataset_id for name in (_SOURCE, _OTHER)))
    query = sa.select(tasks.c.task_type).where(
        sa.or_(tasks.c.dataset_id == dataset_id, made_of),
        tasks.c.status.in_(_RUNNING),
        tasks.c.task_type != TaskType.MAP,
    )
    return connection.execute(query.limit(1)).scalar()


def _enriches(dataset_id: str) -> sa.ColumnElement[bool]:
    """Return the condition of tasks that enrich a dataset; they belong to the copies."""
    return sa.and_(tasks.c.task_type == TaskType.ENRICHMENT, tasks.c.config[_SOURCE].as_string() == dataset_id)


def last_enrichment(connection: sa.Connection, dataset_id: str) -> TaskRecord | None:
    """Return the newest task that enriches a dataset, or that made it of another one; None if there is none."""
    made = sa.and_(tasks.c.task_type == TaskType.ENRICHMENT, tasks.c.dataset_id == dataset_id)
    query = _select().where(sa.or_(made, _enriches(dataset_id))).order_by(tasks.c.start_time.desc(), tasks.c.id)
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else _record(row)


def source_of(connection: sa.Connection, task_id: str) -> str | None:
    """Return the id of the dataset that a task enriches and keeps READ ONLY while it runs; None for other tasks."""
    query = sa.select(tasks.c.config).where(tasks.c.id == task_id, tasks.c.task_type == TaskType.ENRICHMENT)
    config = connection.execute(query).scalar()
    return None if config is None else config[_SOURCE]


def hold_source(connection: sa.Connection, task_id: str) -> None:
    """Set the dataset that a task enriches to READ ONLY; do nothing for other tasks.

    Raises:
        NotFound: the dataset was deleted.
        Conflict: another task runs on the dataset, or it is not READY.
    """
    if (source := source_of(connection, task_id)) is None:
        return
    record = find_dataset(connection, source)
    if (busy := running(connection, source)) is not None:
        raise Conflict(f"task {task_id} cannot be retried while {busy} task of {record.display_name!r} is running")
    if record.status_new is not DatasetStatus.READY:
        raise Conflict(f"task {task_id} needs {record.display_name!r} to be READY; it is {record.status_new}")
    update_dataset(connection, source, status=DatasetStatus.READ_ONLY)


def release_source(connection: sa.Connection, task_id: str) -> None:
    """Restore the status of the dataset that an ended task enriched; do nothing for other tasks."""
    source = source_of(connection, task_id)
    if source is not None and not is_busy(connection, source):
        mark_broken(connection, source)


def running_config(connection: sa.Connection, dataset_id: str, task_type: TaskType) -> dict[str, Any] | None:
    """Return the parameters of the running task of a type on a dataset; None if no such task runs."""
    query = sa.select(tasks.c.config).where(
        tasks.c.dataset_id == dataset_id, tasks.c.task_type == task_type, tasks.c.status.in_(_RUNNING)
    )
    value: dict[str, Any] | None = connection.execute(query.limit(1)).scalar()
    return value


def running_map(connection: sa.Connection, dataset_id: str, config: dict[str, Any]) -> str | None:
    """Return the id of the task that makes a map of a dataset with some parameters; None if no task does."""
    query = sa.select(tasks.c.id, tasks.c.config).where(
        tasks.c.dataset_id == dataset_id, tasks.c.task_type == TaskType.MAP, tasks.c.status.in_(_RUNNING)
    )
    return next((row.id for row in connection.execute(query) if row.config == config), None)


def is_busy(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether a task of the dataset is running."""
    return running(connection, dataset_id) is not None


def _select() -> sa.Select[Any]:
    return sa.select(tasks, datasets.c.status.label("dataset_status")).outerjoin(
        datasets, datasets.c.id == tasks.c.dataset_id
    )


def _record(row: Any) -> TaskRecord:
    with reading_row("tasks", row.id):
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
