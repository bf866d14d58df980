"""What can be done to a dataset as a whole, so that nothing of it is lost: snapshots, deletions, its name."""

from collections.abc import Sequence
from typing import Any

from framedex.api.view import View, selected_ids
from framedex.jobs.remove import remove
from framedex.naming import check_dataset_name
from framedex.operations import snapshots
from framedex.operations.context import Context
from framedex.operations.integrity.check import check
from framedex.operations.names import Operation
from framedex.operations.starting import start, wait_for
from framedex.records import CheckResult, Snapshot, TaskType
from framedex.render.progress import progress_bar
from framedex.storage import datasets
from framedex.tasks import Task

_STORED_IDS = 100_000  # that a task keeps in the catalog, so that another process can run it again


class DatasetLifecycle:
    """The part of :class:`framedex.Dataset` that keeps, brings back and removes."""

    _context: Context
    id: str
    task: Task | None

    def snapshot(self, name: str | None = None, *, description: str = "") -> Snapshot:
        """Keep the present state under a name; it becomes the current snapshot. Nothing is copied.

        Args:
            name: by default that of the dataset, ``_snapshot_`` and the snapshot's id.
            description: free text.

        Raises:
            Conflict: the dataset is not READY, or a task is under way.
            InvalidInput: the name or the description cannot be used.
            Forbidden: the settings do not allow snapshots.
            ReadOnly: the workspace was opened for reading.
        """
        return snapshots.create_snapshot(self._context, self.id, name, description)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first. The first index of a dataset makes one by itself."""
        return snapshots.list_snapshots(self._context, self.id)

    def update_snapshot(
        self, snapshot: Snapshot | str, *, name: str | None = None, description: str | None = None
    ) -> Snapshot:
        """Change the name or the description of a snapshot; what it keeps stays.

        Args:
            snapshot: its record, its id, or ``current``.
            name: the new name, or None to leave it; one of both is needed.
            description: the new description, or None.

        Raises:
            NotFound: there is no such snapshot.
            InvalidInput: neither was given, or one cannot be used.
        """
        return snapshots.update_snapshot(self._context, self.id, snapshot, name=name, description=description)

    def delete_snapshot(self, snapshot: Snapshot | str) -> None:
        """Delete a snapshot: it is not shown any more. The dataset, and clones of the snapshot, stay as they are.

        Raises:
            NotFound: there is no such snapshot.
            Conflict: it is the current one.
        """
        snapshots.delete_snapshot(self._context, self.id, snapshot)

    def restore(self, snapshot: Snapshot | str = "current", *, wait: bool = True) -> Task:
        """Bring a snapshot back: media, metadata, clusters, tags, labels and fields are as they were then.

        What was done since is gone, unless another snapshot keeps it. Readers go on to see the state before until it
        is done.

        Args:
            snapshot: its record, its id, or ``current``.
            wait: return when it is done; else at once.

        Returns:
            the task, type SNAPSHOT_RESTORE.

        Raises:
            NotFound: there is no such snapshot.
            Conflict: another task is under way, or the dataset's status does not allow it.
        """
        self.task = snapshots.start_restore(self._context, self.id, snapshot)
        if wait:
            wait_for(self.task, Operation.RESTORE)
        return self.task

    def delete_media(self, selection: View | str | Sequence[str], *, wait: bool = True) -> Task:
        """Delete media from the dataset; their files stay where they are. A snapshot that has them keeps them.

        Clusters lose members; scores and near-duplicate groups follow at once.

        Args:
            selection: a view, a media id, or several.
            wait: return when it is done, showing progress; else at once.

        Returns:
            the task, type MEDIA_DELETION. The dataset's status is then as before.

        Raises:
            NotFound: a media id is not in the dataset; nothing is deleted then.
            Conflict: another task is under way.
        """
        ids = selected_ids(selection)
        self.task = start(
            self._context,
            self.id,
            TaskType.MEDIA_DELETION,
            lambda job, progress: remove(job, ids, progress=progress),
            operation=Operation.DELETE_MEDIA,
            config=_config(ids),
        )
        if wait:
            wait_for(self.task, Operation.DELETE_MEDIA)
        return self.task

    def check(self, *, repair: bool = False) -> CheckResult:
        """Verify the tables, uploaded files and caches of the dataset; return what is wrong.

        See :meth:`framedex.Workspace.check`.
        """
        with progress_bar("Checking") as progress:
            return check(self._context, [self.id], repair=repair, progress=progress)

    def rename(self, name: str) -> None:
        """Give the dataset another name.

        Raises:
            InvalidInput: a dataset cannot have that name.
            Conflict: it is taken.
        """
        check_dataset_name(name)
        with self._context.catalog.write() as connection:
            datasets.rename_dataset(connection, self.id, name)


def _config(ids: Sequence[str]) -> dict[str, Any] | None:
    return {"operation": Operation.DELETE_MEDIA, "media_ids": list(ids)} if len(ids) <= _STORED_IDS else None
