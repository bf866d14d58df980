"""Disk usage counts every file once in the total, and assigns it to a part."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, DiskUsage, Workspace
from framedex.api.disk_usage import PARTS
from framedex.render.sizes import bytes_text
from tests.gallery import SETTINGS, Gate
from tests.growth import THRESHOLDS, families, part
from tests.image_files import encode, photo
from tests.inside import catalog_of
from tests.prepared import prepared

ROWS = families(400, dimension=64)


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of some families of vectors."""
    return prepared(workspace, "pets", part(ROWS[:300]), thresholds=THRESHOLDS)


def parts_of(usage: DiskUsage, name: str | None = "pets") -> dict[str, int]:
    """Return the bytes of the parts of a dataset."""
    return {row["part"]: row["bytes"] for row in usage.to_arrow().to_pylist() if row["dataset_name"] == name}


def files_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, each once whatever its names are."""
    found = [path.lstat() for path in folder.rglob("*") if path.is_file()]
    return sum({status.st_ino: status.st_size for status in found}.values())


@pytest.mark.slow
def test_disk_usage__of_a_fresh_dataset(workspace: Workspace, dataset: Dataset) -> None:
    """Embeddings, index and other columns take what they take; there is hardly anything else."""
    usage = workspace.disk_usage()
    parts = parts_of(usage)
    assert list(parts) == [each for each in PARTS if each in parts]
    assert 4 * 64 * 300 <= parts["embeddings"] < 1.2 * 4 * 64 * 300
    assert 300 * 20 * 8 <= parts["index columns"] < 300 * 400
    assert parts["other columns"] >= 300 * 36
    assert {*parts} <= {"embeddings", "other columns", "index columns", "other tables", "old versions", "catalog"}
    assert parts["catalog"] < 20_000, "its manifest, and that of the snapshot of its creation"
    assert parts.get("old versions", 0) < 20_000
    assert usage.total_bytes == files_of(workspace.path)
    assert parts_of(usage, None).keys() == {"catalog"}


@pytest.mark.slow
@pytest.mark.only_soak
def test_disk_usage__says_what_vacuum_frees(workspace: Workspace, dataset: Dataset) -> None:
    """A vacuum frees exactly the freeable bytes, and none are left."""
    for number in range(5):
        dataset.add_media(part(ROWS[300 + 10 * number : 310 + 10 * number], 300 + 10 * number), auto_reindex=True)
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[:30])
    before = workspace.disk_usage()
    assert before.freeable_bytes > 100_000
    parts = parts_of(before)
    assert parts["old versions"] >= before.freeable_bytes
    assert parts["deleted rows"] > 30 * 4 * 64 / 2
    assert parts["snapshots"] > 300 * 20 * 8, "the first index, which only the snapshot of the creation has"
    catalog_of(workspace).shrink()
    freed = workspace.vacuum(older_than_s=0).freed_bytes
    after = workspace.disk_usage()
    assert freed == pytest.approx(before.freeable_bytes, rel=0.05)
    assert after.freeable_bytes == 0
    assert "old versions" not in parts_of(after)
    assert parts_of(after)["snapshots"] == parts["snapshots"]


def test_disk_usage__table_of_snapshots_alone(workspace: Workspace, dataset: Dataset) -> None:
    """A table that only a snapshot has, because the restored state is older, is not counted as one to be freed."""
    before = dataset.snapshots()[0].snapshot_id
    dataset.tag(dataset.where([]), "x")
    dataset.snapshot()
    dataset.restore(before)
    assert workspace.vacuum(older_than_s=0).skipped == {}
    assert workspace.disk_usage().freeable_bytes == 0


@pytest.mark.slow
@pytest.mark.only_soak
def test_disk_usage__later_state_of_a_table_of_snapshots_alone(workspace: Workspace, dataset: Dataset) -> None:
    """The newest version of such a table stays, so it is not counted as one to be freed, once vacuum freed the rest."""
    before = dataset.snapshots()[0].snapshot_id
    dataset.tag(dataset.where([]), "x")
    dataset.snapshot()
    dataset.tag(dataset.where([]), "y")
    dataset.restore(before)
    assert workspace.disk_usage().freeable_bytes > 0
    assert workspace.vacuum(older_than_s=0).skipped == {}
    assert workspace.disk_usage().freeable_bytes == 0
    assert workspace.check().findings == []


@pytest.mark.slow
def test_disk_usage__of_clones(workspace: Workspace, dataset: Dataset) -> None:
    """Files that a clone shares with its source count for both as shared, and once in the total."""
    before = workspace.disk_usage()
    clone = dataset.clone()
    usage = workspace.disk_usage()
    own = [each.total_bytes - each.by_part["catalog"] for each in (before, usage)]
    assert own[0] <= own[1] < own[0] + 10_000
    rows = [row for row in usage.to_arrow().to_pylist() if row["part"] == "embeddings"]
    assert [row["dataset_name"] for row in rows] == [clone.name, "pets"]
    assert all(row["shared_bytes"] == row["bytes"] > 0 for row in rows)
    clone.reindex(thresholds=THRESHOLDS)
    index = {
        row["dataset_name"]: row["shared_bytes"]
        for row in workspace.disk_usage().to_arrow().to_pylist()
        if row["part"] == "index columns"
    }
    assert index[clone.name] == 0
    workspace.delete_dataset("pets")
    assert workspace.disk_usage().to_arrow()["shared_bytes"].to_pylist().count(0) == len(
        workspace.disk_usage().to_arrow()
    )


@pytest.mark.slow
@pytest.mark.only_soak
def test_disk_usage__images(workspace: Workspace, folder: Path) -> None:
    """Uploads, thumbnails, narrow tables and what is left of deleted datasets are told apart."""
    dataset = workspace.create_dataset("pets", folder)
    contents = [encode(photo(500 + number)) for number in range(2)]
    dataset.add_media(files=[(f"{n}.png", data) for n, data in enumerate(contents)], auto_reindex=True)
    dataset.tag(dataset.where([]), "x")
    dataset.map()
    sizes = [len(dataset.thumbnail(each)) for each in dataset.to_arrow(["media_id"])["media_id"].to_pylist()]
    orphan = workspace.path / "datasets" / "00000000-0000-4000-8000-000000000000"
    orphan.mkdir()
    (orphan / "file").write_bytes(bytes(777))
    usage = workspace.disk_usage()
    parts = parts_of(usage)
    assert parts["uploads"] >= sum(map(len, contents))
    assert parts["thumbnails"] == sum(sizes) + 16 * len(sizes)  # each with its checksum
    assert parts["other tables"] > 0
    assert parts["maps"] > 0
    assert parts_of(usage, None)["deleted datasets"] == 777
    assert usage.by_part["deleted datasets"] == 777
    assert usage.total_bytes == sum(usage.by_part.values())


@pytest.mark.slow
@pytest.mark.only_soak
def test_disk_usage__of_files_of_unequal_density(workspace: Workspace) -> None:
    """No part is less than nothing where rows of one file take far more than those of another; the sum is the total."""
    rng = np.random.default_rng(0)
    first = part(ROWS[:200]).append_column("caption", pa.array([rng.bytes(600).hex() for _ in range(200)]))
    dataset = workspace.create_dataset("pets", first, thresholds=THRESHOLDS)
    dataset.add_media(part(ROWS[200:], 200))
    dataset.delete_media(dataset.to_arrow(["media_id"])["media_id"].to_pylist()[350:])
    usage = workspace.disk_usage()
    assert min(usage.to_arrow()["bytes"].to_pylist()) > 0
    assert usage.total_bytes == sum(usage.by_part.values()) == files_of(workspace.path)


def test_disk_usage__of_work_under_way(workspace: Workspace, folder: Path) -> None:
    """Files of a running task count as work under way, not as freeable."""
    gate = Gate()
    dataset = workspace.create_dataset("new", folder, gate, wait=False)
    assert gate.reached.wait(60)
    home = workspace.path / "datasets" / dataset.id / "media.lance"
    home.mkdir(parents=True, exist_ok=True)
    (home / "begun").write_bytes(bytes(999))
    spill = workspace.path / "cache" / "spill" / dataset.id
    spill.mkdir(parents=True, exist_ok=True)
    (spill / "vectors").write_bytes(bytes(1001))
    usage = workspace.disk_usage()
    assert parts_of(usage, "new") == {"work under way": 2000}
    assert usage.freeable_bytes == 0
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait()


def test_disk_usage__shown(workspace: Workspace, dataset: Dataset) -> None:
    """A notebook shows bars for the parts, and the sizes in words; the text says the total."""
    usage = workspace.disk_usage()
    shown = usage._repr_html_()
    assert len(re.findall(r"class='bar'", shown)) == len(usage.by_part)
    assert f">{bytes_text(usage.total_bytes)}<" in shown
    assert f">{bytes_text(usage.by_part['embeddings'])}<" in shown
    assert "pets" in shown
    total, free = bytes_text(usage.total_bytes), bytes_text(usage.freeable_bytes)
    assert repr(usage) == f"<framedex.DiskUsage: {total}, {free} to be freed>"


def test_disk_usage__of_an_empty_workspace_that_is_read(tmp_path: Path) -> None:
    """Without datasets only the catalog takes something; reading suffices."""
    Workspace(tmp_path / "ws", settings=SETTINGS).close()
    with Workspace(tmp_path / "ws", read_only=True, settings=SETTINGS) as workspace:
        usage = workspace.disk_usage()
    assert list(usage.by_part) == ["catalog"]
    assert usage.to_arrow().schema.names == [
        "dataset_id", "dataset_name", "part", "bytes", "shared_bytes", "files",
    ]  # fmt: skip
