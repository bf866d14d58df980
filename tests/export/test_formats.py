"""Each export format is one row of a registry; messages, help and docs follow it."""

import json
import re
import zipfile
from pathlib import Path

import pytest

from framedex import InvalidInput, Workspace
from framedex.annotations.formats import FORMATS as ANNOTATIONS
from framedex.export.formats import FORMATS, find_format, format_names
from tests.boxes import ANNOTATION_EXPORTS
from tests.export.held import HELD, SOURCES, matrix
from tests.gallery import Averages
from tests.image_files import photo, write

EXPORTS_DOC = Path(__file__).parents[2] / "docs" / "exports.md"
INTEROP_DOC = EXPORTS_DOC.with_name("interop.md")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.slow
def test_files__are_those_of_the_row(workspace: Workspace, tmp_path: Path, format_: str) -> None:
    """An export of a dataset with boxes has exactly the files of its format's row."""
    write(tmp_path / "source" / "a.jpg", photo(1))
    note = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[1, 2, 30, 2, 30, 40]]}
    content = {"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "cat"}]}
    (tmp_path / "source" / "annotations.json").write_text(json.dumps({**content, "annotations": [note]}))
    dataset = workspace.create_dataset("d", tmp_path / "source", Averages())
    dataset.set_captions(dict.fromkeys(dataset.where([]).media_ids(), "a caption"))
    dataset.set_labels({each: ["cat"] for each in dataset.where([]).media_ids()})
    dataset.export(tmp_path / "out.zip", format_, include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        names = {name for name in archive.namelist() if not name.startswith("images/") or name.endswith(".json")}
    shown = {"<name>": "a", "<class>": "cat", "<part>": "data"}
    assert names == {re.sub("<[a-z]+>", lambda found: shown[found[0]], name) for name in FORMATS[format_].files}


def test_docs__name_each_format_and_its_files() -> None:
    """The table of the docs has the formats of the registry, in its order, with their files."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", EXPORTS_DOC.read_text(), re.MULTILINE)
    table = {name: set(re.findall(r"`([^`]+\.\w+)`", files)) for name, files in rows[: len(FORMATS)]}
    assert list(table) == list(FORMATS)
    for name, files in table.items():
        assert files <= set(FORMATS[name].files)
        assert FORMATS[name].files[0] in files


def test_docs__have_what_each_format_holds() -> None:
    """The matrix of the docs is the table by which the round trips are checked; its formats are those that are read."""
    assert matrix() in INTEROP_DOC.read_text(), f"docs/interop.md must have\n\n{matrix()}"
    assert HELD.keys() - {"huggingface_parquet"} <= {each.name for each in ANNOTATIONS}
    assert HELD.keys() - {*SOURCES} <= FORMATS.keys()
    assert {*ANNOTATION_EXPORTS} <= HELD.keys()


def test_message__names_the_formats() -> None:
    """An unknown format is rejected with the list of formats."""
    with pytest.raises(InvalidInput, match=f"^format must be {format_names()}, not 'pascal'$"):
        find_format("pascal")


def test_annotations__that_are_written_are_read() -> None:
    """Each export format of annotations has an annotation format of that name, which reads it."""
    assert {*ANNOTATION_EXPORTS} <= {each.name for each in ANNOTATIONS}
