"""Checks and the recovery of drafts and of upload transactions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex import TaskFailed, Workspace
from framedex.encoders import register
from framedex.records import DatasetStatus, UploadState
from framedex.storage.upload_lists import list_path
from tests.gallery import SETTINGS, Faulty, fill
from tests.growth import status_of
from tests.inside import catalog_of
from tests.uploading import blobs_of, drafted, home_of, image, pairs, paths_of


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A workspace with a draft and a dataset, each with an open transaction of two calls; transactions 1 and 2."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        _, transaction = drafted(workspace, 1, 2, name="draft")
        transaction.add(pairs(3))
        dataset = workspace.create_dataset("pets", fill(tmp_path / "images", 2), "gist")
        other = dataset.open_upload()
        other.add(pairs(4))
        other.add(pairs(5, 6))
        assert (transaction.id, other.id) == (1, 2)
        assert workspace.check().findings == []
    return tmp_path / "w"


def list_of(workspace: Path, name: str) -> Path:
    """Return the list of the transaction of a dataset."""
    with Workspace(workspace, settings=SETTINGS, read_only=True) as opened:
        dataset = opened.dataset(name)
        return list_path(home_of(opened, dataset), dataset.uploads()[0].id)


def faults(workspace: Path, *, repair: bool = False) -> list[tuple[str, bool]]:
    """Return the faults that a check finds, each with whether it was repaired."""
    with Workspace(workspace, settings=SETTINGS) as opened:
        return [(each.fault, each.repaired) for each in opened.check(repair=repair).findings]


def damage_end(path: Path) -> None:
    """Change a byte of the last block."""
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)


def damage_start(path: Path) -> None:
    """Change a byte of the first block."""
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)


LISTS: dict[str, tuple[Callable[[Path], Any], str, int]] = {
    "missing": (Path.unlink, "is missing, and the upload transaction 2 needs it", 0),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-7]), "is damaged: 1 of its 3 files can be read", 1),
    "end": (damage_end, "is damaged: 1 of its 3 files can be read", 1),
    "start": (damage_start, "is damaged: 0 of its 3 files can be read", 0),
    "empty": (lambda path: path.write_bytes(b""), "is damaged: 0 of its 3 files can be read", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_check__a_row_without_its_list(made: Path, name: str) -> None:
    """A list that is missing or damaged is found; the repair keeps the calls before the damage."""
    change, fault, kept = LISTS[name]
    change(list_of(made, "pets"))
    assert faults(made) == [(fault, False)]
    assert faults(made, repair=True) == [(fault, True)]
    assert faults(made) == []
    with Workspace(made, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        transaction = dataset.find_upload(2)
        assert transaction.record.n_files == kept
        transaction.add(pairs(7))
        transaction.process()
        added = ["4.png", "7.png"] if kept else ["7.png"]
        assert paths_of(dataset) == sorted(["000.png", "001.png", *added])


@pytest.mark.slow
def test_check__bytes_of_a_killed_call_are_no_fault(made: Path) -> None:
    """Bytes beyond the length in the catalog do not count; the next call overwrites them."""
    path = list_of(made, "pets")
    path.write_bytes(path.read_bytes() + b"rest")
    assert faults(made) == []
    with Workspace(made, settings=SETTINGS) as workspace:
        assert workspace.dataset("pets").find_upload(2).add(pairs(7)).n_files == 4
    assert faults(made) == []


@pytest.mark.slow
def test_check__a_list_without_a_row(made: Path) -> None:
    """A transaction that the catalog lost is opened again with all its files."""
    with Workspace(made, settings=SETTINGS) as workspace, catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("DELETE FROM uploads")
    fault = "is the list of an upload transaction that the catalog does not have"
    assert faults(made) == [(fault, False), (fault, False)]
    assert faults(made, repair=True) == [(fault, True), (fault, True)]
    assert faults(made) == []
    with Workspace(made, settings=SETTINGS) as workspace:
        record = workspace.dataset("draft").find_upload(1).record
        assert (record.n_files, record.created_by, record.state) == (3, "tester@example.org", UploadState.OPEN)
        assert record.n_bytes == sum(len(image(seed)) for seed in (1, 2, 3))
        workspace.dataset("draft").find_upload(1).process(encoder="gist")
        assert paths_of(workspace.dataset("draft")) == ["1.png", "2.png", "3.png"]


@pytest.mark.slow
def test_check__a_list_that_says_nothing(made: Path) -> None:
    """A list that cannot be read, and one whose number another dataset uses, are named and stay."""
    path = list_of(made, "pets")
    path.with_name("77.files").write_bytes(b"no list")
    path.with_name("1.files").write_bytes(list_of(made, "draft").read_bytes())
    path.with_name("notes.txt").write_bytes(b"")
    unknown = "is the list of an upload transaction that the catalog does not have"
    expected = [(unknown, False), (f"{unknown}, and cannot be read", False)]
    assert faults(made, repair=True) == expected
    assert path.with_name("77.files").exists()


@pytest.mark.slow
def test_check__a_missing_content(made: Path) -> None:
    """A listed file whose content is gone is named with its transaction; uploading it again heals it."""
    with Workspace(made, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("draft")
        (blob,) = [path for path in blobs_of(workspace, dataset) if path.read_bytes() == image(3)]
        blob.unlink()
        (finding,) = workspace.check(repair=True).findings
        assert (finding.path, finding.repaired) == (str(blob), False)
        assert finding.fault == "is missing, and the upload transaction 1 needs it for '3.png'"
        dataset.find_upload(1).add([("other.png", image(3))])
        assert workspace.check().findings == []


@pytest.mark.slow
def test_check__a_row_with_wrong_values(made: Path) -> None:
    """A damaged row is removed, and made again from the list."""
    with Workspace(made, settings=SETTINGS) as workspace, catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE uploads SET n_files = -4 WHERE id = 1")
    found = faults(made, repair=True)
    assert ["n_files" in found[0][0] or "below 0" in found[0][0], found[0][1]] == [True, True]
    assert [repaired for _, repaired in found] == [True] * 2
    assert faults(made) == []
    with Workspace(made, settings=SETTINGS) as workspace:
        assert workspace.dataset("draft").find_upload(1).record.n_files == 3


@pytest.mark.slow
def test_check__a_draft_without_its_manifest(made: Path) -> None:
    """The manifest of a draft is written again at the next opening, and one that differs is found."""
    with Workspace(made, settings=SETTINGS) as workspace:
        manifests = home_of(workspace, workspace.dataset("draft")) / "manifest"
        assert [path.name for path in manifests.glob("*.json")] == ["1.json"]
        (manifests / "1.json").unlink()
        (finding,) = workspace.check(repair=True).findings
        assert finding.repaired
        assert workspace.check().findings == []
        (manifests / "1.json").unlink()
    assert faults(made) == []


@pytest.mark.slow
def test_check__a_draft_that_the_catalog_lost(made: Path) -> None:
    """An older copy of the catalog does not have the draft: vacuum leaves its folder, and a repair brings it back."""
    with Workspace(made, settings=SETTINGS) as workspace, catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("DELETE FROM datasets WHERE name = 'draft'")
    with Workspace(made, settings=SETTINGS) as workspace:
        assert workspace.vacuum().datasets == 0
        (finding,) = workspace.check(repair=True).findings
        assert finding.repaired
        assert "'draft'" in finding.fault
        dataset = workspace.dataset("draft")
        assert (status_of(dataset), dataset.find_upload(1).record.n_files) == (DatasetStatus.DRAFT, 3)
        assert workspace.check().findings == []


@pytest.mark.slow
def test_recover__drafts_and_transactions(made: Path) -> None:
    """A lost catalog is rebuilt with the drafts and all open transactions, which can go on."""
    with Workspace(made, settings=SETTINGS) as workspace:
        workspace.dataset("draft").rename("new")
        workspace.create_draft("empty")
        workspace.delete_dataset(workspace.create_draft("deleted").id)
    for path in made.glob("catalog.db*"):
        path.unlink()
    result = Workspace.recover(made)
    assert sorted(result.datasets) == ["empty", "new", "pets"]
    assert result.left_out == []
    with Workspace(made, settings=SETTINGS) as workspace:
        assert workspace.check().findings == []
        draft, dataset = workspace.dataset("new"), workspace.dataset("pets")
        assert (draft.info.status, workspace.dataset("empty").info.status) == ("UPLOADING", "NEW")
        assert [record.n_files for each in (draft, dataset) for record in each.uploads()] == [3, 3]
        workspace.vacuum(older_than_s=0)
        assert dataset.open_upload().id == 3
        draft.find_upload(1).add(pairs(9))
        draft.find_upload(1).process(encoder="gist")
        dataset.find_upload(2).process()
        assert paths_of(draft) == ["1.png", "2.png", "3.png", "9.png"]
        assert paths_of(dataset) == ["000.png", "001.png", "4.png", "5.png", "6.png"]


@pytest.mark.slow
def test_recover__of_a_processed_transaction(made: Path) -> None:
    """A dataset that was made of a draft comes back with its media, not as a draft, and without the transaction."""
    with Workspace(made, settings=SETTINGS) as workspace:
        workspace.dataset("draft").find_upload(1).process(encoder="gist")
    for path in made.glob("catalog.db*"):
        path.unlink()
    Workspace.recover(made)
    with Workspace(made, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("draft")
        assert (status_of(dataset), dataset.count(), dataset.uploads()) == (DatasetStatus.READY, 3, [])
        assert workspace.check().findings == []


def test_check__a_lost_row_of_a_failed_creation(workspace: Workspace) -> None:
    """The repair opens the transaction again, and the dataset is a draft again, so that it can be processed."""
    register("averages", lambda _name: Faulty())
    dataset, transaction = drafted(workspace, 1, 2)
    with pytest.raises(TaskFailed):
        transaction.process(encoder="averages", wait=False).wait(60)
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("DELETE FROM uploads")
    assert all(finding.repaired for finding in workspace.check(repair=True).findings)
    assert (status_of(dataset), transaction.state) == (DatasetStatus.DRAFT, UploadState.OPEN)
    assert workspace.check().findings == []
    transaction.process(encoder="gist")
    assert paths_of(dataset) == ["1.png", "2.png"]
