"""From measured values to issues: limits and confidences."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.labels import MISLABEL_LIMIT, OUTLIER_LIMIT
from framedex.records import IssueType

Values = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rule:
    """When a value is an issue.

    Attributes:
        meaning: what the value is, in words for people.
        threshold: the limit; None where it depends on the dataset.
        above: whether values above the limit are the issue, else those below.
        worst: the most extreme value possible, where the confidence is 1; None if there is none.
        column: the measure that the rule looks at.
    """

    meaning: str
    threshold: float | None
    above: bool
    worst: float | None
    column: str


# The limits of the first six are CleanVision's (0.3.7).
RULES: dict[IssueType, Rule] = {
    IssueType.BLUR: Rule("variation of edges, 0 blurred to 1 sharp", 0.29, False, 0.0, "sharpness"),
    IssueType.DARK: Rule("brightness of the brightest pixels, 0 to 1", 0.32, False, 0.0, "highlights"),
    IssueType.BRIGHT: Rule("brightness of the darkest pixels, 0 to 1", 0.95, True, 1.0, "shadows"),
    IssueType.ODD_ASPECT_RATIO: Rule("shorter side / longer side", 0.35, False, 0.0, "aspect_ratio"),
    IssueType.LOW_INFORMATION: Rule("entropy of pixel values, 0 to 1", 0.30, False, 0.0, "entropy"),
    IssueType.ODD_SIZE: Rule("distance from the usual sizes", 0.50, True, None, "size_distance"),
    IssueType.GRAYSCALE: Rule("largest difference of colour channels, 0 to 1", 1.5 / 255, False, 0.0, "colourfulness"),
    IssueType.OUTLIERS: Rule("mean cosine distance to the nearest pictures", None, True, None, "outlier_distance"),
    IssueType.MISLABELS: Rule(
        "support of the label by those of the nearest pictures, 0 to 1", MISLABEL_LIMIT, False, 0.0, "label_support"
    ),
    IssueType.LABEL_OUTLIER: Rule(
        "distance to pictures of the same label, 1 at that label's limit", OUTLIER_LIMIT, True, None, "label_distance"
    ),
    IssueType.DUPLICATES: Rule(
        "cosine similarity to the most similar picture", 0.96, True, 1.0, "duplicate_similarity"
    ),
}


def confidence(values: Values, rule: Rule, threshold: float) -> Values:
    """Return how sure each issue is: 0.5 at the limit, 1 at the worst value; NaN where there is no issue.

    Args:
        values: float32, shape (N,); NaN where nothing was measured, which is no issue.
        rule: the issue's rule.
        threshold: its limit in this dataset.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = values > threshold if rule.above else values < threshold
        if rule.worst is None:
            sure = 1 - 0.5 * threshold / values
        else:
            sure = 0.5 + 0.5 * (values - threshold) / (rule.worst - threshold)
    return np.where(found, np.clip(sure, 0.5, 1), np.nan).astype(np.float32)


def size_distance(width: Values, height: Values) -> Values:
    """Return how far each picture's size lies from the usual ones: above 0.5 it is odd.

    The size is √(width·height); usual is what lies within three times the range between the quartiles of them
    (as CleanVision 0.3.7). Where all usual pictures have one size, each other size is odd.

    Args:
        width: float32, shape (N,), pixels; NaN where unknown.
        height: likewise.
    """
    size = np.sqrt(width.astype(np.float64) * height)
    known = np.isfinite(size)
    if not known.any():
        return np.full(len(size), np.nan, dtype=np.float32)
    low, high = np.quantile(size[known], (0.25, 0.75))
    middle, reach = (low + high) / 2, 7 * (high - low)
    distance = np.abs(size - middle)
    if reach > 0:
        return np.asarray(distance / reach, dtype=np.float32)
    return np.where(distance > 0, 0.5 + distance / middle, np.where(known, 0.0, np.nan)).astype(np.float32)
