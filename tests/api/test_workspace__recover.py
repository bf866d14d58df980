"""A workspace whose catalog is lost or damaged comes back, with all that was committed, from its datasets' folders."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from framedex import Conflict, Dataset, Workspace, WorkspaceError, vql
from framedex.storage import datasets
from framedex.storage.manifest import read_manifest
from tests.gallery import SETTINGS, embedded, fill
from tests.growth import part
from tests.inside import catalog_of
from tests.laws import rest_slow
from tests.manifests import contents_of_all
from tests.processes import start

ROWS = embedded([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [1.0, 0.1]])


def lose_catalog(workspace: Path) -> None:
    """Delete the catalog of a closed workspace."""
    for path in workspace.glob("catalog.db*"):
        path.unlink()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace, closed, with a dataset that has something of everything, a clone of it, and a dataset of a table."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", fill(tmp_path / "images", 4), "gist")
        ids = dataset.where([]).media_ids()
        dataset.tag(ids[:2], "keep")
        dataset.add_field("rating", "float", values={ids[0]: 1.5})
        dataset.set_labels({ids[1]: ["cat"]})
        dataset.set_captions({ids[2]: "a cat on a roof"})
        dataset.not_duplicates(ids[:2])
        kept = dataset.snapshot("kept", description="before")
        dataset.clone(kept)
        dataset.tag(ids[3:], "late")
        dataset.save_view("kept", dataset.where(vql.tags("keep")).sort_by("blur"), caption="cat", threshold=0.5)
        workspace.create_dataset("table", ROWS)
    return tmp_path / "ws"


@pytest.mark.slow
def test_recover__brings_everything_back(home: Path) -> None:
    """Datasets, tags, labels, captions, fields, decisions and snapshots are as before, and go on from there."""
    with Workspace(home, settings=SETTINGS) as workspace:
        before = contents_of_all(workspace)
    lose_catalog(home)
    result = Workspace.recover(home)
    assert (result.datasets, result.left_out, result.kept_as) == (["pets", "pets (cloned)", "table"], [], [])
    with Workspace(home, settings=SETTINGS) as workspace:
        assert contents_of_all(workspace) == before
        dataset = workspace.dataset("pets")
        dataset.restore(next(each for each in dataset.snapshots() if each.snapshot_name == "kept"))
        assert {tag.name: tag.count for tag in dataset.tags()} == {"keep": 2}
        dataset.add_media(home.parent / "images")
        assert dataset.count() == 4
        workspace.vacuum(older_than_s=0)
    lose_catalog(home)
    assert Workspace.recover(home).left_out == []


@pytest.mark.slow
def test_recover__a_sound_catalog_stays(home: Path) -> None:
    """If the catalog is intact, recovery raises and changes nothing."""
    with pytest.raises(Conflict, match="nothing to recover"):
        Workspace.recover(home)
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        Workspace.recover(home.parent / "images")


@pytest.mark.slow
def test_workspace__open_without_catalog_says_recover(home: Path) -> None:
    """Opening a workspace without its catalog names the command that brings it back."""
    lose_catalog(home)
    with pytest.raises(WorkspaceError, match="framedex recover"):
        Workspace(home)


@pytest.mark.slow
@pytest.mark.parametrize("damage", rest_slow(["cut", "zeros", "text", "empty", "header"], 1, long=3))
def test_recover__damaged_catalog_is_kept_aside(home: Path, damage: str) -> None:
    """A catalog that cannot be read is kept under another name, with its log, and a new one takes its place."""
    with Workspace(home, settings=SETTINGS) as workspace:
        before = contents_of_all(workspace)
    catalog = home / "catalog.db"
    data = catalog.read_bytes()
    damaged = {
        "cut": data[: len(data) // 2],
        "zeros": data[:4096] + bytes(len(data) - 4096),
        "text": b"no catalog",
        "empty": b"",
        "header": bytes(100) + data[100:],
    }[damage]
    catalog.write_bytes(damaged)
    result = Workspace.recover(home)
    assert [Path(path).read_bytes() for path in result.kept_as] == [damaged]
    with Workspace(home, settings=SETTINGS) as workspace:
        assert contents_of_all(workspace) == before


@pytest.mark.slow
def test_recover__log_without_its_catalog(home: Path) -> None:
    """The log of a catalog that is gone is not taken for that of the new one."""
    lose_catalog(home)
    (home / "catalog.db-wal").write_bytes(b"a log of something else")
    assert [Path(path).name for path in Workspace.recover(home).kept_as] == ["catalog.db.damaged-1-wal"]


@pytest.mark.slow
def test_recover__deleted_and_unfinished_datasets_stay_away(home: Path, tmp_path: Path) -> None:
    """Deleted and unfinished datasets are not recovered; the folders of unfinished ones are set aside."""
    unfinished = "00000000-0000-4000-8000-000000000000"
    with Workspace(home, settings=SETTINGS) as workspace:
        deleted = workspace.dataset("table")
        shutil.copytree(home / "datasets" / deleted.id, tmp_path / "copy")
        workspace.delete_dataset("table")
        source = workspace.dataset("pets").id
        shutil.copytree(home / "datasets" / source / "media.lance", home / "datasets" / unfinished / "media.lance")
    lose_catalog(home)
    result = Workspace.recover(home)
    assert result.datasets == ["pets", "pets (cloned)"]
    assert [line.partition(":")[0] for line in result.left_out] == [str(home / "datasets" / unfinished)]
    assert (home / "datasets" / f"{unfinished}.left-out" / "media.lance").is_dir()
    with Workspace(home, settings=SETTINGS) as workspace:
        workspace.vacuum(older_than_s=0)
    assert (home / "datasets" / f"{unfinished}.left-out" / "media.lance").is_dir()


@pytest.mark.slow
def test_recover__damaged_tables_are_left_out(home: Path) -> None:
    """A snapshot whose tables are damaged is left out; a dataset without its last state gets that of a snapshot."""
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        head, first = head_of(dataset), dataset.snapshots()[-1].snapshot_name
    versions = home / "datasets" / dataset.id / "media.lance" / "_versions"
    manifest = read_manifest(home / "datasets" / dataset.id)
    assert manifest is not None
    broken = next(each for each in manifest.snapshots if each.snapshot["name"] == first)
    for version in (head.tables["media"], broken.generation["tables"]["media"]):
        version_file(versions, version).write_bytes(b"")
    lose_catalog(home)
    result = Workspace.recover(home)
    assert [line.partition(" is left out")[0] for line in result.left_out if "snapshot" in line][:1] == [
        f"pets: the snapshot {first!r}"
    ]
    assert any("its last state cannot be read" in line and "that of 'kept' now" in line for line in result.left_out)
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        assert {tag.name: tag.count for tag in dataset.tags()} == {"keep": 2}
        assert [each.snapshot_name for each in dataset.snapshots()] == ["kept"]


_TAGS = """
    import sys
    from framedex import Workspace
    from tests.gallery import SETTINGS
    dataset = Workspace(sys.argv[1], settings=SETTINGS).dataset("table")
    ids = dataset.where([]).media_ids()
    for number in range(10_000):
        dataset.tag(ids, f"tag {number}")
        print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", rest_slow([3, 1, 7], 1))
def test_recover__after_a_kill(home: Path, lines: int) -> None:
    """Of a process that was killed while it changed a dataset, all changes that had returned come back."""
    process = start(_TAGS, home)
    assert process.stdout is not None
    done = [int(process.stdout.readline()) for _ in range(lines)][-1]
    process.kill()
    done = max([done, *(int(line) for line in process.communicate()[0].split())])
    lose_catalog(home)
    Workspace.recover(home)
    with Workspace(home, settings=SETTINGS) as workspace:
        tags = {tag.name: tag.count for tag in workspace.dataset("table").tags()}
        assert tags in ({f"tag {number}": 4 for number in range(count)} for count in (done + 1, done + 2))
        assert workspace.check().findings == []


def head_of(dataset: Dataset) -> Any:
    """Return the generation that readers see."""
    with catalog_of(dataset).read() as connection:
        return datasets.head(connection, dataset.id)


def version_file(folder: Path, version: int) -> Path:
    """Return the file of a version of a table; its name counts down from the largest number of 64 bits."""
    names = {f"{version}.manifest", f"{2**64 - 1 - version:020}.manifest"}
    (found,) = (path for path in folder.iterdir() if path.name in names)
    return found


@pytest.mark.slow
def test_recover__trends_are_counted_again_without_alerts(tmp_path: Path) -> None:
    """Saved views come back; what they had counted is counted again and raises no alert, later batches do."""
    home = tmp_path / "ws"
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("table", ROWS)
        for name in ("loud", "quiet"):
            dataset.save_view(name, dataset.where(vql.file_name("ends", ".jpg")))
        dataset.saved_view("quiet").set_alerting(enabled=False)
        dataset.add_media(part([[0.5, 0.5], [0.1, 0.9]], 10))
        trends = {view.name: view.trend().points for view in dataset.views()}
        assert [each.view_name for each in dataset.alerts()] == ["loud"]
    lose_catalog(home)
    assert Workspace.recover(home).left_out == []
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("table")
        assert {view.name: view.record.alerting_enabled for view in dataset.views()} == {"loud": True, "quiet": False}
        assert workspace.evaluate_views() == []
        assert {view.name: view.trend().points for view in dataset.views()} == trends
        dataset.add_media(part([[0.2, 0.8]], 20))
        assert [(each.view_name, each.batch) for each in dataset.alerts()] == [("loud", 2)]
        assert workspace.check().findings == []
