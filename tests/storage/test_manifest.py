"""Manifests are written with each commit, and correct at every moment at which a process may be killed."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace, WorkspaceError
from framedex.storage.datasets import rename_dataset
from framedex.storage.manifest import has_manifest, read_manifest
from tests.gallery import SETTINGS, embedded
from tests.inside import catalog_of
from tests.laws import rest_slow
from tests.manifests import contents_of_all
from tests.prepared import prepared

ROWS = embedded([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [1.0, 0.1]])
Change = Callable[[Workspace], object]


class Moments:
    """Copies of a workspace for each moment before a manifest is opened, renamed or removed.

    Each copy is the state on disk if the process is killed at that moment.

    Attributes:
        copies: the folders.
    """

    def __init__(self) -> None:
        self.copies: list[Path] = []
        self._workspace: Path | None = None
        self._target: Path | None = None
        sys.addaudithook(self._hear)

    @contextmanager
    def of(self, workspace: Path, target: Path) -> Iterator[None]:
        """Write copies below *target* while the block runs."""
        self._workspace, self._target = workspace, target
        try:
            yield
        finally:
            self._workspace = None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        workspace, target = self._workspace, self._target
        if workspace is None or target is None or event not in ("open", "os.rename", "os.remove"):
            return
        if "manifest" in str(arguments[0]):
            self._workspace = None  # what is opened for copying is no moment
            copy = target / str(len(self.copies))
            self.copies.append(Path(shutil.copytree(workspace, copy)))
            self._workspace = workspace


@pytest.fixture(scope="module")
def moments() -> Moments:
    """The copies; the audit hook stays for the rest of the process."""
    return Moments()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A closed workspace with one dataset and two snapshots."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = prepared(workspace, "pets", ROWS)
        dataset.snapshot("kept")
    return tmp_path / "ws"


def contents(home: Path) -> Any:
    """Return the content of a workspace."""
    with Workspace(home, settings=SETTINGS) as workspace:
        return contents_of_all(workspace)


def recovered(home: Path, copy: Path) -> Any:
    """Return the content of a workspace's copy after its catalog was lost and recovered."""
    shutil.copytree(home, copy)
    for path in copy.glob("catalog.db*"):
        path.unlink()
    Workspace.recover(copy)
    return contents(copy)


def pets(workspace: Workspace) -> Dataset:
    """Return the dataset."""
    return workspace.dataset("pets")


def tag(workspace: Workspace) -> None:
    """Tag the first row."""
    pets(workspace).tag(pets(workspace).where([]).media_ids()[:1], "x")


def forget(workspace: Workspace) -> None:
    """Delete the older snapshot, so that the next commit removes its file."""
    pets(workspace).delete_snapshot(pets(workspace).snapshots()[-1])


CHANGES: dict[str, Change] = {
    "tag": tag,
    "delete_snapshot": forget,
    "delete": lambda workspace: workspace.delete_dataset("pets"),
    "create": lambda workspace: workspace.create_dataset("more", ROWS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_slow(CHANGES, 2))
def test_manifest__whenever_a_process_is_killed(home: Path, tmp_path: Path, moments: Moments, name: str) -> None:
    """The recovered state is the committed one before or after a change; the latter once the change returned.

    A change that is missing in the catalog is never recovered. If the workspace is opened again after the kill, the
    recovered state is that of the catalog.
    """
    before, first = contents(home), len(moments.copies)
    with Workspace(home, settings=SETTINGS) as workspace, moments.of(home, tmp_path):
        CHANGES[name](workspace)
    after = contents(home)
    copies = moments.copies[first:]
    assert len(copies) >= 2
    assert after != before
    for number, copy in enumerate(copies):
        shown = recovered(copy, tmp_path / f"lost-{number}") if _has_tables(copy) else {}
        held = contents(copy)
        assert held in (before, after)
        assert shown in (before, held)
        if held and shown != held:
            assert recovered(copy, tmp_path / f"lost-later-{number}") == held
    if after:
        assert recovered(home, tmp_path / "lost") == after


def _has_tables(home: Path) -> bool:
    return any(home.glob("datasets/*/*.lance"))


@pytest.mark.slow
def test_manifest__is_small_and_does_not_grow_with_snapshots(home: Path) -> None:
    """A commit writes one small file; each snapshot has its own file, written once and removed after its deletion."""
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = pets(workspace)
        folder = home / "datasets" / dataset.id / "manifest"
        (first,) = (path.stat().st_size for path in folder.glob("*.json"))
        files = {path: path.stat().st_mtime_ns for path in (folder / "snapshots").iterdir()}
        snapshots = [dataset.snapshot(f"number {number}") for number in range(20)]
        (last,) = folder.glob("*.json")
        assert last.stat().st_size < first + 20 * 64
        assert len(list((folder / "snapshots").iterdir())) == len(files) + 20
        assert {path: path.stat().st_mtime_ns for path in files} == files
        for snapshot in snapshots[:-1]:
            dataset.delete_snapshot(snapshot)
        tag(workspace)
        assert len(list((folder / "snapshots").iterdir())) == len(files) + 1


@pytest.mark.slow
def test_manifest__of_a_commit_that_fails_nothing_stays(home: Path) -> None:
    """A rolled back transaction leaves the manifest unchanged; without a manifest nothing is committed."""
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset = pets(workspace)
        folder = home / "datasets" / dataset.id / "manifest"
        names, before = sorted(folder.iterdir()), contents_of_all(workspace)
        with pytest.raises(RuntimeError, match="stop"):
            _rename_and_stop(workspace, dataset.id)
        assert sorted(folder.iterdir()) == names
        (folder / "snapshots").rename(folder / "elsewhere")
        (folder / "snapshots").write_bytes(b"in the way")
        with pytest.raises(WorkspaceError, match="manifest"):
            dataset.rename("cats")
        (folder / "snapshots").unlink()
        (folder / "elsewhere").rename(folder / "snapshots")
        assert contents_of_all(workspace) == before
        assert sorted(folder.iterdir()) == names


def _rename_and_stop(workspace: Workspace, dataset_id: str) -> None:
    with catalog_of(workspace).write() as connection:
        rename_dataset(connection, dataset_id, "cats")
        raise RuntimeError("stop")


def test_manifest__old_workspaces_get_theirs_when_they_are_opened(home: Path) -> None:
    """Datasets without a manifest get one at the next opening for writing; opening for reading writes nothing."""
    with Workspace(home, settings=SETTINGS) as workspace:
        folder = home / "datasets" / pets(workspace).id
    shutil.rmtree(folder / "manifest")
    Workspace(home, settings=SETTINGS, read_only=True).close()
    assert not (folder / "manifest").exists()
    Workspace(home, settings=SETTINGS).close()
    assert has_manifest(folder)


def test_manifest__damage_is_seen(home: Path) -> None:
    """A modified manifest, or one of another dataset, is refused; a damaged snapshot file affects only its snapshot."""
    with Workspace(home, settings=SETTINGS) as workspace:
        folder = home / "datasets" / pets(workspace).id
    (path,) = (folder / "manifest").glob("*.json")
    text = path.read_text()
    for damaged in ("", "{}", "[" * 100_000, text.replace("pets", "cats"), text[:-10]):
        path.write_text(damaged)
        with pytest.raises(WorkspaceError, match="damaged"):
            read_manifest(folder)
    path.write_text(text)
    with pytest.raises(WorkspaceError, match="another dataset"):
        read_manifest(folder.rename(folder.with_name("other")))
    folder = folder.with_name("other").rename(folder)
    next((folder / "manifest" / "snapshots").iterdir()).write_text("{}")
    manifest = read_manifest(folder)
    assert manifest is not None
    assert (len(manifest.unread), len(manifest.snapshots)) == (1, 1)
