"""Rows of settings that were changed while the service ran. Each function takes an open connection of its database."""

import sqlalchemy as sa

from framedex.storage.datasets import now
from framedex.storage.service_db.schema import settings


def stored_settings(connection: sa.Connection) -> dict[str, str]:
    """Return the values that were changed, as text by key."""
    return {row.key: row.value for row in connection.execute(sa.select(settings)).all()}


def put_setting(connection: sa.Connection, key: str, value: str, changed_by: str | None) -> None:
    """Store the value of a setting in the place of an earlier one."""
    connection.execute(settings.delete().where(settings.c.key == key))
    connection.execute(settings.insert().values(key=key, value=value, changed_by=changed_by, changed_at=now()))
