"""Searches by an image: verified copies of it come first, and each row says what was done to it."""

import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, InvalidInput, NotFound, RankedView, Workspace, vql
from framedex.core.ids import new_id
from tests.gallery import embedded
from tests.image_files import textured
from tests.inside import layout_of
from tests.prepared import prepared

COUNT = 12


def _photo(seed: int) -> Image.Image:
    return Image.fromarray(textured(seed))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, and of one of them a quarter, its mirror image and a copy of the file."""
    folder = tmp_path_factory.mktemp("photos")
    for seed in range(COUNT):
        _photo(seed).save(folder / f"{seed:02d}.png")
    _quarter(3).save(folder / "quarter.png")
    _photo(3).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(folder / "mirrored.png")
    shutil.copy(folder / "03.png", folder / "same.png")
    return folder


@pytest.fixture
def dataset(verifying: Workspace, photos: Path) -> Dataset:
    """A dataset of these, whose index has verified the pairs of whole images."""
    return prepared(verifying, "copies", photos)


def _quarter(seed: int) -> Image.Image:
    return _photo(seed).crop((60, 40, 220, 160))


def _bytes(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def _copies(found: RankedView) -> dict[str, str]:
    """Return what was done to the copies by name, in order, after a check that they come before all others."""
    rows = found.to_arrow(["image_filename", "copy"]).to_pylist()
    copies = [(Path(row["image_filename"]).name, row["copy"]) for row in rows if row["copy"] is not None]
    assert all(row["copy"] is not None for row in rows[: len(copies)])
    return dict(copies)


def test_similar__a_crop_finds_its_source_first(dataset: Dataset) -> None:
    """A quarter of an image is not near it by its embedding; it is found as a copy, before what is nearer."""
    found = dataset.similar(_bytes(_quarter(7)), limit=None)
    copies = _copies(found)
    assert list(copies) == ["07.png"]
    assert re.fullmatch("cropped to 2[3-7]%", copies["07.png"])
    assert found.count() == COUNT + 3
    assert found.to_arrow()["relevance_score"].to_numpy()[1:] == pytest.approx(
        np.sort(found.to_arrow()["relevance_score"].to_numpy()[1:])
    )


@pytest.mark.parametrize("form", ["id", "path", "bytes", "array", "pillow"])
def test_similar__each_form_of_an_image(dataset: Dataset, photos: Path, form: str) -> None:
    """The same copies come first in each form; an item itself and files with its content are the same file."""
    path = photos / "03.png"
    query: Any = {
        "id": dataset.media_id("03.png"),
        "path": path,
        "bytes": path.read_bytes(),
        "array": np.asarray(_photo(3)),
        "pillow": _photo(3),
    }[form]
    copies = _copies(dataset.similar(query))
    same = "same file" if form in ("id", "path", "bytes") else "same pixels"
    assert (copies["03.png"], copies["same.png"], copies["mirrored.png"]) == (same, same, "mirrored")
    assert list(copies)[:2] == ["03.png", "same.png"]
    if form == "id":  # the index looks for no small parts
        assert len(copies) == 3
    else:
        assert re.fullmatch("cropped to 2[3-7]%", copies["quarter.png"])


def test_similar__a_part_of_an_item(dataset: Dataset) -> None:
    """By a bounding box of an item, the item itself is the first copy."""
    copies = _copies(dataset.similar(dataset.media_id("05.png"), bounding_box=(30, 20, 230, 170), limit=3))
    assert list(copies) == ["05.png"]


def test_similar__vectors_and_texts_have_no_copies(dataset: Dataset) -> None:
    """A vector is no image, and copies are of images: the column is there, and null."""
    vector = dataset.select([dataset.media_id("03.png")]).embeddings()[1][0]
    assert _copies(dataset.similar(vector)) == {}
    assert set(dataset.search("03", by="words").to_arrow()["copy"].to_pylist()) == {None}


def test_similar__filters_and_limits_apply_to_copies(dataset: Dataset) -> None:
    """A copy outside of the view is not listed; no distance excludes one; a limit counts copies."""
    query = _bytes(_quarter(3))
    others = ~vql.file_name("contains", "03") & ~vql.file_name("contains", "same") & ~vql.file_name("contains", "mirr")
    assert list(_copies(dataset.similar(query).where(others))) == ["quarter.png"]
    assert list(_copies(dataset.where(others).similar(query))) == ["quarter.png"]
    strict = dataset.similar(query, max_distance=0.0, relevance=1.0)
    assert set(_copies(strict)) == {"03.png", "same.png", "quarter.png"}  # a mirrored part is not looked for
    assert strict.count() == 3
    assert dataset.similar(query, limit=2).count() == 2
    assert len(_copies(dataset.similar(query, limit=2))) == 2
    assert _copies(dataset.similar(query, limit=0)) == {}


def test_similar__with_diversity_has_no_copies(dataset: Dataset) -> None:
    """Results that differ from each other do not begin with images that are the same."""
    assert _copies(dataset.similar(_photo(3), limit=5, diversity=0.5)) == {}


def test_similar__decisions_and_changes_count(dataset: Dataset, tmp_path: Path) -> None:
    """What a person called no duplicate of an item is no copy of it; new copies are found, deleted ones are not."""
    own = dataset.media_id("03.png")
    dataset.not_duplicates([own, dataset.media_id("mirrored.png")])
    assert set(_copies(dataset.similar(own))) == {"03.png", "same.png"}
    crop = dataset.similar(_bytes(_quarter(9)))
    assert list(_copies(crop)) == ["09.png"]
    (tmp_path / "more").mkdir()
    _photo(9).save(tmp_path / "more" / "again.jpg", quality=80)
    dataset.add_media(tmp_path / "more")
    assert set(_copies(crop)) == {"09.png", "again.jpg"}
    dataset.delete_media([dataset.media_id("09.png")])
    assert list(_copies(crop)) == ["again.jpg"]


def test_explore__by_an_anchor_shows_copies_first(dataset: Dataset) -> None:
    """The first preview of the first cluster is the best copy, and says so; in JSON the field is named copy."""
    anchor = dataset.upload(_bytes(_quarter(7)))
    for anchor_id, first in ((anchor, "07.png"), (dataset.media_id("05.png"), "05.png")):
        previews = dataset.explore(anchor_media_id=anchor_id, level=0).clusters[0].previews
        assert previews[0].file_name == first
        assert (previews[0].copy_reason or "").startswith("cropped to 2" if anchor_id == anchor else "same file")
        assert previews[0].model_dump(mode="json")["copy"] == previews[0].copy_reason
    assert {each.copy_reason for each in dataset.explore().clusters[0].previews} == {None}


def test_upload__keeps_what_finds_copies(dataset: Dataset, photos: Path) -> None:
    """An upload is searched in any process by what is kept of it; equal files are known by their content."""
    for query, expected in ((_bytes(_quarter(7)), ["07.png"]), (photos / "05.png", ["05.png"])):
        with Workspace(layout_of(dataset).root) as other:
            anchor = dataset.upload(query)
            assert list(_copies(other.dataset("copies").similar(anchor))) == expected
    assert _copies(dataset.similar(anchor)) == {"05.png": "same file"}
    of_item = dataset.upload(dataset.media_id("03.png"))
    assert list(_copies(dataset.similar(of_item))) == ["03.png", "same.png", "mirrored.png"]


def test_upload__of_an_older_version_has_no_copies(dataset: Dataset) -> None:
    """A file with an embedding alone, as older versions wrote it, is still searched by."""
    folder = layout_of(dataset).anchors(dataset.id)
    folder.mkdir(parents=True)
    anchor = new_id()
    np.save(folder / f"{anchor}.npy", dataset.select([dataset.media_id("03.png")]).embeddings()[1][0])
    found = dataset.similar(anchor)
    assert _copies(found) == {}
    assert found[0]["relevance_score"] == pytest.approx(0, abs=1e-5)
    assert dataset.where(vql.similarity("upload", anchor)).count() > 0


@pytest.mark.parametrize("damage", ["cut", "scrambled", "newer"])
def test_upload__that_is_damaged_is_not_found(dataset: Dataset, damage: str) -> None:
    """A file that was cut or written over, or has another format, is no upload; the message says what to do."""
    anchor = dataset.upload(_photo(2))
    (path,) = layout_of(dataset).anchors(dataset.id).iterdir()
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "scrambled":
        path.write_bytes(content[:200] + bytes(byte ^ 85 for byte in content[200:-200]) + content[-200:])
    else:
        np.savez(path, format=np.int64(99))
    with pytest.raises(NotFound, match="upload it again"):
        dataset.similar(anchor)


def test_upload__of_a_part_is_searched_whole(dataset: Dataset) -> None:
    """A part is uploaded by itself; a part of an upload is refused."""
    anchor = dataset.upload(_photo(6), bounding_box=(40, 30, 200, 150))
    assert list(_copies(dataset.similar(anchor))) == ["06.png"]
    with pytest.raises(InvalidInput, match="bounding box"):
        dataset.similar(anchor, bounding_box=(0, 0, 10, 10))


def test_similar__in_a_workspace_that_is_read_only(dataset: Dataset) -> None:
    """Copies are found where nothing may be written."""
    crop = _bytes(_quarter(7))
    with Workspace(layout_of(dataset).root, read_only=True) as workspace:
        assert list(_copies(workspace.dataset("copies").similar(crop))) == ["07.png"]


def test_similar__without_copy_descriptors_is_as_before(workspace: Workspace) -> None:
    """A dataset of embeddings has no copies to show, and no error."""
    made = workspace.create_dataset("vectors", embedded([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    found = made.similar(made.view.ids[2])
    assert _copies(found) == {}
    assert found.count() == 3
    assert _copies(made.similar(made.upload(made.view.ids[0]))) == {}


def test_similar__a_file_that_is_gone_is_no_error(dataset: Dataset, photos: Path, tmp_path: Path) -> None:
    """A source whose file is gone cannot be verified, so it is no copy, and the search goes on."""
    moved = tmp_path / "07.png"
    (photos / "07.png").rename(moved)
    try:
        found = dataset.similar(_bytes(_quarter(7)))
        assert _copies(found) == {}
        assert found.count() == COUNT + 3
    finally:
        moved.rename(photos / "07.png")


def test_similar__a_notebook_says_which_rows_are_copies(dataset: Dataset) -> None:
    """The caption of a copy says what was done to it."""
    assert "copy: cropped to 2" in dataset.similar(_bytes(_quarter(7)), limit=3)._repr_html_()
