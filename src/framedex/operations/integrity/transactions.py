"""Checks of upload transactions: their rows, their lists in the datasets' folders, and the files that these list."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.core.counts import counted
from framedex.errors import WorkspaceError
from framedex.operations.integrity.inspection import Inspection
from framedex.records import UploadRecord, UploadState
from framedex.storage import task_rows, upload_rows
from framedex.storage.blobs import blob_path
from framedex.storage.datasets import now
from framedex.storage.upload_lists import (
    UploadList,
    discarded_lists,
    intact_list,
    list_path,
    listed_files,
    stored_lists,
)

_READ = (UploadState.OPEN, UploadState.FAILED)  # the others do not need their lists any more
_AGAIN = "upload the file again in the same transaction, or discard the transaction"
_BROKEN = "`--repair` keeps the files before the damage; upload the others again"
_NO_ROW = "`--repair` opens the transaction again"
_UNREADABLE = "remove the file, and upload its files again"


@dataclass(frozen=True)
class _ListFault:
    """A list that does not agree with the row of its transaction.

    Attributes:
        record: the row.
        text: description of the fault.
        stored: intact beginning of the list; None without one.
    """

    record: UploadRecord
    text: str
    stored: UploadList | None


def check_transactions(inspection: Inspection, dataset_id: str) -> None:
    """Check that each transaction has its list, each list its transaction, and each listed file its content."""
    catalog, folder = inspection.context.catalog, inspection.context.layout.dataset(dataset_id)
    with catalog.read() as connection:
        rows = [each for each in upload_rows.list_uploads(connection, dataset_id) if each.record.state in _READ]
        faults = list(_list_faults(connection, folder, dataset_id))
        lists = list(_lists_without_row(connection, folder, dataset_id))
    if (faults or lists) and not catalog.read_only:  # a call may have come between both
        with catalog.write() as connection:
            faults = list(_list_faults(connection, folder, dataset_id))
            lists = list(_lists_without_row(connection, folder, dataset_id))
    for fault in faults:
        path = list_path(folder, fault.record.id)
        repair = lambda fault=fault: _shorten(inspection, folder, fault)  # noqa: E731
        inspection.add(path, fault.text, _BROKEN, kind="upload lists", repair=repair)
    for path, stored in lists:
        text = "is the list of an upload transaction that the catalog does not have"
        if stored is None:
            inspection.add(path, f"{text}, and cannot be read", _UNREADABLE, kind="upload lists")
        else:
            repair = lambda stored=stored: _insert(inspection, dataset_id, stored)  # noqa: E731
            inspection.add(path, text, _NO_ROW, kind="upload lists", repair=repair)
    damaged = {fault.record.id for fault in faults}
    for row in rows:
        if row.list_bytes and row.record.id not in damaged:
            _check_contents(inspection, folder, row.record, row.list_bytes)


def _list_faults(connection: Any, folder: Path, dataset_id: str) -> Iterator[_ListFault]:
    for record, end, _ in upload_rows.list_uploads(connection, dataset_id):
        if record.state not in _READ or not end:
            continue
        path = list_path(folder, record.id)
        stored = intact_list(path, end)
        if stored is not None and stored.upload_id != record.id:
            stored = None
        if not path.exists():
            yield _ListFault(record, f"is missing, and the upload transaction {record.id} needs it", None)
        elif stored is None or stored.list_bytes != end or stored.n_files != record.n_files:
            intact = 0 if stored is None else stored.n_files
            yield _ListFault(
                record, f"is damaged: {intact:,} of its {counted(record.n_files, 'files')} can be read", stored
            )


def _lists_without_row(connection: Any, folder: Path, dataset_id: str) -> Iterator[tuple[Path, UploadList | None]]:
    known = {row.record.id for row in upload_rows.list_uploads(connection, dataset_id)}
    known |= {upload_id for upload_id, _ in discarded_lists(folder)}  # vacuum removes their lists
    for upload_id, path in stored_lists(folder):
        if upload_id not in known:
            stored = intact_list(path)
            yield path, stored if stored is not None and stored.upload_id == upload_id else None


def _check_contents(inspection: Inspection, folder: Path, record: UploadRecord, end: int) -> None:
    path = list_path(folder, record.id)
    try:
        for file in listed_files(path, end):
            inspection.step()
            blob = blob_path(folder, file.digest, file.name)
            if not blob.exists():
                fault = f"is missing, and the upload transaction {record.id} needs it for {file.name!r}"
                inspection.add(blob, fault, _AGAIN, kind="missing uploaded files")
    except WorkspaceError:  # discarded or processed meanwhile
        if path.exists():
            raise


def _shorten(inspection: Inspection, folder: Path, fault: _ListFault) -> None:
    """Set the counts of a transaction to those of the intact beginning of its list; without one it is empty again."""
    upload_id = fault.record.id
    with inspection.context.catalog.write() as connection:
        if upload_rows.find_upload(connection, fault.record.dataset_id, upload_id).record.state not in _READ:
            raise WorkspaceError("it is processed now")
        if fault.stored is not None and fault.stored.n_files:
            upload_rows.set_contents(connection, fault.stored)
            return
        list_path(folder, upload_id).unlink(missing_ok=True)
        upload_rows.update_upload(connection, upload_id, n_files=0, n_bytes=0, list_bytes=0)


def _insert(inspection: Inspection, dataset_id: str, stored: UploadList) -> None:
    with inspection.context.catalog.write() as connection:
        if upload_rows.has_upload(connection, stored.upload_id):
            raise WorkspaceError(f"another transaction has the id {stored.upload_id}")
        upload_rows.insert_from_list(connection, dataset_id, stored, changed_at=now())
        if not task_rows.is_busy(connection, dataset_id):
            upload_rows.reopen_draft(connection, dataset_id)
