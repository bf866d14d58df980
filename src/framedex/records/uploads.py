"""Records of upload transactions."""

from datetime import datetime
from enum import StrEnum

from framedex.records.base import Record


class UploadState(StrEnum):
    """State of an upload transaction: only an open one takes files; the others follow the task that processes it."""

    OPEN = "open"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"


class UploadRecord(Record):
    """An upload transaction of a dataset.

    ``n_files`` and ``n_bytes`` count the files as they were received, so a name that was sent twice counts twice.
    ``changed_at`` is the time of the last call that changed the transaction. ``task_id`` is the task that processes it,
    and None while it is open.
    """

    id: int
    dataset_id: str
    created_by: str
    created_at: datetime
    changed_at: datetime
    state: UploadState
    n_files: int
    n_bytes: int
    task_id: str | None
