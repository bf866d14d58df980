"""Files of labelme: what is read of them, what is counted, and what is written."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, Workspace
from framedex.annotations.boxes import Box
from framedex.annotations.labelme import find_files, read_boxes, read_labels, write
from framedex.annotations.masks import mask_of_pixels, pixels_of
from framedex.annotations.problems import Problems
from framedex.annotations.shapes import ObjectShape
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.image_files import photo
from tests.image_files import write as write_image

OUTLINE = [[10.0, 5.0], [30.5, 5.0], [20.0, 25.5]]
BLOB = np.array([[0, 1, 1], [1, 1, 0]], bool)


def png(pixels: Any) -> str:
    """Return a PNG file in base64, as labelme has masks."""
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def shape(label: str, points: Any, kind: str | None = "polygon", **further: Any) -> dict[str, Any]:
    """Return a shape as labelme writes it."""
    return {"label": label, "points": points, "group_id": None, "shape_type": kind, "flags": {}, **further}


def label_file(path: Path, shapes: list[Any], **further: Any) -> Path:
    """Write a file of labelme beside its image of 40 by 30 pixels."""
    content = {"version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": f"{path.stem}.png"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps({**content, "imageHeight": 30, "imageWidth": 40, **further}))
    write_image(path.with_suffix(".png"), photo(len(path.stem), width=40, height=30))
    return path


def read(folder: Path) -> tuple[list[Box], Problems]:
    """Return the boxes below a folder, and the problems."""
    problems = Problems()
    return list(read_boxes(folder, problems)), problems


def test_shapes__of_each_kind(tmp_path: Path) -> None:
    """Polygons, rectangles by any corners, circles and masks are objects; polygons of a group are one."""
    shapes = [
        shape("cat", OUTLINE, None),
        shape("dog", [[30, 20], [10, 8]], "rectangle"),
        shape("ball", [[20, 15], [20, 5]], "circle"),
        shape("blob", [[4, 6], [6, 7]], "mask", mask=png(BLOB)),
        *(shape("pair", [[x, 0], [x + 5, 0], [x, 5]], group_id=3) for x in (0, 20)),
    ]
    label_file(tmp_path / "sub" / "a", shapes)
    found, problems = read(tmp_path)
    assert problems.count == 0
    assert find_files(tmp_path) == ["JSON files of labelme"]
    assert {(box.name, box.image_size) for box in found} == {("sub/a.png", (40, 30))}
    sides = {box.label: (box.x, box.y, box.width, box.height) for box in found}
    assert sides["cat"] == (10.0, 5.0, 20.5, 20.5)
    assert sides["dog"] == (10.0, 8.0, 20.0, 12.0)
    assert sides["ball"] == pytest.approx((10, 5, 20, 20), abs=0.1)
    assert sides["blob"] == (4.0, 6.0, 3.0, 2.0)
    assert sides["pair"] == (0.0, 0.0, 25.0, 5.0)
    shown = {box.label: json.loads(box.shape.segmentation or "null") for box in found}
    assert shown["cat"] == [[10.0, 5.0, 30.5, 5.0, 20.0, 25.5]]
    assert shown["dog"] is None
    assert len(shown["pair"]) == 2
    assert (pixels_of(shown["blob"])[6:8, 4:7] == BLOB).all()
    assert pixels_of(shown["blob"]).sum() == BLOB.sum()


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (shape("", OUTLINE), "needs a 'label'"),
        ("no shape", "needs a 'label'"),
        (shape("cat", [[1, 2], [3, 4]]), "a 'polygon' of 2 points"),
        (shape("cat", [[1, 2], [3, "x"], [5, 6]]), "finite numbers of pixels"),
        (shape("cat", "points"), "finite numbers of pixels"),
        (shape("cat", OUTLINE, "spline"), "a 'spline' of 3 points"),
        (shape("cat", [[1, 1], [3, 2]], "mask", mask="no base64"), "'mask' must be a PNG file"),
        (shape("cat", [[1, 1], [3, 2]], "mask", mask=png(np.zeros((2, 3)))), "mask is empty"),
        (shape("tip", [[5, 5]], "point"), "a point is no object"),
        (shape("cat", OUTLINE, attributes={"parts": ["ear"]}), "is neither a text, a finite number nor a boolean"),
    ],
)
def test_shapes__that_are_not_read(tmp_path: Path, broken: Any, told: str) -> None:
    """What cannot be read is counted with its place, and the others are read."""
    label_file(tmp_path / "a", [broken, shape("dog", [[1, 1], [5, 5]], "rectangle")])
    found, problems = read(tmp_path)
    assert found[-1].label == "dog"
    assert problems.count == 1
    assert told in str(problems.sample[0])
    assert problems.sample[0].location == "a.json: shape 0"


def test_files__that_are_not_read(tmp_path: Path) -> None:
    """A broken file is a problem of its own; other JSON files are none of labelme."""
    label_file(tmp_path / "a", [shape("cat", OUTLINE)])
    (tmp_path / "b.json").write_text('{"shapes": [{"label": "dog", "shape_type": "polygon"')
    (tmp_path / "c.json").write_text('{"images": []}')
    found, problems = read(tmp_path)
    assert [box.label for box in found] == ["cat"]
    assert [each.location for each in problems.sample] == ["b.json"]


def test_image__by_its_path_or_the_name_of_the_file(tmp_path: Path) -> None:
    """The image is that of imagePath if it is there, also in another folder; else that with the name of the file."""
    label_file(tmp_path / "a", [shape("cat", OUTLINE)], imagePath="before it was renamed.png")
    label_file(tmp_path / "img" / "b", [])
    (tmp_path / "img" / "b.json").rename(tmp_path / "b.json")
    label_file(tmp_path / "ann" / "b", [shape("dog", OUTLINE)], imagePath="..\\img\\b.png")
    (tmp_path / "ann" / "b.png").unlink()
    assert [box.name for box in read(tmp_path)[0]] == ["a.png", "img/b.png"]


def test_flags__are_labels(tmp_path: Path) -> None:
    """The true flags of an image are its labels."""
    label_file(tmp_path / "a", [], flags={"day": True, "night": False, "street": True})
    (row,) = read_labels(tmp_path)
    assert (row.name, row.labels) == ("a.png", ("day", "street"))  # type: ignore[union-attr]


def test_write__is_read_again(tmp_path: Path) -> None:
    """Rectangles, polygons, several polygons and masks are read as they were written; what has no place is counted."""
    mask = json.dumps(mask_of_pixels(np.pad(BLOB, ((3, 25), (5, 32)))), separators=(",", ":"))
    boxes = [
        Box("a.png", 1.5, 2, 10, 8.25, "cat", 0.5, "7"),
        Box("a.png", 0, 0, 20.5, 20.5, "cat", shape=ObjectShape("[[0,0,20.5,0,10,20.5]]")),
        Box("a.png", 0, 0, 25, 5, "pair", shape=ObjectShape("[[0,0,5,0,0,5],[20,0,25,0,20,5]]")),
        Box("a.png", 5, 3, 3, 2, "blob", shape=ObjectShape(mask)),
    ]
    images = ImagesInMemory({"a.png": (40, 30), "b.png": (40, 30)}, boxes, labels={"b.png": ["night"]}, folder="")
    notes = write(FolderFiles(tmp_path), images, no_progress)
    assert notes == [
        "1 id is left out: labelme files hold none", "1 confidence is left out: labelme files hold none"
    ]  # fmt: skip
    found, problems = read(tmp_path)
    assert problems.count == 0
    plain = [(box.label, box.x, box.y, box.width, box.height) for box in boxes]
    assert [(box.label, box.x, box.y, box.width, box.height) for box in found] == plain
    shapes = {box.label: box.shape.segmentation for box in found}
    assert shapes["pair"] == "[[0,0,5,0,0,5],[20,0,25,0,20,5]]"
    assert shapes["blob"] == mask
    flags = json.loads((tmp_path / "b.json").read_text())["flags"]
    assert flags == {"night": True}


def test_dataset__of_labelme(workspace: Workspace, tmp_path: Path) -> None:
    """A folder of labelme is a source: objects with outlines, and what was not read."""
    label_file(tmp_path / "images" / "a", [shape("cat", OUTLINE), shape("tip", [[1, 1]], "point")])
    dataset: Dataset = workspace.create_dataset("d", tmp_path / "images", "gist")
    assert dataset.layout == ["read: JSON files of labelme"]
    assert dataset.objects.to_arrow(["label"])["label"].to_pylist() == ["cat"]
    assert [(each.count, each.reason) for each in dataset.problems] == [
        (1, "points and lines of labelme, which are not read"),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        shape("far", [[10**6, 10**6], [10**6 + 2, 10**6 + 1]], "mask", mask=png(BLOB)),
        shape("huge", [[10**400, 0], [10, 10]], "rectangle"),
    ],
)
def test_shapes__too_large_for_memory(tmp_path: Path, broken: Any) -> None:
    """A mask far outside of any image, and a number that no float holds, are problems of their own."""
    label_file(tmp_path / "a", [broken, shape("dog", [[1, 1], [5, 5]], "rectangle")])
    found, problems = read(tmp_path)
    assert [box.label for box in found] == ["dog"]
    assert problems.count == 1


@pytest.mark.parametrize("place", ["x/" * 3000, "\0/"])
def test_names__of_folders_that_cannot_be_read(tmp_path: Path, place: str) -> None:
    """A file that names an image where none can be is of the image with its own name."""
    label_file(tmp_path / "a", [shape("dog", [[1, 1], [5, 5]], "rectangle")], imagePath=f"{place}b.png")
    assert [box.name for box in read(tmp_path)[0]] == ["a.png"]


@pytest.mark.parametrize("place", [".trash/b", "__MACOSX/b", "@eaDir/b", ".b"])
def test_files__of_systems_are_left_out(tmp_path: Path, place: str) -> None:
    """Files that are hidden, or in folders that systems make, are no annotations, as they are no images."""
    for each in ("a", place):
        label_file(tmp_path / each, [shape("dog", [[1, 1], [5, 5]], "rectangle")])
    found, problems = read(tmp_path)
    assert ([box.name for box in found], problems.count) == (["a.png"], 0)


def test_write__long_flags(tmp_path: Path) -> None:
    """A file is one of labelme by its beginning, however long the labels of its image are."""
    box, labels = Box("a.png", 1, 2, 3, 4, "cat"), {"a.png": ["x" * 2**17]}
    write(FolderFiles(tmp_path), ImagesInMemory({"a.png": (40, 30)}, [box], labels=labels), no_progress)
    assert [each.label for each in read(tmp_path)[0]] == ["cat"]
