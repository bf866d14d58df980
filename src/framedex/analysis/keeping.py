"""Which picture of a group of duplicates is best to keep."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Criterion:
    """One thing that makes a picture worth more than its duplicates.

    Attributes:
        values: float64, shape (N,), finite, more is better; NaN where unknown.
        relative: a member is as good as the best if it is worse by no more than this share of the best value…
        absolute: …and this much.
    """

    values: Values
    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class BestMembers:
    """The best member of each of G groups, and how C criteria led to it.

    Members are named by their place among all N.

    Attributes:
        best: int64, shape (G,).
        left: int64, shape (G, C): how many members were left after each criterion.
        rival: int64, shape (G, C): the best of those that each criterion left out; -1 where none is known.
        known: bool, shape (G, C): whether a criterion had a known value to go by.
    """

    best: Places
    left: Places
    rival: Places
    known: Truths


def best_members(sizes: Places, criteria: Sequence[Criterion], order: Places) -> BestMembers:
    """Return which member of each group is best to keep, whatever order the members come in.

    The criteria are applied one after another. Each leaves those members that are as good as the best of them, within
    its tolerance, and the next one decides among these; so a difference that is only noise never decides. Where a
    value is known of some, those of which it is unknown are left out; where of none, the criterion leaves all. The
    tolerance is counted from the best, not from one member to the next, so the result does not depend on the order of
    the comparisons. Of those left at the end the first in *order* is best.

    Args:
        sizes: int64, shape (G,), each 1 or more: how many members each group has, one group after another; N in all.
        criteria: most important first.
        order: int64, shape (N,): the place of each member in a fixed order; no two are equal.
    """
    starts = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    alive = np.ones(len(owner), dtype=bool)
    left, rival, known = [], [], []
    for criterion in criteria:
        there, kept = _as_good_as_the_best(criterion, alive, starts, owner)
        left.append(np.add.reduceat(kept, starts, dtype=np.int64))
        rival.append(_best_of(alive & ~kept, criterion.values, order, starts, owner))
        known.append(there)
        alive = kept
    return BestMembers(
        _first(alive, order, starts, owner), _columns(left), _columns(rival), _columns(known).astype(bool)
    )


def _as_good_as_the_best(criterion: Criterion, alive: Truths, starts: Places, owner: Places) -> tuple[Truths, Truths]:
    """Return whether each group has a known value, and which members one criterion leaves."""
    known = alive & ~np.isnan(criterion.values)
    best = np.maximum.reduceat(np.where(known, criterion.values, -np.inf), starts)
    there = np.isfinite(best)
    best = np.where(there, best, 0)  # nothing is known of a group at -inf; all of its members stay
    least = best - np.abs(best) * criterion.relative - criterion.absolute
    return there, np.where(there[owner], known & (criterion.values >= least[owner]), alive)


def _best_of(chosen: Truths, values: Values, order: Places, starts: Places, owner: Places) -> Places:
    """Return the chosen member of each group whose value is highest, the first of equals; -1 where none is known."""
    known = chosen & ~np.isnan(values)
    best = np.maximum.reduceat(np.where(known, values, -np.inf), starts)
    return _first(known & (values == best[owner]), order, starts, owner)


def _first(chosen: Truths, order: Places, starts: Places, owner: Places) -> Places:
    """Return the chosen member of each group that is first in order; -1 where none is chosen."""
    first = np.minimum.reduceat(np.where(chosen, order, np.iinfo(np.int64).max), starts)
    places = np.flatnonzero(chosen & (order == first[owner]))
    found = np.full(len(starts), -1, dtype=np.int64)
    found[owner[places]] = places
    return found


def _columns(columns: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.int64]:
    return np.stack(columns, axis=1).astype(np.int64)
