"""Computed columns of paths: what filters read of them, and their values."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from framedex.core.path_columns import PATH_COLUMNS, relation_with, stored
from framedex.search.conditions import explained
from framedex.storage.sql import Sql
from framedex.vql import Scope, compile_filter, file_name, folder, parse

PATHS = ["A/b/C.png", "top.png", "s3://Bucket/x/", "", None]


@pytest.mark.parametrize("op", ["is", "contains", "starts", "ends"])
@pytest.mark.parametrize("test", [file_name, folder])
def test_filters__read_computed_columns(test: Callable[..., Any], op: str) -> None:
    """No test of a file name or a folder takes paths apart in its own SQL, which the cache could not keep."""
    condition = compile_filter(parse(test(op, "x")), Scope(columns=frozenset({"path"})))
    assert condition.columns < set(PATH_COLUMNS)
    assert all(name in condition.text for name in condition.columns)
    assert "rtrim" not in condition.text
    assert stored(condition.columns) == {"path"}


def test_relation_with__has_the_parts_of_paths() -> None:
    """The relation has the stored columns and the computed ones that are read; missing paths have no parts."""
    relation = relation_with([*PATH_COLUMNS, "n"], "media")
    table = pa.table({"path": PATHS, "n": range(len(PATHS))})
    found = Sql().query(f"SELECT * FROM {relation}", (), {"media": table}).to_pydict()
    assert found == {
        "path": PATHS,
        "n": [0, 1, 2, 3, 4],
        "path__file": ["C.png", "top.png", "x", "", None],
        "path__file_lower": ["c.png", "top.png", "x", "", None],
        "path__file_stem": ["C", "top", "", "", None],
        "path__folder": ["A/b", "", "s3://Bucket", "", None],
        "path__folder_lower": ["a/b", "", "s3://bucket", "", None],
    }


def test_relation_with__nothing_computed_is_the_relation() -> None:
    """Statements about stored columns read the relation itself."""
    assert relation_with(["path", "n"], "media") == "media"


def test_explained__is_a_statement_that_runs() -> None:
    """A filter of a folder is explained by a statement over the stored columns, which finds the rows of the filter."""
    condition = compile_filter(parse(folder("starts", "A")), Scope(columns=frozenset({"path"})))
    *statement, value, columns = explained(condition).splitlines()
    assert (value, columns) == ("$1 = 'A/'", "columns read: path")
    table = pa.table({"path": PATHS, "_rowid": range(len(PATHS))})
    found = Sql().query("\n".join(statement), condition.params, {"media": table})
    assert found["_rowid"].to_pylist() == [0]
