"""Issue types: the quality problems of images that an index detects, one entry each."""

from framedex.issue_types.base import Derived, ImageSample, IssueType, JudgedBy
from framedex.issue_types.labels import LABEL_OUTLIER, MISLABELS
from framedex.issue_types.registry import (
    CORRUPTED,
    DUPLICATES,
    OUTLIERS,
    IssueName,
    find_issue_type,
    is_built_in,
    issue_types,
    measure_columns,
    measured_types,
)

__all__ = [
    "CORRUPTED",
    "DUPLICATES",
    "LABEL_OUTLIER",
    "MISLABELS",
    "OUTLIERS",
    "Derived",
    "ImageSample",
    "IssueName",
    "IssueType",
    "JudgedBy",
    "find_issue_type",
    "is_built_in",
    "issue_types",
    "measure_columns",
    "measured_types",
]
