"""Key points of YOLO pose folders: lines, the description in ``data.yaml``, and restoration."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations.boxes import Box
from framedex.annotations.class_names import data_yaml
from framedex.annotations.problems import Problems
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.shapes import ObjectShape
from framedex.annotations.yolo import read_boxes, read_lists, write
from framedex.annotations.yolo_keypoints import KeypointShape, keypoint_names_of, keypoint_shape_of
from framedex.errors import InvalidInput
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.laws import examples

BOX = "0 0.5 0.5 0.2 0.4"


def place(folder: Path, shape: str, text: str) -> Path:
    """Write a folder with the label file of one image."""
    (folder / "labels").mkdir()
    (folder / "data.yaml").write_text(f"kpt_shape: {shape}\nnames: [cat, dog]\n")
    (folder / "labels" / "a.txt").write_text(text)
    return folder


def read(folder: Path) -> tuple[list[RelativeBox], Problems]:
    problems = Problems()
    return list(read_boxes(folder, problems)), problems


@pytest.mark.parametrize(
    ("shape", "line", "keypoints", "confidence"),
    [
        ("[2, 3]", f"{BOX} 0.1 0.2 2 0.3 0.4 1", (0.1, 0.2, 2, 0.3, 0.4, 1), None),
        ("[2, 3]", f"{BOX} 0.1 0.2 2 0.3 0.4 1 0.75", (0.1, 0.2, 2, 0.3, 0.4, 1), 0.75),
        ("[2, 3]", f"{BOX} 0.1 0.2 0.9 0.3 0.4 0.5", (0.1, 0.2, 0.9, 0.3, 0.4, 0.5), None),
        ("[2, 2]", f"{BOX} 0.1 0.2 0.3 0.4", (0.1, 0.2, 2, 0.3, 0.4, 2), None),
        ("[2, 2]", f"{BOX} 0 0 0.3 0", (0, 0, 0, 0.3, 0, 2), None),
        ("[2, 2]", f"{BOX} 0.1 0.2 0.3 0.4 0.75", (0.1, 0.2, 2, 0.3, 0.4, 2), 0.75),
        ("\n- 1\n- '3'", f"{BOX} 0.1 0.2 2", (0.1, 0.2, 2), None),
        ("[2, 3]", f"{BOX} 0 0 0 0 0 0", (), None),
        ("[2, 3]", BOX, (), None),
        ("[2, 3]", f"{BOX} 0.75", (), 0.75),
    ],
)
def test_read__lines(
    tmp_path: Path, shape: str, line: str, keypoints: tuple[float, ...], confidence: float | None
) -> None:
    """A line has a box, then its points, and optionally a confidence; points without visibility are visible."""
    (found,), problems = read(place(tmp_path, shape, f"{line}\n"))
    assert (found.x, found.y, found.width, found.height, found.label) == (0.5, 0.5, 0.2, 0.4, "cat")
    assert (found.keypoints, found.confidence, found.outline) == (keypoints, confidence, ())
    assert problems.count == 0


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ("0.1 0.2 2", "must be class x y width height, 2 key points of 3 numbers each as 'kpt_shape' has them"),
        ("0.1 0.2 2 0.3 0.4 1 0.5 0.5", "2 key points of 3 numbers each"),
        ("0.1 0.2 2 0.3 x 1", "2 key points of 3 numbers each"),
        ("0.1 0.2 2 0.3 inf 1", "finite numbers"),
        ("0.1 0.2 2 0.3 0.4 1 7", "a confidence must be a number from 0 to 1"),
    ],
)
def test_lines__fail_alone(tmp_path: Path, numbers: str, reason: str) -> None:
    """A line of another length, or with a value that is none, is a problem; the others are read."""
    found, problems = read(place(tmp_path, "[2, 3]", f"{BOX}\n{BOX} {numbers}\n{BOX}\n"))
    assert (len(found), problems.count) == (2, 1)
    assert "line 2" in str(problems.sample[0])
    assert reason in str(problems.sample[0])


@pytest.mark.parametrize(
    "shape",
    ["17", "[17]", "[17, 4]", "[0, 3]", "[17, 3, 1]", "[a, 3]", "[-1, 3]", "[999999999, 3]", "{17: 3}", "[[1], 3]"],
)
def test_keypoint_shape__of_another_form(tmp_path: Path, shape: str) -> None:
    """A description that cannot be used is an error that names the file, the value and what would be right."""
    with pytest.raises(InvalidInput, match=r"data.yaml: 'kpt_shape' must be \[number of key points, 2 or 3") as caught:
        read(place(tmp_path, shape, f"{BOX}\n"))
    assert "not " in str(caught.value)


def test_read_lists__names_of_points(tmp_path: Path) -> None:
    """The names of key points come with their class; other forms are left out, and no names are none."""
    points = {0: ["nose", "tail: end"]}
    place(tmp_path, "[2, 3]", "")
    assert keypoint_names_of(tmp_path) == {}
    (tmp_path / "data.yaml").write_text(data_yaml(["cat", "dog"], {"train": ["x"]}, keypoints=2, keypoint_names=points))
    assert keypoint_shape_of(tmp_path) == KeypointShape(2, 3)
    assert keypoint_names_of(tmp_path) == points
    assert [json.loads(each.details or "null") for each in read_lists(tmp_path)] == [{"keypoints": points[0]}, None]
    (tmp_path / "data.yaml").write_text("names: [cat]\nkpt_names: {0: nose, x: [a], 1: [b]}\n")
    assert keypoint_names_of(tmp_path) == {1: ["b"]}


_SIDES = (640, 427)
_POINT = st.tuples(st.floats(0, _SIDES[0]), st.floats(0, _SIDES[1]), st.sampled_from((1, 2)))


@examples(50)
@given(st.lists(st.lists(_POINT, max_size=4), min_size=1, max_size=4))
def test_round_trip__to_a_billionth_of_a_pixel(objects: list[list[tuple[float, float, int]]]) -> None:
    """Points are restored in pixels; objects with fewer than others get missing ones at their end."""
    texts = [json.dumps([number for point in each for number in point]) if each else None for each in objects]
    boxes = [Box("a.jpg", 1, 2, 30, 40, "cat", shape=ObjectShape(None, text)) for text in texts]
    most = max(map(len, objects))
    with tempfile.TemporaryDirectory() as folder:
        images = ImagesInMemory({"a.jpg": _SIDES}, boxes)
        images.with_keypoints = True
        assert write(FolderFiles(Path(folder)), images, no_progress) == []
        assert ("kpt_shape" in (Path(folder) / "data.yaml").read_text()) == (most > 0)
        lengths = {len(line.split()) for line in (Path(folder) / "labels" / "a.txt").read_text().splitlines()}
        found, problems = read(Path(folder))
    assert (lengths, problems.count) == ({5 + 3 * most}, 0)
    for each, points in zip(found, objects, strict=True):
        again = json.loads(each.in_pixels("a.jpg", *_SIDES).shape.keypoints or "[]")
        expected = [number for point in points for number in point]
        assert again[: len(expected)] == pytest.approx(expected, abs=1e-9)
        assert not any(again[len(expected) :])


def test_write__points_outside_of_the_image(tmp_path: Path) -> None:
    """Trainers refuse numbers below 0 and above 1, so such points are on the edge."""
    box = Box("a.jpg", 1, 2, 30, 40, "cat", 0.5, shape=ObjectShape(None, "[-5,10,1,700,500,2]"))
    images = ImagesInMemory({"a.jpg": (100, 50)}, [box, replace(box, shape=ObjectShape())])
    images.with_keypoints = images.with_confidences = True
    write(FolderFiles(tmp_path), images, no_progress)
    assert (tmp_path / "labels" / "a.txt").read_text().splitlines() == [
        "0 0.16 0.44 0.3 0.8 0 0.2 1 1 1 2 0.5",
        "0 0.16 0.44 0.3 0.8 0 0 0 0 0 0 0.5",
    ]
