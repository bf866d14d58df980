"""A preview says how a source is understood, as its dataset then has it, and makes nothing."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import InvalidInput, Workspace
from framedex.operations.previews import preview_source
from framedex.records import ColumnUse, Problem, SourcePreview
from tests.gallery import SETTINGS, Averages, fill

COLUMNS = {"path": "path", "label": "labels", "caption": "caption", "split": "tags", "score": "field"}


@pytest.fixture
def listed(folder: Path) -> Path:
    """A list of the folder's images in the manner of a spreadsheet, one of which is missing."""
    rows = ["000.png;dog;some dog;train;0,5;2", "001.png;cat;some cat;val;1,5;2", "gone.png;cat;;test;2,5;2"]
    (folder / "list.csv").write_text("\n".join(["path;label;caption;split;score;width", "# comment", *rows]))
    return folder / "list.csv"


def uses(preview: SourcePreview) -> dict[str, str]:
    """Return what each column becomes."""
    return {each.name: str(each.becomes) for each in preview.columns}


def test_list__is_what_its_dataset_has(workspace: Workspace, listed: Path) -> None:
    """Labels, tags and fields of the dataset are those that the preview names; nothing is made by it."""
    before = sorted(each.name for each in listed.parent.iterdir())
    preview = workspace.preview(listed)
    assert (preview.kind, preview.encoding, preview.delimiter, preview.has_header) == (
        "list",
        "UTF-8",
        "semicolons",
        True,
    )
    assert uses(preview) == {**COLUMNS, "width": "nothing"}
    assert preview.columns[-1].reason == "a field cannot be named 'width': that name is reserved"
    assert preview.rows[0] == ["000.png", "dog", "some dog", "train", "0.5", "2"]
    assert (preview.files, preview.found, preview.missing) == (3, 2, [str(listed.parent / "gone.png")])
    assert [(each.reason, each.count) for each in preview.problems] == [("comments", 1)]
    assert (list(workspace.datasets()), sorted(each.name for each in listed.parent.iterdir())) == ([], before)
    dataset = workspace.create_dataset("d", listed, Averages())
    assert [(each.field_name, each.field_type) for each in dataset.fields()] == [("score", preview.columns[4].type)]
    assert {each.name for each in dataset.tags()} == {"train", "val", "test"}
    assert dataset.skipped == {each.reason: each.count for each in preview.problems}


@pytest.mark.parametrize("form", ["parquet", "frame", "tsv"])
def test_list__of_any_form(folder: Path, form: str) -> None:
    """Parquet files, tables in memory and text say the same."""
    cells = {"path": str(folder / "000.png"), "label": "dog", "caption": "some", "split": "train", "score": 1.5}
    frame = pd.DataFrame([cells])
    path = folder / f"list.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pandas(frame), path)
    else:
        frame.to_csv(path, sep="\t", index=False)
    preview = preview_source(frame if form == "frame" else str(path), SETTINGS)
    assert uses(preview) == COLUMNS
    assert [str(each.type) for each in preview.columns] == [*["string"] * 4, "float"]
    assert (preview.rows, preview.found) == ([[str(folder / "000.png"), "dog", "some", "train", "1.5"]], 1)


def test_list__without_names(folder: Path) -> None:
    """Columns without names are shown, with why they are left out."""
    (folder / "list.csv").write_text("000.png,a dog beside a tree\n001.png,x\n")
    preview = preview_source(folder / "list.csv", SETTINGS)
    assert uses(preview) == {"path": "path", "column 2": "nothing"}
    assert [each.reason for each in preview.problems] == ["columns without a name"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_boxes__valid_rows_are_counted(folder: Path, suffix: str) -> None:
    """A table of boxes is told from a list, and its bad rows are shown."""
    frame = pd.DataFrame(
        {
            "filename": ["000.png"] * 3,
            "col_x": [1, 2, 3],
            "row_y": 1,
            "width": ["1", "x", "3"],
            "height": 4,
            "label": "a",
            "note": 1,
        }
    )
    path = folder / f"boxes.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    preview = preview_source(path, SETTINGS)
    assert (preview.kind, preview.files, preview.found) == ("boxes", 3, 3)
    assert preview.layout == [f"a table of boxes, for boxes='boxes.{suffix}': 2 of the first rows are valid"]
    assert [each.becomes for each in preview.columns] == [*[ColumnUse.BOXES] * 6, ColumnUse.NOTHING]
    assert [each.count for each in preview.problems] == [1]


def test_folder__says_what_is_read(tmp_path: Path) -> None:
    """Of a folder the layout and the first files are shown, and what is left out."""
    folder = fill(tmp_path / "photos", 2)
    (folder / "image_annotations.csv").write_text("filename\tlabel\n000.png\tdog\n")
    (folder / "notes.md").touch()
    preview = preview_source(folder, SETTINGS)
    assert (preview.kind, preview.rows, preview.found) == ("folder", [["000.png"], ["001.png"]], 2)
    assert preview.layout == ["read: image_annotations.csv"]
    assert [(each.reason, each.count) for each in preview.problems] == [("other files (.md)", 1)]


def test_vectors__have_no_columns(tmp_path: Path) -> None:
    """A table with embeddings is named as such."""
    pq.write_table(pa.table({"uri": ["a"], "embedding": [[1.0, 0.0]]}), tmp_path / "v.parquet")
    assert preview_source(tmp_path / "v.parquet", SETTINGS).kind == "vectors"


def test_nothing__is_an_error(tmp_path: Path) -> None:
    """What is no source is refused as in a creation."""
    with pytest.raises(InvalidInput, match="there is nothing at"):
        preview_source(tmp_path / "gone.csv", SETTINGS)
    with pytest.raises(InvalidInput, match="cannot read the archive"):
        preview_source(tmp_path / "x.zip", SETTINGS)


def test_list__of_other_bytes(workspace: Workspace, folder: Path) -> None:
    """A list that is no UTF-8, and a cell of any size, is shown in short texts; its dataset says what was left out."""
    path, name = folder / "list.csv", sorted(each.name for each in folder.iterdir())[0].encode()
    path.write_bytes(b"path,caf\xe9,note\n" + name + b",caf\xe9," + b"x" * 10_000 + b"\n")
    preview = preview_source(path, SETTINGS)
    assert SourcePreview.model_validate_json(preview.model_dump_json()) == preview
    assert [each.name for each in preview.columns] == ["path", r"caf\udce9", "note"]
    assert max(len(cell) for row in preview.rows for cell in row) < 300
    dataset = workspace.create_dataset("d", path, Averages())
    assert dataset.count() == 1
    assert any(r"caf\udce9" in line for line in dataset.layout)


def test_problems__of_other_letters(workspace: Workspace, folder: Path) -> None:
    """Examples of problems are texts that JSON can have, also of half a letter in a file."""
    images, notes = [{"id": 1, "file_name": "\ud800.jpg"}], [{"id": 1, "image_id": 1, "category_id": 1}]
    content = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": notes}
    (folder / "annotations.json").write_text(json.dumps(content))
    problems = workspace.create_dataset("d", folder, Averages()).problems
    assert [Problem.model_validate_json(each.model_dump_json()) for each in problems] == problems
    assert [each.examples for each in problems if "image" in each.reason] == [[r"\ud800.jpg"]]
