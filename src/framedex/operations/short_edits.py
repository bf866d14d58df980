"""Short edits: they change a dataset at once, under the write lock of the catalog, without a task."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from framedex.jobs.context import JobContext
from framedex.operations.context import Context
from framedex.operations.starting import check_free, load_job_context
from framedex.records import DatasetStatus
from framedex.storage import datasets
from framedex.storage.failures import own_errors


@dataclass(frozen=True)
class Edit:
    """A short edit under way.

    Attributes:
        job: what it starts from.
    """

    job: JobContext
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
            self.job.dataset_id,
            tables=versions,
            n_images=self.job.head.n_images,
            status=self._status,
            config=self.job.config,
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
