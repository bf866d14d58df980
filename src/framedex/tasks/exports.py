"""Exports: each writes a file on a thread of this process, and has a record in the catalog."""

import threading
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from framedex.core import forks
from framedex.core.ids import new_id
from framedex.errors import Aborted, Conflict, Error, TaskFailed, WorkspaceError
from framedex.records import ExportRecord, ExportResult, ExportStatus
from framedex.storage import export_rows
from framedex.storage.catalog import Catalog
from framedex.storage.datasets import now
from framedex.storage.media import file_uri
from framedex.tasks.progress import Progress, TaskProgress
from framedex.tasks.waiting import result_of

_WORKERS = 2


class ExportJob(Protocol):
    """A function that writes the file of an export."""

    def __call__(
        self, *, begin: Callable[[int], None], progress: Callable[[float], None], settle: Callable[[], None]
    ) -> ExportResult:
        """Write the file and return the result.

        Args:
            begin: called with the number of media when the request is known to be valid.
            progress: called with the share that is done; raises to stop.
            settle: called when all is written, before the file gets its name; raises to discard it.
        """
        ...


class ExportTask:
    """An export, with the fields of the interface's export task.

    The status is PENDING until the request is validated; an invalid request ends as REJECTED. Then it is RUNNING, and
    finally COMPLETED or FAILED. An aborted export is FAILED.

    Attributes:
        id: the export's UUID.

    Examples:
        >>> export = ds.export("pets.zip", wait=False)
        >>> export.wait().result_message
        '33 media, 9 objects'
        >>> export
        <framedex.ExportTask COMPLETED: ...>
    """

    def __init__(
        self, catalog: Catalog, dataset_id: str, path: Path, job: ExportJob, *, created_by: str, heartbeat_s: float
    ) -> None:
        self.id, self._heartbeat_s = new_id(), heartbeat_s
        self._catalog, self._path, self._job = catalog, path, job
        self._report, self._future = TaskProgress(), Future[ExportResult]()
        self._lock, self._settled, self._unwritten = threading.Lock(), False, False
        self._row = threading.Lock()  # a beat must not write over what came after it looked
        self._record = ExportRecord(
            id=self.id,
            dataset_id=dataset_id,
            created_at=now(),
            status=ExportStatus.PENDING,
            progress=0,
            entities_count=None,
            result_message="",
            download_uri=None,
        )
        if not catalog.read_only:
            with catalog.write() as connection:
                export_rows.insert_export(connection, self._record, path=path, created_by=created_by)

    @property
    def record(self) -> ExportRecord:
        """The current record of the export.

        Examples:
            >>> export = ds.export("pets.zip", wait=False)
            >>> record = export.wait()
            >>> export.record.entities_count
            33
        """
        record = self._record
        return record if record.status.final else record.model_copy(update={"progress": self._percent})

    @property
    def status(self) -> ExportStatus:
        """The current status.

        Examples:
            >>> export = ds.export("pets.zip", wait=False)
            >>> record = export.wait()
            >>> print(export.status)
            COMPLETED
        """
        return self._record.status

    @property
    def result(self) -> ExportResult:
        """The result.

        Raises:
            Conflict: the export is in progress.
            Error: it was rejected, or it failed.

        Examples:
            >>> export = ds.export("cats.zip", "yolo", vql=vql.labels("cat"), wait=False)
            >>> record = export.wait()
            >>> export.result.total_objects
            4
        """
        if not self._future.done():
            raise Conflict(f"export {self.id} is {self.status}; there is no result yet")
        return self._ended(None)

    def wait(self, timeout_s: float | None = None, *, progress: Progress | None = None) -> ExportRecord:
        """Wait for the end of the export and return its record. An interrupt (Ctrl-C) aborts it.

        Args:
            timeout_s: maximum waiting time in seconds; the export continues afterwards.
            progress: called with (stage, share) on the export's thread.

        Raises:
            Error: it was rejected, or it failed; the class is that of the exception, or TaskFailed.
            Aborted: it was aborted.
            TimeoutError: it was not done in time.

        Examples:
            >>> ds.export("pets.zip", wait=False).wait().entities_count
            33
        """
        try:
            self._report.callback = progress
            self._ended(timeout_s)
        except KeyboardInterrupt:
            self._stop()
            raise
        finally:
            self._report.callback = None
        return self.record

    def _ended(self, timeout_s: float | None) -> ExportResult:
        try:
            return result_of(self._future, timeout_s)
        except TimeoutError:
            if not self._future.done():
                raise TimeoutError(f"export {self.id} was not done within {timeout_s} s") from None
            raise
        except CancelledError:
            raise Aborted("aborted on request") from None

    def abort(self) -> ExportRecord:
        """Stop the export and return its record, status FAILED; no file is left.

        Raises:
            Conflict: it has ended, or its file is being renamed to its final name.

        Examples:
            >>> export = ds.export("pets.zip", wait=False)
            >>> record = export.wait()
            >>> export.abort()
            Traceback (most recent call last):
                ...
            framedex.errors.Conflict: export ... cannot be aborted: it is COMPLETED
        """
        with self._lock:
            if self._settled or self._future.done():
                raise Conflict(f"export {self.id} cannot be aborted: it is {self.status}")
            self._report.cancel()
        self._stop()
        return self.record

    def _stop(self) -> None:
        self._report.cancel()
        if not self._future.done() and self._future.cancel():  # it waited for a thread
            self._end(ExportStatus.FAILED, "aborted on request")
        with suppress(CancelledError):
            self._future.exception()

    def _start(self, pool: ThreadPoolExecutor) -> None:
        """Run on a thread of a pool."""
        self._future = pool.submit(self._execute)
        threading.Thread(target=self._beat_until_closed, name="framedex-heartbeat", daemon=True).start()

    @property
    def _is_settled(self) -> bool:
        """True if the export has ended and its final status is in the catalog."""
        return self._report.closed.is_set()

    def _forget(self) -> None:
        """Stop the heartbeat."""
        self._report.closed.set()

    def _leave(self) -> None:
        """Fail all waiting in the child of a fork: the export continues in the parent."""
        self._lock, self._row = threading.Lock(), threading.Lock()
        if not self._future.done():
            self._future = Future()
            self._future.set_exception(WorkspaceError(f"export {self.id} {forks.REASON}"))

    def _interrupt(self, reason: str | None) -> None:
        """Stop the export at its next check; *reason* as in :meth:`TaskProgress.interrupt`."""
        self._report.interrupt(reason)

    def _execute(self) -> ExportResult:
        try:
            self._report.check()
            result = self._job(begin=self._begin, progress=self._report.part("media", 0.0, 1.0), settle=self._settle)
            self._end(ExportStatus.COMPLETED, "; ".join([result.message, *result.warnings]))
        except Aborted as error:
            self._end(ExportStatus.FAILED, str(error))
            raise
        except Error as error:
            rejected = self.status is ExportStatus.PENDING
            self._end(ExportStatus.REJECTED if rejected else ExportStatus.FAILED, str(error))
            raise
        except BaseException as error:  # also SystemExit: on this thread it would end nothing but the export
            reason = "".join(traceback.format_exception_only(error)).strip()
            self._end(ExportStatus.FAILED, reason)
            raise TaskFailed(f"export to {self._path} failed: {reason}") from error
        return result

    def _begin(self, total: int) -> None:
        self._put(status=ExportStatus.RUNNING, entities_count=total)
        self._report.check()

    def _settle(self) -> None:
        with self._lock:
            self._report.check()
            self._settled = True
        if not self._catalog.read_only:
            with self._catalog.read() as connection:
                export_rows.check_own(connection, self.id)

    def _end(self, status: ExportStatus, message: str) -> None:
        done = status is ExportStatus.COMPLETED
        changes = {
            "status": status,
            "result_message": message.encode("utf-8", "backslashreplace").decode(),  # paths may be any bytes
            "progress": 100 if done else self._percent,
            "download_uri": file_uri(self._path) if done else None,
        }
        try:
            self._put(**changes)
        except WorkspaceError:  # as on a full disk; the next beat that can writes it
            with self._row:
                self._record, self._unwritten = self._record.model_copy(update=changes), True
            return
        self._report.closed.set()

    def _put(self, **changes: Any) -> None:
        """Change the record in memory and in the catalog."""
        with self._row:
            record = self._record.model_copy(update=changes)
            if not self._catalog.read_only:
                with self._catalog.write() as connection:
                    export_rows.update_export(connection, record)
            self._record = record

    @property
    def _percent(self) -> int:
        return round(100 * self._report.share)

    def _beat_until_closed(self) -> None:
        while not self._report.closed.wait(self._heartbeat_s):
            # A beat that fails, as on a full disk, must not end those that follow.
            with suppress(Exception):
                self._beat()

    def _beat(self) -> None:
        """Store the progress, as a heartbeat; stop the export if another process marked it as interrupted."""
        with self._row:
            if self._catalog.read_only or (self.status.final and not self._unwritten):
                return
            with self._catalog.write() as connection:
                own = export_rows.update_export(connection, self.record)
            if self._unwritten:
                self._unwritten = False
                self._report.closed.set()
                return
        if not own:
            self._report.cancel(export_rows.interruption(self.id))

    def __repr__(self) -> str:
        return f"<framedex.ExportTask {self.status}: {self.id}>"


class Exports:
    """Runner of this process's exports, a few at a time."""

    def __init__(self, catalog: Catalog, *, heartbeat_s: float) -> None:
        self._catalog, self._heartbeat_s = catalog, heartbeat_s
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._tasks: list[ExportTask] = []
        forks.renew_after_forks(self)

    def renew(self) -> None:
        """Forget all exports in the child of a fork; they belong to its parent."""
        self._lock, self._pool = threading.Lock(), None
        for task in self._tasks:
            task._leave()
        self._tasks = []

    def start(self, dataset_id: str, path: Path, job: ExportJob, *, created_by: str) -> ExportTask:
        """Start an export and return it.

        Args:
            dataset_id: the dataset.
            path: the file, absolute.
            job: writes the file.
            created_by: the user who starts the export.
        """
        task = ExportTask(self._catalog, dataset_id, path, job, created_by=created_by, heartbeat_s=self._heartbeat_s)
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="framedex-export")
            self._tasks = [each for each in self._tasks if not each._is_settled] + [task]
            task._start(self._pool)
        return task

    def close(self, reason: str | None = None) -> None:
        """Stop all exports in progress and wait for their end; *reason* is that of a planned stop."""
        for task in self._tasks:
            task._interrupt(reason)
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        for task in self._tasks:
            with suppress(WorkspaceError):
                task._beat()  # an end that could not be written when it came
            task._forget()
        self._tasks = []
