"""Elements that ask the same, or may be asked at once."""

from typing import Any

import pyarrow as pa
import pytest

from framedex.storage.sql import Sql
from framedex.vql import Scope, compile_filter, parse
from framedex.vql.merging import merged
from framedex.vql.values import MAX_VALUES
from tests.oracles.vql import evaluate

SQL = Sql()
_SCOPE = Scope(columns=frozenset({"labels", "tags", "uniqueness", "path"}), tags={"keep": 1, "check": 2}, fields={})


def _labels(op: str, value: Any) -> dict[str, Any]:
    return {"labels": {"op": op, "value": value}}


def _text(*elements: Any) -> tuple[str, Any]:
    found = compile_filter(parse(list(elements)), _SCOPE)
    return found.text, found.params


def test_any__of_labels_is_one_test() -> None:
    several = {"any": [_labels("is", "cat"), _labels("one_of", ["dog", "cat"]), _labels("is", "cow")]}
    assert _text(several) == _text({"any": [_labels("one_of", ["cat", "dog", "cow"])]})


def test_any__of_tags_is_one_test() -> None:
    several = {"any": [{"tags": {"op": "is", "value": [name]}} for name in ("keep", "check", "untagged")]}
    assert _text(several) == _text({"any": [{"tags": {"op": "is", "value": ["keep", "check", "untagged"]}}]})


def test_all__against_labels_is_one_test() -> None:
    assert _text(_labels("is_not", "cat"), _labels("not_one_of", ["dog"])) == _text(
        _labels("not_one_of", ["cat", "dog"])
    )


@pytest.mark.parametrize("op", ["is", "is_not"])
def test_any__of_all_of_several_labels_stays_apart(op: str) -> None:
    """A test of all of some labels joins no other test, except an equal one."""
    both, other = _labels(op, ["cat", "dog"]), _labels(op, "cow")
    for any_of in (True, False):
        assert len(merged(parse([both, other]), any_of=any_of)) == 2
        assert len(merged(parse([both, both]), any_of=any_of)) == 1


@pytest.mark.parametrize("op", ["is", "one_of"])
def test_all__of_labels_stay_apart(op: str) -> None:
    two = [_labels(op, "cat" if op == "is" else ["cat"]), _labels(op, "dog" if op == "is" else ["dog"])]
    assert len(merged(parse(two), any_of=False)) == 2


def test_any__against_labels_stay_apart() -> None:
    assert len(merged(parse([_labels("is_not", "cat"), _labels("is_not", "dog")]), any_of=True)) == 2


@pytest.mark.parametrize("any_of", [False, True])
def test_equal_elements__are_asked_once(any_of: bool) -> None:
    twice = [{"uniqueness": {"op": "uniqueness", "value": 0.5}, "id": number} for number in range(3)]
    assert [place for place, _ in merged(parse([*twice, _labels("is", "cat")]), any_of=any_of)] == [0, 3]


def test_any__may_have_more_labels_than_an_element_lists() -> None:
    names = [f"label {number}" for number in range(MAX_VALUES + 1)]
    parts = [names[start : start + 10] for start in range(0, len(names), 10)]
    text, params = _text({"any": [_labels("one_of", part) for part in parts]})
    assert len(names) > MAX_VALUES
    assert (text.count("list_filter"), len(params)) == (1, 1)
    assert list(params[0]) == names


@pytest.mark.parametrize("op", ["is", "is_not"])
@pytest.mark.parametrize("any_of", [False, True])
def test_equal_label_tests__mean_what_one_means(op: str, any_of: bool) -> None:
    one = _labels(op, "cat")
    once, twice = ([{"any": [one]}], [{"any": [one, one]}]) if any_of else ([one], [one, one])
    rows = [{"labels": labels} for labels in (None, [], ["cat"], ["dog"], ["cat", "dog"])]
    table = pa.table({"labels": [row["labels"] for row in rows]}, schema=pa.schema({"labels": pa.list_(pa.string())}))
    for vql in (once, twice):
        condition = compile_filter(parse(vql), _SCOPE)
        found = SQL.query(f"SELECT {condition.text} AS held FROM media", condition.params, {"media": table})
        assert found["held"].to_pylist() == [evaluate(parse(once), row, _SCOPE, {}) for row in rows]
