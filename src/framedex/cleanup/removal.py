"""The job of a clean-up: removes media as one change, then deletes their files if wanted; each half can be done again.

The rows that go are kept in the task's own row, by their ids in the state that the snapshot before the clean-up holds.
So a process that was killed while it deleted files leaves all that a retry needs, in whichever process that is.
"""

import base64
import zlib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.arrays import RowIds
from framedex.cleanup.delete_files import DeletionResult, delete_files
from framedex.errors import Conflict, NotFound, NotRetryable
from framedex.jobs.context import JobContext
from framedex.jobs.remove import remove_selected
from framedex.operations.context import Context, open_media
from framedex.operations.names import Operation
from framedex.operations.starting import with_job_context
from framedex.records import SnapshotReason
from framedex.storage import datasets, file_readers, snapshot_rows
from framedex.storage.generation import Generation
from framedex.storage.media import Media
from framedex.storage.retention import RetentionLimits, read_retained
from framedex.storage.table_files import rows_key
from framedex.storage.tables import ROW_ID, Table
from framedex.tasks import Commit, Job, TaskProgress

_BEGUN = "a task that may need it began meanwhile"
DELETING = "deleting files"
"""The stage in which files go."""


class Removal:
    """The removal of some rows of one state of a dataset, which a snapshot keeps, and of their files if wanted.

    Attributes:
        snapshot_id: of the snapshot of the state, once the media are removed; it is made in the same transaction.
        deleted: what became of the files.

    Args:
        context: the open workspace.
        media: the state.
        rows: uint64, ascending: ids of the rows that go.
        description: of the snapshot.
        with_files: whether their files go, too.
        snapshot_id: of the snapshot, if the media are removed already and only files are left to delete.
    """

    def __init__(
        self,
        context: Context,
        media: Media,
        rows: RowIds,
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
        """What the task keeps, as JSON, so that any process can do it again or go on with it."""
        return {
            "operation": Operation.CLEANUP,
            "rows": _packed(self._rows),
            "generation": self._media.generation.id,
            "description": self._description,
            "with_files": self._with_files,
            "snapshot_id": self.snapshot_id,
        }

    def check_same(self, head: Generation | None) -> None:
        """Check that the dataset is still as it was.

        Raises:
            Conflict: it is not.
        """
        if head is None or head.id != self._media.generation.id:
            raise Conflict("the dataset has changed since the plan was made; make a new plan of what it is now")

    def check_no_readers(self) -> None:
        """Check that no task reads files which the media that it makes will be in, and which nobody knows of yet.

        Raises:
            Conflict: one does.
        """
        with self._context.catalog.write() as connection:
            file_readers.check_none(connection)
        list(self._others())  # what cannot be read is better said before anything is done

    def __call__(self, job: JobContext, progress: TaskProgress) -> Commit:
        """Remove the media, unless that is done, and delete their files if wanted; return the last commit.

        Raises:
            Conflict: the dataset has changed since the plan was made, or a task that reads files is under way.
        """
        if job.head.id == self._media.generation.id:
            self.snapshot_id = None  # a commit that failed made none
        if self.snapshot_id is not None:
            self.check_no_readers()
        else:
            commit = self._removed(job, progress)
            if not self._with_files:
                return commit
            progress.commit(commit, lambda: self.config)
        self._delete_files(progress)
        return lambda connection: datasets.mark_broken(connection, job.dataset_id)

    def _removed(self, job: JobContext, progress: TaskProgress) -> Commit:
        """Remove the media; return what makes that visible, with the snapshot that undoes it."""
        self.check_same(job.head)
        commit = remove_selected(job, self._mask, progress=progress)

        def keep_and_commit(connection: Any) -> None:
            self.snapshot_id = snapshot_rows.insert_snapshot(
                connection,
                self._media.generation,
                created_by=self._context.settings.user,
                reason=SnapshotReason.MANUAL,
                name=f"before clean-up {datasets.now():%Y-%m-%d %H:%M:%S}",
                description=self._description,
            )
            commit(connection)

        return keep_and_commit

    def _mask(self, table: Table) -> npt.NDArray[np.bool_]:
        rows = table.scan([], row_ids=True).read_all().column(ROW_ID).to_numpy()
        return np.isin(rows, self._rows, assume_unique=True)

    def _delete_files(self, progress: TaskProgress) -> None:
        with self._context.catalog.read() as connection:
            begun = file_readers.mark(connection)
        now = open_media(self._context, self._media.dataset_id)
        self.deleted = delete_files(
            self._media,
            self._rows,
            chain([now], self._others()),
            guard=lambda: self._no_new_readers(begun),
            progress=lambda share: progress(DELETING, share),
        )

    @contextmanager
    def _no_new_readers(self, begun: Hashable) -> Iterator[str | None]:
        """Let nobody begin to read files; yield why none may be deleted any more: somebody has begun already."""
        with self._context.catalog.write() as connection:
            yield _BEGUN if file_readers.has_begun(connection, begun) else None

    def _others(self) -> Iterator[Media]:
        """Yield the states of other datasets that keep their files: as they are now, and of snapshots."""
        with self._context.catalog.read() as connection:
            ids = [each.id for each in datasets.list_datasets(connection) if each.id != self._media.dataset_id]
            kept = {each: read_retained(connection, each, RetentionLimits.ago(0)).generations for each in ids}
            roots = {each: tuple(datasets.get_roots(connection, each)) for each in ids}
        for dataset_id, states in kept.items():
            path = self._context.layout.media(dataset_id)
            for state in {rows_key(path, each.tables["media"]): each for each in states}.values():
                table = Table(path, state.tables["media"])
                yield Media(dataset_id, state, table, self._context.sql, roots[dataset_id])


def removal_job(context: Context, dataset_id: str, config: Mapping[str, Any]) -> Job:
    """Return the job of a clean-up that is to be done again, or gone on with.

    Raises:
        NotRetryable: the snapshot that keeps the state before was deleted; or nothing was removed yet, and the dataset
            has changed since.
    """
    with context.catalog.read() as connection:
        state = _state_of(connection, dataset_id, config)
        roots = tuple(datasets.get_roots(connection, dataset_id))
    table = Table(context.layout.media(dataset_id), state.tables["media"])
    removal = Removal(
        context,
        Media(dataset_id, state, table, context.sql, roots),
        _unpacked(config["rows"]),
        description=config["description"],
        with_files=config["with_files"],
        snapshot_id=config["snapshot_id"],
    )
    return with_job_context(context, dataset_id, removal)


def _state_of(connection: Any, dataset_id: str, config: Mapping[str, Any]) -> Generation:
    if (snapshot_id := config["snapshot_id"]) is None:
        head = datasets.head(connection, dataset_id)
        if head is None or head.id != config["generation"]:
            raise NotRetryable(
                "nothing was removed, and the dataset has changed since; make a new plan of what it is now"
            )
        return head
    try:
        snapshot_rows.find_snapshot(connection, dataset_id, snapshot_id)
    except NotFound as error:
        raise NotRetryable(
            f"the snapshot from before the clean-up is gone, and with it what was to go: {error}"
        ) from None
    return snapshot_rows.generation_of(connection, snapshot_id)


def _packed(rows: RowIds) -> str:
    """Return ascending numbers as a text, short where many follow each other."""
    steps = np.diff(np.asarray(rows, "<u8"), prepend=np.zeros(1, "<u8"))
    return base64.b85encode(zlib.compress(steps.tobytes())).decode()


def _unpacked(text: str) -> RowIds:
    steps = np.frombuffer(zlib.decompress(base64.b85decode(text)), "<u8")
    return np.cumsum(steps, dtype=np.uint64)
