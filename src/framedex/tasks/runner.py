"""Runs tasks on a few threads of this process and keeps their rows in the catalog true."""

import os
import socket
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any

from framedex.errors import Aborted, Conflict, Error, TaskFailed
from framedex.records import DatasetRecord, DatasetStatus, TaskRecord, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.catalog import Catalog

Commit = Callable[[Any], None]
"""Given an open transaction of the catalog, makes a job's result visible in it."""

Watcher = Callable[[str, float], None]
_HEARTBEAT_S = 2.0
_WORKERS = 4
_RETRYABLE = (TaskStatus.FAILED, TaskStatus.ABORTED)


class Report:
    """What a job tells of its progress; the way by which it learns that it should stop."""

    def __init__(self) -> None:
        self.stage, self.share = "starting", 0.0
        self.watcher: Watcher | None = None
        self.closed = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, stage: str, share: float) -> None:
        """Note how far the job is.

        Args:
            stage: what is being done, in words for people.
            share: how much of the whole job is done, 0 to 1.

        Raises:
            Aborted: the job should stop.
        """
        self.stage, self.share = stage, min(max(share, 0.0), 1.0)
        if self.watcher is not None:
            self.watcher(self.stage, self.share)
        self.check()

    def check(self) -> None:
        """Raise Aborted if the job should stop."""
        if self.cancelled.is_set():
            raise Aborted("aborted on request")

    def part(self, stage: str, start: float, end: float) -> Callable[[float], None]:
        """Return a function that reports shares of one stage, which takes the job from *start* to *end*."""
        return lambda share: self(stage, start + (end - start) * share)

    def stages(self, start: float, end: float) -> Watcher:
        """Return a function that reports stages by name, which take the job from *start* to *end*."""
        return lambda stage, share: self(stage, start + (end - start) * share)


Job = Callable[[Report], Commit]


class Task:
    """A long operation. Its fields are those of the interface's Task.

    Attributes:
        id: the task's UUID.
    """

    def __init__(self, runner: "Runner", task_id: str, dataset_id: str, job: Job) -> None:
        self.id = task_id
        self._dataset_id = dataset_id
        self._runner, self._job = runner, job
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._report, self._committing = Report(), False
        self._future: Future[None] = self._runner.start(self)

    @property
    def record(self) -> TaskRecord:
        """The task as it stands in the catalog."""
        with self._runner.catalog.read() as connection:
            return task_rows.get_task(connection, self.id)

    @property
    def status(self) -> TaskStatus:
        """Where the task stands."""
        return self.record.status

    @property
    def progress_percentage(self) -> int | None:
        """How much is done, 0 to 100."""
        return round(100 * self._report.share) if not self._future.done() else self.record.progress_percentage

    def wait(self, timeout_s: float | None = None, *, watcher: Watcher | None = None) -> TaskRecord:
        """Wait for the end of the task and return its record. An interrupt (Ctrl-C) aborts the task.

        Args:
            timeout_s: give up waiting after so many seconds; the task goes on.
            watcher: called on the task's thread with (stage, share) as the job reports.

        Raises:
            Error: the task failed; of the class that the job raised, or TaskFailed.
            Aborted: the task was aborted.
            TimeoutError: it was not done in time.
        """
        self._report.watcher = watcher
        try:
            self._future.result(timeout_s)
        except FutureTimeout:
            if not self._future.done():
                raise TimeoutError(f"task {self.id} was not done within {timeout_s} s") from None
            raise
        except CancelledError:
            raise Aborted("aborted on request") from None
        except KeyboardInterrupt:
            self._stop()
            raise
        finally:
            self._report.watcher = None
        return self.record

    def abort(self) -> TaskRecord:
        """Stop the task before its commit phase and return its record, status ABORTED.

        Raises:
            Conflict: it is done already, or in its commit phase.
        """
        with self._lock:
            if self._committing or self._future.done():
                state = "in its commit phase" if not self._future.done() else self.status.value
                raise Conflict(f"task {self.id} cannot be aborted: it is {state}")
            self._report.cancelled.set()
        self._stop()
        if (record := self.record).status is not TaskStatus.ABORTED:
            raise Conflict(f"task {self.id} cannot be aborted: it is {record.status}")
        return record

    def _stop(self) -> None:
        self._report.cancelled.set()
        if not self._future.done() and self._future.cancel():  # it waited for a thread
            self._end(TaskStatus.ABORTED, "aborted on request")
            self._report.closed.set()
        with suppress(CancelledError):
            self._future.exception()

    def retry(self) -> TaskRecord:
        """Run a failed or aborted task again, from its beginning, and return its record.

        Raises:
            Conflict: the task is neither FAILED nor ABORTED.
            NotFound: its dataset was deleted.
        """
        if self.status in _RETRYABLE:
            self._stop()  # its row says so a moment before its thread ends
        with self._lock:
            if (status := self.status) not in _RETRYABLE:
                raise Conflict(f"task {self.id} is {status}; only FAILED and ABORTED tasks can be retried")
            with self._runner.catalog.write() as connection:
                datasets.find_dataset(connection, self._dataset_id)
                if (busy := task_rows.running(connection, self._dataset_id)) is not None:
                    raise Conflict(f"task {self.id} cannot be retried while {busy} task is running")
                task_rows.update_task(
                    connection,
                    self.id,
                    status=TaskStatus.INITIALIZING,
                    status_message="starting",
                    error_message=None,
                    end_time=None,
                    owner=_owner(),
                )
                creates = self.record.task_type is TaskType.DATASET_CREATION
                shows = DatasetStatus.INDEXING if creates else DatasetStatus.READ_ONLY
                datasets.update_dataset(connection, self._dataset_id, status=shows, progress=0)
            self._start()
        return self.record

    def execute(self) -> None:
        """Run the job and commit it; called by the runner, on its thread."""
        catalog, report = self._runner.catalog, self._report
        try:
            report.check()
            with catalog.write() as connection:
                task_rows.update_task(connection, self.id, status=TaskStatus.RUNNING, progress_percentage=0)
            commit = self._job(report)
            with self._lock:
                report.check()
                self._committing = True
            with catalog.write() as connection:
                task_rows.check_owned(connection, self.id, _owner())
                commit(connection)
                task_rows.finish_task(
                    connection, self.id, TaskStatus.COMPLETED, progress_percentage=100, status_message="done"
                )
        except Aborted:
            self._end(TaskStatus.ABORTED, "aborted on request")
            raise
        except Error as error:
            self._end(TaskStatus.FAILED, str(error))
            raise
        except BaseException as error:  # also SystemExit: on this thread it would end nothing but the task
            self._end(TaskStatus.FAILED, "".join(traceback.format_exception_only(error)).strip())
            raise TaskFailed(f"task {self.id} failed: {type(error).__name__}: {error}") from error
        finally:
            report.closed.set()

    def _end(self, status: TaskStatus, message: str) -> None:
        with self._runner.catalog.write() as connection:
            error = message if status is TaskStatus.FAILED else None
            task_rows.finish_task(connection, self.id, status, error_message=error, status_message=message)
            if not task_rows.is_busy(connection, self._dataset_id):  # a task that was given up may have a successor
                datasets.mark_broken(connection, self._dataset_id)

    def beat(self) -> None:
        """Write the progress to the catalog now and then until the task ends: the sign that its process lives."""
        while not self._report.closed.wait(_HEARTBEAT_S):
            # A beat that fails, as on a full disk, must not end those that follow.
            with suppress(Exception), self._runner.catalog.write() as connection:
                self._beat(connection)

    def _beat(self, connection: Any) -> None:
        if not self._future.running():  # it waits for a thread, and lives
            task_rows.update_task(connection, self.id)
            return
        percent = round(100 * self._report.share)
        task_rows.update_progress(connection, self.id, percent, self._report.stage)
        datasets.update_progress(connection, self._dataset_id, percent)


class Runner:
    """Starts tasks of this process.

    Attributes:
        catalog: where their rows are.
    """

    def __init__(self, catalog: Catalog, *, user: str) -> None:
        self.catalog, self._user = catalog, user
        self._pool: ThreadPoolExecutor | None = None
        self._tasks: list[Task] = []

    def insert(self, connection: Any, dataset: DatasetRecord, task_type: TaskType) -> str:
        """Add the row of a task that :meth:`submit` will start, in the transaction that needs it; return its id."""
        return task_rows.insert_task(connection, dataset, task_type=task_type, created_by=self._user, owner=_owner())

    def submit(self, task_id: str, dataset_id: str, job: Job) -> Task:
        """Start a job for a dataset and return its task."""
        return Task(self, task_id, dataset_id, job)

    def start(self, task: Task) -> Future[None]:
        """Run a task on a thread of the pool."""
        self._tasks = [each for each in self._tasks if each is not task and not each._future.done()] + [task]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="framedex-task")
        future = self._pool.submit(task.execute)
        threading.Thread(target=task.beat, name="framedex-heartbeat", daemon=True).start()
        return future

    def close(self) -> None:
        """Abort what still runs and wait for it."""
        for task in self._tasks:
            task._report.cancelled.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
