"""The files of a dataset where they are: what is missing, and the comparison with the folders."""

import os
from collections.abc import Sequence

from framedex.api.dataset.lifecycle import DatasetLifecycle
from framedex.api.record_list import RecordList
from framedex.core.checks import check_flag
from framedex.errors import InvalidInput
from framedex.operations.additions import check_allowed, start_addition
from framedex.operations.comparison import SyncPlan, plan_sync
from framedex.operations.context import open_media
from framedex.operations.presence import missing_files
from framedex.operations.sources import list_sources
from framedex.operations.starting import wait_for
from framedex.operations.sync import addition_of, apply_sync, media_of_files
from framedex.records import MissingFile, SourceState, SyncResult
from framedex.render.progress import progress_bar
from framedex.tasks import Task


class DatasetSources(DatasetLifecycle):
    """The files of a dataset where they are."""

    def missing(self) -> list[MissingFile]:
        """Return the files that are gone, or cannot be read now; nothing is marked.

        ``where(vql.missing())`` has those that :meth:`sync` has marked. Uploaded files are left out, as
        :meth:`framedex.Workspace.check` verifies them.

        Raises:
            Conflict: the dataset has no index yet.

        Examples:
            >>> ds.missing()
            []
        """
        return RecordList(missing_files(self._context, self.id))

    def sync(
        self,
        *,
        apply: bool = False,
        remove: bool = False,
        sources: Sequence[str | os.PathLike[str]] = (),
        mark_lost: bool = False,
        wait: bool = True,
    ) -> SyncResult:
        """Compare the dataset with its folders and buckets; return what is new, changed, moved, missing, or back.

        Nothing is changed without *apply*. With it, the row of a file that is at another place, with the same content,
        moves there: its id stays, and with it labels, tags, decisions, objects and the basket. Files that are gone are
        marked as missing, see :func:`framedex.vql.missing`; the mark of files that are back is removed. That is one
        step, which :meth:`undo` takes back. Then new files are added and changed ones are read again, as by
        :meth:`add_media`, in a task for each folder.

        Files that cannot be read are no missing ones. Where no file of a source can be found, as of a disk that is not
        mounted or a bucket that does not answer, none of its files is marked. Nor are those of a folder in a source
        that had more than 5 files and is empty now. If the source was moved, :meth:`framedex.Workspace.relocate`
        changes its place.

        Args:
            apply: change the dataset.
            remove: with *apply*: remove media whose files are gone from the dataset, after they were marked.
            sources: further folders or URIs of folders in which files that are gone are looked for. Their other files
                are not added.
            mark_lost: mark the files of sources, and of folders in them, of which nothing can be found, too.
            wait: with *apply*: return when all is done. Otherwise only the first task is started, and what is left is
                done by another call after it.

        Raises:
            InvalidInput: an argument cannot be used, or a further folder cannot be read.
            Forbidden: the settings do not allow to read in a further folder.
            Conflict: the dataset has no index yet, a task is in progress, or others changed the dataset meanwhile.
            TaskFailed: an addition failed; the rows of moved and missing files are changed.
            ReadOnly: *apply* is set, and the workspace was opened read-only.

        Examples:
            >>> found = ds.sync()
            >>> found.moved, found.missing, found.is_applied
            (0, 0, False)
            >>> ds.sync(apply=True, remove=True).removed
            0
        """
        for name, value in (("apply", apply), ("remove", remove), ("mark_lost", mark_lost), ("wait", wait)):
            check_flag(name, value)
        if isinstance(sources, str | os.PathLike):
            sources = [sources]
        if remove and not apply:
            raise InvalidInput("remove=True needs apply=True; without it nothing is changed")
        with progress_bar("Comparing", late=True) as progress:

            def step() -> None:
                if progress is not None:
                    progress("files", 0.0)

            def plan() -> SyncPlan:
                return plan_sync(self._context, self.id, sources=sources, mark_lost=mark_lost, step=step)

            if not apply:
                return plan().result
            self._context.catalog.check_writable()
            check_allowed(self._context)
            made = apply_sync(self._context, self.id, plan)
        removed = media_of_files(open_media(self._context, self.id), made.gone) if remove else []
        tasks = list[Task]()
        if removed:
            tasks = [self.delete_media(removed, wait=wait)]
        for folder in made.folders if wait or not removed else []:
            request = addition_of(self._context, self.id, folder)
            self.task = start_addition(self._context, self.id, request, auto_reindex=False, show_progress=wait)
            tasks.append(self.task)
            if not wait:
                break
            wait_for(self.task, "Adding")
        last = tasks[-1].id if tasks else None
        return made.result.model_copy(update={"is_applied": True, "removed": len(removed), "task_id": last})

    def sources(self) -> list[SourceState]:
        """Return the source folders of the dataset, and whether they can be found.

        Examples:
            >>> [(each.n_media, each.fault) for each in ds.sources()]
            [(33, None)]
        """
        return RecordList(list_sources(self._context, self.id))
