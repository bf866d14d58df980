"""Running tasks that read files, or tables with paths, for media that are not committed yet.

Each function takes an open connection of the catalog.
"""

from collections.abc import Hashable
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict
from framedex.records import TaskStatus, TaskType
from framedex.storage import task_rows
from framedex.storage.schema import tasks

_READ = (
    TaskType.DATASET_CREATION,
    TaskType.MEDIA_ADDITION,
    TaskType.ENRICHMENT,
    TaskType.SNAPSHOT_CLONE,
    TaskType.SNAPSHOT_RESTORE,
)
_RUNNING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)


def check_none(connection: sa.Connection) -> None:
    """Check that no such task is running; tasks of dead processes do not count.

    Raises:
        Conflict: such a task is running.
    """
    task_rows.fail_interrupted(connection)
    if (row := _under_way(connection)) is not None:
        task = f"{row.task_type} task of {row.dataset_name!r}"
        raise Conflict(f"files cannot be deleted while {task} is running, which may need them")


def mark(connection: sa.Connection) -> Hashable:
    """Return a value that changes whenever such a task starts, ends or restarts."""
    query = sa.select(sa.func.count(), sa.func.max(tasks.c.heartbeat_at)).where(tasks.c.task_type.in_(_READ))
    return tuple(connection.execute(query).one())


def has_begun(connection: sa.Connection, since: Hashable) -> bool:
    """Return whether such a task is running, or ran since a :func:`mark`."""
    return _under_way(connection) is not None or mark(connection) != since


def _under_way(connection: sa.Connection) -> Any:
    query = sa.select(tasks.c.task_type, tasks.c.dataset_name)
    return connection.execute(query.where(tasks.c.task_type.in_(_READ), tasks.c.status.in_(_RUNNING))).first()
