"""Ranking criteria for the duplicate to keep, with explanations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from framedex.analysis.keeping import BestMembers, Criterion, Values

Columns = dict[str, Values]
"""Measures of members by name: float64, NaN if unknown. Times are in seconds since 1970, UTC."""


@dataclass(frozen=True)
class Preference:
    """One ranking criterion for choosing the duplicate to keep, with its explanation.

    Attributes:
        wins: explanation for the better member.
        draws: explanation if all are as good as the best.
        against: description of the best of the others; ``{}`` is replaced by its value.
        relative: share of the best value within which another value counts as equal.
        absolute: the same in the unit of the values.
        values: returns the values of all members, higher is better, NaN if unknown.
        text: returns the value of the first member as text that differs from that of the second.
    """

    wins: str
    draws: str
    against: str
    relative: float
    absolute: float
    values: Callable[[Columns], Values]
    text: Callable[[Columns, int, int], str]

    def criterion(self, columns: Columns) -> Criterion:
        """Return the criterion evaluated on the members' measures."""
        return Criterion(self.values(columns), self.relative, self.absolute)


def _pixels(columns: Columns) -> Values:
    pixels = columns["width"] * columns["height"]
    return np.where(pixels > 0, pixels, np.nan)


def _bytes_per_pixel(columns: Columns) -> Values:
    return columns["size_bytes"] / _pixels(columns)


def _size(columns: Columns, member: int, _other: int) -> str:
    return f"{columns['width'].item(member):.0f}×{columns['height'].item(member):.0f}"


def _sharpness(columns: Columns, member: int, other: int) -> str:
    return _number(columns["acutance"].item(member), columns["acutance"].item(other))


def _density(columns: Columns, member: int, other: int) -> str:
    size, width, height = columns["size_bytes"], columns["width"], columns["height"]
    value, other_value = (size.item(at) / width.item(at) / height.item(at) for at in (member, other))
    return _number(value, other_value)


def _number(value: float, other: float) -> str:
    """Return a number with two decimals, or as many more as distinguish it from another one."""
    for decimals in range(2, 9):
        text = f"{value:.{decimals}f}"
        if text != f"{other:.{decimals}f}":
            return text
    return f"{value:.2f}"


def _date(columns: Columns, member: int, other: int) -> str:
    """Return the day, with the time if the other date is on the same day."""
    date, other_date = (datetime.fromtimestamp(columns["modified_at"].item(at), UTC) for at in (member, other))
    return f"{date:%Y-%m-%d %H:%M:%S}" if member != other and date.date() == other_date.date() else f"{date:%Y-%m-%d}"


# Sizes differ by a row of pixels or two after rotating, and bytes a pixel by a percent with the metadata; some file
# systems store times to 2 s. Sharpness hardly changes (0.005) when a photo is recompressed at quality 50 or more,
# and falls by more than 0.02 in most photos that are blurred by 2 pixels.
OLDEST = Preference(
    "oldest", "same age", "against {} at the earliest", 0.0, 2.0, lambda columns: -columns["modified_at"], _date
)
DENSEST = Preference(
    "least compressed",
    "equally compressed",
    "bytes a pixel against at most {}",
    0.02,
    0.0,
    _bytes_per_pixel,
    _density,
)
PREFERENCES = (
    Preference("largest", "same size", "against at most {}", 0.01, 0.0, _pixels, _size),
    Preference(
        "sharpest", "equally sharp", "against at most {}", 0.0, 0.02, lambda columns: columns["acutance"], _sharpness
    ),
    DENSEST,
    OLDEST,
)
"""Criteria in order of priority, each applied to the best members by the previous one. If several members remain, the
first in row order is kept.
"""


def reason(decision: BestMembers, group: int, size: int, preferences: Sequence[Preference], columns: Columns) -> str:
    """Return the explanation of why the best member of a group was chosen, up to the deciding criterion.

    Args:
        decision: the best members and the decisions of the criteria.
        group: number of the group.
        size: number of its members.
        preferences: the applied criteria.
        columns: the measures of all members.
    """
    best, parts = int(decision.best[group]), []
    for index, preference in enumerate(preferences):
        remaining = int(decision.left[group, index])
        if remaining < size:
            parts.append(_won(preference, columns, best, int(decision.rival[group, index]), remaining))
        elif decision.known[group, index]:
            parts.append(preference.draws)
        if remaining == 1:
            return "; ".join(parts)
        size = remaining
    return "; ".join([*parts, "first in order"])


def _won(preference: Preference, columns: Columns, best: int, rival: int, remaining: int) -> str:
    others = "" if remaining == 1 else f" with {remaining - 1:,} more"
    if rival < 0:
        return f"{preference.wins}{others}: {preference.text(columns, best, best)}, the others unknown"
    against = preference.against.format(preference.text(columns, rival, best))
    return f"{preference.wins}{others}: {preference.text(columns, best, rival)} {against}"
