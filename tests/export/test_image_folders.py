"""The export for torchvision's ImageFolder: what is in it, and what is left out."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, Workspace, vql
from framedex.export.image_folders import class_folders
from tests.gallery import Averages
from tests.image_files import photo, write
from tests.prepared import prepared

LABELS = {"a/1.png": "cat", "b/1.png": "cat", "2.png": "dog/wolf", "3.png": '["cat", "dog/wolf"]', "4.png": ""}


def _made(workspace: Workspace, folder: Path) -> Dataset:
    for seed, name in enumerate(LABELS):
        write(folder / name, photo(seed))
    rows = [f'{name},"{label.replace(chr(34), chr(34) * 2)}"' for name, label in LABELS.items()]
    (folder / "image_annotations.csv").write_text("\n".join(["filename,label", *rows]) + "\n")
    (folder / "object_annotations.csv").write_text(
        "filename,col_x,row_y,width,height,label\n2.png,1.5,2,30,20,ear\n4.png,0,0,50,60,tail\n2.png,5,5,9,9,ear\n"
    )
    return prepared(workspace, "d", folder, Averages())


@pytest.mark.slow
def test_folders__of_classes(workspace: Workspace, tmp_path: Path) -> None:
    """Images of one label are in its folder, whatever is asked for; the others are counted in the message."""
    dataset = _made(workspace, tmp_path / "source")
    result = dataset.export(tmp_path / "out.zip", "imagefolder")
    assert result.message == "5 media, 3 objects, 3 images; 1 image without a label is left out; " + (
        "1 image with several labels is left out"
    )
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        names = archive.namelist()
        assert archive.read("dog_wolf/2.png") == (tmp_path / "source" / "2.png").read_bytes()
    ids = [dataset.media_id(name)[:8] for name in ("a/1.png", "b/1.png")]
    assert sorted(names) == sorted([*(f"cat/1-{each}.png" for each in ids), "dog_wolf/2.png"])
    parts = {"train": vql.labels("cat"), "val": vql.labels("dog/wolf") & ~vql.labels("cat")}
    divided = dataset.export(tmp_path / "parts.zip", "imagefolder", split=parts)
    with zipfile.ZipFile(tmp_path / "parts.zip") as archive:
        assert {name.rpartition("/")[0] for name in archive.namelist()} == {"train/cat", "val/dog_wolf"}
    assert "not each part has each class, so ImageFolder numbers them differently in train, val" in divided.message


@pytest.mark.slow
@pytest.mark.only_soak
def test_folders__of_crops(workspace: Workspace, tmp_path: Path) -> None:
    """An export of objects has the pixels of each crop, as ds.read returns them."""
    dataset = _made(workspace, tmp_path / "source")
    result = dataset.objects.export(tmp_path / "out.zip", "imagefolder")
    assert result.images == 3
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    rows = dataset.objects.to_arrow(["media_id", "labels", "image_filename"]).to_pylist()
    assert len(content) == 3
    for row in rows:
        stem = row["image_filename"].removesuffix(".png")
        data = content[f"{row['labels'][0]}/{stem}-{row['media_id'][:13]}.png"]
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), dataset.read(row["media_id"]))


@pytest.mark.parametrize(
    ("labels", "folders"),
    [
        (["cat", "Cat", "CAT"], ["cat", "Cat-2", "CAT-3"]),
        (["../x", "..", "", "a/b", "a\\b"], ["_x", "_", "_-2", "a_b", "a_b-2"]),
        (["ü", "u\u0308", "x" * 300, "\N{PILE OF POO}\0"], ["ü", "u\u0308-2", "x" * 200, "\N{PILE OF POO}_"]),
    ],
)
def test_class_folders__are_distinct_everywhere(labels: list[str], folders: list[str]) -> None:
    """Labels that are no folder names, or that some system takes for others, get names of their own."""
    assert list(class_folders(labels).values()) == folders
