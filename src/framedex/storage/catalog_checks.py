"""Checks of a catalog's file for damage, missing tables and columns, dangling references and wrong values.

They also work on files that are too damaged to be opened as a catalog.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from framedex.storage.file_checks import MOST, database_faults, reading
from framedex.storage.row_checks import plain_row
from framedex.storage.row_values import WrongValue
from framedex.storage.schema import (
    alert_queue,
    datasets,
    exports,
    journal,
    leases,
    metadata,
    saved_views,
    tasks,
    trend_points,
    uploads,
)

_OF_NO_ENTRY = (tasks, exports, uploads, trend_points, alert_queue, journal, leases)
"""The tables whose rows the manifest of a dataset does not have."""
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

_OWNERS = {datasets.name: "dataset", saved_views.name: "saved view"}


def file_faults(path: Path) -> list[str]:
    """Return the faults of a catalog's file, one line each: file missing or damaged, tables or columns missing.

    Raises:
        WorkspaceError: the check cannot run now, for example because the disk cannot be read.
    """
    return database_faults(path, metadata)


def reference_faults(path: Path) -> list[str]:
    """Return the dangling references of a catalog's rows, one line each. The file itself must be intact.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    with reading(path) as connection:
        faults = [f"{name.format(row)} is missing" for name, query in _REFERENCES.items()
                  for (row,) in connection.execute(f"{query} LIMIT {MOST}")]  # fmt: skip
        orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(MOST)
        return faults + [
            f"row {row} of table {table} is of a {_OWNERS.get(parent, 'row')} that is missing"
            for table, row, parent, _ in orphans
        ]


@dataclass(frozen=True)
class RowFault:
    """A row with a value that Framedex never writes.

    Attributes:
        table: name of the table.
        number: SQLite's number of the row.
        dataset_id: the dataset that the row describes; None for the history of tasks and exports, for upload
            transactions, points of trends, steps of journals and leases, and for rows that name no dataset.
        text: description of the fault.
    """

    table: str
    number: int
    dataset_id: str | None
    text: str


def row_faults(path: Path) -> list[RowFault]:
    """Return the first fault of each row of a catalog that has one. The file itself must be intact.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    with reading(path) as connection:
        return [fault for table in metadata.sorted_tables for fault in _faults_of_rows(connection, table)]


def catalog_faults(path: Path) -> list[str]:
    """Return all faults of a catalog, one line each: those of its file, or else those of its rows.

    Raises:
        WorkspaceError: the check cannot run now.
    """
    return file_faults(path) or [*reference_faults(path), *(fault.text for fault in row_faults(path))]


def _faults_of_rows(connection: sqlite3.Connection, table: sa.Table) -> Iterator[RowFault]:
    cursor = connection.execute(f"SELECT rowid, * FROM {table.name}")
    names = [name for name, *_ in cursor.description][1:]
    for number, *values in cursor:
        stored = dict(zip(names, values, strict=True))
        try:
            plain_row(table, stored)
        except WrongValue as error:
            key = "id" if table is datasets else "dataset_id"
            dataset_id = None if table in _OF_NO_ENTRY else stored[key]
            yield RowFault(table.name, number, dataset_id if isinstance(dataset_id, str) else None, str(error))
