"""The job of a clean-up: remove media in one commit, then delete their files on request. Both parts can be retried.

The task's record has the ids of the removed rows in the state that the snapshot preserves. So if a process is killed
while it deletes files, any process can retry the task.
"""

import base64
import zlib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from framedex.cleanup.delete_files import DeletionResult, delete_files
from framedex.cleanup.plan_rows import PlanRows
from framedex.core.arrays import RowIds
from framedex.errors import Conflict, NotFound, NotRetryable
from framedex.jobs.context import JobContext
from framedex.jobs.edits.basket import marks_of, write_marks
from framedex.jobs.edits.rows import read_row_ids
from framedex.jobs.remove import remove_selected
from framedex.media.files import allowed_folders
from framedex.operations.context import Context, open_media
from framedex.operations.names import Operation
from framedex.operations.starting import with_job_context
from framedex.records import SnapshotReason
from framedex.storage import datasets, file_readers, snapshot_rows
from framedex.storage.generation import Generation
from framedex.storage.media import Media
from framedex.storage.retention import RetentionLimits, read_retained
from framedex.storage.table_files import rows_key
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark
from framedex.storage.table_versions import Table
from framedex.tasks import Commit, Job, TaskProgress

_NEW_READER = "a task that may need it began meanwhile"
DELETING = "deleting files"
"""The progress stage of the deletion of files."""


@dataclass(frozen=True)
class RemovedRows:
    """The rows that a clean-up removes, and what changes for rows that stay, by their ids: uint64.

    Attributes:
        rows: the removed rows, ascending.
        lost: those of them that have copies.
        survivor: the row that stays in place of each of these.
        emptied: the rows that leave the basket, ascending.
    """

    rows: RowIds
    lost: RowIds = field(default_factory=lambda: np.empty(0, np.uint64))
    survivor: RowIds = field(default_factory=lambda: np.empty(0, np.uint64))
    emptied: RowIds = field(default_factory=lambda: np.empty(0, np.uint64))

    @classmethod
    def of(cls, plan: PlanRows) -> "RemovedRows":
        """Return the rows of a plan."""
        return cls(plan.removed, plan.losses.lost, plan.losses.survivor, plan.emptied)


_PARTS = tuple(each.name for each in fields(RemovedRows))


class Removal:
    """The removal of rows from a dataset, with a snapshot of the state before, and of their files on request.

    Attributes:
        snapshot_id: the id of the snapshot, which is created in the transaction that removes the media; None before.
        deleted: the result of the deletion of files.

    Args:
        context: the open workspace.
        media: the state.
        rows: the rows to remove, and what changes for those that stay.
        description: the description of the snapshot.
        with_files: whether to delete the files, too.
        snapshot_id: the id of the snapshot, if the media are already removed and only files remain to be deleted.
    """

    def __init__(
        self,
        context: Context,
        media: Media,
        rows: "RemovedRows",
        *,
        description: str,
        with_files: bool,
        snapshot_id: str | None = None,
    ) -> None:
        self._context, self._media, self._rows = context, media, rows
        self._description, self._with_files, self.snapshot_id = description, with_files, snapshot_id
        self.deleted = DeletionResult()

    @property
    def config(self) -> dict[str, Any]:
        """The JSON for the task's record, from which any process can retry or continue the job."""
        return {
            "operation": Operation.CLEANUP,
            **{name: _packed(rows) for name, rows in vars(self._rows).items()},
            "generation": self._media.generation.id,
            "description": self._description,
            "with_files": self._with_files,
            "snapshot_id": self.snapshot_id,
        }

    def check_same(self, head: Generation | None) -> None:
        """Check that the dataset has not changed.

        Raises:
            Conflict: it has changed.
        """
        if head is None or head.id != self._media.generation.id:
            raise Conflict("the dataset has changed since the plan was made; make a new plan")

    def check_no_readers(self) -> None:
        """Check that no running task reads files for media that are not committed yet.

        Raises:
            Conflict: a task does.
        """
        with self._context.catalog.write() as connection:
            file_readers.check_none(connection)
        list(self._others())  # raises before anything is removed if a state cannot be read

    def __call__(self, job: JobContext, progress: TaskProgress) -> Commit:
        """Remove the media, unless they are removed already, and delete their files on request; return the last commit.

        Raises:
            Conflict: the dataset has changed since the plan was made, or a task that reads files is running.
        """
        if job.head.id == self._media.generation.id:
            self.snapshot_id = None  # the commit failed, so the snapshot was not created
        if self.snapshot_id is not None:
            self.check_no_readers()
        else:
            commit = self._remove(job, progress)
            if not self._with_files:
                return commit
            progress.commit(commit, lambda: self.config)
        self._delete_files(progress)
        return lambda connection: datasets.mark_broken(connection, job.dataset_id)

    def _remove(self, job: JobContext, progress: TaskProgress) -> Commit:
        """Remove the media; return the commit, which also creates the snapshot."""
        self.check_same(job.head)
        commit = remove_selected(
            job,
            self._row_ids,
            progress=progress,
            operation="cleanup",
            facts={"with_files": True} if self._with_files else {},
            edit=self._mark,
        )

        def commit_with_snapshot(connection: Any) -> None:
            self.snapshot_id = snapshot_rows.insert_snapshot(
                connection,
                self._media.generation,
                created_by=self._context.settings.user,
                reason=SnapshotReason.MANUAL,
                name=f"before clean-up {datasets.now():%Y-%m-%d %H:%M:%S}",
                description=self._description,
            )
            commit(connection)

        return commit_with_snapshot

    def _row_ids(self, media: Media) -> RowIds:
        row_ids = read_row_ids(media)
        return row_ids[np.isin(row_ids, self._rows.rows, assume_unique=True)]

    def _mark(self, media: Media) -> int:
        """Mark the rows that stay in place of others, and take rows out of the basket; return the table's version."""
        rows, survivors = self._rows, np.unique(self._rows.survivor)
        marks = marks_of(media, survivors, KEEPER)
        version = write_marks(media, survivors, {KEEPER: np.maximum(marks, KeeperMark.LAST)})
        media = replace(media, table=Table(media.table.path, version))
        return write_marks(media, rows.emptied, {IN_BASKET: np.zeros(len(rows.emptied), dtype=bool)})

    def _delete_files(self, progress: TaskProgress) -> None:
        with self._context.catalog.read() as connection:
            mark = file_readers.mark(connection)
        current = open_media(self._context, self._media.dataset_id)
        self.deleted = delete_files(
            self._media,
            self._rows.rows,
            chain([current], self._others()),
            guard=lambda: self._no_new_readers(mark),
            progress=lambda share: progress(DELETING, share),
            allowed=allowed_folders(self._context.settings),
            instead=dict(zip(self._rows.lost.tolist(), self._rows.survivor.tolist(), strict=True)),
        )

    @contextmanager
    def _no_new_readers(self, mark: Hashable) -> Iterator[str | None]:
        """Stop new readers of files; yield a reason to stop the deletion if a reader began before, else None."""
        with self._context.catalog.write() as connection:
            yield _NEW_READER if file_readers.has_begun(connection, mark) else None

    def _others(self) -> Iterator[Media]:
        """Yield the current states and the snapshots of all other datasets."""
        with self._context.catalog.read() as connection:
            ids = [each.id for each in datasets.list_datasets(connection) if each.id != self._media.dataset_id]
            retained = {each: read_retained(connection, each, RetentionLimits.ago(0)).generations for each in ids}
            roots = {each: tuple(datasets.get_roots(connection, each)) for each in ids}
        for dataset_id, states in retained.items():
            path = self._context.layout.media(dataset_id)
            for state in {rows_key(path, each.tables["media"]): each for each in states}.values():
                table = Table(path, state.tables["media"])
                yield Media(dataset_id, state, table, self._context.sql, roots[dataset_id])


def removal_job(context: Context, dataset_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job that retries or continues a clean-up.

    Raises:
        NotRetryable: the snapshot was deleted; or no media were removed, and the dataset has changed.
    """
    with context.catalog.read() as connection:
        state = _state_of(connection, dataset_id, config)
        roots = tuple(datasets.get_roots(connection, dataset_id))
    table = Table(context.layout.media(dataset_id), state.tables["media"])
    removal = Removal(
        context,
        Media(dataset_id, state, table, context.sql, roots),
        RemovedRows(**{name: _unpacked(config[name]) for name in _PARTS if name in config}),
        description=config["description"],
        with_files=config["with_files"],
        snapshot_id=config["snapshot_id"],
    )
    return with_job_context(context, dataset_id, removal)


def _state_of(connection: Any, dataset_id: str, config: Mapping[str, Any]) -> Generation:
    if (snapshot_id := config["snapshot_id"]) is None:
        head = datasets.head(connection, dataset_id)
        if head is None or head.id != config["generation"]:
            raise NotRetryable("no media were removed, and the dataset has changed since; make a new plan")
        return head
    try:
        snapshot_rows.find_snapshot(connection, dataset_id, snapshot_id)
    except NotFound as error:
        raise NotRetryable(
            f"the snapshot from before the clean-up, which has the media to remove, is gone: {error}"
        ) from None
    return snapshot_rows.generation_of(connection, snapshot_id)


def _packed(rows: RowIds) -> str:
    """Return numbers as compressed text, which is short if they ascend."""
    steps = np.diff(np.asarray(rows, "<u8"), prepend=np.zeros(1, "<u8"))
    return base64.b85encode(zlib.compress(steps.tobytes())).decode()


def _unpacked(text: str) -> RowIds:
    steps = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<u8")
    return np.cumsum(steps, dtype=np.uint64)
