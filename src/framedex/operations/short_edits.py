"""Short edits: changes that are committed at once, under the lease of their dataset, without a task."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from framedex.images.thumbnails import remove_thumbnails
from framedex.jobs.commits import generation_commit
from framedex.jobs.context import JobContext
from framedex.jobs.edits.journal import NewStep, prune_journal
from framedex.jobs.restore import with_counters
from framedex.operations.context import Context
from framedex.operations.starting import check_available, load_job_context
from framedex.storage import datasets, tables
from framedex.storage.failures import own_errors
from framedex.storage.generation import Generation, Summary
from framedex.storage.journal_files import remove_journal_files
from framedex.storage.leases import Lease, leased
from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import edited_table
from framedex.tasks import Commit


@dataclass(frozen=True)
class CommittedEdit:
    """A short edit that was committed.

    Attributes:
        generation: the id of the generation that it made.
        step: its number in the journal; None if the journal has no step of it.
        n_media: the number of media that it changed, as the journal has it.
    """

    generation: str
    step: int | None
    n_media: int


_committed: ContextVar[list[CommittedEdit] | None] = ContextVar("committed edits", default=None)


@contextmanager
def committed_edits() -> Iterator[list[CommittedEdit]]:
    """Yield a list that receives the short edits which the block commits on its thread."""
    edits: list[CommittedEdit] = []
    token = _committed.set(edits)
    try:
        yield edits
    finally:
        _committed.reset(token)


@dataclass(frozen=True)
class Edit:
    """A short edit in progress.

    Attributes:
        job: the dataset.
    """

    job: JobContext
    _lease: Lease

    def media(self, context: Context) -> Media:
        """Return the media at the head, in a table at its newest version."""
        job = self.job
        version = tables.roll_back(job.table, job.head.tables[MEDIA])
        assert version is not None, "a head has a media table"
        table = edited_table(job.table, version)
        return Media(job.dataset_id, job.head, table, context.sql, job.roots, columns=context.columns)

    def commit(
        self,
        versions: dict[str, int],
        summary: Summary,
        *,
        step: NewStep | None = None,
        also: Callable[[Any], None] = lambda _connection: None,
    ) -> None:
        """Commit the written tables as the head.

        Args:
            versions: of all tables of the new generation, by name.
            summary: of the new generation.
            step: what the journal says of the edit.
            also: called in the transaction of the commit.
        """
        self._commit(
            generation_commit(
                self.job.dataset_id,
                tables=versions,
                n_images=self.job.head.n_images,
                config=self.job.config,
                summary=summary,
            ),
            step,
            also,
        )

    def commit_generation(self, generation: Generation, *, also: Callable[[Any], None]) -> None:
        """Commit the tables of an earlier generation as the head, as a restore does.

        Args:
            generation: the generation, which the catalog still has.
            also: called in the transaction of the commit.
        """
        commit = generation_commit(
            self.job.dataset_id,
            tables=generation.tables,
            n_images=generation.n_images,
            config=generation.embedding_config or self.job.config,
            summary=with_counters(generation.summary, self.job.head.summary),
        )
        self._commit(commit, None, also)
        remove_thumbnails(self.job.thumbnails)  # media with the same ids may have had other images
        remove_thumbnails(self.job.object_thumbnails)

    def _commit(self, commit: Commit, step: NewStep | None, also: Callable[[Any], None]) -> None:
        record = None if step is None else step.recorder(self.job)
        number, old_files = None, list[str]()
        with self._lease.commit() as connection:
            commit(connection)
            if record is not None:
                number = record(connection)
                old_files += prune_journal(connection, self.job)
            also(connection)
            head = datasets.head(connection, self.job.dataset_id)
        remove_journal_files(self.job.table.parent, old_files)
        if (edits := _committed.get()) is not None and head is not None:
            edits.append(CommittedEdit(head.id, number, 0 if step is None else step.n_media))


@contextmanager
def editing(context: Context, dataset_id: str, operation: str) -> Iterator[Edit]:
    """Yield a short edit; the dataset cannot be changed otherwise until the block ends.

    The edit holds the dataset's lease while it writes tables: two edits, or an edit and a task, must not write the same
    table at the same time.

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

    def check(connection: Any) -> None:
        check_available(connection, dataset_id, operation)

    with (
        leased(context.catalog, dataset_id, operation, check) as lease,
        own_errors(f"do {operation!r} on dataset {dataset_id}"),
    ):
        yield Edit(load_job_context(context, dataset_id), lease)
    if context.runner.after_commit is not None:
        context.runner.after_commit(dataset_id)
