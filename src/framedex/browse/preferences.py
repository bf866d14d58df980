"""Ranking criteria for the duplicate to keep, with explanations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.fidelity import Doubt
from framedex.analysis.keeping import (
    BestMembers,
    Criterion,
    LastCriterion,
    MemberFiles,
    Positions,
    Values,
    best_members,
)
from framedex.storage.media_rows import DUPLICATES
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark

Columns = dict[str, Values]
"""Measures of members by name: float64, NaN if unknown. Times are in seconds since 1970, UTC."""


def measured(column: pa.ChunkedArray) -> Values:
    """Return a column of numbers, truth values or times as float64, shape (N,); NaN for null."""
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.float64) / 1e6
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(), dtype=np.float64)


class KeepEvidence(IntEnum):
    """The strength of a criterion that decides which member is the original."""

    WEAK = 0
    """It shows nothing where the comparison of each two members does not."""
    OF_MANY = 1
    """It shows the original among many members, of which not each two are compared."""
    DETAIL = 2
    """It shows the original, unless that could have been made from another member."""
    FACT = 3
    """It shows what the others cannot have or what people decided."""


@dataclass(frozen=True)
class Preference:
    """One ranking criterion for choosing the duplicate to keep, with its explanation.

    Attributes:
        wins: what the best member is or has, as the predicate of a sentence.
        against: description of the best of the others; ``{}`` is replaced by its value. Empty for none.
        relative: share of the best value within which another value counts as equal.
        absolute: the same in the unit of the values.
        values: returns the values of all members, higher is better, NaN if unknown.
        text: returns the value of the first member as text that differs from that of the second.
        evidence: its strength.
    """

    wins: str
    against: str
    relative: float
    absolute: float
    values: Callable[[Columns], Values]
    text: Callable[[Columns, int, int], str]
    evidence: KeepEvidence = KeepEvidence.WEAK

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


def _value(name: str) -> Callable[[Columns], Values]:
    return lambda columns: columns[name]


def _quantity(name: str, unit: float = 1.0) -> Callable[[Columns, int, int], str]:
    return lambda columns, member, other: _number(columns[name].item(member) * unit, columns[name].item(other) * unit)


def _flag(text: str) -> Callable[[Columns, int, int], str]:
    return lambda _columns, _member, _other: text


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
LARGEST = Preference("is the largest", "against at most {}", 0.01, 0.0, _pixels, _size)
OLDEST = Preference(
    "is the oldest", "against {} at the earliest", 0.0, 2.0, lambda columns: -columns["modified_at"], _date
)
DENSEST = Preference(
    "is the least compressed",
    "bytes a pixel against at most {}",
    0.02,
    0.0,
    _bytes_per_pixel,
    _density,
)


def _least_compressed(doublings: float) -> Preference:
    """Return the criterion of the finest quantisation, with the doublings of the step that count as equal."""
    return Preference(
        "is the least compressed",
        "grey levels of quantisation against at least {}",
        0.0,
        doublings,
        lambda columns: -np.log2(np.maximum(columns["keep_step"], 1)),
        _quantity("keep_step"),
    )


# What the comparison of the members at full size found (jobs/index/standings.py). A border or the rounding of an
# enlarged size changes the detail by a quarter; text, a filter or another brightness alters an image by 40 and more;
# the quantisation step of quality 40 is three times that of quality 80.
_OF_COMPARISON = (
    Preference(
        "is the source", "", 0.0, 0.0, lambda columns: -columns["keep_derived"],
        _flag("the others were made from it or from another copy"), KeepEvidence.FACT,
    ),
    Preference(
        "has the most detail", "megapixels of detail against at most {}", 0.35, 0.0, _value("keep_detail"),
        _quantity("keep_detail", 1e-6), KeepEvidence.DETAIL,
    ),
    Preference(
        "is not blurred", "of sharpness against at most {}", 0.0, 0.17, _value("keep_sharpness"),
        _quantity("keep_sharpness"), KeepEvidence.DETAIL,
    ),
    Preference(
        "is not cropped", "", 0.0, 0.0, lambda columns: -columns["keep_cropped"],
        _flag("the others are parts of another copy"), KeepEvidence.OF_MANY,
    ),
    Preference(
        "has colours", "", 0.0, 0.0, lambda columns: np.sign(columns["keep_colour"]), _flag("the others are grey"),
        KeepEvidence.OF_MANY,
    ),
    Preference(
        "has the fewest added pixels", "megapixels against at least {}", 0.0, 1000.0,
        lambda columns: -columns["keep_surplus"], _quantity("keep_surplus", 1e-6), KeepEvidence.OF_MANY,
    ),
    Preference(
        "could be the source of the most copies", "of its size against at most {}", 0.0, 1.0, _value("keep_sources"),
        lambda columns, member, _other: f"{columns['keep_sources'].item(member):.0f}", KeepEvidence.OF_MANY,
    ),
    Preference(
        "is the least altered", "from the other copies, against at least {}", 0.15, 0.5,
        lambda columns: -columns["keep_altered"], _quantity("keep_altered"), KeepEvidence.OF_MANY,
    ),
    _least_compressed(1.6),
    Preference(
        "is the nearest to another copy", "against at least {}", 0.1, 0.02,
        lambda columns: -columns["keep_closest"], _quantity("keep_closest"), KeepEvidence.OF_MANY,
    ),
    Preference(
        "has the most colour detail", "of that of brightness against at most {}", 0.0, 0.1,
        _value("keep_colour"), _quantity("keep_colour"), KeepEvidence.FACT,
    ),
    Preference("has metadata", "", 0.0, 0.0, _value("keep_metadata"), _flag("the others have none"), KeepEvidence.FACT),
    Preference(
        "is the nearest to the other copies", "against at least {}", 0.005, 0.02,
        lambda columns: -columns["keep_distance"], _quantity("keep_distance"), KeepEvidence.OF_MANY,
    ),
    Preference(
        "was compressed only once", "", 0.0, 0.0, lambda columns: -columns["keep_recompressed"],
        _flag("the others were compressed again"),
    ),
)  # fmt: skip
BY_PEOPLE = (
    Preference(
        "was chosen by a person", "", 0.0, 0.0,
        lambda columns: (columns[KEEPER] == KeeperMark.CHOSEN).astype(np.float64), _flag("the others were not"),
        KeepEvidence.FACT,
    ),
    Preference(
        "is not in the basket", "", 0.0, 0.0,
        lambda columns: -(columns[IN_BASKET] > 0).astype(np.float64), _flag("the others are in it"), KeepEvidence.FACT,
    ),
)  # fmt: skip
"""Criteria that come before all others: what people decided."""
INTACT = Preference(
    "is intact",
    "",
    0.0,
    0.0,
    lambda columns: -columns["damage"],
    _flag("the data of the others is damaged"),
    KeepEvidence.FACT,
)
_SHARPEST = Preference(
    "is the sharpest", "against at most {}", 0.0, 0.02, lambda columns: columns["acutance"], _sharpness
)
PREFERENCES = (
    INTACT,
    *_OF_COMPARISON,
    LARGEST,
    # Between a photo and one copy that was turned nothing but their steps tells which was made from which.
    _least_compressed(0.2),
    _SHARPEST,
    DENSEST,
    OLDEST,
)
"""Criteria in order of priority, each applied to the best members by the previous one. If several members remain,
:data:`LAST_WINS` decides.
"""
_BEST_COPY, _SURE_COPY = "best_copy", "sure_copy"
OF_NEAR = (
    INTACT,
    Preference(
        "is the best of its copies", "", 0.0, 0.0, lambda columns: columns[_BEST_COPY],
        _flag("the others have better copies"),
    ),
    LARGEST,
    _SHARPEST,
    DENSEST,
    OLDEST,
)  # fmt: skip
"""The same for near images, which have no original, with measures of :func:`with_best_copies`."""


def with_best_copies(
    columns: Columns,
    owner: Positions,
    preferences: Sequence[Preference],
    files: Callable[[Positions], MemberFiles],
) -> Columns:
    """Return the measures of members of groups of near images, with what they are among their own copies.

    Args:
        columns: the measures of N members; among them the groups of copies.
        owner: int64, shape (N,): the group of near images of each member.
        preferences: criteria for the best of copies.
        files: returns the files of the members at some positions.
    """
    copies, places = columns[DUPLICATES[0]], np.arange(len(owner))
    code = np.where(np.isnan(copies), -1 - places, copies)
    order = np.lexsort((places, code, owner))
    starts = np.flatnonzero((np.diff(owner[order], prepend=-1) != 0) | (np.diff(code[order], prepend=np.nan) != 0))
    sorted_columns = {name: values[order] for name, values in columns.items()}
    decision = best_members(
        np.diff(starts, append=len(order)),
        [each.criterion(sorted_columns) for each in preferences],
        order,
        lambda members: files(order[members]),
    )
    best = order[decision.best]
    is_best, sure = np.zeros((2, len(owner)))
    is_best[best], sure[best] = 1, is_sure(decision, preferences, sorted_columns)
    return {**columns, _BEST_COPY: is_best, _SURE_COPY: sure}


def reason(
    decision: BestMembers,
    group: int,
    size: int,
    preferences: Sequence[Preference],
    columns: Columns,
    *,
    is_sure: bool = True,
) -> str:
    """Return the sentence that says why the best member of a group was chosen.

    It names the criterion that left one member, with its values, and among how many members it decided if others had
    left out some before.

    Args:
        decision: the best members and the decisions of the criteria.
        group: number of the group.
        size: number of its members.
        preferences: the applied criteria.
        columns: the measures of all members.
        is_sure: whether the member is shown to be the original; else the sentence says that it is not.
    """
    best, remaining = int(decision.best[group]), size
    last = LastCriterion(decision.last[group])
    predicate, compared, values = LAST_WINS[last], int(decision.compared[group]), ""
    for index, preference in enumerate(preferences):
        before, remaining = remaining, int(decision.left[group, index])
        if remaining == 1 < before:
            predicate, compared = preference.wins, before
            values = f": {_compared(preference, columns, best, int(decision.rival[group, index]))}"
            break
    text = sentence(predicate, compared, size)
    return f"{text if is_sure else f'{NOT_SURE}, but {text[0].lower()}{text[1:]}'}{values}."


NOT_SURE = "Not sure which is the original"


def is_sure(decision: BestMembers, preferences: Sequence[Preference], columns: Columns) -> npt.NDArray[np.bool_]:
    """Return whether the best member of each group is shown to be the original: bool, shape (G,).

    Members that were not compared at full size have no original, so any decision is as good. Near images have none
    either, but the one that stays must be the original of its copies.

    Args:
        decision: the best members and the decisions of the criteria.
        preferences: the applied criteria.
        columns: the measures of all members.
    """
    evidence = np.array([*(each.evidence for each in preferences), KeepEvidence.WEAK])
    decides = np.concatenate([decision.left == 1, np.ones((len(decision.best), 1), np.bool_)], axis=1).argmax(axis=1)
    evidence = np.where(decision.last == LastCriterion.NAME, KeepEvidence.FACT, evidence[decides])
    if _SURE_COPY in columns:  # near images
        return np.asarray((columns[_SURE_COPY][decision.best] > 0) | (evidence == KeepEvidence.FACT))
    if "keep_doubt" not in columns:  # equal files
        return np.ones(len(decision.best), np.bool_)
    doubt = columns["keep_doubt"][decision.best]
    of_doubt = np.where(doubt == Doubt.SOURCE, KeepEvidence.FACT, KeepEvidence.DETAIL)
    least = np.where(np.isnan(doubt), KeepEvidence.OF_MANY, of_doubt)
    is_part = columns["keep_cropped"][decision.best] > 0  # of one that has less detail, but shows more
    was_compared = ~np.isnan(columns["keep_detail"][decision.best])
    shown = ((doubt == Doubt.NONE) | (evidence >= least)) & ~is_part
    return np.asarray(~was_compared | shown | (evidence == KeepEvidence.FACT))


FIRST = "is the first in order"
LAST_WINS = {
    LastCriterion.ORDER: FIRST,
    LastCriterion.NAME: "has the shortest file name",
    LastCriterion.EQUAL_NAME: "equals the first in order and has a shorter file name",
}
"""What the best member is or has by each last criterion, as the predicate of a sentence."""


def sentence(predicate: str, compared: int, members: int) -> str:
    """Return the sentence, without its full stop, that says what the best of a number of members is or has.

    Args:
        predicate: what it is or has.
        compared: the number of members among which this decided.
        members: the number of members of the group.
    """
    return f"Of the {compared:,} best, it {predicate}" if compared < members else f"It {predicate}"


def _compared(preference: Preference, columns: Columns, best: int, rival: int) -> str:
    if rival < 0:
        return f"{preference.text(columns, best, best)}, the others unknown"
    text = preference.text(columns, best, rival)
    if preference.against:
        text += f" {preference.against.format(preference.text(columns, rival, best))}"
    return text
