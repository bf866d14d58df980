"""Upload transactions: files that reach a dataset in many calls, and are processed together at the end.

Calls may run at the same time in any number of threads and processes. The content of a call is written without a lock;
then one transaction of the catalog makes all its files part of the transaction, or none.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framedex.encoders import Encoder
from framedex.errors import Conflict, InvalidInput, NotFound, WorkspaceError
from framedex.jobs.add import add
from framedex.jobs.ingest.content import PRECOMPUTED, Content, encoder_for_images, open_stored_upload
from framedex.jobs.ingest.received import collect_files, receive_files
from framedex.jobs.ingest.uploads import UploadSource
from framedex.media.frame_sampling import Sampling
from framedex.operations.additions import check_allowed
from framedex.operations.context import Context
from framedex.operations.creation import creation_config, creation_job, new_embedding_config
from framedex.operations.names import Operation
from framedex.operations.starting import SETTLED, with_job_context
from framedex.records import DatasetRecord, DatasetStatus, EmbeddingConfig, TaskType, UploadRecord, UploadState
from framedex.storage import datasets, task_rows, upload_rows
from framedex.storage.blobs import remove_upload
from framedex.storage.leases import unleased
from framedex.storage.upload_lists import append_files, discarded_lists, list_path, mark_discarded
from framedex.storage.upload_rows import UploadRow
from framedex.tasks import Job, Task, start_task

MAX_OPEN = 20
"""Open transactions that a dataset may have at a time."""
_TAKING_FILES = (DatasetStatus.DRAFT, *SETTLED)


@dataclass(frozen=True)
class CreationOptions:
    """Options of the creation of a dataset from a draft; arguments as of :meth:`framedex.Workspace.create_dataset`."""

    encoder: str | Encoder = "auto"
    thresholds: Sequence[float] | None = None
    frames_per_second: float = 1.0
    scene_changes: bool = False
    display_range: Sequence[float] | None = None

    @property
    def are_default(self) -> bool:
        """True if no option was given."""
        given = (self.encoder, self.frames_per_second, self.scene_changes)
        return self.thresholds is None and self.display_range is None and given == ("auto", 1.0, False)


def open_upload(context: Context, dataset_id: str) -> int:
    """Open a transaction and return its id; see :meth:`framedex.Dataset.open_upload`."""
    with context.catalog.write() as connection:
        record = _check_status(connection, dataset_id, "open_upload")
        config = datasets.embedding_config(connection, dataset_id)
        if record.status_new is not DatasetStatus.DRAFT:
            check_allowed(context)
        if config is not None and config.encoder == PRECOMPUTED:
            raise InvalidInput(
                f"dataset {record.display_name!r} brought its embeddings; add a table with uri and embedding, not files"
            )
        if upload_rows.count_open(connection, dataset_id) >= MAX_OPEN:
            raise Conflict(
                f"dataset {record.display_name!r} has {MAX_OPEN} open transactions; process or discard one of them"
            )
        return upload_rows.insert_upload(connection, dataset_id, created_by=context.settings.user)


def get_upload(context: Context, dataset_id: str, upload_id: int) -> UploadRecord:
    """Return a transaction of a dataset.

    Raises:
        NotFound: the dataset has no such transaction.
    """
    with context.catalog.read() as connection:
        return upload_rows.find_upload(connection, dataset_id, upload_id).record


def get_uploads(context: Context, dataset_id: str) -> list[UploadRecord]:
    """Return the transactions of a dataset, oldest first."""
    with context.catalog.read() as connection:
        return [each.record for each in upload_rows.list_uploads(connection, dataset_id)]


def add_files(context: Context, dataset_id: str, upload_id: int, files: Any) -> UploadRecord:
    """Add the files of one call to a transaction; see :meth:`framedex.UploadTransaction.add`."""
    context.catalog.check_writable()
    record = get_upload(context, dataset_id, upload_id)
    _check_open(record)
    _check_limits(context, record, record.n_files + 1, record.n_bytes)  # what cannot fit is not received first
    dataset = context.layout.dataset(dataset_id)
    received = receive_files(files, dataset, context.settings)
    try:
        with context.catalog.write() as connection:
            record, end, _ = upload_rows.find_upload(connection, dataset_id, upload_id)
            _check_open(record)
            n_files, n_bytes = record.n_files + len(received.files), record.n_bytes + received.size
            _check_limits(context, record, n_files, n_bytes)
            length = append_files(list_path(dataset, upload_id), record, received.files, end=end)
            upload_rows.update_upload(connection, upload_id, n_files=n_files, n_bytes=n_bytes, list_bytes=length)
            return upload_rows.find_upload(connection, dataset_id, upload_id).record
    finally:
        received.release()


def discard_upload(context: Context, dataset_id: str, upload_id: int) -> None:
    """Discard a transaction; see :meth:`framedex.UploadTransaction.discard`."""
    with context.catalog.write() as connection:
        task_rows.fail_interrupted(connection)
        row = upload_rows.find_upload(connection, dataset_id, upload_id)
        if row.record.state in (UploadState.PROCESSING, UploadState.DONE):
            raise Conflict(f"Transaction {upload_id} cannot be discarded: it is {row.record.state}")
        _remove(connection, context.layout.dataset(dataset_id), row)
    _remove_files(context, [row])


def process_upload(
    context: Context, dataset_id: str, upload_id: int, options: CreationOptions, *, auto_reindex: bool
) -> Task:
    """Start the task that processes a transaction; see :meth:`framedex.UploadTransaction.process`."""
    context.catalog.check_writable()
    context.runner.settle()
    dataset = context.layout.dataset(dataset_id)
    while True:  # until no call adds files between the collection and the start
        with context.catalog.read() as connection:
            record, end, _ = upload_rows.find_upload(connection, dataset_id, upload_id)
            config = datasets.embedding_config(connection, dataset_id)
        _check_open(record)
        if not record.n_files:
            raise InvalidInput("The transaction holds no files")
        with context.catalog.write() as connection:  # what cannot start is not collected first
            _check_status(connection, dataset_id, "process")
        source = collect_files(list_path(dataset, upload_id), end, dataset)
        try:
            request = _request(context, dataset_id, source, config, options, auto_reindex=auto_reindex)
            if (task := _start(context, record, end, request, source.upload_id)) is not None:
                return task
        finally:
            _remove_unread(context, record, source.upload_id)


def _remove_unread(context: Context, upload: UploadRecord, collected: str) -> None:
    """Remove the collected files of a transaction, unless its task reads them."""
    with suppress(NotFound), context.catalog.read() as connection:
        if upload_rows.find_upload(connection, upload.dataset_id, upload.id).collected == collected:
            return
    remove_upload(context.layout.dataset(upload.dataset_id), collected)


@dataclass(frozen=True)
class _Request:
    """A task to start.

    Attributes:
        creates: whether it creates the dataset.
        task_type: of the task.
        config: its config for a retry; None if only this process can run it.
        job: its work.
    """

    creates: bool
    task_type: TaskType
    config: dict[str, Any] | None
    job: Job


def _request(
    context: Context,
    dataset_id: str,
    source: UploadSource,
    config: EmbeddingConfig | None,
    options: CreationOptions,
    *,
    auto_reindex: bool,
) -> _Request:
    if config is None:
        content = open_stored_upload(source, dataset_id, options.encoder, context.settings)
        sampling = Sampling(options.frames_per_second, options.scene_changes)
        embedding = new_embedding_config(content, options.thresholds, sampling, options.display_range)
        job = creation_job(context, dataset_id, content, embedding)
        return _Request(True, TaskType.DATASET_CREATION, creation_config(content, embedding), job)
    check_allowed(context)
    if not options.are_default:
        raise InvalidInput("encoder, thresholds, sampling and range are those of the dataset; they are for drafts only")
    encoder_for_images(config, context.settings)
    content = open_stored_upload(source, dataset_id, config.encoder, context.settings)
    task_config = {"operation": Operation.ADD_MEDIA, "content": content.config, "auto_reindex": auto_reindex}
    return _Request(
        False, TaskType.MEDIA_ADDITION, task_config, _addition_job(context, dataset_id, content, auto_reindex)
    )


def _addition_job(context: Context, dataset_id: str, content: Content, auto_reindex: bool) -> Job:
    return with_job_context(
        context, dataset_id, lambda job, progress: add(job, content, auto_reindex=auto_reindex, progress=progress)
    )


def _start(context: Context, upload: UploadRecord, end: int, request: _Request, collected: str) -> Task | None:
    """Start the task; return None if files were added meanwhile, or another transaction created the dataset."""
    with unleased(context.catalog, upload.dataset_id, "process") as connection:
        record, length, _ = upload_rows.find_upload(connection, upload.dataset_id, upload.id)
        _check_open(record)
        dataset = _check_status(connection, upload.dataset_id, "process")
        if length != end or request.creates != (dataset.status_new is DatasetStatus.DRAFT):
            return None
        status = DatasetStatus.INDEXING if request.creates else DatasetStatus.READ_ONLY
        values: dict[str, Any] = {"progress": 0} if request.creates else {}
        datasets.update_dataset(connection, upload.dataset_id, status=status, **values)
        task_id = context.runner.insert(
            connection, dataset, request.task_type, request.config, created_by=context.settings.user
        )
        upload_rows.update_upload(connection, upload.id, task_id=task_id, collected=collected)
    return start_task(context.runner, task_id, upload.dataset_id, request.job)


def _check_status(connection: Any, dataset_id: str, operation: str) -> DatasetRecord:
    """Return the record of a dataset that takes files now; tasks of dead processes are ignored.

    Raises:
        Conflict: a task is in progress, or the status does not allow it.
    """
    task_rows.fail_interrupted(connection)
    record = datasets.find_dataset(connection, dataset_id)
    if (busy := task_rows.running(connection, dataset_id)) is not None:
        raise Conflict(f"Operation '{operation}' is blocked while {busy} task is running")
    if record.status_new not in _TAKING_FILES:
        statuses = f"{', '.join(_TAKING_FILES[:-1])} or {_TAKING_FILES[-1]}"
        raise Conflict(f"Operation '{operation}' needs the dataset status {statuses}; it is {record.status_new}")
    return record


def _check_open(record: UploadRecord) -> None:
    """Check that a transaction is open.

    Raises:
        Conflict: it is processed, or was processed.
    """
    match record.state:
        case UploadState.OPEN:
            return
        case UploadState.PROCESSING:
            raise Conflict(f"Transaction {record.id} is already being processed")
        case UploadState.DONE:
            raise Conflict(f"Transaction {record.id} is already processed; open another one")
        case UploadState.FAILED:
            raise Conflict(
                f"Transaction {record.id} is already processed, and its task {record.task_id} did not end well: retry "
                "the task, or discard the transaction and open another one"
            )


def _check_limits(context: Context, record: UploadRecord, n_files: int, n_bytes: int) -> None:
    """Check the numbers of files and bytes of a transaction.

    Raises:
        InvalidInput: there are too many.
    """
    settings = context.settings
    for number, limit, what in (
        (n_files, settings.max_transaction_files, "files (FRAMEDEX_MAX_TRANSACTION_FILES)"),
        (n_bytes, settings.max_transaction_bytes, "bytes (FRAMEDEX_MAX_TRANSACTION_BYTES)"),
    ):
        if number > limit:
            raise InvalidInput(f"Transaction {record.id} takes up to {limit:,} {what}; process it and open another one")


def remove_expired(context: Context) -> list[str]:
    """Remove the transactions that nobody changed for seven days, and return the ids of their datasets.

    Their contents stay until the unused uploads of the datasets are removed. A draft stays; a dataset whose creation
    failed becomes a draft again.

    Raises:
        WorkspaceError: the catalog cannot be written.
    """
    removed = list[UploadRow]()
    with context.catalog.read() as connection:
        expired = upload_rows.expired_uploads(connection)
        processed = upload_rows.processed_uploads(connection)
    if expired:
        with context.catalog.write() as connection:
            for upload_id, dataset_id in upload_rows.expired_uploads(connection):
                row = upload_rows.find_upload(connection, dataset_id, upload_id)
                _remove(connection, context.layout.dataset(dataset_id), row)
                removed.append(row)
    _remove_files(context, removed)
    for dataset_id in {dataset_id for _, dataset_id in processed}:
        remove_processed(context, dataset_id)
    return [row.record.dataset_id for row in removed]


def remove_processed(context: Context, dataset_id: str) -> None:
    """Remove the lists of the transactions of a dataset whose files are in the dataset now.

    Raises:
        WorkspaceError: the catalog cannot be written.
    """
    with context.catalog.read() as connection:
        if not upload_rows.processed_uploads(connection, dataset_id):
            return
    dataset = context.layout.dataset(dataset_id)
    with context.catalog.write() as connection:
        for upload_id, _ in upload_rows.processed_uploads(connection, dataset_id):
            _remove_lists(dataset, upload_rows.find_upload(connection, dataset_id, upload_id))
            upload_rows.set_list_bytes(connection, upload_id, 0)


def _remove(connection: Any, dataset: Path, row: UploadRow) -> None:
    """Remove the row of a transaction; :func:`_remove_files` removes its files once that is committed."""
    path = list_path(dataset, row.record.id)
    if path.exists():
        mark_discarded(path)
    upload_rows.remove_upload_row(connection, row)


def _remove_files(context: Context, removed: Sequence[UploadRow]) -> None:
    """Remove the lists of transactions whose rows were removed, and the uploads that their tasks would read."""
    for row in removed:
        if row.collected is not None:
            remove_upload(context.layout.dataset(row.record.dataset_id), row.collected)
    for dataset_id in {row.record.dataset_id for row in removed}:
        remove_discarded(context, dataset_id)


def remove_discarded(context: Context, dataset_id: str) -> None:
    """Remove the lists of discarded transactions of a dataset.

    A process that was killed before the commit leaves a mark beside a list that is still needed, and one that was
    killed after it a list that nothing needs. What their tasks would have read is removed with the other uploads that
    no task needs.

    Raises:
        WorkspaceError: a file cannot be removed, or the catalog is locked for too long.
    """
    dataset = context.layout.dataset(dataset_id)
    if not discarded_lists(dataset):
        return
    with context.catalog.write() as connection:  # no other process is between its mark and its commit now
        for upload_id, mark in discarded_lists(dataset):
            if not upload_rows.has_upload(connection, upload_id):
                _remove_file(list_path(dataset, upload_id))
            _remove_file(mark)


def _remove_lists(dataset: Path, row: UploadRow) -> None:
    """Remove the list of a transaction, and the upload that its task reads."""
    _remove_file(list_path(dataset, row.record.id))
    if row.collected is not None:
        remove_upload(dataset, row.collected)


def _remove_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot remove {path}: {error.strerror or error}") from error
    with suppress(OSError):  # it has lists of others
        path.parent.rmdir()
