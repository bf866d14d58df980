"""Keys of columns change with their content, and with nothing else."""

from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pyarrow as pa

from framedex.storage import tables
from framedex.storage.column_keys import columns_key
from framedex.storage.table_versions import Table

SCHEMA = pa.schema([pa.field("n", pa.int32()), pa.field("labels", pa.list_(pa.string()))])


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers), "labels": [[str(n)] for n in numbers]}, SCHEMA)


def column(name: str, *numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32())], [name])


def test_columns_key__follows_the_columns_alone(tmp_path: Path) -> None:
    """Changes of other columns keep the key; rows, edits and deletions change it, and a restore brings it back."""
    path = tmp_path / "media.lance"
    keys: list[Hashable] = []

    def add(version: int) -> Table:
        table = Table(path, version)
        keys.append(columns_key(table, ("n", "labels", "lacking")))
        return table

    first = add(tables.append(path, [rows(1, 2, 3)], SCHEMA))
    other = column("other", 4, 5, 6)
    table = add(tables.put_columns(first, iter([other]), other.schema))
    assert keys[0] == keys[1]
    assert columns_key(first, ("other",)) != columns_key(table, ("other",))
    edited = column("n", 1, 2, 4)
    table = add(tables.put_columns(table, iter([edited]), edited.schema))
    table = add(tables.delete_rows(table, np.array([True, False, False])))
    restored = tables.roll_back(path, first.version)
    assert restored is not None
    table = add(restored)
    assert keys[4] == keys[0]
    # As many, but other rows are deleted.
    add(tables.delete_rows(table, np.array([False, True, False])))
    add(tables.append(path, [rows(7)], SCHEMA))
    assert len(set(keys)) == len(keys) - 2
