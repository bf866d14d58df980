"""Start of tasks that change a dataset: one at a time, if the dataset's status allows it."""

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from framedex.core.naming import copy_name
from framedex.errors import Conflict, Error, NotIndexed
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import DECISIONS, read_decisions
from framedex.operations.context import Context
from framedex.operations.names import Operation
from framedex.records import DatasetRecord, DatasetStatus, EmbeddingConfig, TaskStatus, TaskType
from framedex.render.progress import progress_bar
from framedex.storage import datasets, task_rows
from framedex.storage.generation import Generation
from framedex.storage.leases import unleased
from framedex.tasks import Commit, Job, Task, TaskProgress, start_task

SETTLED = (DatasetStatus.READY, DatasetStatus.PARTIAL_INDEX)


def start(
    context: Context,
    dataset_id: str,
    task_type: TaskType,
    job: Callable[[JobContext, TaskProgress], Commit],
    *,
    operation: Operation,
    allowed: Collection[DatasetStatus] = SETTLED,
    status_shown: DatasetStatus = DatasetStatus.READ_ONLY,
    thresholds: Sequence[float] | None = None,
    config: dict[str, Any] | None = None,
    task_id: str | None = None,
    in_transaction: Callable[[Any, Generation | None], None] = lambda _connection, _head: None,
) -> Task:
    """Start a task on a dataset and return it; readers see the old state until the task commits.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        task_type: of the task.
        job: returns the commit, given the dataset's state at the start.
        operation: name of the operation for messages.
        allowed: statuses in which the task may start.
        status_shown: the dataset's status while the job runs.
        thresholds: cluster thresholds that replace those of the dataset.
        config: the task's arguments as JSON, for a retry by another process; see :mod:`framedex.api.retry`.
        task_id: the id of the task; None for a new one.
        in_transaction: called with the transaction that starts the task and with the head; raises to prevent the start.

    Raises:
        Conflict: another task is in progress, the status does not allow it, or a task has the id.
        NotIndexed: the dataset was never indexed.
        ReadOnly: the workspace was opened for reading.
    """
    context.runner.settle()
    with unleased(context.catalog, dataset_id, operation) as connection:
        record = check_available(connection, dataset_id, operation, allowed)
        in_transaction(connection, datasets.head(connection, dataset_id))
        datasets.update_dataset(connection, dataset_id, status=DatasetStatus.READ_ONLY)
        task_id = context.runner.insert(
            connection, record, task_type, config, created_by=context.settings.user, task_id=task_id
        )

    run = with_job_context(context, dataset_id, job, status_shown=status_shown, thresholds=thresholds)
    return start_task(context.runner, task_id, dataset_id, run)


def with_job_context(
    context: Context,
    dataset_id: str,
    job: Callable[[JobContext, TaskProgress], Commit],
    *,
    status_shown: DatasetStatus = DatasetStatus.READ_ONLY,
    thresholds: Sequence[float] | None = None,
) -> Job:
    """Return a job for the runner that calls *job* with the dataset's context; arguments as for :func:`start`."""

    def run(progress: TaskProgress) -> Commit:
        if status_shown is not DatasetStatus.READ_ONLY:
            with context.catalog.write() as connection:
                datasets.update_dataset(connection, dataset_id, status=status_shown, progress=0)
        return job(load_job_context(context, dataset_id, thresholds), progress)

    return run


def check_available(
    connection: Any, dataset_id: str, operation: str, allowed: Collection[DatasetStatus] = SETTLED
) -> DatasetRecord:
    """Return the record of a dataset that an operation may change now; tasks of dead processes are ignored.

    Raises:
        Conflict: a task is in progress, or the status does not allow the operation.
        NotIndexed: the dataset was never indexed.
    """
    task_rows.fail_interrupted(connection)
    record = datasets.find_dataset(connection, dataset_id)
    busy = task_rows.running(connection, dataset_id)
    if busy is not None:
        raise Conflict(f"Operation '{operation}' is blocked while {busy} task is running")
    if record.status_new not in allowed:
        statuses = " or ".join(allowed)
        message = f"Operation '{operation}' needs the dataset status {statuses}; it is {record.status_new}"
        if statuses == DatasetStatus.PARTIAL_INDEX and record.status_new is DatasetStatus.READY:
            message += ": all of it is indexed, so there is nothing to do, unless other thresholds are given"
        raise Conflict(message)
    if datasets.embedding_config(connection, dataset_id) is None:
        raise NotIndexed("Dataset has no embedding config")
    return record


def load_job_context(context: Context, dataset_id: str, thresholds: Sequence[float] | None = None) -> JobContext:
    """Return the context of a job on a dataset.

    Raises:
        NotIndexed: the dataset has no head or no embedding config.
    """
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
        config = datasets.embedding_config(connection, dataset_id)
        roots = datasets.get_roots(connection, dataset_id)
    if head is None or config is None:
        raise NotIndexed("Dataset has no embedding config")
    if thresholds is not None:
        config = EmbeddingConfig.model_validate(config.model_dump() | {"thresholds": tuple(thresholds)})
    table = context.layout.media(dataset_id)
    cannot_link = _cannot_link(table, head)
    thumbnails = context.layout.thumbnails(dataset_id)
    return JobContext(
        dataset_id, head, config, tuple(roots), table, thumbnails, cannot_link, context.settings, context.columns
    )


def _cannot_link(table: Path, head: Generation) -> list[list[str]]:
    return [decision.media_ids for decision in read_decisions(table, head.tables)]


def following_job_context(context: Context, job: JobContext, head: Generation) -> JobContext:
    """Return the context of a job that begins with the state after another one.

    Args:
        context: of the user who starts it.
        job: the context of the other one.
        head: the generation that the other one made.
    """
    has_decided = head.tables.get(DECISIONS) != job.head.tables.get(DECISIONS)
    return replace(
        job,
        head=head,
        config=head.embedding_config or job.config,
        cannot_link=_cannot_link(job.table, head) if has_decided else job.cannot_link,
        settings=context.settings,
        columns=context.columns,
    )


def wait_for(task: Task, title: str) -> None:
    """Wait until a task is done, showing its progress; an exception or interrupt aborts the task.

    Raises:
        Error: the task failed or was aborted.
    """
    with progress_bar(title) as progress:
        task.wait(progress=progress)


@contextmanager
def delete_if_stopped(context: Context, dataset_id: str, task_id: str) -> Iterator[None]:
    """Delete a dataset in creation if its task fails or is stopped within the block.

    The caller has no dataset object to retry the task with, so only the task's record is kept. A dataset that was
    committed stays, even if the block raises afterwards. The dataset of a task that a planned stop interrupted stays,
    too, for a retry by the next process.
    """
    try:
        yield
    except BaseException:
        if (run := context.runner.run_of(task_id)) is not None:
            run.stop()
        record = Task(context.runner, task_id).record
        if record.status is not TaskStatus.COMPLETED and record.status_message != task_rows.INTERRUPTED:
            with suppress(Error):
                delete_dataset(context, dataset_id)
        raise


def delete_dataset(context: Context, name_or_id: str) -> None:
    """Delete a dataset and all its files.

    Raises:
        NotFound: there is no such dataset.
        Conflict: a task is in progress on it.
    """
    with context.catalog.reserve_freed():
        with context.catalog.read() as connection:
            record = datasets.find_dataset(connection, name_or_id, namespace=context.namespace)
        with unleased(context.catalog, record.id, "delete_dataset") as connection:
            datasets.find_dataset(connection, record.id)
            if task_rows.is_busy(connection, record.id):
                raise Conflict(f"dataset {record.display_name!r} cannot be deleted while a task of it is under way")
            datasets.remove_dataset(connection, record.id)
        layout = context.layout
        for folder in (layout.dataset(record.id), *layout.cached(record.id), *layout.spilled(record.id)):
            shutil.rmtree(folder, ignore_errors=True)


def insert_copy(connection: Any, context: Context, source: DatasetRecord, word: str) -> str:
    """Insert a dataset that becomes a copy of another one, in its namespace, for the acting user; return its id.

    Args:
        connection: of a transaction that changes the catalog.
        context: the open workspace.
        source: the other dataset.
        word: says in the name how the copy is made.
    """
    namespace = datasets.namespace_of(connection, source.id)
    taken = {each.display_name for each in datasets.list_datasets(connection, namespace)}
    return datasets.insert_dataset(
        connection,
        copy_name(source.display_name, word, taken),
        owned_by=context.settings.user,
        namespace=namespace,
        source_dataset_id=source.id,
        creator_id=context.creator_id,
    )
