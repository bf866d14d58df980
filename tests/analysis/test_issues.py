"""Confidences of issues."""

from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.issues import issue_confidence, limit_of_subjects
from framedex.errors import Fault
from framedex.issue_types import FAULTS, JudgedBy, issue_types
from tests.laws import examples

TYPES = {name: each for name, each in issue_types().items() if each.column is not None}

LIMITED = [(issue, rule) for issue, rule in TYPES.items() if rule.threshold is not None]


def values_of(*values: float) -> npt.NDArray[np.float32]:
    """Return measured values."""
    return np.array(values, dtype=np.float32)


def test_issue_types__all_but_those_of_files_have_a_value() -> None:
    """All issues except those of files that are not decoded have a value and its description."""
    assert [each for each in issue_types().values() if not each.has_value] == list(FAULTS.values())
    assert {each.judged_by for each in FAULTS.values()} == {JudgedBy.ERROR}
    assert list(FAULTS) == list(get_args(Fault))
    assert all(each.meaning for each in issue_types().values())


@pytest.mark.parametrize("issue", TYPES)
def test_confidence__half_at_the_limit_and_one_at_the_worst(issue: str) -> None:
    """The confidence is 0.5 just beyond the limit and 1 at the worst value; values on the other side are no issue."""
    rule = TYPES[issue]
    limit = 0.4 if rule.threshold is None else rule.threshold
    step = 2e-5 if rule.above else -2e-5
    at_limit, beyond, within = issue_confidence(
        values_of(limit + step, limit + 3 * step, limit - step), rule, limit
    ).tolist()
    assert at_limit == pytest.approx(0.5, abs=5e-3)
    assert 0.5 <= at_limit <= beyond
    assert np.isnan(within)
    if rule.worst is not None:
        assert issue_confidence(values_of(rule.worst), rule, limit).tolist() == [1]


@pytest.mark.parametrize(("issue", "rule"), LIMITED)
def test_confidence__a_missing_value_is_no_issue(issue: str, rule: object) -> None:
    """A missing value gives no issue and no warning."""
    assert np.isnan(issue_confidence(values_of(np.nan), TYPES[issue], 0.3)).all()


@pytest.mark.parametrize("issue", ["outliers", "odd_size"])
def test_confidence__an_unset_limit_finds_nothing(issue: str) -> None:
    """With an infinite limit, as in small datasets, nothing is an issue."""
    assert np.isnan(issue_confidence(values_of(0, 1, 2, np.nan), TYPES[issue], np.inf)).all()


@examples(100)
@given(st.sampled_from(sorted(TYPES)), st.lists(st.floats(0, 2, width=32), max_size=20))
def test_confidence__law(issue: str, values: list[float]) -> None:
    """Confidences lie in [0.5, 1] exactly where the limit is passed, and grow with the distance from it."""
    rule = TYPES[issue]
    limit = 0.4 if rule.threshold is None else rule.threshold
    ordered = values_of(*sorted(values, reverse=not rule.above))
    found = issue_confidence(ordered, rule, limit)
    passed = ordered > limit if rule.above else ordered < limit
    np.testing.assert_array_equal(np.isfinite(found), passed)
    assert np.all((found[passed] >= 0.5) & (found[passed] <= 1))
    assert np.all(np.diff(found[passed]) >= 0)


def test_limit__of_subjects_that_are_soft() -> None:
    """Of soft subjects, only those far below the others have the issue; of sharp ones, all soft ones."""
    random = np.random.default_rng(0)
    soft, sharp = random.normal(0.3, 0.03, 200), random.normal(0.55, 0.05, 200)
    few = random.uniform(0.1, 0.3, 10)
    assert limit_of_subjects(np.concatenate([sharp, few]).astype(np.float32), 0.37) > few.max()
    assert limit_of_subjects(sharp.astype(np.float32) + 0.1, 0.37) == 0.37
    limit = limit_of_subjects(np.concatenate([soft, few / 3, np.ones(50), [np.nan]]).astype(np.float32), 0.37)
    assert few.max() / 3 < limit < soft.min()
    assert limit_of_subjects(soft[:10].astype(np.float32), 0.37) == 0.37
