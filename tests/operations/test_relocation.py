"""Relocations: a source folder that was moved is found again, and nothing else changes."""

import os
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Conflict, Dataset, Forbidden, InvalidInput, NotFound, ReadOnly, Workspace
from tests.buckets import Service
from tests.gallery import SETTINGS, fill
from tests.image_files import photo, write
from tests.inside import catalog_of
from tests.pauses import PATIENCE_S, all_threads_busy
from tests.prepared import new_workspace, prepared


def files_of(dataset: Dataset) -> list[bytes]:
    """Return the content of each media item, in the order of the view."""
    found = []
    for media_id in dataset.view.media_ids():
        with dataset.open_file(media_id) as file:
            found.append(file.content.read())
    return found


def paths_of(dataset: Dataset) -> list[str]:
    """Return where each media item is, in the order of the view."""
    return list(dataset.to_arrow(["file_path"])["file_path"].to_pylist())


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of six images."""
    return prepared(workspace, "pets", folder)


@pytest.mark.slow
def test_relocate__moved_folder(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """After it files, thumbnails, exports, snapshots, clones and undo work, ids stay, and an addition adds nothing."""
    ids, files = list(dataset.view.media_ids()), files_of(dataset)
    dataset.set_labels(ids[:2], ["cat"])
    snapshot = dataset.snapshot("before")
    clone = dataset.clone(snapshot.snapshot_id)
    dataset.delete_media(ids[5:])
    new = folder.rename(tmp_path / "elsewhere")
    with pytest.raises(NotFound):
        files_of(dataset)
    moved = workspace.relocate(folder, new)
    assert moved.is_done
    assert moved.obstacle is None
    assert not moved.notes
    assert sorted((each.files, each.missing, each.compared, each.different) for each in moved.roots) == [
        (5, 0, 5, 0),
        (6, 0, 6, 0),
    ]
    assert list(dataset.view.media_ids()) == ids[:5]
    assert files_of(dataset) == files[:5]
    assert files_of(clone) == files
    assert clone.info.source_uri == str(new)
    assert all(path.startswith(f"{new}/") for path in paths_of(dataset))
    assert dataset.thumbnail(ids[0])
    dataset.view.export(tmp_path / "pets.zip")
    dataset.undo()  # of the deletion
    assert files_of(dataset) == files
    dataset.undo()  # of the labels
    assert set(map(tuple, dataset.to_arrow(["labels"])["labels"].to_pylist())) == {()}
    dataset.add_media(new)
    clone.add_media(new)
    assert len(dataset.view) == len(clone.view) == 6
    dataset.restore(snapshot.snapshot_id)
    assert files_of(dataset) == files


def test_relocate__another_process(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A workspace that was open before reads at the new place at once."""
    with Workspace(workspace.path, settings=SETTINGS) as other:
        opened = other.dataset("pets")
        before = files_of(opened)
        workspace.relocate(folder, folder.rename(tmp_path / "elsewhere"))
        assert files_of(opened) == before


def test_relocate__recover(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A catalog that is rebuilt from manifests has the new place."""
    workspace.relocate(folder, new := folder.rename(tmp_path / "elsewhere"))
    workspace.close()
    (workspace.path / "catalog.db").unlink()
    Workspace.recover(workspace.path)
    with Workspace(workspace.path, settings=SETTINGS) as recovered:
        assert all(path.startswith(f"{new}/") for path in paths_of(recovered.dataset("pets")))


@pytest.mark.slow
def test_relocate__restored_backup(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A backup whose images are at another place is told of it; the workspace itself stays as it is."""
    workspace.backup(tmp_path / "backup")
    Workspace.restore_backup(tmp_path / "backup", tmp_path / "restored", settings=SETTINGS)
    new = fill(tmp_path / "copied", 6)
    with Workspace(tmp_path / "restored", settings=SETTINGS) as restored:
        restored.relocate(folder, new)
        assert all(path.startswith(f"{new}/") for path in paths_of(restored.dataset("pets")))
    assert all(path.startswith(f"{folder}/") for path in paths_of(dataset))


@pytest.mark.slow
@pytest.mark.parametrize(
    "write_old", [str, lambda path: f"{path}/", lambda path: path.name, lambda path: f"{path}/../{path.name}"]
)
def test_relocate__ways_to_write(
    dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path, write_old: Callable[[Path], str]
) -> None:
    """The old place may be written in any way that leads there, also relative to the working folder."""
    new = folder.rename(folder.with_name(folder.name.upper()))  # a change of case alone is another place
    with chdir(folder.parent):
        assert workspace.relocate(write_old(folder), os.path.relpath(new) + "/").is_done
    assert all(path.startswith(f"{new}/") for path in paths_of(dataset))


def test_relocate__home(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path, environment: Any) -> None:
    """A tilde is the home folder."""
    environment["HOME"] = str(folder.parent)
    folder.rename(tmp_path / "elsewhere")
    workspace.relocate(f"~/{folder.name}", "~/elsewhere")
    assert workspace.dataset("pets").info.source_uri == str(tmp_path / "elsewhere")


def test_relocate__links(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A root that is a link is found by the link and by the folder to which it leads; a new link stays a link."""
    link = tmp_path / "link"
    link.symlink_to(folder)
    dataset = workspace.create_dataset("pets", link)
    second = tmp_path / "second"
    second.symlink_to(folder)
    assert workspace.relocate(folder, second).is_done
    assert dataset.info.source_uri == str(second)
    with pytest.raises(InvalidInput, match="the same"):
        workspace.relocate(second, second)


@pytest.mark.slow
def test_relocate__parent_of_sources(workspace: Workspace, tmp_path: Path) -> None:
    """All sources below a folder move with it, those of one dataset and of several; others stay."""
    one, two = fill(tmp_path / "old/one", 2), fill(tmp_path / "old/two", 2, first_seed=300)
    other = fill(tmp_path / "older", 2, first_seed=500)
    dataset = workspace.create_dataset("one", one)
    dataset.add_media(two)
    dataset.add_media(other)
    second = workspace.in_namespace("team").create_dataset("two", two)
    files = files_of(dataset)
    (tmp_path / "old").rename(tmp_path / "new")
    moved = workspace.relocate(tmp_path / "old", tmp_path / "new")
    assert sorted(each.after for each in moved.roots) == [
        str(tmp_path / "new" / each) for each in ("one", "two", "two")
    ]
    assert files_of(dataset) == files
    assert len(files_of(second)) == 2
    for each in (tmp_path / "new/one", tmp_path / "new/two", other):
        dataset.add_media(each)
    assert len(dataset.view) == 6


def refused(workspace: Workspace, old: Path | str, new: Path | str, match: str, **options: Any) -> str:
    """Check that a relocation is refused, and changes nothing; return the message."""
    with catalog_of(workspace).read() as connection:
        before = connection.exec_driver_sql("SELECT * FROM source_roots").all()
    with pytest.raises((Conflict, NotFound, InvalidInput, Forbidden), match=match) as raised:
        workspace.relocate(old, new, **options)
    with catalog_of(workspace).read() as connection:
        assert connection.exec_driver_sql("SELECT * FROM source_roots").all() == before
    return str(raised.value)


@pytest.mark.slow
def test_relocate__other_files(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A folder with other files of the same names is refused with names; a check says it; force goes on."""
    other = fill(tmp_path / "other", 6, first_seed=700)
    assert "000.png" in refused(workspace, folder, other, "are not those that were indexed")
    checked = workspace.relocate(folder, other, check=True)
    assert not checked.is_done
    assert checked.roots[0].different == 6
    assert "--force" in str(checked.obstacle)
    assert workspace.relocate(folder, other, force=True).is_done


def test_relocate__same_size(workspace: Workspace, tmp_path: Path) -> None:
    """A file of equal size and other content is found by its content."""
    folder = tmp_path / "folder"
    write(folder / "a.bmp", photo(1))
    workspace.create_dataset("pets", folder)
    write(tmp_path / "other" / "a.bmp", photo(2))
    refused(workspace, folder, tmp_path / "other", "another content of the same size")


def test_relocate__missing_files(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Few missing files are named; where most are missing, it is refused, and a folder that is not there always."""
    new = fill(tmp_path / "new", 5)
    refused(workspace, folder, tmp_path / "nowhere", "there is no such folder", force=True)
    refused(workspace, folder, fill(tmp_path / "empty", 1), "5 files of 6 are missing")
    moved = workspace.relocate(folder, new).roots[0]
    assert (moved.missing, moved.examples) == (1, ["005.png: it is not there"])


def test_relocate__part_of_source(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A part of a source does not move alone; the message names the source and the way."""
    write(folder / "part" / "a.png", photo(50))
    dataset.add_media(folder)
    message = refused(workspace, folder / "part", tmp_path, f"has these files as a part of {folder}, which stays")
    assert f"`framedex sync pets --from {tmp_path}` finds them again" in message
    assert str(folder) in refused(workspace, tmp_path / "unknown", tmp_path, "they are")


@pytest.mark.slow
def test_relocate__paths_of_a_table(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Files that a table names by absolute paths stay where they are named, which is said."""
    uris = [path.as_uri() if number else str(path) for number, path in enumerate(sorted(folder.iterdir()))]
    vectors = pa.array(np.eye(len(uris), dtype=np.float32).tolist(), pa.list_(pa.float32(), len(uris)))
    pq.write_table(pa.table({"uri": uris, "embedding": vectors}), tmp_path / "table.parquet")
    table = workspace.create_dataset("table", tmp_path / "table.parquet")
    moved = folder.rename(tmp_path / "moved")
    message = refused(workspace, folder, moved, "dataset 'table' names 6 files below the old place")
    folder.symlink_to(moved)
    assert "a link from the old place to the new one keeps them readable" in message
    assert files_of(table) == [path.read_bytes() for path in sorted(moved.iterdir())]


def test_relocate__onto_another_source(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A dataset never has two sources of which one contains the other by a relocation."""
    second = fill(tmp_path / "second", 2, first_seed=300)
    dataset.add_media(second)
    refused(workspace, folder, second, "twice", force=True)
    refused(workspace, folder, second / "below", "twice")
    assert workspace.relocate(folder, fill(tmp_path / "third", 6)).is_done


def test_relocate__allowed_folders(tmp_path: Path, folder: Path) -> None:
    """Settings that restrict reading hold for the new place."""
    settings = SETTINGS.model_copy(update={"media_roots": (folder,)})
    with new_workspace(tmp_path / "restricted", settings) as workspace:
        workspace.create_dataset("pets", folder)
        refused(workspace, folder, tmp_path, "FRAMEDEX_MEDIA_ROOTS")


def test_relocate__read_only(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A workspace that was opened for reading is checked, and not changed."""
    new = fill(tmp_path / "new", 6)
    workspace.close()
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as opened:
        assert opened.relocate(folder, new, check=True).obstacle is None
        with pytest.raises(ReadOnly):
            opened.relocate(folder, new)


def test_relocate__while_a_task_runs(dataset: Dataset, workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A task that would store the old place keeps it from being done, in the dataset or in one that is made of it."""
    new, more = fill(tmp_path / "new", 6), fill(tmp_path / "more", 1, first_seed=600)
    dataset.snapshot("kept")
    with all_threads_busy(workspace):
        cloning = dataset.clone("kept", wait=False).task
        refused(workspace, folder, new, "is blocked while", force=True)
    assert cloning is not None
    cloning.wait(PATIENCE_S)
    with all_threads_busy(workspace):
        adding = dataset.add_media(more, wait=False)
        refused(workspace, folder, new, "is blocked while", force=True)
    adding.wait(PATIENCE_S)
    assert workspace.relocate(folder, new).is_done


@pytest.mark.slow
def test_relocate__bucket(service: Service, tmp_path: Path) -> None:
    """A prefix of a bucket moves to another bucket, and to a folder."""
    for path in fill(tmp_path / "local", 3).iterdir():
        for prefix in ("old/photos", "new/pets/photos"):
            service.put(f"{prefix}/{path.name}", path.read_bytes())
    with new_workspace(tmp_path / "buckets", service.settings(copy_budget_ms=0)) as workspace:
        dataset = workspace.create_dataset("pets", "s3://old/photos")
        files = files_of(dataset)
        refused(workspace, "s3://old/photos", "s3://none/photos", "cannot be used")
        refused(workspace, "s3://old/photos", "s3://new/empty", "3 files of 3 are missing")
        moved = workspace.relocate("s3://old", "s3://new/pets/")
        assert moved.roots[0].after == "s3://new/pets/photos"
        assert moved.roots[0].compared == 3
        assert files_of(dataset) == files
        assert paths_of(dataset)[0].startswith("s3://new/pets/photos/")
        dataset.add_media("s3://new/pets/photos")
        assert len(dataset.view) == 3
        with service.closed():
            refused(workspace, "s3://new/pets/photos", "s3://old/photos", "cannot be used")
        workspace.relocate("s3://new/pets/photos", tmp_path / "local")
        assert files_of(dataset) == files
