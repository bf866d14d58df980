"""Columns of whole blocks equal values computed row by row."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.core.ids import Kind, group_id
from framedex.export.columns import EXPORTED, column_of
from framedex.issue_types import issue_types
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.export.test_locations import DATASET, media_of

ISSUES = [issue.confidence_column for issue in issue_types().values()]
SURE = st.none() | st.just(float("nan")) | st.floats(0, 1, width=32)
NUMBERS = st.none() | st.integers(0, 2**31 - 1)
ROWS = st.lists(
    st.tuples(st.tuples(*[SURE] * len(ISSUES)) | st.just((None,) * len(ISSUES)), NUMBERS, NUMBERS),
    min_size=1,
    max_size=9,
)


def block_of(rows: list[Any]) -> pa.Table:
    """Return rows of (confidence of each issue, duplicate group, cluster) as the table stores them, in two chunks."""
    columns = {
        **{name: pa.array([row[0][place] for row in rows], pa.float32()) for place, name in enumerate(ISSUES)},
        DUPLICATES[0]: pa.array([row[1] for row in rows], pa.int32()),
        CLUSTERS[0]: pa.array([row[2] for row in rows], pa.int32()),
    }
    table = pa.table(columns)
    return pa.concat_tables([table.slice(0, 2), table.slice(2)])


def issue(kind: str, sure: float, number: int | None) -> dict[str, Any]:
    """Return an issue of the export in its documented form."""
    is_duplicate = kind == "duplicates"
    in_group = is_duplicate and number is not None
    return {
        "issue_type": kind,
        "confidence": sure,
        "duplicate_group_id": group_id(DATASET, Kind.DUPLICATE_GROUP, 0, number or 0) if in_group else None,
        "duplicate_threshold": float(np.float32(DUPLICATE_LEVELS[0])) if is_duplicate else None,
    }


@given(ROWS)
@example([((None,) * len(ISSUES), None, None)])
@example([((1.0,) * len(ISSUES), 0, 2**31 - 1)] * 9)
def test_issues__law(rows: list[Any]) -> None:
    """Each row has its issues with a confidence, in the order of their types."""
    found = column_of(media_of(), block_of(rows), EXPORTED.field("issues"))
    found.validate(full=True)
    assert found.to_pylist() == [
        [
            issue(kind, sure, number)
            for kind, sure in zip(issue_types(), all_sure, strict=True)
            if sure is not None and not math.isnan(sure)
        ]
        for all_sure, number, _ in rows
    ]


@given(ROWS)
def test_cluster_ids__law(rows: list[Any]) -> None:
    """Each row has the id of its cluster, or null."""
    found = column_of(media_of(), block_of(rows), EXPORTED.field("cluster_id"))
    found.validate(full=True)
    assert found.to_pylist() == [
        None if number is None else group_id(DATASET, Kind.CLUSTER, 0, number) for _, _, number in rows
    ]
