"""The filter engine reads the given relations and nothing else."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from framedex.storage.sql import Sql

NUMBERS = pa.table({"n": list(range(10)), "name": [str(n) for n in range(10)]})


def test_query__relations_and_parameters() -> None:
    """Tables and readers are found by name, and parameters replace the placeholders."""
    sql = Sql()
    found = sql.query("SELECT n FROM media WHERE n > $1 AND name <> $2", [6, "8"], {"media": NUMBERS})
    assert found["n"].to_pylist() == [7, 9]
    reader = NUMBERS.to_reader(max_chunksize=3)
    assert sql.query("SELECT count(*) AS c FROM media", [], {"media": reader})["c"].to_pylist() == [10]
    joined = sql.query("SELECT a.n FROM a JOIN b USING (n) ORDER BY n", [], {"a": NUMBERS, "b": NUMBERS.slice(8)})
    assert joined["n"].to_pylist() == [8, 9]


@pytest.mark.slow
def test_query__keeps_row_order() -> None:
    """Without ORDER BY, rows are in the order of the relation."""
    many = pa.table({"n": range(300_000)})
    found = Sql().query("SELECT n FROM media WHERE n % 2 = 0", [], {"media": many})
    assert found["n"].to_numpy().tolist() == list(range(0, 300_000, 2))


def test_query__relations_do_not_outlive_it() -> None:
    """A relation exists for one statement only, also if that fails."""
    sql = Sql()
    sql.query("SELECT 1", [], {"media": NUMBERS})
    with pytest.raises(duckdb.Error):
        sql.query("SELECT nonsense FROM media", [], {"media": NUMBERS})
    with pytest.raises(duckdb.Error, match="media"):
        sql.query("SELECT * FROM media", [], {})


def test_query__python_variables_are_no_relations() -> None:
    """The engine does not read the caller's variables."""
    secret = NUMBERS
    assert secret is not None
    with pytest.raises(duckdb.Error, match="secret"):
        Sql().query("SELECT * FROM secret", [], {})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{path}')",
        "SELECT * FROM read_text('{path}')",
        "SELECT * FROM '{path}'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/new.csv'",
        "ATTACH '{folder}/new.db'",
        "INSTALL httpfs",
        "LOAD '{path}'",
        "SET enable_external_access = true",
        "SELECT * FROM read_csv('https://localhost/x.csv')",
    ],
)
def test_query__has_no_access_to_files(tmp_path: Path, text: str) -> None:
    """No statement can read, list or write files, access the network, or enable that."""
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(duckdb.Error):
        Sql().query(text.format(path=path, folder=tmp_path), [], {})
    assert [each.name for each in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("value", ["'; DROP TABLE media; --", "\0", "🐈", 2**62, 0.1, True, None, ["a", "b'"], b"\xff"])
def test_query__parameters_come_back_unchanged(value: Any) -> None:
    """Parameters are returned unchanged, whatever they contain."""
    assert Sql().query("SELECT $1 AS x", [value], {})["x"].to_pylist() == [value]


@pytest.mark.slow
def test_query__threads_do_not_disturb_each_other() -> None:
    """The same names mean each thread's own relations."""
    sql, found = Sql(), dict[int, list[int]]()

    def work(number: int) -> None:
        own = pa.table({"n": [number] * 1000})
        for _ in range(10):
            found[number] = sql.query("SELECT DISTINCT n FROM media", [], {"media": own})["n"].to_pylist()
            assert found[number] == [number]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number] for number in range(4)}


def test_query__of_two_objects_that_name_their_relations_alike() -> None:
    """All objects of a process share an engine; the relations of one are not those of another."""
    first, second = Sql(), Sql()
    inner = pa.table({"a": [1]})

    def rows() -> Iterator[pa.RecordBatch]:
        assert second.query("SELECT a FROM t", [], {"t": inner}).column(0).to_pylist() == [1]
        yield pa.record_batch({"a": [2, 3]})

    outer = pa.RecordBatchReader.from_batches(inner.schema, rows())
    assert first.query("SELECT a FROM t", [], {"t": outer}).column(0).to_pylist() == [2, 3]
    with pytest.raises(duckdb.CatalogException, match="t does not exist"):
        second.query("SELECT a FROM t", [], {})
