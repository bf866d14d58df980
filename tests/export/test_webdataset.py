"""The export as WebDataset: shards of samples with equal files."""

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from tests.gallery import Averages
from tests.image_files import photo, write
from tests.prepared import prepared
from tests.tuning import Tuning

NAMES = ["a.b/ü 1.v2.jpg", "2.png", "3.png"]


def _export(workspace: Workspace, folder: Path, **options: Any) -> dict[str, list[tuple[str, bytes]]]:
    for seed, name in enumerate(NAMES):
        write(folder / "source" / name, photo(seed))
    rows = ["filename,label,caption", f"{NAMES[0]},cat,a cat", "2.png,dog,", "3.png,cat,"]
    (folder / "source" / "image_annotations.csv").write_text("\n".join(rows) + "\n")
    (folder / "source" / "object_annotations.csv").write_text(
        f"filename,col_x,row_y,width,height,label\n{NAMES[0]},1.5,2,30,20,ear\n"
    )
    dataset = prepared(workspace, "d", folder / "source", Averages())
    dataset.export(folder / "out.zip", "webdataset", **options)
    with zipfile.ZipFile(folder / "out.zip") as archive:
        archive.extractall(folder / "out")
        return {name: _members(archive.read(name)) for name in archive.namelist() if name.endswith(".tar")}


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(each.name, tar.extractfile(each).read()) for each in tar]  # type: ignore[union-attr] # files alone


@pytest.mark.slow
def test_shards__hold_equal_samples(workspace: Workspace, tmp_path: Path) -> None:
    """A sample has its image unchanged, its class, its caption and all else as JSON, under a key without dots."""
    shards = _export(workspace, tmp_path)
    assert list(shards) == ["data-000000.tar"]
    (members,) = shards.values()
    assert [name for name, _ in members[:4]] == [f"000000000.{each}" for each in ("png", "json", "cls", "txt")]
    content = dict(members)
    key = next(name[:9] for name, data in members if name.endswith(".json") and "ü" in json.loads(data)["file_name"])
    about = json.loads(content[f"{key}.json"])
    assert content[f"{key}.jpg"] == (tmp_path / "source" / NAMES[0]).read_bytes()
    assert (about["file_name"], about["labels"], about["width"]) == (NAMES[0], ["cat"], 160)
    assert about["objects"][0]["bbox"] == [1.5, 2.0, 30.0, 20.0]
    classes = json.loads((tmp_path / "out" / "classes.json").read_text())
    assert (classes[int(content[f"{key}.cls"])], content[f"{key}.txt"]) == ("cat", b"a cat")


def test_shards__of_parts(workspace: Workspace, tmp_path: Path) -> None:
    """Each part has shards of its own; each image is in one of them."""
    shards = _export(workspace, tmp_path, split={"train": 0.5, "val": 0.5})
    assert set(shards) == {"train-000000.tar", "val-000000.tar"}
    assert sum(name.endswith(".json") for members in shards.values() for name, _ in members) == 3


@pytest.mark.slow
def test_shards__are_limited(workspace: Workspace, tmp_path: Path, tuning: Tuning) -> None:
    """A shard that has its bytes is followed by another; keys go on."""
    tuning.shard_bytes = 1
    shards = _export(workspace, tmp_path)
    assert list(shards) == [f"data-{number:06}.tar" for number in range(3)]
    assert [members[0][0] for members in shards.values()] == ["000000000.png", "000000001.png", "000000002.jpg"]
