"""Selection of the best image in each group of duplicates."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Criterion:
    """Ranking criterion for choosing the image to keep among duplicates.

    A member ties with the best one if its value is lower by at most ``relative * abs(best) + absolute``.

    Attributes:
        values: float64, shape (N,), finite, higher is better; NaN where unknown.
        relative: tolerance as a share of the best value.
        absolute: tolerance in the unit of the values.
    """

    values: Values
    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class MemberFiles:
    """Files of N members.

    Attributes:
        content: int64, shape (N,): a number of the content, the same for equal files.
        name_length: int64, shape (N,): the number of characters of the file name, without its folder.
    """

    content: Positions
    name_length: Positions

    @classmethod
    def of(cls, names: Sequence[str], contents: Sequence[Hashable]) -> "MemberFiles":
        """Return the files with some names and contents; a content of None is unknown and equals no other one."""
        numbers: dict[Hashable, int] = {}
        known = [numbers.setdefault(each, len(numbers)) for each in contents]
        unknown = np.array([each is None for each in contents], dtype=bool)
        content = np.where(unknown, -1 - np.arange(len(contents)), np.array(known, dtype=np.int64))
        return cls(content, np.array([len(name) for name in names], dtype=np.int64))


class LastCriterion(IntEnum):
    """The criterion for members that remain after all others."""

    ORDER = 0
    """The first member in order."""
    NAME = 1
    """All members are equal files; the shortest file name."""
    EQUAL_NAME = 2
    """Of the files that equal the first member in order, the one with the shortest file name."""


@dataclass(frozen=True)
class BestMembers:
    """Best member of each of G groups, with the effect of each of C criteria.

    Members are numbered by their position among all N members.

    Attributes:
        best: int64, shape (G,): the best member of each group.
        left: int64, shape (G, C): the number of members that remain after each criterion.
        rival: int64, shape (G, C): the best member excluded by each criterion; -1 if none with a value was excluded.
        known: bool, shape (G, C): true if any remaining member has a value for the criterion.
        last: int64, shape (G,): the :class:`LastCriterion` that chose among the members that remained.
        compared: int64, shape (G,): the number of members among which it chose.
    """

    best: Positions
    left: Positions
    rival: Positions
    known: Mask
    last: Positions
    compared: Positions


def best_members(
    sizes: Positions, criteria: Sequence[Criterion], order: Positions, files: Callable[[Positions], MemberFiles]
) -> BestMembers:
    """Return the best member of each group, independent of the order of the members.

    The criteria are applied one after another. Each criterion keeps the members that tie with the best one within its
    tolerance, and the next criterion decides among them; so differences within the noise never decide. If only some
    members have a value, members without one are excluded. If no member has a value, all members remain. The tolerance
    is measured from the best member, not between consecutive members, so the result does not depend on the order of
    comparisons. If several members remain at the end, the first one in *order* is the best, or among the files that are
    equal to it, the one with the shortest file name, of several the first one.

    Args:
        sizes: int64, shape (G,), each at least 1: the number of members of each group, one group after another; the sum
            is N.
        criteria: criteria, most important first.
        order: int64, shape (N,): the rank of each member in a fixed order, all different.
        files: returns the files of the members at some positions, ascending. Called only if several members remain.
    """
    starts = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    alive = np.ones(len(owner), dtype=bool)
    left, rival, known = [], [], []
    for criterion in criteria:
        has_value, remaining = _as_good_as_the_best(criterion, alive, starts, owner)
        left.append(_count(remaining, starts))
        rival.append(_best_of(alive & ~remaining, criterion.values, order, starts, owner))
        known.append(has_value)
        alive = remaining
    best, last, compared = _choose_last(alive, order, files, starts, owner)
    return BestMembers(best, _columns(left), _columns(rival), _columns(known).astype(bool), last, compared)


def _choose_last(
    alive: Mask, order: Positions, files: Callable[[Positions], MemberFiles], starts: Positions, owner: Positions
) -> tuple[Positions, Positions, Positions]:
    """Return the best of the remaining members of each group, the last criterion, and the number that it compared."""
    first, remaining = _first(alive, order, starts, owner), _count(alive, starts)
    last = np.full(len(starts), LastCriterion.ORDER, dtype=np.int64)
    tied = np.flatnonzero(alive & (remaining > 1)[owner])
    if not len(tied):
        return first, last, remaining
    read = files(tied)
    content, length = np.zeros((2, len(owner)), dtype=np.int64)
    content[tied], length[tied] = read.content, read.name_length
    equal = alive & (content == content[first][owner])
    least = np.minimum.reduceat(np.where(equal, length, np.iinfo(np.int64).max), starts)
    shortest = equal & (length == least[owner])
    best, n_shortest = _first(shortest, order, starts, owner), _count(shortest, starts)
    are_equal = (_count(equal, starts) == remaining) & (remaining > 1)
    last[are_equal & (n_shortest == 1)] = LastCriterion.NAME
    last[~are_equal & (best != first)] = LastCriterion.EQUAL_NAME
    return best, last, np.where(are_equal & (n_shortest > 1), n_shortest, remaining)


def _count(selected: Mask, starts: Positions) -> Positions:
    return np.add.reduceat(selected, starts, dtype=np.int64)


def _as_good_as_the_best(criterion: Criterion, alive: Mask, starts: Positions, owner: Positions) -> tuple[Mask, Mask]:
    """Return whether each group has a value, and the members that remain after a criterion."""
    known = alive & ~np.isnan(criterion.values)
    best = np.maximum.reduceat(np.where(known, criterion.values, -np.inf), starts)
    has_value = np.isfinite(best)
    best = np.where(has_value, best, 0)  # -inf: no member of the group has a value, so all members stay
    min_value = best - np.abs(best) * criterion.relative - criterion.absolute
    return has_value, np.where(has_value[owner], known & (criterion.values >= min_value[owner]), alive)


def _best_of(selected: Mask, values: Values, order: Positions, starts: Positions, owner: Positions) -> Positions:
    """Return the selected member of each group with the highest value, the first of ties; -1 if none has a value."""
    known = selected & ~np.isnan(values)
    best = np.maximum.reduceat(np.where(known, values, -np.inf), starts)
    return _first(known & (values == best[owner]), order, starts, owner)


def _first(selected: Mask, order: Positions, starts: Positions, owner: Positions) -> Positions:
    """Return the first selected member of each group in order; -1 if none is selected."""
    first = np.minimum.reduceat(np.where(selected, order, np.iinfo(np.int64).max), starts)
    positions = np.flatnonzero(selected & (order == first[owner]))
    first_members = np.full(len(starts), -1, dtype=np.int64)
    first_members[owner[positions]] = positions
    return first_members


def _columns(columns: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.int64]:
    return np.stack(columns, axis=1).astype(np.int64)
