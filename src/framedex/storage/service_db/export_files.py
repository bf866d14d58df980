"""Rows of the files of exports. Each function takes an open connection of the service's database."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from framedex.storage.service_db.schema import exports


class ExportFile(NamedTuple):
    """The file of an export.

    Attributes:
        export_id: the export, whose state is in the catalog.
        dataset_id: the dataset.
        user_id: who started it; None if the account was deleted.
        path: of the file within the workspace.
        file_name: its name for users.
        created_at: the start of the export.
        expires_at: the time at which the file is deleted.
    """

    export_id: str
    dataset_id: str
    user_id: str | None
    path: bytes
    file_name: str
    created_at: datetime
    expires_at: datetime


def put_export_file(connection: sa.Connection, file: ExportFile) -> None:
    """Add the row of an export."""
    connection.execute(exports.insert().values(**file._asdict()))


def find_export_file(connection: sa.Connection, export_id: str) -> ExportFile | None:
    """Return the row of an export; None if there is none."""
    try:
        row = connection.execute(exports.select().where(exports.c.export_id == export_id)).one_or_none()
    except UnicodeEncodeError:  # half of a surrogate pair, so not an id
        return None
    return None if row is None else ExportFile(*row)


def list_export_files(connection: sa.Connection, dataset_id: str | None = None) -> list[ExportFile]:
    """Return all rows, or those of a dataset, the oldest first."""
    query = exports.select().order_by(exports.c.created_at, exports.c.export_id)
    query = query if dataset_id is None else query.where(exports.c.dataset_id == dataset_id)
    return [ExportFile(*row) for row in connection.execute(query).all()]


def remove_export_files(connection: sa.Connection, export_ids: Sequence[str]) -> None:
    """Delete rows."""
    for export_id in export_ids:
        connection.execute(exports.delete().where(exports.c.export_id == export_id))
