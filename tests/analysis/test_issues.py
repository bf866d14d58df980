"""Confidences of issues, and sizes that are unlike the others."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.issues import RULES, confidence, size_distance
from framedex.records import IssueType
from tests.laws import examples

LIMITED = [(issue, rule) for issue, rule in RULES.items() if rule.threshold is not None]


def values_of(*values: float) -> npt.NDArray[np.float32]:
    """Return measured values."""
    return np.array(values, dtype=np.float32)


def test_rules__every_issue_that_is_measured_has_one() -> None:
    """All issues but the one that comes from decoding have a rule."""
    assert set(IssueType) - set(RULES) == {IssueType.CORRUPTED}
    assert all(rule.meaning for rule in RULES.values())


@pytest.mark.parametrize("issue", RULES)
def test_confidence__half_at_the_limit_and_one_at_the_worst(issue: IssueType) -> None:
    """Just beyond the limit it is 0.5, at the most extreme value 1, and on the good side there is no issue."""
    rule = RULES[issue]
    limit = 0.4 if rule.threshold is None else rule.threshold
    step = 2e-5 if rule.above else -2e-5
    at_limit, beyond, within = confidence(values_of(limit + step, limit + 3 * step, limit - step), rule, limit).tolist()
    assert at_limit == pytest.approx(0.5, abs=5e-3)
    assert 0.5 <= at_limit <= beyond
    assert np.isnan(within)
    if rule.worst is not None:
        assert confidence(values_of(rule.worst), rule, limit).tolist() == [1]


@pytest.mark.parametrize(("issue", "rule"), LIMITED)
def test_confidence__what_was_not_measured_is_no_issue(issue: IssueType, rule: object) -> None:
    """A missing value raises no issue and no warning."""
    assert np.isnan(confidence(values_of(np.nan), RULES[issue], 0.3)).all()


@pytest.mark.parametrize("issue", [IssueType.OUTLIERS, IssueType.ODD_SIZE])
def test_confidence__an_unset_limit_finds_nothing(issue: IssueType) -> None:
    """With an infinite limit, as in small datasets, nothing is an issue."""
    assert np.isnan(confidence(values_of(0, 1, 2, np.nan), RULES[issue], np.inf)).all()


@examples(100)
@given(st.sampled_from(sorted(RULES)), st.lists(st.floats(0, 2, width=32), max_size=20))
def test_confidence__law(issue: IssueType, values: list[float]) -> None:
    """Confidences lie in [0.5, 1] exactly where the limit is passed, and grow with the distance from it."""
    rule = RULES[issue]
    limit = 0.4 if rule.threshold is None else rule.threshold
    ordered = values_of(*sorted(values, reverse=not rule.above))
    found = confidence(ordered, rule, limit)
    passed = ordered > limit if rule.above else ordered < limit
    np.testing.assert_array_equal(np.isfinite(found), passed)
    assert np.all((found[passed] >= 0.5) & (found[passed] <= 1))
    assert np.all(np.diff(found[passed]) >= 0)


def test_size_distance__usual_sizes_are_near() -> None:
    """Sizes within three times the spread of the quartiles are usual, others odd, small ones too."""
    side = np.array([*np.linspace(900, 1100, 41), 10, 5000], dtype=np.float32)
    odd = size_distance(side, side) > 0.5
    assert np.flatnonzero(odd).tolist() == [41, 42]


def test_size_distance__all_of_one_size() -> None:
    """Where all pictures have one size, none is odd."""
    assert size_distance(np.full(5, 640, np.float32), np.full(5, 480, np.float32)).tolist() == [0] * 5


def test_size_distance__each_other_size_is_odd_where_the_usual_have_one() -> None:
    """Among pictures of one size, the few of another are odd; turning a picture does not change its size."""
    width = values_of(640, 640, 640, 480, 640, 640, 64)
    height = values_of(480, 480, 480, 640, 480, 480, 48)
    assert (size_distance(width, height) > 0.5).tolist() == [False] * 6 + [True]


def test_size_distance__unknown_sizes_are_unknown() -> None:
    """A picture without a size has no distance, and does not disturb the others."""
    found = size_distance(values_of(np.nan, 10, 10), values_of(10, 10, 10))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0, 0]
    assert np.isnan(size_distance(values_of(np.nan), values_of(np.nan))).all()
    assert size_distance(values_of(), values_of()).shape == (0,)


def test_size_distance__very_large_pictures() -> None:
    """The product of large sides does not overflow."""
    side = values_of(2**30, 2**30)
    assert size_distance(side, side).tolist() == [0, 0]
