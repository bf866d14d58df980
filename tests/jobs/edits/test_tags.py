"""Tags as columns of the media table: what is written is what was asked for, and nothing else changes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.jobs.edits.tag_lists import count_tags, with_tag, without_tag
from framedex.jobs.edits.tags import next_number
from framedex.storage import tables
from framedex.storage.generation import Generation
from framedex.storage.table_versions import Table
from tests.laws import examples
from tests.stored import media_of

ROWS = 7
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([pa.field("media_id", pa.string(), nullable=False)])

masks = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS)
operations = st.lists(st.tuples(st.booleans(), masks, st.integers(0, 2)), max_size=6)


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"media_id": [str(first + row) for row in range(rows)]}, schema=SCHEMA)


@pytest.fixture(scope="module")
def untagged(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table in two files that never had tags."""
    path = tmp_path_factory.mktemp("tags") / "media.lance"
    tables.append(path, [batch(0, 4)], SCHEMA)
    return Table(path, tables.append(path, [batch(4, ROWS - 4)], SCHEMA))


def tagged(table: Table) -> list[list[tuple[int, datetime]]]:
    """Return (number, date) of the tags of each row."""
    if "tags" not in table.schema.names:
        return [[] for _ in range(table.count())]
    rows = table.scan(["tags", "tagged_at"]).read_all().to_pylist()
    return [list(zip(row["tags"] or [], row["tagged_at"] or [], strict=True)) for row in rows]


@examples(30)
@given(operations)
def test_tags__any_sequence_agrees_with_plain_lists(untagged: Table, steps: list[tuple[bool, list[bool], int]]) -> None:
    """Whatever is put on and taken off, each row has the tags that it should have, in order, with the first date."""
    version = tables.roll_back(untagged.path, untagged.version)
    assert version is not None
    table = Table(untagged.path, version)
    expected: list[dict[int, datetime]] = [{} for _ in range(ROWS)]
    for step, (on, mask, number) in enumerate(steps):
        at = START + timedelta(hours=step)
        rows = np.array(mask)
        written = with_tag(media_of(table), rows, number, at) if on else without_tag(media_of(table), rows, number)
        table = table if written is None else Table(table.path, written)
        for tags in (tags for tags, chosen in zip(expected, mask, strict=True) if chosen):
            tags.setdefault(number, at) if on else tags.pop(number, None)
    assert tagged(table) == [list(tags.items()) for tags in expected]
    counts = count_tags(media_of(table))
    assert [counts.get(number, 0) for number in range(3)] == [sum(n in tags for tags in expected) for n in range(3)]
    assert table.scan(["media_id"]).read_all()["media_id"].to_pylist() == [str(row) for row in range(ROWS)]


def test_tags__rows_without_any_are_null(untagged: Table) -> None:
    """No tags is null, as in rows that are appended later, also where the last tag was taken off."""
    version = tables.roll_back(untagged.path, untagged.version)
    assert version is not None
    rows = np.arange(ROWS) < 2
    table = Table(untagged.path, with_tag(media_of(Table(untagged.path, version)), rows, 5, START))
    left = without_tag(media_of(table), np.arange(ROWS) == 0, 5)
    assert left is not None
    tables.append(untagged.path, [batch(ROWS, 1)], SCHEMA)
    table = Table(untagged.path, left + 1)
    held = table.scan(["tags", "tagged_at"]).read_all().to_pydict()
    assert held == {"tags": [None, [5], *[None] * (ROWS - 1)], "tagged_at": [None, [START], *[None] * (ROWS - 1)]}


def generation(summary: dict[str, Any]) -> Generation:
    return Generation.model_validate(
        {"id": "g", "dataset_id": "d", "tables": {}, "n_images": 0, "created_at": START, "summary": summary}
    )


@pytest.mark.parametrize(
    ("summary", "used", "expected"),
    [
        ({}, [], 0),
        ({}, [0, 4], 5),
        ({"next_numbers": {"tags": 7}}, [0, 4], 7),
        ({"next_numbers": {"fields": 7}}, [0], 1),
    ],
)
def test_next_number__was_never_used(summary: dict[str, Any], used: list[int], expected: int) -> None:
    """A number is above all that are used, and above those that were and are no more."""
    assert next_number(generation(summary), "tags", used) == expected


def test_with_tag__of_a_table_that_grew(tmp_path: Path) -> None:
    """Rows that were appended after the columns were made can be tagged like all others."""
    path = tmp_path / "media.lance"
    table = Table(path, tables.append(path, [batch(0, 2)], SCHEMA))
    with_tag(media_of(table), np.array([True, False]), 1, START)
    table = Table(path, tables.append(path, [batch(2, 2)], SCHEMA))
    table = Table(path, with_tag(media_of(table), np.array([True, False, True, False]), 2, START))
    assert [[number for number, _ in row] for row in tagged(table)] == [[1, 2], [], [2], []]
