"""Short edits: changes that are committed at once, under the catalog's write lock, without a task."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from framedex.jobs.context import JobContext
from framedex.operations.context import Context
from framedex.operations.starting import check_available, load_job_context
from framedex.records import DatasetStatus
from framedex.storage import datasets
from framedex.storage.failures import own_errors


@dataclass(frozen=True)
class Edit:
    """A short edit in progress.

    Attributes:
        job: the dataset.
    """

    job: JobContext
    _connection: Any
    _status: DatasetStatus

    def commit(self, versions: dict[str, int], summary: dict[str, Any]) -> None:
        """Commit the written tables as the head; the dataset's status stays the same.

        Args:
            versions: of all tables of the new generation, by name.
            summary: of the new generation.
        """
        datasets.commit_generation(
            self._connection,
            self.job.dataset_id,
            tables=versions,
            n_images=self.job.head.n_images,
            status=self._status,
            config=self.job.config,
            summary=summary,
        )


@contextmanager
def editing(context: Context, dataset_id: str, operation: str) -> Iterator[Edit]:
    """Yield a short edit; the dataset cannot be changed otherwise until the block ends.

    The edit holds the catalog's write lock while it writes tables. Otherwise two edits, or an edit and a task, could
    write the same table at the same time.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        operation: name of the operation for messages.

    Raises:
        Conflict: a task is in progress, or the dataset's status does not allow the edit.
        NotIndexed: the dataset was never indexed.
        ReadOnly: the workspace was opened for reading.
    """
    context.runner.settle()
    with context.catalog.write() as connection, own_errors(f"do {operation!r} on dataset {dataset_id}"):
        record = check_available(connection, dataset_id, operation)
        yield Edit(load_job_context(context, dataset_id), connection, record.status_new)
    if context.runner.after_commit is not None:
        context.runner.after_commit(dataset_id)
