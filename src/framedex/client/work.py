"""Tasks and exports of a service, which are waited for by asking."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.errors import Aborted, InvalidInput, NotFound, TaskFailed
from framedex.records import ExportRecord, ExportStatus, TaskPage, TaskRecord, TaskStatus

_FIRST_S, _LONGEST_S = 0.1, 2.0
_PAGE = 50
_MOST_EXPORTED = 100_000


class ClientTask:
    """A task of a service; see :class:`framedex.Task`.

    Attributes:
        id: the task's UUID.
    """

    def __init__(self, connection: Connection, task_id: str, dataset_id: str | None = None) -> None:
        self.id, self._connection, self._dataset_id = task_id, connection, dataset_id

    @property
    def record(self) -> TaskRecord:
        """The current record of the task.

        Raises:
            NotFound: there is no such task.
        """
        page = 1
        while True:
            query = {"dataset_id": self._dataset_id, "page": page, "page_size": _PAGE}
            found = TaskPage.model_validate(self._connection.json(calls.TASKS, query=query))
            for record in found.tasks:
                if record.task_id == self.id:
                    self._dataset_id = record.dataset_id
                    return record
            if page >= found.total_pages:
                raise NotFound(f"no task {self.id!r}")
            page += 1

    @property
    def status(self) -> TaskStatus:
        """The current status."""
        return self.record.status

    @property
    def progress_percentage(self) -> int | None:
        """The progress in percent, 0 to 100."""
        return self.record.progress_percentage

    def wait(self, timeout_s: float | None = None) -> TaskRecord:
        """Wait for the end of the task and return its record.

        Args:
            timeout_s: the maximum time in seconds; the task continues afterwards.

        Raises:
            TaskFailed: the task failed.
            Aborted: the task was aborted.
            TimeoutError: the task was not done in time.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        pause = _FIRST_S
        while not (record := self.record).status.final:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"task {self.id} was not done within {timeout_s} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)
        if record.status is TaskStatus.ABORTED:
            raise Aborted("aborted on request")
        if record.status is TaskStatus.FAILED:
            raise TaskFailed(f"task {self.id} failed: {record.error_message}")
        return record

    def abort(self) -> TaskRecord:
        """Stop the task before its commit phase and return its record; errors as of :meth:`framedex.Task.abort`."""
        return TaskRecord.model_validate(self._connection.json(calls.ABORT_TASK, task_id=self.id))

    def retry(self) -> TaskRecord:
        """Run a failed or aborted task again and return its record; errors as of :meth:`framedex.Task.retry`."""
        return TaskRecord.model_validate(self._connection.json(calls.RETRY_TASK, task_id=self.id))

    def __repr__(self) -> str:
        record = self.record
        return f"<framedex.ClientTask {record.task_type} {record.status}: {self.id}>"


class ClientExport:
    """An export of a service, whose file is fetched when it is done.

    Attributes:
        id: the export's UUID.
        path: where its file will be.
    """

    def __init__(self, connection: Connection, dataset_id: str, export_id: str, path: Path) -> None:
        self._connection, self._dataset_id, self.id, self.path = connection, dataset_id, export_id, path

    @property
    def record(self) -> ExportRecord:
        """The current record of the export."""
        return export_record(
            self._connection.json(calls.EXPORT_STATUS, query={"export_task_id": self.id}, dataset_id=self._dataset_id)
        )

    def wait(self, timeout_s: float | None = None) -> ExportRecord:
        """Wait for the end of the export, fetch its file, and return its record.

        Raises:
            TaskFailed: the export failed.
            TimeoutError: it was not done in time.
            InvalidInput: the file cannot be written.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        pause = _FIRST_S
        while not (record := self.record).status.final:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"export {self.id} was not done within {timeout_s} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)
        if record.status is not ExportStatus.COMPLETED or record.download_uri is None:
            raise TaskFailed(f"export {self.id} failed: {record.result_message}")
        self._connection.download(record.download_uri, self.path)
        return record


def request_export(
    connection: Connection,
    dataset_id: str,
    parts: ViewParts,
    options: Mapping[str, Any],
    *,
    entity_type: str,
    media_selection: Sequence[Any] | None,
    ids: Callable[[int], list[str]],
) -> str:
    """Start an export of a view, by its filter or else by its ids, and return the id of the export.

    Args:
        connection: to the service.
        dataset_id: the dataset.
        parts: the view.
        options: parameters of the call.
        entity_type: of the exported entities.
        media_selection: media and clusters in place of the view.
        ids: returns ids of the view, up to a number.

    Raises:
        InvalidInput: a view that is searched, sorted or limited has more than 100,000 rows.
    """
    if media_selection is None and parts == ViewParts(vql=parts.vql):
        query = {**options, "entity_type": str(entity_type), "vql": json.dumps(list(parts.vql)) if parts.vql else None}
        return export_record(connection.json(calls.EXPORT, query=query, dataset_id=dataset_id)).id
    if media_selection is None:
        chosen = ids(_MOST_EXPORTED + 1)
        if len(chosen) > _MOST_EXPORTED:
            raise InvalidInput(f"up to {_MOST_EXPORTED:,} media are exported by their ids; use filters alone for more")
        media_selection = [{"type": "media", "payload": {"media_ids": chosen}}]
    body = {"media_selection": list(media_selection)}
    return export_record(connection.json(calls.EXPORT_SELECTION, query=options, body=body, dataset_id=dataset_id)).id


def export_record(body: Any) -> ExportRecord:
    """Return the record in an answer about an export."""
    return ExportRecord.model_validate({name: body[name] for name in ExportRecord.model_fields})
