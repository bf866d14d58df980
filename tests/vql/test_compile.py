"""The compiled filter finds the rows that the plain meaning of the filter names."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.path_columns import relation_with, stored
from framedex.errors import InvalidFilter
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.sql import Sql
from framedex.vql import Related, Scope, SearchTest, compile_filter, duplicate_level, parse, searches
from framedex.vql.parsing import MAX_ELEMENTS
from framedex.vql.sql_builder import MAX_RELATIONS
from framedex.vql.values import MAX_VALUES
from tests.laws import examples
from tests.oracles.vql import evaluate
from tests.vql.strategies import DATASET_ID, FIELDS, SCHEMA, SCOPE, filters, rows, single_tests

SQL = Sql()
Rows = Sequence[dict[str, Any]]


def scope_of(table: pa.Table, contents: Rows = ()) -> Scope:
    """Return the scope of the random filters on a table that may lack columns, of rows that may hold objects."""
    return replace(SCOPE, columns=table.column_names, find=lambda related: related_in(related, contents))


def related_in(related: Related, contents: Rows) -> pa.Table:
    """Return the ids of media that a filter names by what holds for others."""
    held = table_of(*contents)
    if related.of_objects:
        schema = pa.schema([pa.field("parent_id", pa.string()), SCHEMA.field("labels"), SCHEMA.field("confidence")])
        objects = [{**each, "parent_id": str(n)} for n, row in enumerate(contents) for each in row.get("objects") or ()]
        held = pa.Table.from_pylist(objects, schema=schema)
    names = ", ".join(related.columns)
    relation = relation_with(related.condition.columns, "media")
    text = f"WITH chosen AS (SELECT {names} FROM {relation} WHERE {related.condition.text}) {related.statement}"
    return SQL.query(text, related.condition.params, {**related.condition.relations, "media": held})


def answers(vql: list[Any]) -> dict[SearchTest, list[int]]:
    """Return the rows that the searches of a filter shall find: some, and others for others."""
    return {
        test: [row for row in range(8) if (row + len(test.op) + len(test.value)) % 3] for test in searches(parse(vql))
    }


def found(vql: list[Any], table: pa.Table, contents: Rows = (), scope: Scope | None = None) -> list[int]:
    """Return the numbers of the rows that DuckDB finds."""
    relations = {test: pa.table({"_rowid": pa.array(hits, pa.uint64())}) for test, hits in answers(vql).items()}
    condition = compile_filter(parse(vql), scope or scope_of(table, contents), relations)
    numbered = table.append_column("_rowid", pa.array(range(table.num_rows), pa.uint64()))
    relation = relation_with(condition.columns, "media")
    text = f"SELECT _rowid FROM {relation} WHERE {condition.text} ORDER BY _rowid"
    result = SQL.query(text, condition.params, {**condition.relations, "media": numbered})
    numbers: list[int] = result["_rowid"].to_pylist()
    return numbers


def expected(vql: list[Any], contents: Rows) -> list[int]:
    """Return the numbers of the rows that the plain meaning keeps."""
    parsed, hits = parse(vql), answers(vql)
    numbered = [{**row, "_rowid": number, "media_id": str(number)} for number, row in enumerate(contents)]
    return [row["_rowid"] for row in numbered if evaluate(parsed, row, SCOPE, hits)]


def table_of(*contents: dict[str, Any]) -> pa.Table:
    """Return rows as an Arrow table; what a row lacks is missing."""
    return pa.Table.from_pylist([{**row, "media_id": str(n)} for n, row in enumerate(contents)], schema=SCHEMA)


@pytest.mark.slow
@examples(150)
@given(filters, st.lists(rows, min_size=1, max_size=8))
def test_compile__equals_the_evaluator(vql: list[Any], contents: Rows) -> None:
    """DuckDB finds exactly the rows that the plain-Python meaning keeps."""
    assert found(vql, table_of(*contents), contents) == expected(vql, contents)


@pytest.mark.slow
@examples(400)
@given(single_tests())
def test_compile__each_test_equals_the_evaluator(case: tuple[list[Any], Rows]) -> None:
    """The same holds of tests by themselves, on rows that have what they look at."""
    vql, contents = case
    assert found(vql, table_of(*contents), contents) == expected(vql, contents)


@pytest.mark.slow
@examples(60)
@given(filters, st.lists(rows, min_size=1, max_size=6), st.sets(st.sampled_from(SCHEMA.names[:-1])))
def test_compile__columns_that_the_table_lacks_are_missing_values(
    vql: list[Any], contents: Rows, lacking: set[str]
) -> None:
    """A table without a column is a table whose cells of that column are all empty."""
    seen = [{name: value for name, value in row.items() if name not in lacking} for row in contents]
    assert found(vql, table_of(*contents).drop_columns(sorted(lacking)), seen) == expected(vql, seen)


@pytest.mark.slow
@examples(60)
@given(filters, st.lists(rows, min_size=1, max_size=6))
def test_not__is_the_set_complement(vql: list[Any], contents: Rows) -> None:
    """A filter and its `not` share no row and leave none out."""
    table = table_of(*contents)
    assert sorted(found(vql, table, contents) + found([{"not": vql}], table, contents)) == list(range(len(contents)))


def of_objects(vql: list[Any], media: Rows, objects: Rows) -> tuple[list[int], list[int]]:
    """Return the numbers of the objects that DuckDB finds, and of those that the plain meaning keeps.

    Object *n* is in the media item *n* of as many as there are, counted around.
    """
    parents = [str(number % len(media)) for number in range(len(objects))]
    table = table_of(*objects).append_column("parent_id", pa.array(parents, pa.string())).drop_columns(OF_MEDIA)
    find = partial(related_in, contents=media)
    own = Scope(
        table.column_names, added=SCOPE.added, media=scope_of(table_of(*media), media), find=find, dataset_id=DATASET_ID
    )
    parsed, hits = parse(vql), answers(vql)
    rows_of = [
        {**row, "_rowid": n, "media_id": str(n), "parent": media[n % len(media)]} for n, row in enumerate(objects)
    ]
    return found(vql, table, scope=own), [row["_rowid"] for row in rows_of if evaluate(parsed, row, own, hits)]


OF_MEDIA = ["tags", *(known.column for known in FIELDS.values())]
"""Columns that objects have not."""


@pytest.mark.slow
@examples(150)
@given(filters, st.lists(rows, min_size=1, max_size=3), st.lists(rows, min_size=1, max_size=6))
def test_objects__equal_the_evaluator(vql: list[Any], media: Rows, objects: Rows) -> None:
    """Of objects, tests of tags, custom fields and further objects are about the media that they are in."""
    compiled, plain = of_objects(vql, media, objects)
    assert compiled == plain


@pytest.mark.slow
@examples(200)
@given(single_tests(), st.sampled_from(["plain", "not", "any", "beside"]))
def test_objects__each_test_equals_the_evaluator(case: tuple[list[Any], Rows], form: str) -> None:
    """The same holds of each test alone, and within and beside others."""
    (test,), contents = case
    label = {"labels": {"op": "is", "value": "cat"}}
    forms = {
        "plain": [test],
        "not": [{"not": [test, test]}],
        "any": [{"any": [test, {"tags": {"op": "is", "value": "keep"}}]}],
        "beside": [{"not": {"any": [label, {"not": test}]}}, test],
    }
    media = [{**row, "tags": [1] if place else None} for place, row in enumerate(contents)]
    compiled, plain = of_objects(forms[form], media, [*contents, *contents])
    assert compiled == plain


def test_objects__ask_once_of_their_media() -> None:
    """Tests of media beside each other are one question, however many they are; there are not many questions."""
    asked: list[Related] = []

    def find(related: Related) -> pa.Table:
        asked.append(related)
        return pa.table({"media_id": pa.array(["0"])})

    scope = Scope(["parent_id", "labels"], media=SCOPE, find=find)
    tests = [{"field": {"name": "price; --", "op": "is", "value": value}} for value in range(2000)]
    condition = compile_filter(parse([{"any": tests}, {"labels": {"op": "is", "value": "cat"}}]), scope)
    assert len(asked) == len(condition.relations) == 1
    assert condition.columns == {"parent_id", "labels"}
    pairs = [{"any": [test, {"labels": {"op": "is", "value": "cat"}}]} for test in tests[: MAX_RELATIONS + 1]]
    with pytest.raises(InvalidFilter, match="100 places"):
        compile_filter(parse(pairs), scope)


def test_objects__wrong_names_have_the_path_in_the_whole_filter() -> None:
    """An error within what is asked of media names the place in the filter that was written."""
    scope = Scope(["parent_id"], media=SCOPE)
    vql = [{"labels": {"op": "is", "value": "x"}}, {"not": {"field": {"name": "gone", "op": "missing"}}}]
    with pytest.raises(InvalidFilter) as caught:
        compile_filter(parse(vql), scope)
    assert caught.value.path == "$[1].not.field.name"


@pytest.mark.parametrize(
    "element",
    [
        {"labels": {"op": "is", "value": "cat"}},
        {"tags": {"op": "is", "value": "keep"}},
        {"issues": {"op": "issue", "value": "blur"}},
        {"uniqueness": {"op": "uniqueness", "value": 0.0}},
        {"duplicates": {"op": "duplicates", "value": 0.96}},
    ],
)
def test_not__keeps_rows_whose_value_is_missing(element: dict[str, Any]) -> None:
    """A row without the value is not in the test and therefore in its `not`."""
    table = table_of({})
    assert found([element], table) == []
    assert found([{"not": element}], table) == [0]


@pytest.mark.parametrize("op", ["is_not", "not_one_of"])
def test_labels__complement_keeps_unlabelled_images(op: str) -> None:
    """Images without labels are not cats."""
    table = table_of({"labels": None}, {"labels": ["cat"]}, {"labels": ["dog"]}, {"labels": []})
    assert found([{"labels": {"op": op, "value": "cat"}}], table) == [0, 2, 3]


def test_labels__all_of_several() -> None:
    """Of a list, ``is`` needs all labels and ``one_of`` one; an empty list matches nothing."""
    table = table_of({"labels": ["cat", "dog", "cow"]}, {"labels": ["cat"]}, {"labels": []}, {"labels": None})
    for op, value, expected in (
        ("is", ["cat", "dog"], [0]),
        ("is", ["cat", "cat"], [0, 1]),
        ("is_not", ["cat", "dog"], [1, 2, 3]),
        ("one_of", ["cat", "dog"], [0, 1]),
        ("not_one_of", ["cat", "dog"], [2, 3]),
        ("is", [], []),
        ("is_not", [], [0, 1, 2, 3]),
    ):
        assert found([{"labels": {"op": op, "value": value}}], table) == expected, (op, value)


def test_tags__any_of_some() -> None:
    """Tags are named by id or name, any of them will do, and what is no tag finds nothing."""
    table = table_of({"tags": None}, {"tags": [0, 2]}, {"tags": [1]}, {"tags": []}, {"tags": [2]})
    for value, expected in (
        ("keep", [2]),
        (["7d1f", "keep"], [1, 2]),
        (["naïve", "gone"], [1]),
        ("gone", []),
        ([], []),
        ("untagged", [0, 3]),
        (["untagged", "'; --"], [0, 1, 3, 4]),
    ):
        assert found([{"tags": {"op": "is", "value": value}}], table) == expected


def test_tags__of_a_table_without_the_column() -> None:
    """Where nothing was ever tagged, all is untagged."""
    table = table_of({}, {}).drop_columns(["tags"])
    assert found([{"tags": {"op": "is", "value": "keep"}}], table) == []
    assert found([{"tags": {"op": "is", "value": ["keep", "untagged"]}}], table) == [0, 1]


def test_issues__out_keeps_images_without_the_issue() -> None:
    """`out` is the complement of `in` with the same confidences."""
    table = table_of({"issue_blur": 0.9}, {"issue_blur": 0.6}, {})
    test = {"op": "issue", "value": "blur", "confidence_min": 0.7}
    assert found([{"issues": test}], table) == [0]
    assert found([{"issues": {**test, "mode": "out"}}], table) == [1, 2]


def test_issues__normal_has_none() -> None:
    """``normal`` selects rows without any issue of such a confidence; ``out`` is its complement."""
    table = table_of({"issue_blur": 0.9}, {"issue_dark": 0.6}, {})
    test = {"op": "issue", "value": "normal"}
    assert found([{"issues": test}], table) == [2]
    assert found([{"issues": {**test, "confidence_min": 0.7}}], table) == [1, 2]
    assert found([{"issues": {**test, "mode": "out"}}], table) == [0, 1]


def test_quality__missing_is_the_complement_of_all_values() -> None:
    """Rows without the value pass `missing` alone, also where the table lacks the column."""
    table = table_of({"acutance": 0.5}, {}, {"acutance": -1e38})
    missing = [{"quality": {"of": "blur", "op": "missing"}}]
    assert found(missing, table) == [1]
    assert found([{"not": missing}], table) == [0, 2]
    assert found([{"quality": {"of": "blur", "op": "ge", "value": -1e38}}], table) == [0, 2]
    assert found(missing, table.drop_columns(["acutance"])) == [0, 1, 2]


def test_confidence__limits_are_compared_as_they_are_stored() -> None:
    """0.7 of the filter meets 0.7 of the table although float32 rounds it."""
    table = table_of({"uniqueness": float(np.float32(0.7)), "issue_blur": float(np.float32(0.7))})
    assert found([{"uniqueness": {"op": "uniqueness", "value": 0.7}}], table) == [0]
    test = {"op": "issue", "value": "blur", "confidence_min": 0.7, "confidence_max": 0.7}
    assert found([{"issues": test}], table) == [0]


@pytest.mark.parametrize(
    ("value", "level"),
    [(0.0, 0), (0.96, 0), (0.9601, 1), (0.972, 2), (0.985, 3), (0.9951, 6), (0.9991, 7), (1.0, 7)],
)
def test_duplicate_level__between_two_takes_the_stricter(value: float, level: int) -> None:
    """A similarity is served by itself or by the next stricter of the eight levels."""
    assert duplicate_level(value) == level
    assert DUPLICATE_LEVELS[level] >= value


def test_duplicates__between_two_levels_keeps_members_of_the_stricter() -> None:
    """Members of a group that is only formed at a looser level are left out."""
    table = table_of({"duplicate_0": 0}, {"duplicate_0": 0, "duplicate_1": 0})
    assert found([{"duplicates": {"op": "duplicates", "value": 0.965}}], table) == [1]


def test_empty__means_everything_and_any_of_nothing_means_nothing() -> None:
    """AND of no tests holds; OR of no tests does not."""
    table = table_of({}, {})
    assert found([], table) == [0, 1]
    assert found([{"any": []}], table) == []
    assert found([{"not": []}], table) == []


@pytest.mark.parametrize("name", ["'; DROP TABLE media; --", "' OR TRUE OR '", "{}", "$1", "{0.__class__}", "\0", '"'])
def test_values__never_appear_in_the_text(name: str) -> None:
    """The statement's text is the same whatever the values are, so that no value can change its meaning."""
    vql = [{"labels": {"op": "one_of", "value": [name]}}, {"not": {"uniqueness": {"op": "uniqueness", "value": 0.123}}}]
    condition = compile_filter(parse(vql), SCOPE)
    harmless = compile_filter(parse([{"labels": {"op": "is", "value": "cat"}}, vql[1]]), SCOPE)
    assert condition.text == harmless.text
    assert condition.params == ([name], 0.123)
    assert found(vql, table_of({"labels": [name]}, {"labels": ["cat"]})) == [0]


@examples(60)
@given(filters)
def test_text__numbers_its_parameters_once_each(vql: list[Any]) -> None:
    """Every parameter stands in the text exactly once, in order."""
    condition = compile_filter(parse(vql), SCOPE, {test: pa.table({"_rowid": []}) for test in searches(parse(vql))})
    places = [int(place) for place in re.findall(r"\$(\d+)", condition.text)]
    assert places == list(range(1, len(condition.params) + 1))
    assert stored(condition.columns) <= set(SCHEMA.names)


@pytest.mark.parametrize(
    ("element", "path"),
    [
        ({"text": {"op": "fts", "value": "red car"}}, "text"),
        ({"similarity": {"op": "media", "value": "red car"}}, "similarity"),
    ],
)
def test_search__that_nobody_carried_out(element: dict[str, Any], path: str) -> None:
    """The compiler runs no search; without its rows it says which one lacks, and where."""
    with pytest.raises(InvalidFilter, match="search for 'red car'") as caught:
        compile_filter(parse([{"not": [{"any": [element]}]}]), SCOPE)
    assert caught.value.path == f"$[0].not[0].any[0].{path}"


def test_search__once_for_equal_tests() -> None:
    """Equal tests share a relation; conditions are equal if they search for the same."""
    car, dog = ({"text": {"op": "fts", "value": value}} for value in ("car", "dog"))
    rows_of = {test: pa.table({"_rowid": pa.array([1], pa.uint64())}) for test in searches(parse([car, dog]))}
    twice = compile_filter(parse([{"any": [car, dog]}, {"not": car}]), SCOPE, rows_of)
    assert list(twice.relations) == ["found_0", "found_1"]
    assert twice.searches == tuple(rows_of)
    one, same, other = (compile_filter(parse([each]), SCOPE, rows_of) for each in (car, car, dog))
    assert one == same != other
    assert one.text == other.text
    assert len({one, same, other}) == 2


def test_search__may_find_nothing_or_have_further_columns() -> None:
    """Relations may be empty, and have scores, which say nothing here."""
    vql = parse([{"text": {"op": "semantic", "value": "car"}}])
    table = pa.table({"_rowid": pa.array([0, 1, 2], pa.uint64())})
    for hits in ([], [2], [0, 2]):
        scored = pa.table({"_rowid": pa.array(hits, pa.uint64()), "score": pa.array([0.5] * len(hits), pa.float32())})
        condition = compile_filter(vql, SCOPE, {searches(vql)[0]: scored})
        text = f"SELECT _rowid FROM media WHERE {condition.text} ORDER BY _rowid"
        relations = {**condition.relations, "media": table}
        assert SQL.query(text, condition.params, relations)["_rowid"].to_pylist() == hits


@pytest.mark.slow
def test_compile__deep_and_wide_filters_run() -> None:
    """The deepest filter that is allowed, and the widest ones, stay within the engine's limits."""
    table = table_of({"uniqueness": 0.5}, {})
    leaf = {"uniqueness": {"op": "uniqueness", "value": 0.3}}
    nested: Any = leaf
    for _ in range(49):
        nested = {"not": nested}
    assert found([nested], table) == [1]
    assert found([{"any": [leaf] * (MAX_ELEMENTS - 1)}], table) == [0]
    assert found([leaf] * MAX_ELEMENTS, table) == [0]
    many = [str(number) for number in range(MAX_VALUES)]
    assert found([{"labels": {"op": "one_of", "value": many}}], table_of({"labels": ["x", "9999"]}, {})) == [0]
