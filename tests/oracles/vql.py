"""The meaning of filters in plain Python, one row at a time, which the compiler must equal."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, assert_never

import numpy as np

from framedex.core.ids import Kind, group_id
from framedex.issue_types import issue_types
from framedex.records import CLUSTER_LEVELS, FieldType
from framedex.vql import BASKET, UNTAGGED, Filter, Scope, SearchTest
from framedex.vql.elements import AnyOf, Element, Not, children
from framedex.vql.key_test import KeyTest, OrderedTest
from framedex.vql.keys.batch import BatchTest
from framedex.vql.keys.cluster import ClusterTest
from framedex.vql.keys.confidence import ConfidenceTest
from framedex.vql.keys.content import ContentTest
from framedex.vql.keys.date_added import DateAddedTest
from framedex.vql.keys.duplicates import DuplicatesTest
from framedex.vql.keys.field import FieldQuery, FieldTest
from framedex.vql.keys.file_name import FileNameTest
from framedex.vql.keys.folder import FolderTest
from framedex.vql.keys.ids import IdsTest
from framedex.vql.keys.issues import IssuesTest
from framedex.vql.keys.labels import LabelsTest
from framedex.vql.keys.media import MediaTest
from framedex.vql.keys.missing import MissingTest
from framedex.vql.keys.objects import ObjectsTest
from framedex.vql.keys.quality import QualityTest
from framedex.vql.keys.size import SizeTest
from framedex.vql.keys.source import SourceTest
from framedex.vql.keys.tags import TagsTest
from framedex.vql.keys.uniqueness import UniquenessTest
from framedex.vql.values import in_order, listed, microseconds

Row = Mapping[str, Any]
Results = Mapping[SearchTest, Collection[int]]
_ANYWHERE = Scope()
_NO_RESULTS: Results = MappingProxyType({})


def evaluate(
    vql: Collection[Element] | Filter, row: Row, scope: Scope = _ANYWHERE, results: Results = _NO_RESULTS
) -> bool:
    """Return whether a row passes a filter.

    Args:
        vql: a parsed filter.
        row: values by column, and its number as ``_rowid``; missing and None are the same. Of a media item, ``objects``
            are the rows of those in it; of an object, ``parent`` is the row of the media item that it is in.
        scope: what the names in the filter stand for; its columns are not used.
        results: the numbers of the rows that searches returned, by test.
    """
    return all(_passes(element, row, scope, results) for element in vql)


def _passes(element: Element, row: Row, scope: Scope, results: Results) -> bool:
    match element:
        case AnyOf():
            return any(_passes(each, row, scope, results) for each in element.elements)
        case Not():
            return not evaluate(children(element), row, scope, results)
        case SearchTest():
            return row.get("_rowid") in results[element]
        case KeyTest():
            if element.is_of_media and scope.media is not None:
                return _passes(element, row["parent"], scope.media, results)
            return TESTS[type(element)](element, row, scope)
        case _:
            assert_never(element)


def _labels(test: LabelsTest, row: Row, _scope: Scope) -> bool:
    has, names = set(row.get("labels") or ()), set(test.names)
    passes = names <= has if names and test.op in ("is", "is_not") else bool(names & has)
    return passes != (test.op in ("is_not", "not_one_of"))


def _tags(test: TagsTest, row: Row, scope: Scope) -> bool:
    has = set(row.get("tags") or ())
    in_basket = BASKET in test.names and BASKET not in scope.tags and bool(row.get("in_basket"))
    return bool(has & set(test.numbers(scope.tags))) or in_basket or (UNTAGGED in test.names and not has)


def _issues(test: IssuesTest, row: Row, _scope: Scope) -> bool:
    def has(name: str) -> bool:
        value = row.get(f"issue_{name}")
        return value is not None and bool(np.float32(test.confidence_min) <= value <= np.float32(test.confidence_max))

    passes = not any(map(has, issue_types())) if test.value == "normal" else has(test.value)
    return passes != (test.mode == "out")


def _quality(test: QualityTest, row: Row, _scope: Scope) -> bool:
    column = {"blur": "acutance", "outliers": "outlier_distance"}[test.of]
    value, values = row.get(column), [np.float32(each) for each in listed(test.value)]
    if value is None or test.op == "missing":
        return value is None and test.op == "missing"
    match test.op:
        case "lt":
            return bool(value < values[0])
        case "le":
            return bool(value <= values[0])
        case "gt":
            return bool(value > values[0])
        case "ge":
            return bool(value >= values[0])
        case _:
            return bool(values[0] <= value <= values[-1])


def _duplicates(test: DuplicatesTest, row: Row, _scope: Scope) -> bool:
    return row.get(test.column) is not None


def _uniqueness(test: UniquenessTest, row: Row, _scope: Scope) -> bool:
    score = row.get("uniqueness")
    return score is not None and bool(score >= np.float32(test.value))


def _file_name(test: FileNameTest, row: Row, _scope: Scope) -> bool:
    path = row.get("path")
    return path is not None and _matches(test.op, path.rstrip("/").rpartition("/")[2], test.value)


def _folder(test: FolderTest, row: Row, _scope: Scope) -> bool:
    if (path := row.get("path")) is None:
        return False
    folder = path.rstrip("/").rpartition("/")[0]
    if isinstance(test.value, list):
        return _matches(test.op, folder, test.value)
    names, value = _lower(folder).split("/"), _lower(test.value)
    if test.op == "starts":
        first = value.rstrip("/").split("/") if value.rstrip("/") else []
        return names[: len(first)] == first
    if test.op == "ends":
        last = value.strip("/").split("/") if value.strip("/") else []
        return len(last) <= len(names) and names[len(names) - len(last) :] == last
    return _matches(test.op, folder, test.value)


def _media(test: MediaTest, row: Row, _scope: Scope) -> bool:
    kind = row.get("kind") or "image"
    return kind == test.value or (test.value == "video" and kind == "video_frame")


def _missing(test: MissingTest, row: Row, _scope: Scope) -> bool:
    return (row.get("missing_since") is not None) == test.value


def _content(test: ContentTest, row: Row, _scope: Scope) -> bool:
    return row.get("content") in listed(test.value)


def _ids(test: IdsTest, row: Row, _scope: Scope) -> bool:
    return row.get("media_id") in listed(test.value)


def _cluster(test: ClusterTest, row: Row, scope: Scope) -> bool:
    numbers = {level: row.get(f"cluster_{level}") for level in range(CLUSTER_LEVELS)}
    ids = {
        group_id(scope.dataset_id, Kind.CLUSTER, level, number)
        for level, number in numbers.items()
        if number is not None
    }
    return bool((ids | {row.get("video_id")}) & set(listed(test.value)))


def _size(test: SizeTest, row: Row, _scope: Scope) -> bool:
    return _ordered(test, row.get(test.column))


def _confidence(test: ConfidenceTest, row: Row, _scope: Scope) -> bool:
    return _ordered(test, row.get("confidence"))


def _ordered(test: OrderedTest, value: Any) -> bool:
    return value is not None and test.op != "missing" and in_order(value, test.op, test.spans)


def _date_added(test: DateAddedTest, row: Row, scope: Scope) -> bool:
    time = scope.added.get(row.get("batch", -1))
    return time is not None and in_order(microseconds(time), test.op, test.spans)


def _batch(test: BatchTest, row: Row, _scope: Scope) -> bool:
    return row.get("batch") in listed(test.value)


def _source(test: SourceTest, row: Row, _scope: Scope) -> bool:
    return row.get("source") in listed(test.value)


def _objects(test: ObjectsTest, row: Row, _scope: Scope) -> bool:
    return sum(_counts(test, each) for each in row.get("objects") or ()) >= test.min_count


def _counts(test: ObjectsTest, row: Row) -> bool:
    """Return whether an object counts for a test of the media item that it is in."""
    confidence = row.get("confidence")
    is_sure = test.confidence_min is None or (confidence is not None and confidence >= test.confidence_min)
    return is_sure and (test.names is None or bool(set(row.get("labels") or ()) & set(test.names)))


def _field(test: FieldTest, row: Row, scope: Scope) -> bool:
    query = test.query(scope, "$")
    value = row.get(query.field.column)
    values = [] if value is None else value if query.field.is_multi else [value]
    return not values if query.op == "missing" else any(_one_value(query, each) for each in values)


def _one_value(query: FieldQuery, value: Any) -> bool:
    if query.op == "one_of":
        return value in (query.texts or [start for start, _ in query.spans])
    if query.field.type in (FieldType.FLOAT, FieldType.DATETIME):
        number = microseconds(value) if isinstance(value, datetime) else value
        return in_order(number, query.op, query.spans)  # type: ignore[arg-type] # the op is one of its type
    return _matches(query.op, value, query.texts[0])


def _matches(op: str, text: str, value: str | list[str]) -> bool:
    if isinstance(value, list):
        assert op == "one_of"
        return text in value
    match op:
        case "is":
            return text == value
        case "contains":
            return _lower(value) in _lower(text)
        case "starts":
            return _lower(text).startswith(_lower(value))
        case "ends":
            return _lower(text).endswith(_lower(value))
        case _:
            raise AssertionError(op)


def _lower(text: str) -> str:
    """Return a text in lower case as DuckDB 2.0 has it: each letter by itself, where Python looks around a sigma."""
    return "".join("i" if each == "İ" else each.lower() for each in text)


TESTS: Mapping[type[KeyTest], Callable[[Any, Row, Scope], bool]] = {
    LabelsTest: _labels,
    TagsTest: _tags,
    IssuesTest: _issues,
    QualityTest: _quality,
    DuplicatesTest: _duplicates,
    ClusterTest: _cluster,
    IdsTest: _ids,
    UniquenessTest: _uniqueness,
    FieldTest: _field,
    FileNameTest: _file_name,
    FolderTest: _folder,
    MediaTest: _media,
    MissingTest: _missing,
    ContentTest: _content,
    SizeTest: _size,
    DateAddedTest: _date_added,
    BatchTest: _batch,
    ObjectsTest: _objects,
    ConfidenceTest: _confidence,
    SourceTest: _source,
}
"""The meaning of each test but the searches, whose results the caller gives."""
