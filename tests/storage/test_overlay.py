"""Edited values beside a table's files: versions with them read as if the columns had been written again."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import WorkspaceError
from framedex.storage import table_files, tables
from framedex.storage.column_cache import ColumnCache
from framedex.storage.column_keys import columns_key
from framedex.storage.overlay import FOLDER
from framedex.storage.sql import Sql
from framedex.storage.table_checks import ColumnReader, unreferenced_files
from framedex.storage.table_versions import ROW_ID, Table
from tests.laws import examples
from tests.tuning import Tuning

WORDS = pa.list_(pa.string())
SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("words", WORDS), pa.field("x", pa.float32())])
ROWS = 12
Row = dict[str, Any]


def new_rows(start: int, count: int) -> list[Row]:
    return [{"id": f"#{n}", "words": [f"w{n}"] if n % 3 else None, "x": float(n)} for n in range(start, start + count)]


def append(path: Path, rows: list[Row]) -> int:
    return tables.append(path, [pa.RecordBatch.from_pylist(rows, schema=SCHEMA)], SCHEMA)


def read(table: Table) -> list[Row]:
    rows: list[Row] = table.scan(SCHEMA.names).read_all().to_pylist()
    return rows


def ids_of(table: Table) -> Any:
    return table.scan([], row_ids=True).read_all()[ROW_ID].to_numpy()


def put(table: Table, rows: list[int], **values: list[Any]) -> int:
    """Edit some rows; a list of values for each column."""
    order = np.argsort(rows)
    ids = ids_of(table)[np.array(rows)[order]]
    changes = {
        name: (ids, pa.array([each[place] for place in order.tolist()], SCHEMA.field(name).type))
        for name, each in values.items()
    }
    return tables.put_values(table, changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of a table with two files of rows."""
    path = tmp_path / "media.lance"
    append(path, new_rows(0, ROWS // 2))
    append(path, new_rows(ROWS // 2, ROWS // 2))
    return path


def newest(path: Path) -> Table:
    return Table(path, tables.roll_back(path, 2) or 0)


steps = st.lists(
    st.tuples(
        st.sampled_from(["words", "x", "both", "both", "delete", "fold", "write", "append", "restore"]),
        st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True),
    ),
    max_size=25,
)


@pytest.mark.slow
@examples(60)
@given(steps)
def test_overlay__reads_as_written_columns(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    """Whatever is edited, deleted, folded, written, appended and restored, each version has the rows that it should."""
    path = tmp_path_factory.mktemp("overlay") / "media.lance"
    rows = new_rows(0, ROWS)
    version = append(path, rows)
    states: dict[int, list[Row]] = {version: rows}
    cache = ColumnCache(Sql(), 2**24)
    for number, (kind, chosen) in enumerate(steps):
        table, rows = Table(path, version), [dict(row) for row in rows]
        places = sorted({each % len(rows) for each in chosen})
        if kind in ("words", "x", "both"):
            values: dict[str, list[Any]] = {}
            if kind != "x":
                values["words"] = [[f"n{number}"] if place % 4 else None for place in places]
            if kind != "words":
                values["x"] = [float(number + place) for place in places]
            version = put(table, places, **values)
            for name, each in values.items():
                for place, value in zip(places, each, strict=True):
                    rows[place][name] = value
        elif kind == "delete" and len(places) < len(rows):
            gone = np.isin(np.arange(len(rows)), places)
            version = tables.delete_rows(table, gone)
            rows = [row for row, is_gone in zip(rows, gone, strict=True) if not is_gone]
        elif kind == "fold":
            version = tables.fold_edits(table)
            assert not Table(path, version).overlay.layers
        elif kind == "write":
            rows = [{**row, "x": -float(number)} for row in rows]
            schema = pa.schema([SCHEMA.field("x")])
            batch = pa.RecordBatch.from_pylist([{"x": row["x"]} for row in rows], schema=schema)
            version = tables.put_columns(table, iter([batch]), schema)
            assert "x" not in Table(path, version).overlay.columns
        elif kind == "append":
            rows += new_rows(100 * number, 3)
            version = append(path, new_rows(100 * number, 3))
        elif kind == "restore":
            before = sorted(states)[chosen[0] % len(states)]
            rows = [dict(row) for row in states[before]]
            version = tables.roll_back(path, before) or 0
        states[version] = rows
        table = Table(path, version)
        assert len(table.overlay.layers) <= 5
        cached = cache.read(table, SCHEMA.names)
        assert cached is not None
        assert cached.select(SCHEMA.names).to_pylist() == rows
        some = [len(rows) - 1, 0]
        assert table.take(ids_of(table)[some].tolist(), ["x", "id", "words"]).to_pylist() == [
            {name: rows[place][name] for name in ("x", "id", "words")} for place in some
        ]
    for state, expected in states.items():
        assert read(Table(path, state)) == expected


@pytest.mark.slow
def test_put_values__of_many_edits_keeps_few_layers(path: Path) -> None:
    """A thousand edits of one row each are a handful of files, and the last value counts."""
    table = newest(path)
    for number in range(100):
        table = Table(path, put(table, [number % 7], x=[float(number)]))
    assert len(table.overlay.layers) <= 8
    assert [row["x"] for row in read(table)][:7] == [98.0, 99.0, 93.0, 94.0, 95.0, 96.0, 97.0]


@pytest.mark.slow
def test_put_values__does_not_write_many_values_again(tmp_path: Path) -> None:
    """A layer of very many values stays beside later ones until it is folded; smaller ones are merged as ever."""
    many = 2**17 + 1
    path = tmp_path / "media.lance"
    table = Table(path, append(path, new_rows(0, many)))
    table = Table(path, put(table, list(range(many)), x=[-1.0] * many))
    (large,) = table.overlay.layers
    table = Table(path, put(table, list(range(many)), x=[-2.0] * many))
    for number in (1, 3):
        table = Table(path, put(table, [number], x=[float(number)]))
    kept, _, small = table.overlay.layers
    assert (kept, small.rows) == (large, 2)
    assert [row["x"] for row in read(table)[:5]] == [-2.0, 1.0, -2.0, 3.0, -2.0]


def test_fold__leaves_a_plain_table(path: Path) -> None:
    """Another reader of the format sees after folding what we read before."""
    import lance

    table = newest(path)
    table = Table(path, put(table, [1, 7], words=[["a", "b"], None], x=[0.5, None]))
    expected = read(table)
    version = tables.fold_edits(table)
    assert lance.dataset(str(path), version=version).to_table(columns=SCHEMA.names).to_pylist() == expected
    assert tables.fold_edits(Table(path, version)) == version


def test_compact__writes_edits_first(path: Path, tuning: Tuning) -> None:
    """Compaction gives rows other ids; the edited values are those of the same rows afterwards."""
    table = newest(path)
    table = Table(path, put(table, [0, 8], x=[10.0, 11.0]))
    tuning.table_files = 1
    version = tables.compact(table, without=["words"])
    assert Table(path, version).scan(["id", "x"]).read_all().to_pylist() == [
        {"id": row["id"], "x": {0: 10.0, 8: 11.0}.get(place, row["x"])} for place, row in enumerate(read(newest(path)))
    ]


def test_columns_key__differs_by_edited_column(path: Path) -> None:
    """An edit changes the key of its column alone."""
    table = newest(path)
    edited = Table(path, put(table, [1], x=[3.0]))
    assert columns_key(table, ["words"]) == columns_key(edited, ["words"])
    assert columns_key(table, ["x"]) != columns_key(edited, ["x"])
    assert columns_key(table, ["x"]) == columns_key(edited.unedited, ["x"])


def test_link__takes_edits_along(path: Path) -> None:
    """A copy of a version has its edits, whatever happens to the table that it was copied from."""
    table = newest(path)
    table = Table(path, put(table, [1, 2], x=[3.0, 4.0]))
    expected = read(table)
    target = path.with_name("copy.lance")
    table_files.link(path, table.version, target)
    copied = Table(target, table.version)
    put(copied, [0], x=[9.0])
    put(table, [0], x=[8.0])
    assert read(Table(target, table.version)) == read(Table(path, table.version)) == expected


def test_remove_versions__removes_their_edits_alone(path: Path) -> None:
    """A file of edits goes with the last version that lists it; those of versions that stay can be read."""
    tables_of = [newest(path)]
    for number in range(6):
        edited = list(range(6 - number))
        tables_of.append(Table(path, put(tables_of[-1], edited, x=[float(number)] * len(edited))))
    expected = {each.version: read(each) for each in tables_of[-2:]}
    files = {file.name for file in (path / FOLDER).iterdir()}
    old = table_files.old_versions(path, expected)
    table_files.remove_versions(path, old)
    kept = {file.name for file in (path / FOLDER).iterdir()}
    assert kept < files
    assert kept == {layer.file for each in tables_of[-2:] for layer in each.overlay.layers}
    assert {version: read(Table(path, version)) for version in expected} == expected


def test_remove_leftovers__of_a_killed_edit(path: Path) -> None:
    """A file of edits that no version lists is found and removed; those that one lists stay."""
    table = Table(path, put(newest(path), [1], x=[3.0]))
    stray = path / FOLDER / "stray.arrow"
    stray.write_bytes(b"half")
    assert unreferenced_files(path) == [stray]
    table_files.remove_leftovers(path)
    assert not stray.exists()
    assert read(table)[1]["x"] == 3.0


@pytest.mark.parametrize("damage", ["missing", "changed", "truncated"])
def test_overlay__of_a_damaged_file(path: Path, damage: str) -> None:
    """A damaged file of edits is named, by reading and by checking; other columns can be read."""
    table = Table(path, put(newest(path), [1, 4], x=[3.0, 4.0]))
    copied = path.with_name("other.lance")  # what was written is in memory; a copy is read
    table_files.link(path, table.version, copied)
    (layer,) = table.overlay.layers
    file = copied / FOLDER / layer.file
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(content[:-9] + b"x" * 9 if damage == "changed" else content[:40])
    damaged = Table(copied, table.version)
    with pytest.raises(WorkspaceError, match=layer.file):
        read(damaged)
    assert damaged.scan(["id"]).read_all().num_rows == ROWS
    faults = ColumnReader(copied, lambda: None).faults(table.version)
    assert list(faults) == ["x"]
    assert layer.file in faults["x"]
    assert ColumnReader(path, lambda: None).faults(table.version) == {}
