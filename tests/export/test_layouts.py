"""Label files lie where trainers look for them: beside the folders of the source, or of the export."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from tests.gallery import Averages
from tests.image_files import photo, write

LAYOUTS = {
    "images": (["images/a.png", "images/sub/b.png"], ["images"]),
    "parts": (["images/train/a.png", "images/val/b.png"], ["images"]),
    "roboflow": (["train/images/a.png", "val/images/b.png"], ["train/images", "val/images"]),
    "flat": (["a.png", "sub/b.png"], ["images"]),
}


def files_of(workspace: Workspace, folder: Path, names: list[str], format_: str, **options: Any) -> dict[str, bytes]:
    """Return the files of an export of images with a box each."""
    for seed, name in enumerate(names):
        write(folder / "source" / name, photo(seed))
    content = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": number, "image_id": number, "category_id": 1, "bbox": [16, 12, 80, 60]}
            for number in range(len(names))
        ],
    }
    (folder / "source" / "annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("d", folder / "source", Averages())
    dataset.export(folder / "out.zip", format_, **options)
    with zipfile.ZipFile(folder / "out.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def label_path(image: str) -> str:
    """Return the path where trainers look for the label file of an image."""
    before, _, after = f"/{image}".rpartition("/images/")
    return f"{before}/labels/{after}".removeprefix("/").replace(".png", ".txt")


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("layout", LAYOUTS)
def test_yolo__without_images_fits_the_source(workspace: Workspace, tmp_path: Path, layout: str) -> None:
    """The label files have the names that trainers derive from the images' paths in the source."""
    names, folders = LAYOUTS[layout]
    files = files_of(workspace, tmp_path, names, "yolo")
    labels = [name for name in files if name.endswith(".txt")]
    assert labels == [label_path(name if layout != "flat" else f"images/{name}") for name in names]
    places = folders[0] if len(folders) == 1 else f"[{', '.join(folders)}]"
    assert files["data.yaml"].decode().splitlines()[:2] == [f"train: {places}", f"val: {places}"]
    assert b"path" not in files["data.yaml"]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("layout", LAYOUTS)
def test_yolo__with_images(workspace: Workspace, tmp_path: Path, layout: str) -> None:
    """In an export with images, each image has its label file, too, and the export comes back."""
    files = files_of(workspace, tmp_path, LAYOUTS[layout][0], "yolo", include_images=True)
    images = [name for name in files if name.endswith(".png")]
    assert len(images) == 2
    assert {label_path(name) for name in images} == {name for name in files if name.endswith(".txt")}
    assert all(name.count("images/") == 1 for name in images)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "out")
    again = workspace.create_dataset("again", tmp_path / "out", Averages())
    assert (again.count(), again.objects.count()) == (2, 2)


@pytest.mark.slow
def test_yolo__names_that_would_share_a_label_file(workspace: Workspace, tmp_path: Path) -> None:
    """Images that would share a label file, once folders are left out, get names of their own."""
    names = ["x.png", "images/x.png", "images/y.png"]
    files = files_of(workspace, tmp_path, names, "yolo", include_images=True)
    images = [name for name in files if name.endswith(".png")]
    assert "images/y.png" in images
    assert {label_path(name) for name in images} == {name for name in files if name.endswith(".txt")}
    assert len(images) == len(set(images)) == 3


def test_voc__whole_numbers_stay(workspace: Workspace, tmp_path: Path) -> None:
    """Edges are whole where the box is; boxes with fractions are counted in the message."""
    files = files_of(workspace, tmp_path, ["a.png"], "voc")
    for edge, value in {"xmin": 17, "ymin": 13, "xmax": 96, "ymax": 72}.items():
        assert f"<{edge}>{value}</{edge}>" in files["a.xml"].decode()
