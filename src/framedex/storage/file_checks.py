"""Checks of the file of a SQLite database for damage, and for missing tables and columns.

They also work on files that are too damaged to be opened as a database of ours.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from framedex.errors import WorkspaceError
from framedex.storage.sqlite_errors import base_code, failure_reason

MOST = 20
"""The maximum number of listed faults of one file."""
_DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
    }
)


def database_faults(path: Path, tables: sa.MetaData | None) -> list[str]:
    """Return the faults of a file, one line each: file missing or damaged, tables or columns missing.

    Args:
        path: the file.
        tables: the tables that it must have; None for any.

    Raises:
        WorkspaceError: the check cannot run now, for example because the disk cannot be read.
    """
    if not path.exists():
        return ["is missing"]
    if not path.stat().st_size:
        return ["is empty"]
    try:
        with closing(_connect(path)) as connection:
            faults = [text for (text,) in connection.execute(f"PRAGMA integrity_check({MOST})") if text != "ok"]
            return faults or ([] if tables is None else _schema_faults(connection, tables))
    except sqlite3.Error as error:
        if (base_code(error) or sqlite3.SQLITE_ERROR) in _DAMAGED:
            return [f"is damaged: {error}"]
        raise _cannot_check(path, error) from error


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a database; text that is not UTF-8 is returned with surrogates."""
    try:
        with closing(_connect(path)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            yield connection
    except sqlite3.Error as error:
        raise _cannot_check(path, error) from error


def _cannot_check(path: Path, error: sqlite3.Error) -> WorkspaceError:
    return WorkspaceError(f"cannot check {path}: {failure_reason(error, path)}")


def _connect(path: Path) -> sqlite3.Connection:
    uri, log = path.absolute().as_uri(), path.with_name(f"{path.name}-wal")
    # SQLite cannot create the index of a log in a read-only folder. Without a log it needs no index.
    mode = "rw" if os.access(path.parent, os.W_OK) or log.exists() else "ro&immutable=1"
    return sqlite3.connect(f"{uri}?mode={mode}", uri=True, timeout=60)


def _schema_faults(connection: sqlite3.Connection, tables: sa.MetaData) -> list[str]:
    faults = []
    for table in tables.sorted_tables:
        present = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
        if not present:
            faults.append(f"has no table {table.name}")
        else:
            lacking = [column.name for column in table.columns if column.name not in present]
            faults += [f"has no column {name} in table {table.name}" for name in lacking]
    return faults
