"""Issue types: the quality problems of images that an index detects, one entry each."""

from framedex.issue_types.base import Derived, ImageSample, IssueType, JudgedBy
from framedex.issue_types.blur import BLUR
from framedex.issue_types.content_kinds import Content, content_of
from framedex.issue_types.labels import LABEL_OUTLIER, MISLABELS, LabelLimits
from framedex.issue_types.limits import ValuedIssueName, check_issue_limit, find_valued_type, valued_types
from framedex.issue_types.registry import (
    CORRUPTED,
    DUPLICATES,
    FAULTS,
    OUTLIERS,
    built_in_types,
    by_gravity,
    find_issue_type,
    is_built_in,
    issue_types,
    measure_columns,
    measured_types,
)

__all__ = [
    "BLUR",
    "CORRUPTED",
    "DUPLICATES",
    "FAULTS",
    "LABEL_OUTLIER",
    "MISLABELS",
    "OUTLIERS",
    "Content",
    "Derived",
    "ImageSample",
    "IssueType",
    "JudgedBy",
    "LabelLimits",
    "ValuedIssueName",
    "built_in_types",
    "by_gravity",
    "check_issue_limit",
    "content_of",
    "find_issue_type",
    "find_valued_type",
    "is_built_in",
    "issue_types",
    "measure_columns",
    "measured_types",
    "valued_types",
]
