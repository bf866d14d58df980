"""Confidences of issues, from values and limits."""

import numpy as np

from framedex.core.arrays import Floats
from framedex.issue_types import IssueType

_FEWEST, _OF_MEDIAN = 20, 0.6


def limit_of_subjects(values: Floats, limit: float, *, few: float | None = None) -> float:
    """Return the lower limit of a value of which subjects may have little by their nature: 0.6 of the median at most.

    Args:
        values: float32, shape (N,); NaN for missing values, 1 for those that were not judged.
        limit: the usual limit.
        few: the limit where fewer than 20 values are known, which say nothing; by default the usual one.
    """
    known = values[values < 1]
    if len(known) < _FEWEST:
        return limit if few is None else few
    return min(limit, _OF_MEDIAN * float(np.median(known)))


def issue_confidence(values: Floats, issue: IssueType, threshold: float | Floats) -> Floats:
    """Return the confidence of each issue: 0.5 at the limit, 1 at the worst value; NaN without an issue.

    Args:
        values: float32, shape (N,); NaN for missing values, which are never an issue.
        issue: the issue type.
        threshold: the limit of the issue type in this dataset, or that of each value.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        is_issue = values > threshold if issue.above else values < threshold
        if issue.worst is None:
            confidence = 1 - 0.5 * threshold / values
        else:
            confidence = 0.5 + 0.5 * (values - threshold) / (issue.worst - threshold)
    return np.where(is_issue, np.clip(confidence, 0.5, 1), np.nan).astype(np.float32)
