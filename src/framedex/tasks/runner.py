"""Execution of tasks on a few threads of this process, with their records in the catalog."""

import logging
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from framedex.core import forks
from framedex.errors import Aborted, Conflict, Error, NotRetryable, TaskFailed, WorkspaceError
from framedex.records import DatasetRecord, TaskRecord, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.catalog import Catalog
from framedex.storage.failures import own_errors
from framedex.tasks.progress import Commit, Job, TaskProgress

_LOG = logging.getLogger(__name__)
_WORKERS = 4
_MAX_ENDED = 64  # ended tasks whose jobs stay in memory for a retry

RebuildJob = Callable[[TaskRecord, dict[str, Any]], Job]
"""Returns the job of an ended task for a retry, given its record and its config."""
AfterCommit = Callable[[str], None]
"""Cleans up after a change of a dataset, given its id; never raises."""


class Run:
    """Execution of a task in this process.

    Attributes:
        task_id, dataset_id: the task and its dataset.
        job: the work.
        progress: progress of the job.
        future: done when the task has ended.
    """

    def __init__(
        self,
        catalog: Catalog,
        task_id: str,
        dataset_id: str,
        job: Job,
        after_commit: AfterCommit | None = None,
        *,
        heartbeat_s: float,
    ) -> None:
        self.task_id, self.dataset_id, self.job, self._after_commit = task_id, dataset_id, job, after_commit
        self._heartbeat_s = heartbeat_s
        self.progress = TaskProgress(save=self.save, commit=self.commit_part)
        self.future: Future[None] = Future()
        self._catalog, self._committing, self._aborting = catalog, False, False
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._unwritten: tuple[TaskStatus, str, str] | None = None

    def execute(self) -> None:
        """Run the job and commit its result."""
        start_s = time.monotonic()
        try:
            self.progress.check()
            with own_errors(f"write dataset {self.dataset_id}"):
                commit = self.job(self._begin())
            with self._lock:
                self.progress.check()
                self._committing = True
            with self._catalog.write() as connection:
                task_rows.check_owned(connection, self.task_id)
                commit(connection)
                task_rows.finish_task(
                    connection,
                    self.task_id,
                    TaskStatus.COMPLETED,
                    progress_percentage=100,
                    status_message=self.progress.outcome,
                    resume=None,
                )
                task_rows.release_source(connection, self.task_id)
            _LOG.info("task %s ends after %.1f s: %s", self.task_id, time.monotonic() - start_s, self.progress.outcome)
            if self._after_commit is not None:
                self._after_commit(self.dataset_id)
        except Aborted:
            if self.progress.interruption is None:
                self.end(TaskStatus.ABORTED, "aborted on request")
            else:
                self.end(TaskStatus.FAILED, task_rows.INTERRUPTED, self.progress.interruption)
            raise
        except Error as error:
            self.end(TaskStatus.FAILED, str(error))
            raise
        except BaseException as error:  # also SystemExit: on this thread it would end nothing but the task
            if isinstance(error, RuntimeError) and is_exiting():
                self.end(TaskStatus.ABORTED, "its process ended")
                raise Aborted("the process ended before the task was done") from error
            self.end(TaskStatus.FAILED, "".join(traceback.format_exception_only(error)).strip())
            raise TaskFailed(f"task {self.task_id} failed: {type(error).__name__}: {error}") from error
        else:
            self.progress.closed.set()

    def _begin(self) -> TaskProgress:
        """Mark the task as running; return its progress, with the checkpoint to resume from."""
        with self._catalog.write() as connection:
            task_rows.update_task(connection, self.task_id, status=TaskStatus.RUNNING, progress_percentage=0)
            self.progress.resume = task_rows.read_resume(connection, self.task_id)
        _LOG.info(
            "task %s on dataset %s begins%s", self.task_id, self.dataset_id,
            " at the checkpoint of an earlier run" if self.progress.resume else "",
        )  # fmt: skip
        return self.progress

    def save(self, state: dict[str, Any], commit: Commit | None = None) -> None:
        """Save a checkpoint for a later run; *commit* writes more into the same transaction."""
        with self._catalog.write() as connection:
            task_rows.check_owned(connection, self.task_id)
            if commit is not None:
                commit(connection)
            task_rows.update_task(connection, self.task_id, resume=state)
        _LOG.debug("task %s: a checkpoint is stored at %.0f %%", self.task_id, 100 * self.progress.share)

    def commit_part(self, commit: Commit, config: Callable[[], dict[str, Any]]) -> None:
        """Commit a part of the job's result, and replace the task's config with the remaining work."""
        with self._catalog.write() as connection:
            task_rows.check_owned(connection, self.task_id)
            commit(connection)
            task_rows.update_task(connection, self.task_id, config=config())

    def end(self, status: TaskStatus, message: str, error: str | None = None) -> None:
        """Set the task's final status, and its dataset's status according to the head.

        If the catalog cannot be written, for example on a full disk, :meth:`settle` tries again.

        Args:
            status: the final status.
            message: the status message.
            error: the error message of a task that failed; by default the status message.
        """
        with self._ending:
            self._unwritten = (status, message, message if error is None else error)
            _LOG.info("task %s is %s: %s", self.task_id, status, self._unwritten[2])
            self._write_end()

    def settle(self) -> None:
        """Write the task's final status if that has failed before."""
        with self._ending:
            if self._unwritten is not None:
                self._write_end()

    @property
    def is_unwritten(self) -> bool:
        """True if the task has ended and its final status is not in the catalog yet."""
        return self._unwritten is not None

    def _write_end(self) -> None:
        assert self._unwritten is not None, "there is an end to write"
        try:
            self._finish(*self._unwritten)
        except WorkspaceError as error:
            _LOG.info("task %s: its end cannot be stored yet: %s", self.task_id, error)
        else:
            self._unwritten = None
            self.progress.closed.set()

    def _finish(self, status: TaskStatus, message: str, failure: str) -> None:
        with self._catalog.write() as connection:
            if not task_rows.is_own(connection, self.task_id):  # it was marked as interrupted and may run elsewhere
                return
            if message == task_rows.INTERRUPTED and task_rows.is_abort_requested(connection, self.task_id):
                status, message = TaskStatus.ABORTED, "aborted on request"
            error = failure if status is TaskStatus.FAILED else None
            task_rows.finish_task(connection, self.task_id, status, error_message=error, status_message=message)
            if not task_rows.is_busy(connection, self.dataset_id):
                datasets.mark_broken(connection, self.dataset_id)
            task_rows.release_source(connection, self.task_id)

    def abort(self) -> None:
        """Stop before the commit phase and wait for the end.

        Raises:
            Conflict: the task has ended, is in its commit phase, or is being aborted.
        """
        with self._lock:
            if self._committing or self._aborting or self.future.done():
                is_done = self.future.done()
                state = "done" if is_done else "in its commit phase" if self._committing else "being aborted already"
                raise Conflict(f"task {self.task_id} cannot be aborted: it is {state}")
            self._aborting = True
            self.progress.cancel()
        self.stop()

    def stop(self) -> None:
        """Stop the job and wait for its end."""
        self.progress.cancel()
        if not self.future.done() and self.future.cancel():  # it waited for a thread
            self.end(TaskStatus.ABORTED, "aborted on request")
        with suppress(CancelledError):
            self.future.exception()

    def beat(self) -> None:
        """Write the progress to the catalog at intervals until the task ends, as a heartbeat of its process."""
        while not self.progress.closed.wait(self._heartbeat_s):
            try:
                self.settle()
                with self._catalog.write() as connection:
                    self._beat(connection)
            except Exception as error:  # as on a full disk; it must not end the beats that follow
                _LOG.info("task %s: a heartbeat failed: %s", self.task_id, error)

    def _beat(self, connection: Any) -> None:
        if not task_rows.is_own(connection, self.task_id):
            # The machine slept, and another process marked the task as interrupted.
            self.progress.cancel(Conflict(f"task {self.task_id} was given up while this process did not run"))
            return
        if task_rows.is_abort_requested(connection, self.task_id):
            self.progress.cancel()
        if not self.future.running():  # it waits for a thread
            task_rows.update_task(connection, self.task_id)
            return
        percent = round(100 * self.progress.share)
        task_rows.update_progress(connection, self.task_id, percent, self.progress.stage)
        datasets.update_dataset_progress(connection, self.dataset_id, percent)


def is_exiting() -> bool:
    """Return whether the interpreter is shutting down: thread pools then accept no work."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(int)
        except RuntimeError:
            return True
    return False


class Runner:
    """Runner of this process's tasks.

    Attributes:
        catalog: with the tasks' records.
        rebuild_job: returns the job of another process's task for a retry; set when the workspace is opened.
        after_commit: called after each change of a dataset; set when the workspace is opened.
    """

    def __init__(self, catalog: Catalog, *, heartbeat_s: float) -> None:
        self.catalog, self._heartbeat_s = catalog, heartbeat_s
        self.rebuild_job: RebuildJob | None = None
        self.after_commit: AfterCommit | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._runs: dict[str, Run] = {}
        forks.renew_after_forks(self)

    def renew(self) -> None:
        """Forget all tasks in the child of a fork; they belong to its parent."""
        self._pool, self._runs = None, {}

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads that run tasks, made at the first use."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="framedex-task")
        return self._pool

    def insert(
        self,
        connection: Any,
        dataset: DatasetRecord,
        task_type: TaskType,
        config: dict[str, Any] | None = None,
        *,
        created_by: str,
        task_id: str | None = None,
    ) -> str:
        """Insert the row of a task that :meth:`start` will run, within a transaction; return the task's id.

        Args:
            connection: the transaction.
            dataset: the dataset.
            task_type: of the task.
            config: arguments of the task as JSON, for :attr:`rebuild_job`; None if only this process can run it.
            created_by: the user who starts the task.
            task_id: the id of the task; None for a new one.

        Raises:
            Conflict: a task has the id.
        """
        return task_rows.insert_task(
            connection, dataset, task_type=task_type, created_by=created_by, config=config, task_id=task_id
        )

    def run_of(self, task_id: str) -> Run | None:
        """Return this process's run of a task, in progress or ended; None for a task of another process."""
        return self._runs.get(task_id)

    def job_of(self, record: TaskRecord) -> Job:
        """Return the job of a task, for a retry.

        Raises:
            NotRetryable: only the process that started the task could run it.
            Error: its dataset or source does not exist any more.
        """
        if (run := self._runs.get(record.task_id)) is not None:
            run.stop()  # the thread ends shortly after the row is written
            return run.job
        with self.catalog.read() as connection:
            config = task_rows.read_config(connection, record.task_id)
        if config is None or self.rebuild_job is None:
            raise NotRetryable(
                f"task {record.task_id} was given its source as an object of another process; "
                "start it again with that object"
            )
        return self.rebuild_job(record, config)

    def start(self, task_id: str, dataset_id: str, job: Job) -> Run:
        """Run a task, whose row exists, on a thread of the pool.

        An interrupt (Ctrl-C) before this returns aborts the task.
        """
        run = Run(self.catalog, task_id, dataset_id, job, self.after_commit, heartbeat_s=self._heartbeat_s)
        try:
            self._forget()
            self._runs[task_id] = run
            run.future = self.pool.submit(run.execute)
            threading.Thread(target=run.beat, name="framedex-heartbeat", daemon=True).start()
        except BaseException:
            run.stop()
            raise
        return run

    def _forget(self) -> None:
        """Drop the jobs of ended tasks, except for the last ones."""
        ended = [task_id for task_id, run in self._runs.items() if run.future.done()]
        for task_id in ended[:-_MAX_ENDED]:
            del self._runs[task_id]

    def settle(self) -> None:
        """Write final statuses that could not be written before."""
        for run in list(self._runs.values()):
            run.settle()

    def close(self, reason: str | None = None) -> None:
        """Stop all tasks in progress and wait for their end.

        Args:
            reason: the reason of a planned stop, after which the tasks are FAILED as interrupted; None aborts them.
        """
        for run in self._runs.values():
            run.progress.interrupt(reason)
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        self.settle()
        for run in self._runs.values():
            run.progress.closed.set()
        self._runs.clear()


def wait_until_ended(
    catalog: Catalog, task_id: str, *, timeout_s: float | None, on_record: Any = None
) -> TaskRecord | None:
    """Wait for the end of a task of any process; return its record, or None if the time is over.

    Args:
        catalog: with the task's record.
        task_id: the task.
        timeout_s: maximum waiting time in seconds; None for no limit.
        on_record: called with the record at intervals.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    pause_s = 0.02
    while True:
        with catalog.read() as connection:
            dead = task_rows.has_interrupted(connection)
            record = task_rows.get_task(connection, task_id)
        if record.status.final:
            return record
        if dead and not catalog.read_only:
            with catalog.write() as connection:
                task_rows.fail_interrupted(connection)
            continue
        if on_record is not None:
            on_record(record)
        if end is not None and time.monotonic() >= end:
            return None
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.5)
