"""A task that was stopped goes on where it was: images that were read, decoded and encoded before are not again."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framedex import Aborted, Conflict, Dataset, NotRetryable, Task, Workspace
from framedex.encoders import register
from framedex.records import DatasetStatus, TaskStatus
from tests.gallery import SETTINGS, Averages, fill
from tests.growth import GROUPS, columns_of, part, status_of
from tests.laws import rest_slow
from tests.processes import start
from tests.tuning import Tuning

COUNT = 64
BATCH = 4
SHOWN = (*GROUPS, "path", "uniqueness", "embedding", "original", "neighbours", "labels")

STOPPED = """
    import sys, framedex
    from framedex.encoders import registry
    from tests.gallery import SETTINGS, Averages
    from tests.tuning import Tuning

    class Stops(Averages):
        left = int(sys.argv[3])

        def encode_images(self, batch):
            self.left -= 1
            if self.left == 0:
                print("stopped", flush=True)
                sys.stdin.readline()
            return super().encode_images(batch)

    tuning = Tuning()
    tuning.encoded_images, tuning.committed_rows = 4, 8
    tuning.first_commit_s = 20  # checkpoints come by rows alone
    registry.register("averages", lambda name: Stops())
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        if sys.argv[4] == "create":
            workspace.create_dataset("pets", sys.argv[2], "averages", wait=False).task.wait()
        else:
            workspace.dataset("pets").add_media(sys.argv[2], auto_reindex=sys.argv[4] == "settle")
"""


class Counts(Averages):
    """An encoder that counts what it encodes."""

    encoded = 0

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        type(self).encoded += len(batch)
        return super().encode_images(batch)


@pytest.fixture
def counts(tuning: Tuning) -> type[Counts]:
    """A counting encoder, registered by the name ``averages``."""
    register("averages", lambda _name: Counts())
    tuning.encoded_images = BATCH
    tuning.committed_rows = 2 * BATCH
    Counts.encoded = 0
    return Counts


def stop_by_force(workspace: Path, folder: Path, batches: int, kind: str) -> None:
    """Kill a process in the middle of an ingestion, when it encodes so many batches."""
    process = start(STOPPED, workspace, folder, batches, kind)
    assert process.stdout is not None
    assert process.stdout.readline() == "stopped\n", process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def same(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets show the same, whatever their ids."""
    return columns_of(one, SHOWN) == columns_of(other, SHOWN) and one.info.n_images == other.info.n_images


@pytest.mark.slow
@pytest.mark.parametrize("batches", rest_slow([9, 1, 3, 16], 1, long=3))
def test_retry__of_a_killed_creation(tmp_path: Path, counts: type[Counts], batches: int) -> None:
    """A creation that was killed is retried by another process, and encodes only what was not written before."""
    folder = fill(tmp_path / "images", COUNT)
    stop_by_force(tmp_path / "w", folder, batches, "create")
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        (record,) = workspace.tasks().tasks
        assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
        task = workspace.task(record.task_id)
        task.retry()
        assert task.wait(60).status is TaskStatus.COMPLETED
        written = (batches - 1) * BATCH // (2 * BATCH) * (2 * BATCH)
        assert counts.encoded == COUNT - written
        dataset = workspace.dataset("pets")
        assert (status_of(dataset), dataset.skipped) == (DatasetStatus.READY, {})
        assert same(dataset, workspace.create_dataset("calm", folder, "averages"))
        with pytest.raises(NotRetryable, match="is COMPLETED"):
            task.retry()


@pytest.mark.slow
@pytest.mark.parametrize("kind", rest_slow(["settle", "add"], 1))
def test_retry__of_a_killed_addition(tmp_path: Path, counts: type[Counts], kind: str) -> None:
    """The same for additions; a changed file is replaced once, and what was there before is not counted as new."""
    folder, more = fill(tmp_path / "images", 12), fill(tmp_path / "more", COUNT, first_seed=400)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        for name in ("pets", "calm"):
            workspace.create_dataset(name, folder, "averages")
            workspace.dataset(name).add_media(fill(tmp_path / "first", 1, first_seed=400), auto_reindex=True)
    stop_by_force(tmp_path / "w", more, 9, kind)
    counts.encoded = 0
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, calm = workspace.dataset("pets"), workspace.dataset("calm")
        assert (dataset.count(), status_of(dataset)) == (13, DatasetStatus.READY)
        task = workspace.task(workspace.tasks().tasks[0].task_id)
        task.retry()
        assert task.wait(60).status is TaskStatus.COMPLETED
        assert counts.encoded == COUNT - 32
        calm.add_media(more, auto_reindex=kind == "settle")
        assert same(dataset, calm)
        assert dataset.skipped == calm.skipped == {}
        assert status_of(dataset) is status_of(calm)


@pytest.mark.slow
def test_retry__after_another_change(tmp_path: Path, counts: type[Counts]) -> None:
    """If the dataset has changed, a retry ignores the checkpoint of the killed task and reads everything again."""
    folder, more = fill(tmp_path / "images", 12), fill(tmp_path / "more", COUNT, first_seed=400)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        workspace.create_dataset("pets", folder, "averages")
    stop_by_force(tmp_path / "w", more, 9, "add")
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        task = workspace.task(workspace.tasks().tasks[0].task_id)
        dataset.delete_media(dataset.where([]).media_ids()[:2])
        counts.encoded = 0
        task.retry()
        task.wait(60)
        assert counts.encoded == COUNT
        assert dataset.count() == 10 + COUNT


@pytest.mark.slow
@pytest.mark.only_soak
def test_retry__when_the_source_is_gone(tmp_path: Path, counts: type[Counts]) -> None:
    """A retry whose folder is gone says so, and the task stays as it was."""
    folder = fill(tmp_path / "images", 8)
    stop_by_force(tmp_path / "w", folder, 1, "create")
    folder.rename(tmp_path / "elsewhere")
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        task = workspace.task(workspace.tasks().tasks[0].task_id)
        with pytest.raises(Exception, match="nothing at"):
            task.retry()
        assert task.status is TaskStatus.FAILED
        (tmp_path / "elsewhere").rename(folder)
        task.retry()
        task.wait(60)
        assert workspace.dataset("pets").count() == 8
    assert counts.encoded == 8


@pytest.mark.slow
def test_retry__of_an_aborted_reindex_and_deletion(tmp_path: Path) -> None:
    """Other tasks are retried in another process, too."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", part(np.eye(8)))
        dataset.add_media(part(np.eye(8)[:3] + 0.1, 100))
        ids = dataset.where([]).media_ids()
        begins: list[Callable[[], Task]] = [
            lambda: dataset.reindex(wait=False),
            lambda: dataset.delete_media(ids[:4], wait=False),
        ]
        for begin in begins:
            task = begin()
            try:
                task.abort()
            except Conflict:  # it was faster
                continue
            with pytest.raises(Aborted):
                task.wait(60)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        for record in workspace.tasks(status="ABORTED").tasks[::-1]:
            workspace.task(record.task_id).retry()
            assert workspace.task(record.task_id).wait(60).status is TaskStatus.COMPLETED
        assert workspace.dataset("pets").count() == 7
