"""Checks of tables: each column that cannot be read is named, and no other."""

from pathlib import Path

import lance
import pyarrow as pa

from framedex.storage.table_checks import ColumnReader

ROWS = 5000
"""More than a batch."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("text", pa.string(), metadata={"lance-encoding:compression": "none"}),
        pa.field("half", pa.float64()),
    ]
)


def test_faults__of_one_column_of_several(tmp_path: Path) -> None:
    """Columns of a file are read together; a damaged one is named alone, and the others are not read again."""
    path = tmp_path / "t.lance"
    texts = [f"text-{number:05d}" for number in range(ROWS)]
    lance.write_dataset(pa.table([range(ROWS), texts, [0.5] * ROWS], schema=SCHEMA), str(path))
    (file,) = path.glob("data/*")
    sound = file.read_bytes()
    assert sound.count(b"text-04999") == 1
    reader = ColumnReader(path, lambda: None)
    assert [(reader.faults(1), reader.n_read) for _ in range(2)] == [({}, 3), ({}, 3)]
    file.write_bytes(sound.replace(b"text-04999", b"text-\xff\xff\xff\xff\xff"))
    reader = ColumnReader(path, lambda: None)
    ((name, fault),) = reader.faults(1).items()
    assert (name, reader.n_read) == ("text", 3)
    assert "Utf8" in fault
    assert (list(reader.faults(1)), reader.n_read) == (["text"], 4)
