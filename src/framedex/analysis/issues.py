"""From values to issues: confidences."""

import numpy as np

from framedex.arrays import Floats
from framedex.issue_types import IssueType


def confidence(values: Floats, issue: IssueType, threshold: float) -> Floats:
    """Return how sure each issue is: 0.5 at the limit, 1 at the worst value; NaN where there is no issue.

    Args:
        values: float32, shape (N,); NaN where nothing was measured, which is no issue.
        issue: its type.
        threshold: its limit in this dataset.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = values > threshold if issue.above else values < threshold
        if issue.worst is None:
            sure = 1 - 0.5 * threshold / values
        else:
            sure = 0.5 + 0.5 * (values - threshold) / (issue.worst - threshold)
    return np.where(found, np.clip(sure, 0.5, 1), np.nan).astype(np.float32)
