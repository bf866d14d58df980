"""Source folders over HTTP and by the client: their states, a new place, and the comparison with a dataset."""

import zipfile
from pathlib import Path

import pytest

from framedex import Client, Conflict, Dataset, Forbidden, InvalidInput, Workspace
from tests.gallery import fill
from tests.image_files import encode, photo, write
from tests.prepared import prepared
from tests.service.client import BASE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three images."""
    return fill(tmp_path / "photos", 3)


@pytest.fixture
def moving(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of that folder."""
    return prepared(workspace, "moving", folder)


@pytest.mark.slow
def test_relocate__by_client(client: Client, moving: Dataset, folder: Path, tmp_path: Path) -> None:
    """A source that is gone is shown with its reason, and found again after it was relocated."""
    away = folder.rename(tmp_path / "away")
    (state,) = client.dataset("moving").sources()
    assert (state.source, state.n_media, state.fault) == (str(folder), 3, "there is no such folder")
    assert state in client.sources()
    with pytest.raises(Conflict, match="missing"):
        client.relocate(str(folder), str(fill(tmp_path / "other", 1)))
    checked = client.relocate(str(folder), str(away), check=True)
    assert not checked.is_done
    assert checked.obstacle is None
    assert client.relocate(str(folder), str(away)).is_done
    (state,) = client.dataset("moving").sources()
    assert (state.source, state.fault) == (str(away), None)


def test_sync__by_client(client: Client, moving: Dataset, folder: Path) -> None:
    """It is shown first, and applied with all its tasks."""
    (folder / "000.png").rename(folder / "moved.png")
    (folder / "001.png").unlink()
    write(folder / "new.png", photo(900))
    dataset = client.dataset("moving")
    found = dataset.sync()
    assert (found.new, found.moved, found.missing, found.is_applied) == (1, 1, 1, False)
    applied = dataset.sync(apply=True, remove=True)
    assert (applied.is_applied, applied.removed) == (True, 1)
    assert moving.count() == 3
    assert moving.sync().new == 0
    with pytest.raises(InvalidInput, match="apply"):
        dataset.sync(remove=True)


@pytest.mark.slow
def test_add_media__of_an_archive(client: Client, dataset: Dataset, tmp_path: Path) -> None:
    """An archive as the path of an addition is sent as one, as the library takes it."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("in/a.png", encode(photo(501)))
        archive.writestr("../b.png", b"b")
    client.dataset("pets").add_media(tmp_path / "x.zip")
    assert "in/a.png" in dataset.to_arrow(["path"])["path"].to_pylist()
    assert dataset.skipped["names that lead out of the archive"] == 1


def test_sources__permissions(
    keys: tuple[object, dict[str, tuple[str, str]]], moving: Dataset, folder: Path, tmp_path: Path
) -> None:
    """Only administrators relocate and see folders of the server; editors compare, viewers see names."""
    transport, found = keys
    (folder / "001.png").unlink()
    for name in ("ann", "eve", "vic"):
        with Client(BASE, *found[name], transport=transport) as client:
            dataset = client.dataset("moving")
            (state,) = dataset.sources()
            assert state.source == (str(folder) if name == "ann" else "photos")
            if name == "vic":
                with pytest.raises(Forbidden):
                    dataset.sync()
            else:
                shown = dataset.sync().examples["missing"]
                assert shown == [str(folder / "001.png") if name == "ann" else "001.png"]
            if name != "ann":
                with pytest.raises(Forbidden):
                    client.relocate(str(folder), str(tmp_path))
                with pytest.raises(Forbidden):
                    client.sources()
