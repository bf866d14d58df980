"""Targets of datasets of PyTorch become labels, captions and boxes, or are counted."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from framedex.annotations.problems import Problems
from framedex.annotations.voc import read_boxes
from framedex.media.held_images import path_pairs
from framedex.media.held_targets import row_of_target
from tests.extras import need
from tests.image_files import photo, write

FURTHER, UNKNOWN = "further values of objects in targets", "targets that are no class, caption or boxes"
COCO = SimpleNamespace(coco=SimpleNamespace(cats={7: {"name": "cat"}}), classes=["no", "names", "of", "these"])
XML = (
    "<annotation><filename>1.jpg</filename><size><width>160</width><height>120</height></size><object><name>cat</name>"
    "<difficult>1</difficult><bndbox><xmin>2</xmin><ymin>2.5</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"
    "<object><name>dog</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object>"
    "</annotation>"
)


def objects(*boxes: list[float], categories: list[Any]) -> dict[str, Any]:
    """Return a row with objects."""
    return {"objects": {"bbox": list(boxes), "categories": categories}}


@pytest.mark.parametrize(
    ("target", "source", "expected", "counts"),
    [
        (None, None, {}, {}),
        (1, SimpleNamespace(classes=["a", "b"]), {"label": "b"}, {}),
        (np.int64(5), SimpleNamespace(classes=["a", "b"]), {"label": "5"}, {}),
        ("cat", None, {"label": "cat"}, {}),
        (["one", "two"], None, {"text": "one"}, {"further captions in targets": 1}),
        ([{"bbox": [1, 2, 3, 4], "category_id": 7}], COCO, objects([1, 2, 3, 4], categories=["cat"]), {}),
        (
            [{"bbox": [1, 2, 3, 4], "category_id": 7, "iscrowd": 1, "segmentation": [[1, 1]], "keypoints": []}],
            None, objects([1, 2, 3, 4], categories=[7]), {FURTHER: 2},
        ),
        (
            {"boxes": np.array([[1, 2, 4, 6]], np.float32), "labels": np.array([1]), "masks": 5},
            SimpleNamespace(classes=["a", "b"]), objects([1, 2, 3, 4], categories=["b"]), {FURTHER: 1},
        ),
        ({"boxes": [], "labels": []}, None, objects(categories=[]), {}),
        ([], None, objects(categories=[]), {}),
        ({"boxes": [[1, 2, 4, 6]], "labels": []}, None, {}, {UNKNOWN: 1}),
        ({"boxes": [[1, 2, 4]], "labels": [1]}, None, {}, {UNKNOWN: 1}),
        ([{"bbox": [1, 2, 3, 4], "category_id": 9}], COCO, {}, {UNKNOWN: 1}),
        ({"annotation": None}, None, {}, {UNKNOWN: 1}),
        (1.5, None, {}, {UNKNOWN: 1}),
        (object(), None, {}, {UNKNOWN: 1}),
    ],
)  # fmt: skip
def test_row__of_a_target(target: Any, source: Any, expected: dict[str, Any], counts: dict[str, int]) -> None:
    """A target has its meaning as metadata, and what is not read of it is counted."""
    noted = Counter[str]()
    assert row_of_target(target, source, 3, lambda reason, _example: noted.update([reason])) == expected
    assert noted == counts


@pytest.mark.slow
def test_row__of_torchvision(tmp_path: Path) -> None:
    """Boxes of VOC are those of our own reader; items of subsets and concatenations have their own classes."""
    need("clip", "torch", "torchvision")
    from framedex.encoders.torch_vision import import_torchvision

    import_torchvision()
    from torch.utils.data import ConcatDataset, Subset
    from torchvision.datasets import FakeData, VOCDetection

    home = tmp_path / "VOCdevkit" / "VOC2012"
    write(home / "JPEGImages" / "1.jpg", photo(1))
    for name, text in (("Annotations/1.xml", XML), ("ImageSets/Main/train.txt", "1\n")):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(text)
    noted = Counter[str]()
    row = row_of_target(
        VOCDetection(tmp_path, image_set="train")[0][1], None, 0, lambda reason, _: noted.update([reason])
    )
    boxes = list(read_boxes(home, Problems()))
    assert row["objects"]["bbox"] == [[each.x, each.y, each.width, each.height] for each in boxes]
    assert row["objects"]["categories"] == [each.label for each in boxes] == ["cat", "dog"]
    assert noted == {FURTHER: 1}
    one, two = FakeData(3, (3, 4, 4)), FakeData(3, (3, 4, 4))
    one.classes, two.classes = ["a", "b", "c"], ["x", "y", "z"]  # as CIFAR10 has them
    joined: Any = ConcatDataset([Subset(one, [2, 0]), two])
    items = [(joined, 0), (joined, 2), (Subset(joined, [3, 0]), 0), (Subset(joined, [3, 0]), 1)]
    names = [row_of_target(1, source, number, lambda *_: None)["label"] for source, number in items]
    assert names == ["b", "y", "y", "b"]
    one.samples = [("a.jpg", 0), ("b.jpg", 1), ("c.jpg", 2)]  # as ImageFolder has them
    pairs = path_pairs(Subset(Subset(one, [2, 0, 1]), [0, 2]))
    assert pairs is not None
    assert pairs.to_pylist() == [{"path": "c.jpg", "label": "c"}, {"path": "b.jpg", "label": "b"}]
    assert path_pairs(Subset(two, [0])) is None
