"""Random filters and random rows."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from framedex.records import DUPLICATE_LEVELS, IssueType

NAMES = ("cat", "dog", "", "it's", 'a"b', "$1", "naïve", "%")
TAGS = {"7d1f": 0, "naïve": 0, "keep": 1, "'; --": 2}
"""Numbers of tags by id and by name; ``gone`` is none of them, and ``untagged`` means that there is none."""
ISSUES = (IssueType.BLUR, IssueType.DARK, IssueType.DUPLICATES)
LEVELS = range(len(DUPLICATE_LEVELS))

shares = st.one_of(st.sampled_from((0.0, 0.25, 0.5, 0.7, 1.0)), st.floats(0, 1))
stored_shares = st.one_of(st.sampled_from((0.0, 0.25, 0.5, float(np.float32(0.7)), 1.0)), st.floats(0, 1, width=32))
names = st.sampled_from(NAMES)


def _labels() -> st.SearchStrategy[dict[str, Any]]:
    value = st.one_of(names, st.lists(names, max_size=3))
    ops = st.sampled_from(("is", "is_not", "one_of", "not_one_of"))
    return st.fixed_dictionaries({"op": ops, "value": value}).map(lambda test: {"labels": test})


def _tags() -> st.SearchStrategy[dict[str, Any]]:
    one = st.sampled_from((*TAGS, "gone", "untagged"))
    value = st.one_of(one, st.lists(one, max_size=3))
    return value.map(lambda tags: {"tags": {"op": "is", "value": tags}})


def _issues() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"op": st.just("issue"), "value": st.sampled_from([issue.value for issue in ISSUES])},
        optional={"mode": st.sampled_from(("in", "out")), "confidence_min": shares, "confidence_max": shares},
    ).map(lambda test: {"issues": test})


def _single(key: str, values: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, Any]]:
    return values.map(lambda value: {key: {"op": key, "value": value}})


leaves = st.one_of(
    _labels(),
    _tags(),
    _issues(),
    _single("uniqueness", shares),
    _single("duplicates", st.one_of(shares, st.sampled_from(DUPLICATE_LEVELS), st.floats(0.95, 1.0))),
)
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

_maybe_share = st.one_of(st.none(), stored_shares)
rows = st.fixed_dictionaries(
    {
        "labels": st.one_of(st.none(), st.lists(names, max_size=3, unique=True)),
        "tags": st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=3, unique=True)),
        "uniqueness": _maybe_share,
        **{f"issue_{issue}": _maybe_share for issue in ISSUES},
        **{f"duplicate_{level}": st.one_of(st.none(), st.integers(0, 3)) for level in LEVELS},
    }
)
SCHEMA = pa.schema(
    [
        pa.field("labels", pa.list_(pa.string())),
        pa.field("tags", pa.list_(pa.int32())),
        pa.field("uniqueness", pa.float32()),
        *(pa.field(f"issue_{issue}", pa.float32()) for issue in ISSUES),
        *(pa.field(f"duplicate_{level}", pa.int32()) for level in LEVELS),
    ]
)
