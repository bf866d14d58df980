"""Exports that leave the machine: without metadata of image files, and without its paths."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from framedex import Workspace
from framedex.errors import InvalidInput
from tests.gallery import SETTINGS, embedded, fill
from tests.image_files import encode, photo

SECRET = b"SECRET"


def _exif() -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, SECRET.decode()
    return exif.tobytes()


def test_strip_metadata__leaves_the_pixels(tmp_path: Path) -> None:
    """Files are copied without Exif; those of formats that cannot be stripped are left out, and counted."""
    source = fill(tmp_path / "source", 1)
    for seed, name in enumerate(("a.jpg", "b.webp", "c.tif")):
        (source / name).write_bytes(
            encode(photo(seed), Path(name).suffix[1:].replace("jpg", "jpeg").replace("tif", "tiff"), exif=_exif())
        )
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("photos", source)
        plain = dataset.export(tmp_path / "plain.zip", include_images=True)
        result = dataset.export(tmp_path / "out.zip", include_images=True, strip_metadata=True)
        assert (plain.images, result.images) == (4, 3)
        assert "1 left out: what their files say" in result.message
        assert [Path(path).name for path in result.missing_images] == ["c.tif"]
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            assert all(SECRET not in archive.read(name) for name in archive.namelist())
            with Image.open(io.BytesIO(archive.read("images/a.jpg"))) as image:
                assert dict(image.getexif()) == {0x0112: 6}
        with pytest.raises(InvalidInput, match="include_images"):
            dataset.export(tmp_path / "none.zip", strip_metadata=True)


def test_media_url__takes_the_place_of_paths(tmp_path: Path) -> None:
    """URLs are made after the pattern, and paths are those within the source."""
    source = fill(tmp_path / "source", 2)
    (tmp_path / "list.txt").write_text(f"{source / '000.png'}\n")
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("photos", source)
        dataset.export(tmp_path / "out.json", media_url="https://example.org/{media_id}.jpg")
        text = (tmp_path / "out.json").read_text()
        items = json.loads(text)["media_items"]
        assert [(item["file_path"], item["url"]) for item in items] == [
            (name, f"https://example.org/{dataset.media_id(name)}.jpg") for name in ("000.png", "001.png")
        ]
        assert str(tmp_path) not in text
        with pytest.raises(InvalidInput, match="media_id"):
            dataset.export(tmp_path / "bad.json", media_url="https://example.org/")


@pytest.mark.slow
def test_issues_description__is_the_suggested_label(tmp_path: Path) -> None:
    """The item of a mislabelled image says which label it should have."""
    vectors = [[1.0, 0.01 * number, 0.0] for number in range(30)] + [[0.0, 0.01 * number, 1.0] for number in range(30)]
    labels = ["cat"] * 30 + ["dog"] * 30
    labels[15] = "dog"
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("vectors", embedded(vectors, label=labels))
        (wrong,) = dataset.issues("mislabels").to_pylist()
        assert wrong["suggested_label"] == "cat"
        dataset.export(tmp_path / "out.json")
        items = json.loads((tmp_path / "out.json").read_text())["media_items"]
        described = {
            item["media_id"]: issue["properties"]["issues_description"]
            for item in items
            for issue in item["metadata_items"]
            if issue["type"] == "issue" and "issues_description" in issue["properties"]
        }
        assert described == {wrong["media_id"]: "cat"}
