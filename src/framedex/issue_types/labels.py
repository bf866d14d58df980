"""Wrong labels, detected by :mod:`framedex.analysis.labels` from the labels of the nearest images."""

from dataclasses import dataclass

from framedex.issue_types.base import IssueType, JudgedBy

MISLABEL_LIMIT = 0.2  # support below it is an issue
OUTLIER_LIMIT = 1.0  # relative distance above it is an issue
USUAL_AGREEMENT = 0.85  # share of labels that agree with those of the neighbours; below it mislabels have a warning


@dataclass(frozen=True)
class LabelLimits:
    """Limits of the issues about labels.

    Attributes:
        support: a label with less support by neighbours is a mislabel, in [0, 1].
        distance: a label with a larger relative distance is an outlier of the label, from 0.
    """

    support: float = MISLABEL_LIMIT
    distance: float = OUTLIER_LIMIT


MISLABELS = IssueType(
    "mislabels",
    "support of the label by the labels of the nearest images, 0 to 1",
    MISLABEL_LIMIT,
    worst=0.0,
    column="label_support",
    judged_by=JudgedBy.LABELS,
    details=("suggested_label",),
)
LABEL_OUTLIER = IssueType(
    "label_outlier",
    "distance to images of the same label, 1 at the limit of the label",
    OUTLIER_LIMIT,
    above=True,
    column="label_distance",
    judged_by=JudgedBy.LABELS,
)
