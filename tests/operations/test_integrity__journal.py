"""Checks, repairs and recovery of journals, layers of edits, saved views, label decisions and leases."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from framedex import Conflict, Dataset, Error, Workspace, WorkspaceError, vql
from framedex.records import CheckResult
from framedex.storage import table_checks
from tests.gallery import SETTINGS
from tests.growth import families, part
from tests.inside import catalog_of
from tests.operations.test_integrity import cut, flip

Damage = Callable[[Path], None]
ROWS = families(12)
DAMAGES: list[Damage] = [Path.unlink, cut, flip]
IDS = ["missing", "cut", "flipped"]


def create(workspace: Workspace) -> tuple[Dataset, list[str]]:
    """Return a dataset with a caption, a tag, a basket and a decision, whose edits are in the journal; and its ids."""
    dataset = workspace.create_dataset("pets", part(ROWS, label=["a" if row % 2 else "b" for row in range(len(ROWS))]))
    ids = list(dataset.view.ids)
    dataset.set_captions({ids[0]: "first"})
    dataset.tag(ids[:2], "seen")
    dataset.basket.add(ids[:3])
    dataset.label_is_right(ids[:2])
    return dataset, ids


def caption(dataset: Dataset) -> str | None:
    """Return the caption of the first row."""
    (first, *_) = dataset.to_arrow(["caption"])["caption"].to_pylist()
    return None if first is None else str(first)


def home_of(workspace: Workspace, dataset: Dataset) -> Path:
    return workspace.path / "datasets" / dataset.id


def file_of(workspace: Workspace, dataset: Dataset, step: int) -> Path:
    """Return the file of a step of the journal."""
    with catalog_of(workspace).read() as connection:
        query = "SELECT file FROM journal WHERE dataset_id = ? AND step = ?"
        name = connection.exec_driver_sql(query, (dataset.id, step)).scalar_one()
    return home_of(workspace, dataset) / "journal" / str(name)


def texts(result: CheckResult) -> list[str]:
    return [finding.fault for finding in result.findings]


def age(path: Path) -> None:
    """Make a file two hours older."""
    os.utime(path, (time.time() - 7200,) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_journal__file_of_a_step(workspace: Workspace, damage: Damage) -> None:
    """A lost file of the journal is one finding; after the repair the step says why it cannot be undone."""
    dataset, _ = create(workspace)
    path = file_of(workspace, dataset, 1)
    damage(path)
    with pytest.raises(WorkspaceError, match=r"step 1 \(set_captions\): .*the step cannot be undone"):
        dataset.undo(1)
    found = workspace.check()
    (text,) = texts(found)
    fault = "is missing" if damage is Path.unlink else "is damaged: its content does not fit its hash"
    assert text == f"{fault}, and step 1 of the journal (set_captions) needs it"
    assert found.findings[0].path == str(path)
    assert [each.repaired for each in workspace.check(repair=True).findings] == [True]
    assert workspace.check().is_sound
    assert not path.exists()
    with pytest.raises(Conflict, match=f"step 1 .* cannot be undone: the file with its values {fault}"):
        dataset.undo(1)
    assert (len(dataset.journal()), caption(dataset)) == (4, "first")
    dataset.undo(2)  # other steps are not affected
    assert dataset.where(vql.tags("seen")).count() == 0


def test_journal__a_conflict_beside_a_damaged_file(workspace: Workspace) -> None:
    """A step that later ones keep from being undone says so, also if the file of a later step is damaged."""
    dataset, ids = create(workspace)
    dataset.set_captions({ids[0]: "second"})
    file_of(workspace, dataset, 5).unlink()
    with pytest.raises(Conflict, match=r"step 1 .* cannot be undone: a later edit changed the same values"):
        dataset.undo(1)


@pytest.mark.slow
def test_journal__files_of_no_step(workspace: Workspace) -> None:
    """An old file of no step is found and removed; a young one may belong to an edit in progress."""
    dataset, _ = create(workspace)
    folder = home_of(workspace, dataset) / "journal"
    old, young = folder / f"{'0' * 32}.arrow", folder / f"{'1' * 32}.arrow"
    for path in (old, young):
        path.write_bytes(b"left by a killed process")
    age(old)
    assert texts(workspace.check()) == ["is a file of the journal that no step needs"]
    assert workspace.check(repair=True).findings[0].repaired
    assert workspace.check().is_sound
    assert (old.exists(), young.exists()) == (False, True)
    workspace.vacuum()
    assert not young.exists()


@pytest.mark.slow
def test_journal__state_of_a_deletion(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion whose earlier state is damaged cannot be undone, and a repair says so in the journal."""
    dataset, ids = create(workspace)
    dataset.delete_media(ids[4:])
    with catalog_of(workspace).read() as connection:
        text = "SELECT tables FROM generations WHERE id = (SELECT generation FROM journal WHERE step = 5)"
        tables = connection.exec_driver_sql(text).scalar_one()
    version = int(tables.partition('"media": ')[2].split(",")[0].rstrip("}"))
    manifest = home_of(workspace, dataset) / "media.lance" / "_versions"
    (path,) = (each for each in manifest.iterdir() if each.name == f"{2**64 - 1 - version}.manifest")
    path.unlink()
    with pytest.raises(Conflict, match=r"step 5 \(delete_media\) cannot be undone: the state to which it returns is"):
        dataset.undo(5)
    assert dataset.count() == 4
    (text,) = texts(workspace.check())
    assert f"version {version} of the table 'media' cannot be opened" in text
    assert workspace.check(repair=True).findings[0].repaired
    assert workspace.check().is_sound
    with pytest.raises(Conflict, match="cannot be undone: the state to which it returns was lost"):
        dataset.undo(5)
    assert table_checks.reading_fault(manifest.parent, 10**6) is not None


@pytest.mark.slow
def test_journal__without_its_generation(workspace: Workspace) -> None:
    """A step whose state the catalog does not have is found, and given up by a repair."""
    dataset, ids = create(workspace)
    dataset.delete_media(ids[4:])
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE journal SET generation = 'x' WHERE step = 5")
    lost = f"the state to which step 5 of the journal of dataset {dataset.name!r} returns is missing"
    assert texts(workspace.check()) == [lost]
    with pytest.raises(Error, match="freed"):
        dataset.undo(5)
    assert workspace.check(repair=True).findings[0].repaired
    assert workspace.check().is_sound
    with pytest.raises(Conflict, match="the state to which it returns was lost"):
        dataset.undo(5)


@pytest.mark.slow
def test_journal__stays_when_an_entry_is_rebuilt(workspace: Workspace) -> None:
    """A repair that rebuilds the entry of a dataset from its manifest keeps the journal, whose steps can be undone."""
    dataset, _ = create(workspace)
    before = dataset.journal()
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE generations SET n_images = 'abc'")
    assert workspace.check(repair=True).findings
    assert workspace.check().is_sound
    dataset = workspace.dataset("pets")
    assert dataset.journal() == before
    dataset.undo(1)
    assert caption(dataset) is None


@pytest.mark.slow
def test_recover__begins_a_new_journal(tmp_path: Path) -> None:
    """A recovery keeps edits, decisions, basket and saved views; the files of the lost journal are removed later."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset, ids = create(workspace)
        dataset.save_view("a", dataset.where(vql.labels("a")))
        decisions, home = dataset.label_decisions(), home_of(workspace, dataset)
    for path in (tmp_path / "ws").glob("catalog.db*"):
        path.unlink()
    Workspace.recover(tmp_path / "ws")
    files = list((home / "journal").iterdir())
    assert files
    for path in files:
        age(path)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.dataset("pets")
        assert (dataset.journal(), dataset.label_decisions()) == ([], decisions)
        assert (caption(dataset), list(dataset.basket.ids)) == ("first", ids[:3])
        assert [view.name for view in dataset.views()] == ["a"]
        assert set(texts(workspace.check())) == {"is a file of the journal that no step needs"}
        assert all(each.repaired for each in workspace.check(repair=True).findings)
        assert workspace.check().is_sound
        dataset.set_captions({ids[0]: "later"})
        assert [each.step for each in dataset.journal()] == [1]
        dataset.undo()
        assert caption(dataset) == "first"


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=IDS)
def test_layers__damaged(workspace: Workspace, damage: Damage) -> None:
    """A damaged layer of edits is one finding that names its columns; a snapshot without it makes the dataset sound."""
    dataset = workspace.create_dataset("pets", part(ROWS, caption=["c"] * len(ROWS)))
    ids, kept = dataset.view.ids, dataset.snapshot("kept")
    dataset.set_captions({ids[0]: "first"})
    (layer,) = (home_of(workspace, dataset) / "media.lance" / "_edits").iterdir()
    damage(layer)
    (text,) = texts(workspace.check())
    assert text.startswith("column 'caption' of version ")
    assert layer.name in text
    found = workspace.check(repair=True).findings
    assert [(each.repaired, "restore a snapshot" in each.remedy) for each in found] == [(False, True)]
    dataset.restore(kept)
    workspace.vacuum(older_than_s=0)
    assert workspace.check().is_sound
    assert caption(dataset) == "c"
    assert not layer.exists()


@pytest.mark.slow
def test_layers__of_no_version(workspace: Workspace) -> None:
    """A layer that no version lists, as left by a killed edit, is found and removed."""
    dataset, _ = create(workspace)
    layer = home_of(workspace, dataset) / "media.lance" / "_edits" / f"{'0' * 32}.arrow"
    layer.write_bytes(b"left by a killed process")
    assert workspace.check().is_sound
    age(layer)
    assert texts(workspace.check()) == [f"has 1 file of no version, as {layer.name}"]
    assert workspace.check(repair=True).findings[0].repaired
    assert workspace.check().is_sound
    assert not layer.exists()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [Path.unlink, cut], ids=IDS[:2])
def test_label_decisions__damaged(workspace: Workspace, damage: Damage) -> None:
    """A damaged table of decisions is a finding and an error of ours; a snapshot makes the dataset sound again."""
    dataset, ids = create(workspace)
    kept = dataset.snapshot("kept")
    dataset.label_is_right(ids[4:6])
    folder = home_of(workspace, dataset) / "label_decisions.lance"
    path = max((folder / "data").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    damage(path)
    with pytest.raises(WorkspaceError):
        dataset.label_decisions()
    (finding,) = workspace.check().findings
    assert (finding.path, "column " in finding.fault) == (str(folder), True)
    assert "restore a snapshot" in finding.remedy
    dataset.restore(kept)
    assert len(dataset.label_decisions()) == 1
    workspace.vacuum(older_than_s=0)
    assert workspace.check().is_sound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("INSERT INTO trend_points VALUES ('{id}', 1, '2026-01-01T00:00:00+00:00', 1, 0)", "of a saved view that"),
        ("INSERT INTO leases VALUES ('{id}', 'x', 'a:1:2:3', 'tag', '{now}', '{now}')", "of a dataset that is missing"),
        (
            "INSERT INTO journal (dataset_id, step, operation, created_by, created_at, n_media, change, n_bytes)"
            " VALUES ('{id}', 1, 'tag', 'x', '{now}', 1, '{{}}', 0)",
            "of a dataset that is missing",
        ),
    ],
)
def test_rows__of_what_does_not_exist(tmp_path: Path, statement: str, fault: str) -> None:
    """Rows of a dataset or a saved view that is gone are found and removed."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        create(workspace)
    with closing(sqlite3.connect(tmp_path / "ws" / "catalog.db", isolation_level=None)) as connection:
        text = statement.format(id="0" * 8 + "-0000-4000-8000-" + "0" * 12, now="2026-01-01T00:00:00+00:00")
        connection.execute(text)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        (found,) = texts(workspace.check())
        assert fault in found
        assert [each.repaired for each in workspace.check(repair=True).findings] == [True]
        assert workspace.check().is_sound
        assert len(workspace.dataset("pets").journal()) == 4
