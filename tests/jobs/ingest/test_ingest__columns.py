"""Arrays become Arrow columns as lists of Python numbers would."""

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from framedex.jobs.ingest.rows import lists_to_arrow, vectors_to_arrow
from tests.laws import examples

_NUMBERS = st.floats(width=32, allow_nan=False)


@examples(50)
@given(st.lists(st.none() | st.lists(_NUMBERS, max_size=6)))
def test_lists_to_arrow__any_lengths(lists: list[list[float] | None]) -> None:
    """Lists of any length, also none and empty ones, are the rows of the column."""
    arrays = [None if each is None else np.array(each, np.float32).reshape(-1, 1) for each in lists]
    column: Any = lists_to_arrow(arrays)
    assert column.type == pa.list_(pa.float32())
    assert column.to_pylist() == lists


@examples(50)
@given(st.lists(st.none() | st.lists(_NUMBERS, min_size=3, max_size=3)))
def test_vectors_to_arrow__with_missing_ones(vectors: list[list[float] | None]) -> None:
    """Vectors of one length are the rows of the column, and missing ones are null."""
    arrays = [None if each is None else np.array(each, np.float32) for each in vectors]
    assert vectors_to_arrow(arrays, 3).to_pylist() == vectors
