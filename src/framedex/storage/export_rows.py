"""Rows of exports. Each function takes an open connection of the catalog."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from framedex.errors import Conflict, NotFound
from framedex.records import ExportRecord, ExportStatus
from framedex.storage.datasets import now
from framedex.storage.media import file_uri
from framedex.storage.owners import has_died, this_process
from framedex.storage.row_values import reading_row
from framedex.storage.schema import exports

INTERRUPTED = "interrupted"
_UNDER_WAY = (ExportStatus.PENDING, ExportStatus.RUNNING)


def insert_export(connection: sa.Connection, record: ExportRecord, *, path: Path, created_by: str) -> None:
    """Add the row of an export that this process runs.

    Args:
        connection: of the catalog.
        record: the initial state of the export.
        path: the file to write.
        created_by: the user who started it.
    """
    connection.execute(
        exports.insert().values(
            **_values(record),
            dataset_id=record.dataset_id,
            created_at=record.created_at,
            created_by=created_by,
            path=os.fsencode(path),
            owner=this_process(),
            heartbeat_at=now(),
        )
    )


def update_export(connection: sa.Connection, record: ExportRecord) -> bool:
    """Store an export's state and heartbeat; return False if the export was failed as interrupted meanwhile."""
    own = (exports.c.id == record.id, exports.c.status.in_(_UNDER_WAY), exports.c.owner == this_process())
    result = connection.execute(exports.update().where(*own).values(**_values(record), heartbeat_at=now()))
    return result.rowcount == 1


def check_own(connection: sa.Connection, export_id: str) -> None:
    """Check that this process still owns an export, before its file appears under its final name.

    Raises:
        Conflict: the export was failed as interrupted meanwhile, for example while the machine was asleep.
    """
    row = connection.execute(
        sa.select(exports.c.status, exports.c.owner).where(exports.c.id == export_id)
    ).one_or_none()
    if row is None or row.status not in _UNDER_WAY or row.owner != this_process():
        raise interruption(export_id)


def interruption(export_id: str) -> Conflict:
    """Return the error for an export that continues after it was failed as interrupted."""
    return Conflict(f"export {export_id} was given up while it ran; its file does not appear")


def find_export(connection: sa.Connection, export_id: str, *, dataset_id: str) -> ExportRecord:
    """Return an export of a dataset.

    Raises:
        NotFound: the dataset has no export of that id.
    """
    one = exports.select().where(exports.c.id == export_id, exports.c.dataset_id == dataset_id)
    try:
        row = connection.execute(one).one_or_none()
    except UnicodeEncodeError:  # not valid text, so not an id
        row = None
    if row is None:
        raise NotFound(f"no export {export_id!r} of this dataset")
    return _record(row)


def list_exports(connection: sa.Connection, *, dataset_id: str) -> list[ExportRecord]:
    """Return the exports of a dataset, newest first."""
    newest = exports.select().order_by(exports.c.created_at.desc(), exports.c.id)
    return [_record(row) for row in connection.execute(newest.where(exports.c.dataset_id == dataset_id)).all()]


def has_running_export(connection: sa.Connection, dataset_id: str) -> bool:
    """Return whether an export reads tables of the dataset at present."""
    rows = connection.execute(_under_way().where(exports.c.dataset_id == dataset_id)).all()
    return any(not _is_dead(row) for row in rows)


def fail_interrupted_exports(connection: sa.Connection, *, every: bool = False) -> int:
    """Fail the exports whose process is gone or has no recent heartbeat, or all that run; return their number."""
    dead = [row.id for row in connection.execute(_under_way()).all() if every or _is_dead(row)]
    for export_id in dead:
        connection.execute(
            exports.update()
            .where(exports.c.id == export_id)
            .values(status=ExportStatus.FAILED, result_message=INTERRUPTED)
        )
    return len(dead)


def has_interrupted_exports(connection: sa.Connection) -> bool:
    """Return whether :func:`fail_interrupted_exports` would change something."""
    return any(_is_dead(row) for row in connection.execute(_under_way()).all())


def _under_way() -> sa.Select[Any]:
    return exports.select().where(exports.c.status.in_(_UNDER_WAY))


def _is_dead(row: Any) -> bool:
    with reading_row("exports", row.id):
        return has_died(row.id, row.owner, row.heartbeat_at, now=now())


def _values(record: ExportRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "status": record.status,
        "progress": record.progress,
        "entities_count": record.entities_count,
        "result_message": record.result_message,
    }


def _record(row: Any) -> ExportRecord:
    with reading_row("exports", row.id):
        status, message = ExportStatus(row.status), row.result_message
        if status in _UNDER_WAY and _is_dead(row):  # in a read-only workspace the row cannot be updated
            status, message = ExportStatus.FAILED, INTERRUPTED
        return ExportRecord(
            id=row.id,
            dataset_id=row.dataset_id,
            created_at=row.created_at,
            status=status,
            progress=row.progress,
            entities_count=row.entities_count,
            result_message=message,
            download_uri=file_uri(os.fsdecode(row.path)) if status is ExportStatus.COMPLETED else None,
        )
