"""Checks of a catalog's file for damage, missing tables and missing columns.

They also work on files that are too damaged to be opened as a catalog.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from framedex.errors import WorkspaceError
from framedex.storage.schema import metadata

_MOST = 20  # listed faults of one file
_DAMAGED = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
    }
)
_REFERENCES = {
    "the head of dataset {}": (
        "SELECT id FROM datasets d WHERE head IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM generations g WHERE g.id = d.head AND g.dataset_id = d.id)"
    ),
    "the generation of snapshot {}": (
        "SELECT id FROM snapshots s WHERE deleted_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM generations g WHERE g.id = s.generation AND g.dataset_id = s.dataset_id)"
    ),
    "the current snapshot of dataset {}": (
        "SELECT id FROM datasets d WHERE current_snapshot IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM snapshots s WHERE s.id = d.current_snapshot)"
    ),
}


def file_faults(path: Path) -> list[str]:
    """Return the faults of a catalog's file, one line each: file missing or damaged, tables or columns missing.

    Raises:
        WorkspaceError: the check cannot run now, for example because the disk cannot be read.
    """
    if not path.exists():
        return ["is missing"]
    if not path.stat().st_size:
        return ["is empty"]
    try:
        with closing(_connect(path)) as connection:
            faults = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST})") if text != "ok"]
            return faults or _schema_faults(connection)
    except sqlite3.Error as error:
        if _code(error) in _DAMAGED:
            return [f"is damaged: {error}"]
        raise WorkspaceError(f"cannot check {path}: {error}") from error


def reference_faults(path: Path) -> list[str]:
    """Return the dangling references of a catalog's rows, one line each. The file itself must be intact.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    try:
        with closing(_connect(path)) as connection:
            faults = [f"{name.format(row)} is missing" for name, query in _REFERENCES.items()
                      for (row,) in connection.execute(f"{query} LIMIT {_MOST}")]  # fmt: skip
            orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST)
            return faults + [
                f"row {row} of table {table} is of a dataset that is missing" for table, row, *_ in orphans
            ]
    except sqlite3.Error as error:
        raise WorkspaceError(f"cannot check {path}: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    uri, log = path.absolute().as_uri(), path.with_name(f"{path.name}-wal")
    # SQLite cannot create the index of a log in a read-only folder. Without a log it needs no index.
    mode = "rw" if os.access(path.parent, os.W_OK) or log.exists() else "ro&immutable=1"
    return sqlite3.connect(f"{uri}?mode={mode}", uri=True, timeout=60)


def _schema_faults(connection: sqlite3.Connection) -> list[str]:
    faults = []
    for table in metadata.sorted_tables:
        present = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
        if not present:
            faults.append(f"has no table {table.name}")
        else:
            lacking = [column.name for column in table.columns if column.name not in present]
            faults += [f"has no column {name} in table {table.name}" for name in lacking]
    return faults


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
