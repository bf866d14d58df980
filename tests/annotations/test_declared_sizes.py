"""Boxes, outlines, masks and key points in images whose annotation file declares another size."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from pycocotools import mask as masks

from framedex import Workspace
from framedex.annotations.boxes import Box
from framedex.annotations.declared_sizes import OTHER_SIZE, SCALED, TURNED, placed, size_of
from framedex.annotations.masks import mask_of_pixels, pixels_of
from framedex.annotations.shapes import ObjectShape
from tests.gallery import Averages
from tests.image_files import photo

ORIENTATION = 0x0112
STORED = (16, 12)
X, Y, WIDTH, HEIGHT = 3, 2, 5, 4


def pixels(size: tuple[int, int] = STORED) -> Any:
    """Return an array with a rectangle, which is not symmetrical in the image."""
    values = np.zeros(size[::-1], bool)
    values[Y : Y + HEIGHT, X : X + WIDTH] = True
    return values


def box(**changes: Any) -> Box:
    """Return the box of the rectangle, with its outline and a key point."""
    outline = [[X, Y, X + WIDTH, Y, X + WIDTH, Y + HEIGHT, X, Y + HEIGHT]]
    shape = ObjectShape(json.dumps(outline), json.dumps([X, Y, 2, 0, 0, 0]), WIDTH * HEIGHT)
    return replace(Box("a.jpg", X, Y, WIDTH, HEIGHT, "cat", shape=shape, image_size=STORED), **changes)


def sides(of: Box) -> list[float]:
    return [of.x, of.y, of.width, of.height]


def corners(of: Box) -> list[float]:
    """Return the bounds of an outline as a box."""
    points = np.array(json.loads(of.shape.segmentation or "[]")).reshape(-1, 2)
    return [*points.min(0), *(points.max(0) - points.min(0))]


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
@pytest.mark.parametrize("scale", [1, 3])
def test_placed__turned_as_pillow_turns_the_image(orientation: int, scale: int) -> None:
    """Boxes, outlines, points and masks are where Pillow's upright image has the pixels; all of them may be scaled."""
    image = Image.fromarray(pixels().astype(np.uint8) * 255)
    image.getexif()[ORIENTATION] = orientation
    upright = np.array(ImageOps.exif_transpose(image)).repeat(scale, 0).repeat(scale, 1) > 0
    size = upright.shape[1], upright.shape[0]
    expected = masks.toBbox(masks.encode(np.asfortranarray(upright, np.uint8))).tolist()
    found, problems = placed(box(), size, orientation)
    assert found is not None
    assert sides(found) == corners(found) == expected
    x, y = json.loads(found.shape.keypoints or "[]")[:2]
    assert x in (expected[0], expected[0] + expected[2])
    assert y in (expected[1], expected[1] + expected[3])
    assert found.shape.area == WIDTH * HEIGHT * scale**2
    assert [each.kind for each in problems] == [TURNED]
    of_mask, _ = placed(box(shape=ObjectShape(json.dumps(mask_of_pixels(pixels())))), size, orientation)
    assert of_mask is not None
    assert (pixels_of(json.loads(of_mask.shape.segmentation or "")) == upright).all()


@pytest.mark.parametrize(
    ("declared", "size", "orientation", "factors"),
    [
        ((16, 12), (16, 12), 6, (1, 1)),
        (None, (40, 30), 1, (1, 1)),
        ((16, 12), (32, 24), 1, (2, 2)),
        ((16, 12), (8, 6), 1, (0.5, 0.5)),
        ((1601, 1199), (320, 239), 1, (320 / 1601, 239 / 1199)),
        ((16, 12), (12, 16), 1, None),
        ((16, 12), (16, 16), 1, None),
        ((16, 12), (12, 16), 3, None),
    ],
)
def test_placed__in_the_size_that_is_declared(
    declared: tuple[int, int] | None, size: tuple[int, int], orientation: int, factors: tuple[float, float] | None
) -> None:
    """A box is scaled where the ratio of the sides is the same, and left out where it is another."""
    found, problems = placed(box(image_size=declared), size, orientation)
    if factors is None:
        assert found is None
        assert [each.kind for each in problems] == [OTHER_SIZE]
        return
    assert found is not None
    across, down = factors
    assert sides(found) == pytest.approx([X * across, Y * down, WIDTH * across, HEIGHT * down])
    assert [each.kind for each in problems] == [SCALED] * (factors != (1, 1))


def test_placed__masks_have_a_size_of_their_own() -> None:
    """A mask is scaled by its own size; one of other sides is left out, and its box stays."""
    shape = ObjectShape(json.dumps(mask_of_pixels(pixels((16, 12)))), None, 20)
    found, problems = placed(box(shape=shape, image_size=None), (32, 24), 1)
    assert found is not None
    assert sides(found) == [X, Y, WIDTH, HEIGHT]
    assert json.loads(found.shape.segmentation or "")["size"] == [24, 32]
    found, problems = placed(box(shape=shape, image_size=None), (20, 20), 1)
    assert found is not None
    assert (sides(found), found.shape.segmentation) == ([X, Y, WIDTH, HEIGHT], None)
    assert [each.kind for each in problems] == [OTHER_SIZE]


@pytest.mark.parametrize("value", [0, -1, None, "", "x", [], 1e400, float("nan"), 2**40])
def test_size__that_is_none(value: Any) -> None:
    """A size that cannot be one is not declared."""
    assert size_of(value, 5) is size_of(5, value) is None
    assert size_of("16", 12.0) == (16, 12)


def test_create_dataset__of_images_that_are_turned(workspace: Workspace, tmp_path: Path) -> None:
    """COCO files declare the size of the stored image; boxes are those of the image as it is shown."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    tmp_path.joinpath("d").mkdir()
    height, width = photo(1).shape[:2]
    Image.fromarray(photo(1)).save(tmp_path / "d/a.jpg", exif=exif)
    content = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": width, "height": height}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40]}],
    }
    (tmp_path / "d/annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("d", tmp_path / "d", Averages())
    assert dataset.objects.to_arrow(["bbox"])["bbox"].to_pylist() == [[height - 60, 10, 40, 30]]
    assert [(each.reason, each.count) for each in dataset.problems if each.reason == TURNED] == [(TURNED, 1)]
