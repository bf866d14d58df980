"""Ingestion of an unpacked export restores its boxes."""

import csv
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.annotations import coco_reader, tables, voc
from framedex.annotations.boxes import Box, fit_box
from framedex.annotations.problems import Problems
from framedex.storage.objects import objects_of
from tests.annotations.test_formats__shared import sizes_of, yolo_boxes
from tests.boxes import ANNOTATION_EXPORTS, SHARED
from tests.export.held import HELD
from tests.gallery import Averages
from tests.image_files import encode, flat
from tests.inside import stored_media
from tests.laws import rest_slow

SIZE = (48, 36)


@dataclass(frozen=True)
class Annotated:
    """An image with its annotations."""

    labels: tuple[str, ...]
    boxes: tuple[Box, ...]


def content(dataset: Dataset) -> dict[bytes, Annotated]:
    """Return the content of a dataset by image; boxes are in table order."""
    media = stored_media(dataset)
    rows = dataset.to_arrow(["media_id", "file_path", "labels"]).to_pylist()
    boxes: dict[str, list[Box]] = {row["media_id"]: [] for row in rows}
    if (objects := objects_of(media)) is not None:
        columns = [name for name in objects.table.schema.names if name != "embedding"]
        for row in objects.table.scan(columns).read_all().to_pylist():
            boxes[row["parent_id"]].append(_box(row))
    found = {
        Path(row["file_path"]).read_bytes(): Annotated(tuple(row["labels"]), tuple(boxes[row["media_id"]]))
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def _box(row: dict[str, Any]) -> Box:
    edges = (row["box_x"], row["box_y"], row["box_width"], row["box_height"])
    flags = {name: row[name] for name in ("iscrowd", "truncated", "difficult")}
    return Box("", *edges, row["labels"][0], row["confidence"], row["original_id"], **flags)


def as_held(found: dict[bytes, Annotated], format_: str) -> dict[bytes, Annotated]:
    """Return boxes as far as a format can hold them."""
    plain = {"original_id": None, "confidence": None, "iscrowd": False, "truncated": False, "difficult": False}
    held = HELD[format_] | ({"confidence"} if format_ == "yolo" else set())
    lost: dict[str, Any] = {name: value for name, value in plain.items() if name not in held}
    return {
        data: Annotated(each.labels, tuple(replace(box, **lost) for box in each.boxes)) for data, each in found.items()
    }


def unpacked(dataset: Dataset, folder: Path, format_: str) -> Path:
    """Return the folder of an unpacked export with images."""
    folder.mkdir(exist_ok=True)
    dataset.export(folder / "out.zip", format_, include_images=True, confidences=format_ == "yolo")
    with zipfile.ZipFile(folder / "out.zip") as archive:
        assert len(set(archive.namelist())) == len(archive.namelist())
        archive.extractall(folder / "out")
    return folder / "out"


def near(first: Box, second: Box) -> bool:
    """Return whether two boxes are equal to a millionth of a pixel."""
    edges = [(box.x, box.y, box.width, box.height) for box in (first, second)]
    same = replace(first, x=0, y=0, width=0, height=0) == replace(second, x=0, y=0, width=0, height=0)
    return same and edges[0] == pytest.approx(edges[1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")
@pytest.mark.parametrize("source", rest_slow(["coco-yolo", "raccoon-voc"], 1, long=1))
@pytest.mark.parametrize("format_", rest_slow(ANNOTATION_EXPORTS, 1))
def test_round_trip__of_others_files(workspace: Workspace, tmp_path: Path, source: str, format_: str) -> None:
    """Boxes of files of other tools are restored exactly by each format."""
    original = workspace.create_dataset("original", SHARED / source, Averages())
    folder = unpacked(original, tmp_path, format_)
    again = workspace.create_dataset("again", folder, Averages())
    before, after = as_held(content(original), format_), content(again)
    if format_ == "coco":
        assert all(box.original_id is not None for each in after.values() for box in each.boxes)
        after = {
            data: Annotated(each.labels, tuple(replace(box, original_id=None) for box in each.boxes))
            for data, each in after.items()
        }
    if format_ == "labelme":
        pairs = [(before[data].boxes, after[data].boxes) for data in before]
        assert all(near(*each) for one, other in pairs for each in zip(one, other, strict=True))
    else:
        assert after == before
    assert sum(len(each.boxes) for each in after.values()) == {"coco-yolo": 542, "raccoon-voc": 64}[source]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")
@pytest.mark.parametrize("source", rest_slow(["coco-yolo", "raccoon-voc"], 1, long=1))
@pytest.mark.parametrize("format_", rest_slow(["coco", "csv", "voc"], 2))
def test_export__has_what_the_original_files_say(
    workspace: Workspace, tmp_path: Path, source: str, format_: str
) -> None:
    """Exports without images have the boxes of the original files, under the same names."""
    problems = Problems()
    folder, sizes = SHARED / source, sizes_of(SHARED / source)
    given_ = yolo_boxes(folder, sizes, problems) if source == "coco-yolo" else voc.read_boxes(folder, problems)
    wanted = [box for each in given_ if (box := fit_box(each, *sizes[each.name]).box) is not None]
    dataset = workspace.create_dataset("d", folder, Averages())
    dataset.export(tmp_path / "out.zip", format_)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "out")
    readers: dict[str, Any] = {
        "coco": lambda: coco_reader.read_boxes(tmp_path / "out/annotations.json", problems),
        "csv": lambda: tables.read_csv_boxes(tmp_path / "out/object_annotations.csv", problems),
        "voc": lambda: voc.read_boxes(_with_images(tmp_path / "out", sizes), problems),
    }
    plain = [(box.name, box.label, box.x, box.y, box.width, box.height) for box in readers[format_]()]
    assert sorted(plain) == sorted(
        (box.name, box.label, *(round(edge, 9) for edge in (box.x, box.y, box.width, box.height))) for box in wanted
    )
    assert problems.count == 0


def _with_images(folder: Path, names: Any) -> Path:
    """Return a folder with files that have the names of images."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.slow
def test_voc__odd_names(workspace: Workspace, tmp_path: Path) -> None:
    """Folders named like annotation folders, images with equal stems, and control characters are handled."""
    names = ["annotations/a.png", "Annotations/a.png", "x/images/a.png", "JPEGImages/a.png", "b.png", "b.jpg"]
    with (_made(tmp_path / "source") / "object_annotations.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["filename", "col_x", "row_y", "width", "height", "label"])
        for number, name in enumerate(names):
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(flat((number, 0, 0), width=SIZE[0], height=SIZE[1])))
            rows.writerow([name, number, 1, 5, 6, f"label\x01 {number}"])
    dataset = workspace.create_dataset("d", tmp_path / "source", Averages())
    before = content(dataset)
    after = content(workspace.create_dataset("again", unpacked(dataset, tmp_path, "voc"), Averages()))
    assert after == {
        data: Annotated((), tuple(replace(box, label=box.label.replace("\x01", "\ufffd")) for box in each.boxes))
        for data, each in before.items()
    }
    assert all(len(each.boxes) == 1 for each in after.values())


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
