"""Ingestion of an unpacked export restores labels and captions."""

import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Dataset, Workspace
from framedex.annotations.sources import read_annotations
from tests.boxes import ANNOTATION_EXPORTS
from tests.gallery import Averages, Gallery, embedded
from tests.image_files import encode, flat, photo, write


@dataclass(frozen=True)
class Item:
    """An image with its annotations."""

    labels: tuple[str, ...]
    caption: str | None


def image(number: int) -> bytes:
    """Return an image that encodes its number, with any suffix."""
    return encode(flat((number, 255 - number, 128), width=8, height=8))


def fill(folder: Path, items: dict[str, Item]) -> None:
    """Write images, and a table of their annotations."""
    for number, path in enumerate(items):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(image(number))
    columns: dict[str, Any] = {
        "filename": list(items),
        "label": pa.array([item.labels for item in items.values()], pa.list_(pa.string())),
        "caption": pa.array([item.caption for item in items.values()], pa.string()),
    }
    pq.write_table(pa.table(columns), folder / "image_annotations.parquet")


def content(dataset: Dataset) -> dict[bytes, Item]:
    """Return the content of a dataset by image."""
    rows = dataset.to_arrow(["file_path", "labels", "caption"]).to_pylist()
    found = {Path(row["file_path"]).read_bytes(): Item(tuple(row["labels"]), row["caption"]) for row in rows}
    assert len(found) == len(rows)
    return found


def unpacked(dataset: Dataset, folder: Path, format_: str) -> Path:
    """Return the folder of an unpacked export with images."""
    folder.mkdir(exist_ok=True)
    dataset.export(folder / "out.zip", format_, include_images=True)
    with zipfile.ZipFile(folder / "out.zip") as archive:
        assert archive.testzip() is None
        assert len(set(archive.namelist())) == len(archive.namelist())
        archive.extractall(folder / "out")
    return folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("format_", ANNOTATION_EXPORTS)
def test_round_trip__gallery(gallery: Gallery, workspace: Workspace, tmp_path: Path, format_: str) -> None:
    """The gallery is restored under its names, including broken files."""
    folder = unpacked(gallery.dataset, tmp_path, format_)
    again = workspace.create_dataset("again", folder)
    rows = again.to_arrow(["image_filename", "labels", "caption", "width"]).to_pylist()
    for row in rows:
        row["image_filename"] = row["image_filename"].removeprefix("images/")
    before = gallery.dataset.to_arrow(["image_filename", "labels", "caption", "width"]).to_pylist()
    assert rows == before


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["coco", "csv"])
def test_label_file__beside_the_original_images(
    gallery: Gallery, workspace: Workspace, tmp_path: Path, format_: str
) -> None:
    """Without images, the label file fits the original folder."""
    gallery.dataset.export(tmp_path / "out.zip", format_)
    shutil.copytree(gallery.folder, tmp_path / "copy")
    (tmp_path / "copy" / "image_annotations.csv").unlink()
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist()[0].endswith(("annotations.json", "image_annotations.csv"))
        archive.extractall(tmp_path / "copy")
    again = workspace.create_dataset("again", tmp_path / "copy")
    columns = ["image_filename", "labels", "caption"]
    assert again.to_arrow(columns).equals(gallery.dataset.to_arrow(columns))
    assert not again.skipped.get("annotations without an image")


def test_yolo__images_of_one_stem(workspace: Workspace, tmp_path: Path) -> None:
    """Images that differ in the suffix only, so that their label files would clash, get distinct names."""
    items = {"a.png": Item(("cat",), None), "a.jpg": Item(("dog",), None), "b.png": Item((), None)}
    fill(tmp_path / "source", items)
    dataset = workspace.create_dataset("d", tmp_path / "source", Averages())
    folder = unpacked(dataset, tmp_path, "yolo")
    names = sorted(path.name for path in (folder / "images").iterdir())
    assert "b.png" in names
    assert len({name.partition(".")[0] for name in names}) == 3
    files = [*(folder / "labels").iterdir()]
    assert sorted(path.stem for path in files) == sorted(name.partition(".")[0] for name in names)
    assert [path.stem for path in files if not path.stat().st_size] == ["b"]


def test_yolo__files(gallery: Gallery, tmp_path: Path) -> None:
    """Class names are listed; each image label is a box around the image; a table has labels and captions, too."""
    result = gallery.dataset.export(tmp_path / "out.zip", "yolo")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.read("data.yaml").decode() == (
            'train: images\nval: images\nnc: 3\nnames:\n  0: "animal"\n  1: "fur"\n  2: "town"\n'
        )
        assert archive.read("labels/animals/00.txt") == b"0 0.5 0.5 1 1\n1 0.5 0.5 1 1\n"
        assert archive.read("labels/towns/03.txt") == b"2 0.5 0.5 1 1\n"
        empty = [name for name in archive.namelist() if not archive.read(name)]
        assert len(archive.namelist()) == 1 + 24 + len(empty) + 1 == 1 + gallery.dataset.count() + 1
    assert result.message == f"{gallery.dataset.count()} media"


@pytest.mark.slow
def test_csv__cells(workspace: Workspace, tmp_path: Path) -> None:
    """A row has the image's name, its labels as a JSON array, and its caption, marked if it looks like a formula."""
    table = embedded([[1, 0], [0, 1]], label=['["a", "=1,2"]', None], caption=["=cmd\n", None])
    workspace.create_dataset("d", table).export(tmp_path / "out.zip", "csv")
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist() == ["image_annotations.csv"]
        assert archive.read("image_annotations.csv") == (
            b'filename,label,caption\r\n"0.jpg","[""a"", ""=1,2""]","\'=cmd\n"\r\n"1.jpg",,\r\n'
        )


@pytest.mark.slow
def test_coco__parts(workspace: Workspace, tmp_path: Path) -> None:
    """Numbers start with 1; labels have boxes around their images; captions have a file without categories."""
    from tests.export.test_archive import strict_json

    table = embedded(
        [[1, 0], [0, 1]], label=[["b", "a"], ["b"]], caption=[None, "c"], width=[3, None], height=[2, None]
    )
    dataset = workspace.create_dataset("d", table)
    dataset.export(tmp_path / "out.zip", "coco", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        found, captions = (strict_json(archive.read(name)) for name in ("annotations.json", "captions.json"))
    ids = dataset.where([]).media_ids()
    label = {"iscrowd": 0, "segmentation": [], "image_label": True}
    assert captions == {
        **{key: found[key] for key in ("info", "licenses", "images")},
        "annotations": [{"id": 1, "image_id": 2, "caption": "c"}],
    }
    assert found == {
        "info": {"description": "d", "contributor": "tester@example.org"},
        "licenses": [],
        "categories": [{"id": 1, "name": "a", "supercategory": ""}, {"id": 2, "name": "b", "supercategory": ""}],
        "images": [
            {"id": 1, "file_name": "images/0.jpg", "width": 3, "height": 2, "media_id": ids[0]},
            {"id": 2, "file_name": "images/1.jpg", "width": None, "height": None, "media_id": ids[1]},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 2, "bbox": [0, 0, 3, 2], "area": 6, **label},
            {"id": 2, "image_id": 1, "category_id": 1, "bbox": [0, 0, 3, 2], "area": 6, **label},
            {"id": 3, "image_id": 2, "category_id": 2, "bbox": [0, 0, 0, 0], "area": 0, **label},
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize("format_", ANNOTATION_EXPORTS)
def test_label_formats__nothing(gallery: Gallery, tmp_path: Path, format_: str) -> None:
    """An empty export is valid."""
    result = gallery.dataset.where([{"any": []}]).export(tmp_path / "out.zip", format_, include_images=True)
    assert result.message == "0 media, 0 images"
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "out")
    found = read_annotations(str(tmp_path / "out"))
    assert (found.labels, found.captions) == ({}, {})


@pytest.mark.parametrize("format_", ANNOTATION_EXPORTS)
def test_round_trip__hidden_images_and_odd_suffixes(workspace: Workspace, tmp_path: Path, format_: str) -> None:
    """Images that ingestion of a folder would skip get names that it reads."""
    names = [".hidden/a.png", "b/.a.png", "none", "other.dat", "long-suffix.thisisnoimagesuffix"]
    for number, name in enumerate(names):
        write(tmp_path / "source" / name, photo(number), "PNG")
    lines = "".join(f'source/{name},"[""label {number}""]"\n' for number, name in enumerate(names))
    (tmp_path / "list.csv").write_text("path,label\n" + lines)
    dataset = workspace.create_dataset("d", tmp_path / "list.csv")
    again = workspace.create_dataset("again", unpacked(dataset, tmp_path, format_))
    assert content(again) == content(dataset)
    assert len(content(again)) == len(names)
