"""A path with the suffix of a format's file gets that file instead of a ZIP file."""

import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from framedex import InvalidInput
from tests.gallery import Gallery


def test_json__to_a_json_file(gallery: Gallery, tmp_path: Path) -> None:
    """The file has the content of the member of the ZIP file, but for the time of export."""
    result = gallery.dataset.export(tmp_path / "out.JSON", format="json")
    gallery.dataset.export(tmp_path / "out.zip", format="json")
    alone = json.loads((tmp_path / "out.JSON").read_text())
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        whole = json.loads(archive.read("metadata.json"))
    for each in (alone, whole):
        each["info"].pop("export_time")
    assert alone == whole
    assert result.message == f"{gallery.dataset.count()} media"


def test_parquet__to_a_parquet_file(gallery: Gallery, tmp_path: Path) -> None:
    """The file is a Parquet file."""
    gallery.dataset.export(tmp_path / "out.parquet", format="parquet")
    assert len(pq.read_table(tmp_path / "out.parquet")) == gallery.dataset.count()


def test_coco__to_a_json_file(gallery: Gallery, tmp_path: Path) -> None:
    """The file has the annotations; the message says that captions are left out."""
    result = gallery.dataset.export(tmp_path / "out.json", format="coco")
    assert len(json.loads((tmp_path / "out.json").read_text())["images"]) == gallery.dataset.count()
    assert result.message.endswith("; captions.json is left out: it needs a ZIP file")


@pytest.mark.parametrize("format_", ["json", "coco"])
def test_images__need_a_zip_file(gallery: Gallery, tmp_path: Path, format_: str) -> None:
    """Image files have no room in one file; the message says which name has room for them."""
    with pytest.raises(InvalidInput, match=r"'out\.json' is one file.*give a path that ends with \.zip"):
        gallery.dataset.export(tmp_path / "out.json", format_, include_images=True)
    assert not (tmp_path / "out.json").exists()


def test_zip__for_all_other_names(gallery: Gallery, tmp_path: Path) -> None:
    """Names that say nothing else are those of ZIP files; one that says what the file would not be is refused."""
    for name, format_ in (("out", "json"), ("out.zip", "csv"), ("out.of.2026", "csv")):
        gallery.dataset.export(tmp_path / name, format_)
        assert zipfile.is_zipfile(tmp_path / name)
    for name, format_ in (("out.parquet", "json"), ("out.json", "csv"), ("out.TXT", "coco")):
        with pytest.raises(InvalidInput, match=r"name it 'out\.zip'"):
            gallery.dataset.export(tmp_path / name, format_)
        assert not (tmp_path / name).exists()
