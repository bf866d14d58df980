"""The list of datasets, read from the catalog alone, equals the workspace's list."""

from pathlib import Path

import pytest

from framedex import Workspace, WorkspaceError
from framedex.records import DatasetStatus
from framedex.storage.listing import list_workspace
from tests.gallery import SETTINGS
from tests.growth import part
from tests.processes import start

RESTORER = """
    import sys, framedex
    from tests.pauses import Pause, watched

    workspace = framedex.Workspace(sys.argv[1])
    pause = Pause("restoring")
    dataset = workspace.dataset("cats")
    dataset.restore("current")
    watched(workspace, lambda: dataset.restore("current", wait=False), pause)
    assert pause.reached.wait(60)
    print("waits", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_list__is_that_of_the_workspace(tmp_path: Path) -> None:
    """The records equal those of the workspace, newest first."""
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        for name in ("cats", "dogs"):
            workspace.create_dataset(name, part([[1, 0], [0, 1]]))
        expected = workspace.datasets()
    assert list_workspace(tmp_path) == expected
    assert [record.display_name for record in expected] == ["dogs", "cats"]


@pytest.mark.slow
def test_list__settles_tasks_of_dead_processes(tmp_path: Path) -> None:
    """A dataset whose task died with its process is no longer listed as INDEXING."""
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        workspace.create_dataset("cats", part([[1, 0], [0, 1]]))
    process = start(RESTORER, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n", process.communicate()[1]
    assert [record.status_new for record in list_workspace(tmp_path)] == [DatasetStatus.READ_ONLY]
    process.kill()
    process.communicate()
    assert [record.status_new for record in list_workspace(tmp_path)] == [DatasetStatus.READY]


def test_list__of_no_workspace(tmp_path: Path) -> None:
    """A folder with other files is not a workspace, and stays unchanged."""
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(WorkspaceError):
        list_workspace(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
