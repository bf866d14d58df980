"""Tables of boxes: columns, bad rows, and exact restoration."""

import csv
import os
import re
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from framedex.annotations.boxes import Box
from framedex.annotations.label_index import ImageLabels
from framedex.annotations.problems import Problems
from framedex.annotations.tables import (
    BOXES_CSV,
    LABELS_CSV,
    read_csv_boxes,
    read_csv_labels,
    read_parquet_boxes,
    write,
)
from framedex.errors import InvalidInput
from tests.annotations.written import FolderFiles, ImagesInMemory, no_progress
from tests.boxes import SIZES, boxes
from tests.laws import examples

HEADER = "filename,col_x,row_y,width,height,label"


def read_csv(folder: Path, content: str | bytes) -> tuple[list[Box], Problems]:
    """Return the boxes and problems of a CSV file with a content."""
    path, problems = folder / "object_annotations.csv", Problems()
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_csv_boxes(path, problems)), problems


def read_parquet(folder: Path, **columns: Any) -> tuple[list[Box], Problems]:
    """Return the boxes and problems of a Parquet file with some columns replaced."""
    rows = len(next(iter(columns.values())))
    whole: dict[str, Any] = {"filename": ["a.jpg"] * rows, "label": ["cat"] * rows}
    whole |= {name: [1.0] * rows for name in ("col_x", "row_y", "width", "height")}
    path, problems = folder / "object_annotations.parquet", Problems()
    pq.write_table(pa.table(whole | columns), path)
    return list(read_parquet_boxes(path, problems)), problems


def test_csv__rows(tmp_path: Path) -> None:
    """Columns may be in any order, with others between; the confidence may be empty."""
    text = "label,filename,col_x,row_y,other,width,height,confidence\n cat ,x/a.jpg,1,2.5,?,3,4,\n"
    text += "dog,b.jpg,0,0,?,1,1,0.5\n"
    found, problems = read_csv(tmp_path, f"\ufeff{text}")
    assert found == [
        Box("x/a.jpg", 1, 2.5, 3, 4, "cat", source="csv"),
        Box("b.jpg", 0, 0, 1, 1, "dog", 0.5, source="csv"),
    ]
    assert problems.count == 0


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "'=", "''@"])
def test_csv__cells_that_spreadsheets_would_run(tmp_path: Path, first: str) -> None:
    """No text in a cell begins as a formula does, and all are read back as they were; numbers stay numbers."""
    name, label, caption = (f"{first}cmd|' /C calc'!A{number}" for number in range(3))
    given_boxes = [Box(name, -1, -2, 3, 4, label)]
    images = ImagesInMemory({name: (10, 10)}, given_boxes, captions={name: caption}, folder="")
    write(FolderFiles(tmp_path), images, no_progress)
    for path in tmp_path.iterdir():
        with path.open(encoding="utf-8", newline="") as text:
            cells = [cell for row in csv.reader(text) for cell in row]
        assert [cell for cell in cells if re.match(r"[=+\-@\t\r\n]", cell) and cell not in ("-1", "-2")] == []
        assert any("cmd" in cell for cell in cells)
    (box,) = read_csv_boxes(tmp_path / BOXES_CSV, Problems())
    assert (box.name, box.label, box.x) == (name, label.strip(), -1)
    (row,) = read_csv_labels(tmp_path / LABELS_CSV)
    assert isinstance(row, ImageLabels)
    assert (row.name, row.caption) == (name, caption)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a.jpg,1,2,3,x,cat", "object_annotations.csv: line 3: {'col_x': '1'"),
        ("a.jpg,1,2,3,NaN,cat", "finite"),
        ("a.jpg,1,2,3,,cat", "finite"),
        ("a.jpg,1,2", "'label' must be"),
        ("a.jpg,1,2,3,4,", "'label' must be"),
        (",1,2,3,4,cat", "'filename' must be"),
        ("a.jpg,1,2,3,4,cat,2", "'confidence' must be"),
        ("a.jpg,1,2,3,4,cat,sure", "'sure': 'confidence' must be"),
        ('"a"b.jpg,1,2,3,4,cat', "line 3: ''"),
    ],
)
def test_csv__bad_rows_fail_alone(tmp_path: Path, row: str, told: str) -> None:
    """A bad row is a problem with its line and value; the others are read."""
    good = "a.jpg,1,2,3,4,cat"
    found, problems = read_csv(tmp_path, f"{HEADER},confidence\n{good}\n{row}\n{good}\n")
    assert (len(found), problems.count) == (2, 1)
    assert told in str(problems.sample[0])


def test_csv__bytes_that_are_no_text(tmp_path: Path) -> None:
    """A row with bytes that are not UTF-8 is read and counted, and so are the rows behind it."""
    rows = [b"a.jpg,1,2,3,4,cat", b"\xe4.jpg,1,2,3,4,k\xe4fer", b"b.jpg,1,2,3,4,dog"]
    found, problems = read_csv(tmp_path, b"\n".join([HEADER.encode(), *rows]))
    assert [(each.name, each.label) for each in found] == [("a.jpg", "cat"), ("\udce4.jpg", "k?fer"), ("b.jpg", "dog")]
    assert [str(each) for each in problems.sample] == [
        "object_annotations.csv: line 3: '': line 3: has bytes that are not UTF-8"
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_csv__replacement_characters(tmp_path: Path, encoding: str) -> None:
    """U+FFFD is a character of the text, not a byte that could not be read."""
    found, problems = read_csv(tmp_path, f"{HEADER}\na.jpg,1,2,3,4,a\ufffdb\n".encode(encoding))
    assert [each.label for each in found] == ["a\ufffdb"]
    assert not problems.count


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "lacks the columns filename, col_x"),
        (b"filename,label\n", "lacks the columns col_x, row_y, width, height;"),
    ],
)
def test_csv__of_another_kind(tmp_path: Path, content: bytes, told: str) -> None:
    """A file that lacks the columns or is not CSV is an error that names it."""
    with pytest.raises(InvalidInput, match=f"object_annotations\\.csv.*{told}"):
        read_csv(tmp_path, content)


def test_parquet__types(tmp_path: Path) -> None:
    """Numbers may have any type, including text; classes may be numbers."""
    found, problems = read_parquet(
        tmp_path, col_x=[1], row_y=["2.5"], width=[Decimal("3.25")], height=pa.array([4], pa.float32()), label=[7]
    )
    assert found == [Box("a.jpg", 1, 2.5, 3.25, 4, "7", source="parquet")]
    assert problems.count == 0


@pytest.mark.parametrize(
    "columns",
    [{"col_x": [1, None, 1]}, {"width": [1, float("nan"), 1]}, {"label": ["a", None, "b"]},
     {"filename": ["a", "", "b"]}, {"row_y": ["1", "x", "2"]}, {"confidence": [None, 1.5, float("nan")]}],
)  # fmt: skip
def test_parquet__bad_rows_fail_alone(tmp_path: Path, columns: dict[str, Any]) -> None:
    """A bad row is a problem with its number; the others are read."""
    found, problems = read_parquet(tmp_path, **columns)
    assert (len(found), problems.count) == (2, 1)
    assert problems.sample[0].location == "object_annotations.parquet: row 1"


def test_parquet__of_another_kind(tmp_path: Path) -> None:
    """A file that lacks the columns or is not Parquet is an error that names it."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"filename": ["a"]}), path)
    with pytest.raises(InvalidInput, match=r"a\.parquet.*lacks the columns col_x"):
        list(read_parquet_boxes(path, Problems()))
    path.write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match=r"a\.parquet.*as Parquet"):
        list(read_parquet_boxes(path, Problems()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["image_annotations.csv", "object_annotations.csv"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_csv__row_without_an_end(tmp_path: Path, name: str, quote: str) -> None:
    """A row is read up to a limit, so that memory does not grow with the file."""
    path = tmp_path / name
    path.write_text(f"{HEADER}\np000.jpg,{quote}")
    os.truncate(path, 20 << 20)
    with pytest.raises(InvalidInput, match=f"{name}.*line 2: a row may have at most 16,777,216 characters"):
        list(read_csv_labels(path) if name.startswith("image") else read_csv_boxes(path, Problems()))


def test_csv__many_columns(tmp_path: Path) -> None:
    """The message about a header of many columns shows the first ones."""
    path = tmp_path / "image_annotations.csv"
    path.write_text(",".join(f"column_{number}" for number in range(10_000)))
    with pytest.raises(InvalidInput, match=r"column_0.*it needs 'filename' and 'label' or 'caption'") as raised:
        list(read_csv_labels(path))
    assert len(str(raised.value)) < 1000


def test_parquet__values_that_cannot_be_read(tmp_path: Path) -> None:
    """Invalid text and dates out of range are errors with the file and the column."""
    text = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    for column in (text, pa.array([10**9], pa.date32())):
        with pytest.raises(InvalidInput, match=r"object_annotations\.parquet': column 'label'"):
            read_parquet(tmp_path, label=column)


@examples(50)
@given(boxes("csv"))
def test_csv__round_trip(given_boxes: list[Box]) -> None:
    """An export is restored exactly and in order."""
    with tempfile.TemporaryDirectory() as folder:
        write(FolderFiles(Path(folder)), ImagesInMemory(SIZES, given_boxes, folder=""), no_progress)
        problems = Problems()
        assert list(read_csv_boxes(Path(folder) / BOXES_CSV, problems)) == given_boxes
    assert problems.count == 0


@examples(50)
@given(boxes("parquet"))
def test_parquet__any_boxes(given_boxes: list[Box]) -> None:
    """A Parquet table of any writer is read exactly and in order."""
    columns = {
        "filename": [each.name for each in given_boxes],
        "col_x": [each.x for each in given_boxes],
        "row_y": [each.y for each in given_boxes],
        "width": [each.width for each in given_boxes],
        "height": [each.height for each in given_boxes],
        "label": [each.label for each in given_boxes],
        "confidence": pa.array([each.confidence for each in given_boxes], pa.float64()),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "object_annotations.parquet"
        pq.write_table(pa.table(columns), path)
        problems = Problems()
        assert list(read_parquet_boxes(path, problems)) == given_boxes
    assert problems.count == 0
