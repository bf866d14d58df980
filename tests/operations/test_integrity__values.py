"""Wrong values in the catalog are found row by row, are errors of ours in every call, and are repaired."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from framedex import Error, Workspace, WorkspaceError, vql
from framedex.cli import main
from tests.gallery import SETTINGS, fill
from tests.laws import rest_slow
from tests.manifests import contents_of_all
from tests.prepared import prepared

OF_DATASETS = [
    "UPDATE generations SET summary = '{x'",
    'UPDATE generations SET tables = \'{"media": "x"}\'',
    "UPDATE datasets SET status = 'NOPE'",
    "UPDATE datasets SET name = CAST(x'ff' || id AS TEXT)",
    "UPDATE snapshots SET reason = 'NOPE'",
    "UPDATE source_roots SET path = 3",
    "UPDATE saved_views SET vql = '{x'",
    "UPDATE generations SET dataset_id = 'nobody'",
    "UPDATE saved_views SET created_at = 'xx'",
    "UPDATE generations SET summary = '[]'",
    "UPDATE generations SET embedding_config = '{x'",
    "UPDATE generations SET created_at = 'xx'",
    "UPDATE generations SET n_images = 'abc'",
    "UPDATE generations SET id = CAST(x'ff' AS TEXT) WHERE id = (SELECT head FROM datasets LIMIT 1)",
    "UPDATE datasets SET created_at = 'xx'",
    "UPDATE datasets SET created_at = 7",
    "UPDATE datasets SET embedding_config = '{\"encoder\": 3}'",
    "UPDATE datasets SET id = 'x' || id",
    "UPDATE snapshots SET created_at = '2020-01-01T00:00:00'",
    "UPDATE saved_views SET vql = '{}' WHERE name = 'kept'",
    "UPDATE saved_views SET entity_type = 'NOPE'",
    "UPDATE saved_views SET first_batch = 'x'",
    "DELETE FROM datasets",
    "DELETE FROM datasets WHERE name = 'others'",
]
OF_TASKS = [
    "UPDATE tasks SET status = 'NOPE'",
    "UPDATE tasks SET config = '{x'",
    "UPDATE tasks SET status = 'RUNNING', heartbeat_at = 'xx'",
    "UPDATE trend_points SET count = -1",
    "UPDATE exports SET status = 'NOPE'",
    "UPDATE journal SET file = '../../../catalog.db'",
    "UPDATE tasks SET result = '{x'",
    "UPDATE tasks SET task_type = 'NOPE'",
    "UPDATE tasks SET config = '[]'",
    "UPDATE tasks SET start_time = 'xx'",
    "UPDATE trend_points SET timestamp = 'xx'",
    "UPDATE journal SET change = '{x'",
    "UPDATE journal SET created_at = 'xx'",
    "UPDATE journal SET n_media = -1",
    "INSERT INTO leases SELECT id, id, 'x', 'x', 'x', 'x' FROM datasets",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, closed, with two datasets, a snapshot, tags, tasks and an export."""
    home = tmp_path_factory.mktemp("made")
    with Workspace(home / "ws", settings=SETTINGS) as workspace:
        dataset = prepared(workspace, "pets", fill(home / "images", 3), "gist")
        dataset.tag(dataset.where([]).media_ids()[:1], "keep")
        dataset.snapshot("kept")
        dataset.save_view("kept", dataset.where(vql.tags("keep")).sort_by("blur"))
        dataset.save_view("all", caption="cat", threshold=0.5)
        dataset.add_media(fill(home / "more", 1, first_seed=500), auto_reindex=True)
        dataset.export(home / "pets.zip")
        prepared(workspace, "others", fill(home / "others", 2, first_seed=300), "gist")
    return home / "ws"


@pytest.fixture(scope="module")
def before(made: Path) -> dict[str, dict[str, Any]]:
    """The contents of its datasets."""
    with Workspace(made, settings=SETTINGS) as workspace:
        return contents_of_all(workspace)


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of that workspace, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "ws"))


def change(home: Path, statement: str) -> None:
    """Run a statement on the catalog of a closed workspace."""
    with closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as connection:
        connection.execute(statement)


def run(*arguments: str) -> int:
    """Return the status of a command."""
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return int(exit_.value.code or 0)


@pytest.mark.slow
@pytest.mark.parametrize("statement", rest_slow(OF_DATASETS, 3, long=10))
def test_check__wrong_values_are_rebuilt_from_the_manifests(before: dict[str, Any], home: Path, statement: str) -> None:
    """Rows of datasets with a wrong value are found; a repair takes them from the folders of the datasets."""
    change(home, statement)
    with Workspace(home, settings=SETTINGS) as workspace:
        assert not workspace.check().is_sound
        result = workspace.check(repair=True)
        assert result.is_sound, result
        assert workspace.check().findings == []
        assert contents_of_all(workspace) == before


@pytest.mark.slow
@pytest.mark.parametrize("statement", rest_slow(OF_TASKS, 3, long=7))
def test_check__wrong_values_of_the_history_are_removed(before: dict[str, Any], home: Path, statement: str) -> None:
    """Rows of tasks and exports with a wrong value are found; a repair removes them."""
    change(home, statement)
    with Workspace(home, settings=SETTINGS) as workspace:
        assert not workspace.check().is_sound
        assert workspace.check(repair=True).is_sound
        assert workspace.check().findings == []
        assert contents_of_all(workspace) == before


@pytest.mark.slow
@pytest.mark.parametrize("statement", rest_slow([*OF_DATASETS[:-2], *OF_TASKS[-1:]], 3, long=5))
def test_recover__wrong_values(before: dict[str, Any], home: Path, statement: str) -> None:
    """A catalog with a wrong value is not sound, so it can be recovered."""
    change(home, statement)
    assert set(Workspace.recover(home).datasets) == {"pets", "others"}
    with Workspace(home, settings=SETTINGS) as workspace:
        assert contents_of_all(workspace) == before


CALLS: dict[str, Callable[[Workspace], object]] = {
    "datasets": Workspace.datasets,
    "tasks": Workspace.tasks,
    "vacuum": Workspace.vacuum,
    "usage": Workspace.disk_usage,
    "count": lambda workspace: workspace.dataset("pets").count(),
    "snapshots": lambda workspace: workspace.dataset("pets").snapshots(),
    "views": lambda workspace: [view.record for view in workspace.dataset("pets").views()],
    "trends": lambda workspace: [view.trend() for view in workspace.dataset("pets").views()],
    "alerts": lambda workspace: workspace.dataset("pets").alerts(),
    "evaluate": Workspace.evaluate_views,
    "save view": lambda workspace: workspace.dataset("pets").save_view("new"),
    "exports": lambda workspace: workspace.dataset("pets").exports(),
    "tag": lambda workspace: workspace.dataset("pets").tag(workspace.dataset("pets").where([]).media_ids(), "new"),
    "clone": lambda workspace: workspace.dataset("pets").clone(),
    "delete": lambda workspace: workspace.delete_dataset("pets"),
}


@pytest.mark.parametrize("statement", rest_slow([*OF_DATASETS[:-2], *OF_TASKS], 6, long=16))
def test_wrong_values__are_errors_of_ours(home: Path, statement: str) -> None:
    """No call on a catalog with a wrong value raises anything but an error of ours."""
    change(home, statement)
    with Workspace(home, settings=SETTINGS) as workspace:
        for call in CALLS.values():
            try:
                call(workspace)
            except Error:
                continue


def test_wrong_values__message_names_the_catalog_and_the_remedy(home: Path) -> None:
    """The error has the catalog, the value and the command that finds all of them."""
    change(home, "UPDATE datasets SET status = 'NOPE'")
    with (
        Workspace(home, settings=SETTINGS) as workspace,
        pytest.raises(WorkspaceError, match=r"catalog\.db.*'NOPE'.*framedex check"),
    ):
        workspace.datasets()


@pytest.mark.slow
def test_check__command_finds_wrong_values(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command lists the row and the value, and repairs them."""
    change(home, "UPDATE generations SET summary = '{x'")
    assert run("check", "--workspace", str(home)) == 1
    assert "'{x' is no JSON" in capsys.readouterr().out
    assert run("check", "--repair", "--workspace", str(home)) == 0
    assert run("check", "--workspace", str(home)) == 0


def test_check__damaged_entry_without_manifest(home: Path) -> None:
    """Without a manifest nothing can be rebuilt: the findings say so, and other datasets are checked."""
    with Workspace(home, settings=SETTINGS) as workspace:
        dataset_id = workspace.dataset("pets").id
    shutil.rmtree(home / "datasets" / dataset_id / "manifest")
    change(home, f"UPDATE generations SET n_images = 'abc' WHERE dataset_id = '{dataset_id}'")
    with Workspace(home, settings=SETTINGS) as workspace:
        result = workspace.check(repair=True)
        assert not any(finding.repaired for finding in result.findings)
        assert any("restore the catalog" in finding.remedy for finding in result.findings)
        assert result.counts["datasets"] == 2
