"""Datasets of a service."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from framedex.api.card import DatasetCard
from framedex.api.record_list import RecordList
from framedex.client import calls
from framedex.client.actions import copies_from_service, upload_query
from framedex.client.comparison import ClientComparison
from framedex.client.connection import Connection
from framedex.client.edits import ClientEdits
from framedex.client.evaluation import ClientEvaluations
from framedex.client.label_issues import ClientLabelIssues
from framedex.client.maps import ClientMaps
from framedex.client.parts import ViewParts, dataset_record
from framedex.client.saved_views import ClientSavedView, saved_view_records
from framedex.client.sharing import ClientSharing
from framedex.client.suggestions import ClientSuggestions
from framedex.client.view import ClientReading, ClientView
from framedex.client.work import ClientTask
from framedex.core.counts import counted
from framedex.core.left_out import file_reason
from framedex.core.naming import name_key
from framedex.core.suffixes import ARCHIVE_SUFFIXES, is_media
from framedex.errors import Error, InvalidInput, NotFound
from framedex.records import (
    Copy,
    DatasetRecord,
    EnrichmentContext,
    EnrichmentModel,
    Problem,
    Snapshot,
    SourceState,
    StateCounts,
    SyncResult,
    TaskPage,
    TaskRecord,
    TaskType,
)

_BATCH_FILES, _BATCH_BYTES = 50, 256 * 2**20
_ANNOTATIONS = frozenset({"annotations.json", "image_annotations.csv", "image_annotations.parquet"})
_FOUND_S = 20.0


class ClientDataset(
    ClientReading, ClientEdits, ClientSharing, ClientMaps, ClientSuggestions, ClientLabelIssues, ClientEvaluations
):
    """A dataset of a service; see :class:`framedex.Dataset`. It has the methods of a view of all its media.

    Attributes:
        id: the dataset's UUID.
        task: the last task that this object started, if any.
    """

    def __init__(self, connection: Connection, dataset_id: str, task: ClientTask | None = None) -> None:
        super().__init__(connection, dataset_id)
        self.id, self.task = dataset_id, task

    @property
    def info(self) -> DatasetRecord:
        """The dataset's record: status, progress and counts."""
        return dataset_record(self._connection.json(calls.DATASET, dataset_id=self.id))

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.info.display_name

    @property
    def generation(self) -> str:
        """The id of the present state, which each change replaces."""
        return self.view._open().generation

    @property
    def view(self) -> ClientView:
        """All media as a view."""
        return ClientView(self._connection, self.id)

    @property
    def objects(self) -> ClientView:
        """The objects in the media, as a view in which each object is a media item; empty without objects."""
        return ClientView(self._connection, self.id, objects=True)

    @property
    def last_task(self) -> TaskRecord | None:
        """The dataset's newest task; None if it has no task."""
        query = {"dataset_id": self.id, "page_size": 5}
        page = TaskPage.model_validate(self._connection.json(calls.TASKS, query=query))
        return page.tasks[0] if page.tasks else None

    def save_view(
        self,
        name: str,
        view: ClientView | None = None,
        *,
        caption: str | None = None,
        threshold: float | None = None,
        entity_type: str | None = None,
    ) -> ClientSavedView:
        """Save a view under a name; see :meth:`framedex.Dataset.save_view`.

        Args:
            name: 1 to 255 characters, unique in the dataset regardless of case.
            view: filters of this dataset, as ``ds.where(…)`` or ``ds.objects.where(…)``; by default all media.
            caption: a text that results have to match.
            threshold: the smallest similarity to the caption, 0 to 1; None or 0 for the default.
            entity_type: ``IMAGES``, ``OBJECTS`` or ``VIDEOS``; by default that of the view.

        Raises:
            InvalidInput: the name, the view or another argument cannot be used.
            Conflict: a saved view has that name, or the dataset has 200.
            Forbidden: the user may not edit the dataset.
        """
        view = self.view if view is None else view
        if view._dataset_id != self.id or view._selection != ViewParts(vql=view._selection.vql):
            raise InvalidInput("a view of filters alone of this dataset can be saved, as ds.where(…)")
        vql = json.dumps(list(view._selection.vql)) if view._selection.vql else None
        query = {
            "vql": vql, "caption": caption, "threshold": threshold, "entity_type": str(entity_type or view.entity_type)
        }  # fmt: skip
        answer = self._connection.send(calls.SAVE_VIEW, query=query, form={"name": name}, dataset_id=self.id)
        return ClientSavedView(self._connection, self.id, answer.json()["id"])

    def views(self) -> list[ClientSavedView]:
        """Return the saved views, newest first."""
        records = saved_view_records(self._connection, self.id)
        return [ClientSavedView(self._connection, self.id, each.id) for each in records]

    def saved_view(self, name_or_id: str) -> ClientSavedView:
        """Return a saved view by its name, in any case, or by its id.

        Raises:
            NotFound: the dataset has no such view.
        """
        for each in saved_view_records(self._connection, self.id):
            if each.id == name_or_id or name_key(each.name) == name_key(name_or_id):
                return ClientSavedView(self._connection, self.id, each.id)
        raise NotFound(f"no saved view {name_or_id!r} in this dataset")

    def upload(self, query: Any, *, bounding_box: Any = None) -> str:
        """Store a query image for a day; return its anchor id, for explore and VQL ``similarity``."""
        return upload_query(self._connection, self.id, query, bounding_box)

    def media_id(self, location: str | os.PathLike[str]) -> str:
        """Return the id of the media item at a path within the source, or at its URI.

        Raises:
            NotFound: the dataset has no media item there.
        """
        query = {"original_media_uri": os.fspath(location)}
        answer = self._connection.send(calls.MEDIA_ID, query=query, dataset_id=self.id)
        return str(answer.text)

    def copies_of(self, query: Any, similarity: float = 0.96, *, bounding_box: Any = None) -> list[Copy]:
        """Return the copies of an image in the dataset; see :meth:`framedex.Dataset.copies_of`.

        Args:
            query: as there; a path is one of this machine, and the image is sent.
            similarity: as there.
            bounding_box: as there.
        """
        return copies_from_service(self._connection, self.id, query, similarity, bounding_box)

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
    ) -> ClientTask:
        """Add images and videos; see :meth:`framedex.Dataset.add_media`. Files are sent to the service.

        Args:
            path: a folder, an archive or a file on this machine; the files in a folder are sent in one transaction.
            files: paths, ``(name, bytes)`` pairs, or binary files with a ``name``.
            archive: a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file.
            s3_uri: a folder or a manifest in a bucket.
            assume_role: ARN of the role for reading from the bucket.
            auto_reindex: reindex the dataset afterwards; not for a folder.
            wait: return when the task is done; else at once.

        Raises:
            InvalidInput: no source or several sources are given, or the source has nothing that can be added.
            Conflict: another task is running.
            Forbidden: the user or the settings do not allow additions.
        """
        if sum(each is not None for each in (path, files, archive, s3_uri)) != 1:
            raise InvalidInput("Exactly one media source must be provided (path, files, s3_uri or archive)")
        before = self.last_task
        if path is not None and _is_archive(Path(path).expanduser()):
            path, archive = None, Path(path).expanduser()
        if path is not None or (files is not None and len(files) > _BATCH_FILES):
            if auto_reindex:
                raise InvalidInput("auto_reindex is for up to 50 files, archives and buckets; call reindex afterwards")
            send_files(self._connection, self.id, local_files(path) if files is None else files)
        else:
            form = {"s3_uri": s3_uri, "assume_role": assume_role, "auto_reindex": str(auto_reindex).lower()}
            with ExitStack() as stack:
                parts = [("files", _part(each, stack)) for each in files or ()]
                parts += [] if archive is None else [("archive", _part(archive, stack))]
                self._connection.send(
                    calls.ADD_MEDIA,
                    form={name: each for name, each in form.items() if each is not None},
                    files=parts or None,
                    dataset_id=self.id,
                )
        return self._started(before, wait=wait)

    def reindex(self, *, wait: bool = True) -> ClientTask:
        """Rebuild the index; see :meth:`framedex.Dataset.reindex`."""
        before = self.last_task
        self._connection.json(calls.REINDEX, dataset_id=self.id)
        return self._started(before, wait=wait)

    def list_models(self) -> list[EnrichmentModel]:
        """Return the models that can be applied; see :meth:`framedex.Dataset.list_models`."""
        body = self._connection.json(calls.LIST_MODELS, dataset_id=self.id)
        return RecordList(EnrichmentModel.model_validate(each) for each in body)

    def enrichment_context(self) -> EnrichmentContext:
        """Return the models that were applied."""
        body = self._connection.json(calls.ENRICHMENT_CONTEXT, dataset_id=self.id)
        return EnrichmentContext.model_validate({name: body[name] for name in EnrichmentContext.model_fields})

    def enrich(self, models: Mapping[str, str], *, wait: bool = True) -> "ClientDataset":
        """Create a copy of the dataset with the results of models; see :meth:`framedex.Dataset.enrich`."""
        body = self._connection.json(calls.ENRICH, body={"enrichment_models": dict(models)}, dataset_id=self.id)
        return self._copy(body["dataset_id"], wait=wait)

    def snapshot(self, name: str | None = None, *, description: str = "") -> Snapshot:
        """Create a snapshot of the current state; see :meth:`framedex.Dataset.snapshot`."""
        body = {"name": name, "description": description}
        return Snapshot.model_validate(self._connection.json(calls.CREATE_SNAPSHOT, body=body, dataset_id=self.id))

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first."""
        body = self._connection.json(calls.SNAPSHOTS, dataset_id=self.id)
        return RecordList(Snapshot.model_validate(each) for each in body)

    def update_snapshot(
        self, snapshot: Snapshot | str, *, name: str | None = None, description: str | None = None
    ) -> Snapshot:
        """Change the name or the description of a snapshot."""
        body = {"name": name, "description": description}
        answer = self._connection.json(
            calls.CHANGE_SNAPSHOT,
            body={key: value for key, value in body.items() if value is not None},
            dataset_id=self.id,
            snapshot_id=_snapshot_id(snapshot),
        )
        return Snapshot.model_validate(answer)

    def delete_snapshot(self, snapshot: Snapshot | str) -> None:
        """Delete a snapshot; see :meth:`framedex.Dataset.delete_snapshot`."""
        self._connection.json(calls.DELETE_SNAPSHOT, dataset_id=self.id, snapshot_id=_snapshot_id(snapshot))

    def compare(self, before: Snapshot | str, after: Snapshot | str = "head") -> ClientComparison:
        """Return what differs between two states; see :meth:`framedex.Dataset.compare`.

        Raises:
            NotFound: there is no such state, or it was freed.
            Conflict: the dataset has no index yet.
        """
        query = {"before": _snapshot_id(before), "after": _snapshot_id(after)}
        body = self._connection.json(calls.COMPARISON, query=query, dataset_id=self.id)
        return ClientComparison(self._connection, self.id, body)

    def card(self) -> DatasetCard:
        """Return the card of the dataset as Markdown; see :meth:`framedex.Dataset.card`.

        Raises:
            Conflict: the dataset has no index yet.
        """
        return DatasetCard(self._connection.send(calls.CARD, dataset_id=self.id).text)

    def trends(self) -> list[StateCounts]:
        """Return the counts of each snapshot, oldest first, and of the present state.

        Raises:
            Conflict: the dataset has no index yet.
        """
        body = self._connection.json(calls.TRENDS, dataset_id=self.id)
        return RecordList(StateCounts.model_validate(each) for each in body)

    @property
    def problems(self) -> list[Problem]:
        """The inputs that the last addition left out or could not use; see :attr:`framedex.Dataset.problems`."""
        body = self._connection.json(calls.PROBLEMS, dataset_id=self.id)
        return RecordList(Problem.model_validate(each) for each in body)

    def sources(self) -> list[SourceState]:
        """Return the source folders of the dataset, and whether they can be found; see ``Dataset.sources``.

        Who is no administrator of the service sees only the names of folders of the server.
        """
        body = self._connection.json(calls.DATASET_SOURCES, dataset_id=self.id)
        return RecordList(SourceState.model_validate(each) for each in body)

    def sync(
        self, *, apply: bool = False, remove: bool = False, mark_lost: bool = False, wait: bool = True
    ) -> SyncResult:
        """Compare the dataset with its folders on the server; see :meth:`framedex.Dataset.sync`.

        Args:
            apply: change the dataset.
            remove: with *apply*: remove media whose files are gone from the dataset.
            mark_lost: mark the files of sources, and of folders in them, of which nothing can be found, too.
            wait: with *apply*: return when all is done; else only the first task is started.

        Raises:
            InvalidInput: *remove* is set without *apply*.
            Forbidden: the user may not edit the dataset, or additions are not enabled.
            Conflict: a task is in progress.
            TaskFailed: an addition failed.
        """
        options = {"apply": apply, "remove": remove, "mark_lost": mark_lost}
        first = result = self._synced(options)
        while wait and result.task_id is not None:
            self.task = ClientTask(self._connection, result.task_id, self.id)
            self.task.wait()
            before, result = result, self._synced(options)
            if not before.removed and (result.new, result.changed) == (before.new, before.changed):
                break  # they cannot be added
        return first

    def _synced(self, options: Mapping[str, bool]) -> SyncResult:
        body = self._connection.json(calls.SYNC, body=dict(options), dataset_id=self.id)
        return SyncResult.model_validate(body)

    def restore(self, snapshot: Snapshot | str | None = None, *, wait: bool = True) -> ClientTask:
        """Restore a snapshot; see :meth:`framedex.Dataset.restore`.

        Raises:
            InvalidInput: no snapshot is given; the message lists the snapshots.
        """
        if snapshot is None:
            names = ", ".join(f"{each.snapshot_id} ({each.snapshot_name!r})" for each in self.snapshots())
            raise InvalidInput(f"a restore needs the id or the name of a snapshot; there are: {names or 'none yet'}")
        before = self.last_task
        self._connection.json(calls.RESTORE_SNAPSHOT, dataset_id=self.id, snapshot_id=_snapshot_id(snapshot))
        return self._started(before, wait=wait)

    def clone(self, snapshot: Snapshot | str = "head", *, wait: bool = True) -> "ClientDataset":
        """Create a dataset from the present state or a snapshot; see :meth:`framedex.Dataset.clone`."""
        made = self._connection.json(calls.CLONE, body={"snapshot": _snapshot_id(snapshot)}, dataset_id=self.id)
        return self._copy(made["id"], wait=wait)

    def merge(self, other: "ClientDataset", name: str, *, wait: bool = True) -> "ClientDataset":
        """Create a dataset with the media of this dataset and of another one; see :meth:`framedex.Dataset.merge`.

        Args:
            other: a dataset of the same service.
            name: of the new dataset.
            wait: return when the task is done; else at once.

        Raises:
            InvalidInput: *other* is no dataset of the service, the name cannot be used, or they cannot be merged.
            Conflict: the name is taken, or the status of a dataset does not allow it.
            Forbidden: the user may not copy both.
        """
        if not isinstance(other, ClientDataset) or other._connection is not self._connection:
            raise InvalidInput(f"other must be a dataset of the same service, not {other!r:.80}")
        made = self._connection.json(calls.MERGE, body={"other": other.id, "name": name}, dataset_id=self.id)
        return self._copy(made["id"], wait=wait)

    def rename(self, name: str) -> None:
        """Rename the dataset; see :meth:`framedex.Dataset.rename`."""
        self._connection.json(calls.CHANGE_DATASET, body={"display_name": name}, dataset_id=self.id)

    def _discard(self) -> None:
        """Delete the dataset after a failure, if the user may; else it stays a draft."""
        with suppress(Error):
            self._connection.json(calls.DELETE_DATASET, dataset_id=self.id)

    def _copy(self, dataset_id: str, *, wait: bool) -> "ClientDataset":
        copy = ClientDataset(self._connection, dataset_id)
        copy.task = copy._started(None, wait=wait)
        return copy

    def _started(self, before: TaskRecord | None, *, wait: bool) -> ClientTask:
        """Return the task that an answer of 202 has started: the newest one that was not there before."""
        end = time.monotonic() + _FOUND_S
        while True:
            last = self.last_task
            if last is not None and (before is None or last.task_id != before.task_id):
                break
            if time.monotonic() > end:
                raise NotFound(f"the task that was started on dataset {self.id} cannot be found")
            time.sleep(0.1)
        self.task = ClientTask(self._connection, last.task_id, self.id)
        if wait:
            self.task.wait()
            if last.task_type is TaskType.MEDIA_ADDITION and (after := self.last_task) and after != last:
                ClientTask(self._connection, after.task_id, self.id).wait()  # the reindex that follows
        return self.task

    def __repr__(self) -> str:
        info = self.info
        images = counted(info.n_images, "images")
        return f"<framedex.ClientDataset {info.display_name!r}: {images}, {info.status_new}>"


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVE_SUFFIXES) and path.is_file()


def local_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the media and the annotation files below a folder, or a file, in order.

    Raises:
        InvalidInput: there are none.
    """
    source = Path(path).expanduser()
    found = [source] if source.is_file() else sorted(each for each in source.rglob("*") if _is_sent(each, source))
    if not found:
        raise InvalidInput(f"no media in {os.fspath(path)!r}")
    return found


def send_files(connection: Connection, dataset_id: str, files: Sequence[Any]) -> None:
    """Send files in an upload transaction, some at a time, and start the task that makes them part of a dataset.

    The service keeps the last part of a name; files of an equal name are images of their own, if contents differ.
    """
    transaction_id = connection.json(calls.OPEN_UPLOAD, dataset_id=dataset_id)["trans_id"]
    for batch in _batches(files):
        with ExitStack() as stack:
            parts = [("files", _part(each, stack)) for each in batch]
            connection.send(calls.UPLOAD_FILES, files=parts, dataset_id=dataset_id, transaction_id=transaction_id)
    connection.json(calls.PROCESS_UPLOAD, dataset_id=dataset_id, transaction_id=transaction_id)


def _is_sent(path: Path, source: Path) -> bool:
    is_visible = file_reason(path.relative_to(source).as_posix()) is None
    return is_visible and path.is_file() and (is_media(path.name) or path.name in _ANNOTATIONS)


def _batches(files: Sequence[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for each in files:
        if batch and (len(batch) == _BATCH_FILES or size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += Path(each).stat().st_size if isinstance(each, str | os.PathLike) else 0
    yield batch


def _part(file: Any, stack: ExitStack) -> tuple[str, Any]:
    """Return the name and the content of a file of a form."""
    if isinstance(file, str | os.PathLike):
        path = Path(file)
        try:
            return path.name, stack.enter_context(path.open("rb"))
        except OSError as error:
            raise InvalidInput(f"cannot read {os.fspath(file)!r}: {error.strerror}") from None
    if isinstance(file, tuple):
        name, content = file
        return str(name), content
    if hasattr(file, "read") and isinstance(getattr(file, "name", None), str):
        return Path(file.name).name, file
    raise InvalidInput(f"a file is a path, a (name, bytes) pair or a binary file with a name, not {file!r:.60}")


def _snapshot_id(snapshot: Snapshot | str) -> str:
    return snapshot.snapshot_id if isinstance(snapshot, Snapshot) else snapshot
