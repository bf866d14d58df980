"""Images of values: the range that each is shown by, or that is fixed for a dataset, holds wherever pixels are read."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from framedex import Dataset, InvalidInput, Workspace
from framedex.settings import Settings
from framedex.training.stored_images import Location, StoredImages
from tests.image_files import photo, write

LOW, HIGH = 801.0, 1193.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a 16-bit image of 12 bits, one of floats, and a photo, with a box in the first."""
    path = tmp_path / "values"
    write(path / "photo.png", photo(1))
    ramp = np.linspace(0, 4000, 120 * 160).reshape(120, 160)
    tifffile.imwrite(path / "twelve.tif", ramp.astype(np.uint16))
    tifffile.imwrite(path / "depth.tif", (LOW + ramp / 4000 * (HIGH - LOW)).astype(np.float32))
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 30, 40]}
    content = {
        "images": [{"id": 1, "file_name": "twelve.tif", "width": 160, "height": 120}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [box],
    }
    (path / "annotations.json").write_text(json.dumps(content))
    return path


def ranges(dataset: Dataset) -> dict[str, tuple[float, float] | None]:
    """Return the range of each image by its name."""
    rows = dataset.to_arrow(["file_name", "shown_from", "shown_to"]).to_pylist()
    found = {row["file_name"]: (row["shown_from"], row["shown_to"]) for row in rows}
    return {name: None if pair == (None, None) else pair for name, pair in found.items()}


def id_of(dataset: Dataset, name: str) -> str:
    rows = dataset.to_arrow(["media_id", "file_name"]).to_pylist()
    return next(str(row["media_id"]) for row in rows if row["file_name"] == name)


@pytest.mark.slow
def test_values__range_of_each_image(workspace: Workspace, folder: Path) -> None:
    """The range of an image is a column and one of its details; a photo has none."""
    dataset = workspace.create_dataset("values", folder, "gist")
    found = ranges(dataset)
    assert found["photo.png"] is None
    assert found["twelve.tif"] == pytest.approx((80, 3920), abs=1)
    item = dataset.media_item(id_of(dataset, "depth.tif"))
    assert (item.shown_from, item.shown_to) == pytest.approx((808.8, 1185.2), abs=0.1)
    assert (item.shown_from, item.shown_to) == found["depth.tif"]


@pytest.mark.slow
def test_values__one_range_of_a_dataset(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A fixed range holds for all images of values, also for later ones, for crops and in training."""
    dataset = workspace.create_dataset("values", folder, "gist", display_range=(0, 8000))
    assert dataset.embedding_config.display_range == (0.0, 8000.0)
    tifffile.imwrite(tmp_path / "more.tif", np.full((64, 64), 4000, np.uint16))
    dataset.add_media(tmp_path / "more.tif")
    assert ranges(dataset) == {
        "photo.png": None, "twelve.tif": (0, 8000), "depth.tif": (0, 8000), "more.tif": (0, 8000)
    }  # fmt: skip
    stored = tifffile.imread(folder / "twelve.tif")
    pixels = np.rint(stored * (255 / 8000)).astype(np.uint8)
    np.testing.assert_array_equal(dataset.read(id_of(dataset, "twelve.tif"))[..., 0], pixels)
    (crop,) = dataset.objects.to_arrow(["media_id"])["media_id"].to_pylist()
    np.testing.assert_array_equal(dataset.read(crop)[..., 0], pixels[20:60, 10:40])
    assert dataset.read(id_of(dataset, "more.tif")).max() == 128
    trained = StoredImages([Location(str(folder / "twelve.tif"), shown=(0.0, 8000.0))], Settings())
    np.testing.assert_array_equal(trained.read(0)[..., 0], pixels)


@pytest.mark.slow
def test_values__range_that_cannot_be(workspace: Workspace, folder: Path) -> None:
    """A wrong range is refused before anything is made."""
    with pytest.raises(InvalidInput, match="display_range must be two numbers"):
        workspace.create_dataset("values", folder, display_range=(9, 1))
    assert not workspace.datasets()


def pages_left_out(dataset: Dataset) -> list[tuple[int, list[str]]]:
    """Return the number of pages that the last addition did not read, with examples."""
    reason = "further pages or frames of images, whose first one is read"
    return [(each.count, each.examples) for each in dataset.problems if each.reason == reason]


@pytest.mark.slow
def test_pages__of_one_file(workspace: Workspace, folder: Path) -> None:
    """Pages that are not read are counted, of new files alone, and are one of the details of an image."""
    stack = np.arange(3 * 90 * 90, dtype=np.uint16).reshape(3, 90, 90)
    tifffile.imwrite(folder / "stack.tif", stack, photometric="minisblack")
    dataset = workspace.create_dataset("pages", folder, "gist")
    assert pages_left_out(dataset) == [(2, ["stack.tif has 3"])]
    assert dataset.media_item(id_of(dataset, "stack.tif")).n_pages == 3
    frames = [Image.fromarray(photo(number)) for number in range(5)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    dataset.add_media(folder)
    assert pages_left_out(dataset) == [(4, ["moving.gif has 5"])]
    counts = {row["file_name"]: row["n_pages"] for row in dataset.to_arrow(["file_name", "n_pages"]).to_pylist()}
    assert counts == {"photo.png": None, "twelve.tif": None, "depth.tif": None, "stack.tif": 3, "moving.gif": 5}
