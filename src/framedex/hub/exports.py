"""Exports that users start: their files, who may fetch them, and for how long."""

import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from framedex.access import Action, Actor, allowed
from framedex.api.dataset import Dataset
from framedex.api.result_set import ResultSet
from framedex.api.view import View
from framedex.core.counts import counted
from framedex.core.ids import new_id
from framedex.errors import Conflict, InvalidInput, NotFound, ReadOnly, TooManyAttempts, WorkspaceError
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.records import DatasetStatus, EntityType, ExportRecord, ExportStatus
from framedex.storage.service_db import audit, export_files
from framedex.storage.service_db.export_files import ExportFile
from framedex.tasks import ExportTask

MOST_WAITING = 20
"""The maximum number of exports of a user that have not ended."""
MOST_IDS = 100_000
"""The maximum number of ids that a selection names."""
_FOLDER = "exports"
_NOT_FOUND = "Export not found"
_READABLE = (DatasetStatus.READY, DatasetStatus.READ_ONLY)
_RETRY_S = 60
_ORPHAN_S = 3600.0
_UNSAFE = frozenset('/\\:*?"<>|#%;&')
_LONGEST_NAME = 255


@dataclass(frozen=True)
class ExportRequest:
    """A request for an export.

    Attributes:
        file_name: of the ZIP file, as :func:`safe_name` returns it.
        format: the name of a format.
        include_images: whether the image files are exported, too.
        entity_type: ``IMAGES``, ``OBJECTS`` or ``VIDEOS``.
        vql: a filter; None for none.
        media_selection: the selected media, as for :meth:`framedex.Dataset.export`; None for all.
        strip_metadata: whether image files are written without what they say about the image.
        media_url: the URL of a media item with ``{media_id}`` in the place of its id.
        results: the results that are exported, of the type *entity_type*; None for the dataset.
        options: ``split``, ``confidences``, ``outlines``, ``keypoints``, as for :meth:`framedex.Dataset.export`.
    """

    file_name: str
    format: str
    include_images: bool
    entity_type: EntityType
    vql: Any = None
    media_selection: Sequence[Any] | None = None
    strip_metadata: bool = False
    media_url: str | None = None
    results: ResultSet | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class HubExports:
    """The exports of datasets that users of a hub start.

    The files are in the folder ``exports`` of the workspace.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.

    Attributes:
        folder: the folder of the files; it may not exist yet.
    """

    def __init__(self, context: HubContext, datasets: Datasets) -> None:
        self._context, self._datasets = context, datasets
        self.folder = context.workspace.path / _FOLDER
        self._lock = threading.Lock()
        self._tasks: dict[str | None, list[ExportTask]] = defaultdict(list)

    def start(self, actor: Actor, dataset_id: str, request: ExportRequest, *, days: float) -> ExportRecord:
        """Start an export and return its record, status PENDING. All that can be refused is refused here.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            request: what is exported.
            days: the number of days for which the file is kept.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not export the dataset.
            Conflict: the status of the dataset is neither READY nor READ ONLY.
            InvalidInput: an argument cannot be used, or a media item or a cluster does not exist.
            InvalidFilter: the filter cannot be applied.
            TooManyAttempts: too many exports of the actor wait.
            WorkspaceError: the workspace cannot be written.
        """
        dataset = self._datasets.open(actor, dataset_id, Action.DATASET_EXPORT)
        check_exportable(dataset)
        _check_selection(request.media_selection)
        try:
            count = _count(dataset, request)
        except NotFound as error:
            raise InvalidInput(str(error)) from None
        path = self._new_path()
        with self._lock:
            self._check_waiting(actor)
            task = _begin(dataset, path, request)
            self._tasks[actor.user_id].append(task)
        self._store(actor, task, dataset, path, request.file_name, days)
        started = {"status": ExportStatus.PENDING, "progress": 0, "result_message": "", "download_uri": None}
        return task.record.model_copy(update={**started, "entities_count": count})

    def _new_path(self) -> Path:
        """Return the path for a new file, in a folder that exists.

        Raises:
            WorkspaceError: the workspace cannot be written.
        """
        if self._context.workspace.read_only:
            raise ReadOnly("the workspace was opened read-only, so no export can be kept in it")
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(f"cannot make {self.folder}: {error.strerror}") from None
        return self.folder / f"{new_id()}.zip"

    def _check_waiting(self, actor: Actor) -> None:
        waiting = [task for task in self._tasks[actor.user_id] if not task.status.final]
        self._tasks[actor.user_id][:] = waiting
        if len(waiting) >= MOST_WAITING:
            raise TooManyAttempts(f"{MOST_WAITING} of your exports have not ended yet; wait for one of them", _RETRY_S)

    def _store(self, actor: Actor, task: ExportTask, dataset: Dataset, path: Path, file_name: str, days: float) -> None:
        created = self._context.clock()
        try:
            with self._context.database.write() as connection:
                export_files.put_export_file(
                    connection,
                    ExportFile(
                        task.id,
                        dataset.id,
                        actor.user_id,
                        os.fsencode(path.relative_to(self._context.workspace.path)),
                        file_name,
                        created,
                        created + timedelta(days=days),
                    ),
                )
                audit.insert_entry(connection, actor.user_id, "export.start", target=file_name, dataset_id=dataset.id)
        except BaseException:
            with suppress(Conflict):
                task.abort()
            raise

    def get(self, actor: Actor, dataset_id: str, export_id: str) -> tuple[ExportRecord, str]:
        """Return an export and the name of its file.

        Raises:
            NotFound: there is no such export or dataset, or it is another user's, or it expired.
        """
        self._find(actor, dataset_id, export_id)
        with self._context.database.read() as connection:
            file = export_files.find_export_file(connection, export_id)
        try:
            record = self._context.workspace.dataset(dataset_id).export_status(export_id)
        except NotFound:
            raise NotFound(_NOT_FOUND) from None
        return record, "" if file is None else file.file_name

    def of_dataset(self, actor: Actor, dataset_id: str) -> list[tuple[ExportRecord, ExportFile, int | None]]:
        """Return the exports of a dataset that the actor may see and whose files are kept, the newest first.

        Returns:
            Each export, its file, and the size of that in bytes; None until it is complete.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
        """
        dataset = self._datasets.open(actor, dataset_id)
        now = self._context.clock()
        with self._context.database.read() as connection:
            files = export_files.list_export_files(connection, dataset_id)
        records = {record.id: record for record in dataset.exports()}
        return [
            (records[file.export_id], file, _size(self._path_of(file)))
            for file in reversed(files)
            if file.export_id in records and file.expires_at > now and self._may_see(actor, file)
        ]

    def path(self, actor: Actor, dataset_id: str, export_id: str) -> tuple[Path, str]:
        """Return the path of the file of a completed export, and its name for users.

        Raises:
            NotFound: there is no such export or dataset, or it is another user's, or its file is gone.
            Forbidden: the actor may not export the dataset any more.
        """
        self._datasets.open(actor, dataset_id, Action.DATASET_EXPORT)
        file = self._find(actor, dataset_id, export_id)
        path = self._path_of(file)
        if not path.is_file():
            raise NotFound(_NOT_FOUND)
        return path, file.file_name

    def _find(self, actor: Actor, dataset_id: str, export_id: str) -> ExportFile:
        self._datasets.open(actor, dataset_id)
        with self._context.database.read() as connection:
            file = export_files.find_export_file(connection, export_id)
        if file is None or file.dataset_id != dataset_id or file.expires_at <= self._context.clock():
            raise NotFound(_NOT_FOUND)
        if not self._may_see(actor, file):
            raise NotFound(_NOT_FOUND)
        return file

    def _may_see(self, actor: Actor, file: ExportFile) -> bool:
        subject = self._datasets.subject(actor, file.dataset_id, is_own=file.user_id == actor.user_id)
        return bool(allowed(actor, Action.EXPORT_VIEW_OTHERS, subject))

    def _path_of(self, file: ExportFile) -> Path:
        return self._context.workspace.path / os.fsdecode(file.path)

    def sweep(self) -> int:
        """Delete the files of exports that expired or whose dataset does not exist any more; return their number.

        Files without a row, which the end of a process left, are deleted after an hour.
        """
        existing = {record.id for record in self._context.workspace.datasets(all_namespaces=True)}
        now = self._context.clock()
        with self._context.database.read() as connection:
            files = export_files.list_export_files(connection)
        gone = [file for file in files if file.expires_at <= now or file.dataset_id not in existing]
        kept = {self._path_of(file) for file in files} - {self._path_of(file) for file in gone}
        for file in gone:
            self._path_of(file).unlink(missing_ok=True)
        if gone:
            with self._context.database.write() as connection:
                export_files.remove_export_files(connection, [file.export_id for file in gone])
        return len(gone) + self._remove_orphans(kept, now.timestamp())

    def _remove_orphans(self, kept: set[Path], now: float) -> int:
        count = 0
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            with suppress(OSError):  # another sweep was faster
                if path not in kept and path.stat().st_mtime < now - _ORPHAN_S:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    count += 1
        return count


def check_exportable(dataset: Dataset) -> None:
    """Check that a dataset has a state that can be exported; during a restore this is the former one.

    Raises:
        Conflict: it has none.
    """
    status = dataset.info.status_new
    if status not in _READABLE:
        raise Conflict(f"Operation 'export' needs the dataset status {DatasetStatus.READY}; it is {status}")


def safe_name(name: str) -> str:
    """Return the name of a ZIP file for users: what no file system or URL allows is replaced, ``.zip`` is added.

    Raises:
        InvalidInput: the name is empty or too long.
    """
    stem = name.strip().removesuffix(".zip")
    stem = "".join("_" if each in _UNSAFE or not each.isprintable() else each for each in stem).strip(". ")
    if not any(each.isalnum() for each in stem):
        raise InvalidInput(f"the file name of an export needs a letter or a digit: {name!r}")
    if len(name) > _LONGEST_NAME:
        raise InvalidInput(f"the file name of an export has at most {_LONGEST_NAME} characters, not {len(name)}")
    return f"{stem}.zip"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _chosen(dataset: Dataset, request: ExportRequest) -> Dataset | View:
    return dataset if request.results is None else request.results.view()


def _count(dataset: Dataset, request: ExportRequest) -> int:
    return _chosen(dataset, request).count_export(
        entity_type=request.entity_type, vql=request.vql, media_selection=request.media_selection
    )


def _check_selection(selection: Sequence[Any] | None) -> None:
    """Check that a selection names something, and not too much.

    Raises:
        InvalidInput: it does not.
    """
    if selection is None:
        return
    if not selection:
        raise InvalidInput("media_selection names no media and no clusters")
    payloads = [element.get("payload", element) for element in selection if isinstance(element, Mapping)]
    lists = [
        each.get(key) for each in payloads if isinstance(each, Mapping) for key in ("media_ids", "exclude_media_ids")
    ]
    count = sum(len(each) for each in lists if isinstance(each, Sequence))
    if count > MOST_IDS:
        raise InvalidInput(f"media_selection names {counted(count, 'ids')}; at most {MOST_IDS:,} are allowed")


def _begin(dataset: Dataset, path: Path, request: ExportRequest) -> ExportTask:
    return _chosen(dataset, request).export(
        path,
        request.format,
        request.include_images,
        None if request.media_selection is None else list(request.media_selection),
        wait=False,
        entity_type=request.entity_type,
        vql=request.vql,
        strip_metadata=request.strip_metadata,
        media_url=request.media_url,
        **request.options,
    )
