"""What the machine does to us: a full disk, files that go, a clock that is set, damage, signals.

Each fault ends in an error of ours, takes nothing that was there, and is over when its cause is.
"""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from framedex import (
    Aborted,
    Conflict,
    Dataset,
    Error,
    InvalidInput,
    Workspace,
    WorkspaceError,
)
from framedex.operations.backups.backup import make_backup
from framedex.operations.backups.restore import restore_files
from framedex.records import DatasetStatus, ExportStatus, TaskStatus
from framedex.storage import datasets, owners
from framedex.storage.catalog_checks import file_faults
from framedex.storage.owners import LEASE, this_process
from tests.clock import Clock, turning
from tests.gallery import SETTINGS, Gate, fill
from tests.growth import GROUPS, columns_of, families, part
from tests.image_files import encode, photo
from tests.inside import context_of, layout_of
from tests.laws import rest_slow
from tests.pauses import Pause, run_of, wait_until, watched
from tests.processes import finish, run, start
from tests.programs import Program
from tests.small_disks import Disk, small_disk

HOUR = timedelta(hours=1)
DISK_BYTES = 16 * 2**20
SPACES = [0, 24 * 1024, 96 * 1024, 200 * 1024]
"""What a full disk has left, in bytes: for nothing, for some rows of the catalog, for the first files of a table."""


# --- a full disk


class DiskFull(Exception):
    """Writing was refused, with the reason."""


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Check that what raises in the block names a full disk."""
    try:
        yield
    except WorkspaceError as error:
        if "disk is full" not in str(error) and "no space left" not in str(error).lower():
            raise
        raise DiskFull from error


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 16 MiB of its own."""
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


def state_of(dataset: Dataset) -> dict[str, Any]:
    """Return what a dataset shows of what operations change; no ids, so that two datasets can be compared."""
    rows = columns_of(dataset, [*GROUPS, "path", "labels"])
    paths = [Path(path).name for path in rows.pop("path")]
    return rows | {
        "paths": paths,
        "status": dataset.info.status_new,
        "count": dataset.count(),
        "tags": [(tag.name, tag.count) for tag in dataset.tags()],
        "fields": [field.field_name for field in dataset.fields()],
        "snapshots": len(dataset.snapshots()),
        "decisions": len(dataset.duplicate_decisions()),
        "label_decisions": len(dataset.label_decisions()),
        "basket": len(dataset.basket),
        "sizes": sorted(cluster.n_images for cluster in dataset.explore(level=2).clusters),
    }


def first_ids(dataset: Dataset, count: int) -> list[str]:
    """Return the ids of the first rows."""
    ids: list[str] = columns_of(dataset, ["media_id"])["media_id"][:count]
    return ids


CHANGES: dict[str, Callable[[Dataset], object]] = {
    "add_media": lambda dataset: dataset.add_media(part(families(400)[60:], 60)),
    "reindex": lambda dataset: dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5)),
    "delete_media": lambda dataset: dataset.delete_media(first_ids(dataset, 5)),
    "add_field": lambda dataset: dataset.add_field("f", "float", values=dict.fromkeys(first_ids(dataset, 9), 1.0)),
    "restore": lambda dataset: dataset.restore("current"),
    "tag": lambda dataset: dataset.tag(dataset.where([]), "all"),
    "set_labels": lambda dataset: dataset.set_labels(dataset.where([]), ["seen"]),
    "basket": lambda dataset: dataset.basket.add(dataset.where([])),
    "label_is_right": lambda dataset: dataset.label_is_right(dataset.where([])),
    "not_duplicates": lambda dataset: dataset.not_duplicates(dataset.duplicates()[0].media_ids),
    "snapshot": lambda dataset: dataset.snapshot("kept"),
}


@pytest.mark.parametrize("change", rest_slow(CHANGES, 0, long=6))
def test_full_disk__changes_of_a_dataset(disk: Disk, change: str) -> None:
    """A change for which the disk has no space fails as a whole and can be done, or retried, once there is some."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        calm, dataset = (
            workspace.create_dataset(name, part(families(60), label=["right"] * 60)) for name in ("calm", "full")
        )
        before = state_of(dataset)
        assert state_of(calm) == before
        CHANGES[change](calm)
        refused, failed = 0, []
        for left in SPACES:
            known = {task.task_id for task in workspace.tasks().tasks}
            with disk.full(left), contextlib.suppress(DiskFull), full_disk():
                CHANGES[change](dataset)
                break
            refused += 1
            assert state_of(workspace.dataset("full")) == before
            failed = [task for task in workspace.tasks().tasks if task.task_id not in known]
            assert {task.status for task in failed} <= {TaskStatus.FAILED}
        else:
            if failed:
                workspace.task(failed[0].task_id).retry()
                workspace.task(failed[0].task_id).wait(60)
            else:
                CHANGES[change](dataset)
        assert refused
        assert state_of(dataset) == state_of(calm)


@pytest.mark.slow
@pytest.mark.parametrize("left", SPACES[:3])
def test_full_disk__creation(disk: Disk, folder: Path, left: int) -> None:
    """Of a creation for which the disk has no space no dataset stays, or one whose task says why and can be retried."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        calm = workspace.create_dataset("calm", folder)
        with disk.full(left), pytest.raises(WorkspaceError, match=r"(?i)full|no space left"):
            workspace.create_dataset("new", folder)
        for record in workspace.datasets():
            if record.display_name == "new":
                assert record.status_new is DatasetStatus.ERROR
                (task,) = workspace.tasks(dataset_id=record.id).tasks
                workspace.task(task.task_id).retry()
                workspace.task(task.task_id).wait(60)
                break
        else:
            workspace.create_dataset("new", folder)
        assert state_of(workspace.dataset("new")) == state_of(calm)


@pytest.mark.slow
def test_full_disk__backup_and_restore(disk: Disk, tmp_path: Path, folder: Path) -> None:
    """A backup whose disk gets full is no backup, and goes on once there is space; so does a restore."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace, contextlib.ExitStack() as full:
        dataset = workspace.create_dataset("pets", folder)
        backup, target, before = disk.path / "backup", disk.path / "restored", state_of(dataset)
        with disk.full(SPACES[1]), pytest.raises(WorkspaceError, match=r"(?i)full|no space left"):
            workspace.backup(backup)
        assert not backup.exists()

        def fill_disk(stage: str, _share: float) -> None:
            if stage == "files" and not is_full:
                is_full.append(stage)
                full.enter_context(disk.full(0))

        is_full = list[str]()
        with pytest.raises(WorkspaceError, match=r"(?i)full|no space left"):
            make_backup(context_of(workspace), backup, progress=fill_disk)
        assert is_full
        full.close()
        with pytest.raises(WorkspaceError, match="did not end"):
            Workspace.restore_backup(backup, target)
        workspace.backup(backup)
        is_full.clear()
        with pytest.raises(WorkspaceError, match=r"(?i)full|no space left"):
            restore_files(backup, target, progress=fill_disk)
        full.close()
        assert list(target.iterdir()) == []
        assert Workspace.restore_backup(backup, target, settings=SETTINGS).is_sound
    with Workspace(target, settings=SETTINGS) as restored:
        assert state_of(restored.dataset("pets")) == before


@pytest.mark.slow
@pytest.mark.parametrize("left", SPACES[:3])
def test_full_disk__upload(disk: Disk, folder: Path, left: int) -> None:
    """Contents that cannot be kept are not half kept."""
    files = [(f"{number}.png", encode(photo(number, width=300, height=300))) for number in range(3)]
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder)
        before = state_of(dataset)
        with disk.full(left), pytest.raises(WorkspaceError, match=r"(?i)full|no space left"):
            dataset.add_media(files=files)
        assert state_of(workspace.dataset("pets")) == before
        uploads = workspace.path / "datasets" / dataset.id / "uploads"
        tasks = [task for task in workspace.tasks().tasks if task.status is TaskStatus.FAILED]
        assert tasks or not uploads.exists() or not list(uploads.rglob("*.png*"))
        if tasks:
            workspace.task(tasks[0].task_id).retry()
            workspace.task(tasks[0].task_id).wait(60)
        else:
            dataset.add_media(files=files)
        assert dataset.count() == 9
        assert dataset.read(first_ids(dataset, 9)[-1]).shape == (300, 300, 3)


@pytest.mark.slow
@pytest.mark.parametrize("left", SPACES[:3])
def test_full_disk__export_and_report(disk: Disk, folder: Path, left: int) -> None:
    """A file that cannot be written whole does not appear; its export ends, and that is known to all."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder)
        with disk.full(left):
            with pytest.raises(Error, match=r"(?i)full|no space left"):
                dataset.export(disk.path / "out.zip", include_images=True)
            if left < SPACES[2]:
                with pytest.raises(InvalidInput, match="No space left"):
                    dataset.report(disk.path / "report.html")
        assert not (disk.path / "out.zip").exists()
        assert [path.name for path in disk.path.glob(".*")] == []
        dataset.export(disk.path / "out.zip", include_images=True)
        assert (disk.path / "out.zip").stat().st_size > 6 * 1000
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        found = [export.status for export in workspace.dataset("pets").exports()]
        assert found[0] is ExportStatus.COMPLETED
        assert set(found[1:]) <= {ExportStatus.FAILED, ExportStatus.REJECTED}


@pytest.mark.slow
def test_full_disk__thumbnails(disk: Disk, folder: Path) -> None:
    """A thumbnail that cannot be kept is shown all the same, and leaves nothing."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder)
        with disk.full(0):
            assert dataset.thumbnail(first_ids(dataset, 1)[0])[:2] == b"\xff\xd8"
        assert [path for path in (workspace.path / "cache" / "thumbnails").rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True])
def test_full_disk__opening(disk: Disk, folder: Path, read_only: bool) -> None:
    """A workspace on a disk without a free byte is opened and read; what would write says that there is no space."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        before = state_of(workspace.create_dataset("pets", folder))
    with disk.full(0), Workspace(disk.path / "ws", settings=SETTINGS, read_only=read_only) as workspace:
        dataset = workspace.dataset("pets")
        assert state_of(dataset) == before
        assert dataset.thumbnail(first_ids(dataset, 1)[0])[:2] == b"\xff\xd8"
        assert [task.status for task in workspace.tasks().tasks] == [TaskStatus.COMPLETED]
        with pytest.raises(
            WorkspaceError, match="opened for reading" if read_only else "no space left on the disk; free"
        ):
            dataset.tag(dataset.where([]), "all")
    with Workspace(disk.path / "ws", settings=SETTINGS, read_only=read_only) as workspace, disk.full(0):
        assert state_of(workspace.dataset("pets")) == before


@pytest.mark.slow
def test_full_disk__check(disk: Disk, folder: Path) -> None:
    """A check on a disk without a free byte finds nothing, or says that there is no space."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        workspace.create_dataset("pets", folder)
    with disk.full(0):
        with contextlib.suppress(DiskFull), full_disk():
            assert file_faults(disk.path / "ws" / "catalog.db") == []
        with Workspace(disk.path / "ws", settings=SETTINGS) as workspace, contextlib.suppress(DiskFull), full_disk():
            assert workspace.check().is_sound
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        assert workspace.check().is_sound


@pytest.mark.slow
@pytest.mark.parametrize("opened_before", [False, True])
def test_full_disk__clean_up(disk: Disk, folder: Path, opened_before: bool) -> None:
    """On a disk without a free byte old states are freed and datasets deleted; after that there is space again."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        calm, dataset = (workspace.create_dataset(name, folder) for name in ("calm", "pets"))
        before = state_of(calm)
        dataset.tag(dataset.where([]), "all")
        dataset.untag(dataset.where([]), "all")
    with contextlib.ExitStack() as stack:
        full, opened = disk.full(0), Workspace(disk.path / "ws", settings=SETTINGS) if opened_before else None
        stack.enter_context(full)
        workspace = stack.enter_context(opened or Workspace(disk.path / "ws", settings=SETTINGS))
        freed = workspace.vacuum(older_than_s=0)
        assert freed.versions > 0
        assert freed.skipped == {}
        workspace.delete_dataset("pets")
        assert [record.display_name for record in workspace.datasets()] == ["calm"]
        assert state_of(workspace.dataset("calm")) == before
        assert shutil.disk_usage(disk.path).free > 0
        workspace.dataset("calm").snapshot("there is space")


def test_full_disk__new_workspace(disk: Disk) -> None:
    """A workspace that cannot be made leaves nothing that hinders or outlives the next try."""
    with disk.full(0), pytest.raises(WorkspaceError, match=r"(?i)no space left"):
        Workspace(disk.path / "ws", settings=SETTINGS)
    assert list(disk.path.rglob("*.partial")) == []
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        assert workspace.datasets() == []
    assert sorted(path.name for path in (disk.path / "ws").iterdir()) == [
        "catalog.db", "catalog.db-reserve", "datasets", "framedex.toml",
    ]  # fmt: skip


def test_broken_disk__opening(workspace: Workspace) -> None:
    """A catalog that cannot be read at present is not said to be none."""
    workspace.create_dataset("pets", part(families(60)))
    workspace.close()
    log = workspace.path / "catalog.db-wal"
    (log / "not a log").mkdir(parents=True)
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match=r"cannot open .*catalog\.db: unable to open") as raised:
            Workspace(workspace.path, read_only=read_only)
        assert "is not a Framedex catalog" not in str(raised.value)
    shutil.rmtree(log)
    with Workspace(workspace.path, settings=SETTINGS) as again:
        assert again.dataset("pets").count() == 60


@pytest.mark.slow
@pytest.mark.parametrize("left", SPACES)
def test_full_disk__failed_clean_up(disk: Disk, folder: Path, left: int) -> None:
    """A clean-up that fails leaves no snapshot from before it: there is nothing to undo; it succeeds later."""
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder)
        before = dataset.snapshots()
        plan = dataset.plan_cleanup(duplicates="exact")
        with disk.full(left), contextlib.suppress(Error):
            plan.apply(delete_files=True)
        removed = dataset.count() < 7
        assert len(dataset.snapshots()) == len(before) + removed
        if not removed:
            plan = dataset.plan_cleanup(duplicates="exact")
            assert plan.apply(delete_files=True).snapshot == dataset.snapshots()[0]
        assert dataset.count() == 6


@pytest.mark.slow
def test_full_disk__search_by_an_image(disk: Disk, folder: Path) -> None:
    """An image that cannot be kept to search by leaves nothing; searching by it needs no disk."""
    with Workspace(disk.path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", folder)
        with disk.full(0):
            found = dataset.similar(folder / "000.png").media_ids()
            with pytest.raises(WorkspaceError, match=r"(?i)no space left"):
                dataset.upload(folder / "000.png")
        assert list((workspace.path / "cache").rglob("*.part*")) == []
        assert found[0] == first_ids(dataset, 1)[0]
        dataset.explore(anchor_media_id=dataset.upload(folder / "000.png"))


# --- damage


def tables_of(dataset: Dataset) -> Path:
    """Return the folder of a dataset's tables."""
    return layout_of(dataset).dataset(dataset.id)


def cut(path: Path) -> None:
    for file in (path / "media.lance" / "data").iterdir():
        os.truncate(file, file.stat().st_size // 2)


def scramble(path: Path) -> None:
    for file in (path / "media.lance" / "data").iterdir():
        file.write_bytes(b"\x07" * file.stat().st_size)


def blank(path: Path) -> None:
    for file in (path / "media.lance" / "_versions").iterdir():
        file.write_bytes(bytes(64))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no folder": shutil.rmtree,
    "no table": lambda path: shutil.rmtree(path / "media.lance"),
    "no data": lambda path: shutil.rmtree(path / "media.lance" / "data"),
    "cut data": cut,
    "other data": scramble,
    "other manifests": blank,
}
READS: list[Callable[[Dataset], object]] = [
    lambda dataset: dataset.to_arrow(),
    lambda dataset: dataset.explore(),
    lambda dataset: dataset.issues(),
    lambda dataset: dataset.duplicates(),
    lambda dataset: dataset.embeddings(),
    lambda dataset: dataset.where([{"labels": {"op": "is", "value": "x"}}]).count(),
    lambda dataset: dataset._repr_html_(),
    lambda dataset: dataset.set_labels(dataset.where([]), ["seen"]),
    lambda dataset: dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5)),
    lambda dataset: dataset.add_media(part(families(70)[60:], 60)),
]


@pytest.mark.slow
@pytest.mark.parametrize("damage", rest_slow(list(DAMAGES), 2))
def test_damaged_table(workspace: Workspace, tmp_path: Path, damage: str) -> None:
    """Errors name the damaged table; everything else, also other datasets, works, and the dataset can be deleted."""
    dataset, other = (workspace.create_dataset(name, part(families(60))) for name in ("damaged", "other"))
    before = state_of(other)
    DAMAGES[damage](tables_of(dataset))
    for read in READS:
        with pytest.raises(Error, match=dataset.id):
            read(dataset)
        assert dataset.info.status_new is DatasetStatus.READY
    with pytest.raises(Error, match=dataset.id):
        dataset.export(tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()
    assert workspace.disk_usage().total_bytes > 0
    assert state_of(other) == before
    other.tag(other.where([]), "all")
    workspace.delete_dataset("damaged")
    assert [record.display_name for record in workspace.datasets()] == ["other"]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"no catalog" * 900, None], ids=["empty", "other", "cut"])
def test_damaged_catalog(workspace: Workspace, content: bytes | None) -> None:
    """A damaged catalog is refused by its name and left as it is."""
    workspace.create_dataset("pets", part(families(60)))
    workspace.close()
    catalog = workspace.path / "catalog.db"
    with contextlib.closing(sqlite3.connect(catalog)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.write_bytes(catalog.read_bytes()[:6000] if content is None else content)
    damaged = catalog.read_bytes()
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match=r"catalog\.db is not a Framedex catalog"):
            Workspace(workspace.path, read_only=read_only)
    assert catalog.read_bytes() == damaged


# --- a catalog that others hold, or that cannot be written


@pytest.mark.slow
def test_locked_catalog__waits(workspace: Workspace) -> None:
    """While another one holds the catalog's lock readers go on, and a writer waits for its turn."""
    dataset = workspace.create_dataset("pets", part(families(60)))
    holder = start(
        """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.readline()
        connection.execute("COMMIT")
        """,
        workspace.path / "catalog.db",
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    writing = threading.Thread(target=dataset.tag, args=(dataset.where([]), "all"))
    writing.start()
    assert dataset.count() == 60
    assert dataset.tags() == []
    assert dataset.info.status_new is DatasetStatus.READY
    writing.join(0.1)
    assert writing.is_alive()
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    finish(holder)
    writing.join(60)
    assert [(tag.name, tag.count) for tag in dataset.tags()] == [("all", 60)]


@pytest.mark.slow
def test_read_only_folder(workspace: Workspace) -> None:
    """A workspace in folders that cannot be written is read as it is; what would change it says so."""
    workspace.create_dataset("pets", part(families(60)))
    workspace.close()
    code = """
        import sys, framedex
        with framedex.Workspace(sys.argv[1]) as workspace:
            dataset = workspace.dataset("pets")
            print(dataset.count(), sum(cluster.n_images for cluster in dataset.explore(level=4).clusters))
            for change in (
                lambda: dataset.tag(dataset.where([]), "all"), dataset.snapshot, dataset.reindex, workspace.vacuum,
                lambda: workspace.delete_dataset("pets"), lambda: workspace.create_dataset("new", "."),
            ):
                try:
                    change()
                except framedex.ReadOnly:
                    continue
                print("changed")
    """
    content = {path: path.read_bytes() for path in workspace.path.rglob("*") if path.is_file()}
    folders = [workspace.path, *(path for path in workspace.path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert run(code, workspace.path, unprivileged=True).splitlines()[0].split()[0] == "60"
        assert "changed" not in run(code, workspace.path, unprivileged=True)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert {path: path.read_bytes() for path in workspace.path.rglob("*") if path.is_file()} == content


# --- files that go, change, or may not be read


class Removing(Gate):
    """An encoder that takes files away when its first batch comes: what was listed is not yet all read."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.opened.set()
        self._act = act

    def encode_images(self, batch: Any) -> Any:
        """Act once, then encode."""
        if not self.reached.is_set():
            self._act()
        return super().encode_images(batch)


@pytest.mark.slow
@pytest.mark.parametrize("what", rest_slow(["truncated", "files", "folder"], 1, long=2))
def test_sources__that_go_while_they_are_read(workspace: Workspace, tmp_path: Path, what: str) -> None:
    """Images that go or shrink after they were listed are rows with a reason; the others are read."""
    folder = fill(tmp_path / "images", 150)
    fill(folder / "later", 150, first_seed=400)
    gone = sorted((folder / "later").iterdir())[-40:]

    def act() -> None:
        if what == "folder":
            shutil.rmtree(folder / "later")
        for path in gone if what != "folder" else ():
            path.unlink() if what == "files" else os.truncate(path, 900)

    # A list names all of them before the first is read; of a folder those that are not listed yet are not missed.
    listed = tmp_path / "all.txt"
    listed.write_text("\n".join(str(path) for path in sorted(folder.rglob("*.png"))))
    dataset = workspace.create_dataset("pets", listed, encoder=Removing(act))
    rows = columns_of(dataset, ["path", "error", "cluster_0"])
    broken = [error for error in rows["error"] if error is not None]
    assert dataset.count() == 300
    assert len(broken) in (range(1, 151) if what == "folder" else range(1, 41))
    assert None not in rows["cluster_0"]
    assert dataset.info.status_new is DatasetStatus.READY
    assert sum(dataset.issues(name).num_rows for name in ("corrupted", "unreadable")) == len(broken)


@pytest.mark.slow
def test_sources__that_may_not_be_read(tmp_path: Path) -> None:
    """An image that may not be read is a row with that reason; a folder that may not is named."""
    folder = fill(tmp_path / "images", 6)
    fill(folder / "secret", 2, first_seed=300)
    code = """
        import sys, framedex
        with framedex.Workspace(sys.argv[1]) as workspace:
            dataset = workspace.create_dataset("pets", sys.argv[2], "gist")
            rows = dataset.issues("unreadable").to_pylist()
            print(dataset.count(), dataset.info.status_new, [row["reason"] for row in rows], dataset.skipped)
    """
    (folder / "000.png").chmod(0)
    (folder / "secret").chmod(0)
    try:
        out = run(code, tmp_path / "ws", folder, unprivileged=True)
        count, status, rest = out.split(maxsplit=2)
        assert (count, status) == ("6", "READY")
        assert "Permission denied" in rest
        assert "folder" in rest
    finally:
        (folder / "secret").chmod(0o755)


# --- a clock that is set


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock that can be set."""
    with turning() as turned:
        yield turned


@pytest.mark.slow
@pytest.mark.parametrize("change", [HOUR, -HOUR], ids=["forward", "back"])
def test_clock__set_while_a_task_runs(workspace: Workspace, folder: Path, clock: Clock, change: timedelta) -> None:
    """A task goes on when the clock is set, whoever looks; its times are in order."""
    gate = Gate()
    dataset = workspace.create_dataset("pets", folder, gate, wait=False)
    assert gate.reached.wait(60)
    clock.offset = change
    with Workspace(workspace.path, settings=SETTINGS) as second:
        assert [task.status for task in second.tasks().tasks] == [TaskStatus.RUNNING]
        with pytest.raises(Conflict, match="under way"):
            second.delete_dataset("pets")
    assert dataset.task is not None
    run_of(dataset.task).settle()
    gate.opened.set()
    record = dataset.task.wait(60)
    assert record.status is TaskStatus.COMPLETED
    assert record.end_time is not None
    assert record.end_time >= record.start_time
    dataset.tag(dataset.where([]), "all")
    assert dataset.info.status_new is DatasetStatus.READY


DIES = """
    import os, sys, framedex
    from tests.gallery import Gate
    gate = Gate()
    workspace = framedex.Workspace(sys.argv[1])
    dataset = workspace.create_dataset("pets", sys.argv[2], gate, wait=False)
    assert gate.reached.wait(60)
    print(dataset.task.id, flush=True)
    os._exit(1)
"""


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize("change", [HOUR, -HOUR], ids=["forward", "back"])
@pytest.mark.slow
def test_clock__set_after_a_process_died(
    tmp_path: Path, folder: Path, clock: Clock, change: timedelta, elsewhere: bool
) -> None:
    """A task whose process died is interrupted at the next look, whatever the clock says then."""
    process = start(DIES, tmp_path / "ws", folder)
    process.communicate()
    with Workspace(tmp_path / "ws", read_only=True) as workspace:
        assert [task.status for task in workspace.tasks().tasks] == [TaskStatus.RUNNING]
    if elsewhere:
        with contextlib.closing(sqlite3.connect(tmp_path / "ws" / "catalog.db")) as connection, connection:
            connection.execute("UPDATE tasks SET owner = 'other-host:1:2:3'")
    clock.offset = change
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        (task,) = workspace.tasks().tasks
        assert (task.status, task.error_message) == (TaskStatus.FAILED, "interrupted")
        assert workspace.dataset("pets").info.status_new is DatasetStatus.ERROR
        workspace.delete_dataset("pets")
        assert workspace.create_dataset("pets", folder).count() == 6


def test_lease__of_a_process_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is there is given up only once its sign of life stays the same while it is watched."""
    passed = 0.0
    monkeypatch.setattr(owners, "time", SimpleNamespace(monotonic=lambda: passed))
    start_time, own = datasets.now(), this_process()

    def dies(heartbeat: datetime) -> bool:
        return owners.has_died("one", own, heartbeat, now=start_time + 5 * HOUR)

    assert not dies(start_time)
    passed += LEASE.total_seconds() - 1
    assert not dies(start_time)
    assert not dies(start_time + timedelta(seconds=2))  # a beat
    passed += LEASE.total_seconds() - 1
    assert not dies(start_time + timedelta(seconds=2))
    passed += 2
    assert dies(start_time + timedelta(seconds=2))


# --- signals

MAKES = """
    import sys, threading, framedex
    from tests.gallery import Averages

    class Slow(Averages):
        def encode_images(self, batch):
            print("begun", flush=True)
            threading.Event().wait(0.5)
            return super().encode_images(batch)

    workspace = framedex.Workspace(sys.argv[1])
    dataset = workspace.create_dataset("pets", sys.argv[2], Slow(), wait=False)
    if sys.argv[3] == "wait":
        dataset.task.wait()
    elif sys.argv[3] == "close":
        with workspace:
            threading.Event().wait()
    elif sys.argv[3] == "linger":
        threading.Event().wait()
"""


def many(folder: Path, count: int) -> Path:
    """Return a folder with so many copies of an image, for which a task takes a while."""
    source = fill(folder, 1) / "000.png"
    for number in range(1, count):
        os.link(source, folder / f"{number:04}.png")
    return folder


def check_after_the_end(workspace: Path, images: int, *allowed: TaskStatus) -> None:
    """Check that the task of a process that was ended is known to have ended, at once, and can be done again."""
    with Workspace(workspace, settings=SETTINGS) as opened:
        (task,) = opened.tasks().tasks
        assert task.status in allowed
        assert task.error_message in (None, "interrupted")
        for record in opened.datasets():
            assert record.status_new is DatasetStatus.ERROR
            opened.delete_dataset(record.id)
        assert opened.create_dataset("pets", workspace.parent / "images").count() == images


@pytest.mark.slow
@pytest.mark.parametrize("how", ["wait", "close", "linger"])
@pytest.mark.parametrize("number", rest_slow([signal.SIGTERM, signal.SIGINT], 0, long=1))
def test_signal__in_a_task(tmp_path: Path, how: str, number: signal.Signals) -> None:
    """A process that is told to end in the middle of a task does, as usual, and the next look knows of it at once."""
    process = start(MAKES, tmp_path / "ws", many(tmp_path / "images", 300), how)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    # The interpreter itself ends with 1, not by the signal, where threads end after the main one.
    assert process.returncode in ((-number, 1) if number is signal.SIGINT else (-number,))
    assert ("KeyboardInterrupt" in err) == (number is signal.SIGINT)
    check_after_the_end(tmp_path / "ws", 300, TaskStatus.ABORTED if number is signal.SIGINT else TaskStatus.FAILED)


@pytest.mark.slow
def test_exit__in_a_task(tmp_path: Path) -> None:
    """A program that ends before its task ends well; the task is aborted."""
    process = start(MAKES, tmp_path / "ws", many(tmp_path / "images", 300), "leave")
    finish(process)
    check_after_the_end(tmp_path / "ws", 300, TaskStatus.ABORTED)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["create", "add"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_signal__at_the_command_line(tmp_path: Path, command: str, number: signal.Signals, status: int) -> None:
    """Commands that are stopped end with the usual status and leave what was there before."""
    home, folder = tmp_path / "ws", many(tmp_path / "images", 3000)
    arguments = ["pets", str(folder), "--workspace", str(home)]
    with Workspace(home, settings=SETTINGS) as workspace:
        before = workspace.create_dataset("pets", fill(tmp_path / "few", 6)).explore() if command == "add" else None
        pipe = subprocess.PIPE
        process = Program(["-m", "framedex", command, *arguments], stdout=pipe, stderr=pipe)
        while TaskStatus.RUNNING not in {task.status for task in workspace.tasks().tasks}:
            assert process.poll() is None
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        assert process.returncode == status
        assert "Traceback" not in err
        ended = workspace.tasks().tasks[0]
        assert ended.status is (TaskStatus.ABORTED if number is signal.SIGINT else TaskStatus.FAILED)
        if before is not None:
            dataset = workspace.dataset("pets")
            assert (dataset.explore(), dataset.info.status_new) == (before, DatasetStatus.READY)
            dataset.tag(dataset.where([]), "all")
        elif number is signal.SIGINT:
            assert workspace.datasets() == []
        else:
            assert workspace.dataset("pets").info.status_new is DatasetStatus.ERROR


@pytest.mark.slow
def test_interrupt__in_a_notebook(workspace: Workspace) -> None:
    """An interrupt while a cell waits for a task aborts it; the workspace goes on, in the same process."""
    dataset = workspace.create_dataset("pets", part(families(60)))
    before = state_of(dataset)
    pause = Pause("clustering")
    task = watched(workspace, lambda: dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5), wait=False), pause)
    assert pause.reached.wait(60)

    def interrupt() -> None:
        wait_until(lambda: run_of(task).progress.callback is not pause)  # then the main thread waits
        os.kill(os.getpid(), signal.SIGINT)
        assert run_of(task).progress.cancelled.wait(60)
        pause.opened.set()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        task.wait(60)
    interrupting.join(60)
    assert task.status is TaskStatus.ABORTED
    assert state_of(dataset) == before
    with pytest.raises(Aborted):
        task.wait()
    task.retry()
    assert task.wait(60).status is TaskStatus.COMPLETED
