"""Rows of CSV and Parquet files are bounded, and every value that cannot be read is an error with its column."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex.core import table_rows
from framedex.core.table_rows import csv_rows, parquet_rows, python_values
from framedex.errors import InvalidInput
from tests.tuning import Tuning

INVALID_UTF8 = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))


class EndlessLine(io.RawIOBase):
    """A file whose first line never ends."""

    count = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, and count the bytes."""
        buffer[:] = b"x" * len(buffer)
        self.count += len(buffer)
        return len(buffer)


def rows(file: Path, /, **columns: Any) -> list[dict[str, Any]]:
    """Write a Parquet file, and return its rows."""
    pq.write_table(pa.table(columns), file)
    return list(parquet_rows(file, lambda names: names))


def test_csv__line_numbers_and_empty_rows() -> None:
    """Empty rows are left out; a row has the number of its last line."""
    assert list(csv_rows(io.StringIO('a,b\n\n"c\nd",e\n'))) == [(1, ["a", "b"]), (4, ["c\nd", "e"])]


def test_csv__line_without_an_end() -> None:
    """A row is read up to the limit and no further."""
    file = EndlessLine()
    with pytest.raises(csv.Error, match="line 1: a row may have at most 16,777,216 characters"):
        next(csv_rows(io.TextIOWrapper(io.BufferedReader(file), encoding="ascii")))
    assert file.count < table_rows.MAX_ROW + 2**16


def test_csv__row_of_many_lines(tuning: Tuning) -> None:
    """The limit is one for all lines of a quoted cell, and begins again with each row."""
    tuning.table_row = 20
    assert len(list(csv_rows(io.StringIO("path/of/an/image\n" * 10)))) == 10
    with pytest.raises(csv.Error, match="line 4: a row may have"):
        list(csv_rows(io.StringIO('a\n"' + "x" * 8 + "\n" + "x" * 8 + "\n" + "x" * 8 + '"\n')))


def test_parquet__values_of_each_type(tmp_path: Path) -> None:
    """Values are those of Arrow, in the order of rows, whatever the file stores them as."""
    columns = {
        "text": ["a", None, "a"],
        "labels": [["x", "y"], [], None],
        "number": [1, 2, None],
        "dictionary": pa.array(["d", "e", "d"]).dictionary_encode(),
        "bytes": [b"x", b"", None],
        "struct": [{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}],
    }
    assert rows(tmp_path / "a.parquet", **columns) == pa.table(columns).to_pylist()


def test_parquet__repeated_texts_of_one_row(tmp_path: Path) -> None:
    """A row of many repetitions is refused, although the file stores the text once."""
    with pytest.raises(InvalidInput, match=r"a\.parquet': column 'labels' has more than 16,777,216 bytes in a row"):
        rows(tmp_path / "a.parquet", path=["a.jpg"], labels=[["x" * 2**16] * 300])


def test_parquet__large_batches_are_split(tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows within the limit are read, however large all of them are."""
    tuning.table_row = 200
    sizes: list[int] = []
    convert = table_rows.python_values

    def counted(values: pa.Array, column: str, source: str) -> list[Any]:
        sizes.append(len(values))
        return convert(values, column, source)

    monkeypatch.setattr(table_rows, "python_values", counted)
    columns = {"path": ["x" * 90] * 25}
    assert rows(tmp_path / "a.parquet", **columns) == pa.table(columns).to_pylist()
    assert max(sizes) <= 2


def test_parquet__text_that_is_too_long_is_not_read(
    tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of the file tells the size, so that no batch is read."""
    tuning.table_row = 1000
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    with pytest.raises(InvalidInput, match="column 'path' has more than 1,000 bytes in a row"):
        rows(tmp_path / "a.parquet", path=["x" * 3000])
    with pytest.raises(InvalidInput, match="column 'labels' has more than 1,000 bytes in a row"):
        rows(tmp_path / "a.parquet", path=["x"], labels=[[1] * 3000])


@pytest.mark.parametrize(
    "values",
    [pa.array([10**9], pa.date32()), pa.array([10**18], pa.duration("s")), pa.array([10**17], pa.timestamp("ms"))],
)
def test_parquet__values_out_of_range(tmp_path: Path, values: pa.Array) -> None:
    """A date that Python has not is an error with the file and the column."""
    with pytest.raises(InvalidInput, match=r"a\.parquet': column 'label' has a value of the type .* out of range"):
        rows(tmp_path / "a.parquet", path=["a.jpg"], label=values)
    with pytest.raises(InvalidInput, match="cannot read the table: column 'label'"):
        python_values(values, "label", "the table")


def test_parquet__invalid_text(tmp_path: Path) -> None:
    """Text that is no UTF-8, also in a list, is an error with the file and the column."""
    for values in (INVALID_UTF8, pa.ListArray.from_arrays([0, 1], INVALID_UTF8)):
        with pytest.raises(InvalidInput, match=r"a\.parquet': column 'label' is damaged"):
            rows(tmp_path / "a.parquet", path=["a.jpg"], label=values)
