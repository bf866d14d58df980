"""Methods of :class:`framedex.Dataset` for snapshots, deletion of media, verification and renaming."""

from collections.abc import Sequence
from typing import Any

from framedex.api.comparison import StateComparison
from framedex.api.record_list import RecordList
from framedex.api.trends import trends
from framedex.api.view import View, selected_ids
from framedex.core.naming import check_dataset_name, check_description
from framedex.jobs.remove import remove
from framedex.operations import snapshots
from framedex.operations.context import Context
from framedex.operations.integrity.check import check
from framedex.operations.names import Operation
from framedex.operations.starting import start, wait_for
from framedex.operations.states import PRESENT, state_of
from framedex.records import CheckResult, Snapshot, StateCounts, TaskType
from framedex.render.progress import progress_bar
from framedex.storage import datasets
from framedex.tasks import Task

_STORED_IDS = 100_000  # the maximum number of ids in a task's record, from which another process can retry it


class DatasetLifecycle:
    """Snapshots, deletion of media, verification and renaming of a dataset."""

    _context: Context
    id: str
    task: Task | None

    def snapshot(self, name: str | None = None, *, description: str = "") -> Snapshot:
        """Create a snapshot of the current state; it becomes the current snapshot. No data is copied.

        Args:
            name: by default the dataset's name, ``_snapshot_`` and the snapshot's id.
            description: free text.

        Raises:
            Conflict: the dataset is not READY, or a task is running.
            InvalidInput: the name or the description cannot be used.
            Forbidden: the settings do not allow snapshots.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ds.snapshot("before training", description="labels checked").snapshot_name
            'before training'
        """
        return snapshots.create_snapshot(self._context, self.id, name, description)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first. The first indexing of a dataset creates one automatically.

        Examples:
            >>> [each.snapshot_name for each in ds.snapshots()]
            ['first look', 'pets_snapshot_...']
        """
        return RecordList(snapshots.list_snapshots(self._context, self.id))

    def update_snapshot(
        self, snapshot: Snapshot | str, *, name: str | None = None, description: str | None = None
    ) -> Snapshot:
        """Change the name or the description of a snapshot. Its data does not change.

        Args:
            snapshot: a snapshot's record, id or unique name, or ``current``.
            name: the new name; None to keep the present one.
            description: the new description; None to keep the present one.

        Raises:
            NotFound: the snapshot does not exist.
            InvalidInput: both are None, or one cannot be used.

        Examples:
            >>> ds.update_snapshot("first look", description="as it came").description
            'as it came'
        """
        return snapshots.update_snapshot(self._context, self.id, snapshot, name=name, description=description)

    def delete_snapshot(self, snapshot: Snapshot | str) -> None:
        """Delete a snapshot. The dataset, and clones of the snapshot, do not change.

        Raises:
            NotFound: the snapshot does not exist.
            Conflict: it is the current snapshot.

        Examples:
            >>> ds.delete_snapshot(ds.snapshots()[-1])
            >>> [each.snapshot_name for each in ds.snapshots()]
            ['first look']
        """
        snapshots.delete_snapshot(self._context, self.id, snapshot)

    def restore(self, snapshot: Snapshot | str | None = None, *, wait: bool = True) -> Task:
        """Restore a snapshot: its media, metadata, clusters, tags, labels and fields replace the present ones.

        Later changes are lost, unless another snapshot has them or :meth:`undo` brings them back. Readers see the
        previous state until the task is done.

        Args:
            snapshot: a snapshot's record, id or unique name, or ``current`` for the one that was taken or restored
                last. It has no default.
            wait: return when the task is done; else at once.

        Returns:
            the task, type SNAPSHOT_RESTORE.

        Raises:
            InvalidInput: no snapshot is given; the message lists the snapshots.
            NotFound: the snapshot does not exist, or the dataset has none.
            Conflict: another task is running, or the dataset's status does not allow restoring.

        Examples:
            >>> ds.delete_tag("reviewed")
            >>> task = ds.restore("first look")
            >>> [each.name for each in ds.tags()]
            ['reviewed']
        """
        self.task = snapshots.start_restore(self._context, self.id, snapshot)
        if wait:
            wait_for(self.task, Operation.RESTORE)
        return self.task

    def compare(self, before: Snapshot | str, after: Snapshot | str = PRESENT) -> StateComparison:
        """Return what differs between two states: media that were added, removed, replaced, relabelled, and so on.

        Args:
            before: the earlier state: a snapshot's record, id or name, or ``current`` for the current snapshot; or the
                id of a generation, which is kept for ten minutes after it was replaced.
            after: the later state; by default the present one, ``head``.

        Raises:
            NotFound: there is no such state, or it was freed.
            Conflict: the dataset has no index yet.

        Examples:
            >>> ds.set_labels(ds.media_id("dog-8.jpg"), "dog")
            >>> ds.compare("first look")
            <framedex.StateComparison: 1 relabelled, 1 resolved>
        """
        states = [state_of(self._context, self.id, each) for each in (before, after)]
        key = "comparison", *(each.generation.id for each in states)
        found: StateComparison | None = self._context.selections.get(key)
        if found is None:
            found = StateComparison(self._context, *states)
            self._context.selections.put(key, found, weight=found.nbytes)
        return found

    def trends(self) -> list[StateCounts]:
        """Return the counts of media, issues and labels of each snapshot, oldest first, and of the present state.

        Raises:
            Conflict: the dataset has no index yet.

        Examples:
            >>> [(each.name, each.n_images, each.issues["dark"]) for each in ds.trends()]
            [('pets_snapshot_...', 31, 1), ('first look', 31, 1), ('head', 31, 1)]
        """
        return RecordList(trends(self._context, self.id))

    def delete_media(self, selection: View | str | Sequence[str], *, wait: bool = True) -> Task:
        """Delete media from the dataset. Their files, and snapshots with these media, do not change.

        The media are removed from their clusters; scores and near-duplicate groups are updated at once.

        Args:
            selection: a view, a media id, or a list of media ids.
            wait: return when the task is done, showing progress; else at once.

        Returns:
            the task, type MEDIA_DELETION. It does not change the dataset's status.

        Raises:
            NotFound: a media id is not in the dataset; no media are deleted.
            Conflict: another task is running.

        Examples:
            >>> task = ds.delete_media(ds.where(vql.issues("corrupted")))
            >>> ds.count()
            32
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

    def check(self, *, repair: bool = False, files: bool = False, content: bool = False) -> CheckResult:
        """Verify the tables, uploaded files and caches of the dataset, and its source files; return the findings.

        See :meth:`framedex.Workspace.check`.

        Examples:
            >>> ds.check().counts
            {'datasets': 1, 'table versions': ..., 'columns': ..., 'journal files': 2, ...}
        """
        with progress_bar("Checking") as progress:
            return check(self._context, [self.id], repair=repair, files=files, content=content, progress=progress)

    def rename(self, name: str) -> None:
        """Rename the dataset.

        Raises:
            InvalidInput: the name is invalid.
            Conflict: the name is taken.

        Examples:
            >>> ds.rename("our pets")
            >>> ds.name
            'our pets'
        """
        self.update(name=name)

    def update(self, *, name: str | None = None, description: str | None = None) -> None:
        """Change the name or the description of the dataset, or both.

        Args:
            name: as for :meth:`Workspace.create_dataset`; None for the present one.
            description: free text of up to 10,000 characters, empty for none; None for the present one.

        Raises:
            InvalidInput: a text cannot be used; nothing is changed.
            Conflict: the name is taken; nothing is changed.

        Examples:
            >>> ds.update(description="Photos of the spring.")
            >>> ds.info.description
            'Photos of the spring.'
        """
        if name is not None:
            check_dataset_name(name)
        if description is not None:
            check_description(description)
        with self._context.catalog.write() as connection:
            if name is not None:
                datasets.rename_dataset(connection, self.id, name)
            if description is not None:
                datasets.set_description(connection, self.id, description)


def _config(ids: Sequence[str]) -> dict[str, Any] | None:
    return {"operation": Operation.DELETE_MEDIA, "media_ids": list(ids)} if len(ids) <= _STORED_IDS else None
