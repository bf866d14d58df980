"""The upkeep of a workspace: evaluations, backups, checks, recovery, disk space."""

import os
from typing import Any

from framedex.api.disk_usage import DiskUsage, read_usage
from framedex.api.handle import WorkspaceHandle
from framedex.api.record_list import RecordList
from framedex.operations.backups.backup import make_backup
from framedex.operations.integrity.check import check
from framedex.operations.integrity.recover import recover
from framedex.operations.monitoring import evaluate_all
from framedex.operations.previews import preview_source
from framedex.operations.relocation import relocate
from framedex.operations.sources import list_sources
from framedex.operations.vacuum import vacuum
from framedex.records import (
    Alert,
    BackupResult,
    CheckResult,
    RecoveryResult,
    Relocation,
    SourcePreview,
    SourceState,
    VacuumResult,
)
from framedex.render.progress import progress_bar


class WorkspaceUpkeep(WorkspaceHandle):
    """The part of :class:`framedex.Workspace` that keeps it sound."""

    @staticmethod
    def recover(folder: str | os.PathLike[str]) -> RecoveryResult:
        """Rebuild the catalog of a workspace from the manifests of its datasets; return the recovered datasets.

        Datasets are recovered as last committed, with tags, labels, captions, fields, decisions and snapshots. The
        history of tasks and exports is lost. A damaged catalog is kept under another name. No other process may use
        the workspace at the same time.

        Users of a service cannot be recovered. If their database is damaged, it is kept under another name, too, so
        that a new admin can be made; all datasets then belong to the default workspace of users.

        Raises:
            Conflict: the catalog exists and is intact, and no database of users is lost.
            WorkspaceError: the folder is not a workspace, or cannot be read or written.

        Examples:
            >>> ws.close()
            >>> (ws.path / "catalog.db").unlink()
            >>> framedex.Workspace.recover(ws.path)
            RecoveryResult(datasets=['pets', 'new'], snapshots=3)
        """
        with progress_bar("Recovering") as progress:
            return recover(folder, progress=progress)

    def evaluate_views(self, *names: str) -> list[Alert]:
        """Evaluate saved views in all batches of media that no process has evaluated; return the alerts raised.

        Each addition of media is evaluated by the process that commits it. This call evaluates what was left: by a
        process that was killed, or by an evaluation that failed. A workspace that is opened for writing, and stays
        open, does the same in the background. Any number of processes may do it at once; each batch is counted, and
        each alert raised, only once.

        Args:
            names: names or ids of datasets; by default all datasets.

        Raises:
            NotFound: a dataset does not exist.
            ReadOnly: the workspace was opened read-only.
            Error: a dataset cannot be read; the others are evaluated. The failure of a single view is no error: its
                record has the reason, as ``evaluation_error``.

        Examples:
            >>> ws.evaluate_views("pets")
            []
        """
        with progress_bar("Evaluating", late=True):
            return evaluate_all(self._context, names)

    def vacuum(self, *, older_than_s: float | None = None) -> VacuumResult:
        """Delete unreferenced data from the disk; return the amounts.

        This deletes superseded table versions, unreferenced uploads, upload transactions that nobody changed for 7
        days, thumbnails of deleted media, and the remains of deleted datasets and of interrupted tasks. Superseded
        versions are also deleted automatically after changes of a dataset. Other processes may read and write at the
        same time; a dataset with a running task is skipped.

        Args:
            older_than_s: the minimum number of seconds since data was superseded; by default
                ``settings.keep_versions_s``, so that readers that opened it earlier can finish. The checkpoints of
                failed or aborted tasks are kept for 7 days by default. If *older_than_s* is given, it also applies to
                checkpoints; a retried task without checkpoint starts from scratch.

        Raises:
            InvalidInput: *older_than_s* is not a number of seconds.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ws.vacuum()
            VacuumResult(freed_bytes=..., versions=..., tables=0, datasets=0, ...)
        """
        with progress_bar("Freeing") as progress:
            return vacuum(self._context, older_than_s=older_than_s, progress=progress)

    def check(self, *names: str, repair: bool = False, files: bool = False, content: bool = False) -> CheckResult:
        """Verify the catalog, the tables, journals, uploaded files and caches of datasets, and users; return findings.

        All data is read once, in blocks. Other processes may read and write at the same time.

        Args:
            names: names or ids of datasets; by default all datasets, all files outside of datasets, and the users of a
                service.
            repair: repair the findings where possible: delete damaged caches and leftovers, rewrite manifests, and
                rebuild missing, outdated or damaged catalog entries from the manifest in the dataset's folder. The
                field ``repaired`` of a finding has the outcome.
            files: also look for the source files of datasets: what is missing or cannot be read is a finding.
            content: with *files*: also compare their content with what was indexed, which reads all of them.

        Raises:
            InvalidInput: *content* is set without *files*.
            NotFound: a dataset does not exist.
            ReadOnly: *repair* is set, and the workspace was opened read-only.

        Examples:
            >>> ws.check("pets").counts
            {'datasets': 1, 'table versions': ..., 'columns': ..., 'journal files': 2, ...}
        """
        with progress_bar("Checking") as progress:
            return check(self._context, names or None, repair=repair, files=files, content=content, progress=progress)

    def relocate(
        self,
        old: str | os.PathLike[str],
        new: str | os.PathLike[str],
        *,
        check: bool = False,
        force: bool = False,
    ) -> Relocation:
        """Change the place of a source folder for all datasets; return what was compared.

        For a folder that was moved or renamed, a bucket that was copied, and a backup that was restored on another
        machine. All datasets of all namespaces that have the folder as a source, or a folder below it, get the new
        place in one transaction. Media ids, edits, snapshots and the journal stay as they are; clones are datasets of
        their own, and are relocated, too. No image is read again, and no file is changed.

        All files are looked for at the new place, and their sizes compared; a sample of 32 to 64 files of each source
        is compared by content, as long as that is less than 1 GiB.

        Args:
            old: the folder, or the URI ``s3://bucket/folder``, where the files were; it need not exist.
            new: where they are now; a folder, or a URI.
            check: only compare, and change nothing.
            force: go on although files differ, or more than half of them are missing.

        Raises:
            InvalidInput: a place is none, or both are the same.
            NotFound: no dataset has *old*, or a folder below it, as a source; the message lists the sources.
            Forbidden: the settings do not allow to read at the new place.
            Conflict: files differ or are missing, a source would contain another one of the same dataset, or a task of
                one of the datasets is running. Nothing is changed; with *check* the record has the reason instead.
            ReadOnly: the workspace was opened read-only, and *check* is not set.

        Examples:
            >>> moved = ws.relocate(ws.dataset("new").info.source_uri, "new")
            >>> [(each.dataset_name, each.files, each.missing, each.compared) for each in moved.roots]
            [('new', 3, 0, 3)]
        """
        with progress_bar("Comparing") as progress:
            return relocate(self._context, old, new, check=check, force=force, progress=progress)

    def sources(self) -> list[SourceState]:
        """Return the source folders of all datasets of all namespaces, and whether they can be found.

        Uploads have no source folder.

        Examples:
            >>> [(each.dataset_name, each.n_media, each.fault) for each in ws.sources()]
            [('new', 3, None), ('pets', 33, None)]
        """
        return RecordList(list_sources(self._context))

    def preview(self, source: Any) -> SourcePreview:
        """Return how the beginning of a source is understood, without a dataset; no image is opened.

        Args:
            source: what :meth:`Workspace.create_dataset` takes, or a table of bounding boxes.

        Raises:
            InvalidInput: the source cannot be used.
            Forbidden: it is in no allowed folder or bucket.
            Unavailable: it is in a bucket that cannot be reached.

        Examples:
            >>> preview = ws.preview("list.csv")
            >>> preview.delimiter, [(each.name, str(each.becomes)) for each in preview.columns], preview.found
            ('semicolons', [('path', 'path'), ('label', 'labels'), ('score', 'field')], 2)
        """
        return preview_source(source, self._context.settings)

    def disk_usage(self) -> DiskUsage:
        """Return the disk usage by dataset and part, and the bytes that :meth:`vacuum` can free.

        Examples:
            >>> ws.disk_usage()
            <framedex.DiskUsage: ... MB, ... KB to be freed>
        """
        return read_usage(self._context)

    def backup(
        self, folder: str | os.PathLike[str], *, with_users: bool = False, hard_links: bool = False
    ) -> BackupResult:
        """Copy the workspace to a folder while it is in use; return what the backup holds and what it does not.

        The backup is the workspace at one moment, whatever other processes do meanwhile. If it is interrupted, the
        folder is no backup; another call with the same folder continues it. :meth:`restore_backup` makes a workspace of
        it, at any path.

        Args:
            folder: the folder of the backup; missing, empty, or that of a backup that did not end.
            with_users: also copy the database of the service: users, roles, grants, notifications, the audit.
            hard_links: link files that never change instead of copying them, where the file system allows it. Such a
                backup takes little time and space, but damage of the disk hits both.

        Raises:
            InvalidInput: the folder is in the workspace, or *with_users* is set and there are no users.
            Conflict: the folder holds a finished backup or other files, another process makes a backup there, or the
                workspace was changed too often meanwhile.
            WorkspaceError: the folder cannot be written or has too little space, or files of the workspace are missing.

        Examples:
            >>> ws.backup("backup")
            BackupResult(path='.../backup', created_at='...', files=..., bytes=..., ...)
        """
        with progress_bar("Backing up") as progress:
            return make_backup(self._context, folder, with_users=with_users, hard_links=hard_links, progress=progress)
