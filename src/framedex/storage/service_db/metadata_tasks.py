"""Rows of custom fields that wait for their values. Each function takes an open connection of the service's database.

The id of a row becomes the id of the task that writes the values.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from framedex.core.ids import new_id
from framedex.storage.datasets import now
from framedex.storage.service_db.schema import metadata_tasks


def insert_metadata_task(
    connection: sa.Connection, dataset_id: str, field: dict[str, Any], created_by: str | None
) -> str:
    """Add a field that waits for its values and return its id.

    Args:
        connection: of the service's database.
        dataset_id: the dataset.
        field: the definition, as JSON.
        created_by: the id of the user; None for a user without account.
    """
    task_id = new_id()
    values = {"id": task_id, "dataset_id": dataset_id, "field": field, "created_by": created_by, "created_at": now()}
    connection.execute(metadata_tasks.insert().values(**values))
    return task_id


def find_metadata_field(
    connection: sa.Connection, dataset_id: str, task_id: str, *, since: datetime
) -> dict[str, Any] | None:
    """Return the definition of a field that waits for its values; None if there is none, or only an older one."""
    field: dict[str, Any] | None = connection.execute(
        sa.select(metadata_tasks.c.field).where(
            metadata_tasks.c.id == task_id,
            metadata_tasks.c.dataset_id == dataset_id,
            metadata_tasks.c.created_at >= since,
        )
    ).scalar_one_or_none()
    return field


def delete_metadata_tasks(connection: sa.Connection, *, before: datetime) -> None:
    """Delete the rows that were added before a time."""
    connection.execute(metadata_tasks.delete().where(metadata_tasks.c.created_at < before))
