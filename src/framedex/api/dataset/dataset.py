"""A dataset: what can be done to one."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.api.dataset.edits import DatasetEdits
from framedex.api.dataset.enrichment import DatasetEnrichment
from framedex.api.dataset.exports import DatasetExports
from framedex.api.dataset.lifecycle import DatasetLifecycle
from framedex.api.dataset.searches import DatasetSearches
from framedex.api.report import report_html
from framedex.api.result_pages import DuplicateGroups, ExplorePage
from framedex.api.view import ExploreSearch, View
from framedex.browse import explore as search_explore
from framedex.cleanup.plan import CleanupPlan, plan_cleanup
from framedex.errors import Conflict, NotIndexed
from framedex.export.files import whole_file
from framedex.images.reading import read_media_pixels
from framedex.images.thumbnails import read_thumbnail, thumbnail_uri
from framedex.jobs.add import reindex
from framedex.jobs.context import JobContext
from framedex.jobs.ingest.content import AdditionRequest, check_thresholds
from framedex.operations import enrichment, snapshots
from framedex.operations.additions import check_request, start_addition, start_objects
from framedex.operations.context import Context, open_media
from framedex.operations.decisions import decide_not_duplicates, duplicate_decisions, withdraw_decision
from framedex.operations.names import Operation
from framedex.operations.starting import SETTLED, delete_if_stopped, start, wait_for
from framedex.records import (
    DatasetRecord,
    DatasetStatus,
    DuplicateDecision,
    DuplicateGroup,
    EmbeddingConfig,
    Snapshot,
    TaskRecord,
    TaskType,
)
from framedex.render import html
from framedex.render.progress import progress_bar
from framedex.settings import user_path
from framedex.storage import datasets, task_rows
from framedex.storage.objects import media_containing, objects_of
from framedex.storage.task_rows import TaskQuery
from framedex.tasks import Commit, Task, TaskProgress

if TYPE_CHECKING:
    import pandas as pd


class Dataset(DatasetEdits, DatasetEnrichment, DatasetExports, DatasetSearches, DatasetLifecycle):
    """One dataset of a workspace. Readers see its last committed state and never wait.

    Attributes:
        id: the dataset's UUID.
        task: the task that this process started for it, if any.
    """

    def __init__(self, context: Context, dataset_id: str, task: Task | None = None) -> None:
        self._context, self.id, self.task = context, dataset_id, task

    @property
    def info(self) -> DatasetRecord:
        """The interface's Dataset record: status, progress, counts."""
        with self._context.catalog.read() as connection:
            return datasets.find_dataset(connection, self.id)

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.info.display_name

    @property
    def embedding_config(self) -> EmbeddingConfig:
        """The encoder, its dimension and the clustering thresholds that the dataset was indexed with.

        Raises:
            NotIndexed: it was not indexed yet.
        """
        with self._context.catalog.read() as connection:
            config = datasets.embedding_config(connection, self.id)
        if config is None:
            raise NotIndexed("Dataset has no embedding config")
        return config

    @property
    def skipped(self) -> dict[str, int]:
        """What ingestion left out, by reason."""
        return dict(open_media(self._context, self.id).generation.summary.skipped)

    @property
    def box_problems(self) -> list[str]:
        """What was wrong with the annotations of objects, with the place and what would be right; the first hundred."""
        return list(open_media(self._context, self.id).generation.summary.box_problems)

    @property
    def last_task(self) -> TaskRecord | None:
        """The dataset's newest task, of any process; None if there was none."""
        with self._context.catalog.read() as connection:
            found = task_rows.list_tasks(connection, TaskQuery({"dataset_id": self.id}), limit=1)
        return found[0] if found else None

    def where(self, vql: Sequence[Any]) -> View:
        """Return the media that pass a VQL filter, as in ``[{"labels": {"op": "is", "value": "dog"}}]``.

        Args:
            vql: such a list, the same as JSON text, or an expression: ``framedex.vql.labels("dog")``.

        Raises:
            InvalidFilter: the filter cannot be understood.
        """
        return self._view().where(vql)

    @property
    def objects(self) -> View:
        """The objects in the media as a view, which has each as a media item of its own; empty where there are none."""
        return View(self._context, self.id, objects=True)

    def explore(
        self,
        entity_type: str = "IMAGES",
        threshold: int = 0,
        page_number: int = 0,
        vql: Sequence[Any] | None = None,
        **search: Unpack[ExploreSearch],
    ) -> ExplorePage:
        """Return a page of 100 clusters, largest or best first; see :meth:`View.explore` for all parameters."""
        return self._view().explore(entity_type, threshold, page_number, vql, **search)

    def count(self) -> int:
        """Return the number of media."""
        return self._view().count()

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item; see :meth:`View.to_arrow`."""
        return self._view().to_arrow(columns)

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return a row for each media item; see :meth:`View.to_pandas`."""
        return self._view().to_pandas(columns)

    def issues(self, issue_type: str | None = None, *, limit: int | None = None) -> pa.Table:
        """Return a row for each issue found, worst first; see :meth:`View.issues`."""
        return self._view().issues(issue_type, limit=limit)

    def duplicates(
        self,
        threshold: float = 0.96,
        *,
        exact: bool = False,
        limit: int | None = None,
        entity_type: str = "IMAGES",
    ) -> DuplicateGroups:
        """Return groups of near-duplicates or of equal files, largest first; see :meth:`View.duplicates`."""
        return self._view().duplicates(threshold, exact=exact, limit=limit, entity_type=entity_type)

    def add_media(
        self,
        path: Any = None,
        *,
        files: Sequence[Any] | None = None,
        archive: str | os.PathLike[str] | None = None,
        s3_uri: str | None = None,
        assume_role: str | None = None,
        auto_reindex: bool = False,
        wait: bool = True,
        batch_n_images: int | None = None,
        batch_n_videos: int | None = None,
        batch_n_objects: int | None = None,
        use_spot: bool | None = None,
    ) -> Task:
        """Add media: they join the clusters and groups that are there, or found their own, until :meth:`reindex`.

        Exactly one source is given. Media that the dataset has already (the same file below the same folder, the same
        uploaded name, the same uri) are left out; files that have changed replace theirs. What else the dataset holds,
        and its ids, do not change.

        Args:
            path: what :meth:`Workspace.create_dataset` takes as a source: a folder, a picture, a video, a list - or,
                where the dataset was made of one, a table with ``uri`` and ``embedding``.
            files: paths, whose files stay where they are, and ``(name, bytes)`` pairs or binary files with a ``name``,
                whose contents are kept in the workspace.
            archive: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file; its pictures are kept in the workspace. Of
                several of one name the last one counts. Annotation files in its root are used as those of a folder.
            s3_uri: a folder in a bucket, ``s3://bucket/folder``, or a manifest there (``.txt``, ``.csv``,
                ``.parquet``) of URIs or of paths relative to it. The pictures stay there.
            assume_role: ARN of the role to assume for reading these, now and later.
            auto_reindex: settle everything at once.
            wait: return when it is done, showing progress; else as soon as what is uploaded has been.
            batch_n_images: how many to expect. It is checked; nothing here is reserved for them.
            batch_n_videos: the same.
            batch_n_objects: the same.
            use_spot: whether machines may be used that can be taken away. It is checked; there are none here.

        Returns:
            the task, type MEDIA_ADDITION. Afterwards the dataset's status is PARTIAL INDEX, or READY with
            *auto_reindex*.

        Raises:
            InvalidInput: none or several sources are given, or it holds nothing that can be added to this dataset.
            NotIndexed: the dataset has no index.
            Conflict: another task is under way.
            Forbidden: the settings do not allow additions.
            Unavailable: the bucket cannot be reached, or does not let its objects be listed.
            WorkspaceError: what is uploaded cannot be written, or the workspace was opened for reading.
        """
        check_request(
            self._context,
            batch_n_images=batch_n_images,
            batch_n_videos=batch_n_videos,
            batch_n_objects=batch_n_objects,
            use_spot=use_spot,
        )
        given = AdditionRequest(path, files, archive, s3_uri, assume_role)
        self.task = start_addition(self._context, self.id, given, auto_reindex=auto_reindex, show_progress=wait)
        if wait:
            wait_for(self.task, f"add_media {self.name!r}")
        return self.task

    def add_objects(self, boxes: Any, *, wait: bool = True) -> Task:
        """Add objects: boxes around things in the pictures, each with a label, from annotation files.

        What is in each box is measured, encoded and indexed as pictures are. Boxes that the dataset has already are
        left out. :attr:`skipped` then says what could not be used, and :attr:`box_problems` why.

        Args:
            boxes: a COCO file (``.json``), a table (``.csv``, ``.parquet`` with ``filename, col_x, row_y, width,
                height, label``), a folder of Pascal VOC or YOLO files, or a list of these. Names of pictures are paths
                within the folder that the dataset is made of, or bare names.
            wait: return when it is done, showing progress; else at once.

        Returns:
            the task, type MEDIA_ADDITION. Where there were objects before, the dataset's status is PARTIAL INDEX then.

        Raises:
            InvalidInput: that is no source of boxes, or the dataset brought its embeddings.
            NotIndexed: the dataset has no index.
            Conflict: another task is under way.
        """
        self.task = start_objects(self._context, self.id, boxes)
        if wait:
            wait_for(self.task, f"add_objects {self.name!r}")
        return self.task

    def reindex(self, *, thresholds: Sequence[float] | None = None, wait: bool = True) -> Task:
        """Find neighbours, clusters, duplicates and scores anew.

        Clusters and groups that keep most of their members keep their ids.

        Args:
            thresholds: five ascending cosine distances for cluster levels 0 to 4, from now on; by default as before.
                With them a dataset that is READY can be indexed anew, too.
            wait: return when it is done, showing progress; else at once.

        Raises:
            Conflict: the dataset is not PARTIAL INDEX, or another task is under way.
            InvalidInput: the thresholds do not ascend.
            ReadOnly: the workspace was opened for reading.
        """
        cuts = None if thresholds is None else check_thresholds(thresholds)
        return self._start(
            TaskType.REINDEX,
            lambda job, progress: reindex(job, progress=progress),
            Operation.REINDEX,
            wait=wait,
            allowed=(DatasetStatus.PARTIAL_INDEX,) if cuts is None else SETTLED,
            status_shown=DatasetStatus.INDEXING,
            thresholds=cuts,
            config={"operation": Operation.REINDEX, "thresholds": cuts},
        )

    def _start(
        self,
        task_type: TaskType,
        job: Callable[[JobContext, TaskProgress], Commit],
        operation: Operation,
        *,
        wait: bool,
        **options: Any,
    ) -> Task:
        self.task = start(self._context, self.id, task_type, job, operation=operation, **options)
        if wait:
            wait_for(self.task, f"{operation} {self.name!r}")
        return self.task

    def clone(self, snapshot: Snapshot | str = "current", *, wait: bool = True) -> "Dataset":
        """Make a dataset of a snapshot, named ``… (cloned)``. Both share their files, and neither needs the other.

        Args:
            snapshot: its record, its id, or ``current``.
            wait: return when it is done; else at once, with the task as ``dataset.task``.

        Raises:
            NotFound: there is no such snapshot.
            Conflict: the dataset's status does not allow it.
            Error: the task failed; nothing is left behind but its record.
        """
        new_id, task = snapshots.start_clone(self._context, self.id, snapshot)
        if wait:
            with delete_if_stopped(self._context, new_id, task.id):
                wait_for(task, Operation.CLONE)
        return Dataset(self._context, new_id, task)

    def enrich(self, models: Mapping[str, str], *, wait: bool = True) -> "Dataset":
        """Make a dataset of this one with what models say of its pictures, named ``… (enriched)``.

        This one stays as it is, and is READ ONLY meanwhile. Both share their files: the new one has new columns beside
        them. ``MULTIMODEL_IMAGE_ENCODING`` encodes all pictures anew and finds neighbours, clusters and duplicates by
        that; ``IMAGE_TAGGING`` adds labels to those that are there. A picture that cannot be read now has no embedding,
        or no new labels.

        Args:
            models: ids of models by type, as :meth:`list_models` has them.
            wait: return when it is done, showing progress; else at once, with the task as ``dataset.task``.

        Raises:
            InvalidInput: there is no such type, or a model is of another type or not Active.
            NotFound: there is no such model.
            Conflict: the dataset is not READY, another task is under way, or a model depends on a type that was not
                applied.
            Unavailable: no picture at all can be read.
            Error: the task failed; nothing is left behind but its record.
        """
        new_id, task = enrichment.start_enrichment(self._context, self.id, models)
        if wait:
            with delete_if_stopped(self._context, new_id, task.id):
                wait_for(task, f"enrich {self.name!r}")
        return Dataset(self._context, new_id, task)

    def not_duplicates(self, media_ids: Sequence[str] | DuplicateGroup) -> DuplicateDecision:
        """Decide that no two of some media are duplicates: a pair, or all members of a group.

        They are never in one near-duplicate group again, at any level, whatever is added or indexed anew. The groups
        change at once.

        Args:
            media_ids: two or more; or a group of :meth:`duplicates`, which stands for all of its members.

        Raises:
            InvalidInput: these are not two or more different ids.
            NotFound: one is not in the dataset.
            Conflict: a task is under way.
        """
        ids = media_ids.media_ids if isinstance(media_ids, DuplicateGroup) else media_ids
        return decide_not_duplicates(self._context, self.id, ids)

    def duplicate_decisions(self) -> list[DuplicateDecision]:
        """Return what was decided by :meth:`not_duplicates`, oldest first."""
        return duplicate_decisions(self._context, self.id)

    def withdraw_decision(self, decision_id: str) -> None:
        """Take a decision back; the groups change at once.

        Raises:
            NotFound: there is no such decision.
            Conflict: a task is under way.
        """
        withdraw_decision(self._context, self.id, decision_id)

    def plan_cleanup(
        self,
        *,
        duplicates: float | str | None = None,
        issues: Sequence[str] | Mapping[str, float] = (),
        keep: str = "best",
        where: Sequence[Any] | None = None,
    ) -> CleanupPlan:
        """Return a plan of what to remove: to look at (:meth:`CleanupPlan.page`), and to carry out (``plan.apply()``).

        Media that have one of the issues go. Of each group of duplicates one stays that has none of them; if all have,
        none stays. Media that :meth:`not_duplicates` keeps apart are in no group together.

        Args:
            duplicates: near-duplicates at that similarity, 0 to 1 (the next stricter of the eight levels), or ``exact``
                for files of equal content; None for none.
            issues: names of issues, each with the dataset's own limit; or the least confidence, 0 to 1, by name.
            keep: which of a group stays: ``best``, as :meth:`duplicates` says; ``first`` in the order of ingestion; the
                ``oldest`` file; the ``largest`` picture.
            where: a VQL filter: only media that pass it go, or count as what stays.

        Raises:
            InvalidInput: an argument cannot be used, or nothing is asked for.
            InvalidFilter: the filter cannot be understood.
            Conflict: the dataset is PARTIAL INDEX: it has to be reindexed first; or it has nothing to show yet.
        """
        return plan_cleanup(self._context, self.id, duplicates=duplicates, issues=issues, keep=keep, where=where)

    def embeddings(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return (media ids, float32 of shape (N, D) and unit length) of the media that have an embedding."""
        return search_explore.vectors(open_media(self._context, self.id))

    def read(self, media_id: str) -> npt.NDArray[np.uint8]:
        """Return a picture, or what is in the box of an object: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            NotFound: there is no such media item or object, or its file is gone.
            CannotDecode: its file is no picture.
        """
        media = media_containing(open_media(self._context, self.id), media_id)
        return read_media_pixels(media, media_id, self._context.settings)

    def thumbnail(self, media_id: str) -> bytes:
        """Return a JPEG of a picture, or of what is in the box of an object; its longer side has at most 256 pixels.

        Raises:
            NotFound: there is no such media item or object, or its file is gone.
            CannotDecode: its file is no picture.
        """
        media, layout = open_media(self._context, self.id), self._context.layout
        if objects_of(media) is not None and thumbnail_uri(layout.thumbnails(self.id), media_id) is None:
            media = media_containing(media, media_id)
        folder, keep = layout.thumbnails(media.dataset_id), not self._context.catalog.read_only
        return read_thumbnail(media, media_id, self._context.settings, folder=folder, keep=keep)

    def report(self, path: str | os.PathLike[str], *, level: int = 3, extra: str = "") -> Path:
        """Write one self-contained HTML page with issues, near-duplicates, clusters and objects; return its path.

        Args:
            path: the file.
            level: the clustering level that is shown, 0 to 4.
            extra: HTML that comes first on the page.

        Raises:
            InvalidInput: the file cannot be written.
        """
        target = user_path(path)
        with progress_bar("Reporting") as progress:
            content = report_html(
                self.info,
                self.embedding_config,
                self._view(),
                objects=self.objects,
                level=level,
                extra=extra,
                progress=progress,
            )
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def __repr__(self) -> str:
        info = self.info
        videos = f", {info.n_videos} videos" if info.n_videos else ""
        return f"<framedex.Dataset {info.display_name!r}: {info.n_images} images{videos}, {info.status_new}>"

    def _repr_html_(self) -> str:
        info = self.info
        videos = f" · {info.n_videos:,} videos" if info.n_videos else ""
        head = html.heading(info.display_name, 2) + html.note(f"{info.n_images:,} images{videos} · {info.status_new}")
        try:
            summaries = self._view().issue_summaries()
        except Conflict:
            return html.block(head)
        found = html.bars((summary.issue_type, summary.count) for summary in summaries if summary.count)
        return html.block(head, found) + self._view()._repr_html_()

    def _view(self) -> View:
        return View(self._context, self.id)
