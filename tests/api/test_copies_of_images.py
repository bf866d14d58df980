"""Copies of any image: a file, bytes, an array, or a part of an image of the dataset."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, Workspace
from framedex.errors import CannotDecode, InvalidInput
from tests.image_files import textured
from tests.prepared import prepared


def _photo(seed: int) -> Image.Image:
    return Image.fromarray(textured(seed))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for seed in range(12):
        _photo(seed).save(folder / f"{seed:02d}.png")
    return folder


@pytest.fixture
def dataset(workspace: Workspace, photos: Path) -> Dataset:
    return prepared(workspace, "copies", photos)


def _bytes(image: Image.Image, quality: int = 85) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def test_copies_of__the_same_file_is_found_as_such(dataset: Dataset, photos: Path) -> None:
    (copy,) = dataset.copies_of(photos / "03.png")
    assert (copy.path, copy.similarity, copy.reason, copy.original) == ("03.png", 1.0, "same file", None)


def test_copies_of__a_crop_finds_its_source_and_says_how_much_it_shows(dataset: Dataset) -> None:
    (copy,) = dataset.copies_of(_bytes(_photo(4).crop((40, 30, 266, 200))))
    assert (copy.path, copy.original) == ("04.png", "dataset")
    assert copy.reason in ("cropped to 49%", "cropped to 50%", "cropped to 51%")


def test_copies_of__a_quarter_finds_its_source(dataset: Dataset) -> None:
    found = dataset.copies_of(np.asarray(_photo(7))[60:180, 20:180].copy())
    assert [copy.path for copy in found] == ["07.png"]


def test_copies_of__a_box_of_an_item_finds_the_item_itself(dataset: Dataset) -> None:
    found = dataset.copies_of(dataset.media_id("05.png"), bounding_box=(30, 20, 230, 170))
    assert [copy.path for copy in found] == ["05.png"]


def test_copies_of__a_mirrored_image_is_found(dataset: Dataset) -> None:
    (copy,) = dataset.copies_of(_photo(2).transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    assert (copy.path, copy.reason, copy.original) == ("02.png", "mirrored", None)


def test_copies_of__another_image_has_none(dataset: Dataset) -> None:
    assert dataset.copies_of(_photo(99)) == []
    assert dataset.copies_of(_photo(99).crop((0, 0, 160, 120))) == []


def test_copies_of__what_is_added_is_found_and_what_is_removed_is_not(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    _photo(50).save(tmp_path / "more" / "new.png")
    crop = _photo(50).crop((20, 20, 250, 190))
    assert dataset.copies_of(crop) == []
    dataset.add_media(tmp_path / "more")
    assert [Path(copy.path).name for copy in dataset.copies_of(crop)] == ["new.png"]
    dataset.delete_media([dataset.media_id("new.png")])
    assert dataset.copies_of(crop) == []


def test_copies_of__says_why_it_cannot_search(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(CannotDecode):
        dataset.copies_of(tmp_path / "broken.png")
    with pytest.raises(InvalidInput, match="similarity"):
        dataset.copies_of(_photo(1), 0.5)
    with pytest.raises(InvalidInput, match="bounding box"):
        dataset.copies_of(_photo(1), bounding_box=(900, 900, 5, 5))
