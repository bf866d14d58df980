"""Backups beside processes that write, and processes that are killed while they back up or restore."""

import shutil
import signal
from pathlib import Path

import pytest

from framedex import Workspace, WorkspaceError
from tests.gallery import SETTINGS, fill
from tests.processes import finish, run, start
from tests.uploading import pairs

WRITES = """
    import sys, framedex
    from tests.gallery import SETTINGS
    from tests.uploading import pairs

    settings = SETTINGS.model_copy(update={"clean_every_s": 0.0, "keep_versions_s": 0.0})
    with framedex.Workspace(sys.argv[1], settings=settings) as workspace:
        dataset = workspace.dataset("pets")
        ids = dataset.where([]).media_ids()
        print("ready", flush=True)
        for number in range(10_000):
            dataset.tag(ids[: 1 + number % 3], f"tag {number % 5}")
            dataset.set_labels(ids[:1], [f"label {number % 7}"])
            if number % 10 == 3:
                dataset.add_media(files=pairs(100 + number), auto_reindex=True)
            if number % 10 == 6:
                dataset.delete_media(dataset.where([]).media_ids()[-1:])
            if number % 10 == 9:
                workspace.create_draft(f"draft {number}")
                workspace.delete_dataset(f"draft {number}")
                workspace.vacuum(older_than_s=0)
            print(number, flush=True)
            if not sys.stdin.readline().strip():
                break
"""
DIES = """
    import os, signal, sys, framedex
    from framedex.operations.backups import backup, restore
    from framedex.storage import disk
    from framedex.storage.backups import copying, unfinished
    from tests.gallery import SETTINGS

    left = int(sys.argv[4])

    def dying(function):
        def call(*arguments, **options):
            global left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)
        return call

    match sys.argv[3]:
        case "catalog":
            backup.write_copy = dying(backup.write_copy)
        case "named":
            backup.named_files = dying(backup.named_files)
        case "file":
            unfinished.copy_file = dying(unfinished.copy_file)
        case "block":
            copying._write = dying(copying._write)
        case "recording":
            unfinished.disk.sync_all = dying(disk.sync_all)
        case "list":
            unfinished.UnfinishedBackup._write_list = dying(unfinished.UnfinishedBackup._write_list)
        case "header":
            unfinished.write_atomic = dying(unfinished.write_atomic)
        case "end":
            unfinished.disk.sync_folder = dying(disk.sync_folder)
        case "restored file":
            restore.copy_file = dying(restore.copy_file)
        case "marker":
            restore.write_marker = dying(restore.write_marker)
        case "sync":
            restore.disk.sync_folder = dying(disk.sync_folder)
    if sys.argv[5] == "backup":
        with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
            workspace.backup(sys.argv[2])
    else:
        framedex.Workspace.restore_backup(sys.argv[1], sys.argv[2], settings=SETTINGS)
    print("ended")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed workspace with a dataset and an open transaction."""
    home = tmp_path_factory.mktemp("made")
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", fill(home / "images", 4), "gist")
        dataset.add_media(files=pairs(11, 12), auto_reindex=True)
        dataset.snapshot("kept")
        dataset.open_upload().add(pairs(3))
    return home / "ws"


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "ws"))


@pytest.mark.slow
@pytest.mark.parametrize("hard_links", [False, True])
def test_backup__beside_a_writer(home: Path, tmp_path: Path, *, hard_links: bool) -> None:
    """Backups beside a process that edits, adds, deletes and frees are whole, and each is one state of it."""
    writer = start(WRITES, home)
    assert writer.stdout is not None
    assert writer.stdin is not None
    assert writer.stdout.readline() == "ready\n", writer.communicate()[1]
    writer.stdin.write("go on\n" * 200)
    writer.stdin.flush()
    with Workspace(home, settings=SETTINGS) as workspace:
        for number in range(4):
            for _ in range(3):
                writer.stdout.readline()
            result = workspace.backup(tmp_path / f"backup {number}", hard_links=hard_links)
            restored = Workspace.restore_backup(tmp_path / f"backup {number}", tmp_path / f"ws {number}")
            assert restored.findings == []
            assert restored.datasets == result.datasets
    writer.kill()
    writer.communicate()


MOMENTS = [
    *(("catalog", 1), ("named", 1), ("file", 1), ("file", 9), ("block", 5), ("recording", 1), ("list", 1)),
    *(("header", 1), ("end", 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "after"), MOMENTS)
def test_backup__killed(home: Path, tmp_path: Path, moment: str, after: int) -> None:
    """A backup whose process is killed is refused as unfinished, and the next call finishes it."""
    folder = tmp_path / "backup"
    process = start(DIES, home, folder, moment, after, "backup")
    assert process.wait(120) == -signal.SIGKILL, process.communicate()
    process.communicate()
    with pytest.raises(WorkspaceError, match=r"did not end|is no backup"):
        Workspace.restore_backup(folder, tmp_path / "target", settings=SETTINGS)
    assert not (tmp_path / "target").exists()
    with Workspace(home, settings=SETTINGS) as workspace:
        assert workspace.check().findings == []
        workspace.backup(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["backup.json", "files.jsonl", "workspace"]
    assert not list(folder.rglob("*.partial"))
    assert Workspace.restore_backup(folder, tmp_path / "target", settings=SETTINGS).is_sound


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "after"), [("restored file", 1), ("restored file", 9), ("block", 4), ("marker", 1)])
def test_restore__killed(home: Path, tmp_path: Path, moment: str, after: int) -> None:
    """A restore whose process is killed leaves no workspace, and the next one to the folder succeeds."""
    with Workspace(home, settings=SETTINGS) as workspace:
        workspace.backup(tmp_path / "backup")
    process = start(DIES, tmp_path / "backup", tmp_path / "target", moment, after, "restore")
    assert process.wait(120) == -signal.SIGKILL, process.communicate()
    process.communicate()
    with pytest.raises(WorkspaceError):
        Workspace(tmp_path / "target", settings=SETTINGS)
    assert Workspace.restore_backup(tmp_path / "backup", tmp_path / "target", settings=SETTINGS).is_sound
    assert not list((tmp_path / "target").glob(".*.partial"))


@pytest.mark.slow
def test_backup__ends_in_another_process(home: Path, tmp_path: Path) -> None:
    """A process that is not killed ends its backup, and another one restores it."""
    assert run(DIES, home, tmp_path / "backup", "nothing", 1, "backup") == "ended\n"
    process = start(DIES, tmp_path / "backup", tmp_path / "target", "nothing", 1, "restore")
    assert finish(process) == "ended\n"
