"""A workspace: a folder with datasets."""

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from framedex.api.dataset import Dataset
from framedex.api.disk_usage import DiskUsage, read_usage
from framedex.api.retry import creation_config, rebuild_job
from framedex.encoders import Encoder, TextEncoder, choose_text_encoder, weights_of
from framedex.errors import Forbidden
from framedex.jobs.create import create
from framedex.jobs.ingest.content import PRECOMPUTED, Content, FilesInput, check_thresholds, open_content, with_boxes
from framedex.jobs.ingest.vectors import THRESHOLDS
from framedex.media.frame_sampling import Sampling
from framedex.naming import check_dataset_name
from framedex.operations.context import Context
from framedex.operations.integrity.check import check
from framedex.operations.integrity.recover import recover
from framedex.operations.starting import delete_dataset, delete_if_stopped, new_job_context, wait_for
from framedex.operations.task_pages import TaskSearch, list_tasks, task_filters
from framedex.operations.vacuum import AutoClean, vacuum
from framedex.records import (
    CheckResult,
    DatasetRecord,
    EmbeddingConfig,
    RecoveryResult,
    TaskFilters,
    TaskPage,
    TaskType,
    VacuumResult,
)
from framedex.render.progress import progress_bar
from framedex.search.vectors.indices import VectorIndices
from framedex.settings import Settings, load_settings, user_path
from framedex.storage import datasets
from framedex.storage.catalog import open_catalog
from framedex.storage.column_cache import ColumnCache
from framedex.storage.heads import Heads
from framedex.storage.layout import open_layout
from framedex.storage.listing import fail_interrupted_tasks, is_unwritable
from framedex.storage.sql import Sql
from framedex.tasks import Exports, Runner, Task


class Workspace:
    """A folder on disk that holds datasets; opened or created by naming it. A context manager.

    Any number of processes may read a workspace at a time, also while one writes to it.

    Threads may share a Workspace: they write in the order in which they ask. After ``fork()`` the child can read by
    what its parent opened, with BLAS on one thread, and each writing raises; it opens the workspace again to write. To
    pickle a Workspace, or what belongs to it, raises: workers open the workspace themselves.

    On a full disk a workspace can be read. :meth:`vacuum` and :meth:`delete_dataset` have some bytes of the disk in
    reserve, so that they work there, too.

    Args:
        folder: the workspace; created if it does not exist or is empty.
        read_only: open an existing workspace without changing anything in it. A folder that cannot be written is
            opened so by itself.
        settings: limits and defaults; from the environment where not given.
        text_encoder: by which captions are searched for what they mean: a name or a TextEncoder, in place of that of
            the settings.

    Raises:
        InvalidInput: there is no such text encoder, or a setting of the environment cannot be used.
        WorkspaceError: the folder cannot be used as a workspace.
        FormatTooNew: a newer version of Framedex wrote it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        settings: Settings | None = None,
        text_encoder: str | TextEncoder | None = None,
    ) -> None:
        settings = settings or load_settings()
        if text_encoder is not None:
            settings = settings.model_copy(update={"text_encoder": choose_text_encoder(text_encoder).name})
        path = user_path(folder)
        read_only = read_only or is_unwritable(path)
        layout = open_layout(path, read_only=read_only)
        catalog = open_catalog(layout.catalog, read_only=read_only)
        runner = Runner(catalog, user=settings.user, heartbeat_s=settings.heartbeat_s)
        exports = Exports(catalog, user=settings.user, heartbeat_s=settings.heartbeat_s)
        columns = ColumnCache(sql := Sql(), settings.column_cache_bytes)
        self._context = Context(layout, catalog, sql, runner, exports, settings, VectorIndices(), columns, Heads())
        runner.rebuild_job = partial(rebuild_job, self._context)
        runner.after_commit = AutoClean(self._context)
        self._fail_interrupted()
        if not catalog.read_only:
            catalog.settle_manifests()

    @staticmethod
    def recover(folder: str | os.PathLike[str]) -> RecoveryResult:
        """Make the catalog of a workspace again, of what the folder of each dataset says, and return what came back.

        Datasets come back as they were committed last, with tags, labels, captions, fields, decisions and snapshots.
        The history of tasks and exports does not. A damaged catalog is kept under another name. No other process may
        use the workspace meanwhile.

        Raises:
            Conflict: the catalog is there and sound, so that there is nothing to recover.
            WorkspaceError: the folder is no workspace, or cannot be read or written.
        """
        with progress_bar("Recovering") as progress:
            return recover(folder, progress=progress)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._context.layout.root

    def create_dataset(
        self,
        name: str,
        source: Any,
        encoder: str | Encoder = "auto",
        wait: bool = True,
        *,
        thresholds: Sequence[float] | None = None,
        frames_per_second: float = 1.0,
        scene_changes: bool = False,
        boxes: Any = None,
    ) -> Dataset:
        """Make a dataset of pictures and videos: read, measure, encode, group and compare them.

        Of a video frames become media, which are then treated as pictures are.

        Args:
            name: up to 255 characters, without slashes; unique in the workspace.
            source: a folder (searched recursively; hidden files are left out), a ``.txt``, ``.csv`` or ``.parquet``
                list of paths, or an Arrow table or Parquet file with ``uri`` and ``embedding`` (and optionally ``width,
                height, caption, label``) of its own. ``annotations.json`` (COCO) and
                ``image_annotations.csv|parquet`` in a source folder give labels and captions.
            encoder: ``auto``, a registered name such as ``gist``, or an Encoder.
            wait: return when it is done, showing progress; else at once, with the task as ``dataset.task``.
            thresholds: five ascending cosine distances for cluster levels 0 to 4; by default the encoder's.
            frames_per_second: of videos so many frames a second of presentation time, the first one always; above 0,
                up to 1000. Holds for what is added later, too.
            scene_changes: also the first frame of each scene of a video, which takes longer to find out.
            boxes: files with boxes around objects in the pictures, beside those that are found in the folder: a COCO
                file, a table, or a folder of Pascal VOC or YOLO files, or a list of these; see docs/objects.md.

        Raises:
            InvalidInput: the name, source or another argument cannot be used; nothing is left behind.
            Conflict: the name is taken.
            TaskFailed: something else went wrong; nothing is left behind but the record of the task.
            ReadOnly: the workspace was opened for reading.
        """
        self._check_writable()
        check_dataset_name(name)
        self._check_free(name)
        sampling = Sampling(frames_per_second, scene_changes)
        content = open_content(source, encoder, self._context.settings)
        content = content if boxes is None else with_boxes(content, boxes)
        config = _config(content, thresholds, sampling)
        with self._context.catalog.write() as connection:
            dataset_id = datasets.insert_dataset(connection, name, owned_by=self._context.settings.user)
            record = datasets.find_dataset(connection, dataset_id)
            asked = creation_config(content, config)
            task_id = self._context.runner.insert(connection, record, TaskType.DATASET_CREATION, asked)
        job = new_job_context(self._context, dataset_id, config)
        with delete_if_stopped(self._context, dataset_id, task_id):
            task = Task.start(
                self._context.runner, task_id, dataset_id, lambda progress: create(content, job, progress=progress)
            )
            if wait:
                wait_for(task, f"Creating {name!r}")
        return Dataset(self._context, dataset_id, task)

    def dataset(self, name_or_id: str) -> Dataset:
        """Return a dataset by its name or id.

        Raises:
            NotFound: there is none.
        """
        self._fail_interrupted()
        with self._context.catalog.read() as connection:
            return Dataset(self._context, datasets.find_dataset(connection, name_or_id).id)

    def datasets(self) -> list[DatasetRecord]:
        """Return the records of all datasets, newest first."""
        self._fail_interrupted()
        with self._context.catalog.read() as connection:
            return datasets.list_datasets(connection)

    def delete_dataset(self, name_or_id: str) -> None:
        """Delete a dataset and all that Framedex keeps for it; the pictures themselves stay where they are.

        Raises:
            Forbidden: the settings do not allow to delete datasets.
            NotFound: there is none.
            Conflict: a task of it is under way.
        """
        if not self._context.settings.delete_dataset_enabled:
            raise Forbidden("Delete dataset feature is not enabled")
        self._check_writable()
        self._fail_interrupted()
        delete_dataset(self._context, name_or_id)

    def tasks(self, **query: Unpack[TaskSearch]) -> TaskPage:
        """Return a page of tasks, newest first.

        Args:
            query: any of ``dataset_id, dataset_name, task_type, task_status, created_by`` (values that must be equal),
                ``start_time_from, start_time_to`` (datetime or ISO 8601 text, UTC without a zone; both included),
                ``sort_by`` (``start_time, status, task_type, dataset_name, dataset_id, created_by``), ``sort_order``
                (``asc`` or ``desc``), ``page`` (from 1) and ``page_size`` (5 to 50, default 20).

        Raises:
            InvalidInput: an argument is unknown or outside of its range.
        """
        self._fail_interrupted()
        return list_tasks(self._context, **query)

    def task_filters(
        self, start_time_from: datetime | str | None = None, start_time_to: datetime | str | None = None
    ) -> TaskFilters:
        """Return the values that tasks of a time can be filtered by.

        Raises:
            InvalidInput: a time cannot be understood.
        """
        return task_filters(self._context, start_time_from, start_time_to)

    def task(self, task_id: str) -> Task:
        """Return a task, of whichever process: to look at, wait for, abort or retry.

        Raises:
            NotFound: there is none of that id.
        """
        self._fail_interrupted()
        task = Task(self._context.runner, task_id)
        _ = task.record  # says if there is none
        return task

    def vacuum(self, *, older_than_s: float | None = None) -> VacuumResult:
        """Free the disk of all that no dataset and no snapshot needs, and return what was freed.

        That is: old states of tables, uploaded files that no state names, thumbnails of media that are gone, and what
        is left of datasets that were deleted and of work that was interrupted. Old states also go by themselves after
        changes of a dataset. Others may read and write meanwhile; a dataset whose task is under way is left alone.

        Args:
            older_than_s: what was superseded longer ago goes; by default ``settings.keep_versions_s``, so that others
                who still read it are not disturbed. What a failed or aborted task could go on from when it is retried
                stays for 7 days by default; if seconds are given, they hold for that, too, and a retry begins anew.

        Raises:
            InvalidInput: that is no number of seconds.
            ReadOnly: the workspace was opened for reading.
        """
        with progress_bar("Freeing") as progress:
            return vacuum(self._context, older_than_s=older_than_s, progress=progress)

    def check(self, *names: str, repair: bool = False) -> CheckResult:
        """Verify the catalog, the tables, the uploaded files and the caches of datasets; return what is wrong.

        Everything is read once, some of it at a time. Others may read and write meanwhile.

        Args:
            names: names or ids of datasets; without any all are checked, and what belongs to none.
            repair: repair what can be: damaged caches and leftovers go, manifests are written again, and an entry of
                the catalog that is missing, older or damaged is made of what the dataset's folder says. What became of
                each finding is its ``repaired``.

        Raises:
            NotFound: there is no dataset of a name.
            ReadOnly: repairs are asked for, and the workspace was opened for reading.
        """
        with progress_bar("Checking") as progress:
            return check(self._context, names or None, repair=repair, progress=progress)

    def disk_usage(self) -> DiskUsage:
        """Return what uses the disk: which parts of which datasets, and how much of it :meth:`vacuum` can free."""
        return read_usage(self._context)

    def close(self) -> None:
        """Abort what this process still runs here, and close the catalog."""
        self._context.runner.close()
        self._context.exports.close()
        self._context.catalog.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<framedex.Workspace {str(self.path)!r}: {len(self.datasets())} datasets>"

    def _check_writable(self) -> None:
        self._context.catalog.check_writable()

    def _check_free(self, name: str) -> None:
        """Say that a name is taken before its source is looked at, which may take long."""
        self._fail_interrupted()
        with self._context.catalog.read() as connection:
            datasets.check_free(connection, name)

    def _fail_interrupted(self) -> None:
        """Fail the tasks of processes that died; looked at whenever datasets are."""
        if self._context.catalog.read_only:
            return
        self._context.runner.settle()
        fail_interrupted_tasks(self._context.catalog)


def _config(content: Content, thresholds: Sequence[float] | None, sampling: Sampling) -> EmbeddingConfig:
    if isinstance(content, FilesInput):
        chosen = content.encoder
        name, dimension, usual, reason = chosen.name, chosen.dimension, chosen.thresholds, content.reason
        weights = weights_of(chosen)
    else:
        name, dimension, usual, reason = PRECOMPUTED, content.dimension, THRESHOLDS, "the table brings embeddings"
        weights = None
    cuts = check_thresholds(usual if thresholds is None else thresholds)
    return EmbeddingConfig(
        encoder=name,
        dimension=dimension,
        thresholds=cuts,
        reason=reason,
        weights=weights,
        frames_per_second=sampling.frames_per_second,
        scene_changes=sampling.scene_changes,
    )
