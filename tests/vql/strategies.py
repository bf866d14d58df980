"""Random filters and random rows."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from framedex.core.ids import Kind, group_id
from framedex.records import CLUSTER_LEVELS, DUPLICATE_LEVELS, FieldType
from framedex.storage.media_rows import MISSING_SINCE
from framedex.vql import CustomField, Scope
from framedex.vql.elements import AnyOf, Element, Not
from framedex.vql.key_test import KeyTest
from framedex.vql.values import moment_span

NAMES = ("cat", "dog", "", "it's", 'a"b', "$1", "naïve", "%", "a;b", "nul\0here", "🐈‍⬛", "קטע", "ΣΑΣ", "İ", "_", "\\")
TAGS = {"7d1f": 0, "naïve": 0, "keep": 1, "'; --": 2}
"""Numbers of tags by id and by name; ``gone`` is none of them, and ``untagged`` means that there is none."""
ISSUES = ("blur", "dark", "duplicates")
VALUES = {"blur": "acutance", "outliers": "outlier_distance"}
"""Columns of values by issue type."""
LEVELS = range(len(DUPLICATE_LEVELS))
OPTIONS = ("low", "it's", "🐈‍⬛")
FIELDS = {
    "note": CustomField("field_0", FieldType.STRING),
    "notes": CustomField("field_1", FieldType.STRING, is_multi=True),
    "price; --": CustomField("field_2", FieldType.FLOAT),
    "prices": CustomField("field_3", FieldType.FLOAT, is_multi=True),
    "when": CustomField("field_4", FieldType.DATETIME),
    "times": CustomField("field_5", FieldType.DATETIME, is_multi=True),
    "grade": CustomField("field_6", FieldType.ENUM, options=OPTIONS),
    "grades": CustomField("field_7", FieldType.ENUM, is_multi=True, options=OPTIONS),
    "page": CustomField("field_8", FieldType.LINK),
    "pages": CustomField("field_9", FieldType.LINK, is_multi=True),
}
ADDED = {0: datetime(2024, 5, 17, 23, 59, 59, 999999, tzinfo=UTC), 2: datetime(2024, 5, 18, tzinfo=UTC)}
"""When batches were added; of batch 1 that is not known."""

shares = st.one_of(st.sampled_from((0.0, 0.25, 0.5, 0.7, 1.0)), st.floats(0, 1))
stored_shares = st.one_of(st.sampled_from((0.0, 0.25, 0.5, float(np.float32(0.7)), 1.0)), st.floats(0, 1, width=32))
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
# Few letters make texts that are found in each other.
parts = st.one_of(st.text("aAéÉΣσςİi", max_size=2), st.text("a'\0🐈", max_size=3), unicode)
names = st.one_of(st.sampled_from(NAMES), parts)
paths = st.lists(st.one_of(st.sampled_from(["a", "A", "ab", "a", "", "https:"]), parts), max_size=4).map("/".join)
_ORDER = ("is", "lt", "le", "gt", "ge")
_MEDIA = ("image", "video", "video_frame")
_KINDS = ("photo", "page", "drawing", "mask", "screenshot", "other")
_SIZES = ("size_bytes", "width", "height")
_TEXT = ("is", "contains", "starts", "ends")
_RANGES = [
    ("2024-05-17", "2024-05-18T00:00:00Z"),
    ("0001-01-01", "9999-12-31"),
    ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-12:00"),
]
numbers = st.one_of(
    st.sampled_from((0.0, -0.0, 0.1, 5e-324, 1e300)),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
)
measured = st.one_of(shares, st.sampled_from((-0.0, 5e-324, -1e38, 1e38, 0.1, 1)), st.floats(-2, 2))
sizes = st.one_of(st.integers(0, 3), st.integers(0, 2**53))
_zones = st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-12))])
_near = st.integers(-1, 1).map(lambda us: ADDED[2] + timedelta(microseconds=us))
_instants = st.one_of(_near, st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC)))
moments = st.one_of(
    st.sampled_from([text for pair in _RANGES for text in pair]),
    st.dates().map(lambda day: day.isoformat()),
    st.builds(lambda time, zone: time.astimezone(zone or UTC).replace(tzinfo=zone).isoformat(), _instants, _zones),
)


def _elements(key: str, **parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(parts).map(lambda test: {key: test})


def _ordered(key: str, values: st.SearchStrategy[Any], rank: Any, **others: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return tests of what has an order: of one value, and between two in the order of *rank*."""
    ranges = st.lists(values, min_size=2, max_size=2).map(lambda pair: sorted(pair, key=rank))
    return st.one_of(
        _elements(key, op=st.sampled_from(_ORDER), value=values, **others),
        _elements(key, op=st.just("between"), value=ranges, **others),
    )


def _labels() -> st.SearchStrategy[dict[str, Any]]:
    value = st.one_of(names, st.lists(names, max_size=3), st.just([str(number) for number in range(200)]))
    return _elements("labels", op=st.sampled_from(("is", "is_not", "one_of", "not_one_of")), value=value)


def _tags() -> st.SearchStrategy[dict[str, Any]]:
    one = st.sampled_from((*TAGS, "gone", "untagged", "basket"))
    return _elements("tags", op=st.just("is"), value=st.one_of(one, st.lists(one, max_size=3)))


def _issues() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"op": st.just("issue"), "value": st.sampled_from([*ISSUES, "normal"])},
        optional={"mode": st.sampled_from(("in", "out")), "confidence_min": shares, "confidence_max": shares},
    ).map(lambda test: {"issues": test})


def _quality(name: str) -> st.SearchStrategy[dict[str, Any]]:
    of = {"of": st.just(name)}
    return st.one_of(_ordered("quality", measured, None, **of), _elements("quality", op=st.just("missing"), **of))


def _objects() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"op": st.just("has")},
        optional={
            "value": st.one_of(names, st.lists(names, max_size=3)),
            "min_count": st.integers(1, 3),
            "confidence_min": shares,
        },
    ).map(lambda test: {"objects": test})


def _single(key: str, values: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, Any]]:
    return values.map(lambda value: {key: {"op": key, "value": value}})


def _field(name: str, known: CustomField) -> st.SearchStrategy[dict[str, Any]]:
    named = {"name": st.just(name)}
    missing = _elements("field", op=st.just("missing"), **named)
    texts: st.SearchStrategy[str] = names
    ops: tuple[str, ...] = _TEXT
    match known.type:
        case FieldType.FLOAT:
            several = _elements("field", op=st.just("one_of"), value=st.lists(numbers, max_size=3), **named)
            return st.one_of(missing, several, _ordered("field", numbers, None, **named))
        case FieldType.DATETIME:
            return st.one_of(missing, _ordered("field", moments, moment_span, **named))
        case FieldType.ENUM:
            texts, ops = st.sampled_from(OPTIONS), ("is",)
    several = _elements("field", op=st.just("one_of"), value=st.lists(texts, max_size=3), **named)
    return st.one_of(missing, several, _elements("field", op=st.sampled_from(ops), value=texts, **named))


DATASET_ID = "4dcb2f4e-6e0a-4c39-9d5a-0d7a3cfd2b51"
_VIDEOS = ("v0", "it's")
_ids = st.one_of(st.integers(0, 9).map(str), names)
_several_ids = st.lists(_ids, max_size=3)
_MANY = ["1", "3", *(f"no id {number}" for number in range(200))]
_clusters = st.one_of(
    st.builds(partial(group_id, DATASET_ID, Kind.CLUSTER), st.sampled_from((0, 4, CLUSTER_LEVELS)), st.integers(0, 3)),
    st.just(group_id(DATASET_ID, Kind.DUPLICATE_GROUP, 0, 1)),
    st.just(group_id("another dataset", Kind.CLUSTER, 0, 1)),
    st.sampled_from(_VIDEOS),
    names,
)
_coordinates = st.floats(-1e6, 1e6)
_searched = st.sampled_from(("red car", "it's", "🐈‍⬛"))
KINDS: dict[str, tuple[st.SearchStrategy[dict[str, Any]], tuple[str, ...]]] = {
    "labels": (_labels(), ("labels",)),
    "tags": (_tags(), ("tags", "in_basket")),
    "issues": (_issues(), tuple(f"issue_{issue}" for issue in ISSUES)),
    **{f"quality of {name}": (_quality(name), (column,)) for name, column in VALUES.items()},
    "uniqueness": (_single("uniqueness", shares), ("uniqueness",)),
    "duplicates": (
        _single("duplicates", st.one_of(st.sampled_from(DUPLICATE_LEVELS), st.floats(DUPLICATE_LEVELS[0], 1.0))),
        tuple(f"duplicate_{level}" for level in LEVELS),
    ),
    **{f"field {name}": (_field(name, known), (known.column,)) for name, known in FIELDS.items()},
    "file_name": (_elements("file_name", op=st.sampled_from(_TEXT), value=st.one_of(parts, paths)), ("path",)),
    "file_name of several": (
        _elements("file_name", op=st.just("one_of"), value=st.lists(st.one_of(parts, paths), max_size=3)),
        ("path",),
    ),
    "folder of several": (_elements("folder", op=st.just("one_of"), value=st.lists(paths, max_size=3)), ("path",)),
    "folder": (_elements("folder", op=st.sampled_from(_TEXT), value=paths), ("path",)),
    "media": (_elements("media", op=st.just("is"), value=st.sampled_from(_MEDIA)), ("kind",)),
    "content": (_elements("content", op=st.just("is"), value=st.sampled_from(_KINDS)), ("content",)),
    "content of several": (
        _elements("content", op=st.just("one_of"), value=st.lists(st.sampled_from(_KINDS), max_size=3)),
        ("content",),
    ),
    "missing": (_elements("missing", op=st.just("is"), value=st.booleans()), ("missing_since",)),
    "size": (_ordered("size", sizes, None, of=st.sampled_from(("bytes", "width", "height"))), _SIZES),
    "date_added": (_ordered("date_added", moments, moment_span), ("batch",)),
    "batch": (_elements("batch", op=st.just("is"), value=st.integers(0, 3)), ("batch",)),
    "batch of several": (
        _elements("batch", op=st.just("one_of"), value=st.lists(st.integers(0, 3), max_size=3)),
        ("batch",),
    ),
    "objects": (_objects(), ("objects",)),
    "confidence": (_ordered("confidence", shares, None), ("confidence",)),
    "source": (_elements("source", op=st.just("is"), value=names), ("source",)),
    "source of several": (_elements("source", op=st.just("one_of"), value=st.lists(names, max_size=3)), ("source",)),
    "ids": (_elements("ids", op=st.just("is"), value=_ids), ()),
    "ids of several": (_elements("ids", op=st.just("one_of"), value=st.one_of(_several_ids, st.just(_MANY))), ()),
    "cluster": (_elements("cluster", op=st.just("is"), value=_clusters), ("cluster_0", "cluster_4", "video_id")),
    "cluster of several": (
        _elements("cluster", op=st.just("one_of"), value=st.lists(_clusters, max_size=3)),
        ("cluster_0", "cluster_4", "video_id"),
    ),
    "text": (_elements("text", op=st.sampled_from(("fts", "semantic")), value=_searched), ()),
    "similarity": (
        _elements("similarity", op=st.sampled_from(("media", "upload")), value=_searched, threshold=st.floats(0, 2)),
        (),
    ),
    "map_region": (
        _elements(
            "map_region",
            op=st.just("inside"),
            value=st.lists(st.tuples(_coordinates, _coordinates).map(list), min_size=3, max_size=5),
        ),
        (),
    ),
}
"""Tests by kind, which begins with the key, each with the columns that it reads."""
leaves = st.one_of(*(tests for tests, _ in KINDS.values()))
elements = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: {"any": parts}),
        st.lists(inner, max_size=3).map(lambda parts: {"not": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)
filters = st.lists(elements, max_size=3)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def _values(known: CustomField) -> st.SearchStrategy[Any]:
    """Return the values of a custom field. Numbers are finite: others are refused where they come in."""
    one: st.SearchStrategy[Any] = {
        FieldType.FLOAT: numbers.map(float),
        FieldType.DATETIME: _instants,
        FieldType.ENUM: st.sampled_from(OPTIONS),
    }.get(known.type, names)
    return _maybe(st.lists(one, max_size=3) if known.is_multi else one)


_maybe_share = _maybe(stored_shares)
_CELLS = {
    "labels": _maybe(st.lists(names, max_size=3, unique=True)),
    "tags": _maybe(st.lists(st.integers(0, 3), max_size=3, unique=True)),
    "in_basket": st.sampled_from((None, True)),
    "content": _maybe(st.sampled_from(_KINDS)),
    "missing_since": st.sampled_from((None, datetime(2026, 5, 17, tzinfo=UTC))),
    "uniqueness": _maybe_share,
    **dict.fromkeys(VALUES.values(), _maybe(st.one_of(stored_shares, st.floats(-2, 2, width=32)))),
    **{f"issue_{issue}": _maybe_share for issue in ISSUES},
    **{f"duplicate_{level}": _maybe(st.integers(0, 3)) for level in LEVELS},
    **{known.column: _values(known) for known in FIELDS.values()},
    **dict.fromkeys(("cluster_0", "cluster_4"), _maybe(st.integers(0, 3))),
    "video_id": _maybe(st.sampled_from(_VIDEOS)),
    "path": _maybe(paths),
    "kind": _maybe(st.sampled_from(_MEDIA)),
    **dict.fromkeys(_SIZES, _maybe(sizes)),
    "batch": _maybe(st.integers(0, 3)),
    "confidence": _maybe(shares),
    "source": _maybe(names),
    "objects": _maybe(
        st.lists(
            st.fixed_dictionaries(
                {"labels": _maybe(st.lists(st.sampled_from(NAMES[:3]), max_size=2)), "confidence": _maybe(shares)}
            ),
            max_size=4,
        )
    ),
}
rows = st.fixed_dictionaries(_CELLS)
"""Rows of media, with what is known of the ``objects`` in them."""


@st.composite
def single_tests(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a filter of one test, and rows with the columns that it looks at."""
    tests, columns = draw(st.sampled_from(list(KINDS.values())))
    cells = st.fixed_dictionaries({name: _CELLS[name] for name in columns})
    return [draw(tests)], draw(st.lists(cells, min_size=1, max_size=8))


_STORED = {FieldType.FLOAT: pa.float64(), FieldType.DATETIME: pa.timestamp("us", tz="UTC")}


def _column(known: CustomField) -> pa.Field:
    kind = _STORED.get(known.type, pa.string())
    return pa.field(known.column, pa.list_(kind) if known.is_multi else kind)


SCHEMA = pa.schema(
    [
        pa.field("labels", pa.list_(pa.string())),
        pa.field("tags", pa.list_(pa.int32())),
        pa.field("in_basket", pa.bool_()),
        MISSING_SINCE,
        pa.field("uniqueness", pa.float32()),
        *(pa.field(name, pa.float32()) for name in VALUES.values()),
        *(pa.field(f"issue_{issue}", pa.float32()) for issue in ISSUES),
        *(pa.field(f"duplicate_{level}", pa.int32()) for level in LEVELS),
        *(pa.field(name, pa.int32()) for name in ("cluster_0", "cluster_4")),
        pa.field("video_id", pa.string()),
        *(_column(known) for known in FIELDS.values()),
        *(pa.field(name, pa.string()) for name in ("path", "kind")),
        *(pa.field(name, pa.int64()) for name in _SIZES),
        pa.field("batch", pa.int32()),
        pa.field("confidence", pa.float64()),
        pa.field("source", pa.string()),
        pa.field("content", pa.string()),
        pa.field("media_id", pa.string()),
    ]
)
SCOPE = Scope(SCHEMA.names, TAGS, FIELDS, ADDED, dataset_id=DATASET_ID)


def to_json(elements: Iterable[Element]) -> list[dict[str, Any]]:
    """Return the JSON of elements, without the fields that have their defaults."""
    return [_to_json(element) for element in elements]


def _to_json(element: Element) -> dict[str, Any]:
    match element:
        case AnyOf():
            return {"any": to_json(element.elements)}
        case Not():
            negated = element.negated
            return {"not": to_json(negated) if isinstance(negated, tuple) else _to_json(negated)}
        case KeyTest():
            return {element.key: element.model_dump(mode="json", exclude_unset=True)}
        case _:
            assert_never(element)
