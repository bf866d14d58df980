"""The meaning of filters in plain Python, against which the compiler is tested."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, assert_never

import numpy as np

from framedex.records import FieldType
from framedex.vql.compile import duplicate_level
from framedex.vql.leaves import (
    UNTAGGED,
    FieldTest,
    FolderTest,
    IssuesTest,
    LabelsTest,
    ObjectsTest,
    SearchTest,
    SizeTest,
    TagsTest,
)
from framedex.vql.model import (
    AnyOf,
    Batch,
    Confidence,
    CustomField,
    DateAdded,
    Duplicates,
    Element,
    FileName,
    Filter,
    Folder,
    Issues,
    Labels,
    MediaKind,
    Not,
    Objects,
    Similarity,
    Size,
    Source,
    Tags,
    Text,
    Uniqueness,
    children,
)
from framedex.vql.scope import FieldQuery, Scope, microseconds
from framedex.vql.values import in_order, listed

Row = Mapping[str, Any]
Found = Mapping[SearchTest, Collection[int]]
_ANYWHERE = Scope()


def evaluate(vql: Filter | Collection[Element], row: Row, scope: Scope = _ANYWHERE, found: Found | None = None) -> bool:
    """Return whether a row passes a filter.

    Args:
        vql: a parsed filter.
        row: values by column, and its number as ``_rowid``; missing and None are the same. Of a media item, ``objects``
            are the rows of those in it; of an object, ``parent`` is the row of the media item that it is in.
        scope: what the names in the filter stand for; its columns say nothing here.
        found: the numbers of the rows that searches found, by test.
    """
    return all(_holds(element, row, scope, found or {}) for element in vql)


def _holds(  # noqa: PLR0912 - a case for each key
    element: Element, row: Row, scope: Scope, found: Found
) -> bool:
    if scope.media is not None and isinstance(element, Tags | CustomField | Objects):
        return _holds(element, row["parent"], scope.media, found)
    match element:
        case Text(text=search) | Similarity(similarity=search):
            return row.get("_rowid") in found[search]
        case Labels(labels=test):
            return _labels(test, row)
        case Tags(tags=test):
            return _tags(test, row, scope)
        case Issues(issues=test):
            return _issues(test, row)
        case Duplicates(duplicates=test):
            return row.get(f"duplicate_{duplicate_level(test.value)}") is not None
        case Uniqueness(uniqueness=test):
            score = row.get("uniqueness")
            return score is not None and bool(score >= np.float32(test.value))
        case CustomField(field=test):
            return _field(test, row, scope)
        case FileName(file_name=test):
            path = row.get("path")
            return path is not None and _matches(test.op, path.rstrip("/").rpartition("/")[2], test.value)
        case Folder(folder=test):
            path = row.get("path")
            return path is not None and _folder(test, path.rstrip("/").rpartition("/")[0])
        case MediaKind(media=test):
            kind = row.get("kind") or "image"
            return kind == test.value or (test.value == "video" and kind == "video_frame")
        case Size(size=test):
            return _size(test, row)
        case DateAdded(date_added=test):
            time = scope.added.get(row.get("batch", -1))
            return time is not None and in_order(microseconds(time), test.op, test.spans)
        case Batch(batch=test):
            return row.get("batch") in listed(test.value)
        case Objects(objects=test):
            return sum(_counts(test, each) for each in row.get("objects") or ()) >= test.min_count
        case Confidence(confidence=test):
            sure = row.get("confidence")
            return sure is not None and in_order(sure, test.op, test.spans)
        case Source(source=test):
            return row.get("source") in listed(test.value)
        case AnyOf():
            return any(_holds(each, row, scope, found) for each in element.any)
        case Not():
            return not evaluate(children(element), row, scope, found)
        case _:
            assert_never(element)


def _labels(test: LabelsTest, row: Row) -> bool:
    found = bool(set(row.get("labels") or ()) & set(test.names))
    return found != (test.op in ("is_not", "not_one_of"))


def _tags(test: TagsTest, row: Row, scope: Scope) -> bool:
    has = set(row.get("tags") or ())
    return bool(has & set(test.numbers(scope.tags))) or (UNTAGGED in test.names and not has)


def _issues(test: IssuesTest, row: Row) -> bool:
    value = row.get(f"issue_{test.value}")
    found = value is not None and bool(np.float32(test.confidence_min) <= value <= np.float32(test.confidence_max))
    return found != (test.mode == "out")


def _counts(test: ObjectsTest, row: Row) -> bool:
    """Return whether an object counts for a test of the media item that it is in."""
    sure = row.get("confidence")
    is_sure = test.confidence_min is None or (sure is not None and sure >= test.confidence_min)
    return is_sure and (test.names is None or bool(set(row.get("labels") or ()) & set(test.names)))


def _size(test: SizeTest, row: Row) -> bool:
    value = row.get(test.column)
    return value is not None and in_order(value, test.op, test.spans)


def _folder(test: FolderTest, folder: str) -> bool:
    names, value = _small(folder).split("/"), _small(test.value)
    if test.op == "starts":
        wanted = value.rstrip("/").split("/") if value.rstrip("/") else []
        return names[: len(wanted)] == wanted
    if test.op == "ends":
        wanted = value.strip("/").split("/") if value.strip("/") else []
        return names[len(names) - len(wanted) :] == wanted if len(wanted) <= len(names) else False
    return _matches(test.op, folder, test.value)


def _field(test: FieldTest, row: Row, scope: Scope) -> bool:
    query = scope.field(test, "$")
    value = row.get(query.known.column)
    values = [] if value is None else value if query.known.is_multi else [value]
    return not values if query.op == "missing" else any(_one_value(query, each) for each in values)


def _one_value(query: FieldQuery, value: Any) -> bool:
    if query.op == "one_of":
        return value in (query.texts or [start for start, _ in query.spans])
    if query.known.type in (FieldType.FLOAT, FieldType.DATETIME):
        number = microseconds(value) if isinstance(value, datetime) else value
        return in_order(number, query.op, query.spans)
    return _matches(query.op, value, query.texts[0])


def _matches(op: str, text: str, value: str) -> bool:
    match op:
        case "is":
            return text == value
        case "contains":
            return _small(value) in _small(text)
        case "starts":
            return _small(text).startswith(_small(value))
        case _:
            return _small(text).endswith(_small(value))


def _small(text: str) -> str:
    """Return a text in small letters as DuckDB 2.0 has them: each by itself, where Python looks around a sigma."""
    return "".join("i" if each == "İ" else each.lower() for each in text)
