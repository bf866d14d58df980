"""Columns are read once while their files stay the same, within a memory limit."""

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from framedex.errors import NotFound
from framedex.storage import tables
from framedex.storage.column_cache import ColumnCache
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.sql import Sql
from framedex.storage.table_versions import ROW_ID, Table
from framedex.vql import Scope, compile_filter, parse
from framedex.vql import file_name as file_name_is
from framedex.vql import folder as folder_is
from tests.laws import rest_slow

ROWS = 20_000
MOST = 2**24


def write(folder: Path, rows: int = ROWS) -> Table:
    """Return a table of numbers, paths and lists, in several files."""
    path, version = folder / "media.lance", 0
    for start in range(0, rows, 7000):
        numbers = range(start, min(start + 7000, rows))
        batch = pa.RecordBatch.from_pydict(
            {
                "n": pa.array(numbers, pa.int32()),
                "path": pa.array([f"Set {number % 5}/İmage {number}.JPG" for number in numbers]),
                "labels": pa.array([["a"] if number % 3 else None for number in numbers], pa.list_(pa.string())),
            }
        )
        version = tables.append(path, [batch], batch.schema)
    return Table(path, version)


def cache(most_bytes: int = MOST) -> ColumnCache:
    return ColumnCache(Sql(), most_bytes)


def with_column(table: Table, name: str, values: pa.Array) -> Table:
    """Return the table with a column of other content."""
    batch = pa.RecordBatch.from_arrays([values], [name])
    return Table(table.path, tables.put_columns(table, iter([batch]), batch.schema))


def media_of(table: Table, columns: ColumnCache | None) -> Media:
    """Return media of a table, with a generation that the tests do not use."""
    return Media("d", None, table, Sql(), (), columns=columns)  # type: ignore[arg-type]


def reads(table: Table, columns: ColumnCache, names: set[str]) -> bool:
    """Return whether all given columns are cached."""
    return columns.read(table, names, load=False) is not None


def test_read__is_what_the_table_has(tmp_path: Path) -> None:
    """Columns are complete and in row order, with the ids of the rows."""
    table = write(tmp_path)
    found = cache().read(table, {"n", "labels", ROW_ID})
    stored = table.scan(["labels", "n"], row_ids=True).read_all()
    assert found is not None
    assert found.select(stored.schema.names).equals(stored)


def test_read__of_an_empty_table(tmp_path: Path) -> None:
    """A table without rows has columns without values."""
    batch = pa.RecordBatch.from_pydict({"n": pa.array([], pa.int32())})
    table = Table(tmp_path / "t.lance", tables.append(tmp_path / "t.lance", [batch], batch.schema))
    found = cache().read(table, {"n", ROW_ID})
    assert found is not None
    assert found.schema == pa.schema([("_rowid", pa.uint64()), ("n", pa.int32())])
    assert len(found) == 0


def test_read__an_edit_of_one_column_keeps_the_others(tmp_path: Path) -> None:
    """Only the edited column is read again; the older version keeps its values."""
    columns, table = cache(), write(tmp_path)
    columns.read(table, {"n", "labels", ROW_ID})
    edited = with_column(table, "n", pa.array(np.arange(ROWS, dtype=np.int32)[::-1]))
    assert reads(edited, columns, {"labels", ROW_ID})
    assert not reads(edited, columns, {"n"})
    newer, older = columns.read(edited, {"n"}), columns.read(table, {"n"})
    assert newer is not None
    assert older is not None
    assert newer["n"][0].as_py() == ROWS - 1
    assert older["n"][0].as_py() == 0


@pytest.mark.slow
@pytest.mark.parametrize("change", ["delete", "append"])
def test_read__other_rows_are_other_columns(tmp_path: Path, change: str) -> None:
    """Deleted and added rows change every column."""
    columns, table = cache(), write(tmp_path)
    columns.read(table, {"n", ROW_ID})
    if change == "delete":
        changed = Table(table.path, tables.delete_rows(table, np.arange(ROWS) < 10))
    else:
        changed = write(tmp_path, 100)
    found = columns.read(changed, {"n", ROW_ID})
    stored = changed.scan(["n"], row_ids=True).read_all()
    assert found is not None
    assert found.select(["n", ROW_ID]).equals(stored)


def test_read__memory_is_bounded(tmp_path: Path) -> None:
    """The least recently used column is removed first, and a column that needs most of the memory is never cached."""
    table = write(tmp_path)
    size = 4 * ROWS
    for place in range(8):
        table = with_column(table, f"c{place}", pa.array(np.full(ROWS, place, dtype=np.int32)))
    columns = cache(5 * size)
    for place in range(8):
        assert columns.read(table, {f"c{place}"}) is not None
        assert columns.nbytes <= 5 * size
    assert not reads(table, columns, {"c0"})
    assert reads(table, columns, {"c7"})
    assert columns.read(table, {"path"}) is None
    assert columns.read(table, {"path__file_lower"}) is None
    assert cache(0).read(table, {"n"}) is None
    assert not cache(0).is_on


def test_read__threads_wait_for_one_that_reads(tmp_path: Path) -> None:
    """Threads that request the same column at once get the same array."""
    columns, table, found = cache(), write(tmp_path), list[pa.Table]()
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        held = columns.read(table, {"path__folder", "n", ROW_ID})
        assert held is not None
        found.append(held)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({held["path__folder"].chunk(0).buffers()[1].address for held in found}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("load", [True, False])
@pytest.mark.parametrize("known", [(), ("n",), ("n", "path", "labels")])
def test_take__is_what_the_table_takes(tmp_path: Path, known: tuple[str, ...], load: bool) -> None:
    """Rows come in the given order with the table's types, whichever columns are cached."""
    columns, table = cache(), write(tmp_path)
    ids = table.scan([], row_ids=True).read_all()[ROW_ID].to_numpy()
    wanted = ids[[19_999, 0, 7000, 7000, 6999]].tolist()
    columns.read(table, set(known))
    found = columns.take(table, wanted, ["labels", "n", "path"], load=load)
    assert found.equals(table.take(wanted, ["labels", "n", "path"]))
    assert columns.take(table, [], ["n"], load=load).schema == table.take([], ["n"]).schema


def test_take__of_ids_that_are_not_there(tmp_path: Path) -> None:
    """For the id of a deleted row, the result is that of the table."""
    columns, table = cache(), write(tmp_path)
    gone = int(table.scan([], row_ids=True).read_all()[ROW_ID][0].as_py())
    left = Table(table.path, tables.delete_rows(table, np.arange(ROWS) == 0))
    columns.read(left, {"n", ROW_ID})
    assert columns.take(left, [gone], ["n"]).equals(left.take([gone], ["n"]))


@pytest.mark.slow
def test_mask__is_evaluated_once_per_state_of_its_columns(tmp_path: Path) -> None:
    """A mask is valid until one of its columns, or the rows, change."""
    columns, table, asked = cache(), write(tmp_path), list[int]()

    def answer() -> pa.BooleanArray:
        asked.append(1)
        return pa.array([True] * ROWS)

    for _ in range(2):
        columns.mask(table, {"n"}, "question", answer)
    assert len(asked) == 1
    other = with_column(table, "labels", pa.array(["x"] * ROWS))
    columns.mask(other, {"n"}, "question", answer)
    assert len(asked) == 1
    columns.mask(table, {"n"}, "another", answer)
    columns.mask(with_column(other, "n", pa.array([1] * ROWS)), {"n"}, "question", answer)
    assert len(asked) == 3


def test_open__is_the_same_table(tmp_path: Path) -> None:
    """A version is opened once; another version is another table, and a missing one raises an error."""
    columns, table = cache(), write(tmp_path)
    first = columns.open(table.path, table.version)
    assert columns.open(table.path, table.version) is first
    assert columns.open(table.path, 1).count() == 7000
    with pytest.raises(NotFound):
        columns.open(table.path, 99)


@pytest.mark.slow
@pytest.mark.parametrize("most_bytes", rest_slow([2000, 0, 400_000, MOST], 1))
def test_media__says_the_same_whatever_is_held(tmp_path: Path, most_bytes: int) -> None:
    """Counts, rows and statements equal those of a streamed table, whatever is cached."""
    table = write(tmp_path)
    plain, media = media_of(table, None), media_of(table, cache(most_bytes))
    conditions = [
        Condition("(n >= $1) IS TRUE", (15_000,), frozenset({"n"})),
        Condition("(n >= $1) IS TRUE", (100,), frozenset({"n"})),
        Condition("FALSE"),
        Condition(),
        compile_filter(parse(file_name_is("contains", "image 12")), Scope(columns=frozenset({"path"}))),
        compile_filter(parse(folder_is("starts", "set 3")), Scope(columns=frozenset({"path"}))),
        compile_filter(parse(folder_is("ends", "SET 3")), Scope(columns=frozenset({"path"}))),
        compile_filter(parse(folder_is("is", "Set 3")), Scope(columns=frozenset({"path"}))),
    ]
    text = "SELECT sum(n) AS n, max(path) AS path FROM chosen"
    for condition in conditions * 2:
        assert media.count(condition) == plain.count(condition)
        assert media.row_ids(condition).tolist() == plain.row_ids(condition).tolist()
        assert media.query(text, condition, ["n", "path"]).equals(plain.query(text, condition, ["n", "path"]))
        blocks = [[b.to_pydict() for b in each.blocks(condition, ["path", "n"])] for each in (media, plain)]
        assert blocks[0] == blocks[1]
