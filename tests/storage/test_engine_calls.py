"""Children of a fork call Lance in a process of their own, with the results and errors of a call in this process."""

import os
from pathlib import Path

import pytest

from tests.pauses import wait_until
from tests.processes import is_running, run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")

START = """
    import os, sys, warnings
    from pathlib import Path
    import numpy as np
    import pyarrow as pa
    from framedex import NotFound, WorkspaceError
    from framedex.storage import engine_calls, tables
    from framedex.storage.column_keys import columns_key
    from framedex.storage.table_checks import opening_fault
    from framedex.storage.table_files import files_of, old_versions
    from framedex.storage.stored_vectors import StoredVectors
    from framedex.storage.table_versions import Table
    from framedex.storage.vector_files import files_with
    from tests.processes import in_child

    warnings.simplefilter("ignore")
    path = Path(sys.argv[1])
    schema = pa.schema({"x": pa.int64(), "embedding": pa.list_(pa.float32(), 2)})

    def batches(first, count=3):
        for start in range(first, first + 2 * count, 2):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array([start, 0, start + 1, 0], pa.float32()), 2)
            yield pa.record_batch([pa.array([start, start + 1]), vectors], schema=schema)

    def helper_id():
        return engine_calls._CALLS.helper()._process.pid

    table = Table(path, tables.append(path, batches(0), schema))
"""


@pytest.mark.slow
def test_calls__in_a_child(tmp_path: Path) -> None:
    """All that is read in the child is what the parent reads; the parent reads what the child wrote."""
    code = """
    def reads(table):
        ids = table.scan([], row_ids=True).read_all()["_rowid"].to_pylist()
        blocks = [(first, block.tolist()) for first, block in StoredVectors(table, np.arange(6)).blocks()]
        return [
            table.count(), table.schema, table.scan(["x"]).read_all()["x"].to_pylist(), blocks,
            table.take(ids[4:1:-1], ["x"]), [each.tolist() for each in table.vectors()], columns_key(table, {"x"}),
            files_with(table, "embedding"), StoredVectors(table, np.arange(6)).take(np.array([5, 0])).tolist(),
            files_of(path, [1]),
        ]

    def work():
        assert engine_calls._CALLS.is_inherited
        assert reads(table) == before
        assert reads(Table(path, 1)) == before
        version = tables.append(path, batches(6), schema)
        added = Table(path, version)
        doubled = pa.schema({"y": pa.int64()})
        values = (pa.record_batch([pa.array([2 * x for x in each["x"].to_pylist()])], schema=doubled)
                  for each in added.scan(["x"]))  # is read while the columns are written
        version = tables.put_columns(added, values, doubled)
        tables.delete_rows(Table(path, version), np.arange(12) < 2)

    before = reads(table)
    in_child(work)
    assert reads(table) == before
    assert not engine_calls._CALLS.is_inherited
    last = Table(path, max(old_versions(path, [])) + 1)
    print(last.scan(["x", "y"]).read_all().to_pydict())
    """
    expected = {"x": list(range(2, 12)), "y": list(range(4, 24, 2))}
    assert run(START + code, tmp_path / "rows.lance").strip() == str(expected)


@pytest.mark.slow
def test_errors__in_a_child(tmp_path: Path) -> None:
    """Errors of a call, and of iterators that it takes, have their types and messages; a helper that died is named."""
    code = """
    def fails(error, text, call):
        try:
            call()
        except error as raised:
            assert text in str(raised), raised
            return raised
        raise AssertionError("it did not fail")

    other = pa.schema({"z": pa.int64()})

    def failing():
        yield pa.record_batch([pa.array([1, 2])], schema=other)
        raise KeyError("mine")

    def work():
        fails(NotFound, "has no version 7", lambda: Table(path, 7))
        fails(KeyError, "mine", lambda: tables.put_columns(table, failing(), other))
        fails(WorkspaceError, "start processes by spawn instead", lambda: opening_fault(path, 1))
        reader = table.scan(["x"])
        assert next(reader)["x"].to_pylist()[:2] == [0, 1]
        helper = helper_id()
        os.kill(helper, 9)
        assert str(helper) in str(fails(WorkspaceError, "has ended", table.count))
        assert table.count() == 6
        assert helper_id() != helper
        sys.executable = None
        engine_calls._CALLS.renew()
        fails(WorkspaceError, "start processes by spawn instead", table.count)

    in_child(work)
    assert Table(path, 1).count() == 6
    """
    run(START + code, tmp_path / "rows.lance")


@pytest.mark.slow
def test_helpers__end(tmp_path: Path) -> None:
    """Each child has a helper of its own, also the child of a child; none outlives the process that uses it."""
    code = """
    def grandchild():
        assert table.count() == 6
        print(helper_id(), flush=True)

    def work():
        assert table.count() == 6
        mine = helper_id()
        print(mine, flush=True)
        in_child(grandchild)
        assert (table.count(), helper_id()) == (6, mine)

    in_child(work)
    """
    helpers = [int(line) for line in run(START + code, tmp_path / "rows.lance").split()]
    assert len({*helpers}) == 2
    wait_until(lambda: not any(map(is_running, helpers)))
