"""Plans of what to remove from a dataset: looked at first, then carried out, and undone by a snapshot."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa
import pyarrow.compute as pc

from framedex.checks import check_flag
from framedex.cleanup.choice import CleanupRequest
from framedex.cleanup.page import plan_parts
from framedex.cleanup.plan_rows import PlanRows, plan_rows
from framedex.cleanup.removal import Removal
from framedex.errors import Conflict, Forbidden, InvalidInput
from framedex.export.files import whole_file
from framedex.images.thumbnails import read_thumbnails
from framedex.operations.context import Context, open_media
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
from framedex.tasks import Task
from framedex.vql import parse

_SIDE = 160
_SHOWN = (6, 8)  # groups, and media of each issue
_ON_PAGE = (60, 24)


def plan_cleanup(
    context: Context, dataset_id: str, *, duplicates: Any, issues: Any, keep: Any, where: Sequence[Any] | None
) -> "CleanupPlan":
    """Return what would go and what would stay; see :meth:`framedex.Dataset.plan_cleanup`."""
    wanted, filters = CleanupRequest.parse(duplicates, issues, keep), parse(where)
    with context.catalog.read() as connection:
        _check_status(datasets.find_dataset(connection, dataset_id).status_new)
    media = open_media(context, dataset_id)
    return CleanupPlan(context, media, plan_rows(media, condition_for(context, media, filters), wanted))


def _check_status(status: DatasetStatus) -> None:
    if status is DatasetStatus.PARTIAL_INDEX:
        raise Conflict(
            f"Operation '{Operation.CLEANUP}' needs the dataset status {DatasetStatus.READY}; it is {status}: reindex "
            "first, for the snapshot that undoes a clean-up can only be made then"
        )


class CleanupPlan:
    """What would go from a dataset, what would stay in its place, and why. Nothing has happened yet.

    A plan holds for the state of the dataset that it was made of. A notebook shows it with pictures; its length is the
    number of media that would go.
    """

    def __init__(self, context: Context, media: Media, found: PlanRows) -> None:
        self._context, self._media, self._plan = context, media, found

    def __len__(self) -> int:
        """Return how many media would go."""
        return len(self._plan.removed)

    def to_arrow(self) -> pa.Table:
        """Return a row for each media item that would go, and for each that would stay of a group of which others go.

        The rows are in the order of ingestion. The columns are ``media_id, file_name, path``; ``action``: ``remove`` or
        ``keep``; ``reason`` in words; ``issue_type``: of several the one of the highest confidence, ``duplicates`` for
        what repeats another, null for what stays; ``group_id`` of the duplicates, and ``kept_media_id``: which of them
        stays, null where none does; ``confidence`` (0 to 1) of the issue, or the similarity: of what goes to what is
        most similar to it, of what stays the least one within its group; ``size_bytes`` of the file.
        """
        return self._plan.rows

    @property
    def summary(self) -> CleanupSummary:
        """How many media would go for which reason, and what their files take."""
        gone = self._gone()
        counted = pc.value_counts(gone["issue_type"]).to_pylist()
        counts = {each["values"]: each["counts"] for each in counted}
        return CleanupSummary(
            removed=len(gone),
            kept=len(self._plan.rows) - len(gone),
            size_bytes=pc.sum(gone["size_bytes"]).as_py() or 0,
            counts=dict(sorted(counts.items())),
        )

    @property
    def words(self) -> str:
        """The summary in words."""
        summary = self.summary
        counts = ", ".join(f"{count:,} {reason}" for reason, count in summary.counts.items())
        size = f"; {bytes_text(summary.size_bytes)} of files" if summary.size_bytes else ""
        what = f"{summary.removed:,} media go" + (f": {counts}" if counts else "")
        return f"{what}{size}; {summary.kept:,} stay in place of others"

    def page(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page: what would go beside what would stay, with pictures; return its path.

        It shows at most 60 groups, the largest, and the 24 worst media of each issue.

        Raises:
            InvalidInput: the file cannot be written.
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
        """Remove what would go, as one change of the dataset, with a snapshot of it as it was.

        ``dataset.restore(result.snapshot)`` undoes it; files that were deleted do not come back.

        Args:
            delete_files: also delete the files of the media that were removed. A file goes only if it lies below a
                local source folder, with the size and the content that were read, and no other media of this dataset,
                and none of another dataset of the workspace or its snapshots, are in the same file, be it by way of a
                link. Where a link stands for a file, the link goes, and what it leads to stays; nothing goes through a
                link to a folder outside of the source folder. Files that stay are reported with the reason. This
                begins when the media are removed for good. If it is interrupted, its task goes on with exactly these
                files when it is retried, in any process, as long as the snapshot is there. The rest of the files stays
                when a task begins meanwhile that reads files, clones or restores.
            wait: return when it is done, showing progress; else at once, with the task, type MEDIA_DELETION.

        Returns:
            what was done; nothing where nothing would go. The task, with *wait* false.

        Raises:
            Conflict: the dataset has changed since the plan was made, or another task of it is under way; or files are
                to be deleted while a task of another dataset reads some, clones or restores.
            Forbidden: the settings do not allow snapshots.
            InvalidInput: *delete_files* is neither True nor False, or True without *wait*.
            ReadOnly: the workspace was opened for reading.
        """
        check_flag("delete_files", delete_files)
        if delete_files and not wait:
            raise InvalidInput(
                "files are deleted after the media are removed for good: delete_files=True needs wait=True"
            )
        if not len(self):
            return CleanupResult(removed=0, snapshot=None, files_deleted=0, files_left=0, files_failed=[])
        removal = Removal(
            self._context, self._media, self._plan.removed, description=self.words, with_files=delete_files
        )
        if delete_files:
            removal.check_no_readers()
        task = self._start(removal)
        if not wait:
            return task
        wait_for(task, Operation.CLEANUP)
        assert removal.snapshot_id is not None, "media are removed with a snapshot"
        with self._context.catalog.read() as connection:
            kept = snapshot_rows.find_snapshot(connection, self._media.dataset_id, removal.snapshot_id)
        return CleanupResult(
            removed=len(self),
            snapshot=kept,
            files_deleted=removal.deleted.deleted,
            files_left=removal.deleted.left,
            files_failed=removal.deleted.failed,
        )

    def _start(self, removal: Removal) -> Task:
        context, dataset_id = self._context, self._media.dataset_id
        if not context.settings.dataset_snapshots_enabled:
            raise Forbidden("Snapshot feature is not enabled, and without one a clean-up could not be undone")
        with context.catalog.read() as connection:
            removal.check_same(datasets.head(connection, dataset_id))  # of what is in the way, this says most
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

    def _gone(self) -> pa.Table:
        return self._plan.rows.filter(pc.equal(self._plan.rows["action"], "remove"))

    def _parts(self, groups: int, media: int, *, progress: Callable[[str, float], None] | None = None) -> Iterator[str]:
        """Yield what is shown: so many groups, the largest, and so many media of each issue, the worst."""
        return plan_parts(
            self._plan.rows, self.summary.counts, self._jpegs, groups=groups, media=media, progress=progress
        )

    def _jpegs(self, media_ids: Sequence[str]) -> list[bytes | None]:
        folder, keep = self._context.layout.thumbnails(self._media.dataset_id), not self._context.catalog.read_only
        with suppress(OSError):  # the state that was planned for is gone from the disk by now
            return read_thumbnails(self._media, media_ids, self._context.settings, folder=folder, keep=keep, size=_SIDE)
        return [None] * len(media_ids)
