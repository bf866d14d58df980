"""Detectors of three forms return the boxes of their output, in pixels of the image."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from framedex.enrichers import Detector, OnnxDetector
from framedex.enrichers.yolo_heads import Form
from framedex.errors import InvalidInput, NotFound
from tests.enrichers.onnx_detectors import GRIDS, SIDE, head, saying, seeing
from tests.image_files import flat, photo

NAMES = ("cat", "dog")
SQUARE = photo(1, width=64, height=64)  # twice the size of the models' input
# A box with its centre at (16, 12), 8 wide and 4 high, in each form, with a chance of 0.9 × 0.5 or 0.45 of a dog. In
# the grid of stride 8 the row of the second cell in the third line is 2 × 4 + 1.
ROWS: dict[Form, tuple[int, list[float]]] = {
    "yolox": (9, [1.0, -0.5, 0.0, math.log(0.5), 0.9, 0.0, 0.5]),
    "yolov5": (50, [16, 12, 8, 4, 0.9, 0.0, 0.5]),
    "yolov8": (3, [16, 12, 8, 4, 0.1, 0.45]),
}
FORMS = sorted(ROWS)


def model(folder: Path, form: Form, **options: Any) -> Path:
    """Write a detector of one box."""
    place, values = ROWS[form]
    return saying(folder / "net.onnx", head(form, {place: values}, 2), **options)


@pytest.mark.parametrize("form", FORMS)
def test_detect__a_box(tmp_path: Path, form: Form) -> None:
    """The form is recognised by the shape; the box is in pixels of the image, with class and confidence."""
    detector = OnnxDetector(model(tmp_path, form), names=NAMES)
    assert isinstance(detector, Detector)
    assert (detector.form, detector.labels, detector.size) == (form, NAMES, (SIDE, SIDE))
    assert detector.name == f"onnx:{tmp_path / 'net.onnx'}"
    found = detector.detect(SQUARE)
    arrays = (found.boxes, found.labels, found.confidences)
    assert [each.dtype.name for each in arrays] == ["float32", "int64", "float32"]
    np.testing.assert_allclose(found.boxes, [[24, 20, 16, 8]], atol=1e-4)
    assert found.labels.tolist() == [1]
    np.testing.assert_allclose(found.confidences, [0.45])
    assert len(found) == 1


@pytest.mark.parametrize(("form", "top"), [("yolox", 20), ("yolov8", 4)])
def test_detect__in_a_wide_image(tmp_path: Path, form: Form, top: int) -> None:
    """The bars are below for YOLOX and on both sides for others, so the same output is another box."""
    found = OnnxDetector(model(tmp_path, form), names=NAMES).detect(photo(1, width=64, height=32))
    np.testing.assert_allclose(found.boxes, [[24, top, 16, 8]], atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_detect__the_grids(tmp_path: Path, form: Form) -> None:
    """Each grid of YOLOX has its own stride; rows of the other forms are in pixels everywhere."""
    rows = {GRIDS - 1: [0.5, 0.5, 0.0, 0.0, 1.0, 1.0]} if form == "yolox" else {7: [16, 16, 32, 32, 1.0, 1.0]}
    path = saying(tmp_path / "net.onnx", head(form, rows, 2))
    np.testing.assert_allclose(OnnxDetector(path, names=NAMES).detect(SQUARE).boxes, [[0, 0, 64, 64]], atol=1e-4)


def test_detect__cuts_and_drops(tmp_path: Path) -> None:
    """Boxes are clipped to the image; empty boxes and boxes in the bars are dropped."""
    rows = {0: [0, 16, 20, 8, 1.0], 1: [16, 2, 8, 4, 0.9], 2: [20, 16, 0, 4, 0.8], 3: [31, 20, 9, 9, 0.7]}
    detector = OnnxDetector(saying(tmp_path / "net.onnx", head("yolov8", rows, 1)), names=["x"])
    found = detector.detect(photo(1, width=64, height=32))
    np.testing.assert_allclose(found.boxes, [[0, 8, 20, 16], [53, 15, 11, 17]], atol=1e-4)
    assert ((found.boxes[:, :2] + found.boxes[:, 2:]) <= (64, 32)).all()


def test_detect__the_surest_of_a_class(tmp_path: Path) -> None:
    """Of overlapping boxes of a class, the most confident remains; results are sorted by confidence."""
    same = [16, 16, 8, 8]
    rows = {0: [*same, 0.5, 0.0], 5: [*same, 0.9, 0.0], 9: [*same, 0.0, 0.7], 12: [17, 16, 8, 8, 0.8, 0.0]}
    path = saying(tmp_path / "net.onnx", head("yolov8", rows, 2))
    found = OnnxDetector(path, names=NAMES).detect(SQUARE)
    np.testing.assert_allclose(found.confidences, [0.9, 0.7])
    assert found.labels.tolist() == [0, 1]
    assert len(OnnxDetector(path, names=NAMES, iou=0.8).detect(SQUARE)) == 3
    assert len(OnnxDetector(path, names=NAMES, iou=1.0).detect(SQUARE)) == 4
    assert len(OnnxDetector(path, names=NAMES, score=0.71).detect(SQUARE)) == 1


def test_detect__on_several_threads(tmp_path: Path) -> None:
    """Threads that share a detector get the same results as a single thread."""
    detector = OnnxDetector(seeing(tmp_path / "net.onnx", "yolov8", 1), names=("a", "b", "c"))
    images = [flat((100 + shade, 0, 0), width=40, height=40) for shade in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = [each.confidences.tolist() for each in pool.map(detector.detect, images)]
    assert found == [detector.detect(each).confidences.tolist() for each in images]
    assert sorted(found) == found
    assert found[0] < found[-1]


def test_detect__nothing(tmp_path: Path) -> None:
    """An image without objects has no boxes, in arrays of the right shapes."""
    found = OnnxDetector(saying(tmp_path / "net.onnx", head("yolox", {}, 2)), names=NAMES).detect(SQUARE)
    assert (found.boxes.shape, found.labels.shape, found.confidences.shape) == ((0, 4), (0,), (0,))


@pytest.mark.parametrize(("form", "scale", "label"), [("yolox", 1 / 255, 2), ("yolov5", 1, 0), ("yolov8", 1, 0)])
def test_detect__colours_and_their_scale(tmp_path: Path, form: Form, scale: float, label: int) -> None:
    """YOLOX gets BGR up to 255, the others RGB up to 1."""
    detector = OnnxDetector(seeing(tmp_path / "net.onnx", form, scale), names=("first", "second", "third"))
    found = detector.detect(flat((204, 51, 0), width=40, height=40))
    assert found.labels.tolist() == [label]
    np.testing.assert_allclose(found.confidences, [0.8], atol=1e-5)


@pytest.mark.parametrize(("kind", "scale"), [(TensorProto.FLOAT16, 1), (TensorProto.UINT8, 1 / 255)])
def test_detect__types_of_input(tmp_path: Path, kind: int, scale: float) -> None:
    """Models may take float16, or uint8 from 0 to 255."""
    detector = OnnxDetector(seeing(tmp_path / "net.onnx", "yolov8", scale, kind), names=("a", "b", "c"))
    found = detector.detect(flat((204, 51, 0), width=40, height=40))
    assert found.labels.tolist() == [0]
    np.testing.assert_allclose(found.confidences, [0.8], atol=2e-3)


@pytest.mark.parametrize(
    "pixels", [SQUARE[:, :, 0], SQUARE.astype(np.float32), SQUARE[:0], np.zeros((4, 4, 4), np.uint8)]
)
def test_detect__of_no_image(tmp_path: Path, pixels: Any) -> None:
    """Arrays of another shape or dtype are rejected with the valid form."""
    with pytest.raises(InvalidInput, match=r"uint8 of shape \(H, W, 3\), not"):
        OnnxDetector(model(tmp_path, "yolox"), names=NAMES).detect(pixels)


@pytest.mark.parametrize(
    "values", [[0, 0, 99, 99, 1, 1], [0, 0, 0, 0, 1, 7], [0, 0, 0, 0, 1, math.nan], [math.nan, 0, 0, 0, 1, 1]]
)
def test_detect__values_that_cannot_be(tmp_path: Path, values: list[float]) -> None:
    """Infinite boxes and scores above 1 are errors: the model has another form."""
    detector = OnnxDetector(saying(tmp_path / "net.onnx", head("yolox", {0: values}, 2)), names=NAMES)
    with pytest.raises(InvalidInput, match="not of the form yolox"):
        detector.detect(SQUARE)


def test_names__from_where_they_are(tmp_path: Path) -> None:
    """Passed names have priority over the file beside the model, and that over the metadata."""
    path = model(tmp_path, "yolox", metadata={"names": "{0: 'a', 1: 'b'}"})
    assert OnnxDetector(path).labels == ("a", "b")
    (tmp_path / "net.names").write_text("c\nd\n")
    assert OnnxDetector(path).labels == ("c", "d")
    (tmp_path / "net.toml").write_text("names = 'some.yaml'")
    (tmp_path / "some.yaml").write_text("names:\n  0: e\n  1: f\n")
    assert OnnxDetector(path).labels == ("e", "f")
    assert OnnxDetector(path, names=["g", "h"]).labels == ("g", "h")
    assert OnnxDetector(path, names=tmp_path / "net.names").labels == ("c", "d")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, r"needs names of its classes: give names=<a file>, or put one beside it as 'net\.names'"),
        ({"net.names": "a\nb\nc\n"}, r"knows 2 classes, and the file .*net\.names' has 3 names"),
        ({"net.names": "a\n"}, "knows 2 classes.* has 1 name"),
        ({"net.toml": "names = ['a']"}, "knows 2 classes, and what was given has 1 name"),
        ({"net.toml": "names = 'x.yaml'", "x.yaml": "names: {0: a, 2: b}\n"}, "knows 2 classes"),
        ({"net.toml": "names = 'x.yaml'", "x.yaml": "nc: 2\n"}, r"x\.yaml' has no 'names'"),
        ({"net.toml": "names = 'none.txt'"}, r"cannot read the class names .*none\.txt"),
    ],
)
def test_names__that_do_not_fit(tmp_path: Path, files: dict[str, str], told: str) -> None:
    """Missing names, or another number than the classes, are errors with both numbers."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=told):
        OnnxDetector(model(tmp_path, "yolov5"))


@pytest.mark.parametrize("said", ["", "[1, 2]", "{'a': 'b', 1: 'c'}", "{0: 'a'", "__import__('os')", "{" * 9999])
def test_names__that_a_model_says_in_another_way(tmp_path: Path, said: str) -> None:
    """Malformed metadata are ignored, and never executed."""
    with pytest.raises(InvalidInput, match="needs names"):
        OnnxDetector(model(tmp_path, "yolox", metadata={"names": said}))


def test_settings__beside_the_model(tmp_path: Path) -> None:
    """A file beside the model has the same settings as arguments, which have priority."""
    path = model(tmp_path, "yolov5")
    (tmp_path / "net.toml").write_text('score = 0.5\nnames = ["a", "b"]\nform = "yolov5"\nsize = 32\niou = 1\n')
    assert len(OnnxDetector(path).detect(SQUARE)) == 0
    assert len(OnnxDetector(path, score=0.4).detect(SQUARE)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("score = 2", "score is 2"),
        ("score = true", "score is True"),
        ("iou = -0.5", r"iou is -0\.5"),
        ("size = 33", "size is 33"),
        ("size = [32]", r"size is \[32\]"),
        ("form = 'yolo'", "form is 'yolo'"),
        ("threshold = 1", "no setting 'threshold'; there are: form, size, names, score, iou"),
        ("score =", "cannot be read"),
    ],
)
def test_settings__that_cannot_be(tmp_path: Path, text: str, told: str) -> None:
    """An unknown or invalid setting is an error with the file and the value."""
    path = model(tmp_path, "yolox")
    (tmp_path / "net.toml").write_text(text)
    with pytest.raises(InvalidInput, match=rf"net\.toml'.*{told}"):
        OnnxDetector(path, names=NAMES)
    with pytest.raises(InvalidInput, match="OnnxDetector: score is 0"):
        OnnxDetector(path, names=NAMES, score=0)


def test_size__of_a_model_that_leaves_it_open(tmp_path: Path) -> None:
    """An open size must be passed, and decides the shape of the output; a fixed one cannot be changed."""
    size = (64, 32)
    path = saying(tmp_path / "net.onnx", head("yolov8", {0: [16, 16, 8, 8, 1.0]}, 2, size), shape=("n", 3, "h", "w"))
    with pytest.raises(InvalidInput, match="any size: say which"):
        OnnxDetector(path, names=NAMES)
    with pytest.raises(InvalidInput, match=r"puts out 'output0' \(6, 42\) for an image of 32×32; one output must have"):
        OnnxDetector(path, names=NAMES, size=32)
    assert OnnxDetector(path, names=NAMES, size=size).size == size
    with pytest.raises(InvalidInput, match=r"takes images of 32×32 .* not 64×32"):
        OnnxDetector(model(tmp_path, "yolox"), names=NAMES, size=size)


def test_output__one_of_several(tmp_path: Path) -> None:
    """Outputs of other shapes are ignored; none or two matching ones are errors with all shapes."""
    fits, other = head("yolov5", {50: ROWS["yolov5"][1]}, 2), np.zeros((3, 4, 4, 7))
    path = tmp_path / "net.onnx"
    assert len(OnnxDetector(saying(path, other, fits), names=NAMES).detect(SQUARE)) == 1
    for outputs in ([fits, fits], [other], [np.zeros((300, 6))]):
        with pytest.raises(InvalidInput, match=rf"'output0' .*{SIDE}×{SIDE}; one output must have the shape"):
            OnnxDetector(saying(path, *outputs), names=NAMES)
    with pytest.raises(InvalidInput, match="and yolov8 was asked for"):
        OnnxDetector(saying(path, fits), names=NAMES, form="yolov8")


@pytest.mark.parametrize("shape", [(1, 3, SIDE), (2, 3, SIDE, SIDE), (1, 4, SIDE, SIDE), (1, SIDE, SIDE, 3)])
def test_model__that_takes_something_else(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """A model whose input is not an image is rejected with the shape."""
    with pytest.raises(InvalidInput, match="a detector takes one image"):
        OnnxDetector(model(tmp_path, "yolox", shape=shape), names=NAMES)


def test_model__that_takes_nothing(tmp_path: Path) -> None:
    """A model without an input is rejected."""
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Constant", [], ["output"], value=value)], "g", [], [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "c.onnx")
    with pytest.raises(InvalidInput, match="takes nothing; a detector takes one image"):
        OnnxDetector(tmp_path / "c.onnx", names=NAMES)


def test_model__of_odd_size(tmp_path: Path) -> None:
    """The size must be a multiple of 32, the largest stride."""
    with pytest.raises(InvalidInput, match="multiples of 32"):
        OnnxDetector(model(tmp_path, "yolox", shape=(1, 3, 40, 32)), names=NAMES)


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_model__truncated(tmp_path: Path, share: float) -> None:
    """A truncated model and a missing file are rejected."""
    path = model(tmp_path, "yolox")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(InvalidInput, match=r"net\.onnx' is no ONNX model"):
        OnnxDetector(path, names=NAMES)
    with pytest.raises(NotFound, match=r"none\.onnx"):
        OnnxDetector(tmp_path / "none.onnx")


def test_model__that_takes_other_numbers(tmp_path: Path) -> None:
    """An input type that images do not have is rejected."""
    with pytest.raises(InvalidInput, match=r"takes tensor\(int64\)"):
        OnnxDetector(model(tmp_path, "yolox", kind=TensorProto.INT64), names=NAMES)
