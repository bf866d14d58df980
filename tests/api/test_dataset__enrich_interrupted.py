"""Enrichments that do not end well: aborted, failed, killed; and tried again."""

import os
import signal
import threading
from pathlib import Path

import pytest

from framedex import Aborted, Conflict, Dataset, NotFound, Task, Workspace
from framedex.records import DatasetStatus, TaskStatus
from tests.enrichments import ENCODE, TAG, Hues, paint, register_models
from tests.gallery import SETTINGS
from tests.growth import columns_of, status_of
from tests.inside import stored_media
from tests.laws import rest_slow
from tests.pauses import FailAt, Pause, run_of, watched
from tests.processes import start

ENRICHER = """
    import sys, framedex
    from tests.enrichments import ENCODE, Hues, register_models
    from tests.pauses import Pause, watched

    workspace = framedex.Workspace(sys.argv[1])
    register_models(workspace, Hues())
    pause = Pause(sys.argv[2], float(sys.argv[3]))
    dataset = workspace.dataset("colours")
    workspace.create_dataset("other", {"uri": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    watched(workspace, lambda: dataset.enrich(ENCODE, wait=False).task, pause)
    assert pause.reached.wait(60)
    print("waits", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return paint(tmp_path / "images")


@pytest.fixture
def hues(workspace: Workspace) -> Hues:
    encoder = Hues()
    register_models(workspace, encoder)
    return encoder


@pytest.fixture
def source(workspace: Workspace, images: Path, hues: Hues) -> Dataset:
    return workspace.create_dataset("colours", images, "gist")


def task_of(dataset: Dataset) -> Task:
    assert dataset.task is not None
    return dataset.task


def stop(task: Task, go_on: threading.Event) -> None:
    """Abort a task that waits."""
    run_of(task).progress.cancel()
    go_on.set()
    with pytest.raises(Aborted):
        task.wait()


def paused(workspace: Workspace, source: Dataset, pause: Pause) -> Dataset:
    """Return a dataset that is being made, and waits."""
    task = watched(workspace, lambda: task_of(source.enrich(ENCODE, wait=False)), pause)
    assert pause.reached.wait(60)
    dataset = workspace.dataset(task.record.dataset_id)
    dataset.task = task
    return dataset


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("stage", rest_slow(["encoding images", "linking tables", "clustering", "writing"], 1))
def test_abort__and_retry(workspace: Workspace, source: Dataset, stage: str) -> None:
    """An aborted enrichment leaves the source as it was; a retry makes what an undisturbed one makes."""
    head = stored_media(source).generation
    pause = Pause(stage)
    enriched = paused(workspace, source, pause)
    task = task_of(enriched)
    assert status_of(source) is DatasetStatus.READ_ONLY
    stop(task, pause.opened)
    assert (task.status, status_of(source), status_of(enriched)) == (
        TaskStatus.ABORTED, DatasetStatus.READY, DatasetStatus.ERROR,
    )  # fmt: skip
    assert stored_media(source).generation == head
    source.tag(source.where([]), "free")
    task.retry()
    assert status_of(source) is not DatasetStatus.ERROR
    task.wait()
    assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.READY)
    calm = source.enrich(ENCODE)
    names = ["media_id", "cluster_0", "cluster_4", "uniqueness", "embedding"]
    assert columns_of(enriched, names) == columns_of(calm, names)
    assert [tag.name for tag in enriched.tags()] == ["free"]


def test_failure__gives_the_source_back(workspace: Workspace, source: Dataset) -> None:
    """After any failure, the source is READY, and the new dataset is ERROR until the retry."""
    task = watched(workspace, lambda: task_of(source.enrich({**ENCODE, **TAG}, wait=False)), FailAt(5))
    error = run_of(task).future.exception()
    assert "the disk is full" in str(error)
    enriched = workspace.dataset("colours (enriched)")
    assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.ERROR)
    task.retry()
    task.wait()
    assert enriched.count() == 6


def test_retry__needs_its_source(workspace: Workspace, source: Dataset, hues: Hues) -> None:
    """A retry waits for nobody: it is refused while the source is busy or not READY, or when it is gone."""
    hues.opened.clear()
    enriched = source.enrich(ENCODE, wait=False)
    assert hues.reached.wait(60)
    task = task_of(enriched)
    stop(task, hues.opened)
    hues.opened.clear()
    hues.reached.clear()
    other = source.enrich(ENCODE, wait=False)
    assert hues.reached.wait(60)
    with pytest.raises(Conflict, match="cannot be retried while ENRICHMENT task of 'colours' is running"):
        task.retry()
    hues.opened.set()
    task_of(other).wait()
    assert status_of(source) is DatasetStatus.READY
    workspace.delete_dataset(source.id)
    with pytest.raises(NotFound):
        task.retry()
    assert status_of(enriched) is DatasetStatus.ERROR
    workspace.delete_dataset(enriched.id)


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "share"), [("encoding images", 0.0), ("writing", 1.0)])
def test_kill__is_settled_by_others(tmp_path: Path, images: Path, stage: str, share: float) -> None:
    """After kill -9 the source is READY at the next look, and any process can run the task again."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        before = columns_of(workspace.create_dataset("colours", images, "gist"), ["media_id", "embedding"])
    process = start(ENRICHER, tmp_path / "ws", stage, share)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n", process.communicate()[1]
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert workspace.dataset("colours").info.status_new is DatasetStatus.READ_ONLY
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        source, enriched = workspace.dataset("colours"), workspace.dataset("colours (enriched)")
        assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.ERROR)
        assert columns_of(source, ["media_id", "embedding"]) == before
        record = enriched.last_task
        assert record is not None
        assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
        register_models(workspace, Hues())
        task = workspace.task(record.task_id)
        task.retry()
        task.wait()
        assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.READY)
        assert len(enriched.embeddings()[0]) == 6
