"""Upload transactions that nobody changes for seven days are removed with their files; the dataset stays."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, NotFound, NotRetryable, TaskFailed, UploadTransaction, Workspace
from framedex.encoders import register
from framedex.records import DatasetStatus, UploadState
from tests.clock import Clock, turning
from tests.gallery import SETTINGS, Averages, Faulty, fill
from tests.growth import status_of
from tests.uploading import blobs_of, drafted, lists_of, pairs, paths_of, state_of


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The clock of the catalog."""
    with turning() as turned:
        yield turned


@pytest.mark.slow
def test_expiry__after_seven_days_without_a_change(workspace: Workspace, clock: Clock) -> None:
    """Vacuum removes an old transaction with its files; one that was changed since, and the draft, stay."""
    dataset, old = drafted(workspace, 1, 2)
    changed = dataset.open_upload()
    empty = dataset.open_upload()
    changed.add(pairs(3))
    clock.turn(days=6, hours=23)
    assert workspace.vacuum().uploads == 0
    changed.add(pairs(4))
    clock.turn(hours=2)
    result = workspace.vacuum()
    assert (result.uploads, result.skipped) == (2, {})
    assert result.uploaded_bytes > 0
    for gone in (old, empty):
        with pytest.raises(NotFound, match="expired"):
            gone.add(pairs(5))
    assert [record.id for record in dataset.uploads()] == [changed.id]
    assert len(blobs_of(workspace, dataset)) == 2
    assert lists_of(workspace, dataset) == [f"transactions/{changed.id}.files"]
    clock.turn(days=8)
    assert workspace.vacuum().uploads == 1
    assert (status_of(dataset), dataset.info.status) == (DatasetStatus.DRAFT, "NEW")
    assert (blobs_of(workspace, dataset), lists_of(workspace, dataset)) == ([], [])
    further = dataset.open_upload()
    further.add(pairs(6))
    further.process(encoder="gist")
    assert paths_of(dataset) == ["6.png"]


def test_expiry__at_opening(tmp_path: Path, clock: Clock) -> None:
    """Opening the workspace for writing removes them, too; opening it for reading does not."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, _ = drafted(workspace, 1, 2)
        media = workspace.create_dataset("media", fill(tmp_path / "images", 2), "gist")
        media.open_upload().add(pairs(3))
    clock.turn(days=8)
    with Workspace(tmp_path / "w", settings=SETTINGS, read_only=True) as workspace:
        assert len(workspace.dataset("pets").uploads()) == 1
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        for each in (dataset, media):
            assert workspace.dataset(each.id).uploads() == []
            assert (blobs_of(workspace, each), lists_of(workspace, each)) == ([], [])
        assert workspace.dataset("media").count() == 2
        assert workspace.check().findings == []


@pytest.fixture
def failed(workspace: Workspace, clock: Clock) -> tuple[Dataset, UploadTransaction]:
    """A draft whose creation failed."""
    assert clock.offset == timedelta()
    encoders: list[Any] = [Faulty(), Averages()]
    register("averages", lambda _name: encoders.pop(0) if len(encoders) > 1 else encoders[0])
    dataset, transaction = drafted(workspace, 1, 2)
    with pytest.raises(TaskFailed):
        transaction.process(encoder="averages", wait=False).wait(60)
    return dataset, transaction


def test_expiry__of_a_failed_creation(
    workspace: Workspace, clock: Clock, failed: tuple[Dataset, UploadTransaction]
) -> None:
    """The files of a failed creation stay for seven days; afterwards the dataset is a draft that takes files again."""
    dataset, transaction = failed
    clock.turn(days=6)
    workspace.vacuum()
    assert len(blobs_of(workspace, dataset)) == 2
    assert status_of(dataset) is DatasetStatus.ERROR
    clock.turn(days=2)
    workspace.vacuum()
    assert (status_of(dataset), dataset.uploads()) == (DatasetStatus.DRAFT, [])
    assert (blobs_of(workspace, dataset), lists_of(workspace, dataset)) == ([], [])
    record = dataset.last_task
    assert record is not None
    with pytest.raises(NotRetryable, match="upload the files again"):
        workspace.task(record.task_id).retry()
    assert status_of(dataset) is DatasetStatus.DRAFT
    again = dataset.open_upload()
    assert again.id > transaction.id
    again.add(pairs(3))
    again.process(encoder="averages")
    assert paths_of(dataset) == ["3.png"]


@pytest.mark.slow
def test_expiry__does_not_touch_what_is_retried_in_time(
    workspace: Workspace, clock: Clock, failed: tuple[Dataset, UploadTransaction]
) -> None:
    """A retry within seven days of the failure finds all files, however old they are."""
    dataset, transaction = failed
    clock.turn(days=6.9)
    workspace.vacuum()
    record = dataset.last_task
    assert record is not None
    with Workspace(workspace.path, settings=SETTINGS) as other:
        task = other.task(record.task_id)
        task.retry()
        task.wait(60)
    assert (state_of(transaction), paths_of(dataset)) == (UploadState.DONE, ["1.png", "2.png"])
    clock.turn(days=30)
    assert workspace.vacuum().uploads == 0
    assert state_of(transaction) is UploadState.DONE
