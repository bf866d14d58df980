"""Stable group numbers when groups are rebuilt."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]


def keep_numbers(old: Numbers, new: Numbers, *, first_free: int) -> tuple[Numbers, int]:
    """Return the new groups, renumbered with the numbers of the old groups that they continue.

    A new group continues an old group if it contains more than half of its members. If this holds for several old
    groups, it continues the one with the most members in the new group. Each old number is assigned at most once. All
    other groups get unused numbers, in the order of their own numbers.

    Args:
        old: int32, shape (N,): the previous group of each item; -1 for none.
        new: int32, shape (N,): the new group of each item, with any numbers from 0; -1 for none.
        first_free: the lowest number that was never used for a group.

    Returns:
        numbers: int32, shape (N,): the number of each item's new group; -1 for none.
        first_free: the updated lowest unused number.
    """
    count = int(new.max(initial=-1)) + 1
    assigned = np.full(count, -1, dtype=np.int64)
    in_both = (old >= 0) & (new >= 0)
    if in_both.any():
        continued, former = _continuations(old, new, in_both, count)
        assigned[continued] = former
    present = np.bincount(new[new >= 0], minlength=count) > 0
    fresh = np.flatnonzero((assigned < 0) & present)
    assigned[fresh] = first_free + np.arange(len(fresh))
    numbers = np.full(len(new), -1, dtype=np.int32)
    numbers[new >= 0] = assigned[new[new >= 0]]
    return numbers, first_free + len(fresh)


def _continuations(
    old: Numbers, new: Numbers, in_both: npt.NDArray[np.bool_], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (new groups, old groups) of all continuations."""
    sizes = np.bincount(old[old >= 0])
    pairs, shared = np.unique(old[in_both].astype(np.int64) * count + new[in_both], return_counts=True)
    former, group = pairs // count, pairs % count
    is_majority = 2 * shared > sizes[former]
    former, group, shared = former[is_majority], group[is_majority], shared[is_majority]
    # Several old groups in a new group: the largest part comes first, then the lowest number.
    order = np.lexsort((former, -shared, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return group[order][first], former[order][first]
