"""Names of datasets are unique within a namespace, which every copy of the catalog keeps."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from framedex import Conflict, InvalidInput, NotFound, Workspace
from framedex.cli.program import app
from framedex.storage.manifest import read_manifest
from tests.enrichments import TAG, Hues, paint, register_models
from tests.gallery import SETTINGS, embedded
from tests.inside import catalog_of
from tests.prepared import prepared


def named(workspace: Workspace) -> list[str]:
    """Return the names of the datasets that a handle lists, sorted."""
    return sorted(each.display_name for each in workspace.datasets())


@pytest.mark.slow
def test_namespaces__hold_the_same_name_each(workspace: Workspace) -> None:
    """A name can be used once in each namespace; a handle finds its own, and lists only its own in errors."""
    left, right = workspace.in_namespace("left"), workspace.in_namespace("right")
    made = {each.namespace: prepared(each, "pets", embedded([[1, 0]])).id for each in (workspace, left, right)}
    right.create_dataset("secret", embedded([[1, 0]]))
    assert len(set(made.values())) == 3
    for handle in (workspace, left, right):
        assert handle.dataset("pets").id == made[handle.namespace]
        with pytest.raises(Conflict, match="'pets' exists already"):
            handle.create_dataset("pets", embedded([[1, 0]]))
    assert (named(workspace), named(left), named(right)) == (["pets"], ["pets"], ["pets", "secret"])
    assert workspace.namespaces() == ["", "left", "right"]
    for find in (left.dataset, left.delete_dataset):
        with pytest.raises(NotFound) as caught:
            find("secret")
        assert str(caught.value) == "no dataset 'secret'; there are: 'pets'"


@pytest.mark.slow
def test_namespaces__ids_are_found_everywhere(workspace: Workspace) -> None:
    """A dataset is found by its id in any namespace, and can be renamed and deleted there."""
    left = workspace.in_namespace("left")
    dataset = left.create_dataset("pets", embedded([[1, 0]]))
    workspace.create_dataset("taken", embedded([[1, 0]]))
    workspace.dataset(dataset.id).rename("taken")
    assert named(left) == ["taken"]
    left.create_dataset("pets", embedded([[1, 0]]))
    with pytest.raises(Conflict, match="'pets' exists already"):
        workspace.dataset(dataset.id).rename("pets")
    workspace.delete_dataset(dataset.id)
    assert named(left) == ["pets"]


@pytest.mark.slow
def test_namespaces__copies_stay_in_that_of_the_source(workspace: Workspace, folder: Path) -> None:
    """A clone is in the namespace of its source, whichever handle made it; its name is free there."""
    left = workspace.in_namespace("left")
    dataset = left.create_dataset("pets", folder)
    workspace.create_dataset("pets (cloned)", embedded([[1, 0]]))
    workspace.dataset(dataset.id).clone()
    left.dataset("pets").clone()
    assert {*named(left)} == {"pets", "pets (cloned)", "pets (cloned 2)"}
    assert named(workspace) == ["pets (cloned)"]
    dataset.restore(dataset.snapshot("kept"))
    assert left.dataset("pets").id == dataset.id


@pytest.mark.slow
def test_namespaces__an_enriched_copy(workspace: Workspace, tmp_path: Path) -> None:
    """An enriched copy is in the namespace of its source, and names the user who asked for it."""
    register_models(workspace, Hues())
    dataset = workspace.in_namespace("left").create_dataset("colours", paint(tmp_path / "images"), "gist")
    copy = workspace.acting_as("ann").dataset(dataset.id).enrich(TAG)
    assert copy.info.owned_by == "ann"
    assert workspace.in_namespace("left").dataset("colours (enriched)").id == copy.id
    assert workspace.datasets() == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_namespaces__survive_the_catalog(tmp_path: Path) -> None:
    """Manifests keep the namespace: a recovered catalog and a repaired entry have it again."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        ids = {
            name: workspace.in_namespace(name).create_dataset("pets", embedded([[1, 0]])).id for name in ("", "a", "b")
        }
        assert workspace.check().findings == []
        manifests = {name: read_manifest(workspace.path / "datasets" / each) for name, each in ids.items()}
        assert {name: each and each.namespace for name, each in manifests.items()} == {"": "", "a": "a", "b": "b"}
    for file in (tmp_path / "ws").glob("catalog.db*"):
        file.unlink()
    assert Workspace.recover(tmp_path / "ws").datasets == ["pets", "pets", "pets"]
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert {name: workspace.in_namespace(name).dataset("pets").id for name in ids} == ids
        with catalog_of(workspace).write() as connection:
            connection.exec_driver_sql("DELETE FROM datasets WHERE id = ?", (ids["b"],))
        assert workspace.check(repair=True).findings[0].repaired
        assert workspace.in_namespace("b").dataset("pets").id == ids["b"]
        assert workspace.check().findings == []


@pytest.mark.slow
def test_namespaces__check_by_name(workspace: Workspace) -> None:
    """A handle checks the dataset of its namespace by name."""
    workspace.in_namespace("a").create_dataset("pets", embedded([[1, 0]]))
    assert workspace.in_namespace("a").check("pets").findings == []
    with pytest.raises(NotFound, match="no dataset 'pets'; there are: none yet"):
        workspace.check("pets")


@pytest.mark.slow
@pytest.mark.only_soak
def test_namespaces__on_the_command_line(workspace: Workspace, folder: Path) -> None:
    """An option before the command selects the namespace."""
    home = ["--workspace", str(workspace.path)]
    made = CliRunner().invoke(app, ["--namespace", "a", "create", "pets", str(folder), *home])
    assert made.exit_code == 0, made.output
    assert named(workspace.in_namespace("a")) == ["pets"]
    assert "pets" in CliRunner().invoke(app, ["--namespace", "a", "ls", *home]).output
    assert "pets" not in CliRunner().invoke(app, ["ls", *home]).output
    assert CliRunner().invoke(app, ["--namespace", "a", "show", "pets", *home]).exit_code == 0
    assert isinstance(CliRunner().invoke(app, ["show", "pets", *home]).exception, NotFound)


@pytest.mark.parametrize("name", [" ", "a\nb", "x" * 256, "\ud800", None, 7])
def test_in_namespace__refuses_names_that_cannot_be_used(workspace: Workspace, name: Any) -> None:
    """The name of a namespace is printable text of up to 255 characters."""
    with pytest.raises(InvalidInput, match="the name of a namespace"):
        workspace.in_namespace(name)


@pytest.mark.slow
def test_namespaces__the_database_keeps_names_unique(workspace: Workspace) -> None:
    """Two rows with one name and namespace are refused by the catalog itself."""
    workspace.create_dataset("pets", embedded([[1, 0]]))
    with closing(sqlite3.connect(workspace.path / "catalog.db")) as connection:
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(datasets)")]
        values = ["'x'" if name == "id" else "'other'" if name == "namespace" else name for name in columns]
        connection.execute(f"INSERT INTO datasets SELECT {', '.join(values)} FROM datasets")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute("UPDATE datasets SET namespace = ''")


def test_find_dataset__by_its_id_alone(workspace: Workspace) -> None:
    """A dataset of any namespace is found by its id with its record; a name finds nothing, even one like an id."""
    mine = workspace.in_namespace("a team").create_draft("mine")
    found = workspace.find_dataset(mine.id)
    assert (found.dataset.id, found.record, found.creation) == (mine.id, mine.info, ("a team", None))
    other = "00000000-0000-4000-8000-000000000000"
    workspace.create_draft(other)
    for missing in ("mine", other, ""):
        with pytest.raises(NotFound, match=repr(missing)):
            workspace.find_dataset(missing)
