"""Folders as datasets: which dataset has the files of a folder, and what brings it up to date."""

import os
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from framedex import Aborted, Conflict, InvalidInput, Workspace
from framedex.api.folder import FolderStep, OpenedFolder, count_files, open_folder
from tests.gallery import SETTINGS, Gate, fill
from tests.pauses import PATIENCE_S, all_threads_busy, run_of


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three images, and two in a folder below."""
    fill(tmp_path / "photos", 3)
    fill(tmp_path / "photos" / "cats", 2, first_seed=300)
    return tmp_path / "photos"


def ended(opened: OpenedFolder) -> OpenedFolder:
    """Wait until the step of a folder has ended."""
    assert opened.task is not None
    opened.task.wait(PATIENCE_S)
    return opened


@pytest.mark.slow
def test_open__a_new_folder_then_what_is_new(workspace: Workspace, folder: Path) -> None:
    """A folder becomes a dataset of its name; again, new files are added and changed ones replaced, with an index."""
    first = ended(open_folder(workspace, folder))
    assert (first.name, first.step, first.folder, first.below) == ("photos", FolderStep.CREATE, folder, "")
    assert count_files(workspace, folder) == first.dataset.count() == 5
    fill(folder / "dogs", 1, first_seed=400)
    shutil.copy(folder / "dogs" / "000.png", folder / "000.png")
    second = ended(open_folder(workspace, folder))
    assert (second.step, second.dataset.id) == (FolderStep.ADD, first.dataset.id)
    assert (second.dataset.count(), second.dataset.info.status_new) == (6, "READY")
    assert second.dataset.skipped["changed files, replaced"] == 1
    assert [each.display_name for each in workspace.datasets()] == ["photos"]
    third = ended(open_folder(workspace, folder))
    assert (third.dataset.count(), third.dataset.info.status_new) == (6, "READY")


@pytest.mark.slow
def test_open__the_same_folder_by_other_paths(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A link, a slash at the end, a dot and a path with `..` lead to the dataset of the folder."""
    first = ended(open_folder(workspace, folder))
    (tmp_path / "link").symlink_to(folder)
    others = [Path(f"{folder}/"), Path(), tmp_path / "link", folder / "cats" / "..", tmp_path / "link" / "."]
    for other in others:
        with chdir(folder):
            opened = ended(open_folder(workspace, other))
        assert (opened.dataset.id, opened.folder, opened.below) == (first.dataset.id, folder, "")
        assert opened.dataset.count() == 5
    assert len(workspace.datasets()) == 1


@pytest.mark.slow
def test_open__a_folder_that_was_opened_by_a_link(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A dataset that was made by a link is found by the folder itself, also below it, and keeps its ids."""
    (tmp_path / "link").symlink_to(folder)
    first = ended(open_folder(workspace, tmp_path / "link"))
    assert first.name == "link"
    ids = first.dataset.view.media_ids()
    assert ended(open_folder(workspace, folder)).dataset.id == first.dataset.id
    below = ended(open_folder(workspace, folder / "cats"))
    assert (below.dataset.id, below.below, below.folder) == (first.dataset.id, "cats", tmp_path / "link" / "cats")
    assert below.dataset.view.media_ids() == ids


@pytest.mark.slow
@pytest.mark.only_soak
def test_open__a_folder_within_one_that_has_a_dataset(workspace: Workspace, folder: Path) -> None:
    """The closest dataset around a folder has its files, and gets what is new there; a name makes another dataset."""
    outer = ended(open_folder(workspace, folder))
    fill(folder / "cats", 1, first_seed=500)
    fill(folder / "dogs", 1, first_seed=600)
    inner = ended(open_folder(workspace, folder / "cats"))
    assert (inner.dataset.id, inner.below, inner.step) == (outer.dataset.id, "cats", FolderStep.ADD)
    assert outer.dataset.count() == 5  # the changed cat; not the dog
    own = ended(open_folder(workspace, folder / "cats", "only cats"))
    assert (own.step, own.name, own.below) == (FolderStep.CREATE, "only cats", "")
    assert ended(open_folder(workspace, folder / "cats")).name == "only cats"
    assert ended(open_folder(workspace, folder / "dogs")).name == "photos"


@pytest.mark.slow
@pytest.mark.only_soak
def test_open__several_datasets_of_a_folder(workspace: Workspace, folder: Path) -> None:
    """The newest dataset of a folder is opened, copies and lists left aside; a name chooses another one."""
    workspace.create_dataset("old", folder)
    new = workspace.create_dataset("new", folder)
    (folder.parent / "list.txt").write_text(f"{folder}/000.png\n{folder}/001.png\n")
    workspace.create_dataset("listed", folder.parent / "list.txt")
    new.clone()
    assert ended(open_folder(workspace, folder)).name == "new"
    assert ended(open_folder(workspace, folder, "old")).name == "old"
    assert workspace.dataset("listed").count() == 2
    copy = next(each.display_name for each in workspace.datasets() if each.source_dataset_id)
    assert ended(open_folder(workspace, folder, copy)).name == copy


def test_open__a_name_that_is_taken(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A name of a dataset of another folder is refused, whether it was given or is that of the folder."""
    ended(open_folder(workspace, folder))
    other = fill(tmp_path / "other" / "photos", 1)
    for path, name in ((other, None), (other, "photos")):
        with pytest.raises(Conflict, match=f"the name 'photos' is taken by another dataset of {folder}"):
            open_folder(workspace, path, name)
    workspace.create_draft("draft")
    with pytest.raises(Conflict, match="the name 'draft' is taken by another dataset; choose"):
        open_folder(workspace, other, "draft")
    assert ended(open_folder(workspace, other, "others")).dataset.count() == 1


def test_open__what_cannot_be_a_dataset(workspace: Workspace, tmp_path: Path) -> None:
    """A folder without images, and a name that cannot be used, leave nothing."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="it is empty"):
        open_folder(workspace, tmp_path / "empty")
    with pytest.raises(InvalidInput, match="slashes"):
        open_folder(workspace, fill(tmp_path / "images", 1), "a/b")
    assert workspace.datasets() == []


@pytest.mark.slow
def test_open__namespaces_are_apart(workspace: Workspace, folder: Path) -> None:
    """Each namespace has its own dataset of a folder."""
    first = ended(open_folder(workspace, folder))
    second = ended(open_folder(workspace.in_namespace("team"), folder))
    assert (second.step, second.dataset.id != first.dataset.id) == (FolderStep.CREATE, True)


def test_open__while_a_task_is_in_progress(workspace: Workspace, folder: Path) -> None:
    """The dataset is shown, and nothing more is started; before its first image, too."""
    gate = Gate()
    being_made = workspace.create_dataset("gated", folder, gate, wait=False)
    assert gate.reached.wait(PATIENCE_S)
    with all_threads_busy(workspace):
        waits = open_folder(workspace, folder, "photos")
        opened = open_folder(workspace, folder, "photos")
        assert (opened.step, opened.task, opened.task_type) == (FolderStep.WAIT, None, "DATASET_CREATION")
        assert opened.dataset.id == waits.dataset.id
        gate.opened.set()
    ended(waits)
    assert being_made.task is not None
    being_made.task.wait(PATIENCE_S)


@pytest.mark.slow
def test_open__a_creation_that_ended_early(workspace: Workspace, folder: Path) -> None:
    """A creation that was aborted continues, as does one whose folder was gone for a while."""
    workspace.create_dataset("first", folder)
    with all_threads_busy(workspace):
        opened = open_folder(workspace, folder, "aborted")
        assert opened.task is not None
        opened.task.abort()
    again = ended(open_folder(workspace, folder, "aborted"))
    assert (again.step, again.dataset.id, again.dataset.count()) == (FolderStep.CONTINUE, opened.dataset.id, 5)
    away = folder.with_name("away")
    with all_threads_busy(workspace):
        failed = open_folder(workspace, folder, "later")
        folder.rename(away)
    assert failed.task is not None
    with pytest.raises(InvalidInput, match="cannot read the folder"):
        failed.task.wait(PATIENCE_S)
    away.rename(folder)
    assert ended(open_folder(workspace, folder, "later")).step is FolderStep.CONTINUE


@pytest.mark.slow
@pytest.mark.only_soak
def test_open__after_an_interrupted_addition(workspace: Workspace, folder: Path) -> None:
    """An addition that did not end because its process stopped continues."""
    dataset = ended(open_folder(workspace, folder)).dataset
    fill(folder / "dogs", 2, first_seed=700)
    with all_threads_busy(workspace):
        opened = open_folder(workspace, folder)
        assert opened.task is not None
        run_of(opened.task).progress.interrupt("the process stops")
    with pytest.raises(Aborted):
        opened.task.wait(PATIENCE_S)
    assert dataset.count() == 5
    again = ended(open_folder(workspace, folder))
    assert (again.step, again.task_type, dataset.count()) == (FolderStep.CONTINUE, "MEDIA_ADDITION", 7)
    assert ended(open_folder(workspace, folder)).step is FolderStep.ADD


@pytest.mark.slow
def test_open__names_of_any_bytes(workspace: Workspace, tmp_path: Path) -> None:
    """A folder whose name is no text needs a name for its dataset, by which it is found again."""
    folder = fill(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")), 1)
    with pytest.raises(InvalidInput):
        open_folder(workspace, folder)
    first = ended(open_folder(workspace, folder, "café"))
    assert ended(open_folder(workspace, folder)).dataset.id == first.dataset.id
