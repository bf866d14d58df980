"""Indexing all anew: the partition is that of all rows at once, and what continues keeps its id."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Aborted, Conflict, Dataset, InvalidInput, Task, TaskFailed, Workspace
from framedex.records import DatasetStatus, TaskStatus, TaskType
from tests.analysis.arrays import same_partition
from tests.growth import GROUPS, THRESHOLDS, columns_of, families, grown, part, partition, status_of, summary_of
from tests.laws import rest_slow
from tests.pauses import FailAt, Pause, run_of, watched


def assert_same_groups(dataset: Dataset, whole: Dataset) -> None:
    """Check that two datasets of the same rows are grouped alike."""
    found, expected = columns_of(dataset), columns_of(whole)
    for name in GROUPS:
        assert same_partition(partition(found[name]), partition(expected[name])), name


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("sizes", [(1, 40), (30, 5), (20, 10, 30), (2, 1, 1)])
def test_reindex__is_an_index_of_all(workspace: Workspace, sizes: tuple[int, ...]) -> None:
    """After a reindex groups and scores are those of a dataset that was made of all rows at once."""
    rows = families(sum(sizes), seed=len(sizes))
    dataset, whole = grown(workspace, rows, *sizes), grown(workspace, rows, len(rows), name="whole")
    task = dataset.reindex()
    assert (task.record.task_type, task.status) == (TaskType.REINDEX, TaskStatus.COMPLETED)
    assert (dataset.info.status_new, dataset.info.progress) == (DatasetStatus.READY, 100)
    assert_same_groups(dataset, whole)
    for name in ("duplicate_similarity", "uniqueness", "outlier_distance"):
        np.testing.assert_allclose(columns_of(dataset, [name])[name], columns_of(whole, [name])[name], atol=1e-6)
    assert summary_of(dataset)["issue_thresholds"] == summary_of(whole)["issue_thresholds"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__of_what_did_not_change(workspace: Workspace) -> None:
    """Clusters and groups that stay as they are keep their ids, and no number is taken."""
    rows = families(60)
    dataset = grown(workspace, rows, 40, 20)
    dataset.reindex()
    before, free = columns_of(dataset), summary_of(dataset)["first_free"]
    clusters = dataset.explore(level=2)
    for _ in range(2):
        dataset.reindex(thresholds=THRESHOLDS)
        assert columns_of(dataset) == before
        assert summary_of(dataset)["first_free"] == free
    assert dataset.explore(level=2) == clusters


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__what_joined_for_a_while_does_not_count(workspace: Workspace) -> None:
    """A cluster is known by its settled members: many that joined it and are taken elsewhere leave it its id."""
    turns = np.radians(np.repeat([0.0, 11.0, 20.0], [2, 5, 10]) + np.linspace(0, 0.1, 17))
    rows = np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)
    source = pa.table({"uri": [f"{place}.jpg" for place in range(17)], "embedding": list(rows)})
    dataset = workspace.create_dataset("d", source.slice(0, 2), thresholds=(0.02, 0.5, 0.6, 0.7, 0.8))
    dataset.add_media(source.slice(2))
    assert columns_of(dataset, ["cluster_0"])["cluster_0"] == [1] * 7 + [2] * 10
    dataset.reindex()
    assert columns_of(dataset, ["cluster_0"])["cluster_0"] == [1] * 2 + [2] * 15


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__over_several_rounds(workspace: Workspace) -> None:
    """Over rounds of additions and other thresholds no number is given twice, and same members have the same number."""
    rows = families(120, seed=5)
    dataset = grown(workspace, rows, 30)
    used: dict[str, dict[int, frozenset[int]]] = {name: {} for name in GROUPS}
    gone: dict[str, set[int]] = {name: set() for name in GROUPS}
    for turn, start in enumerate(range(30, 120, 15)):
        dataset.add_media(part(rows[start : start + 15], start))
        wider = tuple(cut * (1 + turn % 3) for cut in THRESHOLDS)
        for change in (lambda: None, lambda cuts=wider: dataset.reindex(thresholds=cuts)):
            change()
            columns, free = columns_of(dataset), summary_of(dataset)["first_free"]
            for name in GROUPS:
                members: dict[int, set[int]] = {}
                for place, number in enumerate(columns[name]):
                    if number is not None:
                        members.setdefault(number, set()).add(place)
                now = {number: frozenset(places) for number, places in members.items()}
                assert not gone[name] & now.keys(), "a number came back"
                assert max(now, default=-1) < free[name]
                numbers = {places: number for number, places in used[name].items()}
                for number, places in now.items():
                    assert numbers.get(places, number) == number, "the same members have another number"
                gone[name] |= used[name].keys() - now.keys()
                used[name] = now
    assert any(gone.values())
    whole = workspace.create_dataset("whole", part(rows), thresholds=dataset.embedding_config.thresholds)
    assert_same_groups(dataset, whole)


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__most_members_keep_the_id(workspace: Workspace) -> None:
    """A cluster that gains members keeps its id; one that is split leaves it to the larger part."""
    middle, other = np.eye(8)[0], np.eye(8)[1]
    rows = [middle + place * 0.01 * other for place in range(5)] + [np.eye(8)[4]]
    dataset = workspace.create_dataset("d", part(rows), thresholds=THRESHOLDS)
    (before,) = {columns_of(dataset)["cluster_2"][place] for place in range(5)}
    dataset.add_media(part([middle, other * 5 + np.eye(8)[6]], 6))
    dataset.reindex()
    numbers = columns_of(dataset)["cluster_2"]
    assert [number == before for number in numbers] == [True] * 5 + [False, True, False]
    tight = (1e-6, 2e-6, 3e-6, 4e-6, 5e-6)
    dataset.reindex(thresholds=tight)
    numbers = columns_of(dataset)["cluster_2"]
    assert len(set(numbers)) == 7  # but for the copy all are on their own now
    assert dataset.embedding_config.thresholds == tight


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__needs_a_reason(workspace: Workspace) -> None:
    """A dataset that is READY is indexed anew with thresholds only, and these must ascend."""
    rows = families(20)
    dataset = grown(workspace, rows, 20)
    with pytest.raises(Conflict) as raised:
        dataset.reindex()
    assert str(raised.value) == (
        "Operation 'reindex' needs the dataset status PARTIAL INDEX; it is READY: all of it is indexed, so there is "
        "nothing to do, unless other thresholds are given"
    )
    for wrong in [(), (0.1,), (0.5, 0.4, 0.3, 0.2, 0.1), (0.1, 0.1, 0.2, 0.3, 0.4), (0.1, 0.2, 0.3, 0.4, 3), "abcde"]:
        with pytest.raises(InvalidInput, match="thresholds must be five ascending"):
            dataset.reindex(thresholds=wrong)  # type: ignore[arg-type] # wrong on purpose
    wide = (0.02, 0.05, 0.2, 0.4, 0.9)
    dataset.reindex(thresholds=wide)
    assert (dataset.info.status_new, dataset.embedding_config.thresholds) == (DatasetStatus.READY, wide)
    assert_same_groups(dataset, workspace.create_dataset("whole", part(rows), thresholds=wide))
    dataset.add_media(part(families(5, seed=9), 20))
    dataset.reindex()
    assert dataset.embedding_config.thresholds == wide


@pytest.mark.slow
def test_reindex__status_while_it_runs(workspace: Workspace) -> None:
    """While it is indexed anew the dataset is INDEXING, readers see the state before, and changes are refused."""
    rows = families(40)
    dataset = grown(workspace, rows, 20, 20)
    before, media = dataset.to_arrow(), dataset.where([]).media_ids()
    pause = Pause("clustering")
    task = watched(workspace, lambda: dataset.reindex(wait=False), pause)
    assert pause.reached.wait(60)
    info = dataset.info
    assert (info.status_new, info.n_images) == (DatasetStatus.INDEXING, 40)
    assert info.progress < 100
    assert dataset.to_arrow().equals(before)
    assert dataset.explore().clusters
    changes: dict[str, Callable[[], Any]] = {
        "add_media": lambda: dataset.add_media(part(rows, 40)),
        "reindex": dataset.reindex,
        "not_duplicates": lambda: dataset.not_duplicates(media[:2]),
    }
    for operation, change in changes.items():
        with pytest.raises(Conflict) as raised:
            change()
        assert str(raised.value) == f"Operation '{operation}' is blocked while REINDEX task is running"
    pause.opened.set()
    task.wait(60)
    assert status_of(dataset) is DatasetStatus.READY


@pytest.mark.slow
def test_reindex__aborted(workspace: Workspace) -> None:
    """An aborted reindex leaves the dataset PARTIAL INDEX, and can be retried."""
    dataset = grown(workspace, families(40), 20, 20)
    before, pause = dataset.to_arrow(), Pause("finding duplicates")
    task = watched(workspace, lambda: dataset.reindex(wait=False), pause)
    assert pause.reached.wait(60)
    abort = threading.Thread(target=task.abort)
    abort.start()
    assert run_of(task).progress.cancelled.wait(60)
    pause.opened.set()
    abort.join(60)
    assert task.status is TaskStatus.ABORTED
    with pytest.raises(Aborted):
        task.wait()
    assert status_of(dataset) is DatasetStatus.PARTIAL_INDEX
    assert dataset.to_arrow().equals(before)
    task.retry()
    assert task.wait(60).status is TaskStatus.COMPLETED
    assert status_of(dataset) is DatasetStatus.READY


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("operation", rest_slow(["reindex", "add_media"], 1))
def test_failure__at_any_point(workspace: Workspace, operation: str) -> None:
    """Wherever an addition or a reindex fails, status and content stay; one that succeeds is as if none had failed."""
    rows = families(50, seed=3)
    dataset, calm = grown(workspace, rows, 20, 15), grown(workspace, rows, 20, 15, name="calm")
    before = columns_of(dataset, [*GROUPS, "uniqueness"])

    def start(which: Dataset) -> Task:
        return which.reindex(wait=False) if operation == "reindex" else which.add_media(part(rows[35:], 35), wait=False)

    start(calm).wait(60)
    reports, task = 0, None
    while task is None or task.status is TaskStatus.FAILED:
        reports += 1
        progress = FailAt(reports)
        task = watched(workspace, lambda: start(dataset), progress)
        try:
            task.wait(60, progress=progress)
        except TaskFailed:
            assert "the disk is full" in (task.record.error_message or "")
            assert (dataset.info.status_new, dataset.count()) == (DatasetStatus.PARTIAL_INDEX, 35)
            assert columns_of(dataset, [*GROUPS, "uniqueness"]) == before
    assert reports > 6
    assert columns_of(dataset, [*GROUPS, "uniqueness", "path"]) == columns_of(calm, [*GROUPS, "uniqueness", "path"])
    assert dataset.info.status_new is calm.info.status_new
    assert summary_of(dataset) == summary_of(calm)


def test_reindex__failed_thresholds_are_forgotten(workspace: Workspace) -> None:
    """Thresholds of a reindex that failed are not those of the dataset, until a retry succeeds."""
    dataset = grown(workspace, families(20), 20)
    progress = FailAt(2)
    wide = (0.02, 0.05, 0.2, 0.4, 0.9)
    task = watched(workspace, lambda: dataset.reindex(thresholds=wide, wait=False), progress)
    with pytest.raises(TaskFailed):
        task.wait(60, progress=progress)
    assert dataset.info.status_new is DatasetStatus.READY
    assert dataset.embedding_config.thresholds == THRESHOLDS
    task.retry()
    task.wait(60)
    assert dataset.embedding_config.thresholds == wide


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__progress(workspace: Workspace) -> None:
    """The shares that are reported never fall and end at 1, for additions too."""
    rows = families(60)
    dataset = grown(workspace, rows, 30)
    for start in (
        lambda: dataset.add_media(part(rows[30:45], 30), wait=False),
        lambda: dataset.add_media(part(rows[45:], 45), wait=False, auto_reindex=True),
        lambda: dataset.reindex(thresholds=THRESHOLDS, wait=False),
    ):
        heard: list[float] = []

        def hear(_stage: str, share: float, heard: list[float] = heard) -> None:
            heard.append(share)

        watched(workspace, start, hear).wait(60, progress=hear)
        assert heard == sorted(heard)
        assert heard[-1] == 1
