"""Names in filters are those of the dataset, and tests suit what they name."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from framedex.errors import InvalidFilter
from framedex.vql import compile_filter, parse
from framedex.vql.keys.date_added import DateAddedTest
from tests.vql.strategies import SCOPE


@pytest.mark.parametrize(
    ("field", "path", "reason"),
    [
        ({"name": "cost", "op": "is", "value": 3}, "name", "no custom field 'cost'; there are 'note', 'notes'"),
        ({"name": "price; --", "op": "contains", "value": "3"}, "op", "type float takes is, lt, le, gt, ge, between"),
        ({"name": "note", "op": "lt", "value": "b"}, "op", "type string takes contains, starts, ends, is, one_of"),
        ({"name": "page", "op": "between", "value": ["a", "b"]}, "op", "type link takes contains"),
        ({"name": "grade", "op": "contains", "value": "low"}, "op", "type enum takes is, one_of, missing"),
        ({"name": "when", "op": "one_of", "value": ["2024-05-17"]}, "op", "type datetime takes is, lt, le"),
        ({"name": "price; --", "op": "lt", "value": "3"}, "value", "type float takes numbers; found '3'"),
        ({"name": "price; --", "op": "one_of", "value": [3, "4"]}, "value", "takes numbers; found [3.0, '4']"),
        ({"name": "price; --", "op": "between", "value": [3, 2]}, "value", "the smaller value first"),
        ({"name": "note", "op": "is", "value": 3}, "value", "type string takes text; found 3.0"),
        ({"name": "when", "op": "lt", "value": 2024}, "value", "type datetime takes text; found 2024.0"),
        ({"name": "when", "op": "lt", "value": "soon"}, "value", "ISO 8601 text such as '2024-05-17'; found 'soon'"),
        ({"name": "when", "op": "between", "value": ["2024-05-18", "2024-05-17"]}, "value", "smaller value first"),
        ({"name": "grades", "op": "is", "value": "high"}, "value", "the options are 'low', \"it's\""),
        ({"name": "grade", "op": "one_of", "value": ["low", "high"]}, "value", "found 'high'"),
        ({"name": "grade", "op": "is", "value": "lo"}, "value", "found 'lo'; did you mean 'low'?"),
        ({"name": "wehn", "op": "is", "value": "2024-05-17"}, "name", "; did you mean 'when'?"),
    ],
)
def test_field__error_names_the_path_and_what_is_allowed(field: dict[str, Any], path: str, reason: str) -> None:
    """A field that is not there, an op or a value that does not suit its type: an error at its place, however deep."""
    vql = parse([{"any": []}, {"not": [{"any": [{"field": field}]}]}])
    with pytest.raises(InvalidFilter) as caught:
        compile_filter(vql, SCOPE)
    assert caught.value.path == f"$[1].not[0].any[0].field.{path}"
    assert reason in caught.value.reason


def test_field__of_a_dataset_without_any() -> None:
    """The error says that there are none."""
    with pytest.raises(InvalidFilter, match="no custom field 'a'; there are none"):
        compile_filter(parse([{"field": {"name": "a", "op": "missing"}}]), replace(SCOPE, fields={}))


def test_field__of_a_dataset_with_many() -> None:
    """The error names some and counts the others."""
    many = {f"f{number}": SCOPE.fields["note"] for number in range(1000)}
    with pytest.raises(InvalidFilter, match="'f19' and 980 more"):
        compile_filter(parse([{"field": {"name": "a", "op": "missing"}}]), replace(SCOPE, fields=many))


@pytest.mark.parametrize(
    ("op", "value", "batches"),
    [
        ("is", "2024-05-17", [0]),
        ("le", "2024-05-17", [0]),
        ("gt", "2024-05-17", [2]),
        ("ge", "2024-05-18T00:00:00Z", [2]),
        ("lt", "2024-05-18T02:00:00+02:00", [0]),
        ("between", ["2024-05-17", "2024-05-18"], [0, 2]),
        ("is", datetime(2024, 5, 18, tzinfo=UTC), [2]),
        ("lt", datetime(2024, 5, 17).date(), []),
    ],
)
def test_batches__by_when_they_were_added(op: str, value: Any, batches: list[int]) -> None:
    """One batch came in the last microsecond of a day, one in the first of the next; of a third it is not known."""
    assert DateAddedTest.model_validate({"op": op, "value": value}).batches(SCOPE.added) == batches
