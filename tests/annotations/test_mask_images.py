"""Masks as images of classes and objects: what is read of them, what is counted, and what is written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from framedex import Workspace
from framedex.annotations.boxes import Box
from framedex.annotations.mask_images import has_masks, read_boxes, write
from framedex.annotations.masks import mask_of_pixels, pixels_of
from framedex.annotations.problems import Problems
from framedex.annotations.shapes import ObjectShape
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.image_files import photo
from tests.image_files import write as write_image

CAT, DOG, VOID = (128, 0, 0), (0, 128, 0), (224, 224, 192)
LABELS = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncat:128,0,0::\ndog:0,128,0::\n"
CLASSES = np.array([[0, 1, 1, 0, 2], [0, 1, 1, 255, 2], [1, 0, 0, 255, 2]])
OBJECTS = np.array([[0, 1, 1, 0, 2], [0, 1, 1, 255, 2], [3, 0, 0, 255, 2]])


def colours(values: Any) -> npt.NDArray[np.uint8]:
    """Return the colours of numbers of classes or objects, as VOC has them."""
    of = {0: (0, 0, 0), 1: CAT, 2: DOG, 3: (128, 128, 0), 255: VOID}
    return np.array([[of[each] for each in row] for row in values.tolist()], np.uint8)


def place(folder: Path, classes: Any, objects: Any = None, *, labels: str | None = LABELS) -> Path:
    """Write an image with its masks."""
    write_image(folder / "JPEGImages" / "a.jpg", photo(1, width=CLASSES.shape[1], height=CLASSES.shape[0]))
    for name, image in (("SegmentationClass", classes), ("SegmentationObject", objects)):
        if image is not None:
            (folder / name).mkdir(parents=True, exist_ok=True)
            image.save(folder / name / "a.png")
    if labels is not None:
        (folder / "labelmap.txt").write_text(labels)
    return folder


def palette(values: Any) -> Image.Image:
    """Return an image with the palette of VOC, whose last colour is that of nothing."""
    image = Image.fromarray(values.astype(np.uint8))
    image.putpalette([*colours(np.array([[0, 1, 2, 3]])).ravel().tolist(), *[0, 0, 0] * 251, *VOID])
    return image


def read(folder: Path) -> tuple[list[Box], Problems]:
    problems = Problems()
    return list(read_boxes(folder, problems)), problems


def pixels(box: Box) -> npt.NDArray[np.bool_]:
    """Return the pixels of an object."""
    return pixels_of(json.loads(box.shape.segmentation or ""))


@pytest.mark.parametrize("make", [palette, lambda values: Image.fromarray(colours(values))])
def test_read__palettes_and_colours(tmp_path: Path, make: Any) -> None:
    """Each object has its class, its mask and its bounds; what belongs to nothing is no object."""
    found, problems = read(place(tmp_path, make(CLASSES), make(OBJECTS)))
    assert problems.count == 0
    assert {(box.name, box.image_size) for box in found} == {("JPEGImages/a.jpg", (5, 3))}
    found.sort(key=lambda box: (box.label, -box.x))
    assert [(box.label, box.x, box.y, box.width, box.height) for box in found] == [
        ("cat", 1, 0, 2, 2), ("cat", 0, 2, 1, 1), ("dog", 4, 0, 1, 3)
    ]  # fmt: skip
    for box, number in zip(found, (1, 3, 2), strict=True):
        assert (pixels(box) == (number == OBJECTS)).all()
        assert box.shape.area == np.count_nonzero(number == OBJECTS)


def test_read__without_objects_and_names(tmp_path: Path) -> None:
    """Without an image of objects a class is one; without a list of names it is called by its number, which is said."""
    found, problems = read(place(tmp_path, Image.fromarray(CLASSES.astype(np.uint8)), labels=None))
    assert [box.label for box in found] == ["1", "2"]
    assert (pixels(found[0]) == (CLASSES == 1)).all()
    assert {each.kind for each in problems.sample} == {
        "classes of masks without a name, which are called by their number"
    }


@pytest.mark.parametrize("make", [
    lambda mask: Image.fromarray(mask.astype(np.uint8) * 255), Image.fromarray,
    lambda mask: Image.fromarray(np.repeat(mask[..., None], 3, axis=2).astype(np.uint8) * 255),
])  # fmt: skip
def test_read__black_and_white(tmp_path: Path, make: Any) -> None:
    """White is the class of an image of black and white alone, which belongs to nothing beside other classes."""
    found, _ = read(place(tmp_path, make(CLASSES == 1), labels=None))
    assert len(found) == 1
    assert (pixels(found[0]) == (CLASSES == 1)).all()


def test_read__smoothed_edges(tmp_path: Path) -> None:
    """Colours of smoothed edges are no classes: they are counted once for a file, and the classes are read."""
    classes = np.zeros((90, 90, 3), np.uint8)
    classes[:40], classes[40:, :80] = CAT, np.arange(80, dtype=np.uint8)[:, None] * [0, 1, 2]
    found, problems = read(place(tmp_path, Image.fromarray(classes)))
    assert [(box.label, box.width, box.height) for box in found] == [("cat", 90, 40)]
    assert [each.kind for each in problems.sample] == ["masks with colours of no class"]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("SegmentationClass/b.png", b"no image", "cannot identify"),
        ("SegmentationObject/a.png", None, "has (2, 2) pixels, the classes (5, 3)"),
        (
            "labelmap.txt",
            b"cat;128\nbackground:0,0,0::\ncat:128,0,0::\ndog:0,128,0::\n",
            "must be name:red,green,blue::",
        ),
        (
            "labelmap.txt",
            "bird:\u00b2,0,0::\ncat:128,0,0::\ndog:0,128,0::\n".encode(),
            "must be name:red,green,blue::",
        ),
    ],
)
def test_read__broken_files(tmp_path: Path, name: str, data: bytes | None, told: str) -> None:
    """A broken file is a problem of its own, and the others are read."""
    place(tmp_path, palette(CLASSES), Image.fromarray(np.ones((2, 2), np.uint8)) if data is None else None)
    if data is not None:
        (tmp_path / name).write_bytes(data)
    found, problems = read(tmp_path)
    assert [box.label for box in found] == ["cat", "dog"]
    assert problems.count == 1
    assert told in str(problems.sample[0])


def test_write__is_read_again(tmp_path: Path) -> None:
    """Masks come back to the pixel; outlines are filled; what has no place, or is covered, is counted."""
    square = np.zeros((30, 40), bool)
    square[5:15, 8:20] = True
    masked = ObjectShape(json.dumps(mask_of_pixels(square)))
    boxes = [
        Box("a.png", 8, 5, 12, 10, "cat", 0.5, shape=masked),
        Box("a.png", 25, 2, 10, 20, "dog", shape=ObjectShape("[[25,2,35,2,35,22,25,22]]")),
        Box("a.png", 30, 2, 8, 20, "cat", shape=ObjectShape("[[30,2,38,2,38,22,30,22]]")),
        Box("a.png", 1, 1, 4, 4, "dog"),
    ]
    images = ImagesInMemory({"a.png": (40, 30), "b.png": None}, boxes, folder="")
    assert write(FolderFiles(tmp_path), images, no_progress) == [
        "1 confidence is left out: mask files hold none",
        "1 box is left out: they have no outline or mask",
        "1 object is partly covered by others",
    ]
    assert has_masks(tmp_path)
    with Image.open(tmp_path / "SegmentationClass" / "a.png") as image:
        assert image.mode == "P"
        assert set(np.unique(np.asarray(image)).tolist()) == {0, 1, 2}
    found, problems = read(tmp_path)
    assert problems.count == 0
    assert [(box.label, box.x, box.y, box.width, box.height) for box in found] == [
        ("cat", 8, 5, 12, 10), ("cat", 30, 2, 8, 20), ("dog", 25, 2, 5, 20)
    ]  # fmt: skip
    assert (pixels(found[0]) == square).all()


def test_write__more_classes_than_a_palette_has(tmp_path: Path) -> None:
    """More classes than a palette has colours are written in colours, and read again."""
    names = [f"class {number}" for number in range(300)]
    shape = ObjectShape("[[2,2,8,2,8,8,2,8]]")
    images = ImagesInMemory({"a.png": (10, 10)}, [Box("a.png", 2, 2, 6, 6, "class 299", shape=shape)], classes=names)
    write(FolderFiles(tmp_path), images, no_progress)
    write_image(tmp_path / "images" / "a.png", photo(1, width=10, height=10))
    found, problems = read(tmp_path)
    assert problems.count == 0
    assert [(box.name, box.label, box.x, box.width) for box in found] == [("images/a.png", "class 299", 2, 6)]


def test_dataset__masks_are_no_images(workspace: Workspace, tmp_path: Path) -> None:
    """A folder with masks is a source: they are objects of the images, and no images themselves."""
    place(tmp_path / "voc", palette(CLASSES), palette(OBJECTS))
    dataset = workspace.create_dataset("d", tmp_path / "voc", "gist")
    assert dataset.count() == 1
    assert dataset.objects.to_arrow(["label"])["label"].to_pylist() == ["cat", "cat", "dog"]
    assert dataset.layout == ["read: masks in SegmentationClass"]
    assert dataset.skipped == {}


def test_read__a_mask_with_a_wrong_checksum(tmp_path: Path) -> None:
    """A mask whose pixels fail their checksum is a problem, and no object of another class."""
    path = place(tmp_path, palette(CLASSES)) / "SegmentationClass" / "a.png"
    content = bytearray(path.read_bytes())
    content[content.index(b"IDAT") + int.from_bytes(content[content.index(b"IDAT") - 4 :][:4], "big") + 4] ^= 1
    path.write_bytes(content)
    found, problems = read(tmp_path)
    assert found == []
    assert [each.location for each in problems.sample] == ["SegmentationClass/a.png"]
