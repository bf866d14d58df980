"""Files of tables: references by versions, and removal of unreferenced files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import NotFound
from framedex.storage import tables
from framedex.storage.table_files import (
    data_files,
    ends_with,
    files_of,
    files_of_head,
    old_versions,
    remove_leftovers,
    remove_versions,
    rows_key,
)
from framedex.storage.table_versions import Table
from tests.laws import examples

SCHEMA = pa.schema([pa.field("n", pa.int32()), pa.field("vector", pa.list_(pa.float32(), 16))])
EXTRA = pa.schema([pa.field("x", pa.float64())])


def rows(start: int, count: int) -> pa.RecordBatch:
    """Return numbered rows."""
    vectors = np.random.default_rng(start).normal(size=(count, 16)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16)
    return pa.RecordBatch.from_arrays([pa.array(range(start, start + count), pa.int32()), lists], schema=SCHEMA)


def extra(count: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Return a column of random numbers."""
    yield pa.RecordBatch.from_arrays([pa.array(np.random.default_rng(seed).normal(size=count))], schema=EXTRA)


def change(path: Path, version: int, kind: str, seed: int) -> int:
    """Change a table at its newest version; return the new version."""
    table = Table(path, version)
    match kind:
        case "append":
            return tables.append(path, [rows(seed, 50)], SCHEMA) if "x" not in table.schema.names else version
        case "column":
            return tables.put_columns(table, extra(table.count(), seed), EXTRA)
        case "delete":
            return tables.delete_rows(table, np.arange(table.count()) % 7 == seed % 7)
        case _:
            return tables.compact(table, without=["x"])


def content(path: Path, version: int) -> pa.Table:
    """Return all of a version."""
    table = Table(path, version)
    return table.scan(table.schema.names).read_all()


def present(path: Path) -> set[str]:
    """Return the files of a table."""
    return {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}


@examples(15)
@given(st.lists(st.sampled_from(["append", "column", "delete", "compact"]), min_size=1, max_size=8), st.data())
def test_remove_versions__law(tmp_path_factory: pytest.TempPathFactory, kinds: list[str], data: st.DataObject) -> None:
    """Retained versions and the newest one stay unchanged after any changes; files of other versions are removed."""
    path = tmp_path_factory.mktemp("law") / "t.lance"
    versions = [tables.append(path, [rows(0, 80)], SCHEMA)]
    for seed, kind in enumerate(kinds):
        versions.append(change(path, versions[-1], kind, seed))
    kept = set(data.draw(st.lists(st.sampled_from(versions))))
    stays = {*kept, versions[-1]}
    before = {version: content(path, version) for version in stays}
    gone = old_versions(path, kept)
    assert gone == sorted(set(gone))
    assert not stays & set(gone)
    needed = files_of(path, stays)
    remove_versions(path, gone)
    assert old_versions(path, kept) == []
    for version, table in before.items():
        assert content(path, version).equals(table)
    for version in set(versions) - stays:
        with pytest.raises(NotFound):
            Table(path, version)
    assert needed <= present(path)
    assert {file for file in present(path) - needed if file.endswith(".lance")} == set()
    remove_versions(path, gone)  # another process may do the same at this time


def test_remove_versions__leaves_a_writer_alone(tmp_path: Path) -> None:
    """Files that no version references yet stay while a writer may be active."""
    path = tmp_path / "t.lance"
    first = tables.append(path, [rows(0, 10)], SCHEMA)
    tables.append(path, [rows(10, 10)], SCHEMA)
    (path / "data" / "begun.lance").write_bytes(bytes(100))
    remove_versions(path, [first])
    assert (path / "data" / "begun.lance").exists()
    remove_leftovers(path)
    assert not (path / "data" / "begun.lance").exists()
    assert Table(path, 2).count() == 20


def test_remove_leftovers__keeps_all_versions(tmp_path: Path) -> None:
    """Removing leftovers keeps all versions."""
    path = tmp_path / "t.lance"
    versions = [tables.append(path, [rows(10 * number, 10)], SCHEMA) for number in range(3)]
    remove_leftovers(path)
    assert [Table(path, version).count() for version in versions] == [10, 20, 30]


def test_ends_with(tmp_path: Path) -> None:
    """A table ends with a version if its newest version references the same files, as after a rollback."""
    path = tmp_path / "t.lance"
    first = tables.append(path, [rows(0, 10)], SCHEMA)
    assert ends_with(path, first)
    second = tables.append(path, [rows(10, 10)], SCHEMA)
    assert (ends_with(path, first), ends_with(path, second)) == (False, True)
    tables.roll_back(path, first)
    assert (ends_with(path, first), ends_with(path, second)) == (True, False)
    tables.delete_rows(Table(path, 3), np.arange(10) < 3)
    assert not ends_with(path, first)


def test_rows_key__tells_rows_not_columns(tmp_path: Path) -> None:
    """The key depends on the rows only, whatever columns are added or dropped."""
    path = tmp_path / "t.lance"
    first = tables.append(path, [rows(0, 30)], SCHEMA)
    second = tables.put_columns(Table(path, first), extra(30, 1), EXTRA)
    third = tables.delete_rows(Table(path, second), np.arange(30) < 3)
    fourth = tables.put_columns(Table(path, third), extra(27, 2), EXTRA)
    keys = [rows_key(path, version) for version in (first, second, third, fourth)]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_rows_key__after_a_restore(tmp_path: Path) -> None:
    """Equal numbers of rows deleted from or appended to the same state at different times have different keys."""
    path = tmp_path / "t.lance"
    first = tables.append(path, [rows(0, 30)], SCHEMA)
    keys = []
    for number in range(2):
        start = tables.roll_back(path, first)
        assert start is not None
        keys.append(rows_key(path, tables.delete_rows(Table(path, start), np.arange(30) == number)))
        tables.roll_back(path, first)
        keys.append(rows_key(path, tables.append(path, [rows(100 * number, 10)], SCHEMA)))
    assert len(set(keys)) == 4


def test_data_files__what_columns_take(tmp_path: Path) -> None:
    """The bytes of columns are close to their content; files report deleted rows and replaced columns."""
    path = tmp_path / "t.lance"
    version = tables.append(path, [rows(0, 1000)], SCHEMA)
    (file,) = data_files(path, version)
    assert file.bytes_of["vector"] == pytest.approx(1000 * 16 * 4, rel=0.05)
    assert sum(file.bytes_of.values()) <= (path / file.path).stat().st_size
    assert (file.live, file.replaced) == (1.0, False)
    version = tables.put_columns(Table(path, version), extra(1000, 1), EXTRA)
    version = tables.delete_rows(Table(path, version), np.arange(1000) < 100)
    files = data_files(path, version)
    assert [sorted(each.bytes_of) for each in files] == [["n", "vector"], ["x"]]
    assert {each.live for each in files} == {0.9}
    version = tables.compact(Table(path, version))
    assert [each.live for each in data_files(path, version)] == [0.9, 0.9], "a tenth is not many"
    version = tables.delete_rows(Table(path, version), np.arange(900) < 200)
    version = tables.compact(Table(path, version))
    (file,) = data_files(path, version)
    assert (file.live, file.replaced, sorted(file.bytes_of)) == (1.0, False, ["n", "vector", "x"])
    version = tables.put_columns(Table(path, version), extra(700, 2), EXTRA)
    old, new = data_files(path, version)
    assert (old.replaced, sorted(old.bytes_of), new.replaced, sorted(new.bytes_of)) == (
        True, ["n", "vector"], False, ["x"],
    )  # fmt: skip


def test_compact__without_columns_that_are_rewritten_next(tmp_path: Path) -> None:
    """Columns that are rewritten next are not copied into merged files."""
    path = tmp_path / "t.lance"
    version = tables.put_columns(Table(path, tables.append(path, [rows(0, 100)], SCHEMA)), extra(100, 1), EXTRA)
    version = tables.delete_rows(Table(path, version), np.arange(100) < 50)
    version = tables.compact(Table(path, version), without=["x", "unknown"])
    (file,) = data_files(path, version)
    assert sorted(file.bytes_of) == ["n", "vector"]
    assert content(path, version)["n"].to_pylist() == list(range(50, 100))


def test_files_of_head(tmp_path: Path) -> None:
    """The head references its files, and those of the newest version if both are equal."""
    path = tmp_path / "t.lance"
    first = tables.append(path, [rows(0, 10)], SCHEMA)
    tables.append(path, [rows(10, 10)], SCHEMA)
    assert files_of_head(path, first) < present(path)
    tables.roll_back(path, first)
    remove_versions(path, old_versions(path, [first]))
    assert files_of_head(path, first) == present(path)
    assert files_of(path, []) == set()
