"""A workspace: a folder with datasets."""

import os
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Unpack

from framedex.api.dataset import Dataset
from framedex.api.dataset_table import datasets_html
from framedex.api.record_list import RecordList
from framedex.api.retry import rebuild_job
from framedex.api.upkeep import WorkspaceUpkeep
from framedex.core.checks import check_flag
from framedex.core.counts import counted
from framedex.core.lru_cache import LruCache
from framedex.core.naming import check_dataset_name
from framedex.encoders import Encoder, TextEncoder, choose_text_encoder
from framedex.errors import Conflict, Forbidden, InvalidInput, MissingDependency, NotFound, Unavailable
from framedex.jobs.ingest.content import with_boxes, with_interpolation
from framedex.media.frame_sampling import Sampling
from framedex.operations.backups.restore import count_restored, restore_files
from framedex.operations.catch_up import CatchUp
from framedex.operations.context import Context
from framedex.operations.creation import creation_config, creation_job, new_embedding_config, opened_source
from framedex.operations.monitoring import Monitor
from framedex.operations.orphans import clean_orphans
from framedex.operations.starting import delete_dataset, delete_if_stopped, wait_for
from framedex.operations.task_pages import TaskSearch, list_tasks, task_filters
from framedex.operations.vacuum import AutoClean, clean_expired_uploads
from framedex.records import (
    DatasetRecord,
    DatasetStatus,
    RestoreResult,
    TaskFilters,
    TaskPage,
    TaskRecord,
    TaskType,
)
from framedex.render.progress import progress_bar
from framedex.search.vectors.indices import VectorIndices
from framedex.settings import LiveSettings, Settings, check_executor, load_settings, user_path
from framedex.storage import datasets, task_rows
from framedex.storage.catalog import open_catalog
from framedex.storage.column_cache import ColumnCache
from framedex.storage.datasets import Creation
from framedex.storage.engines import import_engines
from framedex.storage.heads import Heads
from framedex.storage.layout import open_layout
from framedex.storage.listing import fail_interrupted_tasks, is_unwritable, reading_settled
from framedex.storage.sql import Sql
from framedex.tasks import Exports, Runner, Task, start_task
from framedex.tasks.runner import AfterCommit

_SELECTIONS_SHARE = 8  # divisor: the rows of ordered views may take 1/8 of the memory for columns


class FoundDataset(NamedTuple):
    """A dataset that was found by its id.

    Attributes:
        dataset: the dataset.
        record: its record at that moment.
        creation: its namespace, and the user account for which it was created.
    """

    dataset: Dataset
    record: DatasetRecord
    creation: Creation


def _after_commit(context: Context) -> AfterCommit:
    """Return a function that does the work after each change of a dataset."""
    clean, evaluate = AutoClean(context), Monitor(context)

    def run(dataset_id: str) -> None:
        clean(dataset_id)
        evaluate(dataset_id)

    return run


def workspace_of(dataset: Dataset) -> "Workspace":
    """Return a handle of the open workspace of a dataset, for the user and the namespace of the dataset's handle.

    Closing it closes nothing.
    """
    handle = Workspace.__new__(Workspace)
    handle._context, handle._is_owner = dataset._context, False
    return handle


class Workspace(WorkspaceUpkeep):
    """A folder on disk with datasets, opened or created by its path; also a context manager.

    Any number of processes may read a workspace at the same time, also while one process writes to it.

    Threads may share a Workspace; their writes run one after another. After ``fork()`` the child process can read with
    the open Workspace (BLAS then uses one thread), but writing raises; to write, open the workspace again. Pickling a
    Workspace, or an object that belongs to it, raises; worker processes open the workspace themselves.

    On a full disk a workspace can still be read. :meth:`vacuum` and :meth:`delete_dataset` also work, because they use
    reserved disk space.

    Args:
        folder: the path of the workspace; created if it does not exist or is empty.
        read_only: open an existing workspace without changing it. The default for a folder without write access.
        settings: limits and defaults; by default from the environment.
        text_encoder: the encoder for semantic search of captions: a name or a TextEncoder. It replaces the encoder of
            the settings.
        executor: where images are decoded and measured: ``threads``, ``processes``, ``ray``, or the address of one
            of its clusters such as ``ray://head.example.com:10001``. It replaces the executor of the settings.

    Raises:
        InvalidInput: the text encoder or the executor does not exist, or a setting of the environment is invalid.
        WorkspaceError: the folder cannot be used as a workspace.
        FormatTooNew: a newer version of Framedex wrote the workspace.

    Examples:
        >>> with framedex.Workspace("~/framedex") as ws:
        ...     [each.display_name for each in ws.datasets()]
        ['new', 'pets']
        >>> ws = framedex.Workspace("~/another")
        >>> ws.create_dataset("pets", "new")
        <framedex.Dataset 'pets': 3 images, READY>
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        settings: Settings | None = None,
        text_encoder: str | TextEncoder | None = None,
        executor: str | None = None,
    ) -> None:
        settings = settings or load_settings()
        if executor is not None:
            settings = settings.model_copy(update={"executor": check_executor(executor)})
        if text_encoder is not None:
            settings = settings.model_copy(update={"text_encoder": choose_text_encoder(text_encoder).name})
        path = user_path(folder)
        read_only = read_only or is_unwritable(path)
        layout = open_layout(path, read_only=read_only)
        catalog = open_catalog(layout.catalog, read_only=read_only)
        live = LiveSettings(settings, os.path.realpath(layout.root))
        runner = Runner(catalog, heartbeat_s=settings.heartbeat_s)
        exports = Exports(catalog, heartbeat_s=settings.heartbeat_s)
        columns = ColumnCache(sql := Sql(), settings.column_cache_bytes)
        selections = LruCache[Hashable, Any](settings.column_cache_bytes // _SELECTIONS_SHARE)
        self._context = Context(
            layout, catalog, sql, runner, exports, live, VectorIndices(), columns, Heads(), selections
        )
        self._is_owner = True
        runner.rebuild_job = partial(rebuild_job, self._context)
        runner.after_commit = _after_commit(self._context)
        self._fail_interrupted()
        if not catalog.read_only:
            catalog.settle_manifests()
            clean_expired_uploads(self._context)
            clean_orphans(self._context)
        self._catch_up = CatchUp(self._context)
        self._catch_up.start()

    @classmethod
    def restore_backup(
        cls, folder: str | os.PathLike[str], target: str | os.PathLike[str], *, settings: Settings | None = None
    ) -> RestoreResult:
        """Make a workspace of a backup, and prove that it is whole; return the counts and the findings.

        Each file is compared by size and hash with the list of the backup. Then the workspace is opened, checked as by
        :meth:`check`, and its rows are counted. If a file is missing or damaged, nothing is restored. If the process is
        killed, the target is no workspace, and another restore to it begins again.

        Args:
            folder: the folder of the backup, on any machine and at any path.
            target: the folder of the new workspace; missing or empty.
            settings: as of the workspace.

        Raises:
            WorkspaceError: the folder is no backup, or the backup did not end or is damaged, or the target cannot be
                written.
            FormatTooNew: a newer version of Framedex made the backup.
            Conflict: the target is not empty.

        Examples:
            >>> backup = ws.backup("backup")
            >>> restored = framedex.Workspace.restore_backup("backup", "copy")
            >>> [(each.name, each.n_media) for each in restored.datasets], restored.findings
            ([('pets', 33), ('new', 3)], [])
        """
        with progress_bar("Restoring") as progress:
            backup = restore_files(folder, target, progress=progress)
        with cls(target, settings=settings) as workspace:
            findings = workspace.check().findings
            counted, differences = count_restored(workspace._context, backup)
            header = {name: backup.header[name] for name in ("created_at", "files", "bytes", "with_users")}
            path = str(workspace.path)
        return RestoreResult(path=path, datasets=counted, findings=[*findings, *differences], **header)

    @property
    def path(self) -> Path:
        """The path of the folder.

        Examples:
            >>> ws.path.name
            'framedex'
        """
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
        display_range: tuple[float, float] | None = None,
        boxes: Any = None,
        class_folders: bool | None = None,
        interpolate: bool = False,
        force: bool = False,
    ) -> Dataset:
        """Create a dataset of images and videos: read, measure, encode, cluster and compare them.

        Videos are sampled; their frames are media, and are treated like images.

        Args:
            name: up to 255 characters, without slashes; unique in the namespace.
            source: a folder (searched recursively, without hidden files); an archive; a ``.txt``, ``.csv``, ``.tsv`` or
                ``.parquet`` list of paths; a Python list of paths; a pattern, as ``photos/**/*.jpg``; a table of
                pandas, Polars or Arrow with a column of paths, whose other columns become custom fields; images that
                the program holds: a dataset of Hugging Face or torchvision, a list of Pillow images, arrays or pairs
                (image, target), or a folder of Parquet files with images; or an Arrow table or Parquet file with the
                columns ``uri`` and ``embedding`` (and optionally ``width, height, caption, label``). Annotations in a
                folder provide labels, captions, boxes, tags for parts and custom fields, see docs/sources.md;
                :attr:`Dataset.layout` says what was recognised.
            encoder: ``auto``, a registered name such as ``gist``, or an Encoder.
            wait: return when the task is done, showing progress; else at once, with the task as ``dataset.task``.
            thresholds: five ascending cosine distances for cluster levels 0 to 4; by default the encoder's.
            frames_per_second: the number of frames to sample for each second of presentation time, above 0, up to 1000;
                the first frame is always sampled. Also applies to videos that are added later.
            scene_changes: also sample the first frame of each scene. Detecting scenes takes longer.
            display_range: the values that are shown black and white in images of more than 8 bits, as ``(0, 4095)``;
                by default those of each image, see docs/sources.md. Also applies to images that are added later.
            boxes: annotation files with bounding boxes, in addition to those in the folder: a COCO file, a table, a
                folder of Pascal VOC or YOLO files, or a list of these; see docs/objects.md.
            class_folders: whether the names of the folders in a folder are the labels of the images in them, and names
                as ``train`` above them tags. By default they are where nothing else can be meant.
            interpolate: read the boxes between the key frames of tracks, too, as CVAT shows them; by default they are
                counted in :attr:`Dataset.problems`. Also applies to files that are added to the folder later.
            force: begin also where the search of neighbours will take longer than the limit of the settings
                (``index_hours``), as with millions of vectors without clusters.

        Raises:
            InvalidInput: the name, the source or another argument cannot be used. No dataset is created.
            Conflict: the name is taken.
            TaskFailed: another error occurred, or the search of neighbours would take too long; only the record of the
                task remains.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ds = ws.create_dataset("more", "new", thresholds=(0.05, 0.1, 0.2, 0.3, 0.4))
            >>> ds
            <framedex.Dataset 'more': 3 images, READY>
        """
        self._check_writable()
        check_dataset_name(name)
        self._check_free(name)
        sampling = Sampling(frames_per_second, scene_changes)
        check_flag("class_folders", class_folders, optional=True)
        check_flag("interpolate", interpolate)
        check_flag("force", force)
        with opened_source(self._context, name, source, encoder, class_folders) as (opened, draft):
            content = opened if boxes is None else with_boxes(opened, boxes, self._context.settings)
            content = with_interpolation(content, interpolate=interpolate)
            config = new_embedding_config(content, thresholds, sampling, display_range)
            with self._context.catalog.write() as connection:
                dataset_id = draft or datasets.insert_dataset(
                    connection,
                    name,
                    owned_by=self.user,
                    namespace=self.namespace,
                    creator_id=self._context.creator_id,
                )
                if draft is not None:
                    datasets.update_dataset(connection, draft, status=DatasetStatus.INDEXING, progress=0)
                record = datasets.find_dataset(connection, dataset_id)
                request = creation_config(content, config, force=force)
                task_id = self._context.runner.insert(
                    connection, record, TaskType.DATASET_CREATION, request, created_by=self.user
                )
        with delete_if_stopped(self._context, dataset_id, task_id):
            job = creation_job(self._context, dataset_id, content, config, force=force)
            task = start_task(self._context.runner, task_id, dataset_id, job)
            if wait:
                wait_for(task, f"Creating {name!r}")
        return Dataset(self._context, dataset_id, task)

    def create_draft(self, name: str) -> Dataset:
        """Create an empty dataset in status DRAFT, to which files are uploaded; see :meth:`Dataset.open_upload`.

        A draft can be listed, renamed and deleted. It has nothing to show, so all other methods raise Conflict until
        an upload was processed.

        Args:
            name: up to 255 characters, without slashes; unique in the workspace.

        Raises:
            InvalidInput: the name cannot be used.
            Conflict: the name is taken.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> print(ws.create_draft("inbox").info.status_new)
            DRAFT
        """
        check_dataset_name(name)
        self._check_writable()
        self._fail_interrupted()
        with self._context.catalog.write() as connection:
            dataset_id = datasets.insert_dataset(
                connection,
                name,
                owned_by=self.user,
                namespace=self.namespace,
                status=DatasetStatus.DRAFT,
                creator_id=self._context.creator_id,
            )
        return Dataset(self._context, dataset_id)

    def dataset(self, name_or_id: str) -> Dataset:
        """Return a dataset of the handle's namespace by its name, or any dataset by its id.

        Raises:
            NotFound: the dataset does not exist.

        Examples:
            >>> ws.dataset("pets").count()
            33
            >>> ws.dataset("cats")
            Traceback (most recent call last):
                ...
            framedex.errors.NotFound: no dataset 'cats'; there are: 'new', 'pets'
        """
        with self._read() as connection:
            found = datasets.find_dataset(connection, name_or_id, namespace=self.namespace)
        return Dataset(self._context, found.id)

    def find_dataset(self, dataset_id: str) -> FoundDataset:
        """Return a dataset by its id, of any namespace, with its record; names find nothing.

        Raises:
            NotFound: no dataset has the id.

        Examples:
            >>> found = ws.find_dataset(ds.id)
            >>> found.record.display_name, found.record.n_images
            ('pets', 31)
        """
        with self._read() as connection:
            record, creation = datasets.find_with_creation(connection, dataset_id)
        return FoundDataset(Dataset(self._context, record.id), record, creation)

    def load_engines(self) -> None:
        """Load the engines of tables and queries, as the first call that needs them does: it takes half a second.

        Examples:
            >>> ws.load_engines()  # before the first request comes
        """
        import_engines()
        self._context.sql.query("SELECT 1", (), {})

    def creations(self) -> dict[str, Creation]:
        """Return the namespace of each dataset, and the user account for which it was created, by its id.

        Examples:
            >>> ws.creations()[ds.id]
            Creation(namespace='', creator_id=None)
        """
        with self._read() as connection:
            return datasets.creations(connection)

    def datasets(self, *, all_namespaces: bool = False) -> list[DatasetRecord]:
        """Return the records of all datasets of the handle's namespace, or of all namespaces, newest first.

        Examples:
            >>> [(each.display_name, each.n_images) for each in ws.datasets()]
            [('new', 3), ('pets', 31)]
        """
        with self._read() as connection:
            return RecordList(datasets.list_datasets(connection, None if all_namespaces else self.namespace))

    def delete_dataset(self, name_or_id: str) -> None:
        """Delete a dataset with all data that Framedex stores for it. The source files are not changed.

        Raises:
            Forbidden: the settings do not allow deleting datasets.
            NotFound: the dataset does not exist.
            Conflict: a task of the dataset is running.

        Examples:
            >>> ws.delete_dataset("new")
            >>> [each.display_name for each in ws.datasets()]
            ['pets']
        """
        if not self._context.settings.delete_dataset_enabled:
            raise Forbidden("Delete dataset feature is not enabled")
        self._check_writable()
        self._fail_interrupted()
        delete_dataset(self._context, name_or_id)

    def tasks(self, **query: Unpack[TaskSearch]) -> TaskPage:
        """Return a page of tasks, newest first.

        Args:
            query: any of ``dataset_id, dataset_name, task_type, status, created_by`` (exact values), ``datasets`` (ids;
                only tasks of these datasets, of which there can be thousands), ``deleted_by`` (with *datasets*: also
                the tasks that this user started in datasets that were deleted since), ``start_time_from,
                start_time_to`` (inclusive; datetime or ISO 8601 text, UTC by default), ``sort_by`` (``start_time,
                status, task_type, dataset_name, dataset_id, created_by``), ``sort_order`` (``asc`` or ``desc``),
                ``page`` (from 1) and ``page_size`` (5 to 50, default 20).

        Raises:
            InvalidInput: an argument is unknown or out of range.

        Examples:
            >>> for each in ws.tasks(dataset_name="pets").tasks:
            ...     print(each.task_type, each.status)
            MAP COMPLETED
            CUSTOM_METADATA COMPLETED
            DATASET_CREATION COMPLETED
        """
        self._fail_interrupted()
        return list_tasks(self._context, **query)

    def task_filters(
        self,
        start_time_from: datetime | str | None = None,
        start_time_to: datetime | str | None = None,
        *,
        datasets: Collection[str] | None = None,
        deleted_by: str | None = None,
    ) -> TaskFilters:
        """Return the values that occur in the tasks of a period, for use as filters.

        Args:
            start_time_from: the first start time of tasks, as for :meth:`tasks`.
            start_time_to: the last start time.
            datasets: ids of datasets; only tasks of these count.
            deleted_by: with *datasets*: also the tasks that this user started in datasets that were deleted since.

        Raises:
            InvalidInput: a time cannot be parsed, or *datasets* is not a list of ids.

        Examples:
            >>> ws.task_filters().task_types
            ['CUSTOM_METADATA', 'DATASET_CREATION', 'MAP']
        """
        return task_filters(self._context, start_time_from, start_time_to, datasets, deleted_by)

    def task(self, task_id: str) -> Task:
        """Return a task of any process, for inspection, waiting, aborting or retrying.

        Raises:
            NotFound: the task does not exist.

        Examples:
            >>> ws.task(ds.last_task.task_id)
            <framedex.Task MAP COMPLETED: ...>
        """
        self._fail_interrupted()
        task = Task(self._context.runner, task_id)
        _ = task.record  # raises if the task does not exist
        return task

    def interrupted_tasks(self) -> list[TaskRecord]:
        """Return the tasks that did not end because their process ended, oldest first.

        The process crashed, or it called :meth:`close` with a reason, which ``error_message`` then has. Tasks that a
        user aborted are not among them, nor those of deleted datasets and those that a later task of their dataset
        followed.

        Examples:
            >>> ws.interrupted_tasks()
            []
        """
        with self._read() as connection:
            return RecordList(task_rows.list_interrupted(connection))

    def retry_interrupted(self) -> list[Task]:
        """Retry the tasks of :meth:`interrupted_tasks` from their last checkpoints; return those that run again.

        Tasks that cannot be retried now stay as they are: their source is gone or was a Python object, or another
        process retries them.

        Raises:
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ws.retry_interrupted()
            []
        """
        self._check_writable()
        retried = []
        for record in self.interrupted_tasks():
            task = Task(self._context.runner, record.task_id)
            with suppress(InvalidInput, NotFound, Conflict, Unavailable, MissingDependency):
                task.retry()
                retried.append(task)
        return retried

    def close(self, reason: str | None = None) -> None:
        """Stop the running tasks and exports of this process, and close the catalog. A second call does nothing.

        Handles of :meth:`acting_as` and :meth:`in_namespace` close nothing.

        Args:
            reason: the reason of a planned stop, such as "the service stopped". The tasks are then FAILED with this
                ``error_message``, and :meth:`retry_interrupted` continues them in the next process. Without a reason
                they are ABORTED. Tasks in their commit phase end as usual.

        Raises:
            InvalidInput: the reason is not text, or is empty; nothing is closed.

        Examples:
            >>> ws.close("the machine restarts")
        """
        if reason is not None and not (isinstance(reason, str) and reason.strip()):
            raise InvalidInput(f"the reason of a stop is text that is not empty, or None, not {reason!r}")
        if not self._is_owner:
            return
        reason = reason and reason.encode("utf-8", "backslashreplace").decode()
        self._catch_up.close()
        self._context.runner.close(reason)
        self._context.exports.close(reason)
        self._context.catalog.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<framedex.Workspace {str(self.path)!r}: {counted(len(self.datasets()), 'datasets')}>"

    def _repr_html_(self) -> str:
        return datasets_html(str(self.path), self.datasets())

    def _check_writable(self) -> None:
        self._context.catalog.check_writable()

    def _check_free(self, name: str) -> None:
        """Check that a name is free, before the source is read, which may take long."""
        with self._read() as connection:
            datasets.check_dataset_name_free(connection, name, namespace=self.namespace)

    @contextmanager
    def _read(self) -> Iterator[Any]:
        """Yield a connection of the catalog, in which no task of a dead process is in progress."""
        if not self._context.catalog.read_only:
            self._context.runner.settle()
        with reading_settled(self._context.catalog) as connection:
            yield connection

    def _fail_interrupted(self) -> None:
        """Mark the tasks of dead processes as failed; called by each method that reads datasets or tasks."""
        if self._context.catalog.read_only:
            return
        self._context.runner.settle()
        fail_interrupted_tasks(self._context.catalog)
