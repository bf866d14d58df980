"""The user's view of a task, of this process or of another."""

from concurrent.futures import CancelledError

from framedex.errors import Aborted, Conflict, NotRetryable, TaskFailed, WorkspaceError
from framedex.records import DatasetStatus, TaskRecord, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.leases import unleased
from framedex.tasks.progress import Job, Progress
from framedex.tasks.runner import Run, Runner, wait_until_ended
from framedex.tasks.waiting import result_of

_RETRYABLE = (TaskStatus.FAILED, TaskStatus.ABORTED)
_MAKES_A_DATASET = (TaskType.DATASET_CREATION, TaskType.SNAPSHOT_CLONE, TaskType.ENRICHMENT)


class Task:
    """A long operation, with the fields of the interface's Task.

    Attributes:
        id: the task's UUID.

    Examples:
        >>> task = ds.add_media("new", wait=False)
        >>> task.wait().status_message
        'done'
        >>> task
        <framedex.Task MEDIA_ADDITION COMPLETED: ...>
    """

    def __init__(self, runner: Runner, task_id: str) -> None:
        self.id, self._runner = task_id, runner

    @property
    def _run(self) -> Run | None:
        return self._runner.run_of(self.id)

    @property
    def record(self) -> TaskRecord:
        """The current record of the task in the catalog.

        Examples:
            >>> task = ws.task(ds.last_task.task_id)
            >>> print(task.record.task_type, task.record.created_by)
            MAP ann@example.org
        """
        self._runner.settle()
        with self._runner.catalog.read() as connection:
            return task_rows.get_task(connection, self.id)

    @property
    def status(self) -> TaskStatus:
        """The current status.

        Examples:
            >>> print(ws.task(ds.last_task.task_id).status)
            COMPLETED
        """
        return self.record.status

    @property
    def progress_percentage(self) -> int | None:
        """The progress in percent, 0 to 100.

        Examples:
            >>> ws.task(ds.last_task.task_id).progress_percentage
            100
        """
        run = self._run
        return self.record.progress_percentage if run is None or run.future.done() else round(100 * run.progress.share)

    def wait(self, timeout_s: float | None = None, *, progress: Progress | None = None) -> TaskRecord:
        """Wait for the end of the task and return its record.

        An interrupt (Ctrl-C) aborts a task of this process; a task of another process continues.

        Args:
            timeout_s: maximum waiting time in seconds; the task continues afterwards.
            progress: called with (stage, share) on the task's thread.

        Raises:
            Error: the task failed; the class is that of the job's exception, or TaskFailed.
            Aborted: the task was aborted.
            TimeoutError: the task was not done in time.

        Examples:
            >>> task = ds.add_media("new", wait=False)
            >>> task.wait(timeout_s=60).status_message
            'done'
        """
        if (run := self._run) is None:
            return self._wait_elsewhere(timeout_s, progress)
        try:
            run.progress.callback = progress
            result_of(run.future, timeout_s)
        except TimeoutError:
            if not run.future.done():
                raise TimeoutError(f"task {self.id} was not done within {timeout_s} s") from None
            raise
        except CancelledError:
            raise Aborted("aborted on request") from None
        except KeyboardInterrupt as interrupt:
            run.stop()
            interrupt.add_note(self._after_interrupt())
            raise
        finally:
            run.progress.callback = None
        return self.record

    def _after_interrupt(self) -> str:
        """Return what an interrupt of the waiting has done, in a sentence."""
        record = self.record
        if record.status is TaskStatus.COMPLETED:
            return f"The {record.task_type} of {record.dataset_name!r} was complete before the interrupt, and stays."
        return f"The {record.task_type} of {record.dataset_name!r} was aborted: it has changed nothing."

    def _wait_elsewhere(self, timeout_s: float | None, progress: Progress | None) -> TaskRecord:
        def report(record: TaskRecord) -> None:
            if progress is not None:
                progress(record.status_message, (record.progress_percentage or 0) / 100)

        record = wait_until_ended(self._runner.catalog, self.id, timeout_s=timeout_s, on_record=report)
        if record is None:
            raise TimeoutError(f"task {self.id} was not done within {timeout_s} s")
        if record.status is TaskStatus.ABORTED:
            raise Aborted("aborted on request")
        if record.status is TaskStatus.FAILED:
            raise TaskFailed(f"task {self.id} failed: {record.error_message}")
        return record

    def abort(self) -> TaskRecord:
        """Stop the task before its commit phase and return its record, status ABORTED.

        Raises:
            Conflict: the task has ended, is in its commit phase, or is being aborted.
            WorkspaceError: the task has ended, and the catalog cannot be written.

        Examples:
            >>> print(running.abort().status)
            ABORTED
        """
        run = self._run
        if run is not None and run.is_unwritten:
            run.settle()
            if run.is_unwritten:
                raise WorkspaceError(f"task {self.id} has ended, which cannot be written to the catalog at present")
        if run is None or run.future.done():
            self._abort_elsewhere()
        else:
            run.abort()
        if (record := self.record).status is not TaskStatus.ABORTED:
            raise Conflict(f"task {self.id} cannot be aborted: it is {record.status}")
        return record

    def _abort_elsewhere(self) -> None:
        with self._runner.catalog.write() as connection:
            task_rows.fail_interrupted(connection)
            task_rows.request_abort(connection, self.id)
        wait_until_ended(self._runner.catalog, self.id, timeout_s=None)

    def retry(self) -> TaskRecord:
        """Run a failed or aborted task again and return its record, status INITIALIZING.

        The task resumes from its last checkpoint if the checkpoint still exists.

        Raises:
            NotRetryable: the task is neither FAILED nor ABORTED, its source was an object in another process, or its
                uploaded files were discarded.
            Conflict: another task is in progress on the dataset, or on the source of an enrichment.
            NotFound: the dataset, or the source of an enrichment, was deleted.

        Examples:
            >>> print(failed.status)
            FAILED
            >>> record = failed.retry()
            >>> print(failed.wait().status)
            COMPLETED
        """
        self._check_retryable(self.record)
        job = self._runner.job_of(self.record)
        with unleased(self._runner.catalog, self.record.dataset_id, "retry") as connection:
            record = task_rows.get_task(connection, self.id)
            self._check_retryable(record)
            dataset = datasets.find_dataset(connection, record.dataset_id)
            if (busy := task_rows.running(connection, record.dataset_id)) is not None:
                raise Conflict(f"task {self.id} cannot be retried while {busy} task is running")
            if record.task_type is TaskType.DATASET_CREATION and dataset.status_new is not DatasetStatus.ERROR:
                raise NotRetryable(
                    f"task {self.id} cannot be retried: its files were discarded, and {dataset.display_name!r} is "
                    f"{dataset.status_new}; upload the files again"
                )
            task_rows.hold_source(connection, self.id)
            task_rows.restart_task(connection, self.id)
            creates = record.task_type in _MAKES_A_DATASET
            status_shown = DatasetStatus.INDEXING if creates else DatasetStatus.READ_ONLY
            datasets.update_dataset(connection, record.dataset_id, status=status_shown, progress=0)
        self._runner.start(self.id, record.dataset_id, job)
        return self.record

    def _check_retryable(self, record: TaskRecord) -> None:
        if record.status not in _RETRYABLE:
            raise NotRetryable(f"task {self.id} is {record.status}; only FAILED and ABORTED tasks can be retried")

    def __repr__(self) -> str:
        record = self.record
        return f"<framedex.Task {record.task_type} {record.status}: {self.id}>"


def start_task(runner: Runner, task_id: str, dataset_id: str, job: Job) -> Task:
    """Start a job whose task row :meth:`Runner.insert` has written, and return its task."""
    runner.start(task_id, dataset_id, job)
    return Task(runner, task_id)
