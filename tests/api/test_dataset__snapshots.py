"""Snapshots, restores and clones, by the rules of the interface."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import (
    Conflict,
    Dataset,
    Error,
    Forbidden,
    InvalidInput,
    NotFound,
    NotIndexed,
    ReadOnly,
    Workspace,
    WorkspaceError,
)
from framedex.records import DatasetStatus, Snapshot, SnapshotReason, TaskStatus, TaskType
from framedex.storage import table_files
from tests.failures import failing
from tests.gallery import SETTINGS, Faulty, fill
from tests.growth import THRESHOLDS, columns_of, families, groups_of, ids_of, part, status_of, summary_of
from tests.pauses import Pause, watched
from tests.prepared import prepared
from tests.processes import finish, start

FIELDS = [
    "snapshot_id", "snapshot_name", "source_dataset_name", "created_at", "created_by", "n_images", "n_videos",
    "description", "reason", "training_model_id", "training_model_name", "is_current", "is_restoring",
]  # fmt: skip
ROWS = families(60)


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of some families of vectors."""
    return prepared(workspace, "pets", part(ROWS[:40]), thresholds=THRESHOLDS)


def state_of(dataset: Dataset) -> dict[str, Any]:
    """Return all that a restore must bring back."""
    ids, vectors = dataset.embeddings()
    return {
        "media": dataset.to_arrow().to_pylist(),
        "embeddings": (ids, vectors.tolist()),
        "duplicates": groups_of(dataset),
        "issues": dataset.issues().to_pylist(),
        "decisions": dataset.duplicate_decisions(),
        "config": dataset.embedding_config,
        "clusters": [
            [(cluster.cluster_id, cluster.n_images) for cluster in dataset.explore(level=level).clusters]
            for level in range(5)
        ],
    }


def current(dataset: Dataset) -> list[str]:
    """Return the ids of the snapshots that are current."""
    return [each.snapshot_id for each in dataset.snapshots() if each.is_current]


@pytest.mark.slow
def test_snapshot__made_when_first_indexed(dataset: Dataset) -> None:
    """The first index makes a snapshot with reason creation and the default name, which is current."""
    (first,) = dataset.snapshots()
    assert list(first.model_dump()) == FIELDS
    assert first.snapshot_name == f"pets_snapshot_{first.snapshot_id}"
    assert (first.reason, first.created_by) == (SnapshotReason.CREATION, "tester@example.org")
    assert (first.source_dataset_name, first.n_images, first.n_videos, first.description) == ("pets", 40, 0, "")
    assert (first.is_current, first.is_restoring) == (True, False)
    assert (first.training_model_id, first.training_model_name) == (None, None)


def test_snapshot__newest_first_and_current(dataset: Dataset) -> None:
    """A new snapshot becomes the current one, and is listed first."""
    one = dataset.snapshot("one", description="before it all")
    assert (one.snapshot_name, one.description, one.reason) == ("one", "before it all", SnapshotReason.MANUAL)
    two = dataset.snapshot()
    assert [each.snapshot_name for each in dataset.snapshots()[:2]] == [f"pets_snapshot_{two.snapshot_id}", "one"]
    assert current(dataset) == [two.snapshot_id]
    dataset.rename("cats")
    assert {each.source_dataset_name for each in dataset.snapshots()} == {"cats"}
    assert dataset.snapshots()[1].snapshot_name == "one"


def test_update_snapshot__name_and_description(dataset: Dataset) -> None:
    """Name and description change, each alone or both; what is kept does not."""
    snapshot = dataset.snapshot("one")
    assert dataset.update_snapshot(snapshot, name="uno").snapshot_name == "uno"
    assert dataset.update_snapshot(snapshot.snapshot_id, description="text").snapshot_name == "uno"
    changed = dataset.update_snapshot("current", name="ein", description="")
    assert (changed.snapshot_name, changed.description) == ("ein", "")
    assert changed.model_dump(exclude={"snapshot_name"}) == snapshot.model_dump(exclude={"snapshot_name"})
    with pytest.raises(InvalidInput, match="neither was given"):
        dataset.update_snapshot(snapshot)
    for wrong in ("", " ", "a\nb", 3, "x" * 401):
        with pytest.raises(InvalidInput, match="the name of a snapshot"):
            dataset.update_snapshot(snapshot, name=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="the name of a snapshot"):
            dataset.snapshot(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the description of a snapshot"):
        dataset.snapshot(description=None)  # type: ignore[arg-type]


def test_delete_snapshot__hides_it(dataset: Dataset) -> None:
    """A deleted snapshot is in no answer any more; the current one cannot be deleted."""
    one, two = dataset.snapshot("one"), dataset.snapshot("two")
    for name in (two, two.snapshot_id, "current"):
        with pytest.raises(Conflict, match=f"{two.snapshot_id} is the current one"):
            dataset.delete_snapshot(name)
    dataset.delete_snapshot(one)
    assert dataset.snapshots()[0].snapshot_name == "two"
    uses: list[Callable[[Snapshot], Any]] = [
        dataset.delete_snapshot,
        dataset.restore,
        dataset.clone,
        lambda each: dataset.update_snapshot(each, name="x"),
    ]
    for use in uses:
        with pytest.raises(NotFound, match=f"no snapshot '{one.snapshot_id}'"):
            use(one)
    assert dataset.count() == 40


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["nobody", "", "\udc80", 3, None])
def test_snapshots__unknown(dataset: Dataset, wrong: Any) -> None:
    """An id that is none is an error that names it."""
    for use in (dataset.restore, dataset.clone, dataset.delete_snapshot):
        with pytest.raises((NotFound, InvalidInput)):
            use(wrong)


@pytest.mark.slow
def test_snapshot__of_another_dataset(workspace: Workspace, dataset: Dataset) -> None:
    """A snapshot belongs to its dataset; another one does not know it."""
    other = workspace.create_dataset("other", part(ROWS[:3]))
    with pytest.raises(NotFound):
        dataset.restore(other.snapshots()[0])


@pytest.mark.slow
def test_restore__brings_everything_back(workspace: Workspace, dataset: Dataset) -> None:
    """After additions, deletions, decisions, labels and a new index, a restored dataset is what it was."""
    dataset.not_duplicates(max(dataset.duplicates(), key=lambda group: len(group.media_ids)).media_ids)
    before, kept = state_of(dataset), dataset.snapshot("kept")
    ids = ids_of(dataset)
    dataset.set_labels({ids["0.jpg"]: ["odd"]})
    dataset.withdraw_decision(dataset.duplicate_decisions()[0].decision_id)
    dataset.add_media(part(ROWS[40:], 40))
    dataset.delete_media([ids["1.jpg"], ids["2.jpg"]])
    dataset.reindex(thresholds=[value / 2 for value in THRESHOLDS])
    changed = state_of(dataset)
    later = dataset.snapshot("later")
    task = dataset.restore(kept)
    assert (task.record.task_type, task.record.dataset_id) == (TaskType.SNAPSHOT_RESTORE, dataset.id)
    assert state_of(dataset) == before
    assert (dataset.info.n_images, status_of(dataset)) == (40, DatasetStatus.READY)
    assert current(dataset) == [kept.snapshot_id]
    dataset.restore(later)
    assert state_of(dataset) == changed
    dataset.restore(dataset.snapshots()[-1])
    assert dataset.duplicate_decisions() == []
    dataset.add_media(part(ROWS[40:], 40), auto_reindex=True)
    assert dataset.count() == 60
    with Workspace(workspace.path, settings=SETTINGS) as again:
        assert again.dataset("pets").restore(later).status is TaskStatus.COMPLETED
        assert state_of(again.dataset("pets")) == changed


@pytest.mark.slow
def test_restore__current_after_changes(dataset: Dataset) -> None:
    """By default the current snapshot comes back."""
    before = state_of(dataset)
    dataset.add_media(part(ROWS[40:], 40))
    assert status_of(dataset) is DatasetStatus.PARTIAL_INDEX
    dataset.restore("current")
    assert state_of(dataset) == before
    assert status_of(dataset) is DatasetStatus.READY


@pytest.mark.slow
def test_restore__ids_are_never_used_twice(dataset: Dataset) -> None:
    """Clusters that are made after a restore do not get the ids of those that were made before it."""
    dataset.add_media(part(np.eye(8)[:4] * -1, 100), auto_reindex=True)
    used, known = summary_of(dataset)["first_free"], set(columns_of(dataset)["cluster_0"])
    dataset.restore("current")
    old = set(columns_of(dataset)["cluster_0"])
    assert summary_of(dataset)["first_free"] == used
    dataset.add_media(part(np.eye(8)[4:] * -1, 200), auto_reindex=True)
    assert not (set(columns_of(dataset)["cluster_0"]) - old) & known


@pytest.mark.slow
def test_restore__reading_goes_on(workspace: Workspace, dataset: Dataset) -> None:
    """While a restore runs, the state before is read, changes are refused, and the snapshot says so."""
    kept = dataset.snapshot("kept")
    dataset.add_media(part(ROWS[40:], 40), auto_reindex=True)
    dataset.snapshot("later")
    pause = Pause("restoring")
    task = watched(workspace, lambda: dataset.restore(kept, wait=False), pause)
    assert pause.reached.wait(60)
    assert (status_of(dataset), dataset.count(), len(dataset.embeddings()[0])) == (DatasetStatus.READ_ONLY, 60, 60)
    assert [each.snapshot_name for each in dataset.snapshots() if each.is_restoring] == ["kept"]
    changes: list[Callable[[], Any]] = [
        lambda: dataset.add_media(part(ROWS[:2], 300)),
        dataset.reindex,
        lambda: dataset.restore(kept),
        dataset.snapshot,
        lambda: dataset.delete_media("x"),
    ]
    for change in changes:
        with pytest.raises(Conflict, match="is blocked while SNAPSHOT_RESTORE task is running"):
            change()
    with pytest.raises(Conflict, match="cannot be deleted while it is restored"):
        dataset.delete_snapshot(kept)
    pause.opened.set()
    task.wait(60)
    assert (status_of(dataset), dataset.count()) == (DatasetStatus.READY, 40)
    assert not any(each.is_restoring for each in dataset.snapshots())


@pytest.mark.slow
def test_restore__aborted(workspace: Workspace, dataset: Dataset) -> None:
    """An aborted restore leaves the dataset as it was, and can be retried."""
    dataset.add_media(part(ROWS[40:], 40), auto_reindex=True)
    before, pause = state_of(dataset), Pause("restoring")
    task = watched(workspace, lambda: dataset.restore("current", wait=False), pause)
    assert pause.reached.wait(60)
    pause.opened.set()
    try:
        task.abort()
    except Conflict:  # it was faster
        assert dataset.count() == 40
        return
    assert state_of(dataset) == before
    task.retry()
    task.wait(60)
    assert dataset.count() == 40


@pytest.mark.slow
def test_clone__is_independent(workspace: Workspace, dataset: Dataset) -> None:
    """A clone is all of its snapshot, shares the files, and neither feels what is done to the other."""
    dataset.not_duplicates(dataset.duplicates()[0].media_ids)
    dataset.snapshot("kept")
    before = state_of(dataset)
    clone = dataset.clone()
    assert clone.name == "pets (cloned)"
    assert clone.task is not None
    record = clone.task.record
    assert (record.task_type, record.dataset_id, record.dataset_name) == (
        TaskType.SNAPSHOT_CLONE, clone.id, "pets (cloned)",
    )  # fmt: skip
    (made,) = clone.snapshots()
    assert (made.reason, made.source_dataset_name, made.n_images) == (SnapshotReason.CLONE, "pets (cloned)", 40)
    assert (state_of(dataset), status_of(dataset), status_of(clone)) == (
        before,
        DatasetStatus.READY,
        DatasetStatus.READY,
    )
    same = state_of(clone)
    assert same["embeddings"] == before["embeddings"]
    assert same["decisions"] == before["decisions"]
    assert sorted(map(sorted, same["duplicates"].values())) == sorted(map(sorted, before["duplicates"].values()))
    assert [size for _, size in same["clusters"][2]] == [size for _, size in before["clusters"][2]]
    shared = [
        path for path in (workspace.path / "datasets" / clone.id).rglob("data/*.lance") if path.stat().st_nlink > 1
    ]
    assert shared
    clone.add_media(part(ROWS[40:], 40), auto_reindex=True)
    dataset.delete_media(dataset.where([]).media_ids()[:5])
    assert (clone.count(), dataset.count()) == (60, 35)
    workspace.delete_dataset("pets")
    assert (clone.count(), len(clone.embeddings()[0])) == (60, 60)
    clone.restore("current")
    assert state_of(clone) == same


@pytest.mark.slow
def test_clone__is_of_the_present_state(dataset: Dataset) -> None:
    """Without a name a clone has all that was changed since the last snapshot; with one it has nothing of it."""
    ids = dataset.where([]).media_ids()
    dataset.delete_media(ids[:2])
    dataset.set_labels(ids[2:4], ["seen"])
    dataset.tag(ids[4:5], "kept")
    before = state_of(dataset)
    for clone in (dataset.clone(), dataset.clone("head")):
        assert clone.view.media_ids() == dataset.view.media_ids()
        assert ([each.name for each in clone.labels()], [each.name for each in clone.tags()]) == (["seen"], ["kept"])
    last = dataset.clone("current")
    assert (last.count(), last.labels(), last.tags()) == (40, [], [])
    clone.delete_tag("kept")
    assert state_of(dataset) == before


@pytest.mark.slow
def test_clone__is_of_the_state_at_its_call(dataset: Dataset) -> None:
    """What is changed while a clone is made is not in it."""
    clone = dataset.clone(wait=False)
    dataset.delete_media(dataset.view.media_ids()[:5])
    assert clone.task is not None
    clone.task.wait(60)
    assert (clone.count(), dataset.count()) == (40, 35)


@pytest.mark.slow
def test_restore__without_a_name(dataset: Dataset) -> None:
    """A restore names its snapshot; else the error lists the snapshots, and nothing changes."""
    kept = dataset.snapshot("before")
    dataset.delete_media(dataset.view.media_ids()[:1])
    with pytest.raises(InvalidInput, match=f"needs the id or the name of a snapshot.*{kept.snapshot_id} .'before'.,"):
        dataset.restore()
    assert dataset.count() == 39


WRITER = """
    import sys
    import framedex
    with framedex.Workspace(sys.argv[1]) as workspace:
        dataset = workspace.dataset("pets")
        print("edits", flush=True)
        for number in range(12):
            dataset.set_labels(dataset.view, [f"label {number}"])
"""


@pytest.mark.slow
def test_clone__while_another_process_edits(workspace: Workspace, dataset: Dataset) -> None:
    """Each clone is of one state: the other process gives all images one label at a time."""
    dataset.set_labels(dataset.view, ["first"])
    process = start(WRITER, workspace.path)
    assert process.stdout is not None
    assert process.stdout.readline() == "edits\n"
    while process.poll() is None:
        (label,) = dataset.clone().labels()
        assert label.count == 40
    finish(process)
    assert dataset.clone().labels()[0].name == "label 11"


@pytest.mark.slow
def test_clone__knows_the_media_that_it_has(dataset: Dataset) -> None:
    """Media that a clone has from its source are not added again; names of clones that are taken get a number."""
    clone = dataset.clone()
    clone.add_media(part(ROWS[38:42], 38))
    assert clone.count() == 42
    assert clone.skipped == {"media that are there already": 2}
    again = clone.clone()
    again.add_media(part(ROWS[38:42], 38))
    assert again.count() == 42
    assert [dataset.clone().name, dataset.clone().name] == ["pets (cloned 2)", "pets (cloned 3)"]


@pytest.mark.slow
@failing("os.link", error=OSError("no links here"))
def test_clone__where_files_cannot_be_linked(dataset: Dataset) -> None:
    """On a file system without hard links, files are copied."""
    clone = dataset.clone()
    assert clone.count() == 40
    assert state_of(clone)["embeddings"] == state_of(dataset)["embeddings"]


@pytest.mark.slow
def test_clone__of_what_is_gone(workspace: Workspace, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone whose source vanishes meanwhile fails, says so, and leaves nothing to read."""

    def vanish(*_args: Any) -> None:
        shutil.rmtree(workspace.path / "datasets" / dataset.id)
        raise FileNotFoundError("it is gone")

    monkeypatch.setattr(table_files, "link_file", vanish)
    clone = dataset.clone(wait=False)
    assert clone.task is not None
    with pytest.raises(Exception, match="gone"):
        clone.task.wait(60)
    assert (clone.task.status, status_of(clone)) == (TaskStatus.FAILED, DatasetStatus.ERROR)


def test_snapshot__needs_ready(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A dataset that is PARTIAL INDEX, or was never indexed, has no state that a snapshot could keep."""
    dataset.add_media(part(ROWS[40:], 40))
    with pytest.raises(Conflict, match="needs the dataset status READY; it is PARTIAL INDEX"):
        dataset.snapshot()
    clone = dataset.clone()
    assert (clone.count(), status_of(clone), dataset.clone("current").count()) == (60, DatasetStatus.PARTIAL_INDEX, 40)
    broken = workspace.create_dataset("broken", fill(tmp_path / "p", 2), Faulty(), wait=False)
    assert broken.task is not None
    with pytest.raises(Exception, match=r"."):
        broken.task.wait(60)
    assert status_of(broken) is DatasetStatus.ERROR
    assert broken.snapshots() == []
    for use in (broken.snapshot, broken.restore, broken.clone):
        with pytest.raises((Conflict, NotFound, NotIndexed)):
            use()


@pytest.mark.slow
def test_snapshots__switched_off(tmp_path: Path) -> None:
    """If the settings forbid snapshots, not even the one of the creation is made."""
    settings = SETTINGS.model_copy(update={"dataset_snapshots_enabled": False})
    with Workspace(tmp_path / "w", settings=settings) as workspace:
        dataset = workspace.create_dataset("d", part(ROWS[:3]))
        uses = (dataset.snapshot, dataset.snapshots, dataset.restore, dataset.clone)
        for use in (*uses, lambda: dataset.delete_snapshot("x"), lambda: dataset.update_snapshot("x", name="y")):
            with pytest.raises(Forbidden, match="Snapshot feature is not enabled"):
                use()
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        assert workspace.dataset("d").snapshots() == []
        with pytest.raises(NotFound, match="no snapshot 'current'"):
            workspace.dataset("d").restore("current")


def test_snapshots__in_a_workspace_that_is_read(workspace: Workspace, dataset: Dataset) -> None:
    """Snapshots are listed there; nothing is changed."""
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as read:
        same = read.dataset("pets")
        assert same.snapshots() == dataset.snapshots()
        for use in (same.snapshot, same.restore, same.clone, lambda: same.delete_media("x"), lambda: same.rename("x")):
            with pytest.raises(ReadOnly):
                use()


@pytest.mark.slow
def test_rename__dataset(workspace: Workspace, dataset: Dataset) -> None:
    """A dataset gets another name, unless that is taken or cannot be one."""
    workspace.create_dataset("cats", part(ROWS[:2]))
    dataset.rename("dogs")
    assert (dataset.name, workspace.dataset("dogs").id) == ("dogs", dataset.id)
    with pytest.raises(Conflict, match="'cats' exists already"):
        dataset.rename("cats")
    with pytest.raises(InvalidInput, match="must not contain slashes"):
        dataset.rename("a/b")
    dataset.rename("dogs")
    workspace.delete_dataset("dogs")
    with pytest.raises(NotFound):
        dataset.rename("birds")


@pytest.mark.slow
def test_snapshot__that_is_not_there(workspace: Workspace, folder: Path) -> None:
    """The error about an unknown snapshot names those that are there."""
    dataset = workspace.create_dataset("d", folder)
    kept = dataset.snapshot("before")
    for ask in (dataset.restore, dataset.clone, dataset.delete_snapshot):
        with pytest.raises(NotFound, match="no snapshot 'nope' of this dataset; there are: ") as raised:
            ask("nope")
        assert f"{kept.snapshot_id} ('before')" in str(raised.value)


@pytest.mark.slow
def test_snapshot__of_a_dataset_that_was_deleted(workspace: Workspace, folder: Path) -> None:
    """Methods of a dataset that was deleted meanwhile raise that it does not exist."""
    dataset = workspace.create_dataset("d", folder)
    kept = dataset.snapshot()
    workspace.delete_dataset("d")
    for snapshot in ("current", kept):
        for ask in (dataset.restore, dataset.clone, dataset.delete_snapshot):
            with pytest.raises(NotFound, match="no dataset"):
                ask(snapshot)
    with pytest.raises(NotFound, match="no dataset"):
        dataset.snapshot()
    assert workspace.datasets() == []


def test_clone__that_fails_leaves_nothing(workspace: Workspace, folder: Path) -> None:
    """A clone that was waited for and failed leaves the record of its task alone, as a creation does."""
    dataset = workspace.create_dataset("d", folder)
    shutil.rmtree(workspace.path / "datasets" / dataset.id / "media.lance" / "data")
    with pytest.raises(Error):
        dataset.clone()
    assert [record.display_name for record in workspace.datasets()] == ["d"]
    assert len(list((workspace.path / "datasets").iterdir())) == 1
    assert workspace.tasks(task_type="SNAPSHOT_CLONE").tasks[0].status is TaskStatus.FAILED


@pytest.mark.slow
@pytest.mark.parametrize("table", ["decisions", "fields"])
@pytest.mark.parametrize("replaced", [False, True])
def test_clone__names_a_missing_file(dataset: Dataset, workspace: Workspace, table: str, replaced: bool) -> None:
    """A clone of a dataset that lacks a file, or has a folder in its place, names it, the dataset and a remedy."""
    ids = dataset.where([]).media_ids()
    dataset.add_field("rating", "float", values={ids[0]: 1.5})
    dataset.not_duplicates(ids[:2])
    kept = dataset.snapshot("kept")
    files = list((workspace.path / "datasets" / dataset.id / f"{table}.lance" / "data").iterdir())
    for path in files:
        path.unlink()
        if replaced:
            path.mkdir()
    with pytest.raises(WorkspaceError, match="framedex check") as raised:
        dataset.clone(kept)
    assert table in str(raised.value)
    assert dataset.id in str(raised.value)
    assert any(path.name in str(raised.value) for path in files)
    assert [each.id for each in workspace.datasets()] == [dataset.id]
