"""Fragments: rows in files beside a table, which become a version together, in their order."""

from pathlib import Path

import pyarrow as pa
import pytest

from framedex.errors import NotFound
from framedex.storage import tables
from framedex.storage.fragments import check_table, write_fragment
from framedex.storage.table_checks import unreferenced_files
from framedex.storage.table_files import remove_leftovers, remove_versions
from framedex.storage.table_versions import Table
from tests.storage.test_tables import SCHEMA, column, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a table, with characters that mean something in addresses."""
    return tmp_path / "data sets#?%41" / "media.lance"


def test_fragments__become_a_version_together(path: Path) -> None:
    """Their rows are in the order in which they are added, whichever was written first; no row is seen before."""
    begun = tables.ensure_table(path, SCHEMA)
    assert column(Table(path, begun), "n") == []
    assert tables.ensure_table(path, SCHEMA) == begun  # once it is there, nothing is written
    later, earlier = write_fragment(path, begun, rows(3, 2)), write_fragment(path, begun, rows(0, 3))
    assert (later.rows, earlier.rows) == (2, 3)
    assert Table(path, begun).count() == 0
    version = tables.append_fragments(path, [earlier, later])
    assert version == begun + 1
    assert column(Table(path, version), "n") == list(range(5))
    assert column(Table(path, version), "name") == [f"#{number}" for number in range(5)]
    assert unreferenced_files(path) == []


def test_fragments__of_an_earlier_version(path: Path) -> None:
    """They can be added after other writes, also if the version beside which they were written is gone."""
    begun = tables.append(path, [rows(0, 1)], SCHEMA)
    early = write_fragment(path, begun, rows(2, 1))
    tables.append(path, [rows(1, 1)], SCHEMA)
    remove_versions(path, [begun])  # a file without a version stays
    late = write_fragment(path, begun, rows(3, 1))
    version = tables.append_fragments(path, [early, late])
    assert column(Table(path, version), "n") == [0, 1, 2, 3]


def test_fragments__without_some_columns(path: Path) -> None:
    """Columns that they lack are null in their rows; columns that the table lacks are added first."""
    wide = pa.schema([*SCHEMA, pa.field("x", pa.float32())])
    begun = tables.append(path, [rows(0, 1)], SCHEMA)
    completed = tables.ensure_table(path, wide)
    assert completed > begun
    version = tables.append_fragments(path, [write_fragment(path, completed, rows(1, 1))])
    assert column(Table(path, version), "x") == [None, None]
    full = pa.RecordBatch.from_pydict({"n": [2], "name": [None], "x": [0.5]}, schema=wide)
    version = tables.append_fragments(path, [write_fragment(path, completed, full)])
    assert column(Table(path, version), "x") == [None, None, 0.5]


def test_fragments__that_are_not_added(path: Path) -> None:
    """Their files have no version: a check finds them, and a clean-up removes them; those of versions stay."""
    version = tables.append(path, [rows(0, 2)], SCHEMA)
    kept, lost = write_fragment(path, version, rows(2, 1)), write_fragment(path, version, rows(9, 1))
    version = tables.append_fragments(path, [kept])
    assert unreferenced_files(path) == [path / lost.file]
    remove_leftovers(path)
    assert unreferenced_files(path) == []
    assert (kept.is_in(path), lost.is_in(path)) == (True, False)
    assert column(Table(path, version), "n") == [0, 1, 2]


def test_file__that_differs(path: Path) -> None:
    """A fragment is in a folder if a file with its name and size is."""
    fragment = write_fragment(path, tables.ensure_table(path, SCHEMA), rows(0, 5))
    assert fragment.is_in(path)
    assert not fragment.is_in(path.parent)
    (path / fragment.file).write_bytes(b"part of it")
    assert not fragment.is_in(path)


def test_table__that_is_missing_or_older(path: Path) -> None:
    """Nothing is written where the table is not: on a machine that does not share the folder."""
    with pytest.raises(NotFound, match=r"there is no table at .*media\.lance"):
        write_fragment(path, 1, rows(0, 1))
    assert not path.exists()
    version = tables.ensure_table(path, SCHEMA)
    check_table(path, version)
    with pytest.raises(NotFound, match=rf"has versions up to {version} there, not {version + 1}"):
        check_table(path, version + 1)
    with pytest.raises(NotFound, match="has versions up to"):
        write_fragment(path, version + 1, rows(0, 1))
    assert unreferenced_files(path) == []
