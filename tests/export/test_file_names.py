"""File names in exports: distinct on every file system, without control characters."""

import json
import sys
import unicodedata
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Workspace
from framedex.export.file_names import find_repeats, fold_names, hash_names
from tests.image_files import photo, write

linux_names = pytest.mark.skipif(sys.platform != "linux", reason="the file system does not take such names")
NAMES = [
    "a.png",
    "A.PNG",
    "sub/b.png",
    "SUB/B.png",
    "caf\u00e9.png",
    "cafe\u0301.png",
    "stra\u00dfe.png",
    "STRASSE.png",
]
ODD = ["esc\x1b[31m.png", "back\\slash.png", "new\nline.png"]
PLAIN = "plain.png"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with images whose names are equal on some systems, and unusual names."""
    for seed, name in enumerate([*NAMES, *ODD, PLAIN]):
        write(tmp_path / "source" / name, photo(seed, width=40, height=30))
    return tmp_path / "source"


def names_of(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return archive.namelist()


@pytest.mark.slow
@pytest.mark.only_soak
@linux_names
@pytest.mark.parametrize("format_", ["json", "parquet", "coco", "csv", "yolo", "voc"])
def test_names__are_files_of_their_own(workspace: Workspace, source: Path, tmp_path: Path, format_: str) -> None:
    """Folded names are distinct and without control characters, and all images are exported."""
    dataset = workspace.create_dataset("d", source)
    dataset.set_labels(dataset.where([]), ["thing"])
    result = dataset.export(tmp_path / "out.zip", format_, include_images=True)
    names = names_of(tmp_path / "out.zip")
    blind = [unicodedata.normalize("NFC", name).casefold() for name in names]
    assert len(set(blind)) == len(names)
    assert all(name.isprintable() and "\\" not in name for name in names)
    assert result.images == len([name for name in names if name.startswith("images/")]) == len(NAMES) + len(ODD) + 1
    assert f"images/{PLAIN}" in names


@pytest.mark.slow
@linux_names
def test_names__of_images_are_those_in_the_metadata(workspace: Workspace, source: Path, tmp_path: Path) -> None:
    """Metadata have the names of the images in the archive; without images they have the names of the source."""
    dataset = workspace.create_dataset("d", source)
    dataset.export(tmp_path / "with.zip", include_images=True)
    dataset.export(tmp_path / "without.zip")
    named = {}
    for name in ("with.zip", "without.zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            items = json.loads(archive.read("metadata.json"))["media_items"]
            named[name] = sorted(item["file_name"] for item in items)
    images = [name.removeprefix("images/") for name in names_of(tmp_path / "with.zip") if name.startswith("images/")]
    assert named["with.zip"] == sorted(images)
    assert set(NAMES) < set(named["without.zip"])


@pytest.mark.slow
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4)))
def test_folded__is_the_same_for_any_case_and_composition(texts: list[str]) -> None:
    """Names in any case and composition have the same folded form."""
    array = pa.array(texts, pa.string())
    for form in ("NFC", "NFD"):
        other = pa.array([unicodedata.normalize(form, text) for text in texts], pa.string())
        assert fold_names(other) == fold_names(array)
    assert fold_names(pa.array([text.casefold() for text in texts], pa.string())) == fold_names(array)


def test_repeated__over_blocks() -> None:
    """Names are compared across blocks."""
    found = find_repeats(hash_names(pa.array(block, pa.string())) for block in (["a", "b"], [], ["A", "c"]))
    assert found == {hash("a")}
