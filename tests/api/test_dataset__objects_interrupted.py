"""Tasks with objects that are stopped in the middle, and tried again."""

import os
import signal
import threading
from pathlib import Path

import pytest

from framedex import Aborted, Dataset, Task, Workspace
from framedex.records import DatasetStatus, TaskStatus
from framedex.storage.objects import objects_of
from tests.gallery import SETTINGS
from tests.growth import status_of
from tests.inside import stored_media
from tests.objects import paint_scenes, rows_of, scenes, things_of, write_table
from tests.pauses import Pause, run_of, watched
from tests.processes import start

ADDER = """
    import sys, framedex
    from tests.pauses import Pause, watched

    workspace = framedex.Workspace(sys.argv[1])
    dataset, pause = workspace.dataset("scenes"), Pause(sys.argv[2])
    workspace.create_dataset("other", {"uri": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    watched(workspace, lambda: dataset.add_media(sys.argv[3], wait=False), pause)
    assert pause.reached.wait(60)
    print("waits", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    scenes(folder)
    return workspace.create_dataset("scenes", folder, "gist")


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("stage", ["reading objects", "objects: writing"])
def test_abort__leaves_objects_as_they_were(workspace: Workspace, dataset: Dataset, tmp_path: Path, stage: str) -> None:
    """Objects written by an aborted task are invisible, and the next task deletes them."""
    before = rows_of(dataset)
    table = write_table(tmp_path / "new.csv", [("000.png", (30.0, 60.0, 20.0, 20.0), "fox")])
    pause = Pause(stage)
    task = watched(workspace, lambda: dataset.add_objects(table, wait=False), pause)
    assert pause.reached.wait(60)
    run_of(task).progress.cancel()
    pause.opened.set()
    with pytest.raises(Aborted):
        task.wait()
    assert (rows_of(dataset), status_of(dataset)) == (before, DatasetStatus.READY)
    task.retry()
    task.wait()
    assert things_of(dataset)[12:] == [("000.png", (30.0, 60.0, 20.0, 20.0), "fox")]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["reading objects", "objects: writing"])
def test_kill__and_retry(tmp_path: Path, stage: str) -> None:
    """A process that is killed while it adds images with objects leaves both as they were; a retry adds both once."""
    folder, more = tmp_path / "images", tmp_path / "more"
    scenes(folder)
    things = scenes(more, 2, seed=50)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        before = rows_of(workspace.create_dataset("scenes", folder, "gist"))
    with start(ADDER, tmp_path / "ws", stage, more) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        os.kill(process.pid, signal.SIGKILL)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.dataset("scenes")
        assert rows_of(dataset) == before
        record = dataset.last_task
        assert record is not None
        assert record.status is TaskStatus.FAILED
        task = workspace.task(record.task_id)
        task.retry()
        task.wait()
        assert things_of(dataset)[len(before) :] == things
        assert dataset.count() == 6


@pytest.mark.slow
@pytest.mark.only_soak
def test_create__that_is_aborted(workspace: Workspace, folder: Path) -> None:
    """A creation that is aborted among the objects begins them anew when it is run again."""
    things = scenes(folder)
    workspace.create_dataset("other", {"uri": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    pause = Pause("objects: writing")
    made: list[Dataset] = []

    def begin() -> Task:
        made.append(workspace.create_dataset("scenes", folder, "gist", wait=False))
        task = made[0].task
        assert task is not None
        return task

    task = watched(workspace, begin, pause)
    assert pause.reached.wait(60)
    run_of(task).progress.cancel()
    pause.opened.set()
    with pytest.raises(Aborted):
        task.wait()
    task.retry()
    task.wait()
    assert things_of(made[0]) == things


@pytest.mark.slow
@pytest.mark.only_soak
def test_read__while_objects_are_added(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An open state keeps its objects while others are added."""
    held = objects_of(stored_media(dataset))
    assert held is not None
    things = paint_scenes(tmp_path / "more", ["x.png"], seed=70)
    write_table(tmp_path / "more" / "object_annotations.csv", things)
    done = threading.Event()
    counts = set()

    def look() -> None:
        while not done.is_set():
            counts.add((held.table.count(), len(rows_of(dataset, ["media_id"]))))

    reader = threading.Thread(target=look)
    reader.start()
    dataset.add_media(tmp_path / "more", auto_reindex=True)
    done.set()
    reader.join(60)
    assert {held_count for held_count, _ in counts} == {12}
    assert {now for _, now in counts} <= {12, 15}
    assert len(rows_of(dataset)) == 15
