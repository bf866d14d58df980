"""The layout of a table that is text is seen from its beginning."""

import csv
import io
import itertools
from pathlib import Path

import pytest

from framedex.core.delimited import LINES, delimited_rows, encoding_of, layout_of, named_rows, read_layout
from framedex.errors import InvalidInput

KNOWN = frozenset(("path", "label"))
NAMES = ("a.jpg", "my cat (1).JPG", "b, copy.png", "c;v2.jpg", "d|e.tif", "ü.webp")
CELLS = {
    "label": ("dog", "3rd; class", "x,y", 'Peter "P" Pan'),
    "caption": ("a dog, and; a cat", "two | bars", "", "tab\there"),
    "score": ("0.5", "-3", "12.25", ""),
}


def table(names: tuple[str, ...], columns: tuple[str, ...], header: list[str] | None) -> list[list[str]]:
    """Return rows of names with cells of some columns."""
    rows = [[name, *(CELLS[column][n % 4] for column in columns)] for n, name in enumerate(names)]
    return rows if header is None else [header, *rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("columns", [("label",), ("label", "caption"), ("caption", "score")])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_layout__of_what_a_writer_writes(delimiter: str, columns: tuple[str, ...], count: int) -> None:
    """Rows and header come back as the csv module wrote them, whatever the cells hold."""
    headers = (None, ["path", *columns], ["Datei", "x", "y"][: len(columns) + 1])
    for start, header, dialect in itertools.product(range(6), headers, (csv.excel, csv.unix_dialect)):
        names = tuple(itertools.islice(itertools.cycle(NAMES[start:] + NAMES[:start]), count))
        rows = table(names, columns, header)
        text = io.StringIO(newline="")
        csv.writer(text, dialect, delimiter=delimiter).writerows(rows)
        layout = layout_of(text.getvalue(), KNOWN)
        assert (layout.delimiter, layout.header) == (delimiter, header and tuple(header)), text.getvalue()
        body = [cells for _, cells in layout.rows(io.StringIO(text.getvalue(), newline=""))]
        assert body == rows[int(header is not None) :]


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        ("sep=;\npath;label\na.jpg;x\n", ("path", "label"), [["a.jpg", "x"]]),
        ("# by a tool\n# of 2026\npath,label\na.jpg,x\n", ("path", "label"), [["a.jpg", "x"]]),
        ("# path, label\na.jpg, x\n", ("path", "label"), [["a.jpg", "x"]]),
        ('path, label\na.jpg, "x, y"\n', ("path", "label"), [["a.jpg", "x, y"]]),
        ("'path';'label'\n'a;b.jpg';'x'\n", ("path", "label"), [["a;b.jpg", "x"]]),
        ('path,label\na.jpg,"a \\"b\\", c"\n', ("path", "label"), [["a.jpg", 'a "b", c']]),
        ("path;score\na.jpg;1,5\nb.jpg;1,250\n", ("path", "score"), [["a.jpg", "1.5"], ["b.jpg", "1.250"]]),
        ("path;score\na.jpg;1,250\n", ("path", "score"), [["a.jpg", "1,250"]]),
        ("path;score\na.jpg;1,5\nb.jpg;x\n", ("path", "score"), [["a.jpg", "1,5"], ["b.jpg", "x"]]),
    ],
)
def test_layout__of_other_programs(text: str, header: tuple[str, ...], rows: list[list[str]]) -> None:
    """Other quotes, blanks and first lines are understood; a comma is decimal only if it can be nothing else."""
    layout = layout_of(text, KNOWN)
    assert layout.header == header
    assert [cells for _, cells in layout.rows(io.StringIO(text, newline=""))] == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a.jpg 0\nmy cat.jpg 12\n", [["a.jpg", "0"], ["my cat.jpg", "12"]]),
        ("a.jpg\t0\nb c.jpg\t1\n", [["a.jpg", "0"], ["b c.jpg", "1"]]),
        ("Smith, John.jpg\nb;c.png\n", [["Smith, John.jpg"], ["b;c.png"]]),
        ('"a b.jpg"\n"c, d.jpg"\n', [["a b.jpg"], ["c, d.jpg"]]),
        ("a.jpg 0" + " " * 50_000 + "1\n", [["a.jpg", "0", "1"]]),
        ('"a b.jpg" 0\n"c.jpg" 1\n', [["a b.jpg", "0"], ["c.jpg", "1"]]),
        ("any\nlines, or none\n", [["any"], ["lines, or none"]]),
    ],
)
def test_layout__of_lines(text: str, rows: list[list[str]]) -> None:
    """A list may have a path a line, alone or with cells behind it."""
    layout = layout_of(text, KNOWN, is_list=True, is_plain=True)
    assert [cells for _, cells in layout.rows(io.StringIO(text, newline=""))] == rows


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_layout__encoding(tmp_path: Path, encoding: str) -> None:
    """A text in any Unicode encoding is read, with a mark or without."""
    path = tmp_path / "list.csv"
    path.write_bytes("path;label\nü.jpg;größer 犬\n".encode(encoding))
    layout = read_layout(path, KNOWN)
    assert [*delimited_rows(path, layout)] == [(2, ["ü.jpg", "größer 犬"])]


def test_encoding__of_zeros() -> None:
    """Bytes that are zeros alone are no UTF-16."""
    assert encoding_of(b"path\n" + bytes(5000)) == "utf-8-sig"


def test_named_rows__names_in_any_case(tmp_path: Path) -> None:
    """Known names are found in any case and with blanks around; a cell that is not there is None."""
    path = tmp_path / "table.csv"
    path.write_text(" PATH ; Other\na.jpg\n")
    assert list(named_rows(path, KNOWN)) == [(2, {"path": "a.jpg", "Other": None})]


def test_named_rows__rows_that_are_not_csv(tmp_path: Path) -> None:
    """A row that is not CSV is an error with its line, or given to a function, and the others are read."""
    path, broken = tmp_path / "table.csv", list[str]()
    path.write_text('path,label\na.jpg,x\n"b"c.jpg,y\nd.jpg,z\n"e.jpg\nf.jpg\n')
    rows = named_rows(path, KNOWN, broken=broken.append)
    assert [(line, row["path"]) for line, row in rows] == [(2, "a.jpg"), (4, "d.jpg")]
    assert broken == ["line 3: ',' expected after '\"'", "lines 5 to 6: unexpected end of data"]
    with pytest.raises(InvalidInput, match=r"table\.csv' as CSV: line 3: "):
        list(named_rows(path, KNOWN))


def test_layout__of_nothing() -> None:
    """An empty text has no rows."""
    assert layout_of("", KNOWN, is_list=True, is_plain=True).delimiter == LINES
    assert layout_of("", KNOWN).header is None
