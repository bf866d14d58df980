"""Registry of issue types, in the order of exports; plugins add types by entry points.

The measures of ``dark``, ``odd_aspect_ratio`` and ``grayscale`` and their thresholds are those of CleanVision
(github.com/cleanlab/cleanvision, 0.3.7). The others are our own, because CleanVision's miss most blurred, overexposed
and empty images, and call a fifth of an ordinary folder odd in size.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from framedex.errors import Fault, InvalidInput
from framedex.issue_types.base import IssueType, JudgedBy
from framedex.issue_types.blur import BLUR
from framedex.issue_types.brightness import BRIGHT, DARK
from framedex.issue_types.content import GRAYSCALE, LOW_INFORMATION
from framedex.issue_types.labels import LABEL_OUTLIER, MISLABELS
from framedex.issue_types.size import ODD_ASPECT_RATIO, ODD_SIZE
from framedex.plugins import Contributions

CORRUPTED = IssueType(
    "corrupted",
    "1 for an image whose data is damaged, 0 for an intact one",
    worst=1.0,
    above=True,
    measure=lambda image: float(image.is_damaged),
    column="damage",
    judged_by=JudgedBy.ERROR,
)
UNREADABLE = IssueType(
    "unreadable", "1 for a file that could not be read, so that it may be in order", judged_by=JudgedBy.ERROR
)
NOT_SUPPORTED = IssueType(
    "not_supported",
    "1 for a file of a kind that is not decoded, in order or not",
    judged_by=JudgedBy.ERROR,
)
OVER_LIMIT = IssueType(
    "over_limit", "1 for a file that a limit forbids to decode, in order or not", judged_by=JudgedBy.ERROR
)
FAULTS: Mapping[Fault, IssueType] = {
    "damaged": CORRUPTED, "not_supported": NOT_SUPPORTED, "over_limit": OVER_LIMIT, "unreadable": UNREADABLE
}  # fmt: skip
"""The issue type for each kind of reason why a file is not decoded, or not wholly."""
DUPLICATES = IssueType(
    "duplicates",
    "cosine similarity to the most similar image",
    0.96,
    above=True,
    worst=1.0,
    column="duplicate_similarity",
    judged_by=JudgedBy.GROUP,
)
OUTLIERS = IssueType("outliers", "mean cosine distance to the nearest images", above=True, column="outlier_distance")
_BUILT_IN = {
    each.name: each
    for each in (
        BLUR,
        DARK,
        BRIGHT,
        ODD_ASPECT_RATIO,
        ODD_SIZE,
        LOW_INFORMATION,
        GRAYSCALE,
        *FAULTS.values(),
        DUPLICATES,
        OUTLIERS,
        MISLABELS,
        LABEL_OUTLIER,
    )
}
_GRAVITY = (
    CORRUPTED, UNREADABLE, NOT_SUPPORTED, OVER_LIMIT, DUPLICATES, MISLABELS, BLUR, DARK, BRIGHT, LOW_INFORMATION,
    OUTLIERS, LABEL_OUTLIER, ODD_SIZE, ODD_ASPECT_RATIO, GRAYSCALE,
)  # fmt: skip
"""The built-in types, the gravest first."""


def _check(row: IssueType, _others: Mapping[str, IssueType]) -> None:
    """Check that a plugin's type uses its own columns and is judged by a limit.

    Raises:
        InvalidInput: it does not.
    """
    if row.judged_by is not JudgedBy.LIMIT or row.details or row.threshold is None:
        raise InvalidInput(f"the issue type {row.name!r} of a plugin must have a threshold and be judged by it alone")
    values = sorted(str(each.column) for each in _BUILT_IN.values() if each.has_value)
    if row.has_own_value:
        if row.column != f"value_{row.name}":
            raise InvalidInput(f"the value of {row.name!r} must be in the column value_{row.name}, not {row.column!r}")
    elif row.column not in values:
        raise InvalidInput(
            f"{row.name!r} must have a measure, a derived value, or one of the columns {', '.join(values)}"
        )


ISSUE_PLUGINS = Contributions("framedex.issue_types", IssueType, taken=lambda: _BUILT_IN, check=_check)
"""Issue types of plugins."""


def issue_types() -> Mapping[str, IssueType]:
    """Return all issue types by name."""
    return {**_BUILT_IN, **ISSUE_PLUGINS.rows()}


def find_issue_type(name: object) -> IssueType:
    """Return the issue type with a name.

    Raises:
        InvalidInput: the name is unknown.
    """
    if isinstance(name, str) and (issue := _BUILT_IN.get(name) or ISSUE_PLUGINS.rows().get(name)) is not None:
        return issue
    raise InvalidInput(f"no issue {name!r}; there are: {', '.join(sorted(issue_types()))}")


class _Named(Protocol):
    """Something about an issue type."""

    @property
    def issue_type(self) -> str: ...


Summary = TypeVar("Summary", bound=_Named)


def by_gravity(summaries: Iterable[Summary]) -> list[Summary]:
    """Return what is said of issue types with the gravest type first; types of plugins come last, in their order."""
    places = {issue.name: place for place, issue in enumerate(_GRAVITY)}
    return sorted(summaries, key=lambda each: places.get(each.issue_type, len(places)))


def built_in_types() -> list[IssueType]:
    """Return the issue types that are part of Framedex."""
    return list(_BUILT_IN.values())


def is_built_in(issue: IssueType) -> bool:
    """Return whether an issue type is part of Framedex, not of a plugin."""
    return _BUILT_IN.get(issue.name) is issue


def measured_types() -> list[IssueType]:
    """Return the issue types with a pixel measure."""
    return [each for each in issue_types().values() if each.measure is not None]


def measure_columns() -> list[str]:
    """Return the columns of pixel measures."""
    return [each.column for each in measured_types() if each.column is not None]
