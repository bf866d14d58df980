"""Classes and images keep the ids, names and order of their source, in each view and after each change."""

import csv
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.annotations.class_names import read_class_names
from tests.gallery import SETTINGS, Averages
from tests.image_files import photo, write

NAMES = ["a.png", "b.png", "c.png"]
CATEGORIES = [
    {"id": 18, "name": "dog", "supercategory": "animal"},
    {"id": 1, "name": "person", "supercategory": "person", "keypoints": ["nose"], "skeleton": [[1, 1]]},
    {"id": 17, "name": "cat", "supercategory": "animal"},
    {"id": 90, "name": "zebra"},
]
IDS = {"a.png": 139, "b.png": 7, "c.png": 80_000_000_001}
COCO: dict[str, Any] = {
    "images": [{"id": IDS[name], "file_name": name, "width": 160, "height": 120} for name in NAMES],
    "annotations": [
        {"id": 5, "image_id": 139, "category_id": 17, "bbox": [10, 10, 40, 30]},
        {"id": 6, "image_id": 7, "category_id": 18, "bbox": [10, 10, 40, 30]},
    ],
    "categories": CATEGORIES,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images."""
    for seed, name in enumerate(NAMES):
        write(tmp_path / "images" / name, photo(seed))
    return tmp_path / "images"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """The images with the COCO file beside them."""
    (folder / "annotations.json").write_text(json.dumps(COCO))
    return workspace.create_dataset("pets", folder, Averages())


def coco_of(view: Any, path: Path) -> dict[str, Any]:
    """Return the COCO file of an export."""
    view.export(path / "out.zip", "coco")
    with zipfile.ZipFile(path / "out.zip") as archive:
        found: dict[str, Any] = json.loads(archive.read("annotations.json"))
    return found


def categories(view: Any, path: Path) -> dict[str, int]:
    """Return the ids of the exported categories by name, in order."""
    return {each["name"]: each["id"] for each in coco_of(view, path)["categories"]}


def yolo_names(view: Any, path: Path) -> dict[int, str] | None:
    """Return the class names of a YOLO export."""
    view.export(path / "out.zip", "yolo")
    with zipfile.ZipFile(path / "out.zip") as archive:
        archive.extract("data.yaml", path)
    return read_class_names(path / "data.yaml")


@pytest.mark.slow
def test_coco__ids_of_any_length(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """Ids of categories, images and boxes stay numbers as long as they are; new ones do not follow the longest."""
    content = {
        "images": [{"id": 2**63 - 1, "file_name": "a.png"}, {"id": 4, "file_name": "b.png"}],
        "annotations": [{"id": 2**64, "image_id": 2**63 - 1, "category_id": 2**60, "bbox": [10, 10, 40, 30]}],
        "categories": [{"id": 2**60, "name": "dog"}, {"id": 7, "name": "cat"}],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    (folder / "object_annotations.csv").write_text("filename,col_x,row_y,width,height,label\nb.png,1,2,30,40,cow\n")
    found = coco_of(workspace.create_dataset("pets", folder, Averages()), tmp_path)
    assert {each["name"]: each["id"] for each in found["categories"]} == {"dog": 2**60, "cat": 7, "cow": 8}
    assert [each["id"] for each in found["images"]] == [2**63 - 1, 4, 5]
    assert [each["id"] for each in found["annotations"]] == [2**64, 1]


OF_SOURCE = {"dog": 18, "person": 1, "cat": 17, "zebra": 90}


@pytest.mark.slow
def test_coco__categories_of_the_source(dataset: Dataset, tmp_path: Path) -> None:
    """Ids, names, order, superior classes and key points stay, also of classes without an object."""
    found = coco_of(dataset, tmp_path)
    assert found["categories"] == [{"supercategory": "", **each} for each in CATEGORIES]
    assert {each["file_name"]: each["id"] for each in found["images"]} == IDS
    assert [(each["id"], each["image_id"], each["category_id"]) for each in found["annotations"]] == [
        (5, 139, 17), (6, 7, 18)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.only_soak
def test_classes__are_the_same_in_every_view(dataset: Dataset, tmp_path: Path) -> None:
    """A view of one class, of one image or of nothing has the class list of the dataset."""
    views = [dataset.objects.where([{"labels": {"op": "is", "value": "cat"}}]), dataset.where([{"any": []}]), dataset]
    for view in views:
        assert categories(view, tmp_path) == OF_SOURCE
        assert yolo_names(view, tmp_path) == dict(enumerate(OF_SOURCE))


@pytest.mark.slow
def test_images__keep_their_ids_in_every_view(dataset: Dataset, tmp_path: Path) -> None:
    """The id of an image does not depend on the selection."""
    only_b = dataset.where([{"file_name": {"op": "is", "value": "b.png"}}])
    assert [each["id"] for each in coco_of(only_b, tmp_path)["images"]] == [7]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["boxes", "add_objects"])
def test_coco__a_file_from_elsewhere(workspace: Workspace, folder: Path, tmp_path: Path, way: str) -> None:
    """The lists of a file that is named at creation, or added later, are kept, too; names may have other folders."""
    images = [{**each, "file_name": f"val/{each['file_name']}"} for each in COCO["images"]]
    path = tmp_path / "instances.json"
    path.write_text(json.dumps({**COCO, "images": images}))
    dataset = workspace.create_dataset("pets", folder, Averages(), boxes=path if way == "boxes" else None)
    if way == "add_objects":
        dataset.add_objects(path)
    found = coco_of(dataset, tmp_path)
    assert {each["name"]: each["id"] for each in found["categories"]} == OF_SOURCE
    assert {each["file_name"]: each["id"] for each in found["images"]} == IDS


@pytest.mark.slow
@pytest.mark.only_soak
def test_yolo__classes_without_objects_keep_their_numbers(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """The class list of a YOLO folder comes back whole and in its order, and its numbers are the ids in COCO files."""
    names = ["person", "dog", "aardvark", "cat"]
    lines = "".join(f"  {number}: {name}\n" for number, name in enumerate(names))
    (folder / "data.yaml").write_text(f"names:\n{lines}")
    (folder / "labels").mkdir()
    (folder / "labels" / "a.txt").write_text("3 0.5 0.5 0.25 0.25\n")
    for name in NAMES:
        (folder / "images").mkdir(exist_ok=True)
        (folder / name).rename(folder / "images" / name)
    dataset = workspace.create_dataset("pets", folder, Averages())
    assert yolo_names(dataset, tmp_path) == dict(enumerate(names))
    assert categories(dataset, tmp_path) == {name: number for number, name in enumerate(names)}
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert "annotations.json" in archive.namelist()
    dataset.export(tmp_path / "yolo.zip", "yolo")
    with zipfile.ZipFile(tmp_path / "yolo.zip") as archive:
        assert archive.read("labels/a.txt") == b"3 0.5 0.5 0.25 0.25\n"


def table(path: Path, *rows: tuple[str, int, str]) -> Path:
    """Write a table of boxes: image, left edge, label."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filename", "col_x", "row_y", "width", "height", "label"])
        writer.writerows([name, x, 5, 30, 30, label] for name, x, label in rows)
    return path


@pytest.mark.slow
@pytest.mark.only_soak
def test_classes__new_ones_get_the_next_ids(dataset: Dataset, tmp_path: Path) -> None:
    """Classes of later tables follow in alphabetical order; nothing moves, also when all of a class is deleted."""
    dataset.add_objects(table(tmp_path / "more.csv", ("c.png", 3, "yak"), ("c.png", 50, "ape"), ("a.png", 3, "cat")))
    after = {**OF_SOURCE, "ape": 91, "yak": 92}
    assert categories(dataset, tmp_path) == after
    dataset.delete_media(dataset.where([{"file_name": {"op": "is", "value": "c.png"}}]).media_ids())
    assert categories(dataset, tmp_path) == after
    dataset.add_objects(table(tmp_path / "last.csv", ("a.png", 90, "bee")))
    assert categories(dataset, tmp_path) == {**after, "bee": 93}
    assert yolo_names(dataset, tmp_path) == dict(enumerate([*after, "bee"]))


@pytest.mark.slow
@pytest.mark.only_soak
def test_classes__of_images_are_no_classes_of_boxes(dataset: Dataset, tmp_path: Path) -> None:
    """A label that only images have is not in the class list of boxes until a box has it; its id is its own."""
    dataset.set_labels(dataset.where([]), ["night"])
    assert categories(dataset, tmp_path) == OF_SOURCE
    dataset.add_objects(table(tmp_path / "more.csv", ("c.png", 3, "yak")))
    dataset.add_objects(table(tmp_path / "last.csv", ("c.png", 50, "night")))
    assert categories(dataset, tmp_path) == {**OF_SOURCE, "yak": 92, "night": 91}
    assert yolo_names(dataset, tmp_path) == dict(enumerate([*OF_SOURCE, "yak", "night"]))


@pytest.mark.slow
def test_classes__of_several_sources(dataset: Dataset, tmp_path: Path) -> None:
    """A class of a second file keeps its id if it is free; the ids of the first file stay."""
    other = {
        **COCO,
        "categories": [{"id": 17, "name": "emu"}, {"id": 300, "name": "owl"}, {"id": 5, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 139, "category_id": 17, "bbox": [1, 1, 9, 9]}],
    }
    (tmp_path / "other.json").write_text(json.dumps(other))
    dataset.add_objects(tmp_path / "other.json")
    assert categories(dataset, tmp_path) == {**OF_SOURCE, "emu": 301, "owl": 300}


@pytest.mark.slow
@pytest.mark.only_soak
def test_classes__come_with_clones_and_snapshots(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A restored snapshot has the list of then, and a clone has the list and the image ids of its source."""
    kept = dataset.snapshot("kept")
    dataset.add_objects(table(tmp_path / "more.csv", ("c.png", 3, "yak")))
    assert categories(dataset, tmp_path)["yak"] == 91
    dataset.restore(kept)
    assert categories(dataset, tmp_path) == OF_SOURCE
    clone = dataset.clone(kept)
    found = coco_of(clone, tmp_path)
    assert {each["name"]: each["id"] for each in found["categories"]} == OF_SOURCE
    assert {each["file_name"]: each["id"] for each in found["images"]} == IDS


@pytest.mark.slow
@pytest.mark.only_soak
def test_classes__are_recovered(workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
    """A rebuilt catalog knows the list and the ids."""
    workspace.close()
    (tmp_path / "workspace" / "catalog.db").unlink()
    Workspace.recover(tmp_path / "workspace")
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as again:
        found = coco_of(again.dataset("pets"), tmp_path)
    assert {each["name"]: each["id"] for each in found["categories"]} == OF_SOURCE
    assert {each["file_name"]: each["id"] for each in found["images"]} == IDS


@pytest.mark.slow
@pytest.mark.only_soak
def test_images__without_an_id_get_higher_ones(dataset: Dataset, folder: Path, tmp_path: Path) -> None:
    """Images that the file does not name are numbered above the others; a changed file keeps its id."""
    write(folder / "d.png", photo(9))
    write(folder / "a.png", photo(8))
    dataset.add_media(folder)
    (folder / "annotations.json").unlink()
    write(folder / "b.png", photo(7))
    dataset.add_media(folder)
    found = {each["file_name"]: each["id"] for each in coco_of(dataset, tmp_path)["images"]}
    assert found == {**IDS, "d.png": IDS["c.png"] + 1}


@pytest.mark.slow
@pytest.mark.only_soak
def test_images__that_share_an_id(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """If two images match one id, the first keeps it, and ids stay distinct in each selection."""
    write(folder / "sub" / "a.png", photo(5))
    (folder / "annotations.json").write_text(json.dumps(COCO))
    dataset = workspace.create_dataset("pets", folder, Averages())
    ids = {each["file_name"]: each["id"] for each in coco_of(dataset, tmp_path)["images"]}
    assert sorted(ids) == sorted([*NAMES, "sub/a.png"])
    assert len(set(ids.values())) == 4
    assert {ids["a.png"], ids["sub/a.png"]} == {139, IDS["c.png"] + 1}
