"""Starting what changes a dataset: as a task, one at a time, when the dataset's status allows it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from framedex.errors import Conflict, NotIndexed
from framedex.jobs.context import JobContext
from framedex.jobs.edits.decisions import decide, read_decisions, withdraw
from framedex.operations.context import Context
from framedex.records import DatasetRecord, DatasetStatus, DuplicateDecision, EmbeddingConfig, Generation, TaskType
from framedex.render.progress import progress_bar
from framedex.storage import datasets, task_rows
from framedex.storage.failures import own_errors
from framedex.tasks import Commit, Job, Task, TaskProgress

SETTLED = (DatasetStatus.READY, DatasetStatus.PARTIAL_INDEX)


def start(
    context: Context,
    dataset_id: str,
    task_type: TaskType,
    job: Callable[[JobContext, TaskProgress], Commit],
    *,
    operation: str,
    allowed: Collection[DatasetStatus] = SETTLED,
    shows: DatasetStatus = DatasetStatus.READ_ONLY,
    thresholds: Sequence[float] | None = None,
    config: dict[str, Any] | None = None,
    also: Callable[[Any, Generation | None], None] = lambda _connection, _head: None,
) -> Task:
    """Start a task on a dataset and return it; readers go on to see the state before.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        task_type: of the task.
        job: given what the dataset is when it starts, returns the commit.
        operation: its name in messages.
        allowed: the statuses in which it may start.
        shows: the dataset's status while the job runs.
        thresholds: cluster thresholds that replace those of the dataset.
        config: what is to be done, as JSON, so that others can run the task again; see :mod:`framedex.api.retry`.
        also: given the transaction that starts the task, and the head, does what belongs to it; raises to prevent it.

    Raises:
        Conflict: another task is under way, the status does not allow it, or the dataset was never indexed.
        ReadOnly: the workspace was opened for reading.
    """
    context.runner.settle()
    with context.catalog.write() as connection:
        record = check_free(connection, dataset_id, operation, allowed)
        also(connection, datasets.head(connection, dataset_id))
        datasets.update_dataset(connection, dataset_id, status=DatasetStatus.READ_ONLY)
        task_id = context.runner.insert(connection, record, task_type, config)

    run = with_job_context(context, dataset_id, job, shows=shows, thresholds=thresholds)
    return Task.start(context.runner, task_id, dataset_id, run)


def with_job_context(
    context: Context,
    dataset_id: str,
    job: Callable[[JobContext, TaskProgress], Commit],
    *,
    shows: DatasetStatus = DatasetStatus.READ_ONLY,
    thresholds: Sequence[float] | None = None,
) -> Job:
    """Return a job on a dataset as the runner takes it; see :func:`start` for the arguments."""

    def run(progress: TaskProgress) -> Commit:
        if shows is not DatasetStatus.READ_ONLY:
            with context.catalog.write() as connection:
                datasets.update_dataset(connection, dataset_id, status=shows, progress=0)
        return job(load_job_context(context, dataset_id, thresholds), progress)

    return run


def check_free(
    connection: Any, dataset_id: str, operation: str, allowed: Collection[DatasetStatus] = SETTLED
) -> DatasetRecord:
    """Return the record of a dataset that an operation may change now; tasks of processes that died do not count.

    Raises:
        Conflict: it may not; the message says what is in the way.
    """
    task_rows.fail_interrupted(connection)
    record = datasets.find_dataset(connection, dataset_id)
    busy = task_rows.running(connection, dataset_id)
    if busy is not None:
        raise Conflict(f"Operation '{operation}' is blocked while {busy} task is running")
    if record.status_new not in allowed:
        wanted = " or ".join(allowed)
        raise Conflict(f"Operation '{operation}' needs the dataset status {wanted}; it is {record.status_new}")
    if datasets.embedding_config(connection, dataset_id) is None:
        raise NotIndexed("Dataset has no embedding config")
    return record


def load_job_context(context: Context, dataset_id: str, thresholds: Sequence[float] | None = None) -> JobContext:
    """Return what a job on a dataset starts from.

    Raises:
        Conflict: the dataset has nothing to start from.
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
    cannot_link = [decision.media_ids for decision in read_decisions(table, head.tables)]
    thumbnails = context.layout.thumbnails(dataset_id)
    return JobContext(dataset_id, head, config, tuple(roots), table, thumbnails, cannot_link, context.settings)


def new_job_context(context: Context, dataset_id: str, config: EmbeddingConfig) -> JobContext:
    """Return what the job that makes a dataset starts from: there is nothing of it yet."""
    layout = context.layout
    return JobContext.of_nothing(
        dataset_id, config, layout.media(dataset_id), layout.thumbnails(dataset_id), context.settings
    )


def wait_for(task: Task, title: str) -> None:
    """Wait until a task is done, showing how far it is; what stops the waiting aborts the task.

    Raises:
        Error: the task failed or was aborted.
    """
    with progress_bar(title) as progress:
        task.wait(progress=progress)


def decide_not_duplicates(context: Context, dataset_id: str, media_ids: Sequence[str]) -> DuplicateDecision:
    """Store that no two of some media are duplicates, with the groups that follow, as one generation.

    Raises:
        InvalidInput: these are not two or more different ids.
        NotFound: one is not in the dataset.
        Conflict: a task is under way.
    """
    with editing(context, dataset_id, "not_duplicates") as edit:
        decision, *written = decide(edit.base.table, edit.base.head, media_ids, context.settings.user)
        edit.commit(*written)
    return decision


def withdraw_decision(context: Context, dataset_id: str, decision_id: str) -> None:
    """Take a decision back, with the groups that follow, as one generation.

    Raises:
        NotFound: there is no such decision.
        Conflict: a task is under way.
    """
    with editing(context, dataset_id, "withdraw_decision") as edit:
        edit.commit(*withdraw(edit.base.table, edit.base.head, decision_id))


def duplicate_decisions(context: Context, dataset_id: str) -> list[DuplicateDecision]:
    """Return the decisions about duplicates, oldest first."""
    with context.catalog.read() as connection:
        head = datasets.head(connection, dataset_id)
    return [] if head is None else read_decisions(context.layout.media(dataset_id), head.tables)


@dataclass(frozen=True)
class Edit:
    """A short edit under way.

    Attributes:
        base: what it starts from.
    """

    base: JobContext
    _connection: Any
    _status: DatasetStatus

    def commit(self, versions: dict[str, int], summary: dict[str, Any]) -> None:
        """Make the tables that were written the head; the status stays.

        Args:
            versions: of all tables of the new generation, by name.
            summary: what is stored with it.
        """
        datasets.commit_generation(
            self._connection,
            self.base.dataset_id,
            tables=versions,
            n_images=self.base.head.n_images,
            status=self._status,
            config=self.base.config,
            summary=summary,
        )


@contextmanager
def editing(context: Context, dataset_id: str, operation: str) -> Iterator[Edit]:
    """Yield a short edit; nothing else changes the dataset until the block ends.

    It holds the catalog's write lock while it writes tables: two edits, or an edit and a task, would else write the
    same table at a time.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        operation: its name in messages.

    Raises:
        Conflict: a task is under way, or the dataset's status does not allow it.
        NotIndexed: the dataset was never indexed.
        ReadOnly: the workspace was opened for reading.
    """
    context.runner.settle()
    with context.catalog.write() as connection, own_errors(f"do {operation!r} on dataset {dataset_id}"):
        record = check_free(connection, dataset_id, operation)
        yield Edit(load_job_context(context, dataset_id), connection, record.status_new)
    if context.runner.after_commit is not None:
        context.runner.after_commit(dataset_id)
