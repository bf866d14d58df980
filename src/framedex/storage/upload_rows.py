"""Rows of upload transactions. Each function takes an open connection of the catalog.

The state of a transaction is not stored: it follows from the task that processes it, which any process may end or
restart. A transaction whose task is missing, as in a catalog that was recovered, is open again.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from framedex.errors import NotFound
from framedex.records import DatasetStatus, TaskStatus, UploadRecord, UploadState
from framedex.storage.datasets import now
from framedex.storage.manifest import note_change
from framedex.storage.retention import UNFINISHED_S
from framedex.storage.row_values import reading_row
from framedex.storage.schema import datasets, tasks, uploads
from framedex.storage.upload_lists import UploadList, intact_list, stored_lists

_MAX_ID = 2**63 - 1
_ENDED = (TaskStatus.FAILED, TaskStatus.ABORTED)
_STATES = {TaskStatus.COMPLETED: UploadState.DONE, **dict.fromkeys(_ENDED, UploadState.FAILED)}


class UploadRow(NamedTuple):
    """A transaction with what only the storage needs to know.

    Attributes:
        record: the transaction.
        list_bytes: length of its list.
        collected: id of the upload that its task reads; None while it is open.
    """

    record: UploadRecord
    list_bytes: int
    collected: str | None


def insert_upload(connection: sa.Connection, dataset_id: str, *, created_by: str) -> int:
    """Add an open transaction of a dataset and return its id."""
    values = {"dataset_id": dataset_id, "created_by": created_by, "created_at": now(), "changed_at": now()}
    key = connection.execute(uploads.insert().values(**values)).inserted_primary_key
    assert key is not None, "SQLite returns the new id"
    return int(key[0])


def insert_from_list(connection: sa.Connection, dataset_id: str, stored: UploadList, *, changed_at: datetime) -> None:
    """Add an open transaction as its list describes it.

    Raises:
        IntegrityError: another transaction has its id.
    """
    connection.execute(
        uploads.insert().values(
            id=stored.upload_id,
            dataset_id=dataset_id,
            created_by=stored.created_by,
            created_at=stored.created_at,
            changed_at=changed_at,
            n_files=stored.n_files,
            n_bytes=stored.n_bytes,
            list_bytes=stored.list_bytes,
        )
    )


def insert_stored(connection: sa.Connection, dataset: Path, dataset_id: str) -> None:
    """Add the transactions whose lists are in a dataset's folder, for a catalog without rows of transactions.

    A list that cannot be read, or whose id another transaction has, stays as it is; a check of the workspace names it.
    """
    taken = set(connection.execute(sa.select(uploads.c.id)).scalars())
    for upload_id, path in stored_lists(dataset):
        stored = intact_list(path)
        if stored is not None and stored.upload_id == upload_id and upload_id not in taken:
            insert_from_list(connection, dataset_id, stored, changed_at=now())


def find_upload(connection: sa.Connection, dataset_id: str, upload_id: int) -> UploadRow:
    """Return a transaction of a dataset.

    Raises:
        NotFound: the dataset has no such transaction.
    """
    row = None
    if isinstance(upload_id, int) and not isinstance(upload_id, bool) and 0 < upload_id <= _MAX_ID:
        condition = (uploads.c.id == upload_id, uploads.c.dataset_id == dataset_id)
        row = connection.execute(_select().where(*condition)).one_or_none()
    if row is None:
        raise NotFound(f"Transaction {upload_id!r} not found: the dataset has no transaction of that id, or it expired")
    return _upload(row)


def has_upload(connection: sa.Connection, upload_id: int) -> bool:
    """Return whether a dataset has a transaction of that id."""
    return bool(connection.execute(sa.select(sa.exists().where(uploads.c.id == upload_id))).scalar())


def list_uploads(connection: sa.Connection, dataset_id: str) -> list[UploadRow]:
    """Return the transactions of a dataset, oldest first."""
    rows = connection.execute(_select().where(uploads.c.dataset_id == dataset_id).order_by(uploads.c.id)).all()
    return [_upload(row) for row in rows]


def count_open(connection: sa.Connection, dataset_id: str) -> int:
    """Return the number of open transactions of a dataset."""
    return sum(each.record.state is UploadState.OPEN for each in list_uploads(connection, dataset_id))


def update_upload(connection: sa.Connection, upload_id: int, **values: Any) -> None:
    """Set columns of a transaction's row, and the time of its last change."""
    connection.execute(uploads.update().where(uploads.c.id == upload_id).values(changed_at=now(), **values))


def set_list_bytes(connection: sa.Connection, upload_id: int, length: int) -> None:
    """Set the length of a transaction's list; the time of the last change stays."""
    connection.execute(uploads.update().where(uploads.c.id == upload_id).values(list_bytes=length))


def set_contents(connection: sa.Connection, stored: UploadList) -> None:
    """Set the counts of a transaction to those of the intact beginning of its list."""
    update_upload(
        connection, stored.upload_id, n_files=stored.n_files, n_bytes=stored.n_bytes, list_bytes=stored.list_bytes
    )


def remove_upload_row(connection: sa.Connection, row: UploadRow) -> None:
    """Delete the row of a transaction. A dataset whose creation from it failed becomes a draft again."""
    connection.execute(uploads.delete().where(uploads.c.id == row.record.id))
    if row.record.state is UploadState.FAILED:
        reopen_draft(connection, row.record.dataset_id)


def reopen_draft(connection: sa.Connection, dataset_id: str) -> None:
    """Set the status of a dataset whose creation failed to DRAFT; leave any other dataset as it is."""
    failed = (datasets.c.id == dataset_id, datasets.c.head.is_(None), datasets.c.status == DatasetStatus.ERROR)
    if connection.execute(datasets.update().where(*failed).values(status=DatasetStatus.DRAFT, progress=0)).rowcount:
        note_change(connection, dataset_id)


def expired_uploads(connection: sa.Connection) -> list[tuple[int, str]]:
    """Return (id, dataset id) of the transactions that nobody changed for seven days.

    These are open ones, and those whose task failed or was aborted that long ago, so that it is not retried any more.
    """
    before = now() - timedelta(seconds=UNFINISHED_S)
    is_open = sa.and_(tasks.c.id.is_(None), uploads.c.changed_at < before)
    has_failed = sa.and_(tasks.c.status.in_(_ENDED), tasks.c.end_time < before)
    rows = connection.execute(_select().where(sa.or_(is_open, has_failed)).order_by(uploads.c.id)).all()
    return [(row.id, row.dataset_id) for row in rows]


def processed_uploads(connection: sa.Connection, dataset_id: str | None = None) -> list[tuple[int, str]]:
    """Return (id, dataset id) of the transactions whose files are in the dataset and whose list still exists.

    Args:
        connection: of the catalog.
        dataset_id: only transactions of this dataset.
    """
    query = sa.select(uploads.c.id, uploads.c.dataset_id).join(tasks, tasks.c.id == uploads.c.task_id)
    query = query.where(uploads.c.list_bytes > 0, tasks.c.status == TaskStatus.COMPLETED)
    if dataset_id is not None:
        query = query.where(uploads.c.dataset_id == dataset_id)
    return [(row.id, row.dataset_id) for row in connection.execute(query).all()]


def _select() -> sa.Select[Any]:
    return sa.select(uploads, tasks.c.status).outerjoin(tasks, tasks.c.id == uploads.c.task_id)


def _upload(row: Any) -> UploadRow:
    record = _record(row)
    return UploadRow(record, row.list_bytes, None if record.task_id is None else row.collected)


def _record(row: Any) -> UploadRecord:
    with reading_row("uploads", row.id):
        state = UploadState.OPEN if row.status is None else _STATES.get(row.status, UploadState.PROCESSING)
        return UploadRecord(
            id=row.id,
            dataset_id=row.dataset_id,
            created_by=row.created_by,
            created_at=row.created_at,
            changed_at=row.changed_at,
            state=state,
            n_files=row.n_files,
            n_bytes=row.n_bytes,
            task_id=None if state is UploadState.OPEN else row.task_id,
        )
