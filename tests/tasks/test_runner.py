"""Tasks: started, watched, aborted, retried, committed whole."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest

from framedex import (
    Aborted,
    Conflict,
    Dataset,
    Error,
    InvalidEmbedding,
    NotFound,
    NotIndexed,
    NotRetryable,
    Task,
    TaskFailed,
    Workspace,
)
from framedex.records import DatasetStatus, TaskRecord, TaskStatus, TaskType
from framedex.tasks import start_task
from tests.gallery import SETTINGS, Faulty, Gallery, Gate, embedded, fill
from tests.inside import catalog_of, context_of
from tests.pauses import run_of, wait_until

FIELDS = [
    "task_id", "dataset_id", "dataset_name", "dataset_status", "created_by", "task_type", "status", "status_message",
    "progress_percentage", "error_message", "start_time", "end_time",
]  # fmt: skip


def held(workspace: Workspace, folder: Path, name: str = "held") -> tuple[Dataset, Task, Gate]:
    """Return a dataset whose task waits at a gate."""
    gate = Gate()
    dataset = workspace.create_dataset(name, folder, gate, wait=False)
    assert gate.reached.wait(60)
    assert dataset.task is not None
    return dataset, dataset.task, gate


def test_task__record_of_a_finished_one(gallery: Gallery) -> None:
    """A task has the fields of the interface, in its words."""
    record = next(each for each in gallery.workspace.tasks().tasks if each.task_type == TaskType.DATASET_CREATION)
    assert list(record.model_dump()) == FIELDS
    assert record.model_dump(mode="json") | {"task_id": 0, "dataset_id": 0, "start_time": 0, "end_time": 0} == {
        "task_id": 0,
        "dataset_id": 0,
        "dataset_name": "gallery",
        "dataset_status": "READY",
        "created_by": "tester@example.org",
        "task_type": "DATASET_CREATION",
        "status": "COMPLETED",
        "status_message": "done; read: image_annotations.csv; left out: 1 hidden files, 1 other files (.txt)",
        "progress_percentage": 100,
        "error_message": None,
        "start_time": 0,
        "end_time": 0,
    }
    assert record.dataset_id == gallery.dataset.id
    assert record.end_time is not None
    assert record.end_time >= record.start_time
    task = gallery.workspace.task(record.task_id)
    assert repr(task) == f"<framedex.Task DATASET_CREATION COMPLETED: {record.task_id}>"


def test_task__while_it_runs(workspace: Workspace, folder: Path) -> None:
    """A running task says so, its dataset is INDEXING and has nothing to show, and others are not held up."""
    dataset, task, gate = held(workspace, folder)
    assert task.status is TaskStatus.RUNNING
    assert task.progress_percentage is not None
    assert 0 <= task.progress_percentage < 100
    assert task.record.end_time is None
    assert dataset.info.status_new is DatasetStatus.INDEXING
    for ask in (dataset.count, dataset.explore, dataset.issues, dataset.duplicates, dataset.embeddings):
        with pytest.raises(Conflict, match="'held' has nothing to show yet; its status is INDEXING"):
            ask()
    with pytest.raises(NotIndexed, match="no embedding config"):
        _ = dataset.embedding_config
    assert "INDEXING" in dataset._repr_html_()
    assert workspace.create_dataset("other", embedded([[1, 0]])).count() == 1
    gate.opened.set()
    assert task.wait(60).status is TaskStatus.COMPLETED
    assert task.progress_percentage == 100
    assert dataset.count() == 6


def test_wait__gives_up_in_time(workspace: Workspace, folder: Path) -> None:
    """Waiting with a limit ends with TimeoutError, and the task goes on."""
    dataset, task, gate = held(workspace, folder)
    with pytest.raises(TimeoutError, match=task.id):
        task.wait(0.01)
    assert task.status is TaskStatus.RUNNING
    gate.opened.set()
    task.wait(60)
    assert dataset.info.status_new is DatasetStatus.READY


@pytest.mark.slow
def test_wait__twice(workspace: Workspace, folder: Path) -> None:
    """Waiting for what is done returns at once, each time the same record."""
    dataset = workspace.create_dataset("d", folder)
    assert dataset.task is not None
    assert dataset.task.wait() == dataset.task.wait(0) == dataset.task.record


@pytest.mark.slow
@pytest.mark.only_soak
def test_wait__progress(verifying: Workspace, tmp_path: Path) -> None:
    """A watcher hears of shares that never fall and end at 1."""
    _, task, gate = held(verifying, fill(tmp_path / "p", 40))
    heard: list[tuple[str, float]] = []
    waiting = threading.Thread(target=task.wait, kwargs={"progress": lambda *told: heard.append(told)})
    waiting.start()
    wait_until(lambda: run_of(task).progress.callback is not None)
    gate.opened.set()
    waiting.join(60)
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    stages = list(dict.fromkeys(stage for stage, _ in heard))
    assert stages == [
        "reading images", "finding copies", "loading vectors", "finding neighbours", "finding duplicates", "clustering",
        "writing",
    ]  # fmt: skip


def test_abort__running(workspace: Workspace, folder: Path) -> None:
    """An aborted task is ABORTED, its dataset has the status ERROR, waiting for it raises Aborted."""
    dataset, task, gate = held(workspace, folder)
    abort = threading.Thread(target=task.abort)
    abort.start()
    assert run_of(task).progress.cancelled.wait(60)
    gate.opened.set()
    abort.join(60)
    record = task.record
    assert (record.status, record.error_message) == (TaskStatus.ABORTED, None)
    assert record.end_time is not None
    assert dataset.info.status_new is DatasetStatus.ERROR
    with pytest.raises(Aborted):
        task.wait()
    with pytest.raises(Conflict, match="ABORTED"):
        task.abort()
    workspace.delete_dataset("held")
    assert list((workspace.path / "datasets").iterdir()) == []


def test_abort__six_at_once(workspace: Workspace, folder: Path) -> None:
    """Of several who abort a task at once, one does it; the others learn that it is being aborted."""
    _, task, gate = held(workspace, folder)
    go = threading.Barrier(6)

    def abort() -> str:
        go.wait(60)
        try:
            return str(task.abort().status)
        except Conflict as error:
            return str(error)

    with ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(abort) for _ in range(6)]
        assert run_of(task).progress.cancelled.wait(60)
        done = as_completed(answers)
        refused = [next(done) for _ in range(5)]
        assert all("being aborted already" in each.result() for each in refused)
        gate.opened.set()
    assert sorted(str(each.result()) for each in answers).count("ABORTED") == 1


@pytest.mark.slow
def test_abort__completed(workspace: Workspace, folder: Path) -> None:
    """A task that is done cannot be aborted, nor retried."""
    dataset = workspace.create_dataset("d", folder)
    assert dataset.task is not None
    with pytest.raises(Conflict, match="cannot be aborted: it is COMPLETED"):
        dataset.task.abort()
    with pytest.raises(NotRetryable, match="is COMPLETED; only FAILED and ABORTED"):
        dataset.task.retry()
    assert dataset.info.status_new is DatasetStatus.READY


def test_abort__in_the_commit_phase(workspace: Workspace) -> None:
    """Once a task commits it is not aborted any more."""
    started, go = threading.Event(), threading.Event()

    def commit(_connection: Any) -> None:
        started.set()
        assert go.wait(60)

    task = submit(workspace, "committing", lambda _report: commit)
    assert started.wait(60)
    with pytest.raises(Conflict, match="commit phase"):
        task.abort()
    go.set()
    task.wait(60)


def submit(workspace: Workspace, name: str, job: Any) -> Task:
    """Start a job of our own for a new dataset."""
    from framedex.storage import datasets

    context = context_of(workspace)
    with context.catalog.write() as connection:
        record = datasets.find_dataset(connection, datasets.insert_dataset(connection, name, owned_by="tester"))
        task_id = context.runner.insert(connection, record, TaskType.DATASET_CREATION, created_by="tester")
    return start_task(context.runner, task_id, record.id, job)


@pytest.mark.slow
@pytest.mark.only_soak
def test_abort__waiting_for_a_thread(workspace: Workspace, folder: Path) -> None:
    """A task that waits behind others is aborted at once, and can be retried."""
    busy = [held(workspace, folder, f"busy{number}") for number in range(4)]
    dataset = workspace.create_dataset("queued", folder, wait=False)
    assert dataset.task is not None
    assert dataset.task.status is TaskStatus.INITIALIZING
    assert dataset.task.abort().status is TaskStatus.ABORTED
    with pytest.raises(Aborted):
        dataset.task.wait()
    assert dataset.info.status_new is DatasetStatus.ERROR
    for _, task, gate in busy:
        gate.opened.set()
        task.wait(60)
    assert dataset.task.retry().end_time is None
    dataset.task.wait(60)
    assert dataset.count() == 6


@pytest.mark.slow
def test_retry__after_failure(workspace: Workspace, folder: Path) -> None:
    """A failed task says why; when the cause is gone, a retry makes what an uninterrupted task would have made."""
    encoder = Faulty()
    dataset = workspace.create_dataset("d", folder, encoder, wait=False)
    task = dataset.task
    assert task is not None
    with pytest.raises(TaskFailed, match="out of order"):
        task.wait(60)
    assert (task.status, task.record.error_message) == (
        TaskStatus.FAILED, "RuntimeError: the encoder is out of order",
    )  # fmt: skip
    with pytest.raises(Conflict, match="nothing to show yet; its status is ERROR"):
        dataset.count()

    encoder.broken = False
    record = task.retry()
    assert (record.task_id, record.error_message, record.end_time) == (task.id, None, None)
    assert task.wait(60).status is TaskStatus.COMPLETED
    assert dataset.info.status_new is DatasetStatus.READY
    whole = workspace.create_dataset("whole", folder, encoder)
    columns = ["image_filename", "width", "height", "uniqueness_score", "embedding"]
    assert dataset.to_arrow(columns).equals(whole.to_arrow(columns))


@pytest.mark.slow
@pytest.mark.only_soak
def test_retry__after_abort(workspace: Workspace, tmp_path: Path) -> None:
    """What an aborted task left behind is not part of its retry's result."""
    dataset, task, gate = held(workspace, fill(tmp_path / "p", 70))
    abort = threading.Thread(target=task.abort)
    abort.start()
    assert run_of(task).progress.cancelled.wait(60)
    gate.opened.set()
    abort.join(60)
    task.retry()
    task.wait(60)
    assert dataset.count() == len(set(dataset.where([]).media_ids())) == 70


@pytest.mark.slow
def test_retry__fails_again(workspace: Workspace, folder: Path) -> None:
    """A retry that fails leaves the task FAILED, as it was."""
    dataset = workspace.create_dataset("d", folder, Faulty(), wait=False)
    assert dataset.task is not None
    for _ in range(2):
        with pytest.raises(TaskFailed):
            dataset.task.wait(60)
        assert dataset.task.status is TaskStatus.FAILED
        dataset.task.retry()
    with pytest.raises(TaskFailed):
        dataset.task.wait(60)


def test_retry__of_a_deleted_dataset(workspace: Workspace, folder: Path) -> None:
    """There is nothing to retry once the dataset is deleted."""
    dataset = workspace.create_dataset("d", folder, Faulty(), wait=False)
    assert dataset.task is not None
    with pytest.raises(TaskFailed):
        dataset.task.wait(60)
    workspace.delete_dataset("d")
    with pytest.raises(NotFound):
        dataset.task.retry()
    assert list((workspace.path / "datasets").iterdir()) == []


def test_failure__keeps_its_class(workspace: Workspace) -> None:
    """An error of ours in a task arrives at the waiting caller as it was raised."""
    dataset = workspace.create_dataset("d", embedded([[1, 0], [float("nan"), 0]]), wait=False)
    assert dataset.task is not None
    with pytest.raises(InvalidEmbedding, match="row 1"):
        dataset.task.wait(60)
    assert "row 1" in (dataset.task.record.error_message or "")


def test_delete_dataset__while_its_task_runs(workspace: Workspace, folder: Path) -> None:
    """A dataset that is being made cannot be deleted; afterwards it can."""
    _, task, gate = held(workspace, folder)
    with pytest.raises(Conflict, match="'held' cannot be deleted while a task"):
        workspace.delete_dataset("held")
    gate.opened.set()
    task.wait(60)
    workspace.delete_dataset("held")
    assert workspace.datasets() == []


@pytest.mark.slow
def test_close__aborts_what_runs(tmp_path: Path, folder: Path) -> None:
    """Closing a workspace stops its tasks, also those that wait for a thread, before it returns."""
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS)
    running = [held(workspace, folder, f"running{number}") for number in range(4)]
    workspace.create_dataset("queued", folder, wait=False)
    closing = threading.Thread(target=workspace.close)
    closing.start()
    for _, task, gate in running:
        assert run_of(task).progress.cancelled.wait(60)
        gate.opened.set()
    closing.join(60)
    assert not closing.is_alive()
    with Workspace(tmp_path / "ws") as again:
        assert {task.status for task in again.tasks().tasks} == {TaskStatus.ABORTED}
        assert {info.status_new for info in again.datasets()} == {DatasetStatus.ERROR}


@pytest.mark.slow
def test_heartbeat__of_a_running_task(workspace: Workspace, folder: Path) -> None:
    """A beat stores how far the task is, in its row and in its dataset's."""
    dataset, task, gate = held(workspace, folder)
    run_of(task).progress.share, run_of(task).progress.stage = 0.42, "reading images"
    with catalog_of(workspace).write() as connection:
        run_of(task)._beat(connection)
    (record,) = workspace.tasks().tasks
    assert (record.progress_percentage, record.status_message) == (42, "reading images")
    assert dataset.info.progress == 42
    gate.opened.set()
    task.wait(60)


@pytest.mark.slow
@pytest.mark.only_soak
def test_heartbeat__of_a_waiting_task(workspace: Workspace, folder: Path) -> None:
    """A task that waits for a thread shows that it lives, and is not taken for interrupted."""
    from datetime import UTC, datetime, timedelta

    from framedex.storage import schema

    busy = [held(workspace, folder, f"busy{number}") for number in range(4)]
    dataset = workspace.create_dataset("queued", folder, wait=False)
    assert dataset.task is not None
    with catalog_of(workspace).write() as connection:
        old = datetime.now(UTC) - timedelta(minutes=5)
        connection.execute(schema.tasks.update().where(schema.tasks.c.id == dataset.task.id).values(heartbeat_at=old))
        run_of(dataset.task)._beat(connection)
    assert {task.status for task in workspace.tasks().tasks} == {TaskStatus.RUNNING, TaskStatus.INITIALIZING}
    for _, task, gate in busy:
        gate.opened.set()
        task.wait(60)
    dataset.task.wait(60)


@pytest.mark.slow
def test_tasks__newest_first(workspace: Workspace) -> None:
    """All tasks are listed from the newest to the oldest."""
    for name in ("a", "b"):
        workspace.create_dataset(name, embedded([[1, 0]]))
    records: list[TaskRecord] = workspace.tasks().tasks
    assert [record.dataset_name for record in records] == ["b", "a"]


def test_commit__is_whole_or_nothing(workspace: Workspace) -> None:
    """A commit that fails half-way leaves no trace in the catalog but the failed task."""

    def commit(connection: Any) -> None:
        connection.exec_driver_sql("UPDATE datasets SET n_images = 99")
        raise Error("the power went")

    task = submit(workspace, "half", lambda _report: commit)
    with pytest.raises(Error, match="the power went"):
        task.wait(60)
    (info,) = workspace.datasets()
    assert (info.n_images, info.status_new) == (0, DatasetStatus.ERROR)
    assert task.status is TaskStatus.FAILED


def test_heartbeat__survives_a_catalog_that_cannot_be_written(workspace: Workspace, folder: Path) -> None:
    """A beat that fails is followed by others: the thread of the heartbeat does not die of it."""
    _, task, gate = held(workspace, folder)
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        connection.execute("ALTER TABLE tasks RENAME TO hidden")
    with pytest.raises(Exception, match="no such table"), catalog_of(workspace).write() as beating:
        run_of(task)._beat(beating)
    waits = iter([False, True])

    class Closed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return next(waits, True)

    closed, run_of(task).progress.closed = run_of(task).progress.closed, Closed()
    run_of(task).beat()
    run_of(task).progress.closed = closed
    connection.execute("ALTER TABLE hidden RENAME TO tasks")
    connection.close()
    gate.opened.set()
    task.wait(60)


def test_given_up_task__does_not_end_its_successor(workspace: Workspace, folder: Path) -> None:
    """A task that was given up, and ends while another one changes its dataset, leaves that dataset's status alone."""
    from framedex.storage import datasets, task_rows

    dataset, task, gate = held(workspace, folder)
    context = context_of(workspace)
    with context.catalog.write() as connection:
        task_rows.finish_task(connection, task.id, TaskStatus.FAILED, error_message="interrupted")
        record = datasets.find_dataset(connection, dataset.id)
        context.runner.insert(connection, record, TaskType.DATASET_CREATION, created_by="tester")
    gate.opened.set()
    with pytest.raises(Conflict, match="given up"):
        task.wait(60)
    assert dataset.info.status_new is DatasetStatus.INDEXING
