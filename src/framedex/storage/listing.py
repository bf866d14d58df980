"""The list of a workspace's datasets, read from the catalog alone, without loading the table engine."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from framedex.errors import WorkspaceError
from framedex.records import DatasetRecord
from framedex.storage import task_rows
from framedex.storage.catalog import Catalog, open_catalog
from framedex.storage.datasets import list_datasets
from framedex.storage.layout import open_layout
from framedex.storage.row_values import WrongValue


def list_workspace(folder: Path, namespace: str = "") -> list[DatasetRecord]:
    """Return the records of all datasets in a namespace of a workspace, newest first.

    Raises:
        WorkspaceError: the folder cannot be used as a workspace.
        FormatTooNew: a newer version of Framedex wrote it.
    """
    read_only = is_unwritable(folder)
    layout = open_layout(folder, read_only=read_only)
    with (
        closing(open_catalog(layout.catalog, read_only=read_only)) as catalog,
        reading_settled(catalog) as connection,
    ):
        return list_datasets(connection, namespace)


def is_unwritable(folder: Path) -> bool:
    """Return whether a folder exists and is not writable for this process."""
    return os.path.isdir(folder) and not os.access(folder, os.W_OK)  # noqa: PTH112 - never raises


@contextmanager
def reading_settled(catalog: Catalog) -> Iterator[sa.Connection]:
    """Yield a connection as :meth:`Catalog.read` does, once the tasks of dead processes are marked as failed.

    Nearly always there are none, which the same connection finds out.
    """
    with catalog.read() as connection:
        if catalog.read_only or not _has_interrupted(connection):
            yield connection
            return
    fail_interrupted_tasks(catalog)
    with catalog.read() as connection:
        yield connection


def fail_interrupted_tasks(catalog: Catalog) -> None:
    """Mark the tasks of dead processes as failed; do nothing if the catalog is read-only."""
    if catalog.read_only:
        return
    with catalog.read() as connection:
        is_interrupted = _has_interrupted(connection)
    if is_interrupted:
        # If the write fails, for example on a full disk, the next call repeats it.
        with suppress(WorkspaceError), catalog.write() as connection:
            task_rows.fail_interrupted(connection)


def _has_interrupted(connection: sa.Connection) -> bool:
    with suppress(WrongValue):  # `framedex check` must be able to open the workspace
        return task_rows.has_interrupted(connection)
    return False
