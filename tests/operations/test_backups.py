"""Backups: what they hold, what they refuse, and restores that find each kind of damage."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import Aborted, Conflict, Dataset, FormatTooNew, InvalidInput, Workspace, WorkspaceError
from framedex.operations.backups.backup import make_backup
from framedex.operations.backups.restore import restore_files
from framedex.records import BackupResult, DatasetStatus, TaskStatus, UploadState
from framedex.storage import leases
from tests.gallery import SETTINGS, fill
from tests.inside import catalog_of, context_of
from tests.pauses import Pause, run_of, watched
from tests.tuning import Tuning
from tests.uploading import pairs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed workspace with uploads, edits, a snapshot, a step to undo, an open transaction and a draft."""
    home = tmp_path_factory.mktemp("made")
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", fill(home / "images", 4), "gist")
        dataset.add_media(files=pairs(11, 12), auto_reindex=True)
        ids = dataset.where([]).media_ids()
        dataset.set_captions({ids[0]: "a cat on a roof"})
        dataset.snapshot("kept")
        dataset.add_field("rating", "float", values={ids[0]: 1.5})
        dataset.save_view("all", dataset.where([]))
        dataset.tag(ids[:2], "keep")
        dataset.delete_media(ids[3:4])
        dataset.thumbnail(ids[0])
        dataset.open_upload().add(pairs(3, 4))
        workspace.create_draft("draft")
        workspace.in_namespace("t1").create_draft("of a tenant")
    return home / "ws"


@pytest.fixture(scope="module")
def backed_up(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it, which tests copy before they change it."""
    folder = tmp_path_factory.mktemp("backed_up") / "backup"
    with Workspace(made, settings=SETTINGS) as workspace:
        workspace.backup(folder)
    return folder


@pytest.fixture
def backup(backed_up: Path, tmp_path: Path) -> Path:
    """A copy of the backup."""
    return Path(shutil.copytree(backed_up, tmp_path / "copy of the backup"))


@pytest.fixture
def workspace(made: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the workspace, opened."""
    with Workspace(shutil.copytree(made, tmp_path / "ws"), settings=SETTINGS) as opened:
        yield opened


def restored(backup: Path, target: Path) -> Workspace:
    """Return the workspace of a backup, opened, after a restore without findings."""
    result = Workspace.restore_backup(backup, target, settings=SETTINGS)
    assert (result.findings, result.is_sound) == ([], True)
    return Workspace(target, settings=SETTINGS)


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    """Return all columns of all rows, with tags and fields."""
    rows: list[dict[str, Any]] = dataset.where([]).to_arrow().to_pylist()
    return rows


def is_workspace(folder: Path) -> bool:
    """Return whether a folder can be opened as a workspace."""
    return (folder / "framedex.toml").exists()


def content_of(backup: Path) -> set[str]:
    """Return the files of a backup, by their paths in the workspace."""
    home = backup / "workspace"
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


def times_of(folder: Path) -> dict[Path, int]:
    """Return when the files of a workspace were changed, but for those that SQLite makes to read."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_backup__holds_all_that_a_workspace_needs(made: Path, backup: Path, tmp_path: Path) -> None:
    """A restored workspace has the rows, snapshots, steps, views and transactions; the former one is not needed."""
    with Workspace(made, settings=SETTINGS) as workspace:
        before = workspace.dataset("pets")
        rows, steps, snapshots = rows_of(before), before.journal(), before.snapshots()
        views = [view.record.model_dump() for view in before.views()]
    with restored(backup, tmp_path / "elsewhere" / "ws") as workspace:
        dataset = workspace.dataset("pets")
        assert (rows_of(dataset), dataset.journal(), dataset.snapshots()) == (rows, steps, snapshots)
        assert [view.record.model_dump() for view in dataset.views()] == views
        (transaction,) = dataset.uploads()
        assert (transaction.state, transaction.n_files) == (UploadState.OPEN, 2)
        dataset.undo()
        dataset.find_upload(transaction.id).process()
        assert dataset.count() == len(rows) + 3
        assert workspace.dataset("draft").info.status_new is DatasetStatus.DRAFT
        assert [each.display_name for each in workspace.in_namespace("t1").datasets()] == ["of a tenant"]


@pytest.mark.slow
def test_backup__holds_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    """Superseded versions, unreferenced uploads, caches and exports are left out, as is what makes it a workspace."""
    dataset = workspace.dataset("pets")
    (workspace.path / "exports").mkdir()
    (workspace.path / "exports" / "x.zip").write_bytes(b"zip")
    (workspace.path / "service.key").write_bytes(bytes(32))
    stale = workspace.path / "datasets" / dataset.id / "blobs" / "ab"
    stale.mkdir(exist_ok=True)
    (stale / f"{'c' * 30}.png").write_bytes(b"of a row that was deleted")
    for name in ("x", "y", "z"):
        dataset.create_tag(name)
    result = workspace.backup(tmp_path / "backup")
    files = content_of(tmp_path / "backup")
    tops = {path.split("/")[0] for path in files}
    assert tops == {"catalog.db", "datasets"}
    assert not is_workspace(tmp_path / "backup" / "workspace")
    versions = [path for path in files if path.startswith(f"datasets/{dataset.id}/tags.lance/_versions/")]
    assert len(versions) < len(list((workspace.path / "datasets" / dataset.id / "tags.lance/_versions").iterdir()))
    assert not any("c" * 30 in path for path in files)
    assert len(files) == result.files
    text = " ".join(result.not_included)
    for part in (str(workspace.path.parent.name), "service.key", "thumbnails", "exports of users", "checkpoints"):
        assert part in text or part == workspace.path.parent.name
    assert "had not arrived" in text


@pytest.mark.slow
def test_backup__lists_each_file(backup: Path) -> None:
    """Each line of the list has the path, the size and the SHA-256 hash of a file."""
    lines = [json.loads(line) for line in (backup / "files.jsonl").read_text().splitlines()]
    assert {line["path"] for line in lines} == content_of(backup)
    assert lines == sorted(lines, key=lambda line: str(line["path"]))
    for line in lines:
        data = (backup / "workspace" / line["path"]).read_bytes()
        assert (line["bytes"], line["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    header = json.loads((backup / "backup.json").read_text())["content"]
    assert (header["files"], header["bytes"]) == (len(lines), sum(line["bytes"] for line in lines))


@pytest.mark.slow
def test_backup__of_a_workspace_opened_for_reading(made: Path, tmp_path: Path) -> None:
    """A backup changes nothing in the workspace, so it needs no right to write there."""
    before = times_of(made)
    with Workspace(made, settings=SETTINGS, read_only=True) as workspace:
        workspace.backup(tmp_path / "backup")
    assert times_of(made) == before
    restored(tmp_path / "backup", tmp_path / "ws").close()


def test_backup__refuses_folders(workspace: Workspace, backup: Path, tmp_path: Path) -> None:
    """A backup needs a folder of its own, without a backup or other files in it."""
    with pytest.raises(Conflict, match="holds a backup already"):
        workspace.backup(backup)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(Conflict, match="is not empty"):
        workspace.backup(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]
    for folder in (workspace.path, workspace.path / "backup"):
        with pytest.raises(InvalidInput, match="not in the workspace"):
            workspace.backup(folder)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is a file"):
        workspace.backup(tmp_path / "file")
    with pytest.raises(InvalidInput, match=r"no users: there is no service\.db"):
        workspace.backup(tmp_path / "new", with_users=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_backup__while_another_one_is_made(workspace: Workspace, tmp_path: Path) -> None:
    """Two backups into one folder at a time are refused."""
    messages = list[str]()

    def second(_stage: str, _share: float) -> None:
        if not messages:
            with pytest.raises(Conflict) as error:
                workspace.backup(tmp_path / "backup")
            messages.append(str(error.value))

    make_backup(context_of(workspace), tmp_path / "backup", progress=second)
    assert "another process makes a backup" in messages[0]
    restored(tmp_path / "backup", tmp_path / "restored").close()


class Stop:
    """A progress callback that aborts at its n-th call.

    Attributes:
        left: the number of calls until then.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, _stage: str, _share: float) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Aborted("stopped")


@pytest.mark.parametrize("after", [1, 3, 8, 30])
@pytest.mark.slow
def test_backup__interrupted_and_continued(workspace: Workspace, tmp_path: Path, after: int) -> None:
    """A backup that was interrupted is none; the next one to the folder copies only what is missing."""
    folder = tmp_path / "backup"
    with pytest.raises(Aborted):
        make_backup(context_of(workspace), folder, progress=Stop(after))
    if folder.exists():
        with pytest.raises(WorkspaceError, match="did not end"):
            Workspace.restore_backup(folder, tmp_path / "target")
        assert not (tmp_path / "target").exists()
    result = workspace.backup(folder)
    assert (result.copied_bytes < result.bytes) == (after > 5)
    restored(folder, tmp_path / "restored").close()


def test_backup__interrupted_then_changed(workspace: Workspace, tmp_path: Path) -> None:
    """What an earlier attempt copied, and the workspace does not need any more, is removed."""
    folder = tmp_path / "backup"
    with pytest.raises(Aborted):
        make_backup(context_of(workspace), folder, progress=Stop(40))
    workspace.delete_dataset("pets")
    workspace.backup(folder)
    assert {path.split("/")[0] for path in content_of(folder)} == {"catalog.db", "datasets"}
    assert not any(path.endswith(".lance") for path in content_of(folder))
    with restored(folder, tmp_path / "restored") as opened:
        assert [each.display_name for each in opened.datasets()] == ["draft"]


def test_backup__without_space(workspace: Workspace, tmp_path: Path, set_free_space: Callable[[int], None]) -> None:
    """A backup that does not fit is refused before anything is copied, and leaves nothing."""
    set_free_space(100_000)
    with pytest.raises(WorkspaceError, match=r"no space left for a backup in .*: it needs 1\.\d MB, and 97\.7 KB are"):
        workspace.backup(tmp_path / "new" / "backup")
    assert not (tmp_path / "new" / "backup").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(WorkspaceError, match="no space left"):
        workspace.backup(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.slow
def test_backup__freed_meanwhile(workspace: Workspace, tmp_path: Path) -> None:
    """A backup during which its first state is freed is one of a later state."""
    dataset, changes = workspace.dataset("pets"), 0

    def change(stage: str, _share: float) -> None:
        nonlocal changes
        if stage == "files" and changes < 2:
            changes += 1
            dataset.delete_media(dataset.where([]).media_ids()[:1])
            for snapshot in dataset.snapshots():
                if not snapshot.is_current:
                    dataset.delete_snapshot(snapshot.snapshot_id)
            workspace.vacuum(older_than_s=0)

    make_backup(context_of(workspace), tmp_path / "backup", progress=change)
    assert changes == 2
    with restored(tmp_path / "backup", tmp_path / "restored") as opened:
        assert rows_of(opened.dataset("pets")) == rows_of(dataset)


@pytest.mark.slow
def test_backup__dataset_deleted_meanwhile(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset that is deleted while it is copied is not in the backup."""
    reports = 0

    def delete(stage: str, _share: float) -> None:
        nonlocal reports
        reports += stage == "files"
        if reports == 3:
            reports += 1
            workspace.delete_dataset("pets")

    result = make_backup(context_of(workspace), tmp_path / "backup", progress=delete)
    assert [each.name for each in result.datasets] == ["draft", "of a tenant"]
    restored(tmp_path / "backup", tmp_path / "restored").close()


def test_backup__changed_all_the_time(
    workspace: Workspace, tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup whose states are freed again and again gives up with a reason, and can be continued."""
    tuning.backup_attempts = 2
    monkeypatch.setattr("framedex.operations.backups.backup.still_names", lambda *_: False)
    with pytest.raises(Conflict, match="was changed too often while its backup was made"):
        workspace.backup(tmp_path / "backup")
    monkeypatch.undo()
    tuning.restore()
    result = workspace.backup(tmp_path / "backup")
    assert result.copied_bytes < result.bytes / 2


def test_backup__steps_forgotten_meanwhile(workspace: Workspace, tmp_path: Path) -> None:
    """Steps of the journal that are forgotten while it is copied are not in the backup, nor are those before them."""
    dataset = workspace.dataset("pets")
    steps = [step.step for step in dataset.journal()]
    home, is_done = workspace.path / "datasets" / dataset.id / "journal", False

    def forget(stage: str, _share: float) -> None:
        nonlocal is_done
        if stage == "files" and not is_done:
            is_done = True
            with closing(sqlite3.connect(workspace.path / "catalog.db")) as connection, connection:
                (name, step), *_ = connection.execute("SELECT file, step FROM journal WHERE file IS NOT NULL")
                connection.execute("DELETE FROM journal WHERE step <= ?", (step,))
            (home / name).unlink()

    make_backup(context_of(workspace), tmp_path / "backup", progress=forget)
    with restored(tmp_path / "backup", tmp_path / "restored") as opened:
        assert [step.step for step in opened.dataset("pets").journal()] == steps[: len(steps) - 1]


def test_backup__of_a_damaged_workspace(workspace: Workspace, tmp_path: Path) -> None:
    """A file of a table that is missing in the workspace is an error; a missing upload is counted."""
    home = workspace.path / "datasets" / workspace.dataset("pets").id
    blob = next(path for path in (home / "blobs").rglob("*") if path.is_file())
    blob.rename(tmp_path / "blob")
    assert workspace.backup(tmp_path / "first").missing_uploads == 1
    data = max((home / "media.lance" / "data").iterdir(), key=lambda path: path.stat().st_size)
    data.rename(tmp_path / "data")
    with pytest.raises(WorkspaceError, match=f"cannot back up .*{data.name}.*run `framedex check` first"):
        workspace.backup(tmp_path / "second")
    (tmp_path / "data").rename(data)
    (tmp_path / "blob").rename(blob)
    assert workspace.backup(tmp_path / "second").missing_uploads == 0


@pytest.mark.slow
def test_backup__work_in_progress(made: Path, tmp_path: Path) -> None:
    """A task that runs is FAILED in the backup and can be retried there; nobody has a lease."""
    workspace = Workspace(shutil.copytree(made, tmp_path / "ws"), settings=SETTINGS)
    dataset = workspace.dataset("pets")
    pause, more = Pause("finding duplicates"), fill(tmp_path / "more", 2, first_seed=70)
    with workspace:
        dataset.add_media(files=pairs(13), auto_reindex=True)  # so that the threads for tasks run
        task = watched(workspace, lambda: dataset.add_media(more, auto_reindex=True, wait=False), pause)
        assert pause.reached.wait(60)
        with leases.leased(catalog_of(workspace), workspace.dataset("draft").id, "test", lambda _: None):
            workspace.backup(tmp_path / "backup")
        pause.opened.set()
        task.wait()
        assert run_of(task)
    with restored(tmp_path / "backup", tmp_path / "restored") as opened:
        again = opened.dataset("pets")
        assert (again.info.status_new, again.count()) == (DatasetStatus.READY, 6)
        (record,) = [each for each in opened.interrupted_tasks() if each.dataset_id == again.id]
        assert record.status is TaskStatus.FAILED
        opened.dataset("draft").open_upload()
        (retried,) = opened.retry_interrupted()
        retried.wait()
        assert again.count() == 8


@pytest.mark.slow
def test_backup__hard_links(workspace: Workspace, tmp_path: Path) -> None:
    """With hard links, files that never change are links; lists and databases are copies, as is what is restored."""
    result = workspace.backup(tmp_path / "backup", hard_links=True)
    assert 0 < result.linked_files < result.files
    assert result.copied_bytes < result.bytes / 2
    links = 0
    for name in content_of(tmp_path / "backup"):
        own, theirs = workspace.path / name, tmp_path / "backup" / "workspace" / name
        links += own.exists() and own.samefile(theirs)
        if "/transactions/" in name or "/manifest/" in name or name == "catalog.db":
            assert not own.exists() or not own.samefile(theirs)
    assert links == result.linked_files
    restored(tmp_path / "backup", tmp_path / "restored").close()
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "restored").rglob("*") if path.is_file())


@pytest.mark.slow
def test_backup__copies_after_links(workspace: Workspace, tmp_path: Path) -> None:
    """A backup that begins with links and is continued without them has no links; the workspace stays as it is."""
    before = {path: path.read_bytes() for path in workspace.path.glob("datasets/*/*.lance/**/*") if path.is_file()}
    with pytest.raises(Aborted):
        make_backup(context_of(workspace), tmp_path / "backup", hard_links=True, progress=Stop(30))
    assert workspace.backup(tmp_path / "backup").linked_files == 0
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "backup").rglob("*") if path.is_file())
    assert {path: path.read_bytes() for path in before} == before


# --- damage


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _first(backup: Path, pattern: str) -> Path:
    return next(path for path in sorted((backup / "workspace").glob(pattern)) if path.is_file())


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "bit in a table": (
        lambda backup: _flip(_first(backup, "datasets/*/media.lance/data/*")),
        r"media\.lance/data/.* is not what was backed up",
    ),
    "bit in the catalog": (lambda backup: _flip(backup / "workspace" / "catalog.db"), r"catalog\.db is not what"),
    "bit in an upload": (lambda backup: _flip(_first(backup, "datasets/*/blobs/*/*")), "blobs/.* is not what"),
    "bit in the list": (lambda backup: _flip(backup / "files.jsonl"), r"files\.jsonl is damaged"),
    "bit in the header": (lambda backup: _flip(backup / "backup.json"), r"backup\.json is damaged"),
    "missing file": (
        lambda backup: _first(backup, "datasets/*/manifest/*.json").unlink(),
        "manifest/.*: No such file or directory",
    ),
    "truncated file": (
        lambda backup: os.truncate(_first(backup, "datasets/*/journal/*"), 10),
        "journal/.* has 10 bytes instead of",
    ),
    "missing list": (lambda backup: (backup / "files.jsonl").unlink(), r"files\.jsonl is damaged: No such file"),
    "missing header": (lambda backup: (backup / "backup.json").unlink(), r"is no backup: it holds no backup\.json"),
    "unfinished": (lambda backup: (backup / "unfinished.db").touch(), "did not end"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_restore__damage(backup: Path, tmp_path: Path, name: str) -> None:
    """Each kind of damage is found before there is a workspace, and named; nothing stays of the restore."""
    damage, message = DAMAGES[name]
    damage(backup)
    with pytest.raises(WorkspaceError, match=message):
        Workspace.restore_backup(backup, tmp_path / "target", settings=SETTINGS)
    assert not (tmp_path / "target").exists() or list((tmp_path / "target").iterdir()) == []


def test_restore__names_all_damaged_files(backup: Path, tmp_path: Path) -> None:
    """A message names the first damaged files and counts the others."""
    damaged = sorted((backup / "workspace").glob("datasets/*/media.lance/data/*"))[:3]
    for path in [*damaged, *sorted((backup / "workspace").glob("datasets/*/blobs/*/*"))]:
        _flip(path)
    with pytest.raises(WorkspaceError, match=r" and \d+ more$") as error:
        Workspace.restore_backup(backup, tmp_path / "target")
    assert str(error.value).count("is not what was backed up") == 5


def _rewrite(
    backup: Path, change: Callable[[dict[str, Any]], object], lines: list[dict[str, Any]] | None = None
) -> None:
    """Change the header of a backup, and the list if given, with right hashes."""
    if lines is not None:
        (backup / "files.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    content = json.loads((backup / "backup.json").read_text())["content"]
    content["list"] = hashlib.sha256((backup / "files.jsonl").read_bytes()).hexdigest()
    change(content)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (backup / "backup.json").write_text(json.dumps({"content": content, "sha256": digest}))


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "datasets/../../evil", "a\\..\\evil", "c:evil", ""])
def test_restore__paths_of_a_forged_list(backup: Path, tmp_path: Path, path: str) -> None:
    """A list whose paths lead out of the workspace is refused."""
    _rewrite(backup, lambda _header: None, [{"path": path, "bytes": 0, "sha256": hashlib.sha256().hexdigest()}])
    with pytest.raises(WorkspaceError, match="is no path in a workspace"):
        Workspace.restore_backup(backup, tmp_path / "target")


@pytest.mark.parametrize(("name", "value"), [("format", 2), ("workspace_format", 9), ("catalog", "9999")])
def test_restore__of_a_newer_version(backup: Path, tmp_path: Path, name: str, value: object) -> None:
    """A backup of a newer version of Framedex is refused before anything is written."""
    _rewrite(backup, lambda header: header.update({name: value}))
    with pytest.raises(FormatTooNew, match="install a newer"):
        Workspace.restore_backup(backup, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_restore__counts_rows(backup: Path, tmp_path: Path) -> None:
    """Numbers of rows that differ from those of the backup are findings."""
    _rewrite(backup, lambda header: header["datasets"][0].update({"n_media": 99}))
    result = Workspace.restore_backup(backup, tmp_path / "target", settings=SETTINGS)
    assert not result.is_sound
    assert [finding.fault for finding in result.findings] == ["'pets' has 5 media instead of 99"]


def test_restore__refuses_targets(backup: Path, tmp_path: Path) -> None:
    """A target is missing or empty, and not in the backup."""
    target = tmp_path / "target"
    Workspace.restore_backup(backup, target, settings=SETTINGS)
    for _ in range(2):
        with pytest.raises(Conflict, match="is not empty"):
            Workspace.restore_backup(backup, target)
    assert is_workspace(target)
    with pytest.raises(InvalidInput, match="is in the backup"):
        Workspace.restore_backup(backup, backup / "target")
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="cannot use"):
        Workspace.restore_backup(backup, tmp_path / "file")
    with pytest.raises(WorkspaceError, match="is no backup"):
        Workspace.restore_backup(tmp_path / "nowhere", tmp_path / "other")


@pytest.mark.parametrize("after", [1, 10, 25])
def test_restore__interrupted_and_repeated(backup: Path, tmp_path: Path, after: int) -> None:
    """A restore that was interrupted is no workspace; the next one begins again."""
    target = tmp_path / "target"
    with pytest.raises(Aborted):
        restore_files(backup, target, progress=Stop(after))
    assert not is_workspace(target)
    assert (target / "restore.unfinished").exists()
    with pytest.raises(WorkspaceError):
        Workspace(target)
    (target / "mine.txt").touch()
    with pytest.raises(Conflict, match=r"holds other files beside .* such as 'mine\.txt'"):
        Workspace.restore_backup(backup, target)
    (target / "mine.txt").unlink()
    restored(backup, target).close()
    assert not (target / "restore.unfinished").exists()


def test_restore__without_space(backup: Path, tmp_path: Path, set_free_space: Callable[[int], None]) -> None:
    """A restore that does not fit is refused, and leaves nothing."""
    set_free_space(100_000)
    with pytest.raises(WorkspaceError, match="no space left for the workspace"):
        Workspace.restore_backup(backup, tmp_path / "target")
    assert not is_workspace(tmp_path / "target")


@pytest.mark.slow
def test_backup__result(made: Path, tmp_path: Path) -> None:
    """The result names the datasets with the numbers of their rows."""
    with Workspace(made, settings=SETTINGS) as workspace:
        result = workspace.backup(tmp_path / "backup")
    assert isinstance(result, BackupResult)
    assert [(each.name, each.namespace, each.n_media, each.n_snapshots) for each in result.datasets] == [
        ("pets", "", 5, 2),
        ("draft", "", 0, 0),
        ("of a tenant", "t1", 0, 0),
    ]
    assert (result.with_users, result.linked_files, result.missing_uploads) == (False, 0, 0)
    assert result.bytes == result.copied_bytes
