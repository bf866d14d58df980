"""Deletion of the files of removed media, only if they are unchanged."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from framedex import Conflict, Dataset, InvalidInput, NotRetryable, Workspace
from framedex.cleanup.removal import DELETING
from framedex.operations import starting
from framedex.records import CleanupResult, DatasetStatus, TaskRecord, TaskStatus
from tests.gallery import SETTINGS, Gate, fill
from tests.image_files import encode, photo, write
from tests.inside import catalog_of
from tests.pauses import Pause, all_threads_busy, run_of
from tests.prepared import prepared
from tests.processes import start

COPY = "copy.png"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three images, and a newer copy of the first, which is removed."""
    folder = fill(tmp_path / "images", 3)
    (folder / COPY).write_bytes((folder / "000.png").read_bytes())
    os.utime(folder / "000.png", (1e9, 1e9))
    return folder


def clean(dataset: Dataset) -> CleanupResult:
    """Remove equal files, and delete the files of the removed media."""
    return dataset.plan_cleanup(duplicates="exact").apply(delete_files=True)


@pytest.mark.slow
def test_delete_files__exactly_those(workspace: Workspace, images: Path) -> None:
    """The files of the removed media are deleted, and no others; a restore returns the media, not the files."""
    dataset = workspace.create_dataset("pets", images)
    result = clean(dataset)
    assert (result.removed, result.files_deleted, result.files_left, result.files_failed) == (1, 1, 0, [])
    assert sorted(path.name for path in images.iterdir()) == ["000.png", "001.png", "002.png"]
    assert result.snapshot is not None
    dataset.restore(result.snapshot)
    assert dataset.count() == 4
    assert not (images / COPY).exists()


def test_delete_files__of_copies_whose_original_is_gone(workspace: Workspace, images: Path) -> None:
    """A file stays where that of the image that stays in its place is gone, or has other content by now."""
    dataset = prepared(workspace, "pets", images)
    plan = dataset.plan_cleanup(duplicates="exact")
    (images / "000.png").unlink()
    result = plan.apply(delete_files=True)
    assert (result.removed, result.files_deleted, result.files_left) == (1, 0, 1)
    assert "000.png, which stays in its place, is not as it was read: No such file" in result.files_failed[0][1]
    assert (images / COPY).exists()


@pytest.mark.slow
def test_delete_files__undo_says_what_is_lost(workspace: Workspace, images: Path) -> None:
    """An undo and a restore say how many media come back without their file; a redo and other undos lose none."""
    (images / "copy-2.png").write_bytes((images / COPY).read_bytes())
    os.utime(images / "copy-2.png", (2e9, 2e9))
    dataset = workspace.create_dataset("pets", images)
    (images / COPY).write_bytes(b"another one, which stays")
    assert (result := clean(dataset)).files_deleted == 1
    undone = dataset.undo()
    assert (undone.operation, undone.n_media, undone.lost_files, dataset.count()) == ("cleanup", 2, 1, 5)
    assert dataset.redo().lost_files is None
    assert dataset.undo().lost_files == 1, "the step knows it after it was done again"
    dataset.redo()
    assert result.snapshot is not None
    assert dataset.restore(result.snapshot).record.status_message == "done; gone for good: the files of 1 media item"
    assert dataset.undo().lost_files is None
    dataset.delete_media(dataset.media_id("001.png"))
    assert dataset.undo().lost_files is None


@pytest.mark.slow
def test_delete_files__only_by_name(workspace: Workspace, images: Path) -> None:
    """By default no file is deleted; a text such as "no" does not count as True."""
    dataset = workspace.create_dataset("pets", images)
    for wrong in ("no", 1, None):
        with pytest.raises(InvalidInput, match="delete_files must be True or False"):
            dataset.plan_cleanup(duplicates="exact").apply(delete_files=wrong)  # type: ignore[call-overload]
    assert dataset.count() == 4
    dataset.plan_cleanup(duplicates="exact").apply()
    assert (images / COPY).exists()


def change_content(path: Path) -> None:
    """Change a byte; the size stays, and so does the time."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def make_pipe(path: Path) -> None:
    """Put a pipe in the place of a file: reading it would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


CHANGES: list[tuple[Callable[[Path], object], str]] = [
    (change_content, "it has changed since it was read"),
    (lambda path: path.write_bytes(encode(photo(5))), "it has changed since it was read"),
    (Path.unlink, "No such file or directory"),
    (make_pipe, "not a regular file"),
    (make_folder, "Is a directory"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
@pytest.mark.slow
def test_delete_files__changed_ones_stay(
    workspace: Workspace, images: Path, change: Callable[[Path], object], reason: str
) -> None:
    """A changed file stays, and is reported with the reason; its media are removed."""
    dataset = workspace.create_dataset("pets", images)
    change(images / COPY)
    there = os.path.lexists(images / COPY)
    result = clean(dataset)
    assert (result.removed, result.files_deleted, result.files_left) == (1, 0, 1)
    assert result.files_failed == [(str(images / COPY), reason)]
    assert os.path.lexists(images / COPY) is there
    assert dataset.count() == 3


@pytest.mark.slow
def test_delete_files__that_other_datasets_have(workspace: Workspace, images: Path, tmp_path: Path) -> None:
    """A file used by another dataset or its snapshots stays, for any spelling of its path."""
    dataset = workspace.create_dataset("pets", images)
    link = tmp_path / "link to images"
    link.symlink_to(images)
    others = {
        "parent": tmp_path,
        "linked": link,
        "listed": write_list(tmp_path / "list.txt", f"images/../images/{COPY}"),
        "uris": write_list(tmp_path / "uris.txt", (images / COPY).as_uri().replace("copy", "%63opy")),
    }
    for name, source in others.items():
        other = workspace.create_dataset(name, source)
        result = clean(dataset)
        assert (result.removed, result.files_deleted) == (1, 0), name
        assert [reason for _, reason in result.files_failed] == ["other media are in the same file"], name
        assert result.snapshot is not None
        dataset.restore(result.snapshot)
        other.delete_media(other.where([]))
        assert clean(dataset).files_deleted == 0, "the snapshot of its creation has it"
        dataset.restore(dataset.snapshots()[0])
        workspace.delete_dataset(name)
    assert clean(dataset).files_deleted == 1


def write_list(path: Path, *lines: str) -> Path:
    """Write a list of images and return its path."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.slow
def test_delete_files__that_clones_have(workspace: Workspace, images: Path) -> None:
    """A clone is another dataset that needs the files."""
    dataset = workspace.create_dataset("pets", images)
    dataset.clone()
    assert clean(dataset).files_failed == [(str(images / COPY), "other media are in the same file")]


@pytest.mark.slow
def test_delete_files__while_another_dataset_is_made(workspace: Workspace, images: Path) -> None:
    """While a task of another dataset reads files, a clean-up with deletion raises."""
    dataset, gate = workspace.create_dataset("pets", images), Gate()
    plan = dataset.plan_cleanup(duplicates="exact")
    other = workspace.create_dataset("other", images, gate, wait=False)
    with pytest.raises(Conflict, match="cannot be deleted while DATASET_CREATION task of 'other' is running"):
        plan.apply(delete_files=True)
    assert dataset.count() == 4
    gate.opened.set()
    assert other.task is not None
    other.task.wait()
    result = plan.apply(delete_files=True)
    assert [reason for _, reason in result.files_failed] == ["other media are in the same file"]


@pytest.mark.slow
def test_delete_files__of_one_name_in_many_folders(workspace: Workspace, tmp_path: Path) -> None:
    """Files of the same name elsewhere are other files."""
    for folder in ("a", "b", "c"):
        write(tmp_path / "images" / folder / "same.png", photo(1))
    dataset = workspace.create_dataset("pets", tmp_path / "images")
    workspace.create_dataset("others", tmp_path / "images" / "a")
    result = dataset.plan_cleanup(duplicates="exact", keep="first").apply(delete_files=True)
    assert result.files_deleted == 2
    assert [path.parent.name for path in (tmp_path / "images").rglob("*.png")] == ["a"]


@pytest.mark.slow
def test_delete_files__of_other_rows_of_the_dataset(workspace: Workspace, tmp_path: Path) -> None:
    """A file used by remaining media of the same dataset through another source folder stays."""
    write(tmp_path / "images" / "part" / "a.png", photo(1))
    dataset = workspace.create_dataset("pets", tmp_path / "images" / "part")
    dataset.add_media(tmp_path / "images", auto_reindex=True)
    result = clean(dataset)
    assert (result.removed, result.files_deleted) == (1, 0)
    assert [reason for _, reason in result.files_failed] == ["other media are in the same file"]
    assert (tmp_path / "images" / "part" / "a.png").exists()


@pytest.mark.slow
def test_delete_files__links(workspace: Workspace, images: Path, tmp_path: Path) -> None:
    """A link to a file is deleted itself; files behind a link to a folder elsewhere stay."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (images / COPY).rename(elsewhere / "target.png")
    (images / "link.png").symlink_to(elsewhere / "target.png")
    os.utime(images / "000.png", (1e9, 1e9))
    first = workspace.create_dataset("links", images)
    assert clean(first).files_deleted == 1
    assert not os.path.lexists(images / "link.png")
    assert (elsewhere / "target.png").exists()
    (images / "folder").symlink_to(elsewhere)
    workspace.delete_dataset("links")
    second = workspace.create_dataset("folders", images)
    result = clean(second)
    assert result.files_failed == [(str(images / "folder" / "target.png"), "it lies outside of its source folder")]
    assert (elsewhere / "target.png").exists()


@pytest.mark.slow
def test_delete_files__of_a_list(workspace: Workspace, images: Path, tmp_path: Path) -> None:
    """The source folder of a list is the deepest folder with all its files, wherever the list is."""
    (tmp_path / "lists").mkdir()
    source = write_list(tmp_path / "lists" / "list.txt", "../images/000.png", f"../images/{COPY}")
    assert clean(workspace.create_dataset("listed", source)).files_deleted == 1
    assert not (images / COPY).exists()


@pytest.mark.slow
def test_delete_files__of_a_table(workspace: Workspace, images: Path) -> None:
    """Files of a table with embeddings were never read, so they stay."""
    uris = [str(images / "000.png"), str(images / COPY), (images / "001.png").as_uri(), "002.png"]
    table = {"uri": uris, "embedding": [[1.0, 0.0]] * 4}
    plan = workspace.create_dataset("table", table).plan_cleanup(duplicates=1.0, keep="first")
    result = plan.apply(delete_files=True)
    assert (result.removed, result.files_deleted, result.files_left) == (3, 0, 3)
    assert {reason for _, reason in result.files_failed} == {
        "it is not below a source folder", "its content was never read",
    }  # fmt: skip
    assert len(list(images.iterdir())) == 4


@pytest.mark.slow
def test_delete_files__that_were_uploaded(workspace: Workspace, folder: Path) -> None:
    """Uploaded files belong to the dataset; vacuum deletes them when no snapshot needs them."""
    dataset = workspace.create_dataset("pets", folder)
    data = encode(photo(300))
    dataset.add_media(files=[("a.png", data), ("b.png", data)], auto_reindex=True)
    result = clean(dataset)
    assert (result.removed, result.files_deleted) == (1, 0)
    assert [reason for _, reason in result.files_failed] == [
        "it was uploaded, and is deleted when no snapshot needs it"
    ]


@pytest.mark.slow
def test_delete_files__names_of_any_bytes(workspace: Workspace, tmp_path: Path) -> None:
    """Files with names that are not valid Unicode are deleted, too."""
    folder = fill(tmp_path / "images", 1)
    path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.png"))
    path.write_bytes((folder / "000.png").read_bytes())
    os.utime(folder / "000.png", (1e9, 1e9))
    assert clean(workspace.create_dataset("pets", folder)).files_deleted == 1
    assert not path.exists()


@pytest.mark.slow
def test_delete_files__many_that_stay(workspace: Workspace, tmp_path: Path) -> None:
    """The first thousand files that stay are named, and all are counted."""
    folder = tmp_path / "images"
    write(folder / "a.png", photo(1))
    os.utime(folder / "a.png", (1e9, 1e9))
    for number in range(1005):
        os.link(folder / "a.png", folder / f"b{number}.png")
    dataset = workspace.create_dataset("pets", folder)
    plan = dataset.plan_cleanup(duplicates="exact")
    change_content(folder / "a.png")
    result = plan.apply(delete_files=True)
    assert (result.removed, result.files_deleted, result.files_left) == (1005, 0, 1005)
    assert len(result.files_failed) == 1000


@pytest.mark.slow
def test_delete_files__that_links_of_others_lead_to(workspace: Workspace, images: Path, tmp_path: Path) -> None:
    """A file that remaining media use through any chain of links stays."""
    (images / COPY).unlink()
    (images / "zz.png").write_bytes(encode(photo(7)))
    (images / "yy.png").symlink_to("zz.png")
    (images / "aa \udcff.png").symlink_to(images / "yy.png")
    dataset = workspace.create_dataset("pets", images)
    result = dataset.plan_cleanup(duplicates="exact", keep="first").apply(delete_files=True)
    assert (result.removed, result.files_deleted) == (2, 0)
    assert {reason for _, reason in result.files_failed} == {"other media are in the same file"}
    assert (images / "aa \udcff.png").read_bytes() == encode(photo(7))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "first.png").symlink_to(images / "000.png")
    workspace.create_dataset("links", tmp_path / "links")
    (images / "00.png").write_bytes((images / "000.png").read_bytes())
    dataset.add_media(images, auto_reindex=True)
    os.utime(images / "00.png", (1e9, 1e9))
    result = workspace.create_dataset("again", images).plan_cleanup(duplicates="exact").apply(delete_files=True)
    assert (str(images / "000.png"), "other media are in the same file") in result.files_failed
    assert (tmp_path / "links" / "first.png").exists()


@pytest.mark.slow
def test_delete_files__links_that_go_together(workspace: Workspace, images: Path) -> None:
    """A file and the links to it are deleted together if all their media are removed."""
    (images / "zz.png").symlink_to(images / COPY)
    assert clean(workspace.create_dataset("pets", images)).files_deleted == 2
    assert sorted(path.name for path in images.iterdir()) == ["000.png", "001.png", "002.png"]


@pytest.mark.parametrize("other", ["created", "cloned"])
@pytest.mark.slow
def test_delete_files__when_somebody_begins_to_read_meanwhile(
    workspace: Workspace, images: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Files of a dataset that was created during the checks stay."""
    dataset = workspace.create_dataset("pets", images)

    def make(title: str) -> AbstractContextManager[Callable[[str, float], None]]:
        def progress(stage: str, share: float) -> None:
            if (
                (title, stage) == ("cleanup", DELETING) and share == 0.0 and len(workspace.datasets()) == 1
            ):  # it has been read by now which files are needed
                if other == "created":
                    workspace.create_dataset("other", images)
                else:
                    dataset.clone(dataset.snapshots()[0])

        return nullcontext(progress)

    plan = dataset.plan_cleanup(duplicates="exact")
    monkeypatch.setattr(starting, "progress_bar", make)
    result = plan.apply(delete_files=True)
    assert (result.removed, result.files_deleted) == (1, 0)
    assert result.files_failed == [(str(images / COPY), "a task that may need it began meanwhile")]
    assert (images / COPY).exists()


def test_delete_files__while_a_clone_is_made(workspace: Workspace, images: Path) -> None:
    """A clone that is being made will need the files."""
    dataset = workspace.create_dataset("pets", images)
    plan = dataset.plan_cleanup(duplicates="exact")
    pause = Pause("linking tables")
    with all_threads_busy(workspace):
        made = dataset.clone(wait=False)
        assert made.task is not None
        run_of(made.task).progress.callback = pause
    assert pause.reached.wait(60)
    with pytest.raises(Conflict, match="cannot be deleted while SNAPSHOT_CLONE task"):
        plan.apply(delete_files=True)
    pause.opened.set()
    made.task.wait()
    assert dataset.count() == 4


@pytest.mark.slow
def test_delete_files__when_a_folder_becomes_a_link(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a link to a folder elsewhere replaces a folder meanwhile, no file is deleted there."""
    folder, elsewhere = fill(tmp_path / "images" / "part", 1), tmp_path / "elsewhere"
    (folder / COPY).write_bytes((folder / "000.png").read_bytes())
    dataset = workspace.create_dataset("pets", tmp_path / "images")
    plan = dataset.plan_cleanup(duplicates="exact", keep="first")

    def swap(_title: str) -> AbstractContextManager[Callable[[str, float], None]]:
        def progress(_stage: str, _share: float) -> None:
            if not elsewhere.exists():
                folder.rename(elsewhere)
                folder.symlink_to(elsewhere)

        return nullcontext(progress)

    monkeypatch.setattr(starting, "progress_bar", swap)
    result = plan.apply(delete_files=True)
    assert [reason for _, reason in result.files_failed] == ["it lies outside of its source folder"]
    assert len(list(elsewhere.iterdir())) == 2


@pytest.mark.slow
def test_delete_files__of_the_workspace_itself(workspace: Workspace, folder: Path) -> None:
    """Files in a dataset's own store stay, even if a dataset was created from it."""
    dataset = workspace.create_dataset("pets", folder)
    dataset.add_media(files=[("a.png", encode(photo(8)))])
    store = workspace.path / "datasets" / dataset.id / "blobs"
    blob = next(path for path in store.rglob("*.png"))
    (blob.parent / "zz.png").write_bytes(blob.read_bytes())
    result = workspace.create_dataset("odd", store).plan_cleanup(duplicates="exact").apply(delete_files=True)
    assert [reason for _, reason in result.files_failed] == ["it belongs to the workspace"]


COPIES = 640
KILLED = """
    import sys, framedex

    workspace = framedex.Workspace(sys.argv[1])
    plan = workspace.dataset("pets").plan_cleanup(duplicates="exact")
    print(len(plan), flush=True)
    plan.apply(delete_files=True)
"""


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed_while_deleting(workspace: Workspace, folder: Path) -> tuple[TaskRecord, set[str]]:
    """Run a clean-up in a process that is killed while it deletes files; return its task and the files that are left.

    The files go in groups, each with the catalog's write lock held, so that a lock of ours stops them in between.
    """
    write(folder / "kept.png", photo(1, width=40, height=30))
    write(folder / "first.png", photo(0, width=40, height=30))
    os.utime(folder / "first.png", (1e9, 1e9))
    for number in range(COPIES):
        (folder / f"{number:03}.png").write_bytes((folder / "first.png").read_bytes())
    workspace.create_dataset("pets", folder)
    everything = names_in(folder)
    process = start(KILLED, workspace.path)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == COPIES
    while names_in(folder) == everything:
        assert process.poll() is None
    with catalog_of(workspace).write():
        process.kill()
        process.communicate()
    left = names_in(folder)
    assert {"first.png", "kept.png"} < left < everything
    (record,) = workspace.tasks(task_type="MEDIA_DELETION").tasks
    assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
    assert workspace.dataset("pets").info.status_new is DatasetStatus.READY
    assert workspace.dataset("pets").count() == 2
    return record, left


@pytest.fixture
def killed(workspace: Workspace, tmp_path: Path) -> tuple[TaskRecord, set[str]]:
    """A clean-up that was killed while it deleted files, and the remaining files."""
    (tmp_path / "many").mkdir()
    return killed_while_deleting(workspace, tmp_path / "many")


@pytest.mark.slow
def test_delete_files__killed_and_retried(
    workspace: Workspace, tmp_path: Path, killed: tuple[TaskRecord, set[str]]
) -> None:
    """The task of a clean-up that was killed while it deleted files goes on with these when it is retried, and ends.

    What is no longer the file that was read stays, and so does what nobody asked to delete.
    """
    record, left = killed
    changed = sorted(left - {"first.png", "kept.png"})[-1]
    write(tmp_path / "many" / changed, photo(7))
    write(tmp_path / "many" / "new.png", photo(8))
    workspace.dataset("pets").create_tag("meanwhile")
    workspace.vacuum(older_than_s=0)
    with Workspace(workspace.path, settings=SETTINGS) as other:
        task = other.task(record.task_id)
        task.retry()
        assert task.wait(60).status is TaskStatus.COMPLETED
        assert other.dataset("pets").info.status_new is DatasetStatus.READY
    assert names_in(tmp_path / "many") == {"first.png", "kept.png", "new.png", changed}
    assert [tag.name for tag in workspace.dataset("pets").tags()] == ["meanwhile"]


@pytest.mark.slow
def test_delete_files__killed_restored_and_retried(
    workspace: Workspace, tmp_path: Path, killed: tuple[TaskRecord, set[str]]
) -> None:
    """After a restore the media need their files again: a retry then deletes none."""
    record, left = killed
    dataset = workspace.dataset("pets")
    dataset.restore("current")
    workspace.task(record.task_id).retry()
    assert workspace.task(record.task_id).wait(60).status is TaskStatus.COMPLETED
    assert names_in(tmp_path / "many") == left
    assert (dataset.count(), dataset.info.status_new) == (COPIES + 2, DatasetStatus.READY)


@pytest.mark.slow
def test_delete_files__killed_and_the_snapshot_is_gone(
    workspace: Workspace, tmp_path: Path, killed: tuple[TaskRecord, set[str]]
) -> None:
    """Without the snapshot a retry raises and deletes nothing."""
    record, left = killed
    dataset = workspace.dataset("pets")
    before = dataset.snapshots()[0]
    dataset.snapshot("another")
    dataset.delete_snapshot(before)
    with pytest.raises(NotRetryable, match=r"the snapshot from before the clean-up, .* is gone"):
        workspace.task(record.task_id).retry()
    assert names_in(tmp_path / "many") == left
