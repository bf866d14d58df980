"""Short edits: changes that are committed at once, under the lease of their dataset, without a task."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from framedex.images.thumbnails import remove_thumbnails
from framedex.jobs.context import JobContext
from framedex.jobs.edits.journal import NewStep, prune_journal
from framedex.jobs.restore import with_counters
from framedex.operations.context import Context
from framedex.operations.edit_groups import EditGroup, PreparedEdit
from framedex.operations.starting import check_available, following_job_context, load_job_context
from framedex.storage import datasets, tables
from framedex.storage.disk import DeferredSyncs, deferring_syncs, syncing_at_once
from framedex.storage.failures import own_errors
from framedex.storage.generation import Generation, Summary
from framedex.storage.journal_files import remove_journal_files
from framedex.storage.leases import take_lease, wait_for_turn
from framedex.storage.media import Media
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import edited_table
from framedex.storage.turns import Turn


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


class Edit:
    """A short edit in progress.

    Args:
        group: its group.
        turn: of its thread.
        job: the dataset.
        syncs: the files that it writes.

    Attributes:
        job: the dataset.
    """

    def __init__(self, group: EditGroup, turn: Turn, job: JobContext, syncs: DeferredSyncs) -> None:
        self.job = job
        self._group, self._turn, self._syncs = group, turn, syncs
        self._begins_clean, group.is_clean = group.is_clean, False
        self._is_committed = False

    def media(self, context: Context) -> Media:
        """Return the media at the head, in a table at its newest version."""
        job = self.job
        version = job.head.tables[MEDIA]
        if not self._begins_clean:
            version = tables.roll_back(job.table, version) or version
        table = edited_table(job.table, version)
        return Media(job.dataset_id, job.head, table, context.sql, job.roots, columns=context.columns)

    def commit(
        self,
        versions: dict[str, int],
        summary: Summary,
        *,
        step: NewStep | None = None,
        also: Callable[[Any], None] | None = None,
    ) -> None:
        """Commit the written tables as the head; the edits of threads that wait may be committed with it.

        The tables must not be written any more afterwards.

        Args:
            versions: of all tables of the new generation, by name.
            summary: of the new generation.
            step: what the journal says of the edit.
            also: called in the transaction of the commit, which then has no other edit.
        """
        job = self.job
        generation = datasets.new_generation(
            job.dataset_id, tables=versions, n_images=job.head.n_images, config=job.config, summary=summary
        )
        self._group.is_clean = True
        self._commit(generation, step, also)

    def commit_generation(self, generation: Generation, *, also: Callable[[Any], None]) -> None:
        """Commit the tables of an earlier generation as the head, as a restore does.

        Args:
            generation: the generation, which the catalog still has.
            also: called in the transaction of the commit.
        """
        restored = datasets.new_generation(
            self.job.dataset_id,
            tables=generation.tables,
            n_images=generation.n_images,
            config=generation.embedding_config or self.job.config,
            summary=with_counters(generation.summary, self.job.head.summary),
        )
        self._commit(restored, None, also)
        remove_thumbnails(self.job.thumbnails)  # media with the same ids may have had other images
        remove_thumbnails(self.job.object_thumbnails)

    def _commit(self, generation: Generation, step: NewStep | None, also: Callable[[Any], None] | None) -> None:
        job, numbers, old_files = self.job, list[int](), list[str]()
        record = None if step is None else step.recorder(job)

        def write(connection: Any) -> None:
            datasets.put_head(connection, generation)
            if record is not None:
                numbers.append(record(connection))
            if also is not None:
                also(connection)

        def tidy(connection: Any) -> None:
            old_files.extend(prune_journal(connection, job))

        self._is_committed = True
        self._group.last = job, generation
        self._group.commit(PreparedEdit(write, tidy, self._syncs), self._turn, alone=also is not None)
        remove_journal_files(job.table.parent, old_files)
        if (edits := _committed.get()) is not None:
            edits.append(
                CommittedEdit(generation.id, numbers[0] if numbers else None, 0 if step is None else step.n_media)
            )

    def leave(self) -> None:
        """Let the next edit begin."""
        if not self._is_committed:
            self._group.leave()


@contextmanager
def editing(context: Context, dataset_id: str, operation: str, *, alone: bool = False) -> Iterator[Edit]:
    """Yield a short edit; the dataset cannot be changed otherwise until the block ends, or commits it.

    The edit holds the dataset's lease while it writes tables: two edits, or an edit and a task, must not write the same
    table at the same time. Its thread must not read the head from the catalog, which may be older than ``edit.job``.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        operation: name of the operation for messages.
        alone: begin after the commit of all edits before it, because the block reads the catalog.

    Raises:
        Conflict: a task is in progress, or the dataset's status does not allow the edit.
        NotIndexed: the dataset was never indexed.
        ReadOnly: the workspace was opened for reading.
    """
    context.runner.settle()
    context.catalog.check_writable()
    turn = context.catalog.turns_of(dataset_id).request()
    try:
        wait_for_turn(turn, operation)
        with own_errors(f"do {operation!r} on dataset {dataset_id}"), deferring_syncs() as syncs:
            group = _group(context, dataset_id, operation, alone=alone)
            edit = Edit(group, turn, _job_context(context, dataset_id, group), syncs)
            try:
                yield edit
            finally:
                edit.leave()
    finally:
        turn.end()
    if context.runner.after_commit is not None:
        context.runner.after_commit(dataset_id)


def _group(context: Context, dataset_id: str, operation: str, *, alone: bool) -> EditGroup:
    """Return the group that an edit joins, in its turn."""
    turns = context.catalog.turns_of(dataset_id)
    if (group := turns.baton) is not None:
        if isinstance(group, EditGroup) and not group.has_failed and not alone:
            return group
        turns.baton = None
        group.finish()

    def check(connection: Any) -> None:
        check_available(connection, dataset_id, operation)

    with syncing_at_once():
        turns.baton = group = EditGroup(take_lease(context.catalog, dataset_id, operation, check), turns)
    return group


def _job_context(context: Context, dataset_id: str, group: EditGroup) -> JobContext:
    if group.last is None:
        return load_job_context(context, dataset_id)
    return following_job_context(context, *group.last)
