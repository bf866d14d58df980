"""Places of true values in matrices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.core.masks import true_places
from tests.laws import examples

ORDERS = ("C", "F", "strided")  # how values lie in memory


@examples(80)
@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1), st.sampled_from(ORDERS), st.integers(0, 99))
def test_true_places__are_those_of_nonzero(n_rows: int, n_columns: int, share: float, order: str, seed: int) -> None:
    """Rows and columns are those of ``np.nonzero``, in its order, however the matrix lies in memory."""
    mask = np.random.default_rng(seed).random((n_rows, n_columns)) < share
    if order == "F":
        mask = np.asfortranarray(mask)
    elif order == "strided":
        mask = np.repeat(mask, 2, axis=1)[:, ::2]
    for found, expected in zip(true_places(mask), np.nonzero(mask), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
