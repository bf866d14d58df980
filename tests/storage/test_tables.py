"""Tables are versioned: versions never change, and an interrupted run can be rolled back."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import NotFound
from framedex.storage import tables
from framedex.storage.stored_vectors import StoredVectors
from framedex.storage.table_versions import ROW_ID, Table
from tests.laws import examples
from tests.tuning import Tuning

SCHEMA = pa.schema([pa.field("n", pa.int32()), pa.field("name", pa.string())])
VECTORS = pa.schema([pa.field("embedding", pa.list_(pa.float32(), 3))])


def rows(start: int, count: int) -> pa.RecordBatch:
    """Return numbered rows."""
    numbers = range(start, start + count)
    return pa.RecordBatch.from_pydict({"n": numbers, "name": [f"#{n}" for n in numbers]}, schema=SCHEMA)


def column(table: Table, name: str) -> list[object]:
    """Return a whole column in row order."""
    values: list[object] = table.scan([name]).read_all()[name].to_pylist()
    return values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a table, in a folder that is created with the first write."""
    return tmp_path / "data sets#?%41" / "media.lance"


def test_append__makes_versions_that_do_not_change(path: Path) -> None:
    """A reader keeps its version while a writer appends, adds columns and restores."""
    first = tables.append(path, [rows(0, 3)], SCHEMA)
    reader = Table(path, first)
    scan = reader.scan(["n"])
    second = tables.append(path, [rows(3, 2), rows(5, 1)], SCHEMA)
    added = pa.schema([pa.field("x", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"x": range(6)}, schema=added)
    third = tables.put_columns(Table(path, second), iter([batch]), added)
    assert first < second < third
    tables.roll_back(path, second)
    assert scan.read_all()["n"].to_pylist() == [0, 1, 2]
    assert (reader.count(), reader.schema.names) == (3, ["n", "name"])
    assert column(Table(path, first), "n") == [0, 1, 2]
    assert column(Table(path, second), "n") == list(range(6))
    assert Table(path, third).schema.names == ["n", "name", "x"]


def test_append__with_further_columns(path: Path) -> None:
    """Columns that the table lacks are null in its rows; columns that the new rows lack are null in those rows."""
    tables.append(path, [rows(0, 2)], SCHEMA)
    schema = pa.schema([SCHEMA.field("n"), pa.field("value", pa.float32())])
    batch = pa.RecordBatch.from_pydict({"n": [2], "value": [0.5]}, schema=schema)
    table = Table(path, tables.append(path, [batch], schema))
    assert column(table, "n") == [0, 1, 2]
    assert column(table, "name") == ["#0", "#1", None]
    assert column(table, "value") == [None, None, 0.5]


def test_append__of_no_rows(path: Path) -> None:
    """A table may be empty, with its columns, and grow later."""
    version = tables.append(path, [rows(0, 0)], SCHEMA)
    empty = Table(path, version)
    assert (empty.count(), empty.schema, column(empty, "n")) == (0, SCHEMA, [])
    assert column(Table(path, tables.append(path, [rows(0, 1)], SCHEMA)), "n") == [0]


@pytest.mark.parametrize("version", [2, 99])
def test_open__a_version_that_is_not_there(path: Path, version: int) -> None:
    """A missing version or table raises an error that names it."""
    with pytest.raises(NotFound, match="has no version"):
        Table(path, 1)
    tables.append(path, [rows(0, 3)], SCHEMA)
    with pytest.raises(NotFound, match=f"has no version {version}"):
        Table(path, version)


def test_replace__is_the_whole_content(path: Path) -> None:
    """A replaced table has the new rows only, possibly none; a reader keeps the former rows."""
    versions = [tables.replace(path, [rows(start, count)], SCHEMA) for start, count in ((0, 3), (5, 1), (0, 0), (9, 2))]
    assert versions == sorted(set(versions))
    assert [column(Table(path, version), "n") for version in versions] == [[0, 1, 2], [5], [], [9, 10]]


def test_replace__with_other_columns(path: Path) -> None:
    """The new content may have other columns, such as vectors of another length."""
    tables.replace(path, [rows(0, 3)], SCHEMA)
    other = pa.schema([pa.field("centroid", pa.list_(pa.float32(), 2))])
    batch = pa.RecordBatch.from_arrays([pa.array([[1, 2]], other.field(0).type)], schema=other)
    replaced = Table(path, tables.replace(path, [batch], other))
    assert replaced.schema.names == ["centroid"]
    np.testing.assert_array_equal(replaced.vectors("centroid")[1], [[1, 2]])


def test_scan__is_in_row_order_and_bounded(path: Path) -> None:
    """Batches are in row order over all fragments, bounded in size, with row ids on request."""
    for start in range(0, 30_000, 10_000):
        version = tables.append(path, [rows(start, 10_000)], SCHEMA)
    reader = Table(path, version).scan(["n"], row_ids=True)
    assert reader.schema.names == ["n", ROW_ID]
    batches = list(reader)
    assert max(batch.num_rows for batch in batches) <= 8192
    whole = pa.Table.from_batches(batches)
    assert whole["n"].to_numpy().tolist() == list(range(30_000))
    assert np.all(np.diff(whole[ROW_ID].to_numpy().astype(np.int64)) > 0)


def test_take__keeps_the_order_that_was_asked_for(path: Path) -> None:
    """Rows are returned as often and in the order in which their ids are given, over all fragments."""
    for start in (0, 5):
        version = tables.append(path, [rows(start, 5)], SCHEMA)
    table = Table(path, version)
    ids = table.scan(["n"], row_ids=True).read_all()[ROW_ID].to_pylist()
    wanted = [9, 0, 5, 4, 0]
    taken = table.take([ids[place] for place in wanted], ["name", "n"])
    assert taken.column_names == ["name", "n"]
    assert taken["n"].to_pylist() == wanted
    nothing = table.take([], ["n"])
    assert (nothing.num_rows, nothing.column_names) == (0, ["n"])


@examples(15)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.integers(1, 30), st.integers(1, 3))
def test_put_columns__match_rows_over_fragments(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], size: int, times: int
) -> None:
    """Added and replaced values match their rows for any batch and fragment sizes."""
    path = tmp_path_factory.mktemp("law") / "t.lance"
    start = 0
    for count in sizes:
        version = tables.append(path, [rows(start, count)], SCHEMA)
        start += count
    added = pa.schema([pa.field("square", pa.int64()), pa.field("even", pa.bool_())])

    def batches(offset: int) -> Iterator[pa.RecordBatch]:
        for first in range(0, start, size):
            numbers = range(first, min(first + size, start))
            content = {"square": [n * n + offset for n in numbers], "even": [n % 2 == 0 for n in numbers]}
            yield pa.RecordBatch.from_pydict(content, schema=added)

    for time in range(times):
        version = tables.put_columns(Table(path, version), batches(time), added)
    table = Table(path, version)
    assert table.schema.names == ["n", "name", "square", "even"]
    assert column(table, "n") == list(range(start))
    assert column(table, "square") == [n * n + times - 1 for n in range(start)]
    assert column(table, "even") == [n % 2 == 0 for n in range(start)]


def test_put_columns__replaces_some_and_adds_others(path: Path) -> None:
    """Columns of the same names are replaced, also by another type; other columns stay."""
    version = tables.append(path, [rows(0, 3)], SCHEMA)
    before = Table(path, version)
    added = pa.schema([pa.field("name", pa.float32()), pa.field("new", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"name": [0.5, None, 1.5], "new": [1, 2, 3]}, schema=added)
    after = Table(path, tables.put_columns(before, iter([batch]), added))
    assert sorted(after.schema.names) == ["n", "name", "new"]
    assert column(after, "name") == [0.5, None, 1.5]
    assert column(before, "name") == ["#0", "#1", "#2"]


def test_put_columns__on_an_empty_table(path: Path) -> None:
    """Columns can be added to no rows."""
    added = pa.schema([pa.field("x", pa.int32())])
    version = tables.append(path, [rows(0, 0)], SCHEMA)
    for _ in range(2):
        version = tables.put_columns(Table(path, version), iter(()), added)
    assert Table(path, version).schema.names == ["n", "name", "x"]


def test_put_columns__stopped_half_way(path: Path) -> None:
    """Errors while columns are written are raised unchanged; the version is readable and can be rolled back."""
    version = tables.append(path, [rows(0, 3)], SCHEMA)
    added = pa.schema([pa.field("name", pa.int32())])

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"name": [1]}, schema=added)
        raise InterruptedError("stop")

    with pytest.raises(InterruptedError, match=r"^stop$"):
        tables.put_columns(Table(path, version), broken(), added)
    assert column(Table(path, version), "name") == ["#0", "#1", "#2"]
    tables.roll_back(path, version)
    grown = tables.append(path, [rows(3, 1)], SCHEMA)
    assert column(Table(path, grown), "name") == ["#0", "#1", "#2", "#3"]


def test_roll_back__to_the_head(path: Path) -> None:
    """Versions after the head are undone for the next writer; readers of the head see no change."""
    head = tables.append(path, [rows(0, 2)], SCHEMA)
    for _ in range(3):
        tables.append(path, [rows(100, 5)], SCHEMA)
    tables.roll_back(path, head)
    newest = tables.roll_back(path, head)
    assert newest is not None
    assert column(Table(path, head), "n") == column(Table(path, newest), "n") == [0, 1]
    added = pa.schema([pa.field("x", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"x": [7, 8]}, schema=added)
    assert column(Table(path, tables.put_columns(Table(path, newest), iter([batch]), added)), "x") == [7, 8]


def test_roll_back__then_append(path: Path) -> None:
    """After a rollback, new rows follow those of the head."""
    head = tables.append(path, [rows(0, 2)], SCHEMA)
    tables.append(path, [rows(100, 5)], SCHEMA)
    tables.roll_back(path, head)
    assert column(Table(path, tables.append(path, [rows(2, 1)], SCHEMA)), "n") == [0, 1, 2]


def test_roll_back__at_the_head_already(path: Path) -> None:
    """If the newest version is the head, nothing is written."""
    head = tables.append(path, [rows(0, 2)], SCHEMA)
    assert tables.roll_back(path, head) == head
    with pytest.raises(NotFound):
        Table(path, head + 1)


def test_roll_back__to_nothing(path: Path) -> None:
    """A table that the head lacks is removed; a missing table is no error."""
    tables.roll_back(path, None)
    tables.append(path, [rows(0, 2)], SCHEMA)
    tables.roll_back(path, None)
    assert not path.exists()
    assert column(Table(path, tables.append(path, [rows(7, 1)], SCHEMA)), "n") == [7]


def vector_batch(values: list[list[float] | None]) -> pa.RecordBatch:
    """Return rows with or without vectors."""
    return pa.RecordBatch.from_arrays([pa.array(values, VECTORS.field(0).type)], schema=VECTORS)


def test_vectors__skip_rows_without_one(path: Path) -> None:
    """Vectors are one array in row order, with the positions of their rows over all fragments."""
    parts: list[list[list[float] | None]] = [[[1, 0, 0], None, [0, 1, 0]], [None, None], [[0, 0, 1]]]
    for part in parts:
        version = tables.append(path, [vector_batch(part)], VECTORS)
    positions, vectors = Table(path, version).vectors()
    assert positions.tolist() == [0, 2, 5]
    np.testing.assert_array_equal(vectors, np.eye(3, dtype=np.float32))
    assert vectors.dtype == np.float32
    assert positions.dtype == np.int64
    assert vectors.flags.c_contiguous


@pytest.mark.parametrize("values", [[], [None, None]])
def test_vectors__where_there_are_none(path: Path, values: list[list[float] | None]) -> None:
    """Without rows or vectors the array is empty but has its width."""
    positions, vectors = Table(path, tables.append(path, [vector_batch(values)], VECTORS)).vectors()
    assert positions.shape == (0,)
    assert vectors.shape == (0, 3)


@examples(15)
@given(st.lists(st.lists(st.booleans(), max_size=30), min_size=1, max_size=3))
def test_vectors__law(tmp_path_factory: pytest.TempPathFactory, parts: list[list[bool]]) -> None:
    """Each row with a vector is at its position with its own vector."""
    path = tmp_path_factory.mktemp("law") / "t.lance"
    flags = [flag for part in parts for flag in part]
    every = np.arange(len(flags) * 3, dtype=np.float32).reshape(-1, 3)
    start = 0
    for part in parts:
        values = [every[start + place].tolist() if flag else None for place, flag in enumerate(part)]
        version = tables.append(path, [vector_batch(values)], VECTORS)
        start += len(part)
    positions, vectors = Table(path, version).vectors()
    assert positions.tolist() == [place for place, flag in enumerate(flags) if flag]
    np.testing.assert_array_equal(vectors, every[positions])


def test_vectors__of_many_batches(path: Path) -> None:
    """Vectors of more rows than one batch are at their positions."""
    count = 20_000
    flat = np.arange(count * 3, dtype=np.float32)
    missing = np.arange(count) % 7 == 3
    array = pa.FixedSizeListArray.from_arrays(pa.array(flat), 3, mask=pa.array(missing))
    version = tables.append(path, [pa.RecordBatch.from_arrays([array], schema=VECTORS)], VECTORS)
    positions, vectors = Table(path, version).vectors()
    np.testing.assert_array_equal(positions, np.flatnonzero(~missing))
    np.testing.assert_array_equal(vectors, flat.reshape(-1, 3)[~missing])


@pytest.mark.parametrize("block_rows", [1, 3, 1000])
def test_stored_vectors__are_those_of_the_table(tmp_path: Path, block_rows: int, tuning: Tuning) -> None:
    """Blocks and single rows have the vectors of their positions, over batches, fragments and null rows."""
    tuning.table_batch_rows = 1
    tuning.stored_vector_rows = 1
    tuning.table_batch_bytes = 4 * 3 * 5
    values = [None if row % 7 == 3 else [float(row), 1.0, 0.0] for row in range(60)]
    for start, end in ((0, 11), (11, 40), (40, 60)):
        version = tables.append(tmp_path / "t", [vector_batch(values[start:end])], VECTORS)
    for places in ([*range(0, 60, 7)], [2], [20, 21, 22, 58], []):
        wanted = np.array(places, dtype=np.int64)
        stored = StoredVectors(Table(tmp_path / "t", version), wanted, block_bytes=12 * block_rows)
        assert (len(stored), stored.dimension) == (len(places), 3)
        parts = [(start, np.array(block)) for start, block in stored.blocks()]
        assert [start for start, _ in parts] == [*range(0, len(places), block_rows)]
        assert [row[0] for _, block in parts for row in block.tolist()] == places
        some = np.array([*range(len(places))][::-1] + [0] * bool(places), dtype=np.int64)
        assert stored.take(some)[:, 0].tolist() == [places[row] for row in some]


def test_stored_vectors__parts_read_no_row_after_theirs(
    tmp_path: Path, tuning: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has its rows, and the table is not read to its end for them."""
    tuning.table_batch_rows = 10
    version = tables.append(tmp_path / "t", [vector_batch([[float(row), 1.0, 0.0] for row in range(500)])], VECTORS)
    read: list[int] = []
    batches = Table.vector_batches

    def counted(table: Table, column: str, start: int) -> Iterator[pa.RecordBatch]:
        for batch in batches(table, column, start):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(Table, "vector_batches", counted)
    stored = StoredVectors(Table(tmp_path / "t", version), np.arange(0, 500, 2))
    part = stored.part(50, 60)
    assert [row[0] for _, block in part.blocks() for row in block.tolist()] == list(range(100, 120, 2))
    assert sum(read) <= 40


def test_vectors__from_a_row_on(tmp_path: Path) -> None:
    """Rows before the start are left out; a start at the end returns no rows."""
    version = tables.append(
        tmp_path / "t", [vector_batch([[1.0, 1.0, 0.0], None, [3.0, 1.0, 0.0], [4.0, 1.0, 0.0]])], VECTORS
    )
    table = Table(tmp_path / "t", version)
    for start, places in ((0, [0, 2, 3]), (1, [2, 3]), (3, [3]), (4, [])):
        positions, vectors = table.vectors(start=start)
        assert positions.tolist() == places
        assert vectors[:, 0].tolist() == [place + 1 for place in places]


def test_sync__waits_for_each_file_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synced files are skipped, so that a long history does not slow the next write."""
    synced: set[tuple[int, int]] = set()
    wait = os.fsync

    def state(folder: Path) -> set[tuple[int, int]]:
        return {(each.stat().st_ino, each.stat().st_mtime_ns) for each in (folder, *folder.rglob("*"))}

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.add((status.st_ino, status.st_mtime_ns))
        wait(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    tables.append(path, [rows(0, 3)], SCHEMA)
    tables.sync(path)
    before = state(path)
    assert synced == before
    tables.append(path, [rows(3, 3)], SCHEMA)
    synced.clear()
    tables.sync(path)
    assert synced >= state(path) - before
    kept = {each.stat().st_ino for each in path.rglob("*.lance")} - {number for number, _ in state(path) - before}
    assert len(kept) == 1
    assert not kept & {number for number, _ in synced}
