"""Checks of the service's database, and what mends its faults without a loss of anybody's data.

They need neither the service nor its extra, and read the database while the service writes to it.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from framedex.access import LOCAL_USER_ID, Role
from framedex.core.counts import counted
from framedex.core.naming import name_key
from framedex.storage.datasets import now
from framedex.storage.file_checks import MOST, database_faults, reading
from framedex.storage.row_checks import check_columns
from framedex.storage.row_values import WrongValue
from framedex.storage.service_db import schema
from framedex.storage.service_db.database import DEFAULT_ID, LOCAL_USERNAME, SERVICE_DB, put_defaults

_RESTORE = "restore the row from a backup with users"
_ADMIN = "`framedex users create --admin NAME` creates one"
_SWEPT = "`--repair` removes them, as the service does from time to time"
_SHORT_LIVED = (
    schema.sessions, schema.login_failures, schema.single_uses, schema.exports, schema.metadata_tasks,
    schema.notifications, schema.audit, schema.deletions,
)  # fmt: skip
"""Tables of which a row can go without a loss for anybody: it is made again, or told what has passed."""
_OF_DATASETS = (schema.dataset_homes, schema.grants, schema.notifications, schema.exports, schema.metadata_tasks)
# In lines of SQLite's integrity check: about a value, and about an index that can be made again.
_OF_ROWS = re.compile(r"constraint failed in |NULL value in |non-\w+ value in ")
_OF_INDICES = re.compile(r"missing from index|wrong # of entries in index|non-unique entry in index")
EXISTING = object()
"""In the place of a value of a statement: the ids of the datasets that exist when it is executed."""
Existing = Callable[[], Collection[str]]
"""Returns the ids of the datasets that exist, or whose folder does."""
Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class ServiceFault:
    """A fault of rows of the service's database.

    Attributes:
        text: description of the fault.
        remedy: what the user can do.
        mend: the statements that mend it, which do nothing where it is gone; empty if that is impossible.
    """

    text: str
    remedy: str
    mend: tuple[Statement, ...] = ()


def service_file_faults(path: Path) -> list[str]:
    """Return the faults of the database's file, one line each. A database of an older version has the older tables.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    if faults := [fault for fault in database_faults(path, None) if not _OF_ROWS.search(fault)]:
        return faults
    revision = revision_of(path)
    if revision is None:
        return ["is no database of the service: it has no revision"]
    if revision != SERVICE_DB.newest:
        return []
    return [fault for fault in database_faults(path, schema.metadata) if not _OF_ROWS.search(fault)]


def only_indices(faults: Collection[str]) -> bool:
    """Return whether faults of a file are in indices alone, so that :func:`rebuild_indices` mends them."""
    return bool(faults) and all(_OF_INDICES.search(fault) for fault in faults)


def rebuild_indices(connection: sa.Connection) -> None:
    """Make all indices again; raises if rows have equal values where the schema does not allow them."""
    connection.exec_driver_sql("REINDEX")


def revision_of(path: Path) -> str | None:
    """Return the revision of the schema of a sound file; None if it has none, so that it is no such database."""
    with reading(path) as connection:
        try:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.OperationalError:
            return None
    return None if row is None else str(row[0])


def service_faults(path: Path, existing: Existing, *, is_single: bool) -> list[ServiceFault]:
    """Return the faults of the rows. The file must be sound and have the newest schema.

    Args:
        path: the database.
        existing: returns the ids of the datasets.
        is_single: whether a tenant has one admin.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    with reading(path) as connection:
        return [
            *_wrong_values(connection),
            *_defaults(connection),
            *_dangling(connection),
            *_wrong_keys(connection),
            *_primaries(connection),
            *_of_no_dataset(connection, existing),
            *_admins(connection, is_single=is_single),
        ]


def mend_fault(connection: sa.Connection, fault: ServiceFault, existing: Existing) -> None:
    """Repair a fault, in a transaction of the database."""
    for statement, values in fault.mend:
        present = [json.dumps(sorted(existing())) if value is EXISTING else value for value in values]
        connection.exec_driver_sql(statement, tuple(present))


def _wrong_values(connection: sqlite3.Connection) -> Iterator[ServiceFault]:
    """Yield the rows with a value that Framedex never writes."""
    for table in schema.metadata.sorted_tables:
        cursor = connection.execute(f'SELECT rowid, * FROM "{table.name}"')
        names = [name for name, *_ in cursor.description][1:]
        for number, *values in cursor:
            try:
                check_columns(table, dict(zip(names, values, strict=True)))
            except WrongValue as error:
                is_short_lived = table in _SHORT_LIVED
                mend = ((f'DELETE FROM "{table.name}" WHERE rowid = ?', (number,)),) if is_short_lived else ()
                yield ServiceFault(str(error), "`--repair` removes the row" if is_short_lived else _RESTORE, mend)
    for (text,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if "constraint failed" in text:
            yield ServiceFault(f"a row has a value that its table does not allow: {text}", _RESTORE)


def _dangling(connection: sqlite3.Connection) -> Iterator[ServiceFault]:
    """Yield the rows that refer to a row which does not exist."""
    for table in schema.metadata.sorted_tables:
        for key in sorted(table.foreign_keys, key=lambda each: str(each.parent.name)):
            column, owner = key.parent.name, key.column.table.name
            condition = f'{column} IS NOT NULL AND {column} NOT IN (SELECT {key.column.name} FROM "{owner}")'
            count = _count(connection, table, condition)
            if not count:
                continue
            text = f"{_rows(count, table)} of {owner.replace('_', ' ')} that are missing, in {column}"
            if key.ondelete == "CASCADE":
                remedy, statement = "`--repair` removes them", f'DELETE FROM "{table.name}" WHERE {condition}'
            elif key.ondelete == "SET NULL":
                remedy = "`--repair` empties the column"
                statement = f'UPDATE "{table.name}" SET {column} = NULL WHERE {condition}'
            else:  # datasets of a lost tenant, tenants of a lost organization
                remedy = "`--repair` gives them to the default one"
                statement = _to_default(table, column, condition)
            yield ServiceFault(text, remedy, ((statement, ()),))


def _to_default(table: sa.Table, column: str, condition: str) -> str:
    name = ", name = name || ' (' || id || ')'" if table is schema.tenants else ""  # unique in an organization
    return f"UPDATE \"{table.name}\" SET {column} = '{DEFAULT_ID}'{name} WHERE {condition}"


def _defaults(connection: sqlite3.Connection) -> Iterator[ServiceFault]:
    """Yield the rows that each database has from the start and that are missing."""
    for table, row_id, noun in (
        (schema.organizations, DEFAULT_ID, "default organization"),
        (schema.tenants, DEFAULT_ID, "default workspace of users"),
        (schema.users, LOCAL_USER_ID, f"user {LOCAL_USERNAME!r}, who acts while authentication is off,"),
    ):
        if not _count(connection, table, f"id = '{row_id}'"):
            yield ServiceFault(f"the {noun} is missing", "`--repair` adds it", put_defaults(table, now()))


def _wrong_keys(connection: sqlite3.Connection) -> Iterator[ServiceFault]:
    """Yield the users who are not found by their name or address, as the normalised form is another one."""
    query = "SELECT id, username, username_key, email, email_key FROM users"
    for user_id, username, username_key, email, email_key in connection.execute(query):
        for column, value, stored in (("username_key", username, username_key), ("email_key", email, email_key)):
            key = None if value is None else name_key(str(value))
            if key == stored or user_id == LOCAL_USER_ID:
                continue
            mend = f"UPDATE OR IGNORE users SET {column} = ? WHERE id = ?"
            text = f"the user {username!r} is not found by the {'name' if column == 'username_key' else 'address'}"
            yield ServiceFault(text, "`--repair` writes it again, if no other user has it", ((mend, (key, user_id)),))


def _primaries(connection: sqlite3.Connection) -> Iterator[ServiceFault]:
    """Yield the members of tenants of which none is their primary one."""
    query = (
        "SELECT username, users.id FROM users JOIN memberships ON users.id = user_id"
        " GROUP BY users.id HAVING MAX(is_primary) = 0 ORDER BY username_key"
    )
    mend = (
        "UPDATE memberships SET is_primary = 1 WHERE rowid = (SELECT rowid FROM memberships WHERE user_id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM memberships WHERE user_id = ?1 AND is_primary)"
        " ORDER BY created_at, tenant_id LIMIT 1)"
    )
    for username, user_id in connection.execute(query):
        text = f"the user {username!r} has no workspace in which new datasets are created"
        yield ServiceFault(text, "`--repair` takes the one that the user joined first", ((mend, (user_id,)),))


def _of_no_dataset(connection: sqlite3.Connection, existing: Existing) -> Iterator[ServiceFault]:
    """Yield the rows about datasets that do not exist."""
    query = 'SELECT dataset_id, COUNT(*) FROM "{}" WHERE dataset_id IS NOT NULL GROUP BY dataset_id'
    found = {table: connection.execute(query.format(table.name)).fetchall() for table in _OF_DATASETS}
    known = existing()  # after the rows: a dataset is made before its rows are
    for table, rows in found.items():
        if count := sum(rows_of for dataset_id, rows_of in rows if dataset_id not in known):
            mend = f'DELETE FROM "{table.name}" WHERE dataset_id NOT IN (SELECT value FROM json_each(?))'
            yield ServiceFault(f"{_rows(count, table)} of datasets that do not exist", _SWEPT, ((mend, (EXISTING,)),))


def _admins(connection: sqlite3.Connection, *, is_single: bool) -> Iterator[ServiceFault]:
    """Yield the tenants whose number of admins is not allowed."""
    query = (
        "SELECT tenants.name, COUNT(*), SUM(role = ?), SUM(role = ? AND enabled) FROM tenants"
        " JOIN memberships ON tenants.id = tenant_id JOIN users ON users.id = user_id GROUP BY tenants.id"
    )
    rows = connection.execute(query, (Role.ADMIN, Role.ADMIN)).fetchall()
    for name, members, admins, enabled in rows:
        if not enabled:
            text = f"the workspace {name!r} has {counted(members, 'members')}, but no admin who can log in"
            yield ServiceFault(text, _ADMIN)
        elif admins > 1 and is_single and len(rows) == 1:
            text = f"the workspace {name!r} has {counted(admins, 'admins')}, and a single workspace has one"
            yield ServiceFault(text, "make one of them admin again: the others become editors")


def _count(connection: sqlite3.Connection, table: sa.Table, condition: str, *values: str) -> int:
    query = f'SELECT COUNT(*) FROM "{table.name}" WHERE {condition}'
    return int(connection.execute(query, values).fetchone()[0])


def _rows(count: int, table: sa.Table) -> str:
    return f"{counted(count, 'rows')} of table {table.name} {'is' if count == 1 else 'are'}"
