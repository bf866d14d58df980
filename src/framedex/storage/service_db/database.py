"""Opening of the service's database, which only the service and its commands make."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from framedex.access import LOCAL_USER_ID
from framedex.errors import WorkspaceError
from framedex.storage.database import Database
from framedex.storage.database_schema import Schema, create_database
from framedex.storage.datasets import now
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db import schema

SERVICE_DB = Schema(
    "service database",
    schema.metadata,
    "framedex.storage.service_db:migrations",
    ("0001", "0002", "0003", "0004", "0005", "0006"),
)
KEY_NAME = "service.key"
DEFAULT_ID = "00000000-0000-0000-0000-000000000001"
"""The id of the default organization, and of the default tenant."""
LOCAL_USERNAME = "local"


def open_service_db(folder: Path, *, read_only: bool = False) -> Database:
    """Open the database of the service in the folder of a workspace; create it or migrate its schema if necessary.

    Only the user who runs the service may read the file and its log, because they have the hashes of passwords.

    Raises:
        WorkspaceError: the file is no such database, others may read it, or it is missing and must not be created.
        FormatTooNew: a newer version of Framedex changed its schema.
    """
    path = folder / SERVICE_DB_NAME
    if not path.exists():
        if read_only:
            raise WorkspaceError(f"{path} is missing; `framedex serve` or `framedex users create` makes it")
        create_database(path, SERVICE_DB, _add_defaults, private=True)
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        _check_private(file)
    if not path.stat().st_size:  # SQLite would treat it as a new database
        raise WorkspaceError(f"{path} is not a Framedex service database: it is empty; restore it from a copy")
    database = Database(path, SERVICE_DB, read_only=read_only)
    try:
        database.check_revision()
    except BaseException:
        database.close()
        raise
    return database


def _check_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:  # a log that the last connection has just removed
        return
    if os.name == "posix" and mode & 0o077:
        raise WorkspaceError(
            f"{path} can be read by other users (mode {mode:o}), and it has the hashes of passwords; "
            f"run: chmod 600 {path}"
        )


def _add_defaults(connection: sa.Connection) -> None:
    """Add the default organization and tenant, and the user who acts while authentication is off."""
    time = now()
    for table in (schema.organizations, schema.tenants, schema.users):
        connection.execute(table.insert().values(**_default_row(table, time)))


def put_defaults(table: sa.Table, time: datetime) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the statement, with its values, that adds the first row of a table unless it is there."""
    row = _default_row(table, time) | {"created_at": time.isoformat(timespec="microseconds")}
    marks = ", ".join("?" * len(row))
    return ((f'INSERT OR IGNORE INTO "{table.name}" ({", ".join(row)}) VALUES ({marks})', tuple(row.values())),)


def _default_row(table: sa.Table, time: datetime) -> dict[str, Any]:
    if table is schema.organizations:
        return {"id": DEFAULT_ID, "name": "Default Organization", "created_at": time}
    if table is schema.tenants:
        return {"id": DEFAULT_ID, "organization_id": DEFAULT_ID, "name": "Default Workspace", "created_at": time}
    return {
        "id": LOCAL_USER_ID,
        "username": LOCAL_USERNAME,
        "username_key": LOCAL_USERNAME,
        "enabled": True,
        "password_temporary": False,
        "created_at": time,
        "epoch": 0,
    }
