"""Folders of datasets that are not in the catalog: those of killed creations go at the next opening, others stay."""

import os
import threading
import time

import pytest

from framedex import Workspace
from framedex.core.ids import objects_dataset
from framedex.core.stages import Stages
from framedex.operations.orphans import remove_remains
from framedex.storage.manifest import TransactionManifests
from tests.inside import catalog_of, context_of, layout_of
from tests.processes import start

_KILLED = """
import os, signal, sys
from framedex import Workspace
from framedex.storage import catalog, manifest

def die(*_arguments):
    os.kill(os.getpid(), signal.SIGKILL)

write = catalog.TransactionManifests.write
with Workspace(sys.argv[1]) as workspace:
    if sys.argv[2] == "within the manifest":
        manifest.sync_folder = die
    else:
        catalog.TransactionManifests.write = lambda self: (write(self), die())
    workspace.create_draft("draft")
print("it was not killed")
"""


@pytest.mark.parametrize("place", ["within the manifest", "before the commit"])
@pytest.mark.slow
def test_opening__removes_what_a_killed_creation_left(workspace: Workspace, place: str) -> None:
    """A draft whose creation was killed before its commit leaves no folder once the workspace is opened again."""
    process = start(_KILLED, workspace.path, place)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (-9, "")
    assert len(list((workspace.path / "datasets").iterdir())) == 1
    with Workspace(workspace.path, read_only=True) as reader:
        assert [each.path for each in reader.check().findings] != []
    with Workspace(workspace.path) as again:
        assert list((again.path / "datasets").iterdir()) == []
        assert again.check().findings == []
        again.create_draft("draft")


def test_opening__keeps_what_the_catalog_has_lost(workspace: Workspace) -> None:
    """The folder of a dataset with a manifest stays, also if the catalog does not know it."""
    dataset = workspace.create_draft("pets")
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("DELETE FROM datasets")
    with Workspace(workspace.path):
        assert [path.name for path in (workspace.path / "datasets").iterdir()] == [dataset.id]


def test_orphans__of_a_creation_under_way(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a draft is kept while its row is not committed yet."""
    write, made = TransactionManifests.write, list[str]()
    remover = threading.Thread(target=remove_remains, args=(context_of(workspace),))

    def write_slowly(self: TransactionManifests) -> None:
        write(self)
        if not made:
            made.extend(self.changed)
            remover.start()
            remover.join(0.3)  # it waits for the write lock

    monkeypatch.setattr(TransactionManifests, "write", write_slowly)
    draft = workspace.create_draft("draft")
    remover.join()
    assert made == [draft.id]
    assert (workspace.path / "datasets" / draft.id / "manifest" / "1.json").exists()


def test_opening__keeps_stages_for_a_retry(workspace: Workspace) -> None:
    """Temporary files of a killed task stay until vacuum, if a stage was complete and the dataset exists."""
    dataset = workspace.create_draft("draft")
    spill = layout_of(workspace).spill
    objects = objects_dataset(dataset.id)
    for name, stage in ((dataset.id, "first"), (objects, "first"), (dataset.id, ""), ("0" * len(objects), "first")):
        folder = spill / name / f"left {stage}"
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"12345")
        if stage:
            Stages(folder).put(stage, 1)
    with Workspace(workspace.path) as again:
        left = {each for each in spill.glob("*/left*") if each.is_dir()}
        assert left == {spill / dataset.id / "left first", spill / objects / "left first"}
        assert again.vacuum().freed_bytes > 5
        assert [each for each in spill.glob("*/*") if each.is_dir()] == []


def test_opening__does_not_keep_old_stages(workspace: Workspace) -> None:
    """After a day the next opening removes them."""
    folder = layout_of(workspace).spill / workspace.create_draft("draft").id / "left"
    folder.mkdir(parents=True)
    Stages(folder).put("first", 1)
    for each in folder.iterdir():
        os.utime(each, (time.time() - 25 * 3600,) * 2)
    with Workspace(workspace.path):
        assert not folder.exists()


def test_deletion__removes_stages(workspace: Workspace) -> None:
    """Temporary files that wait for a retry go with their dataset."""
    dataset = workspace.create_draft("draft")
    folder = layout_of(workspace).spill / dataset.id / "left"
    folder.mkdir(parents=True)
    Stages(folder).put("first", 1)
    workspace.delete_dataset("draft")
    assert not folder.exists()
