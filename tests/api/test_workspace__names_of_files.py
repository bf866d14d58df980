"""Files whose names are not plain text."""

import io
import json
import os
import zipfile
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow.parquet as pq
import pytest

from framedex import Dataset, Workspace
from tests.image_files import encode, photo

NAMES = [
    b"with space.png",
    b"'quotes' \"double\".png",
    b"new\nline.png",
    b"tab\tand\x1b[31mescape.png",
    b"\xff\xfe no unicode.png",
    "ümläut 猫.png".encode(),
    b"<script>alert(1).png",
    b"percent%20 #hash ?question &amp;.png",
    b"back\\slash.png",
    b"-rf.png",
    b"{brace} $HOME `id`.png",
    b"C:colon.png",
    b"folder with \xe9/deep er/inner.png",
]


@pytest.fixture
def odd(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of the files with those names, in a folder whose name is odd too."""
    root = tmp_path / os.fsdecode(b"source \xfe #1")
    for number, name in enumerate(NAMES):
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(photo(number)))
    return workspace.create_dataset("odd", root, "gist")


@pytest.mark.slow
def test_names__all_are_found(odd: Dataset) -> None:
    """Each file is a media item of its own without a fault."""
    assert odd.count() == len(set(odd.where([]).media_ids())) == len(NAMES)
    assert odd.issues("corrupted").num_rows == 0


@pytest.mark.slow
def test_names__lead_to_the_file(odd: Dataset) -> None:
    """The URI of each preview names the file, byte for byte, and reading gives its pixels."""
    previews = [preview for cluster in odd.explore().clusters for preview in cluster.previews]
    found = set()
    for preview in previews:
        assert preview.media_uri.startswith("file:///")
        path = unquote_to_bytes(preview.media_uri.removeprefix("file://"))
        number = next(number for number, name in enumerate(NAMES) if path.endswith(b"/" + name))
        assert Path(os.fsdecode(path)).is_file()
        np.testing.assert_array_equal(odd.read(preview.media_id), photo(number))
        assert odd.thumbnail(preview.media_id)[:2] == b"\xff\xd8"
        found.add(number)
    assert found == set(range(len(NAMES)))


def test_names__are_text_in_tables(odd: Dataset) -> None:
    """In tables a name is text; bytes that are no Unicode are shown escaped, and then the id keeps names apart."""
    table = odd.to_arrow(["media_id", "image_filename", "file_path"])
    for row in table.to_pylist():
        texts = {name.decode("utf-8", "backslashreplace"): name for name in NAMES}
        shown = next(text for text in texts if row["file_path"].endswith(f"/{text}"))
        raw = texts[shown]
        stem, _, suffix = shown.rpartition(".")
        kept = shown if raw.decode("utf-8", "replace") == shown else f"{stem}-{row['media_id'][:8]}.{suffix}"
        assert row["image_filename"] == kept
    assert len(table) == len(NAMES)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("format_", ["json", "parquet"])
def test_names__export(odd: Dataset, tmp_path: Path, format_: str) -> None:
    """An export holds each image under the name that the metadata gives it."""
    result = odd.export(tmp_path / "out.zip", format_, include_images=True)
    assert (result.images, result.missing_images) == (len(NAMES), [])
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.testzip() is None
        if format_ == "json":
            items = json.loads(archive.read("metadata.json"))["media_items"]
            names = [item["file_name"] for item in items]
        else:
            table = pq.read_table(io.BytesIO(archive.read("metadata.parquet")))
            names = table["image_filename"].to_pylist()
        members = {name.removeprefix("images/") for name in archive.namelist() if name.startswith("images/")}
    assert members == set(names)


@pytest.mark.slow
def test_names__pages(odd: Dataset, tmp_path: Path) -> None:
    """Notebook and report show the names as text, not as HTML, and are valid UTF-8."""
    page = odd.report(tmp_path / "report.html").read_text(encoding="utf-8", errors="strict")
    for shown in (page, odd._repr_html_(), odd.explore()._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        shown.encode("utf-8")


@pytest.mark.parametrize("name", ["a b", "x#1", "100%20", "que?stion", "quote'\"", "ümläut 猫", "a&b=c", "file:memory"])
@pytest.mark.slow
@pytest.mark.only_soak
def test_workspace__odd_folder(folder: Path, tmp_path: Path, name: str) -> None:
    """A workspace may lie in a folder of any name that is text."""
    with Workspace(tmp_path / name) as workspace:
        dataset = workspace.create_dataset("d", folder, "gist")
        dataset.thumbnail(dataset.where([]).media_ids()[0])
        assert len(dataset.explore().clusters) == 6
    with Workspace(tmp_path / name, read_only=True) as workspace:
        assert workspace.dataset("d").count() == 6
    assert {entry.name for entry in (tmp_path / name).iterdir()} >= {"catalog.db", "datasets", "framedex.toml"}
