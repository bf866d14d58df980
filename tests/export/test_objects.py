"""Exports of images with their objects, and of selected objects."""

import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.core.ids import Kind, group_id
from framedex.export.formats import FORMATS
from framedex.export.object_columns import OBJECT, OBJECT_ROWS, object_columns
from framedex.issue_types import valued_types
from framedex.records import ExportStatus
from framedex.storage.objects import objects_of
from tests.api.test_dataset__export import names_in, paused
from tests.export.test_archive import read_json
from tests.gallery import SETTINGS, Averages, fill
from tests.image_files import photo, write
from tests.inside import stored_media
from tests.prepared import prepared
from tests.tuning import Tuning

SIZE = (160, 120)
BOXES: dict[str, list[tuple[str, list[float], int | str, int, float | None]]] = {
    "a.png": [("cat", [10.5, 20, 40, 30.25], 7, 0, None), ("dog", [80, 10, 60, 90], 90, 1, 0.75)],
    "c.png": [
        ("dog", [0, 0, 160, 120], "x", 0, None),
        ("cat", [1, 2, 30, 40], 12, 0, None),
        ("cat", [1, 2, 30, 40], 12, 0, None),
    ],
}
"""By image: label, box, id, whether it is around a crowd, and confidence."""
NAMES = ["a.png", "b.png", "c.png"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Three images, two of them with objects; with labels, a caption and a tag."""
    home = tmp_path_factory.mktemp("objects")
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", coco_folder(home / "images"), Averages())
        dataset.set_labels(dataset.where([{"file_name": {"op": "is", "value": "a.png"}}]), ["pet", "dog"])
        yield dataset


def coco_folder(folder: Path) -> Path:
    """Write the images, and their annotations as a COCO file."""
    for seed, name in enumerate(NAMES):
        write(folder / name, photo(seed))
    annotations = [
        {"id": id_, "image_id": NAMES.index(name), "category_id": label, "bbox": box, "iscrowd": crowd}
        | ({} if confidence is None else {"score": confidence})
        for name, boxes in BOXES.items()
        for label, box, id_, crowd, confidence in boxes
    ]
    content = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(NAMES)],
        "categories": [{"id": name, "name": name} for name in ("cat", "dog")],
        "annotations": [*annotations[::2], *annotations[1::2]],  # those of an image are not beside each other
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def exported(dataset: Dataset, path: Path, format_: str, **options: Any) -> dict[str, bytes]:
    """Return the files of an export."""
    dataset.export(path / "out.zip", format_, **options)
    with zipfile.ZipFile(path / "out.zip") as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def parquet(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(files["metadata.parquet"])).to_pylist()
    return rows


def of_type(item: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each["properties"] for each in item["metadata_items"] if each["type"] == kind]


def object_ids(dataset: Dataset) -> dict[tuple[str, str, tuple[float, ...]], str]:
    """Return the ids of objects by image, label and box."""
    media = stored_media(dataset)
    objects = objects_of(media)
    assert objects is not None
    names = {row["media_id"]: row["path"] for row in media.table.scan(["media_id", "path"]).read_all().to_pylist()}
    columns = ["media_id", "parent_id", "labels", "box_x", "box_y", "box_width", "box_height"]
    return {
        (
            names[row["parent_id"]],
            row["labels"][0],
            (row["box_x"], row["box_y"], row["box_width"], row["box_height"]),
        ): row["media_id"]
        for row in objects.table.scan(columns).read_all().to_pylist()
    }


@pytest.mark.slow
def test_json__object_labels(dataset: Dataset, tmp_path: Path) -> None:
    """Each image has an item for each of its objects, in annotation order, beside its own labels."""
    dataset.export(tmp_path / "out.zip")
    items = {item["file_name"]: item for item in read_json(tmp_path / "out.zip")["media_items"]}
    ids = object_ids(dataset)
    cat, dog = of_type(items["a.png"], "object_label")
    (score,) = [cat.pop("uniqueness_score")]
    assert 0 <= score <= 1
    assert len(str(cat.pop("cluster_id"))) == 36
    assert cat == {
        "object_id": ids["a.png", "cat", (10.5, 20, 40, 30.25)],
        "original_id": "7",
        "category_name": "cat",
        "source": "coco",
        "bbox": [10.5, 20, 40, 30.25],
        "confidence": None,
        "iscrowd": False,
        "truncated": False,
        "difficult": False,
        "attributes": None,
        "segmentation": None,
        "keypoints": None,
        "area": None,
        "url": f"{items['a.png']['url']}#xywh=10,20,41,31",
        "metadata_items": cat["metadata_items"],
    }
    assert (dog["original_id"], dog["confidence"], dog["iscrowd"]) == ("90", 0.75, True)
    assert dog["url"].endswith("#xywh=80,10,60,90")
    assert [each["category_name"] for each in of_type(items["a.png"], "image_label")] == ["pet", "dog"]
    assert of_type(items["b.png"], "object_label") == []
    assert [each["original_id"] for each in of_type(items["c.png"], "object_label")] == ["x", "12", "12"]


@pytest.mark.slow
def test_json__issues_of_objects(dataset: Dataset, tmp_path: Path) -> None:
    """Objects have their own items; equal boxes are duplicates, in a group of objects."""
    dataset.export(tmp_path / "out.zip")
    items = read_json(tmp_path / "out.zip")["media_items"]
    of_objects = [each for item in items for each in of_type(item, "object_label")]
    groups = [
        [issue["duplicate_group_id"] for issue in of_type(each, "issue") if issue["issue_type"] == "duplicates"]
        for each in of_objects
    ]
    equal = [group for each, group in zip(of_objects, groups, strict=True) if each["original_id"] == "12"]
    assert len(equal) == 2
    assert equal[0] == equal[1] != []
    of_media = {issue.get("duplicate_group_id") for item in items for issue in of_type(item, "issue")}
    assert not of_media & {*equal[0]}


def test_parquet__objects_of_media(dataset: Dataset, tmp_path: Path) -> None:
    """A row is an image, with a list and the number of its objects."""
    rows = {row["image_filename"]: row for row in parquet(exported(dataset, tmp_path, "parquet"))}
    assert {name: row["n_objects"] for name, row in rows.items()} == {"a.png": 2, "b.png": 0, "c.png": 3}
    assert rows["b.png"]["objects"] == []
    assert list(rows["a.png"]["objects"][0]) == [*OBJECT.names, *valued_types()]
    values = dataset.objects.to_arrow(["media_id", *valued_types()]).to_pylist()
    objects = {each["object_id"]: each for row in rows.values() for each in row["objects"]}
    for row in values:
        assert [objects[row["media_id"]][name] for name in valued_types()] == [row[name] for name in valued_types()]
    found = {name: [(each["label"], each["bbox"]) for each in row["objects"]] for name, row in rows.items()}
    assert found == {name: [(label, box) for label, box, *_ in BOXES.get(name, [])] for name in NAMES}
    assert [each["confidence"] for each in rows["a.png"]["objects"]] == [None, 0.75]


def test_parquet__a_row_an_object(dataset: Dataset, tmp_path: Path) -> None:
    """In an export of objects, a row is an object, with its image's id and name."""
    files = exported(dataset, tmp_path, "parquet", entity_type="OBJECTS")
    assert pq.read_schema(io.BytesIO(files["metadata.parquet"])).names == [*OBJECT_ROWS.names, *valued_types()]
    rows = parquet(files)
    names = ["blur", "outliers"]
    values = dataset.objects.to_arrow(["media_id", *names]).to_pylist()
    assert {row["object_id"]: [row[each] for each in names] for row in rows} == {
        row["media_id"]: [row[each] for each in names] for row in values
    }
    ids, media = object_ids(dataset), dict(zip(dataset.where([]).media_ids(), NAMES, strict=True))
    assert {(row["image_filename"], row["label"], tuple(row["bbox"])): row["object_id"] for row in rows} == ids
    assert all(media[row["media_id"]] == row["image_filename"] for row in rows)
    assert len(rows) == 5
    (dog,) = (row for row in rows if row["original_id"] == "90")
    assert (dog["width"], dog["height"], dog["media_type"], dog["source"]) == (60, 90, "image", "coco")


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("format_", [each for each in FORMATS if each != "imagefolder"])  # whose images are crops
def test_export__counts(dataset: Dataset, tmp_path: Path, format_: str) -> None:
    """Media and objects are counted separately; an export of objects counts objects."""
    result = dataset.export(tmp_path / "out.zip", format_, include_images=True)
    assert (result.total_media_items, result.total_objects, result.images) == (3, 5, 3)
    assert result.message.startswith("3 media, 5 objects, 3 images")
    assert dataset.exports()[0].entities_count == 3
    result = dataset.export(tmp_path / "out.zip", format_, include_images=True, entity_type="OBJECTS")
    assert (result.total_media_items, result.total_objects, result.images) == (2, 5, 2)
    assert result.message.startswith("5 objects in 2 media, 2 images")
    assert dataset.exports()[0].entities_count == 5
    if FORMATS[format_].pack is not None:  # images are in files of the format
        return
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert len([name for name in archive.namelist() if name.endswith(".png")]) == 2


@pytest.mark.slow
def test_export__what_a_format_does_not_hold(dataset: Dataset, tmp_path: Path) -> None:
    """Data that a format cannot hold are listed."""

    def said(format_: str) -> str:
        return dataset.export(tmp_path / "out.zip", format_).message.removeprefix("3 media, 5 objects")

    lost = "; 5 ids are left out: {0} files hold none; 1 crowd flag is left out: {0} files hold none"
    assert said("json") == said("parquet") == ""
    ids = "; 3 image ids are left out: this format holds none"
    hugging_face = lost.replace("; 1 crowd", "; 1 confidence is left out: {0} files hold none; 1 crowd")
    assert said("huggingface") == said("huggingface_parquet") == f", 3 images{hugging_face}{ids}".format("Hugging Face")
    assert said("coco") == "; 1 annotation has a new id, because others have theirs"
    confidence = "; 1 confidence is left out: {0} files hold none"
    assert said("csv") == lost.format("CSV") + ids
    assert said("yolo") == (lost + confidence).format("YOLO") + ids
    fractions = "; 1 box has fractions of pixels, which some readers of VOC files refuse"
    assert said("voc") == lost.replace("; 1 crowd", confidence + "; 1 crowd").format("VOC") + fractions + ids
    dataset.tag(dataset.view.media_ids()[:2], "train")
    dataset.tag(dataset.view.media_ids()[:1], "odd")
    assert "; 3 tags of images are left out: this format holds none" in said("coco")
    split = {"train": vql.tags("train")}
    assert "; 1 tag of images is left out" in dataset.export(tmp_path / "out.zip", "coco", split=split).message


@pytest.mark.slow
def test_coco__ids(dataset: Dataset, tmp_path: Path) -> None:
    """Ids stay if no other has them; crowds and scores are written; labels of images are in their lists."""
    found = json.loads(exported(dataset, tmp_path, "coco")["annotations.json"])
    names = {each["id"]: each["file_name"] for each in found["images"]}
    categories = {each["id"]: each["name"] for each in found["categories"]}
    boxes: dict[str, list[Any]] = {}
    for each in found["annotations"]:
        told = categories[each["category_id"]], each["bbox"], each["id"], each["iscrowd"], each.get("score")
        boxes.setdefault(names[each["image_id"]], []).append(told)
        assert each["area"] == each["bbox"][2] * each["bbox"][3]
    assert boxes == {**BOXES, "c.png": [*BOXES["c.png"][:2], ("cat", [1, 2, 30, 40], 91, 0, None)]}
    assert names == dict(enumerate(NAMES))
    assert [each["labels"] for each in found["images"]] == [["pet", "dog"], [], []]


@pytest.mark.slow
def test_voc__files(dataset: Dataset, tmp_path: Path) -> None:
    """Files lie in a folder beside the images; without images, at the paths that the images would have."""
    files = exported(dataset, tmp_path, "voc", include_images=True)
    assert [name for name in files if not name.startswith("images/")] == [
        "annotations/a.xml", "annotations/c.xml", "image_annotations.csv", "labelmap.txt"
    ]  # fmt: skip
    text = files["annotations/a.xml"].decode()
    assert "<xmin>11.5</xmin>" in text
    assert "<filename>a.png</filename>" in text
    assert "<width>160</width>" in text
    alone = exported(dataset, tmp_path, "voc")
    assert [*alone] == ["a.xml", "c.xml", "image_annotations.csv", "labelmap.txt"]
    assert [line.split(b":")[0] for line in alone["labelmap.txt"].splitlines()[1:]] == [b"background", b"cat", b"dog"]


def test_yolo__boxes_alone(dataset: Dataset, tmp_path: Path) -> None:
    """Label files contain boxes only; image labels and captions are in a table beside them."""
    files = exported(dataset, tmp_path, "yolo")
    assert [*files] == ["data.yaml", *(f"labels/{name}.txt" for name in "abc"), "image_annotations.csv"]
    assert not files["labels/b.txt"]
    assert b'0: "cat"\n  1: "dog"\n' in files["data.yaml"]
    assert [line.split()[0] for line in files["labels/a.txt"].splitlines()] == [b"0", b"1"]
    assert b'"a.png","[""pet"", ""dog""]",\r\n"b.png","[]",\r\n' in files["image_annotations.csv"]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("format_", FORMATS)
def test_objects__boxes_only(dataset: Dataset, tmp_path: Path, format_: str) -> None:
    """An export of objects contains no other objects, and no image labels."""
    cats = [{"labels": {"op": "is", "value": "cat"}}]
    files = exported(dataset, tmp_path, format_, entity_type="OBJECTS", vql=cats)
    assert "image_annotations.csv" not in files
    content = b"".join(files.values())
    if format_ not in ("json", "parquet"):  # which say all of an image that holds one
        assert b'"pet"' not in content
        assert b"dog" not in re.sub(rb'"dog"|dog:', b"", content, count=1)  # the class list is that of the dataset
        assert b"b.png" not in content
    if format_ == "json":
        items = json.loads(files["metadata.json"])["media_items"]
        assert [[each["category_name"] for each in of_type(item, "object_label")] for item in items] == [
            ["cat"], ["cat", "cat"]
        ]  # fmt: skip
    if format_ == "coco":
        annotations = json.loads(files["annotations.json"])["annotations"]
        assert [each["id"] for each in annotations] == [7, 12, 13]


@pytest.mark.slow
@pytest.mark.only_soak
def test_media__with_a_filter(dataset: Dataset, tmp_path: Path) -> None:
    """An export of some images contains the objects in them."""
    only_a = [{"file_name": {"op": "is", "value": "a.png"}}]
    result = dataset.export(tmp_path / "out.zip", "coco", vql=only_a)
    assert (result.total_media_items, result.total_objects) == (1, 2)
    found = json.loads(exported(dataset, tmp_path, "coco", vql=only_a)["annotations.json"])
    assert [each["name"] for each in found["categories"]] == ["cat", "dog"]
    assert len([each for each in found["annotations"] if "bbox" in each]) == 2
    nothing = dataset.export(tmp_path / "out.zip", "coco", vql=[{"any": []}])
    assert (nothing.total_media_items, nothing.total_objects) == (0, 0)


def chosen(dataset: Dataset, path: Path, selection: list[Any], entity_type: str) -> list[str]:
    """Return the names of images, or the original ids of objects, in the export of a selection."""
    options: dict[str, Any] = {"entity_type": entity_type, "media_selection": selection}
    rows = parquet(exported(dataset, path, "parquet", **options))
    return [row["image_filename" if entity_type == "IMAGES" else "original_id"] for row in rows]


@pytest.mark.slow
@pytest.mark.only_soak
def test_selection__of_both(dataset: Dataset, tmp_path: Path) -> None:
    """An object selects its image, and an image selects all objects in it."""
    ids, media = object_ids(dataset), dataset.where([]).media_ids()
    dog = ids["a.png", "dog", (80, 10, 60, 90)]
    named = [{"type": "media", "media_ids": [dog, media[1]]}]
    assert chosen(dataset, tmp_path, named, "IMAGES") == ["a.png", "b.png"]
    assert chosen(dataset, tmp_path, named, "OBJECTS") == ["90"]
    assert sorted(chosen(dataset, tmp_path, [{"type": "media", "media_ids": [media[0]]}], "OBJECTS")) == ["7", "90"]
    with pytest.raises(NotFound, match="1 media id is not in this dataset, the first is 'nothing'"):
        chosen(dataset, tmp_path, [{"type": "media", "media_ids": [dog, "nothing"]}], "OBJECTS")


@pytest.mark.slow
def test_selection__clusters_of_objects(dataset: Dataset, tmp_path: Path) -> None:
    """A cluster of objects is selected by its entity type; members are excluded by id."""
    rows = parquet(exported(dataset, tmp_path, "parquet", entity_type="OBJECTS"))
    (first, second) = (row for row in rows if row["original_id"] == "12")
    assert first["cluster_id"] == second["cluster_id"]
    cluster = {"type": "cluster", "cluster_id": first["cluster_id"], "cluster_filters": {"entity_type": "OBJECTS"}}
    members = [row["original_id"] for row in rows if row["cluster_id"] == first["cluster_id"]]
    assert chosen(dataset, tmp_path, [cluster], "OBJECTS") == members
    assert chosen(dataset, tmp_path, [cluster], "IMAGES") == sorted(
        {row["image_filename"] for row in rows if row["cluster_id"] == first["cluster_id"]}
    )
    without = cluster | {"exclude_media_ids": [first["object_id"]]}
    assert len(chosen(dataset, tmp_path, [without], "OBJECTS")) == len(members) - 1
    # By default a cluster is one of what is exported.
    by_default = {name: value for name, value in cluster.items() if name != "cluster_filters"}
    assert chosen(dataset, tmp_path, [by_default], "OBJECTS") == members
    with pytest.raises(NotFound):
        chosen(dataset, tmp_path, [by_default], "IMAGES")
    of_media = parquet(exported(dataset, tmp_path, "parquet"))[0]["cluster_id"]
    images = {"type": "cluster", "cluster_id": of_media, "cluster_filters": {"entity_type": "IMAGES"}}
    assert {*chosen(dataset, tmp_path, [images], "OBJECTS")} >= {"7", "90"}
    unknown = group_id(dataset.id, Kind.CLUSTER, 0, 1)
    with pytest.raises(NotFound, match=unknown):
        chosen(dataset, tmp_path, [cluster | {"cluster_id": unknown}], "OBJECTS")


def test_objects__either_a_filter_or_a_selection(dataset: Dataset, tmp_path: Path) -> None:
    """Exports of objects follow the rules of exports of media."""
    with pytest.raises(InvalidInput, match="either vql or media_selection"):
        dataset.export(tmp_path / "out.zip", entity_type="OBJECTS", vql=[], media_selection=[])
    assert dataset.export(tmp_path / "out.zip", entity_type="OBJECTS", media_selection=[]).total_objects == 0


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("entity_type", ["IMAGES", "OBJECTS"])
def test_export__however_objects_are_found(
    dataset: Dataset, tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch, format_: str, entity_type: str
) -> None:
    """The output does not depend on the block size, even if all ids have the same hash."""
    before = exported(dataset, tmp_path, format_, entity_type=entity_type)
    tuning.exported_objects = 1
    monkeypatch.setattr("framedex.export.objects._HASH", "length")
    after = exported(dataset, tmp_path, format_, entity_type=entity_type)
    if format_ == "json":
        assert (
            json.loads(after.pop("metadata.json"))["media_items"]
            == (json.loads(before.pop("metadata.json"))["media_items"])
        )
    if format_ == "parquet":
        assert parquet(after) == parquet(before)
    else:
        assert after == before


@pytest.mark.parametrize("format_", FORMATS)
def test_objects__of_a_dataset_without_any(workspace: Workspace, folder: Path, tmp_path: Path, format_: str) -> None:
    """The export of a dataset without objects is empty and has all columns."""
    dataset = prepared(workspace, "d", folder)
    result = dataset.export(tmp_path / "out.zip", format_, True, entity_type="OBJECTS")
    assert (result.message, result.total_objects) == ("0 objects in 0 media, 0 images", 0)
    files = exported(dataset, tmp_path, format_, entity_type="OBJECTS")
    if format_ == "parquet":
        assert pq.read_schema(io.BytesIO(files["metadata.parquet"])).names == OBJECT_ROWS.names
    if format_ == "csv":
        assert [*files] == ["object_annotations.csv"]


@pytest.mark.slow
def test_objects__that_came_later(workspace: Workspace, tmp_path: Path) -> None:
    """Objects of one image are together in the export, in any order of their table."""
    dataset = workspace.create_dataset("d", fill(tmp_path / "images", 3))
    for number in range(2):
        rows = "".join(f"00{image}.png,{number},1,5,6,{number}\n" for image in range(3))
        (tmp_path / "boxes.csv").write_text(f"filename,col_x,row_y,width,height,label\n{rows}")
        dataset.add_objects(tmp_path / "boxes.csv")
    found = parquet(exported(dataset, tmp_path, "parquet"))
    assert [[each["label"] for each in row["objects"]] for row in found] == [["0", "1"]] * 3


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("format_", ["json", "voc"])
def test_abort__of_an_export_with_objects(workspace: Workspace, tmp_path: Path, format_: str) -> None:
    """An export that is stopped leaves no file."""
    dataset = prepared(workspace, "d", coco_folder(tmp_path / "images"), Averages())
    task, pause = paused(workspace, dataset, tmp_path / "out.zip", format=format_, entity_type="OBJECTS")
    aborting = threading.Thread(target=task.abort)
    aborting.start()
    assert task._report.cancelled.wait(60)
    pause.opened.set()
    aborting.join(60)
    assert task.status is ExportStatus.FAILED
    assert task.record.entities_count == 5
    assert names_in(tmp_path) == ["images"]


def test_url__of_a_frame(tmp_path: Path, dataset: Dataset) -> None:
    """The URL of a frame has its time, followed by the box."""
    media = stored_media(dataset)
    with_videos = media.generation.model_copy(update={"tables": {**media.generation.tables, "videos": 1}})
    rows = pa.table(
        {
            "path": ["clip.mp4", "a.png"],
            "path_raw": pa.nulls(2, pa.binary()),
            "root": pa.array([0, 0], pa.int32()),
            "content_hash": pa.nulls(2, pa.binary()),
            "frame_time_s": [12.5, None],
            "box_x": [1.5, -0.5],
            "box_y": [2.0, 0.0],
            "box_width": [3.0, 2.0],
            "box_height": [4.25, 1.0],
        }
    )
    (urls,) = object_columns(replace(media, generation=with_videos), rows, pa.schema([("url", pa.string())]))
    assert [url.rpartition("/")[2] for url in urls.to_pylist()] == [
        "clip.mp4#t=12.5&xywh=1,2,4,5",
        "a.png#xywh=0,0,2,1",
    ]
