"""Custom fields: what they may be, and which values they take."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import InvalidInput
from framedex.jobs.edits.field_values import NewValues, read_values
from framedex.jobs.edits.fields import check_spec
from framedex.records import FieldType
from framedex.storage import tables
from framedex.storage.definitions import FieldDefinition
from framedex.storage.table_versions import Table
from tests.laws import examples
from tests.stored import media_of

NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)
IDS = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A media table of four rows."""
    batch = pa.RecordBatch.from_pydict({"media_id": IDS})
    path = tmp_path_factory.mktemp("fields") / "media.lance"
    return Table(path, tables.append(path, [batch], batch.schema))


def field(kind: str, *, is_multi: bool = False, options: list[str] | None = None) -> FieldDefinition:
    return FieldDefinition("id", 0, "name", FieldType(kind), options, is_multi, NOON, "tester")


def read(table: Table, definition: FieldDefinition, rows: list[Any]) -> NewValues:
    return read_values(media_of(table), definition, rows, progress=lambda share: None)


def stored(table: Table, definition: FieldDefinition, value: Any) -> Any:
    """Return what the column would hold of a value, or the reason why it does not go in."""
    new = read(table, definition, [("b", value)])
    if new.outcome.errors:
        return new.outcome.samples[0].reason
    assert new.indices.tolist() == [-1, 0, -1, -1]
    assert new.values.type == definition.column.type
    return new.values.to_pylist()[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "a, \"b\"\nc", "a, \"b\"\nc"),
        ("string", "", ""),
        ("string", "naïve 雪", "naïve 雪"),
        ("float", 3, 3.0),
        ("float", -0.1, -0.1),
        ("float", np.float32(0.5), 0.5),
        ("float", np.int64(7), 7.0),
        ("datetime", "2024-05-17T12:00:00Z", NOON),
        ("datetime", "2024-05-17T12:00:00", NOON),
        ("datetime", "2024-05-17", NOON.replace(hour=0)),
        ("datetime", "2024-05-17T14:00:00+02:00", NOON),
        ("datetime", NOON.astimezone(timezone(timedelta(hours=-5))), NOON),
        ("datetime", NOON.replace(tzinfo=None), NOON),
        ("enum", "left", "left"),
        ("link", "https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("link", "http://[::1]:80/", "http://[::1]:80/"),
        ("link", "file:///a/b.txt", "file:///a/b.txt"),
        ("link", "s3://bucket/key", "s3://bucket/key"),
    ],
)  # fmt: skip
def test_value__goes_in(table: Table, kind: str, value: Any, expected: Any) -> None:
    """A value of the field's type is stored, times in UTC."""
    assert stored(table, field(kind, options=["left", "right"] if kind == "enum" else None), value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 5),
        ("string", b"bytes"),
        ("string", ["a"]),
        ("string", "half \ud800"),
        ("float", "1.5"),
        ("float", True),
        ("float", np.True_),
        ("float", float("nan")),
        ("float", float("inf")),
        ("float", 10**400),
        ("float", 1 + 2j),
        ("float", np.complex64(1)),
        ("datetime", "yesterday"),
        ("datetime", "17.05.2024"),
        ("datetime", 1715947200),
        ("datetime", NOON.date()),
        ("datetime", "0001-01-01T00:00:00+14:00"),
        ("enum", "Left"),
        ("enum", ""),
        ("enum", ["left"]),
        ("link", "example.org"),
        ("link", "ftp://example.org"),
        ("link", "javascript:alert(1)"),
        ("link", "https://"),
        ("link", "file://"),
        ("link", "file:a.txt"),
        ("link", "http://[::1"),
        ("link", "https://example.org/a b"),
        ("link", "https://example.org/\n"),
        ("link", 5),
    ],
)
@pytest.mark.parametrize("is_multi", [False, True])
def test_value__does_not_go_in(table: Table, kind: str, value: Any, is_multi: bool) -> None:
    """A value of another type fails with a reason, also within a list."""
    definition = field(kind, is_multi=is_multi, options=["left", "right"] if kind == "enum" else None)
    value = [[value]] if is_multi and isinstance(value, list) else [value] if is_multi else value
    new = read(table, definition, [("b", value)])
    assert (new.outcome.inserted, new.outcome.errors) == (0, 1)
    assert new.outcome.samples[0].row_index == 0
    assert len(new.outcome.samples[0].reason) > 20
    assert (new.indices == -1).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(["x", "y"], ["x", "y"]), (("x",), ["x"]), ("x", ["x"]), ([], None), (None, None), (["x", "x"], ["x", "x"])],
)
def test_value__of_a_field_with_lists(table: Table, value: Any, expected: Any) -> None:
    """A field with lists takes a list, or one value as a list of it; nothing clears it."""
    assert stored(table, field("string", is_multi=True), value) == expected


@pytest.mark.parametrize("value", [["x", None], [None], [["x"]]])
def test_value__lists_hold_values_only(table: Table, value: Any) -> None:
    """Nothing else than values is in a list."""
    assert re.match("a string is text, not", stored(table, field("string", is_multi=True), value))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"media_id": "a"}, "a row has 'media_id' and 'value', not ['media_id']"),
        ({"value": 1}, "a row has 'media_id' and 'value', not ['value']"),
        ({"media_id": None, "value": 1}, "a media id is text, not None"),
        ({"media_id": 7, "value": 1}, "a media id is text, not 7"),
        ({"media_id": "nobody", "value": 1}, "no media 'nobody'"),
        ({"media_id": "\ud800", "value": 1}, "no media '\\ud800'"),
        ({"media_id": "b", "value": 2}, "media 'b' has a value in an earlier row"),
        ("a", "a row is an object with 'media_id' and 'value', not 'a'"),
        (None, "a row is an object with 'media_id' and 'value', not None"),
        (("a", 1, 2), "a row is an object with 'media_id' and 'value', not ('a', 1, 2)"),
    ],
)
def test_row__that_is_wrong_fails_alone(table: Table, row: Any, reason: str) -> None:
    """The others go in, and the error says which row it was and why."""
    new = read(table, field("float"), [{"media_id": "b", "value": 1}, row, {"media_id": "d", "value": None}])
    assert (new.outcome.inserted, new.outcome.errors) == (2, 1)
    assert [(error.row_index, error.reason) for error in new.outcome.samples] == [(1, reason)]
    values = new.values.to_pylist()
    assert [None if indices < 0 else values[indices] for indices in new.indices] == [None, 1.0, None, None]
    assert (new.indices >= 0).tolist() == [False, True, False, True]


@examples(50)
@given(st.lists(st.tuples(st.sampled_from([*IDS, "e", "f"]), st.one_of(st.none(), st.integers(-3, 3), st.just("x")))))
def test_rows__agree_with_a_dict(table: Table, rows: list[tuple[str, Any]]) -> None:
    """The first good row of each media item counts; every other row is an error."""
    expected: dict[str, Any] = {}
    failed = []
    for number, (media_id, value) in enumerate(rows):
        if value == "x" or media_id not in IDS or media_id in expected:
            failed.append(number)
        else:
            expected[media_id] = value
    new = read(table, field("float"), rows)
    values = new.values.to_pylist()
    assert {IDS[row]: values[indices] for row, indices in enumerate(new.indices) if indices >= 0} == expected
    assert (new.outcome.inserted, new.outcome.errors) == (len(expected), len(failed))
    assert [error.row_index for error in new.outcome.samples] == failed[:100]


def test_rows__keep_the_first_hundred_errors(table: Table) -> None:
    """All errors are counted; those of the first rows are shown, of whichever kind they are."""
    rows: list[Any] = [("nobody", 1.0), *[("a", "x")] * 150, ("nobody", 2.0), *[("a", "y")] * 400]
    outcome = read(table, field("float"), rows).outcome
    assert (outcome.inserted, outcome.errors) == (0, len(rows))
    assert [error.row_index for error in outcome.samples] == list(range(100))
    assert outcome.samples[0].reason == "no media 'nobody'"


def test_rows__long_values_are_shortened_in_messages(table: Table) -> None:
    """A reason stays short, whatever the value is."""
    outcome = read(table, field("float"), [("a", "x" * 100_000)]).outcome
    assert len(outcome.samples[0].reason) < 200


@pytest.mark.parametrize("options", [None, [], "ab", ["a", "a"], [""], [" "], ["x" * 21], ["a", 1], ["a\n"], {"a": 1}])
def test_spec__options_that_cannot_be_used(options: Any) -> None:
    """An enum needs different options of 1 to 20 characters."""
    with pytest.raises(InvalidInput, match="option"):
        check_spec("side", "enum", options, False)


def test_spec__of_each_type() -> None:
    """Each of the five types makes a field; only an enum has options."""
    for kind in FieldType:
        options = ["a", "x" * 20] if kind is FieldType.ENUM else None
        spec = check_spec("name", kind.value, options, True)
        assert (spec.type, spec.enum_options, spec.is_multi) == (kind, options, True)
    with pytest.raises(InvalidInput, match="only a field of type enum has options"):
        check_spec("name", "string", ["a"], False)
    with pytest.raises(InvalidInput, match="no field type 'text'; there are: string, float, datetime, enum, link"):
        check_spec("name", "text", None, False)
    with pytest.raises(InvalidInput, match="is_multi"):
        check_spec("name", "string", None, 1)


@pytest.mark.parametrize("name", ["media_id", "caption", "tags", "cluster_3", "embedding", "url"])
def test_spec__names_of_columns_are_taken(name: str) -> None:
    """A field cannot be named like a column, which it would hide."""
    with pytest.raises(InvalidInput, match=f"a field cannot be named '{name}'"):
        check_spec(name, "string", None, False)


def test_column__is_named_by_number(tmp_path: Path) -> None:
    """Renaming a field moves no values: its column has its number."""
    assert field("float").column == pa.field("field_0", pa.float64())
    assert field("enum", is_multi=True).column == pa.field("field_0", pa.list_(pa.string()))
    assert field("datetime").column == pa.field("field_0", pa.timestamp("us", tz="UTC"))
