"""Enrichments with captions that do not end well: aborted, killed; and tried again."""

import os
import signal
from pathlib import Path

import pytest

from framedex import Aborted, Dataset, Task, Workspace
from framedex.records import DatasetStatus, TaskStatus
from tests.captioning import CAPTION, SCENES, draw_all, register_captioner
from tests.gallery import SETTINGS
from tests.growth import columns_of, status_of
from tests.pauses import Pause, run_of, watched
from tests.processes import start

ENRICHER = """
    import sys, framedex
    from tests.captioning import CAPTION
    from tests.pauses import Pause, watched

    workspace = framedex.Workspace(sys.argv[1])
    pause = Pause(sys.argv[2])
    dataset = workspace.dataset("shapes")
    workspace.create_dataset("other", {"uri": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]})
    watched(workspace, lambda: dataset.enrich(CAPTION, wait=False).task, pause)
    assert pause.reached.wait(60)
    print("waits", flush=True)
    sys.stdin.readline()
"""
SAID = [scene.caption for scene in SCENES]


def task_of(dataset: Dataset) -> Task:
    assert dataset.task is not None
    return dataset.task


@pytest.mark.slow
@pytest.mark.only_soak
def test_abort__and_retry(workspace: Workspace, tmp_path: Path) -> None:
    """An aborted enrichment leaves the source as it was; a retry makes what an undisturbed one makes."""
    register_captioner(workspace)
    source = workspace.create_dataset("shapes", draw_all(tmp_path / "images"), "gist")
    pause = Pause("captioning images")
    task = watched(workspace, lambda: task_of(source.enrich(CAPTION, wait=False)), pause)
    assert pause.reached.wait(60)
    assert status_of(source) is DatasetStatus.READ_ONLY
    run_of(task).progress.cancel()
    pause.opened.set()
    with pytest.raises(Aborted):
        task.wait()
    enriched = workspace.dataset(task.record.dataset_id)
    assert (task.status, status_of(source), status_of(enriched)) == (
        TaskStatus.ABORTED, DatasetStatus.READY, DatasetStatus.ERROR,
    )  # fmt: skip
    assert columns_of(source, ["caption"])["caption"] == [None] * len(SAID)
    task.retry()
    task.wait()
    assert columns_of(enriched, ["caption"])["caption"] == SAID
    assert status_of(source) is DatasetStatus.READY


@pytest.mark.slow
def test_kill__is_settled_by_others(tmp_path: Path) -> None:
    """After kill -9 the source is READY at the next look, and any process can run the task again."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        register_captioner(workspace)
        workspace.create_dataset("shapes", draw_all(tmp_path / "images"), "gist")
    process = start(ENRICHER, tmp_path / "ws", "captioning images")
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n", process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        source, enriched = workspace.dataset("shapes"), workspace.dataset("shapes (enriched)")
        assert (status_of(source), status_of(enriched)) == (DatasetStatus.READY, DatasetStatus.ERROR)
        record = enriched.last_task
        assert record is not None
        assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
        task = workspace.task(record.task_id)
        task.retry()
        task.wait()
        assert columns_of(enriched, ["caption"])["caption"] == SAID
        assert columns_of(source, ["caption"])["caption"] == [None] * len(SAID)
