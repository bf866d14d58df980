"""Outlines, masks and key points of COCO and YOLO files are kept and exported."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from framedex import Dataset, InvalidInput, Workspace
from tests.gallery import Averages
from tests.image_files import photo, write
from tests.problems import unusable

POLYGON = [[10.0, 10.5, 50, 10.5, 50, 40.25]]
TWO = [[10, 10, 20, 10, 20, 20], [30, 10, 70, 10, 70, 40, 30, 40]]
MASK = {"size": [120, 160], "counts": [100, 20, 19080]}
ENCODED = {"size": [120, 160], "counts": "Zb`0`0o3N2N1O1"}
POINTS = [12, 13, 2, 40.5, 20, 1, 0, 0, 0]
ANNOTATIONS: list[dict[str, Any]] = [
    {"id": 1, "bbox": [10, 10.5, 40, 29.75], "segmentation": POLYGON, "area": 595.5, "iscrowd": 0},
    {"id": 2, "bbox": [10, 10, 60, 30], "segmentation": TWO, "area": 1250, "iscrowd": 0},
    {"id": 3, "bbox": [1, 2, 30, 40], "segmentation": MASK, "area": 20, "iscrowd": 1},
    {"id": 4, "bbox": [1, 2, 30, 41], "segmentation": ENCODED, "area": 77, "iscrowd": 1},
    {"id": 5, "bbox": [5, 6, 70, 80], "segmentation": [], "area": 5600, "iscrowd": 0, "keypoints": POINTS},
    {"id": 6, "bbox": [0, 0, 20, 20], "segmentation": [], "area": 400, "iscrowd": 0},
]


def make(workspace: Workspace, folder: Path, annotations: list[dict[str, Any]]) -> Dataset:
    """Return a dataset of one image with a COCO file."""
    write(folder / "a.png", photo(1))
    content = {
        "images": [{"id": 9, "file_name": "a.png"}],
        "categories": [{"id": 3, "name": "cat"}],
        "annotations": [{"image_id": 9, "category_id": 3, **each} for each in annotations],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return workspace.create_dataset(folder.name, folder, Averages())


def exported(dataset: Dataset, path: Path, format_: str, **options: Any) -> dict[str, bytes]:
    """Return the files of an export."""
    dataset.export(path / "out.zip", format_, **options)
    with zipfile.ZipFile(path / "out.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.slow
@pytest.mark.only_soak
def test_coco__shapes_come_back(workspace: Workspace, tmp_path: Path) -> None:
    """Polygons, masks, areas and key points are those of the file, also after a second round."""
    dataset = make(workspace, tmp_path / "one", ANNOTATIONS)
    assert unusable(dataset) == []
    expected = [{"image_id": 9, "category_id": 3, **each} for each in ANNOTATIONS]
    expected[4]["num_keypoints"] = 2
    content = json.loads(exported(dataset, tmp_path, "coco")["annotations.json"])
    found = content["annotations"]
    assert found == expected
    assert content["categories"] == [
        {"id": 3, "name": "cat", "supercategory": "", "keypoints": [], "skeleton": []}
    ]  # pycocotools looks the skeleton up wherever there are key points
    again = make(workspace, tmp_path / "two", found)
    assert json.loads(exported(again, tmp_path, "coco")["annotations.json"])["annotations"] == expected


@pytest.mark.slow
def test_metadata__has_the_shapes(workspace: Workspace, tmp_path: Path) -> None:
    """JSON has them as values, and Parquet as JSON texts."""
    dataset = make(workspace, tmp_path / "one", ANNOTATIONS)
    (item,) = json.loads(exported(dataset, tmp_path, "json")["metadata.json"])["media_items"]
    objects = [each["properties"] for each in item["metadata_items"] if each["type"] == "object_label"]
    assert [each["segmentation"] for each in objects] == [POLYGON, TWO, MASK, ENCODED, None, None]
    assert [each["keypoints"] for each in objects] == [None, None, None, None, POINTS, None]
    assert [each["area"] for each in objects] == [595.5, 1250, 20, 77, 5600, None]
    dataset.export(tmp_path / "out.parquet", "parquet")
    (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert json.loads(row["objects"][2]["segmentation"]) == MASK


def test_formats__without_shapes_count_them(workspace: Workspace, tmp_path: Path) -> None:
    """Formats that hold no outlines or key points say how many are left out."""
    dataset = make(workspace, tmp_path / "one", ANNOTATIONS)
    for format_ in ("csv", "voc", "yolo"):
        message = dataset.export(tmp_path / "out.zip", format_).message
        assert "4 outlines or masks are left out" in message
        assert "1 set of key points is left out" in message


def test_yolo__outlines_on_request(workspace: Workspace, tmp_path: Path) -> None:
    """A line is the largest polygon, or the corners of the box; the message counts what is simplified."""
    dataset = make(workspace, tmp_path / "one", [ANNOTATIONS[0], ANNOTATIONS[1], ANNOTATIONS[2]])
    result = dataset.export(tmp_path / "out.zip", "yolo", outlines=True)
    assert "2 outlines are simplified" in result.message
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        lines = [[float(each) for each in line.split()] for line in archive.read("labels/a.txt").splitlines()]
    sides = (160, 120)
    expected: list[list[float]] = [POLYGON[0], [*map(float, TWO[1])], [1, 2, 31, 2, 31, 42, 1, 42]]
    assert [line[0] for line in lines] == [0, 0, 0]
    for line, corners in zip(lines, expected, strict=True):
        assert line[1:] == pytest.approx([each / sides[place % 2] for place, each in enumerate(corners)], abs=1e-12)


@pytest.mark.slow
def test_yolo__outlines_come_back(workspace: Workspace, tmp_path: Path) -> None:
    """A line with an outline gives its bounding box and keeps the outline in pixels."""
    write(tmp_path / "source" / "images" / "a.png", photo(1))
    (tmp_path / "source" / "labels").mkdir()
    (tmp_path / "source" / "data.yaml").write_text("names: [cat]\n")
    (tmp_path / "source" / "labels" / "a.txt").write_text("0 0.25 0.25 0.5 0.25 0.5 0.75\n")
    dataset = workspace.create_dataset("d", tmp_path / "source", Averages())
    (found,) = json.loads(exported(dataset, tmp_path, "coco")["annotations.json"])["annotations"]
    assert found["segmentation"] == [[40, 30, 80, 30, 80, 90]]
    assert found["bbox"] == [40, 30, 40, 60]
    assert exported(dataset, tmp_path, "yolo")["labels/a.txt"] == b"0 0.375 0.5 0.25 0.5\n"
    assert exported(dataset, tmp_path, "yolo", outlines=True)["labels/a.txt"] == b"0 0.25 0.25 0.5 0.25 0.5 0.75\n"


@pytest.mark.slow
@pytest.mark.only_soak
def test_yolo__key_points_come_back(workspace: Workspace, tmp_path: Path) -> None:
    """COCO key points are written as lines of a pose dataset on request, and read as the same key points."""
    names = ["nose", "left ear", "right ear"]
    write(tmp_path / "one" / "a.png", photo(1))
    boxes = [
        {"id": 1, "bbox": [5, 6, 70, 80], "keypoints": POINTS},
        {"id": 2, "bbox": [10, 10, 60, 30], "keypoints": [1, 2, 2]},
        {"id": 3, "bbox": [0, 0, 20, 20]},
    ]
    content = {
        "images": [{"id": 9, "file_name": "a.png"}],
        "categories": [{"id": 3, "name": "cat", "keypoints": names, "skeleton": [[1, 2]]}],
        "annotations": [{"image_id": 9, "category_id": 3, **each} for each in boxes],
    }
    (tmp_path / "one" / "annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("one", tmp_path / "one", Averages())
    message = dataset.export(tmp_path / "out.zip", "yolo", include_images=True, keypoints=True).message
    assert "key points" not in message
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "two")
    lines = (tmp_path / "two" / "labels" / "a.txt").read_text().splitlines()
    assert {len(line.split()) for line in lines} == {5 + 3 * 3}
    assert "kpt_shape: [3, 3]\n" in (tmp_path / "two" / "data.yaml").read_text()
    again = workspace.create_dataset("two", tmp_path / "two", Averages())
    assert unusable(again) == []
    found = json.loads(exported(again, tmp_path, "coco")["annotations.json"])
    assert [each.get("keypoints") for each in found["annotations"]] == [POINTS, [1, 2, 2, *[0] * 6], None]
    assert [each["bbox"] for each in found["annotations"]] == [each["bbox"] for each in boxes]
    assert [each["segmentation"] for each in found["annotations"]] == [[], [], []]
    assert found["categories"][0]["keypoints"] == names


@pytest.mark.slow
def test_yolo__key_points_on_request(workspace: Workspace, tmp_path: Path) -> None:
    """Lines have five numbers otherwise, as readers of boxes expect; outlines have no room for key points."""
    dataset = make(workspace, tmp_path / "one", [ANNOTATIONS[4]])
    files = exported(dataset, tmp_path, "yolo")
    assert len(files["labels/a.txt"].split()) == 5
    assert b"kpt_shape" not in files["data.yaml"]
    assert "1 set of key points is left out" in dataset.export(tmp_path / "out.zip", "yolo").message
    with pytest.raises(InvalidInput, match="keypoints and outlines exclude each other"):
        dataset.export(tmp_path / "out.zip", "yolo", keypoints=True, outlines=True)
    with pytest.raises(InvalidInput, match="keypoints=True is for the format 'yolo', not 'voc'"):
        dataset.export(tmp_path / "out.zip", "voc", keypoints=True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"segmentation": [[1, 2, 3, 4]]}, "a polygon of 'segmentation' must be"),
        ({"segmentation": [[1, 2, 3, 4, 5, 6, 7]]}, "a polygon of 'segmentation' must be"),
        ({"segmentation": [[1, 2, 3, 4, 5, float("nan")]]}, "a polygon of 'segmentation' must be"),
        ({"segmentation": [1, 2, 3, 4, 5, 6]}, "must be a list of polygons"),
        ({"segmentation": "text"}, "must be a list of polygons"),
        ({"segmentation": {"size": [2, 2], "counts": [1, 2]}}, "whose sum is height × width"),
        ({"segmentation": {"size": [2], "counts": [4]}}, "'size' of a mask must be"),
        ({"segmentation": {"size": [2, 2], "counts": None}}, "'counts' of a mask must be"),
        ({"keypoints": [1, 2]}, "three finite numbers for each point"),
        ({"keypoints": ["1", 2, 2]}, "three finite numbers for each point"),
    ],
)
@pytest.mark.slow
def test_coco__shapes_that_cannot_be_used(
    workspace: Workspace, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    """The box stays without the shape; the problem names the annotation, the value and what would be right."""
    dataset = make(workspace, tmp_path / "one", [{"id": 77, "bbox": [1, 2, 30, 40], **changes}])
    assert dataset.objects.count() == 1
    (problem,) = unusable(dataset)
    assert "annotations[0] (id 77)" in str(problem) or "annotations[0]" in str(problem)
    assert reason in str(problem)
    (found,) = json.loads(exported(dataset, tmp_path, "coco")["annotations.json"])["annotations"]
    assert (found["segmentation"], found["area"], "keypoints" in found) == ([], 1200, False)


@pytest.mark.slow
def test_yolo__five_columns_unless_asked(workspace: Workspace, tmp_path: Path) -> None:
    """A confidence is a sixth number on request only; otherwise readers that take five would drop the image."""
    scored = [{"id": 1, "bbox": [16, 12, 80, 60], "score": 0.7}, {"id": 2, "bbox": [16, 12, 16, 12]}]
    dataset = make(workspace, tmp_path / "one", scored)
    lines = exported(dataset, tmp_path, "yolo")["labels/a.txt"].decode().splitlines()
    assert lines == ["0 0.35 0.35 0.5 0.5", "0 0.15 0.15 0.1 0.1"]
    asked = exported(dataset, tmp_path, "yolo", confidences=True)["labels/a.txt"].decode().splitlines()
    assert asked == ["0 0.35 0.35 0.5 0.5 0.7", "0 0.15 0.15 0.1 0.1"]
    assert "1 confidence is left out: YOLO files hold none" in dataset.export(tmp_path / "o.zip", "yolo").message
    with pytest.raises(InvalidInput, match="exclude each other"):
        dataset.export(tmp_path / "out.zip", "yolo", confidences=True, outlines=True)
    with pytest.raises(InvalidInput, match="confidences=True is for the format 'yolo', not 'coco'"):
        dataset.export(tmp_path / "out.zip", "coco", confidences=True)
