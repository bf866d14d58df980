"""COCO boxes are read unchanged, bad parts fail alone, and exports are restored."""

import contextlib
import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as masks
from pycocotools.coco import COCO

from framedex.annotations.boxes import Box
from framedex.annotations.coco import FILE
from framedex.annotations.coco_reader import read_boxes
from framedex.annotations.coco_writer import write
from framedex.annotations.masks import bounds_of_mask, mask_of_pixels, pixels_of, runs_of
from framedex.annotations.problems import Problems
from framedex.annotations.shapes import ObjectShape
from framedex.annotations.sources import read_annotations
from framedex.errors import InvalidInput
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.boxes import SIZES, box, boxes, flagged
from tests.laws import examples

IMAGES = [{"id": 1, "file_name": "a.jpg"}, {"id": 90, "file_name": "x/b.jpg"}]
CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 17, "name": "dog"}]


def read(folder: Path, content: Any) -> tuple[list[Box], Problems]:
    """Return the boxes and problems of a file with a content."""
    path, problems = folder / "annotations.json", Problems()
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(read_boxes(path, problems)), problems


def coco(*annotations: Any, images: Any = IMAGES, categories: Any = CATEGORIES) -> dict[str, Any]:
    """Return the content of a file."""
    return {"annotations": annotations, "images": images, "categories": categories}


def note(**changes: Any) -> dict[str, Any]:
    """Return an annotation."""
    return {"id": 5, "image_id": 1, "category_id": 3, "bbox": [1, 2.5, 3, 4]} | changes


def test_read__all_there_is(tmp_path: Path) -> None:
    """Numbers, ids, names, scores and crowds are read; annotations may precede the images."""
    content = coco(note(), note(id=7, image_id=90, category_id=17, iscrowd=1, score=0.25))
    found, problems = read(tmp_path, content)
    assert found == [
        Box("a.jpg", 1, 2.5, 3, 4, "cat", original_id="5"),
        Box("x/b.jpg", 1, 2.5, 3, 4, "dog", confidence=0.25, original_id="7", iscrowd=True),
    ]
    assert problems.count == 0


@pytest.mark.parametrize("order", [("images", "categories", "annotations"), ("annotations", "categories", "images")])
def test_read__arrays_in_any_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    """Names are resolved in any order of the arrays, and each box is read once."""
    content = coco(note(), note(image_id=90, category_id=17))
    found, problems = read(tmp_path, {key: content[key] for key in order})
    assert [(each.name, each.label) for each in found] == [("a.jpg", "cat"), ("x/b.jpg", "dog")]
    assert problems.count == 0


def test_read__annotations_of_images(tmp_path: Path) -> None:
    """Captions and labels of images are no objects, and no problems."""
    content = coco({"image_id": 1, "caption": "a cat", "bbox": None}, {"image_id": 1, "category_id": 3})
    found, problems = read(tmp_path, content)
    assert (found, problems.count) == ([], 0)


SQUARE = [1.5, 2, 6, 2, 6, 5, 1.5, 5]
RUNS = [11, 3, 7, 3, 76]
"""Runs of a mask of 10 × 10 pixels: rows 1 to 3 of columns 1 and 2."""


@pytest.mark.parametrize("missing", [{}, {"bbox": None}, {"bbox": []}])
@pytest.mark.parametrize(
    ("shape", "sides"),
    [
        ({"segmentation": [SQUARE]}, (1.5, 2, 4.5, 3)),
        ({"segmentation": [[8, 8, 9, 8, 9, 9], SQUARE], "keypoints": [0, 0, 2]}, (1.5, 2, 7.5, 7)),
        ({"segmentation": {"size": [10, 10], "counts": RUNS}}, (1, 1, 2, 3)),
        ({"segmentation": {"size": [10, 10], "counts": [0, 100]}}, (0, 0, 10, 10)),
        ({"segmentation": {"size": [10, 10], "counts": [19, 2, 79]}}, (1, 0, 2, 10)),
        ({"keypoints": [1, 2, 2, 0, 0, 0, 4, 6, 1]}, (1, 2, 3, 4)),
    ],
)
def test_read__a_box_that_is_missing(
    tmp_path: Path, missing: dict[str, Any], shape: dict[str, Any], sides: tuple[float, ...]
) -> None:
    """The box of an object without one is that of its outline, mask or key points, as pycocotools has it."""
    note_ = {"id": 5, "image_id": 1, "category_id": 3, **missing, **shape}
    found, problems = read(tmp_path, coco(note_))
    assert [(each.x, each.y, each.width, each.height) for each in found] == [sides]
    assert problems.count == 0
    if isinstance(mask := shape.get("segmentation"), dict):
        assert masks.toBbox(masks.frPyObjects(mask, 10, 10)).tolist() == list(map(float, sides))
    assert read_annotations(str(tmp_path)).find("a.jpg") == ((), None)


@given(st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=7))
def test_masks__as_pycocotools_has_them(rows: list[list[bool]]) -> None:
    """Masks in both encodings have the pixels and the bounds that pycocotools finds."""
    pixels = np.asfortranarray(rows, np.uint8)
    packed = masks.encode(pixels)
    text = {"size": list(packed["size"]), "counts": packed["counts"].decode()}
    plain = mask_of_pixels(pixels.astype(bool))
    assert masks.frPyObjects(plain, *plain["size"]) == packed
    assert runs_of(text["counts"]) == plain["counts"]
    assert (pixels_of(text) == pixels).all()
    sides = masks.toBbox(packed).tolist()
    assert bounds_of_mask(text) == bounds_of_mask(plain) == (tuple(sides) if pixels.any() else None)


@pytest.mark.parametrize("way", [str, float, int])
def test_read__ids_in_any_form(tmp_path: Path, way: Any) -> None:
    """An id may be an integer, a float or a text."""
    images = [{"id": way(image["id"]), "file_name": image["file_name"]} for image in IMAGES]
    found, problems = read(tmp_path, coco(note(), note(image_id="90", id="x"), note(id=None), images=images))
    assert [(each.name, each.original_id) for each in found] == [("a.jpg", "5"), ("x/b.jpg", "x"), ("a.jpg", None)]
    assert problems.count == 0


def test_read__ids_of_annotations_may_be_doubled(tmp_path: Path) -> None:
    """Annotations with the same id are both read."""
    found, problems = read(tmp_path, coco(note(), note()))
    assert [each.original_id for each in found] == ["5", "5"]
    assert problems.count == 0


def test_read__images_that_share_an_id(tmp_path: Path) -> None:
    """Boxes of images with the same id are problems; boxes of other images are not."""
    images = [*IMAGES, {"id": 1, "file_name": "c.jpg"}, {"id": 90, "file_name": "x/b.jpg"}]
    found, problems = read(tmp_path, coco(note(), note(image_id=90), images=images))
    assert [each.name for each in found] == ["x/b.jpg"]
    assert problems.count == 2
    assert "several have this one" in problems.sample[1].reason


def test_read__an_image_that_is_listed_twice(tmp_path: Path) -> None:
    """Two entries with one name are one image, with the annotations of both; it is a problem, as both may be meant."""
    images = [*IMAGES, {"id": 7, "file_name": "a.jpg"}]
    found, problems = read(tmp_path, coco(note(), note(image_id=7), images=images))
    assert [each.name for each in found] == ["a.jpg", "a.jpg"]
    assert problems.counts == {"images that a file lists several times": 1}


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (note(bbox=[1, 2, 3]), "annotations[1] (id 5): [1, 2, 3]: 'bbox' must be"),
        (note(bbox=[1, 2, 3, "4"]), "'bbox' must be"),
        (note(bbox=[1, 2, 3, float("nan")]), "nan]: 'bbox' must be"),
        (note(bbox=[1, 2, 3, 10**400]), "'bbox' must be"),
        (note(bbox={"x": 1}), "'bbox' must be"),
        (note(image_id=4), "annotations[1] (id 5): 4: 'image_id' must be the id of one of 'images'; none has"),
        (note(image_id=[1]), "'image_id'"),
        (note(image_id=True), "'image_id'"),
        (note(category_id=None), "'category_id'"),
        (note(category_id=4), "'category_id'"),
        (note(score=1.5), "'score'"),
        (note(score="high"), "'score'"),
        (note(bbox=[]), "annotations[1] (id 5): []: 'bbox' must be"),
        (note(bbox=None, keypoints=[1, 1, 0]), "None: 'bbox' must be"),
        (note(bbox=None, segmentation={"size": [2, 2], "counts": [4]}), "None: 'bbox' must be"),
        ("text", "annotations[1]: 'text': an annotation must be an object"),
    ],
)
def test_read__bad_annotations_fail_alone(tmp_path: Path, annotation: Any, told: str) -> None:
    """A bad annotation is a problem with its location and value; the others are read."""
    found, problems = read(tmp_path, coco(note(), annotation, note()))
    assert len(found) == 2
    assert problems.count == 1
    assert told in str(problems.sample[0])


@pytest.mark.parametrize(
    "outline",
    [
        [[10**400, 1, 1, 1, 5, 5]],
        {"size": [10**5, 10**5], "counts": [10**10]},
        {"size": [10**20, 10**20], "counts": [10**40]},
    ],
)
def test_read__shapes_too_large_for_memory(tmp_path: Path, outline: Any) -> None:
    """A number that no float holds, and a mask of more pixels than memory, are problems of a box without a shape."""
    found, problems = read(tmp_path, coco(note(segmentation=outline)))
    assert [each.shape.segmentation for each in found] == [None]
    assert problems.count == 1


@pytest.mark.parametrize("image", [{"id": 1}, {"file_name": "a.jpg"}, {"id": None, "file_name": "a.jpg"}, "a.jpg"])
def test_read__bad_images_fail_alone(tmp_path: Path, image: Any) -> None:
    """An image without id or name is a problem, and so is each of its boxes."""
    found, problems = read(tmp_path, coco(note(), note(image_id=90), images=[image, IMAGES[1]]))
    assert [each.name for each in found] == ["x/b.jpg"]
    assert problems.count == 2


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "{", '{"images": {}}', '{"annotations": []}', '{"images": [], "annotations": {"a": 1}}']
)
def test_read__of_another_kind(tmp_path: Path, content: str) -> None:
    """A file that is not in COCO format is an error that names it."""
    with pytest.raises(InvalidInput, match=r"annotations\.json"):
        read(tmp_path, content)


def test_read__of_no_file(tmp_path: Path) -> None:
    """A missing file is an error that names it."""
    with pytest.raises(InvalidInput, match=r"none\.json"):
        list(read_boxes(tmp_path / "none.json", Problems()))


def written(folder: Path, images: ImagesInMemory) -> list[Box]:
    """Return the boxes that are read back from the written file."""
    write(FolderFiles(folder), images, no_progress)
    problems = Problems()
    again = list(read_boxes(folder / FILE, problems))
    assert problems.count == 0
    return again


@pytest.mark.slow
@examples(50)
@given(boxes("coco", ids=True))
def test_round_trip__to_the_last_bit(given_boxes: list[Box]) -> None:
    """An export is restored: numbers, names, ids and crowds, in order; boxes without an id get higher ids."""
    given_boxes = flagged(given_boxes, "iscrowd")
    with tempfile.TemporaryDirectory() as folder:
        again = written(Path(folder), ImagesInMemory(SIZES, given_boxes, folder=""))
    assert [
        replace(new, original_id=old.original_id) for old, new in zip(given_boxes, again, strict=True)
    ] == given_boxes
    ids = [each.original_id for each in again]
    assert len(set(ids)) == len(ids)
    for place, each in enumerate(given_boxes):
        if each.original_id and all(other.original_id != each.original_id for other in given_boxes[:place]):
            assert ids[place] == each.original_id


def test_write__ids_that_are_repeated(tmp_path: Path) -> None:
    """The first box keeps its id, the next get new ones that nobody has, in all files; their number is told."""
    images = {f"{name}.jpg": (10, 10) for name in "abc"}
    ids = ["0", "1", str(2**63 + 5), "1", "x", "0", "x"]
    given_boxes = [
        Box(f"{'aabbccc'[place]}.jpg", place, 2, 3, 4, "cat", original_id=each) for place, each in enumerate(ids)
    ]
    splits = {"a.jpg": "train", "b.jpg": "val", "c.jpg": "val"}
    notes = write(FolderFiles(tmp_path), ImagesInMemory(images, given_boxes, splits=splits), no_progress)
    assert notes == ["3 annotations have a new id, because others have theirs"]
    found = {each["bbox"][0]: each["id"] for each in json.loads((tmp_path / FILE).read_text())["annotations"]}
    assert list(found.values()) == [0, 1, 2**63 + 5, 2, "x", 3, 4]
    part = json.loads((tmp_path / "annotations_val.json").read_text())["annotations"]
    assert {each["bbox"][0]: each["id"] for each in part} == {x: found[x] for x in (2, 3, 4, 5, 6)}
    with contextlib.redirect_stdout(io.StringIO()):
        read_again = COCO(str(tmp_path / FILE))
    image = next(each["id"] for each in read_again.dataset["images"] if each["file_name"].endswith("b.jpg"))
    assert [each["bbox"][0] for each in read_again.loadAnns(read_again.getAnnIds(imgIds=[image]))] == [2, 3]


def test_write__numbers_boxes_without_an_id(tmp_path: Path) -> None:
    """Other tools need an id for each annotation; existing ids stay, and new ones are higher."""
    given_boxes = [box(), Box("a.jpg", 1, 2, 3, 4, "cat", original_id="7"), box(x=9)]
    again = written(tmp_path, ImagesInMemory({"a.jpg": (10, 10), "empty.jpg": (5, 4)}, given_boxes))
    content = json.loads((tmp_path / FILE).read_text())
    assert [each["id"] for each in content["annotations"]] == [8, 7, 9]
    assert content["images"][1] == {
        "id": 2, "file_name": "images/empty.jpg", "width": 5, "height": 4, "media_id": "id-1", "labels": [],
    }  # fmt: skip
    assert [each.x for each in again] == [1, 1, 9]


def test_write__labels_beside_boxes(tmp_path: Path) -> None:
    """An image lists its labels, boxes alone are annotations, and captions have a file of their own."""
    images = ImagesInMemory(
        {"a.jpg": (9, 9)}, [box(label="cat")], labels={"a.jpg": ["dog", "cat"]}, captions={"a.jpg": "a pair"}, folder=""
    )
    assert [each.label for each in written(tmp_path, images)] == ["cat"]
    found = read_annotations(str(tmp_path))
    assert found.find("a.jpg") == (("dog", "cat"), "a pair")
    content = json.loads((tmp_path / FILE).read_text())
    assert [sorted(each) for each in content["annotations"]] == [
        ["area", "bbox", "category_id", "id", "image_id", "iscrowd", "segmentation"]
    ]
    captions = json.loads((tmp_path / "captions.json").read_text())
    assert captions["annotations"] == [{"id": 1, "image_id": 1, "caption": "a pair"}]
    assert "categories" not in captions


def test_write__without_images(tmp_path: Path) -> None:
    """A file without images and boxes is a valid COCO file."""
    assert written(tmp_path, ImagesInMemory({})) == []


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        ([[10, 10, 50, 10, 50, 40]], 600),
        ([[10, 10, 50, 10, 50, 40], [60, 10, 80, 10, 80, 30, 60, 30]], 1000),
        ({"size": [120, 160], "counts": [100, 20, 19080]}, 20),
        ({"size": [120, 160], "counts": "Zb`0`0o3N2N1O1"}, None),
    ],
)
def test_write__area_of_outlines_and_masks(tmp_path: Path, shape: Any, area: float | None) -> None:
    """The area of an outline or mask without one is its own, as pycocotools counts its pixels, not that of the box."""
    box = Box("a.png", 10, 10, 70, 30, "cat", shape=ObjectShape(json.dumps(shape)))
    write(FolderFiles(tmp_path), ImagesInMemory({"a.png": (160, 120)}, [box], folder=""), no_progress)
    (found,) = json.loads((tmp_path / FILE).read_text())["annotations"]
    assert area is None or found["area"] == area
    is_polygon, is_list = isinstance(shape, list), isinstance(shape, list) or isinstance(shape["counts"], list)
    runs = masks.frPyObjects(shape, 120, 160) if is_list else shape
    counted = masks.area(masks.merge(runs) if is_polygon else runs)
    assert found["area"] == pytest.approx(counted, abs=120 if is_polygon else 0)  # half a pixel along its edges
