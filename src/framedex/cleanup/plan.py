"""Clean-up plans of a dataset: reviewed, then applied, and undone by a snapshot."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa
import pyarrow.compute as pc

from framedex.cleanup.choice import CleanupRequest
from framedex.cleanup.page import plan_parts
from framedex.cleanup.plan_rows import PlanRows, plan_rows
from framedex.cleanup.removal import Removal, RemovedRows
from framedex.core.checks import check_flag
from framedex.core.counts import counted
from framedex.errors import Conflict, Forbidden, InvalidInput
from framedex.export.files import whole_file
from framedex.images.thumbnails import read_thumbnails
from framedex.operations.basket import check_basket
from framedex.operations.context import Context, open_media
from framedex.operations.edits import as_selection
from framedex.operations.names import Operation
from framedex.operations.searches import condition_for
from framedex.operations.starting import start, wait_for
from framedex.records import CleanupResult, CleanupSummary, DatasetStatus, TaskType
from framedex.render import html
from framedex.render.progress import progress_bar
from framedex.render.sizes import bytes_text
from framedex.settings import user_path
from framedex.storage import datasets, snapshot_rows
from framedex.storage.media import Media
from framedex.storage.media_rows import NEAR
from framedex.tasks import Task
from framedex.vql import BASKET, parse

_SIDE = 160
_SHOWN = (6, 8)  # groups, and media of each issue
_ON_PAGE = (60, 24)
_REASONS = {BASKET: "in the basket", NEAR: "near images"}


def plan_cleanup(
    context: Context,
    dataset_id: str,
    *,
    duplicates: Any,
    issues: Any,
    keep: Any,
    basket: Any,
    unsure: Any,
    within_videos: Any,
    where: Sequence[Any] | None,
) -> "CleanupPlan":
    """Return a clean-up plan; see :meth:`framedex.Dataset.plan_cleanup`."""
    request, filters = CleanupRequest.parse(duplicates, issues, keep, basket, unsure, within_videos), parse(where)
    if request.basket:
        check_basket(context, dataset_id)
    with context.catalog.read() as connection:
        _check_status(datasets.find_dataset(connection, dataset_id).status_new)
    media = open_media(context, dataset_id)
    # Media whose files are gone are no copies that could be kept; `sync` removes them.
    present = (*filters, *parse([{"missing": {"op": "is", "value": False}}]))
    return CleanupPlan(context, media, plan_rows(media, condition_for(context, media, present), request))


def _check_status(status: DatasetStatus) -> None:
    if status is DatasetStatus.PARTIAL_INDEX:
        raise Conflict(
            f"Operation '{Operation.CLEANUP}' needs the dataset status {DatasetStatus.READY}; it is {status}: reindex "
            "first, for the snapshot that undoes a clean-up can only be made then"
        )


class CleanupPlan:
    """A plan of media to remove from a dataset, of media to keep in their place, and of the reasons.

    Nothing is removed before :meth:`apply`. A plan is valid for one state of the dataset. A notebook displays it with
    images. Its length is the number of media to remove.

    Examples:
        >>> plan = ds.plan_cleanup(duplicates="exact", issues=["corrupted"])
        >>> len(plan), ds.count()
        (2, 33)
        >>> plan.apply().removed, ds.count()
        (2, 31)
    """

    def __init__(self, context: Context, media: Media, plan: PlanRows) -> None:
        self._context, self._media, self._plan = context, media, plan

    def __len__(self) -> int:
        """Return the number of media to remove."""
        return len(self._plan.removed)

    def to_arrow(self) -> pa.Table:
        """Return a row for each media item to remove, for each one kept in place of copies, and each that is protected.

        The rows are in the order of ingestion. The columns are ``media_id``, ``file_name`` and ``path`` (as in
        :meth:`framedex.View.issues`); ``action``: ``remove`` or ``keep``; ``reason`` in words; ``issue_type``: the
        issue with the highest confidence, ``basket``, ``duplicates``, ``near``, or null for kept media; ``group_id`` of
        the duplicate group; ``kept_media_id``: the kept member of the group, or null; ``confidence`` (0 to 1) of the
        issue, or a similarity: for removed media the similarity to the nearest image, for kept media the minimum of
        these similarities in the group; ``size_bytes`` of the file, null for
        frames, whose video stays while others of it do; ``warning`` if removed media have labels, or boxes
        of classes, that the image to keep lacks;
        ``protected``: why a media item stays that the plan might remove: ``chosen`` by a person; ``best`` of a group
        that would lose all members; ``last``, as clean-ups removed its copies; else null.

        Examples:
            >>> plan = ds.plan_cleanup(duplicates="exact")
            >>> plan.to_arrow().select(["path", "action", "reason"]).to_pylist()
            [{'path': 'cat-1-copy.jpg', 'action': 'remove', 'reason': 'same content as cat-1.jpg'}, {'path':
              'cat-1.jpg', 'action': 'keep', 'reason': 'kept of 2 files with equal content: it has the shortest
              file name'}]
        """
        return self._plan.rows

    def removed_ids(self) -> list[str]:
        """Return the ids of the media to remove, in the order of ingestion.

        Examples:
            >>> ds.select(ds.plan_cleanup(issues=["dark"]).removed_ids())[0]["image_filename"]
            'night.jpg'
        """
        ids: list[str] = self._removed()["media_id"].to_pylist()
        return ids

    @property
    def summary(self) -> CleanupSummary:
        """The numbers of media to remove, by reason, and the size of their files.

        Examples:
            >>> ds.plan_cleanup(duplicates=0.96, issues=["dark"]).summary.counts
            {'dark': 1, 'duplicates': 2}
        """
        removed = self._removed()
        totals = [("issue_type", "count"), ("size_bytes", "sum")]
        by_reason = removed.group_by("issue_type").aggregate(totals).sort_by("issue_type").to_pylist()
        return CleanupSummary(
            removed=len(removed),
            kept=pc.count_distinct(removed["kept_media_id"]).as_py(),
            size_bytes=pc.sum(removed["size_bytes"]).as_py() or 0,
            counts={each["issue_type"]: each["issue_type_count"] for each in by_reason},
            sizes={each["issue_type"]: each["size_bytes_sum"] or 0 for each in by_reason},
            warnings=len(removed) - removed["warning"].null_count,
            protected=pc.count(self._plan.rows["protected"]).as_py(),
            unsure=self._plan.n_unsure,
        )

    @property
    def words(self) -> str:
        """The summary in words.

        Examples:
            >>> ds.plan_cleanup(issues=["dark", "corrupted"]).words
            '2 media to remove: 1 corrupted, 1 dark; ... KB of files; 0 kept in their place'
        """
        summary = self.summary
        counts = ", ".join(f"{count:,} {_REASONS.get(reason, reason)}" for reason, count in summary.counts.items())
        size = f"; {bytes_text(summary.size_bytes)} of files" if summary.size_bytes else ""
        removed = f"{counted(summary.removed, 'media')} to remove" + (f": {counts}" if counts else "")
        warned = f"; {summary.warnings:,} with labels that what stays lacks" if summary.warnings else ""
        stays = "stays as chosen or last copy" if summary.protected == 1 else "stay as chosen or last copies"
        protected = f"; {summary.protected:,} {stays}" if summary.protected else ""
        unsure = (
            f"; {counted(summary.unsure, 'groups')} left out, as the original is not sure" if summary.unsure else ""
        )
        return f"{removed}{size}; {summary.kept:,} kept in their place{protected}{warned}{unsure}"

    def without(self, selection: str | Sequence[str]) -> "CleanupPlan":
        """Return the plan that leaves some of the media to remove in the dataset; all else stays as it is.

        Args:
            selection: a media id, or several.

        Raises:
            InvalidInput: the plan does not remove one of the media; or the selection is invalid.

        Examples:
            >>> plan = ds.plan_cleanup(duplicates=0.96)
            >>> len(plan), len(plan.without(ds.media_id("cat-1-copy.jpg")))
            (2, 1)
        """
        return CleanupPlan(self._context, self._media, self._plan.without(as_selection(selection)))

    def page(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page with the images to remove and to keep; return its path.

        It shows up to 60 groups, the largest, and up to 24 media of each issue, the worst.

        Raises:
            InvalidInput: the file cannot be written.

        Examples:
            >>> ds.plan_cleanup(issues=["dark"]).page("review.html").name
            'review.html'
        """
        target = user_path(path)
        with whole_file(target) as file, progress_bar("Showing") as progress:
            head = [html.heading("Clean-up plan", 1), html.note(self.words)]
            parts = [*head, *self._parts(*_ON_PAGE, progress=progress)]
            file.write(html.page("Framedex clean-up plan", *parts).encode())
        return target

    @overload
    def apply(self, *, delete_files: bool = False, wait: Literal[True] = True) -> CleanupResult: ...

    @overload
    def apply(self, *, delete_files: bool = False, wait: bool) -> CleanupResult | Task: ...

    def apply(self, *, delete_files: bool = False, wait: bool = True) -> CleanupResult | Task:
        """Remove the media of the plan in one commit, with a snapshot of the state before.

        It is one step of the journal. ``dataset.undo()`` brings the media back, as does
        ``dataset.restore(result.snapshot)``, but neither restores deleted files: the step that ``undo`` returns has the
        number of the media without a file. What stays in place of removed copies is marked, so that no later clean-up
        removes it as the last one. If the plan has the basket, what stays leaves the basket.

        Args:
            delete_files: also delete the files of the removed media. A file is deleted only if it is below a local
                source folder, its size and content are as ingested, it was decoded or is known to be a damaged image or
                video, and no other media of the workspace or its snapshots use the file, directly or through a link. A
                link in place of a file is deleted; its target stays. Files behind a link to a folder outside of the
                source folder stay, too. The result has the files that stay, with the reasons. The deletion begins after
                the media are removed. If it is interrupted, a retry of the task, in any process, continues with exactly
                these files, while the snapshot exists. If another task that reads files, clones or restores begins
                meanwhile, the remaining files stay.
            wait: return when the task is done, showing progress; else return the task at once, type MEDIA_DELETION.

        Returns:
            the counts of removed media and deleted files; the task if *wait* is False.

        Raises:
            Conflict: the dataset has changed since the plan was made, or another of its tasks is running; or files are
                to be deleted while a task of another dataset reads files, clones or restores.
            Forbidden: the settings do not allow snapshots.
            InvalidInput: *delete_files* is neither True nor False, or True without *wait*.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> result = ds.plan_cleanup(issues=["dark"]).apply()
            >>> ds.count()
            32
            >>> ds.restore(result.snapshot)
            <framedex.Task SNAPSHOT_RESTORE COMPLETED: ...>
            >>> ds.count()
            33
        """
        check_flag("delete_files", delete_files)
        if delete_files and not wait:
            raise InvalidInput(
                "files are deleted after the media are removed for good: delete_files=True needs wait=True"
            )
        if not len(self):
            return CleanupResult(removed=0, snapshot=None, files_deleted=0, files_left=0, files_failed=[])
        removal = self._removal(delete_files=delete_files)
        task = self._start(removal)
        if not wait:
            return task
        wait_for(task, Operation.CLEANUP)
        assert removal.snapshot_id is not None, "media are removed with a snapshot"
        with self._context.catalog.read() as connection:
            snapshot = snapshot_rows.find_snapshot(connection, self._media.dataset_id, removal.snapshot_id)
        return CleanupResult(
            removed=len(self),
            snapshot=snapshot,
            files_deleted=removal.deleted.deleted,
            files_left=removal.deleted.left,
            files_failed=removal.deleted.failed,
        )

    def start(self, *, delete_files: bool = False) -> Task:
        """Start the task that :meth:`apply` waits for, and return it; which files stay is not told then.

        Raises:
            Conflict, Forbidden, ReadOnly: as for :meth:`apply`.
            InvalidInput: *delete_files* is neither True nor False, or the plan removes nothing.

        Examples:
            >>> ds.plan_cleanup(issues=["dark"]).start().wait().status_message
            'done'
        """
        check_flag("delete_files", delete_files)
        if not len(self):
            raise InvalidInput("the plan removes nothing")
        return self._start(self._removal(delete_files=delete_files))

    def _removal(self, *, delete_files: bool) -> Removal:
        removal = Removal(
            self._context, self._media, RemovedRows.of(self._plan), description=self.words, with_files=delete_files
        )
        if delete_files:
            removal.check_no_readers()
        return removal

    def _start(self, removal: Removal) -> Task:
        context, dataset_id = self._context, self._media.dataset_id
        if not context.settings.dataset_snapshots_enabled:
            raise Forbidden("Snapshot feature is not enabled, and without one a clean-up could not be undone")
        with context.catalog.read() as connection:
            removal.check_same(datasets.head(connection, dataset_id))  # checked first, as it has the clearest message
        return start(
            context,
            dataset_id,
            TaskType.MEDIA_DELETION,
            removal,
            operation=Operation.CLEANUP,
            allowed=(DatasetStatus.READY,),
            config=removal.config,
            in_transaction=lambda _connection, head: removal.check_same(head),
        )

    def __repr__(self) -> str:
        return f"<framedex.CleanupPlan: {self.words}>"

    def _repr_html_(self) -> str:
        return html.block(html.heading("Clean-up plan"), html.note(self.words), *self._parts(*_SHOWN))

    def _removed(self) -> pa.Table:
        return self._plan.rows.filter(pc.equal(self._plan.rows["action"], "remove"))

    def _parts(self, groups: int, media: int, *, progress: Callable[[str, float], None] | None = None) -> Iterator[str]:
        """Yield the HTML of the largest groups and of the worst media of each issue."""
        return plan_parts(
            self._plan.rows, self.summary.counts, self._jpegs, groups=groups, media=media, progress=progress
        )

    def _jpegs(self, media_ids: Sequence[str]) -> list[bytes | None]:
        folder, keep = self._context.layout.thumbnails(self._media.dataset_id), not self._context.catalog.read_only
        with suppress(OSError):  # the planned state was deleted from the disk
            return read_thumbnails(self._media, media_ids, self._context.settings, folder=folder, keep=keep, size=_SIDE)
        return [None] * len(media_ids)
