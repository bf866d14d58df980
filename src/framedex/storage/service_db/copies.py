"""Copies of the service's database for a backup."""

import os
from contextlib import closing
from pathlib import Path

from framedex.errors import WorkspaceError
from framedex.storage.database import Database
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db.database import SERVICE_DB, open_service_db
from framedex.storage.service_db.schema import deletions, exports, login_failures, sessions, single_uses


def write_service_copy(workspace: Path, folder: Path) -> None:
    """Write a copy of the database, as it is at one moment, without what is of no use or secret in another place.

    Sessions, failed log-ins, values that were used once, deletions under way and files of exports are left out. Only
    the user of this process may read the copy.

    Args:
        workspace: the folder of the workspace.
        folder: of the copy.

    Raises:
        WorkspaceError: the database cannot be read, or the copy cannot be written.
    """
    path = folder / SERVICE_DB_NAME
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise WorkspaceError(f"cannot write {path}: {error.strerror}") from error
    with closing(open_service_db(workspace, read_only=True)) as database:
        database.copy_to(path)
    with closing(Database(path, SERVICE_DB, read_only=False)) as copy:
        with copy.write() as connection:
            for table in (sessions, login_failures, single_uses, deletions, exports):
                connection.execute(table.delete())
        copy.seal()
