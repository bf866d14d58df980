"""Percentile ranks equal mid-ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from framedex.analysis.ranks import Values, percentiles

VALUES = st.one_of(st.sampled_from([0.0, 0.25, 1.0]), st.floats(-1e3, 1e3, width=32))
MEASURED = hnp.arrays(np.float32, st.integers(2, 40), elements=VALUES)


@given(MEASURED)
def test_percentiles__are_ranks_in_the_middle_of_equals(measured: Values) -> None:
    """Percentiles are SciPy's mean ranks, scaled to 0 to 100."""
    from scipy.stats import rankdata

    expected = 100 * (rankdata(measured, "average") - 1) / (len(measured) - 1)
    assert percentiles(measured, measured, above=True) == pytest.approx(expected, rel=1e-6)


@given(MEASURED)
def test_percentiles__turn_with_the_direction(measured: Values) -> None:
    """If low values are bad, percentiles are those of the negated values, and both directions add up to 100."""
    low = percentiles(measured, measured, above=False)
    assert np.array_equal(low, percentiles(-measured, -measured, above=True))
    assert low + percentiles(measured, measured, above=True) == pytest.approx(100)


def test_percentiles__of_a_known_list() -> None:
    """The worst value has 100, the best 0, equal values share their mean rank, and a missing value has none."""
    measured = np.array([4, 1, 2, 2, 3], dtype=np.float32)
    values = np.array([4, 2, np.nan, 1], dtype=np.float32)
    found = percentiles(values, measured, above=True)
    assert found.dtype == np.float32
    assert np.array_equal(found, np.array([100, 37.5, np.nan, 0], dtype=np.float32), equal_nan=True)


def test_percentiles__of_one_value() -> None:
    """A single measured value is the worst; equal values are all at 50."""
    one, three = np.ones(1, dtype=np.float32), np.ones(3, dtype=np.float32)
    assert percentiles(one, one, above=False).tolist() == [100]
    assert percentiles(three, three, above=True).tolist() == [50, 50, 50]


def test_percentiles__of_a_million() -> None:
    """The two worst of a million values have different percentiles."""
    measured = np.arange(1_000_000, dtype=np.float32)
    second, worst = percentiles(measured[-2:], measured, above=True)
    assert second < worst == 100
