"""A planned stop differs from an abort: its tasks continue in the next process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from framedex import Aborted, Dataset, InvalidInput, TaskFailed, Workspace
from framedex.cli.program import app
from framedex.encoders import registry
from framedex.records import DatasetStatus, ExportResult, ExportStatus, TaskStatus
from tests.gallery import SETTINGS, Averages, Gate, embedded, fill
from tests.inside import catalog_of, context_of
from tests.pauses import run_of
from tests.tuning import Tuning

REASON = "the service stopped"
COUNT = 32


class Stops(Averages):
    """An encoder that waits before its fifth batch of four."""

    def __init__(self) -> None:
        self.left = 5
        self.reached, self.opened = threading.Event(), threading.Event()

    def encode_images(self, batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        self.left -= 1
        if self.left == 0:
            self.reached.set()
            assert self.opened.wait(60)
        return super().encode_images(batch)


class Counts(Averages):
    """An encoder that counts what it encodes."""

    def __init__(self) -> None:
        self.encoded = 0

    def encode_images(self, batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        self.encoded += len(batch)
        return super().encode_images(batch)


@contextmanager
def opening_when_stopped(gate: Gate | Stops, dataset: Dataset) -> Iterator[None]:
    """Let the encoder go on as soon as the dataset's task is to stop."""
    assert dataset.task is not None
    cancelled = run_of(dataset.task).progress.cancelled

    def open_gate() -> None:
        assert cancelled.wait(60)
        gate.opened.set()

    opening = threading.Thread(target=open_gate)
    opening.start()
    yield
    opening.join(60)


def stopped(home: Path, folder: Path, tuning: Tuning, reason: str | None = REASON) -> Dataset:
    """Return a dataset whose creation was stopped by the end of its workspace, after a checkpoint."""
    tuning.encoded_images = 4
    tuning.committed_rows = 8
    encoder = Stops()
    registry.register("averages", lambda _name: encoder)
    workspace = Workspace(home, settings=SETTINGS)
    dataset = workspace.acting_as("ann").create_dataset("pets", folder, "averages", wait=False)
    assert encoder.reached.wait(60)
    with opening_when_stopped(encoder, dataset):
        workspace.close(reason)
    workspace.close(reason)
    workspace.close()
    return dataset


@pytest.mark.slow
@pytest.mark.only_soak
def test_close__with_a_reason__tasks_continue_in_the_next_process(tmp_path: Path, tuning: Tuning) -> None:
    """The task is FAILED with the reason, is listed as interrupted, and resumes from its checkpoint."""
    folder = fill(tmp_path / "images", COUNT)
    dataset = stopped(tmp_path / "ws", folder, tuning)
    counts = Counts()
    registry.register("averages", lambda _name: counts)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        (record,) = workspace.interrupted_tasks()
        assert (record.status, record.status_message, record.error_message) == (
            TaskStatus.FAILED,
            "interrupted",
            REASON,
        )
        assert workspace.dataset("pets").info.status_new is DatasetStatus.ERROR
        (task,) = workspace.retry_interrupted()
        assert (workspace.interrupted_tasks(), workspace.retry_interrupted()) == ([], [])
        assert task.wait(60).created_by == "ann"
        assert (task.record.status, task.record.error_message) == (TaskStatus.COMPLETED, None)
        assert workspace.dataset(dataset.id).count() == COUNT
        assert 0 < counts.encoded < COUNT


@pytest.mark.slow
def test_close__without_a_reason__aborts(tmp_path: Path, tuning: Tuning) -> None:
    """An abort is no interruption: nothing runs again by itself."""
    stopped(tmp_path / "ws", fill(tmp_path / "images", COUNT), tuning, reason=None)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert (workspace.interrupted_tasks(), workspace.retry_interrupted()) == ([], [])
        assert workspace.tasks().tasks[0].status is TaskStatus.ABORTED


def test_close__after_an_abort(tmp_path: Path, folder: Path) -> None:
    """A task that a user aborted just before the stop stays aborted."""
    gate = Gate()
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS)
    dataset = workspace.create_dataset("pets", folder, gate, wait=False)
    assert gate.reached.wait(60)
    assert dataset.task is not None
    abort = threading.Thread(target=dataset.task.abort)
    with opening_when_stopped(gate, dataset):
        abort.start()
        assert run_of(dataset.task).progress.cancelled.wait(60)
        workspace.close(REASON)
    abort.join(60)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as again:
        assert again.tasks().tasks[0].status is TaskStatus.ABORTED
        assert again.interrupted_tasks() == []


def test_close__after_an_abort_by_another_process(tmp_path: Path, folder: Path) -> None:
    """An abort that another process asked for, and that this one has not noticed, counts as well."""
    gate = Gate()
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS.model_copy(update={"heartbeat_s": 10.0}))
    dataset = workspace.create_dataset("pets", folder, gate, wait=False)
    assert gate.reached.wait(60)
    assert dataset.task is not None
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE tasks SET abort_requested = 1")
    with opening_when_stopped(gate, dataset):
        workspace.close(REASON)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as again:
        assert again.tasks().tasks[0].status is TaskStatus.ABORTED


def test_close__tells_who_waits(tmp_path: Path, folder: Path) -> None:
    """Whoever waits for the task learns of the reason, and the dataset of a blocking creation stays for the retry."""
    gate, caught = Gate(), list[BaseException]()
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS)

    def create() -> None:
        try:
            workspace.create_dataset("pets", folder, gate)
        except Aborted as error:
            caught.append(error)

    creation = threading.Thread(target=create)
    creation.start()
    assert gate.reached.wait(60)
    (record,) = workspace.tasks().tasks
    dataset = Dataset(context_of(workspace), record.dataset_id, workspace.task(record.task_id))
    with opening_when_stopped(gate, dataset):
        workspace.close(REASON)
    creation.join(60)
    assert [str(error) for error in caught] == [REASON]
    with Workspace(tmp_path / "ws", settings=SETTINGS) as again:
        assert [each.display_name for each in again.datasets()] == ["pets"]
        assert len(again.interrupted_tasks()) == 1
        assert again.retry_interrupted() == []  # its encoder was an object of the other workspace
        assert len(again.interrupted_tasks()) == 1
        with pytest.raises(TaskFailed, match=REASON):
            again.task(record.task_id).wait(60)


@pytest.mark.slow
def test_close__exports_end_with_the_reason(tmp_path: Path) -> None:
    """An export cannot continue; its record has the reason of the stop."""
    workspace = Workspace(tmp_path / "ws", settings=SETTINGS)
    dataset = workspace.create_dataset("pets", embedded([[1, 0]]))
    began = threading.Event()

    def job(*, progress: Callable[[float], None], **_: Any) -> ExportResult:
        began.set()
        while True:
            progress(0.5)

    task = context_of(workspace).exports.start(dataset.id, tmp_path / "out.zip", job, created_by="ann")
    assert began.wait(60)
    workspace.close(REASON)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as again:
        record = again.dataset("pets").export_status(task.id)
        assert (record.status, record.result_message) == (ExportStatus.FAILED, REASON)


@pytest.mark.parametrize("reason", ["", " ", 7])
def test_close__refuses_a_reason_that_says_nothing(workspace: Workspace, reason: Any) -> None:
    """A wrong reason closes nothing."""
    with pytest.raises(InvalidInput, match="the reason of a stop"):
        workspace.close(reason)
    assert workspace.create_dataset("pets", embedded([[1, 0]])).count() == 1


@pytest.mark.slow
def test_interrupted_tasks__only_the_last_of_existing_datasets(workspace: Workspace) -> None:
    """What a later task followed, or what was deleted, is not run again."""
    first, second = (workspace.create_dataset(name, embedded([[1, 0], [0, 1]])) for name in ("first", "second"))
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE tasks SET status = 'FAILED', status_message = 'interrupted'")
    assert len(workspace.interrupted_tasks()) == 2
    first.add_media(embedded([[1, 1]]), auto_reindex=True)
    assert [each.dataset_id for each in workspace.interrupted_tasks()] == [second.id]
    workspace.delete_dataset("second")
    assert workspace.interrupted_tasks() == []


@pytest.mark.slow
def test_retry__interrupted_tasks_on_the_command_line(tmp_path: Path, tuning: Tuning) -> None:
    """An option retries all of them and waits."""
    home = ["--workspace", str(tmp_path / "ws")]
    stopped(tmp_path / "ws", fill(tmp_path / "images", COUNT), tuning)
    registry.register("averages", lambda _name: Averages())
    shown = CliRunner().invoke(app, ["retry", "--interrupted", *home])
    assert "DATASET_CREATION task" in shown.output
    assert "COMPLETED" in shown.output
    assert "no task was interrupted" in CliRunner().invoke(app, ["retry", "--interrupted", *home]).output
    assert CliRunner().invoke(app, ["retry", *home]).exit_code != 0
