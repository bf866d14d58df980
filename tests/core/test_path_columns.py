"""Computed columns of paths: what filters read of them, and their values."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.core.path_columns import PATH_COLUMNS, relation_with, stored
from framedex.search.conditions import explained
from framedex.storage.sql import Sql
from framedex.vql import Scope, compile_filter, file_name, folder, parse
from tests.laws import examples

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


_CHARACTERS = st.sampled_from([*"/\\.:aB~ \0", "é", "\u0301", "İ", "ß", "日", "🖼"]) | st.characters(codec="utf-8")


@pytest.mark.slow
@examples(60)
@given(paths=st.lists(st.text(_CHARACTERS, max_size=12), min_size=1, max_size=40))
@example(paths=["/", "//", "a//b", "/a", "a/", "a///", "a\\b/c\\d", "s3://", "a/.b", "a/b.", "a/b.tar.gz"])
def test_relation_with__takes_paths_apart_at_slashes(paths: list[str]) -> None:
    """The file is the text after the last slash, without those at the end; the folder is the text before that slash."""
    columns = ["path__file", "path__file_lower", "path__folder", "path__folder_lower"]
    parts = "string_split(rtrim(path, '/'), '/') AS parts, array_to_string(parts[:-2], '/') AS folder"
    text = f"SELECT {', '.join(columns)}, lower(parts[-1]) AS file, lower(folder) AS folder FROM "
    table = pa.table({"path": paths})
    found = Sql().query(f"{text}(SELECT *, {parts} FROM {relation_with(columns, 'media')})", (), {"media": table})
    taken = [path.rstrip("/").rpartition("/") for path in paths]
    assert found["path__file"].to_pylist() == [name for _, _, name in taken]
    assert found["path__folder"].to_pylist() == [before for before, _, _ in taken]
    assert found["path__file_lower"].equals(found["file"])
    assert found["path__folder_lower"].equals(found["folder"])


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
