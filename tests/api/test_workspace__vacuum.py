"""Vacuum, on request and after changes, keeps heads, snapshots, states in use, and unfinished work."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Conflict, Dataset, InvalidInput, NotFound, ReadOnly, Workspace
from framedex.records import DatasetStatus, SnapshotReason, TaskStatus
from framedex.storage import schema
from framedex.storage.blobs import Upload
from framedex.storage.datasets import now
from framedex.storage.table_versions import Table
from tests.failures import failing
from tests.gallery import SETTINGS, Faulty, Gate, fill
from tests.growth import THRESHOLDS, columns_of, families, part
from tests.image_files import encode, photo
from tests.inside import catalog_of, stored_media
from tests.pauses import Pause, all_threads_busy, run_of, watched
from tests.prepared import prepared
from tests.processes import finish, start

ROWS = families(400, dimension=16)
AT_ONCE = SETTINGS.model_copy(
    update={"keep_versions_s": 0.0, "clean_every_s": 0.0, "journal_states": 0, "journal_bytes": 0}
)
NEVER = SETTINGS.model_copy(update={"clean_every_s": float("inf")})


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace in which nothing goes by itself."""
    with Workspace(tmp_path / "workspace", settings=NEVER) as opened:
        yield opened


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of some families of vectors."""
    return prepared(workspace, "pets", part(ROWS[:200]), thresholds=THRESHOLDS)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, each once whatever its names are."""
    found = [path.lstat() for path in folder.rglob("*") if path.is_file()]
    return sum({status.st_ino: status.st_size for status in found}.values())


def home_of(workspace: Workspace, dataset: Dataset) -> Path:
    """Return the folder of a dataset's tables."""
    return workspace.path / "datasets" / dataset.id


def generations_of(workspace: Workspace) -> int:
    """Return the number of generations of all datasets; a creation that takes long has shown early ones."""
    with catalog_of(workspace).read() as connection:
        return len(connection.execute(schema.generations.select()).all())


def tables_of(workspace: Workspace, dataset: Dataset) -> set[str]:
    """Return the names of a dataset's tables on the disk."""
    return {path.stem for path in home_of(workspace, dataset).glob("*.lance")}


def churn(dataset: Dataset, rounds: int, *, share: int = 20) -> None:
    """Add media, index all anew and delete as many, again and again."""
    rng = np.random.default_rng(0)
    for number in range(rounds):
        first = 10_000 + number * share
        dataset.add_media(part(families(share, seed=first, dimension=16), first), auto_reindex=True)
        ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        dataset.delete_media([str(each) for each in rng.choice(ids, share, replace=False)])


@pytest.mark.slow
@pytest.mark.only_soak
def test_vacuum__frees_what_rounds_of_changes_left(workspace: Workspace) -> None:
    """After many rounds of changes a dataset takes little more than one that was built at once; its content stays."""
    rows = families(3000, dimension=32)
    once = workspace.create_dataset("once", part(rows))
    dataset = workspace.create_dataset("churned", part(rows))
    for number in range(8):
        dataset.add_media(part(families(100, seed=number, dimension=32), 5000 + 100 * number), auto_reindex=True)
        dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[:100])
    first = next(each for each in dataset.snapshots() if each.reason is SnapshotReason.CREATION)
    dataset.snapshot()
    dataset.delete_snapshot(first)
    before, content = size_of(home_of(workspace, dataset)), dataset.to_arrow()
    result = workspace.vacuum(older_than_s=0)
    after = size_of(home_of(workspace, dataset))
    assert result.versions > 8
    assert after <= 1.5 * size_of(home_of(workspace, once))
    assert before - after <= result.freed_bytes
    assert dataset.to_arrow().equals(content)
    assert workspace.vacuum(older_than_s=0).versions == 0


@pytest.mark.slow
def test_vacuum__keeps_what_was_superseded_lately(workspace: Workspace, dataset: Dataset) -> None:
    """A state that was the head a moment ago stays for those who read it, however long ago it was written."""
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.generations.update().values(created_at=now() - timedelta(days=3)))
    media = stored_media(dataset)
    dataset.reindex(thresholds=THRESHOLDS)
    dataset.snapshot()
    dataset.delete_snapshot(dataset.snapshots()[1])
    workspace.vacuum()
    assert Table(media.table.path, media.table.version).scan(["cluster_0"]).read_all().num_rows == 200
    workspace.vacuum(older_than_s=0)
    with pytest.raises(NotFound):
        Table(media.table.path, media.table.version)


@pytest.mark.slow
def test_vacuum__keeps_snapshots(workspace: Workspace, dataset: Dataset) -> None:
    """A snapshot can be restored after a vacuum; when it is deleted, its data is freed."""
    dataset.tag(dataset.where([]), "first")
    before = dataset.to_arrow()
    snapshot = dataset.snapshot("before")
    churn(dataset, 3)
    dataset.delete_tag("first")
    now_there = dataset.to_arrow()
    workspace.vacuum(older_than_s=0)
    assert dataset.to_arrow().equals(now_there)
    dataset.restore(snapshot)
    assert dataset.to_arrow().equals(before)
    workspace.vacuum(older_than_s=0)
    assert dataset.to_arrow().equals(before)
    assert [tag.name for tag in dataset.tags()] == ["first"]


@pytest.mark.slow
def test_vacuum__after_a_restore(workspace: Workspace, dataset: Dataset) -> None:
    """The data superseded by a restore is freed, including unreferenced tables; later changes work."""
    first = dataset.snapshots()[0]
    dataset.tag(dataset.where([]), "x")
    dataset.add_media(part(ROWS[200:], 200), auto_reindex=True)
    dataset.restore(first)
    there, named = tables_of(workspace, dataset), {*stored_media(dataset).generation.tables}
    assert "tags" in there - named
    result = workspace.vacuum(older_than_s=0)
    assert (result.tables, tables_of(workspace, dataset)) == (len(there - named), named)
    size = size_of(home_of(workspace, dataset))
    assert workspace.vacuum(older_than_s=0).versions == 0
    assert size_of(home_of(workspace, dataset)) == size
    fresh = workspace.create_dataset("fresh", part(ROWS[:200]), thresholds=THRESHOLDS)
    size -= size_of(home_of(workspace, dataset) / "journal")
    assert size <= 1.1 * size_of(home_of(workspace, fresh))
    dataset.tag(dataset.where([]), "y")
    dataset.add_media(part(ROWS[200:], 200), auto_reindex=True)
    assert (dataset.count(), [tag.name for tag in dataset.tags()]) == (400, ["y"])


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["source", "clone"])
def test_vacuum__clones_stand_alone(workspace: Workspace, dataset: Dataset, gone: str) -> None:
    """A clone and its source share files; whichever is changed, cleaned up or deleted, the other stays whole."""
    clone = dataset.clone()
    before = clone.to_arrow()
    catalog_of(workspace).shrink()
    assert workspace.vacuum(older_than_s=0).freed_bytes < 10_000
    stays, goes = (clone, dataset) if gone == "source" else (dataset, clone)
    churn(goes, 2)
    workspace.vacuum(older_than_s=0)
    assert stays.to_arrow().num_rows == before.num_rows
    workspace.delete_dataset(goes.id)
    workspace.vacuum(older_than_s=0)
    assert stays.embeddings()[1].shape == (200, 16)
    stays.restore("current")
    stays.reindex(thresholds=THRESHOLDS)
    assert workspace.disk_usage().to_arrow()["shared_bytes"].to_pylist() == [0] * len(workspace.disk_usage().to_arrow())


@pytest.mark.slow
def test_vacuum__says_what_the_disk_has_more(workspace: Workspace, dataset: Dataset) -> None:
    """The freed bytes equal the gain of free disk space; files shared with a clone do not count."""
    dataset.clone()
    churn(dataset, 2)
    dataset.snapshot()
    for snapshot in dataset.snapshots()[1:]:
        dataset.delete_snapshot(snapshot)
    catalog_of(workspace).shrink()
    before = size_of(workspace.path)
    assert workspace.vacuum(older_than_s=0).freed_bytes == pytest.approx(before - size_of(workspace.path), abs=20_000)


@pytest.mark.slow
def test_vacuum__leaves_a_dataset_with_a_task_alone(workspace: Workspace, dataset: Dataset) -> None:
    """While a task works on a dataset it is left alone, and that is said; the other datasets are cleaned."""
    other = workspace.create_dataset("other", part(ROWS[:50]))
    churn(other, 1)
    pause = Pause("finding duplicates")
    task = watched(workspace, lambda: dataset.add_media(part(ROWS[200:], 200), wait=False), pause)
    assert pause.reached.wait(60)
    result = workspace.vacuum(older_than_s=0)
    assert result.skipped == {"pets": "its MEDIA_ADDITION task is running"}
    assert result.versions > 0
    pause.opened.set()
    task.wait()
    assert dataset.count() == 400
    assert workspace.vacuum(older_than_s=0).skipped == {}


@pytest.mark.slow
def test_vacuum__leaves_what_is_being_cloned_alone(workspace: Workspace, dataset: Dataset) -> None:
    """A dataset of which another one is being made is left alone, so that nothing goes before it is linked."""
    pause = Pause("linking tables")
    snapshot = dataset.snapshot()
    tasks: list[Dataset] = []

    def begin() -> object:
        tasks.append(dataset.clone(snapshot, wait=False))
        return tasks[0].task

    task = watched(workspace, begin, pause)  # type: ignore[arg-type] # it has a task
    assert pause.reached.wait(60)
    dataset.snapshot()
    dataset.delete_snapshot(snapshot)
    churn(dataset, 1)
    assert workspace.vacuum(older_than_s=0).skipped["pets"] == "it is being cloned or merged"
    pause.opened.set()
    task.wait()
    assert tasks[0].count() == 200


def test_vacuum__open_creation_stays(workspace: Workspace, folder: Path) -> None:
    """The folder of a dataset that is just being made stays, and so do its rows."""
    gate = Gate()
    dataset = workspace.create_dataset("new", folder, gate, wait=False)
    assert gate.reached.wait(60)
    home_of(workspace, dataset).mkdir(exist_ok=True)
    assert workspace.vacuum(older_than_s=0).skipped == {"new": "its DATASET_CREATION task is running"}
    assert home_of(workspace, dataset).exists()
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait()
    assert dataset.count() == 6


def fail_behind_reading(stage: str, _share: float) -> None:
    """Fail as soon as all rows are written."""
    if not stage.startswith(("starting", "reading")):
        raise RuntimeError("the disk is full")


def stopped_addition(workspace: Workspace, dataset: Dataset) -> str:
    """Return the id of the task of an addition that failed when its rows were written."""
    task = watched(workspace, lambda: dataset.add_media(part(ROWS[200:], 200), wait=False), fail_behind_reading)
    error = run_of(task).future.exception(60)  # waiting would take the watcher away
    assert "the disk is full" in str(error)
    return task.id


def resume_of(workspace: Workspace, task_id: str) -> object:
    """Return what a task can go on from."""
    with catalog_of(workspace).read() as connection:
        query = schema.tasks.select().where(schema.tasks.c.id == task_id)
        return connection.execute(query).one().resume


def test_vacuum__work_of_a_stopped_task(workspace: Workspace, dataset: Dataset) -> None:
    """A failed addition's checkpoint stays for a retry; if seconds are given, it is freed and a retry starts over."""
    task_id = stopped_addition(workspace, dataset)
    state = resume_of(workspace, task_id)
    assert isinstance(state, dict)
    workspace.vacuum()
    assert resume_of(workspace, task_id) == state
    assert Table(home_of(workspace, dataset) / "media.lance", state["version"]).count() > 200
    workspace.vacuum(older_than_s=0)
    assert resume_of(workspace, task_id) is None
    with pytest.raises(NotFound):
        Table(home_of(workspace, dataset) / "media.lance", state["version"])
    task = workspace.task(task_id)
    task.retry()
    assert task.wait().status is TaskStatus.COMPLETED
    assert dataset.count() == 400


@pytest.mark.slow
def test_vacuum__work_that_nobody_can_go_on_from(workspace: Workspace, dataset: Dataset) -> None:
    """Once the dataset has changed, or after a week, a stopped addition would begin anew, so its rows go."""
    old = stopped_addition(workspace, dataset)
    with catalog_of(workspace).write() as connection:
        connection.execute(
            schema.tasks.update().where(schema.tasks.c.id == old).values(end_time=now() - timedelta(days=8))
        )
    workspace.vacuum()
    assert resume_of(workspace, old) is None
    changed = stopped_addition(workspace, dataset)
    dataset.tag(dataset.where([]), "x")
    workspace.vacuum()
    assert resume_of(workspace, changed) is None


@pytest.mark.slow
def test_vacuum__failed_creation(workspace: Workspace, folder: Path) -> None:
    """A creation that failed can be retried after a vacuum, and its dataset stays for a look."""
    encoder = Faulty()
    dataset = workspace.create_dataset("pets", folder, encoder, wait=False)
    assert dataset.task is not None
    with pytest.raises(Exception, match="out of order"):
        dataset.task.wait()
    assert workspace.vacuum(older_than_s=0).skipped == {}
    assert dataset.info.status_new is DatasetStatus.ERROR
    encoder.broken = False
    dataset.task.retry()
    dataset.task.wait()
    assert dataset.count() == 6


def test_vacuum__files_that_no_version_has(workspace: Workspace, dataset: Dataset) -> None:
    """The remains of a killed writer, and of an interrupted vacuum, are freed."""
    data = home_of(workspace, dataset) / "media.lance" / "data"
    (data / "left.lance").write_bytes(bytes(5000))
    aside = home_of(workspace, dataset) / ".tags.lance-0123abcd.removed"
    aside.mkdir()
    (aside / "x").write_bytes(bytes(3000))
    assert workspace.vacuum().freed_bytes >= 8000
    assert not (data / "left.lance").exists()
    assert not aside.exists()


def test_vacuum__orphans(workspace: Workspace, dataset: Dataset) -> None:
    """Folders of datasets that have no record go, with their thumbnails; what is no dataset's stays."""
    orphan = "00000000-0000-4000-8000-000000000000"
    for folder in (workspace.path / "datasets" / orphan, workspace.path / "cache" / "thumbnails" / orphan):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(1000))
    foreign = workspace.path / "datasets" / "notes"
    foreign.mkdir()
    result = workspace.vacuum()
    assert (result.datasets, result.freed_bytes >= 2000) == (1, True)
    assert {path.name for path in (workspace.path / "datasets").iterdir()} == {dataset.id, "notes"}
    assert list((workspace.path / "cache" / "thumbnails").iterdir()) == []


@pytest.mark.slow
def test_vacuum__thumbnails_and_partial_files(workspace: Workspace, folder: Path) -> None:
    """Thumbnails of media that are gone go, and files that did not become whole in an hour; others stay."""
    dataset = workspace.create_dataset("pets", folder)
    ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    for each in ids:
        dataset.thumbnail(each)
    cache = workspace.path / "cache" / "thumbnails" / dataset.id
    old, new = cache / "old.partial", cache / "new.partial"
    lost = workspace.path / ".catalog.db.1.abcd.partial"
    for path in (old, new, lost):
        path.write_bytes(b"x")
    for path in (old, lost):
        os.utime(path, (time.time() - 3700,) * 2)
    dataset.delete_media(ids[:2])
    result = workspace.vacuum()
    assert (result.thumbnails, result.partial_files) == (2, 2)
    assert not old.exists()
    assert not lost.exists()
    assert new.exists()
    assert {path.name[:36] for path in cache.rglob("*.jpg")} == set(ids[2:])


@pytest.mark.slow
def test_vacuum__uploads(workspace: Workspace, folder: Path) -> None:
    """Uploaded files stay as long as a head, a snapshot or a list of a fresh upload names them, and go then."""
    dataset = workspace.create_dataset("pets", folder)
    contents = [encode(photo(400 + number)) for number in range(3)]
    dataset.add_media(files=[(f"{n}.png", data) for n, data in enumerate(contents)], auto_reindex=True)
    blobs = workspace.path / "datasets" / dataset.id / "blobs"
    snapshot = dataset.snapshot()
    names = {
        row["path"]: row["media_id"]
        for row in stored_media(dataset).table.scan(["path", "media_id"]).read_all().to_pylist()
    }
    dataset.delete_media([names["0.png"], names["1.png"]])
    with Upload(workspace.path / "datasets" / dataset.id) as upload:  # whose task has not begun yet
        upload.add("again.png", [contents[0]])
        upload.settle()
    for path in (workspace.path / "datasets" / dataset.id / "uploads").rglob("*"):
        if upload.id not in path.parts:
            os.utime(path, (time.time() - 3700,) * 2)
    workspace.vacuum(older_than_s=0)
    assert len(list(blobs.glob("*/*"))) == 3, "the snapshot has them"
    dataset.snapshot()
    dataset.delete_snapshot(snapshot)
    result = workspace.vacuum(older_than_s=0)
    assert result.uploaded_bytes == len(contents[1])
    assert {path.stat().st_size for path in blobs.glob("*/*")} == {len(contents[0]), len(contents[2])}
    assert dataset.read(names["2.png"]).shape == (120, 160, 3)
    assert [path.name for path in (blobs.parent / "uploads").iterdir()] == [upload.id]


@pytest.mark.slow
def test_vacuum__uploads_of_states_of_equal_size(workspace: Workspace, folder: Path) -> None:
    """Uploads stay for each of two states that differ in the deleted media but not in their number."""
    dataset = workspace.create_dataset("pets", folder)
    names = [f"upload {n}.png" for n in range(3)]
    dataset.add_media(files=[(name, encode(photo(400 + n))) for n, name in enumerate(names)], auto_reindex=True)
    whole = dataset.snapshot()
    last = dataset.to_arrow(["media_id"])["media_id"].to_pylist()[-3:]
    for number in range(2):
        dataset.restore(whole)
        dataset.delete_media([last[number]])
        dataset.snapshot(f"without {number}")
    for each in dataset.snapshots():
        if not each.snapshot_name.startswith("without"):
            dataset.delete_snapshot(each)
    for path in (workspace.path / "datasets" / dataset.id / "uploads").rglob("*"):
        os.utime(path, (time.time() - 3700,) * 2)
    assert workspace.vacuum(older_than_s=0).skipped == {}
    for each in dataset.snapshots():
        dataset.restore(each)
        there = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
        assert [dataset.read(media).shape for media in last if media in there] == [(120, 160, 3)] * 2


@pytest.mark.slow
def test_vacuum__catalog(workspace: Workspace, dataset: Dataset) -> None:
    """The catalog gives back what it has more than it holds, and forgets long lists of deleted media."""
    for number in range(30):
        dataset.tag(dataset.where([]), f"tag {number}")
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[:150])
    before = size_of(workspace.path)
    workspace.vacuum(older_than_s=0)
    assert generations_of(workspace) == 2
    with catalog_of(workspace).read() as connection:
        assert all(not row.config for row in connection.execute(schema.tasks.select()).all() if row.config is not None)
    assert size_of(workspace.path) < before


@pytest.mark.parametrize("wrong", [-1, float("nan"), "600", True])
def test_vacuum__refuses(workspace: Workspace, wrong: object) -> None:
    """Seconds are a number from 0 on."""
    with pytest.raises(InvalidInput, match="older_than_s must be a number of seconds from 0"):
        workspace.vacuum(older_than_s=wrong)  # type: ignore[arg-type] # that is the point


@pytest.mark.slow
def test_vacuum__needs_to_write(workspace: Workspace, dataset: Dataset) -> None:
    """In a workspace that is read nothing is freed; an endless time frees nothing that was superseded."""
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as read, pytest.raises(ReadOnly):
        read.vacuum()
    before = generations_of(workspace)
    churn(dataset, 1)
    workspace.vacuum(older_than_s=float("inf"))
    assert generations_of(workspace) == before + 2


@pytest.mark.slow
def test_vacuum__of_a_broken_dataset(workspace: Workspace, dataset: Dataset) -> None:
    """A dataset whose tables are damaged is reported, and keeps nobody from freeing others."""
    shutil.rmtree(home_of(workspace, dataset) / "media.lance" / "_versions")
    other = workspace.create_dataset("other", part(ROWS[:50]))
    churn(other, 1)
    result = workspace.vacuum(older_than_s=0)
    assert list(result.skipped) == ["pets"]
    assert result.versions > 0
    assert workspace.disk_usage().by_part["embeddings"] < 10_000, "of the other alone; the rest is counted as it is"


@pytest.mark.slow
def test_vacuum__before_a_restore_is_tried_again(workspace: Workspace, dataset: Dataset) -> None:
    """A restore that was stopped cannot be done again once its snapshot is gone: it fails, and the head stays whole."""
    first = dataset.snapshots()[0]
    dataset.reindex(thresholds=THRESHOLDS)
    with all_threads_busy(workspace):
        task = dataset.restore(first, wait=False)
        task.abort()
    dataset.snapshot()
    dataset.delete_snapshot(first)
    workspace.vacuum(older_than_s=0)
    task.retry()
    with pytest.raises(NotFound):
        task.wait()
    assert (dataset.info.status_new, dataset.count()) == (DatasetStatus.READY, 200)
    assert len(dataset.embeddings()[0]) == 200


def test_vacuum__while_an_export_runs(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """An export that is under way tells that it reads: the state that it began with stays until it ends."""
    media = stored_media(dataset)
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.generations.update().values(created_at=now() - timedelta(hours=1)))
    dataset.export(tmp_path / "out.zip", format="parquet")
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.exports.update().values(status="RUNNING", heartbeat_at=now()))
    dataset.reindex(thresholds=THRESHOLDS)
    dataset.snapshot()
    dataset.delete_snapshot(dataset.snapshots()[1])
    workspace.vacuum(older_than_s=0)
    assert Table(media.table.path, media.table.version).count() == 200
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.exports.update().values(status="COMPLETED"))
    workspace.vacuum(older_than_s=0)
    with pytest.raises(NotFound):
        Table(media.table.path, media.table.version)


@pytest.mark.slow
def test_changes__free_what_they_supersede(tmp_path: Path) -> None:
    """After each committed task or edit old states go, so that a dataset does not grow by being changed."""
    with Workspace(tmp_path / "ws", settings=AT_ONCE) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:200]), thresholds=THRESHOLDS)
        dataset.tag(dataset.where([]), "a")
        size = size_of(home_of(workspace, dataset))
        for number in range(10):
            dataset.tag(dataset.where([]), f"b{number}")
            dataset.delete_tag(f"b{number}")
        assert size_of(home_of(workspace, dataset)) < 1.3 * size
        churn(dataset, 4)
        assert generations_of(workspace) == 2, "the head and the first snapshot"
        dataset.restore(dataset.snapshots()[0])
        assert dataset.to_arrow(["tags"])["tags"].to_pylist() == [[]] * 200


@pytest.mark.slow
def test_changes__leave_what_may_still_be_read(tmp_path: Path) -> None:
    """By default what was the head within ten minutes stays, and it is looked at once a minute at most."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:50]))
        created = generations_of(workspace)
        for number in range(5):
            dataset.tag(dataset.where([]), f"tag {number}")
        assert generations_of(workspace) == created + 5
        with catalog_of(workspace).write() as connection:
            connection.execute(schema.generations.update().values(created_at=now() - timedelta(hours=1)))
        dataset.tag(dataset.where([]), "once more")
        assert generations_of(workspace) == created + 6, "a minute is not over"


@pytest.mark.slow
def test_changes__a_clean_up_that_fails_fails_nothing(tmp_path: Path) -> None:
    """If old states cannot be freed, the change is made all the same."""
    with Workspace(tmp_path / "ws", settings=AT_ONCE) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:50]))
        with failing("framedex.operations.vacuum.old_versions", error=OSError("the disk does not answer")):
            dataset.tag(dataset.where([]), "a")
            assert dataset.add_media(part(ROWS[50:60], 50)).status is TaskStatus.COMPLETED
        assert dataset.count() == 60


@pytest.mark.slow
def test_changes__leave_work_to_go_on_from(tmp_path: Path) -> None:
    """A failed addition goes on from its rows after other datasets, and readers, came and went."""
    with Workspace(tmp_path / "ws", settings=AT_ONCE) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:200]), thresholds=THRESHOLDS)
        dataset.tag(dataset.where([]), "a")
        task_id = stopped_addition(workspace, dataset)
        workspace.create_dataset("other", part(ROWS[:50])).reindex(thresholds=THRESHOLDS)
        assert resume_of(workspace, task_id) is not None
        workspace.task(task_id).retry()
        assert workspace.task(task_id).wait().status is TaskStatus.COMPLETED
        assert columns_of(dataset, ["path"])["path"] == [f"{number}.jpg" for number in range(400)]


@pytest.mark.slow
def test_reader__of_another_process_keeps_its_state(tmp_path: Path) -> None:
    """A reader of an old state in another process can finish, while changes here free superseded data."""
    code = """
        import sys, framedex
        from tests.inside import stored_media

        with framedex.Workspace(sys.argv[1], read_only=True) as workspace:
            dataset = workspace.dataset("pets")
            media = stored_media(dataset)
            print("holds", flush=True)
            sys.stdin.readline()
            print(media.table.vectors()[1].shape[0], len(set(media.table.scan(["media_id"]).read_all()[0].to_pylist())))
    """
    settings = SETTINGS.model_copy(update={"clean_every_s": 0.0})
    with Workspace(tmp_path / "ws", settings=settings) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:200]), thresholds=THRESHOLDS)
        dataset.add_media(part(ROWS[200:300], 200), auto_reindex=True)
        reader = start(code, tmp_path / "ws")
        assert reader.stdout is not None
        assert reader.stdin is not None
        assert reader.stdout.readline() == "holds\n"
        with catalog_of(workspace).write() as connection:  # it was written long ago, but was the head until now
            connection.execute(schema.generations.update().values(created_at=now() - timedelta(days=1)))
        held = stored_media(dataset).table
        churn(dataset, 3)
        workspace.vacuum()
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert finish(reader).split() == ["300", "300"]
        workspace.vacuum(older_than_s=0)
        with pytest.raises(NotFound):
            Table(held.path, held.version)


@pytest.mark.slow
def test_vacuum__beside_writers_of_other_processes(tmp_path: Path) -> None:
    """Vacuum in one process and changes in another get on with each other: nothing fails, and nothing is lost."""
    code = """
        import sys, framedex
        from tests.growth import families, part

        with framedex.Workspace(sys.argv[1]) as workspace:
            dataset = workspace.dataset("pets")
            print("ready", flush=True)
            for number in range(12):
                dataset.tag(dataset.where([]), f"tag {number}")
                if number % 4 == 0:
                    dataset.add_media(part(families(5, seed=number, dimension=16), 1000 + 5 * number))
            dataset.reindex()
            print("done", flush=True)
    """
    with Workspace(tmp_path / "ws", settings=NEVER) as workspace:
        dataset = workspace.create_dataset("pets", part(ROWS[:200]), thresholds=THRESHOLDS)
        writer = start(code, tmp_path / "ws")
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        rounds = 0
        while writer.poll() is None and rounds < 500:
            skipped = workspace.vacuum(older_than_s=0).skipped
            assert all("task is running" in reason for reason in skipped.values()), skipped
            rounds += 1
        assert finish(writer) == "done\n"
        assert rounds > 1
        assert dataset.count() == 215
        assert len(dataset.tags()) == 12
        assert sum(len(tags) == 12 for tags in dataset.to_arrow(["tags"])["tags"].to_pylist()) == 200


@pytest.mark.slow
def test_deleted_dataset__while_it_is_cleaned(workspace: Workspace, dataset: Dataset) -> None:
    """A dataset that is deleted leaves no folder, and vacuum finds nothing more to do."""
    churn(dataset, 1)
    workspace.delete_dataset(dataset.id)
    assert workspace.vacuum(older_than_s=0).skipped == {}
    assert list((workspace.path / "datasets").iterdir()) == []
    with pytest.raises((NotFound, Conflict)):
        dataset.count()


@pytest.mark.slow
def test_vacuum__fields_of_generations_stay(workspace: Workspace, dataset: Dataset) -> None:
    """Custom fields, tags and decisions of the head stay with their tables."""
    ids = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    dataset.add_field("score", "float", values=dict.fromkeys(ids, 1.5))
    dataset.tag(ids[:10], "ten")
    dataset.not_duplicates(ids[:2])
    fill(workspace.path.parent / "unused", 1)
    before = dataset.to_arrow(["media_id", "score", "tags"])
    for _ in range(2):
        workspace.vacuum(older_than_s=0)
        assert dataset.to_arrow(["media_id", "score", "tags"]).equals(before)
        assert len(dataset.duplicate_decisions()) == 1
    assert isinstance(before, pa.Table)


@pytest.mark.slow
def test_tags__of_a_table_that_took_the_place_of_another(tmp_path: Path) -> None:
    """A table that no state needs goes; what is read of the next one of its name is not what was there before."""
    with Workspace(tmp_path / "w", settings=AT_ONCE) as workspace:
        dataset = workspace.create_dataset("d", part(families(4)))
        before = dataset.snapshots()[0]
        for tag in ("x", "y"):
            dataset.tag(dataset.where([]), tag)
            assert [each.name for each in dataset.tags()] == [tag]
            assert set(map(tuple, dataset.to_arrow(["tags"])["tags"].to_pylist())) == {(tag,)}
            dataset.restore(before)
            workspace.vacuum()
            assert not (workspace.path / "datasets" / dataset.id / "tags.lance").exists()
