"""Prepared datasets are what a creation makes: so a test may begin with either."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, Workspace
from tests.gallery import Averages, fill
from tests.growth import GROUPS, columns_of, part
from tests.prepared import prepared

VECTORS = np.eye(5)[[0, 0, 1, 2, 3]]


def content(dataset: Dataset) -> dict[str, list[object]]:
    """Return all columns of a dataset, groups by number: ids say which dataset it is."""
    table = dataset.to_arrow()
    names = [name for name in table.column_names if not name.endswith("_id") and name not in GROUPS]
    columns: dict[str, list[object]] = table.select(names).to_pydict()
    return {**columns, **columns_of(dataset)}


@pytest.mark.slow
def test_prepared__is_what_a_creation_makes(workspace: Workspace, folder: Path) -> None:
    """Columns, groups, embedding config and layout are equal; nothing is wrong, and nothing in the folder is new."""
    created = workspace.create_dataset("created", folder, Averages())
    made = prepared(workspace, "made", folder, Averages())
    assert content(made) == content(created)
    assert made.embedding_config == created.embedding_config
    assert made.layout == created.layout
    assert [each.reason for each in made.snapshots()] == [each.reason for each in created.snapshots()]
    assert workspace.check().findings == []
    ids = made.view.media_ids()
    made.add_media(folder)
    assert made.view.media_ids() == ids


@pytest.mark.slow
def test_prepared__in_another_folder(workspace: Workspace, tmp_path: Path) -> None:
    """A copy reads the files of its own folder, of which none counts as changed."""
    datasets = {}
    for name in ("first", "second"):
        with Workspace(tmp_path / f"workspace of {name}", settings=workspace.settings) as own:
            datasets[name] = prepared(own, "d", fill(tmp_path / name, 2))
            (tmp_path / name / "000.png").rename(tmp_path / name / "new.png")
            datasets[name].add_media(tmp_path / name)
            assert own.check().findings == []
            assert sorted(datasets[name].to_arrow(["image_filename"])["image_filename"].to_pylist()) == [
                "000.png", "001.png", "new.png",
            ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", ["name", "content", "encoder", "thresholds", "source"])
def test_prepared__of_other_arguments(workspace: Workspace, tmp_path: Path, change: str) -> None:
    """Whatever differs in a call makes another dataset."""
    source: Path | pa.Table = fill(tmp_path / "images", 2)
    first = prepared(workspace, "d", source)
    encoder, options = "auto", dict[str, Any]()
    match change:
        case "content":
            (source / "001.png").rename(source / "002.png")
        case "encoder":
            encoder = "gist"
        case "thresholds":
            options = {"thresholds": (0.1, 0.2, 0.3, 0.4, 0.5)}
        case "source":
            source = part(VECTORS)
    second = prepared(workspace, "e", source, encoder, **options)
    assert first.id != second.id
    assert workspace.check().findings == []
    assert second.count() == (5 if change == "source" else 2)


def test_prepared__of_a_table(workspace: Workspace) -> None:
    """Parts of a table are told apart by their rows."""
    table = part(VECTORS)
    counts = [prepared(workspace, f"{rows} rows", table.slice(0, rows)).count() for rows in (2, 3)]
    assert counts == [2, 3]


@pytest.mark.slow
def test_prepared__copies_are_apart(workspace: Workspace, tmp_path: Path) -> None:
    """What a test does to its dataset is not in the next one."""
    first = prepared(workspace, "d", part(VECTORS))
    first.delete_media(first.view.media_ids()[:3])
    first.tag(first.view.media_ids(), "seen")
    with Workspace(tmp_path / "other", settings=workspace.settings) as other:
        second = prepared(other, "d", part(VECTORS))
        assert (first.count(), second.count()) == (2, 5)
        assert second.tags() == []
