"""Each call acts for a user, whose name is in the records of what it makes."""

import json
import sqlite3
import threading
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import InvalidInput, Workspace
from framedex.records import TaskStatus
from tests.gallery import SETTINGS, Gate, embedded, fill
from tests.inside import catalog_of
from tests.pauses import run_of

ANN, BOB = "ann@example.org", "bob@example.org"


def creators(workspace: Workspace, table: str) -> list[str]:
    """Return the column ``created_by`` of a table of the catalog, in the order of its rows."""
    with closing(sqlite3.connect(workspace.path / "catalog.db")) as connection:
        return [row[0] for row in connection.execute(f"SELECT created_by FROM {table} ORDER BY rowid")]


@pytest.mark.slow
@pytest.mark.only_soak
def test_acting_as__names_the_user_in_all_records(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Datasets, tasks, snapshots, tags, fields, decisions and exports name the user of the handle."""
    ann, bob = workspace.acting_as(ANN), workspace.acting_as(BOB)
    dataset = ann.create_dataset("pets", folder)
    assert dataset.info.owned_by == ANN
    same = bob.dataset("pets")
    first, second = same.to_arrow(["media_id"]).to_pylist()[:2]
    assert same.snapshot("kept").created_by == BOB
    same.tag([first["media_id"]], "keep")
    same.add_field("rating", "float", values={first["media_id"]: 1.0})
    decision = same.not_duplicates([first["media_id"], second["media_id"]])
    assert decision.decided_by == BOB
    dataset.add_media(fill(tmp_path / "more", 1, first_seed=900))
    copy = same.clone()
    assert copy.info.owned_by == BOB
    assert [task.created_by for task in workspace.tasks(sort_order="asc").tasks] == [ANN, BOB, ANN, BOB]
    assert set(creators(workspace, "snapshots")) == {ANN, BOB}
    same.export(tmp_path / "bob.zip")
    with zipfile.ZipFile(tmp_path / "bob.zip") as archive:
        assert json.loads(archive.read("metadata.json"))["info"]["exported_by"] == BOB
    ann.dataset("pets").export(tmp_path / "ann.zip")
    workspace.dataset("pets").export(tmp_path / "own.zip")
    assert creators(workspace, "exports") == [BOB, ANN, SETTINGS.user]


@pytest.mark.slow
def test_acting_as__a_retried_task_keeps_its_user(workspace: Workspace, folder: Path) -> None:
    """Whoever retries a task, also in another process, the task and its results name the user who started it."""
    gate = Gate()
    dataset = workspace.acting_as(ANN).create_dataset("pets", folder, gate, wait=False)
    assert dataset.task is not None
    assert gate.reached.wait(60)
    abort = threading.Thread(target=dataset.task.abort)
    abort.start()
    assert run_of(dataset.task).progress.cancelled.wait(60)
    gate.opened.set()
    abort.join(60)
    task = workspace.acting_as(BOB).task(dataset.task.id)
    task.retry()
    assert task.wait(60).created_by == ANN
    assert [each.created_by for each in dataset.snapshots()] == [ANN]


@pytest.mark.slow
@pytest.mark.only_soak
def test_acting_as__a_task_that_another_process_retries(tmp_path: Path, folder: Path) -> None:
    """A job that is rebuilt from its row acts for the user of the row."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as first:
        made = first.acting_as(ANN).create_dataset("pets", folder)
        copy = made.clone(wait=False)
        assert copy.task is not None
        copy.task.wait(60)
        with catalog_of(first).write() as connection:
            connection.exec_driver_sql("UPDATE tasks SET status = 'FAILED' WHERE id = ?", (copy.task.id,))
            connection.exec_driver_sql("DELETE FROM snapshots WHERE dataset_id = ?", (copy.id,))
    with Workspace(tmp_path / "ws", settings=SETTINGS) as second:
        task = second.task(copy.task.id)
        task.retry()
        assert task.wait(60).status is TaskStatus.COMPLETED
        assert task.record.created_by == ANN
        assert {each.created_by for each in second.dataset(copy.id).snapshots()} == {ANN}


def test_acting_as__shares_the_workspace_and_closes_nothing(workspace: Workspace, folder: Path) -> None:
    """A handle sees what others make, and can be closed while the workspace is in use."""
    with workspace.acting_as(ANN) as ann:
        assert ann.user == ANN
        assert workspace.user == SETTINGS.user
        dataset = ann.create_dataset("pets", folder)
        assert [each.id for each in workspace.datasets()] == [dataset.id]
    assert dataset.count() == 6
    assert ann.acting_as(BOB).in_namespace("n").user == BOB
    assert ann.create_dataset("more", embedded([[1, 0], [0, 1]])).info.owned_by == ANN


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0", "x" * 256, "\ud800", None, 7])
def test_acting_as__refuses_names_that_cannot_be_used(workspace: Workspace, name: Any) -> None:
    """The name of a user is printable text of 1 to 255 characters."""
    with pytest.raises(InvalidInput, match="the name of a user"):
        workspace.acting_as(name)


def test_acting_as__the_longest_name(workspace: Workspace) -> None:
    """A name of 255 characters is kept whole."""
    name = "é" * 255
    assert workspace.acting_as(name).create_dataset("pets", embedded([[1, 0]])).info.owned_by == name
