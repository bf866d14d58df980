"""Folders in the layouts of other tools: labels, captions, boxes, parts as tags, and further values as fields."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.annotations import coco_folder, cvat
from framedex.annotations.attributes import NOT_KEPT
from framedex.annotations.problems import UNUSABLE, Problems
from framedex.annotations.sources import read_annotations
from framedex.storage.objects import objects_of
from tests.gallery import Averages
from tests.image_files import photo, write
from tests.inside import stored_media
from tests.problems import unusable

Facts = dict[str, tuple[list[str], list[str], str | None]]


def images(folder: Path, *names: str) -> Path:
    """Write different images of 160×120 pixels; return the folder."""
    for seed, name in enumerate(names):
        write(folder / name, photo(seed))
    return folder


def put(path: Path, content: Any) -> None:
    """Write a text, or JSON, to a file in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def facts(dataset: Dataset) -> Facts:
    """Return the labels, tags and caption of each image by name."""
    rows = dataset.to_arrow(["image_filename", "labels", "tags", "caption"]).to_pylist()
    return {row["image_filename"]: (row["labels"], row["tags"], row["caption"]) for row in rows}


def boxes(dataset: Dataset) -> list[tuple[str, str, list[float], str]]:
    """Return the image, label, box and source of each object, sorted."""
    rows = dataset.objects.to_arrow(["image_filename", "label", "bbox", "source"]).to_pylist()
    return sorted((row["image_filename"], row["label"], row["bbox"], row["source"]) for row in rows)


def attributes(dataset: Dataset) -> list[dict[str, Any] | None]:
    """Return the attributes of each object, in their order."""
    objects = objects_of(stored_media(dataset))
    assert objects is not None
    texts = objects.table.scan(["attributes"]).read_all()["attributes"].to_pylist()
    return [None if text is None else json.loads(text) for text in texts]


def made(workspace: Workspace, folder: Path, **options: Any) -> Dataset:
    """Return the dataset of a folder."""
    return workspace.create_dataset("d", folder, Averages(), **options)


def coco(names: list[str], annotations: list[Any]) -> dict[str, Any]:
    """Return a COCO file of images numbered from 1, with two categories."""
    return {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names, 1)],
        "categories": [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}],
        "annotations": annotations,
    }


def test_coco__key_points_of_other_ids(tmp_path: Path) -> None:
    """Key points are those of the box with their image and id; those of no box are objects of their own."""
    box, point = {"id": 1, "category_id": 1, "bbox": [1, 2, 30, 40]}, {"keypoints": [3, 4, 2]}
    put(tmp_path / "annotations/instances_val.json", coco(["1.jpg", "2.jpg"], [{**box, "image_id": 1}]))
    put(
        tmp_path / "annotations/person_keypoints_val.json",
        coco(["1.jpg", "2.jpg"], [{**box, **point, "image_id": number} for number in (2, 1)]),
    )
    found = [(each.name, each.shape.keypoints) for each in coco_folder.read_boxes(tmp_path, Problems())]
    assert found == [("1.jpg", "[3,4,2]"), ("2.jpg", "[3,4,2]")]


@pytest.mark.slow
def test_coco__folder(workspace: Workspace, tmp_path: Path) -> None:
    """Instances, key points and captions of each part are read; boxes are there once, with their key points."""
    folder = images(tmp_path / "coco", "train2017/1.jpg", "train2017/2.jpg", "val2017/1.jpg")
    box = {"id": 7, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "iscrowd": 0}
    car = {"id": 8, "image_id": 2, "category_id": 3, "bbox": [5, 5, 10, 10]}
    wrong = [
        {"id": 9, "image_id": 99, "category_id": 3, "bbox": [5, 5, 10, 10]},
        {"id": 10, "image_id": 1, "bbox": 5},
        5,
    ]
    put(folder / "annotations/instances_train2017.json", coco(["1.jpg", "2.jpg"], [box, car, *wrong]))
    points = coco(["1.jpg", "2.jpg"], [{**box, "keypoints": [3, 4, 2], "num_keypoints": 1}])
    points["categories"][0] |= {"keypoints": ["nose"], "skeleton": [[1, 1]]}
    put(folder / "annotations/person_keypoints_train2017.json", points)
    captions = [{"image_id": 1, "caption": text} for text in ("a man", "a person", 5)]
    put(folder / "annotations/captions_train2017.json", coco(["1.jpg", "2.jpg"], captions))
    put(folder / "annotations/instances_val2017.json", coco(["1.jpg"], [{**car, "image_id": 1}]))
    put(folder / "annotations/panoptic_val2017.json", {"images": []})
    put(folder / "annotations/captions_val2017.json", "{broken")
    dataset = made(workspace, folder)
    assert facts(dataset) == {
        "train2017/1.jpg": ([], ["train"], "a man\na person"),
        "train2017/2.jpg": ([], ["train"], None),
        "val2017/1.jpg": ([], ["val"], None),
    }
    assert boxes(dataset) == [
        ("train2017/1.jpg", "person", [1, 2, 30, 40], "coco"),
        ("train2017/2.jpg", "car", [5, 5, 10, 10], "coco"),
        ("val2017/1.jpg", "car", [5, 5, 10, 10], "coco"),
    ]
    dataset.export(tmp_path / "out.json", "coco")
    exported = json.loads((tmp_path / "out.json").read_text())
    assert [each.get("keypoints") for each in exported["annotations"] if each["id"] == 7] == [[3, 4, 2]]
    assert (exported["categories"][0]["keypoints"], exported["categories"][0]["skeleton"]) == (["nose"], [[1, 1]])
    read, unread, ignored = dataset.layout
    assert read.startswith("read: annotations/captions_train2017.json, annotations/instances_train2017.json, ")
    assert unread == "not read, or only in part: annotations/captions_val2017.json"
    assert ignored == "not recognised: annotations/panoptic_val2017.json"
    assert "annotations/panoptic_val2017.json" in dataset.last_task.status_message  # type: ignore[union-attr]
    assert dataset.skipped["parts of annotations that cannot be used as they are"] == 5
    assert any("captions_val2017.json" in each for each in unusable(dataset))


@pytest.mark.parametrize(
    ("name", "content"),
    [("annotations.json", "{broken"), ("annotations.xml", "<annotations><meta"), ("data.yaml", "names: [a, {")],
)
def test_layout__file_that_cannot_be_read(workspace: Workspace, tmp_path: Path, name: str, content: str) -> None:
    """A broken file is not said to be read; labels and boxes of it are one problem, which names no folder."""
    folder = images(tmp_path / "broken", "images/1.jpg")
    put(folder / "labels/1.txt", "0 0.5 0.5 0.25 0.25\n")
    put(folder / name, content)
    dataset = made(workspace, folder)
    assert dataset.layout == [f"not read, or only in part: {name}"]
    (problem,) = unusable(dataset)
    assert problem.startswith(f"{name}: '{name}': ")
    assert "broken/" not in problem


def test_coco__in_folders_of_parts(workspace: Workspace, tmp_path: Path) -> None:
    """A file beside the images of each part is read, too, as Roboflow writes them, with ids that repeat."""
    folder = images(tmp_path / "coco", "train/1.jpg", "valid/1.jpg")
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40]}
    put(folder / "train/_annotations.coco.json", coco(["1.jpg"], [box]))
    put(folder / "valid/_annotations.coco.json", coco(["1.jpg"], [{**box, "category_id": 3}]))
    dataset = made(workspace, folder)
    assert facts(dataset) == {"train/1.jpg": ([], ["train"], None), "valid/1.jpg": ([], ["val"], None)}
    assert [each[:2] for each in boxes(dataset)] == [("train/1.jpg", "person"), ("valid/1.jpg", "car")]
    assert (
        "1 annotation has a new id, because others have theirs" in dataset.export(tmp_path / "a.json", "coco").message
    )
    exported = json.loads((tmp_path / "a.json").read_text())["annotations"]
    assert [(each["id"], each["image_id"], each["category_id"]) for each in exported] == [(1, 1, 1), (2, 2, 3)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["cat/1.jpg", "dog/2.jpg"], {"cat/1.jpg": "cat", "dog/2.jpg": "dog"}),
        (["train/0/1.jpg", "val/1/2.jpg"], {"train/0/1.jpg": "0", "val/1/2.jpg": "1"}),
        (["cat/1.jpg", "images/2.jpg"], {}),
        (["2021/1.jpg", "2022/2.jpg"], {}),
        (["cat/1.jpg", "cat/old/2.jpg", "dog/3.jpg"], {}),
        (["1.jpg", "cat/1.jpg", "dog/2.jpg"], {}),
        (["cat/1.jpg"], {}),
    ],
)
def test_class_folders__that_are_unmistakable(
    workspace: Workspace, tmp_path: Path, names: list[str], expected: dict[str, str]
) -> None:
    """Folders are classes by themselves only where nothing else can be meant, and parts above them are tags."""
    dataset = made(workspace, images(tmp_path / "p", *names))
    assert {name: labels[0] for name, (labels, _, _) in facts(dataset).items() if labels} == expected
    assert bool(dataset.layout) == bool(expected)
    if "train/0/1.jpg" in expected:
        assert [tags for _, tags, _ in facts(dataset).values()] == [["train"], ["val"]]


def test_class_folders__on_request(workspace: Workspace, tmp_path: Path) -> None:
    """An argument turns them on and off; what was recognised is said in a line."""
    folder = images(tmp_path / "p", "cat/1.jpg", "2021/2.jpg")
    asked = made(workspace, folder, class_folders=True)
    assert {name: labels for name, (labels, _, _) in facts(asked).items()} == {
        "cat/1.jpg": ["cat"],
        "2021/2.jpg": ["2021"],
    }
    assert asked.layout == ["read: 2 folders as classes (2021, cat)"]
    other = images(tmp_path / "q", "cat/1.jpg", "dog/2.jpg")
    assert workspace.create_dataset("off", other, Averages(), class_folders=False).layout == []
    with pytest.raises(InvalidInput, match="no folders that could be classes"):
        workspace.create_dataset("none", images(tmp_path / "r", "1.jpg"), Averages(), class_folders=True)
    with pytest.raises(InvalidInput, match="class_folders must be True, False or None"):
        workspace.create_dataset("bad", other, Averages(), class_folders="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listed", "expected", "line"),
    [
        (None, {}, "3 folders named by numbers, which class_folders=True makes classes"),
        ("0\n1\n10\n", {"0": "0", "1": "1", "10": "10"}, "3 folders as classes (0, 1, 10)"),
        (
            "\ufeff" + "\n".join(["cat", "dog", "c", "d", "e", "f", "g", "h", "i", "j", "bird"]),
            {"0": "cat", "1": "dog", "10": "bird"},
            "3 folders as classes (0 cat, 1 dog, 10 bird)",
        ),
    ],
)
def test_class_folders__named_by_numbers(
    tmp_path: Path, listed: str | None, expected: dict[str, str], line: str
) -> None:
    """Numbers are classes beside a list of classes, which may name them; without one a line says what helps."""
    folder = images(tmp_path / "p", "0/1.jpg", "1/2.jpg", "10/3.jpg")
    if listed is not None:
        put(folder / "classes.txt", listed)
    annotations = read_annotations(str(folder), class_folders=None)
    assert [*annotations.sources, *annotations.ignored] == [line]
    labels = {name: annotations.find(f"{name}/{name}.jpg")[0] for name in ("0", "1", "10")}
    assert {name: each[0] for name, each in labels.items() if each} == expected


def test_yolo__parts_of_data_yaml(workspace: Workspace, tmp_path: Path) -> None:
    """The folders and lists of data.yaml give tags; places outside of the folder give none."""
    folder = images(tmp_path / "y", "images/train/1.jpg", "images/val/2.jpg", "images/val/3.jpg")
    put(folder / "labels/train/1.txt", "0 0.5 0.5 0.25 0.25\n")
    put(folder / "lists/val.txt", "./images/val/2.jpg\n")
    put(folder / "data.yaml", "path: ../y\ntrain: ../images/train\nval: lists/val.txt\ntest: /etc\nnames: [cat]\n")
    dataset = made(workspace, folder)
    assert facts(dataset) == {
        "images/train/1.jpg": ([], ["train"], None),
        "images/val/2.jpg": ([], ["val"], None),
        "images/val/3.jpg": ([], [], None),
    }
    assert boxes(dataset) == [("images/train/1.jpg", "cat", [60, 45, 40, 30], "yolo")]
    assert dataset.layout == ["read: data.yaml"]


def test_voc__devkit(workspace: Workspace, tmp_path: Path) -> None:
    """VOCdevkit/VOC2012 is read, with the lists of its parts; lists of classes say nothing."""
    home = tmp_path / "root/VOCdevkit/VOC2012"
    images(home / "JPEGImages", "a.jpg", "b.jpg")
    edges = "<xmin>1</xmin><ymin>1</ymin><xmax>10</xmax><ymax>10</ymax>"
    item = f"<object><name>cat</name><bndbox>{edges}</bndbox></object>"
    put(home / "Annotations/broken.xml", "<annotation")
    put(home / "Annotations/a.xml", f"<annotation><filename>a.jpg</filename>{item}</annotation>")
    put(home / "ImageSets/Main/train.txt", "a\n")
    put(home / "ImageSets/Main/val.txt", "b\n")
    put(home / "ImageSets/Main/cat_train.txt", "a  1\nb -1\n")
    dataset = made(workspace, tmp_path / "root")
    prefix = "VOCdevkit/VOC2012/JPEGImages/"
    assert {name: tags for name, (_, tags, _) in facts(dataset).items()} == {
        f"{prefix}a.jpg": ["train"],
        f"{prefix}b.jpg": ["val"],
    }
    assert boxes(dataset) == [(f"{prefix}a.jpg", "cat", [0, 0, 10, 10], "voc")]
    assert unusable(dataset) == [
        "VOCdevkit/VOC2012/Annotations/broken.xml: 'broken.xml': is no XML: unclosed token: line 1, column 0"
    ]
    assert not read_annotations(str(home)).ignored


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_huggingface__metadata(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    """The metadata of image folders give labels, captions and boxes; other columns are fields, folders are tags."""
    folder = images(tmp_path / "h", "train/1.jpg", "test/2.jpg")
    for part, name in (("train", "1.jpg"), ("test", "2.jpg")):
        objects = {"bbox": [[1, 2, 30, 40]], "categories": ["ear"]}
        row = {"file_name": name, "label": "cat", "text": f"a {part}", "objects": objects, "weight": 1.5}
        if kind == "jsonl":
            put(folder / part / "metadata.jsonl", json.dumps(row) + "\n\n5\n" + json.dumps({"file_name": 5}) + "\n")
        elif kind == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), folder / part / "metadata.parquet")
        else:
            put(folder / part / "metadata.csv", f'file_name,label,text,weight\n{name},cat,"a {part}",1.5\n')
    dataset = made(workspace, folder)
    assert facts(dataset) == {
        "test/2.jpg": (["cat"], ["test"], "a test"),
        "train/1.jpg": (["cat"], ["train"], "a train"),
    }
    assert dataset.to_arrow(["weight"])["weight"].to_pylist() == [1.5, 1.5]
    if kind != "csv":
        assert [each[1:3] for each in boxes(dataset)] == [("ear", [1, 2, 30, 40])] * 2
    assert bool(unusable(dataset)) == (kind == "jsonl")


def test_fiftyone__dataset(workspace: Workspace, tmp_path: Path) -> None:
    """Detections, polylines and classifications of samples are read; tags stay, plain values are fields."""
    folder = images(tmp_path / "f", "data/1.jpg", "data/2.jpg")
    put(folder / "metadata.json", {"name": "quickstart", "version": "1.0"})
    detection = {"_id": {"$oid": "a"}, "_cls": "Detection", "label": "cat", "bounding_box": [0.25, 0.5, 0.25, 0.25]}
    polyline: dict[str, Any] = {
        "_cls": "Polyline",
        "label": "road",
        "points": [[[0, 0], [0.5, 0], [0.5, 0.5]]],
        "closed": True,
    }
    sample = {
        "filepath": "data/1.jpg", "tags": ["validation", "hard"],
        "weather": {"_cls": "Classification", "label": "rain"},
        "ground_truth": {"_cls": "Detections", "detections": [detection, {**detection, "label": None}, 5]},
        "lines": {"_cls": "Polylines", "polylines": [polyline]}, "uniqueness_of": 0.5, "_media_type": "image",
        "one": {**detection, "label": "ear", "mask": {"$binary": "eJw="}}, "points": {"_cls": "Keypoints"},
        "two": {"_cls": "Polylines", "polylines": [{**polyline, "points": [[[0, 0]], *polyline["points"]]}]},
    }  # fmt: skip
    put(folder / "samples.json", {"samples": [sample, {"filepath": "/elsewhere/data/2.jpg", "tags": []}, {"x": 1}]})
    dataset = made(workspace, folder)
    assert facts(dataset) == {"data/1.jpg": (["rain"], ["val", "hard"], None), "data/2.jpg": ([], [], None)}
    assert boxes(dataset) == [
        ("data/1.jpg", "cat", [40, 60, 40, 30], "fiftyone"),
        ("data/1.jpg", "ear", [40, 60, 40, 30], "fiftyone"),
        ("data/1.jpg", "road", [0, 0, 80, 60], "fiftyone"),
        ("data/1.jpg", "road", [0, 0, 80, 60], "fiftyone"),
    ]
    counts = {each.reason: each.count for each in dataset.problems}
    assert counts["fields of FiftyOne that are not read"] == 1
    assert counts["masks and further outlines of FiftyOne, of which the box is read"] == 2
    assert dataset.to_arrow(["uniqueness_of"])["uniqueness_of"].to_pylist() == [0.5, None]
    assert len(unusable(dataset)) == 3


def test_cvat__for_images(workspace: Workspace, tmp_path: Path) -> None:
    """Boxes, polygons and tags of CVAT are read; other shapes and malformed ones are problems."""
    folder = images(tmp_path / "c", "images/ü 1.jpg", "images/2.jpg")
    put(
        folder / "annotations.xml",
        """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><name>t</name></task></meta>
<image id="0" name="ü 1.jpg" subset="Train" width="160" height="120">
 <box label="cat" occluded="1" xtl="10.5" ytl="20" xbr="30.5" ybr="50" >
  <attribute name="a">1</attribute></box>
 <polygon label="dog" points="1,2;31,2;31,42"></polygon>
 <tag label="outdoor"><attribute name="b">2</attribute></tag>
 <polyline label="x" points="1,2;3,4"/><box label="bad" xtl="nan" ytl="1" xbr="2" ybr="3"/>
</image>
<image id="1" name="2.jpg" width="160" height="120"></image></annotations>""",
    )
    dataset = made(workspace, folder)
    assert facts(dataset) == {"images/ü 1.jpg": (["outdoor"], ["train"], None), "images/2.jpg": ([], [], None)}
    assert boxes(dataset) == [
        ("images/ü 1.jpg", "cat", [10.5, 20, 20, 30], "cvat"),
        ("images/ü 1.jpg", "dog", [1, 2, 30, 40], "cvat"),
    ]
    assert len(unusable(dataset)) == 2
    assert {each.reason: each.count for each in dataset.problems}[
        "images whose tags have attributes, which are not read"
    ] == 1
    assert attributes(dataset) == [{"a": "1", "occluded": True}, None]
    assert dataset.layout == ["read: annotations.xml"]


def test_cvat__tracks(workspace: Workspace, tmp_path: Path) -> None:
    """Of a track the boxes of key frames are read in the images of these frames; all else is counted by reason."""
    folder = images(tmp_path / "c", "images/frame_000000.jpg", "images/frame_000002.jpg", "images/other.jpg")
    sides = 'xtl="10" ytl="20" xbr="30" ybr="50"'
    put(
        folder / "annotations.xml",
        f"""<annotations><version>1.1</version><track id="4" label="cat" source="manual">
 <box frame="0" outside="0" occluded="0" keyframe="1" {sides}/><box frame="1" outside="0" keyframe="0" {sides}/>
 <box frame="2" outside="0" keyframe="1" {sides}><attribute name="a">1</attribute></box>
 <box frame="3" outside="1" keyframe="1" {sides}/><box frame="7" outside="0" keyframe="1" {sides}/></track>
<track id="5" label="dog"><polygon frame="2" outside="0" keyframe="1" points="1,2;31,2;31,42"/>
 <points frame="2" outside="0" keyframe="1" points="1,2"/></track></annotations>""",
    )
    dataset = made(workspace, folder)
    assert [each[:3] for each in boxes(dataset)] == [
        ("images/frame_000000.jpg", "cat", [10, 20, 20, 30]),
        ("images/frame_000002.jpg", "cat", [10, 20, 20, 30]),
        ("images/frame_000002.jpg", "dog", [1, 2, 30, 40]),
    ]
    counts = {each.reason: each.count for each in dataset.problems}
    assert attributes(dataset) == [{"track_id": 4}, {"a": "1", "track_id": 4}, {"track_id": 5}]
    assert counts["boxes of tracks between key frames"] == counts["boxes of tracks in frames that are no images"] == 1
    assert counts[UNUSABLE] == 1


def track(*shapes: str) -> str:
    """Return a file of CVAT with a track."""
    return f'<annotations><track id="4" label="cat">{"".join(shapes)}</track></annotations>'


def key(frame: int, x: float, *, outside: int = 0, keyframe: int = 1, rest: str = "", inner: str = "") -> str:
    """Return a box of a track that is 20 by 10 pixels large, at some x and twice this y."""
    sides = f'xtl="{x}" ytl="{2 * x}" xbr="{x + 20}" ybr="{2 * x + 10}"'
    return f'<box frame="{frame}" outside="{outside}" keyframe="{keyframe}" {sides} {rest}>{inner}</box>'


INNER = '<attribute name="a">1</attribute>'


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ((key(0, 10, inner=INNER), key(4, 30)), {0: 10, 1: 15, 3: 25, 4: 30}),  # frame 2 is no image
        ((key(0, 10), key(1, 99, keyframe=0), key(4, 30)), {0: 10, 1: 15, 3: 25, 4: 30}),  # as the file should have it
        ((key(0, 10), key(4, 30, outside=1), key(6, 10), key(7, 10)), {0: 10, 1: 15, 3: 25, 6: 10, 7: 10}),
        ((key(0, 10), key(1, 12, keyframe=0)), {0: 10, 1: 12}),  # behind the last key frame
        ((key(4, 30), key(0, 10)), {4: 30, 0: 10}),
        ((key(0, 10), key(10**30, 10)), {0: 10, 1: 10, 3: 10, 4: 10, 5: 10, 6: 10, 7: 10}),
        ((key(0, 10), key(4, 30).replace("30", "nan")), {0: 10}),
        ((key(0, 10), '<polygon frame="3" points="0,0;9,0;9,9"/>'), {0: 10, 3: 0}),
        ((key(0, 10), key(4, 30).replace('frame="4"', "")), {0: 10}),
    ],
)
def test_cvat__interpolation(tmp_path: Path, shapes: tuple[str, ...], expected: dict[int, float]) -> None:
    """Boxes between key frames move evenly, in frames that are images and as long as the object is not outside."""
    folder = images(tmp_path / "c", *(f"frame_{number:06}.jpg" for number in (0, 1, 3, 4, 5, 6, 7)))
    put(folder / "annotations.xml", track(*shapes))
    found = list(cvat.read_boxes(folder, Problems(), interpolate=True))
    assert {int(each.name[6:12]): each.x for each in found} == expected
    assert len(found) == len(expected)
    assert all(each.y == 2 * each.x for each in found)
    assert all(json.loads(each.attributes or "")["track_id"] == 4 for each in found)
    assert {each.name for each in found if "a" in json.loads(each.attributes or "")} <= {
        f"frame_{number:06}.jpg" for number in (0, 1, 3)
    }


def test_cvat__interpolation_of_angles(tmp_path: Path) -> None:
    """A box turns the shorter way between key frames: from 350 over 0 to 10 degrees."""
    folder = images(tmp_path / "c", *(f"images/frame_{number:06}.png" for number in range(3)))
    put(folder / "annotations.xml", track(key(0, 10, rest='rotation="350"'), key(2, 10, rest='rotation="10"')))
    _, middle, _ = cvat.read_boxes(folder, Problems(), interpolate=True)
    assert [middle.x, middle.y, middle.width, middle.height] == pytest.approx([10, 20, 20, 10])


@pytest.mark.slow
def test_cvat__interpolation_is_kept(workspace: Workspace, tmp_path: Path) -> None:
    """An import, an addition, a sync and an addition of objects read boxes between key frames where asked."""
    folder = images(tmp_path / "c", *(f"frame_{number:06}.jpg" for number in range(3)))
    put(folder / "annotations.xml", track(key(0, 10), key(4, 30)))
    plain = made(workspace, folder)
    dataset = workspace.create_dataset("e", folder, Averages(), interpolate=True)
    assert (plain.objects.count(), dataset.objects.count()) == (1, 3)
    plain.add_objects(folder, interpolate=True)
    assert plain.objects.count() == 3
    images(folder, "frame_000003.jpg")
    write(folder / "frame_000003.jpg", photo(9))
    plain.add_media(folder, interpolate=True)
    dataset.sync(apply=True)
    assert (plain.objects.count(), dataset.objects.count()) == (4, 4)


def choice(*names: str) -> dict[str, Any]:
    """Return choices of Label Studio."""
    return {"type": "choices", "value": {"choices": names}}


def test_label_studio__export(workspace: Workspace, tmp_path: Path) -> None:
    """Rectangles in percent, polygons, choices and texts of tasks are read; cancelled annotations are not."""
    folder = images(tmp_path / "l", "1.jpg", "sub/2.jpg")
    size = {"original_width": 160, "original_height": 120}
    rectangle: dict[str, Any] = {**size, "type": "rectanglelabels", "id": "r1"}
    rectangle["value"] = {"x": 25, "y": 50, "width": 25, "height": 25, "rotation": 0, "rectanglelabels": ["cat"]}
    polygon = {
        **size,
        "type": "polygonlabels",
        "value": {"points": [[0, 0], [50, 0], [50, 50]], "polygonlabels": ["dog"]},
    }
    outdoor = choice("outdoor")
    text = {"type": "textarea", "value": {"text": ["a cat"]}}
    brush = {**size, "type": "brushlabels", "value": {}}
    two = {"type": "rectanglelabels", "value": {**rectangle["value"], "rectanglelabels": ["cow", "calf"]}}
    plain: dict[str, Any] = {"type": "rectangle", "id": "p", "value": {"x": 0, "y": 0, "width": 50, "height": 50}}
    beside = [plain, {**plain, "type": "labels", "value": {**plain["value"], "labels": ["hen"]}}]
    guess = {"type": "rectanglelabels", "score": 0.25, "value": {**plain["value"], "rectanglelabels": ["pig"]}}
    unscored = {key: value for key, value in guess.items() if key != "score"}
    task = {
        "id": 1,
        "data": {"image": "/data/upload/3/0a1b2c3d-1.jpg"},
        "annotations": [
            {"was_cancelled": True, "result": [{**rectangle, "id": "x"}]},
            {"result": [rectangle, polygon, outdoor, text, brush, {**rectangle, "value": 5}, two, *beside]},
            {"completed_by": 2, "result": [rectangle]},
            {"completed_by": 3, "result": []},
        ],
        "predictions": [{"score": 0.5, "result": [unscored, guess, outdoor]}, {"result": [unscored]}],
    }
    local = {"data": {"image": "/data/local-files/?d=data/sub/2.jpg"}, "annotations": [{"result": []}]}
    put(folder / "project-1.json", [task, local, {"data": {}, "annotations": []}])
    dataset = made(workspace, folder)
    assert facts(dataset) == {"1.jpg": (["outdoor"], [], "a cat"), "sub/2.jpg": ([], [], None)}
    assert boxes(dataset) == [
        ("1.jpg", label, box, "label-studio")
        for label, box in (
            ("calf", [40, 60, 40, 30]),
            ("cat", [40, 60, 40, 30]),
            ("cow", [40, 60, 40, 30]),
            ("dog", [0, 0, 80, 60]),
            ("hen", [0, 0, 80, 60]),
            ("pig", [0, 0, 80, 60]),
            ("pig", [0, 0, 80, 60]),
        )
    ]
    rows = dataset.objects.to_arrow(["label", "confidence"]).to_pylist()
    assert sorted(row["confidence"] for row in rows if row["confidence"] is not None) == [0.25, 0.5]
    assert {row["label"] for row in rows if row["confidence"] is not None} == {"pig"}
    assert len(unusable(dataset)) == 3
    counts = {each.reason: each.count for each in dataset.problems}
    assert counts["annotations of further annotators"] == 1
    assert counts["predictions that are no shapes with a score"] == 2


def test_label_studio__real_sizes(workspace: Workspace, tmp_path: Path) -> None:
    """Percents are those of the real image, whatever size a task says; shapes without a label are counted."""
    folder = images(tmp_path / "l", "x/1.jpg", "y/2.jpg")
    square = {"x": 0, "y": 0, "width": 50, "height": 50}
    labelled = {"type": "rectanglelabels", "original_width": 9, "original_height": 7}
    turned = {**labelled, "value": {**square, "x": 50, "rotation": 90, "rectanglelabels": ["cow"]}}
    turned |= {"original_width": 160, "original_height": 120}
    results = [
        {**labelled, "value": {**square, "rectanglelabels": ["cat"]}}, turned,
        {"type": "rectangle", "value": square}, {**labelled, "value": {**square, "rectanglelabels": []}},
    ]  # fmt: skip
    task = {"data": {"image": "s3://bucket/some/where/x/1.jpg"}, "annotations": [{"result": results}]}
    put(folder / "export.json", [task])
    dataset = made(workspace, folder)
    assert [each[:3] for each in boxes(dataset)] == [
        ("x/1.jpg", "cat", [0, 0, 80, 60]),
        ("x/1.jpg", "cow", [20, 0, 60, 80]),
    ]
    assert {each.reason: each.count for each in dataset.problems}["shapes without a label"] == 2


def test_label_studio__attributes(workspace: Workspace, tmp_path: Path) -> None:
    """Choices, texts and numbers with the id of a shape are its attributes; lists of several choices are counted."""
    folder = images(tmp_path / "l", "1.jpg")
    square = {"x": 0, "y": 0, "width": 50, "height": 50}

    def result(kind: str, name: str, value: Any, own: Any = "r", **place: Any) -> dict[str, Any]:
        return {"id": own, "from_name": name, "type": kind, "value": {**place, **value}}

    results = [
        result("choices", "color", {"choices": ["red"]}, **square),
        result("rectangle", "box", {}, **square),
        result("rectanglelabels", "label", {"rectanglelabels": ["cat", "pet"]}, **square),
        result("textarea", "note", {"text": ["a", "b"]}, **square),
        result("number", "age", {"number": 2.5}),
        result("rating", "", {"rating": 4}, **square),
        result("choices", "truncated", {"choices": ["yes"]}),
        result("choices", "several", {"choices": ["x", "y"]}, **square),
        result("taxonomy", "kind", {"taxonomy": [["a", "b"]]}, **square),
        result("choices", "light", {"choices": ["day"]}, own="other"),
        result("choices", "color", {"choices": ["blue"]}, own=["r"], **square),
    ]
    guess = [
        result("rectanglelabels", "label", {"rectanglelabels": ["dog"]}, own="p", **square),
        result("choices", "color", {"choices": ["white"]}, own="p"),
        choice("night"),
    ]
    task = {"data": {"image": "1.jpg"}, "annotations": [{"result": results}]}
    put(folder / "export.json", [{**task, "predictions": [{"score": 0.5, "result": guess}]}])
    dataset = made(workspace, folder)
    assert facts(dataset) == {"1.jpg": (["day"], [], None)}
    of_cat = {"color": "red", "note": "a\nb", "age": 2.5, "rating": 4}
    assert attributes(dataset) == [of_cat, of_cat, {"color": "white"}]
    counts = {each.reason: each.count for each in dataset.problems}
    assert counts[NOT_KEPT] == counts["predictions that are no shapes with a score"] == 1
    assert counts[UNUSABLE] == 2
    objects = objects_of(stored_media(dataset))
    assert objects is not None
    assert objects.table.scan(["truncated"]).read_all()["truncated"].to_pylist() == [True, True, False]


def test_label_studio__backslashes(workspace: Workspace, tmp_path: Path) -> None:
    """A backslash is a letter of the name if a file has it, else it ends a folder."""
    folder = images(tmp_path / "l", "a\\b/1.jpg", "c/1.jpg", "d/1.jpg")
    tasks = [
        {"data": {"image": f"/data/upload/1/{name}"}, "annotations": [{"result": [choice(name[0])]}]}
        for name in ("a%5Cb/1.jpg", "c%5C1.jpg")
    ]
    put(folder / "export.json", tasks)
    dataset = made(workspace, folder)
    assert facts(dataset) == {
        "a\\b/1.jpg": (["a"], [], None), "c/1.jpg": (["c"], [], None), "d/1.jpg": ([], [], None)
    }  # fmt: skip


HOSTILE = [
    ("samples.json", b""),
    ("samples.json", b"{"),
    ("samples.json", b"[]"),
    ("samples.json", b'{"samples": 5}'),
    ("samples.json", b'{"samples": [null, [], {"filepath": []}]}'),
    ("samples.json", b"\xff\xfe"),
    ("annotations.xml", b"<annotations"),
    ("annotations.xml", b"<annotations><image/></annotations>"),
    ("annotations.xml", b"<annotations><image name=''><box/></image>"),
    ("annotations.xml", b"<!DOCTYPE a [<!ENTITY x 'y'>]><annotations><image name='a'/></annotations>"),
    ("annotations/instances_train.json", b""),
    ("annotations/instances_train.json", b"[1]"),
    ("annotations/instances_train.json", b'{"images": 5}'),
    (
        "annotations/instances_train.json",
        b'{"images": [{"id": 1, "file_name": "../../etc/1.jpg"}], "annotations": [{}, 1]}',
    ),
    ("annotations/captions_val.json", b"null"),
    ("annotations/captions_val.json", b'{"images": [], "annotations": [{"caption": 1}]}'),
    ("metadata.jsonl", b'{"file_name": "1.jpg", "objects": {"bbox": [[1]], "categories": []}}\n\xff'),
    ("metadata.jsonl", b'{"file_name": 1}'),
    ("metadata.csv", b'file_name,label\n"1.jpg'),
    ("metadata.csv", b"file_name\n"),
    ("metadata.parquet", b"PAR1"),
    ("project.json", b'[{"data": {"image": "http://[/1.jpg"}, "annotations": [{"result": 5}]}'),
    ("project.json", b'[{"data": 5, "annotations"'),
    ("data.yaml", b"train: [1, {}, '../../..']\nnames: [a]\n"),
]


@pytest.mark.parametrize(("name", "content"), HOSTILE)
def test_hostile__files_stop_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    """Broken files, wrong types and paths out of the folder are problems of their own; all else is read."""
    from framedex.annotations.sources import find_box_sources, read_annotations, read_box_index

    (tmp_path / "1.jpg").write_bytes(b"")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "metadata.json").write_text("{}")
    annotations = read_annotations(str(tmp_path), class_folders=None)
    index = read_box_index(find_box_sources(tmp_path))
    assert annotations.find("1.jpg") == ((), None)
    assert index.find("1.jpg", (10, 10)) == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_hostile__links_and_many_boxes(workspace: Workspace, tmp_path: Path) -> None:
    """Annotations of 0 and 10,000 boxes are read; a link to a file elsewhere is no annotation where it is refused."""
    folder = images(tmp_path / "m", "1.jpg", "2.jpg")
    many = [{"id": n, "image_id": 1, "category_id": 1, "bbox": [n % 150, n % 110, 5, 5]} for n in range(10_000)]
    put(tmp_path / "elsewhere.json", coco(["1.jpg", "2.jpg"], many))
    (folder / "annotations").mkdir()
    (folder / "annotations/instances_train.json").symlink_to(tmp_path / "elsewhere.json")
    from framedex.annotations.sources import find_box_sources, read_box_index
    from framedex.core.allowed_folders import AllowedFolders

    index = read_box_index(find_box_sources(folder))
    assert (len(index.find("1.jpg", (160, 120))), index.find("2.jpg", (160, 120))) == (10_000, [])
    refused = read_box_index(find_box_sources(folder, allowed=AllowedFolders((folder,))))
    assert (len(refused), refused.problems.count) == (0, 1)


def test_files_of_annotations__are_no_other_files(workspace: Workspace, tmp_path: Path) -> None:
    """Files of annotations that are read are not counted as left out; a note beside them is."""
    for name in ("images/a.png", "voc/JPEGImages/b.png", "c.png"):
        write(tmp_path / "all" / name, photo(len(name)))
    texts = {
        "data.yaml": "names: [cat]\n",
        "labels/a.txt": "0 0.5 0.5 0.2 0.2\n",
        "voc/Annotations/b.xml": "<annotation><filename>b.png</filename></annotation>",
        "c.json": '{"shapes": [], "shape_type": null, "imagePath": "c.png"}',
        "notes.txt": "of the photographer",
        "other.json": "{}",
    }
    for name, text in texts.items():
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_text(text)
    dataset = workspace.create_dataset("d", tmp_path / "all", "gist")
    left_out = [example for each in dataset.problems for example in each.examples]
    assert sorted(left_out) == ["notes.txt", "other.json"]


def test_cvat__turned_boxes(tmp_path: Path) -> None:
    """A turned box has its corners as outline: here 20 by 10 pixels about (20, 15), turned by a right angle."""
    put(
        tmp_path / "annotations.xml",
        '<annotations><image name="a.jpg"><box label="cat" xtl="10" ytl="10" xbr="30" ybr="20" rotation="90"/></image>'
        "</annotations>",
    )
    (box,) = cvat.read_boxes(tmp_path, Problems())
    assert [box.x, box.y, box.width, box.height] == pytest.approx([15, 5, 10, 20])
    (outline,) = json.loads(box.shape.segmentation or "")
    assert outline == pytest.approx([25, 5, 25, 25, 15, 25, 15, 5])
