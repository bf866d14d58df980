"""The footer of Parquet files says what Arrow reads in it, and damage ends no process."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.parquet_footer import ColumnSize, column_sizes
from framedex.core.table_rows import parquet_rows
from framedex.errors import InvalidInput
from tests.laws import examples

ROWS: dict[str, list[object]] = {
    "filename": ["a.jpg", "b.jpg", "x/c.jpg"],
    "label": [["a"], ["b"], []],
    "caption": ["x", None, ""],
}


def stored(columns: dict[str, list[object]], **options: object) -> bytes:
    """Return a Parquet file."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def sizes_by_arrow(content: bytes) -> list[ColumnSize]:
    """Return the sizes that Arrow finds in a footer."""
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [
        ColumnSize(each.path_in_schema, group.num_rows, each.num_values, each.total_uncompressed_size)
        for group in groups
        for each in map(group.column, range(group.num_columns))
    ]


@examples(30)
@given(
    st.integers(0, 40),
    st.integers(1, 20),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(["snappy", "zstd", "none"]),
)
def test_sizes__are_those_of_arrow(n_rows: int, n_columns: int, group: int, is_indexed: bool, method: str) -> None:
    """Sizes are those that Arrow reads, of any number of columns, groups, and of lists."""
    columns: dict[str, list[object]] = {f"é{number}": list(range(n_rows)) for number in range(n_columns)}
    columns["lists"] = [{"a": ["x" * row] * row, "b": row > 1} for row in range(n_rows)]
    content = stored(columns, row_group_size=group, write_page_index=is_indexed, compression=method)
    assert list(column_sizes(io.BytesIO(content))) == sizes_by_arrow(content)


@examples(50)
@given(st.data())
def test_sizes__of_damage(data: st.DataObject) -> None:
    """Any footer gives sizes, or an error of values."""
    content = bytearray(stored(ROWS))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[place] = data.draw(st.integers(0, 255))
    file = io.BytesIO(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        assert all(isinstance(each.size, int) for each in column_sizes(file))
    except ValueError:
        return


def test_rows__of_damaged_statistics(tmp_path: Path) -> None:
    """Damaged statistics of sizes, at which Arrow ends the process, are an error."""
    content = stored(ROWS)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for place in range(start, len(content)):
        changed = bytearray(content)
        changed[place] ^= 8
        try:
            pq.ParquetFile(io.BytesIO(changed)).read()
        except OSError as error:
            if "histogram size mismatch" in str(error):
                break
    else:
        pytest.fail("no byte is in the statistics of sizes")
    (tmp_path / "a.parquet").write_bytes(changed)
    with pytest.raises(InvalidInput, match="histogram size mismatch"):
        list(parquet_rows(tmp_path / "a.parquet", list))
