"""Group numbers that stay when groups are computed anew."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]


def keep_numbers(old: Numbers, new: Numbers, *, first_free: int) -> tuple[Numbers, int]:
    """Return the new groups with the numbers of the old ones that they continue.

    A new group continues an old one that has most of its members in it, more than half; where several do, the one of
    which it has the most. Each old number is given to one group at most. All other groups get numbers that were never
    used, in order of their own.

    Args:
        old: int32, shape (N,): the group of each item before; -1 for none.
        new: int32, shape (N,): its group now, numbered from 0 in any way; -1 for none.
        first_free: the least number that was never given to a group.

    Returns:
        numbers: int32, shape (N,): a number for each item's new group; -1 for none.
        first_free: the least number that was never given to a group, now.
    """
    count = int(new.max(initial=-1)) + 1
    given = np.full(count, -1, dtype=np.int64)
    both = (old >= 0) & (new >= 0)
    if both.any():
        continued, former = _continued(old, new, both, count)
        given[continued] = former
    present = np.bincount(new[new >= 0], minlength=count) > 0
    fresh = np.flatnonzero((given < 0) & present)
    given[fresh] = first_free + np.arange(len(fresh))
    numbers = np.full(len(new), -1, dtype=np.int32)
    numbers[new >= 0] = given[new[new >= 0]]
    return numbers, first_free + len(fresh)


def _continued(
    old: Numbers, new: Numbers, both: npt.NDArray[np.bool_], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which new groups continue an old one, and which."""
    sizes = np.bincount(old[old >= 0])
    pairs, shared = np.unique(old[both].astype(np.int64) * count + new[both], return_counts=True)
    former, group = pairs // count, pairs % count
    most = 2 * shared > sizes[former]
    former, group, shared = former[most], group[most], shared[most]
    # Of several old groups in a new one the largest part comes first, then the least number.
    order = np.lexsort((former, -shared, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return group[order][first], former[order][first]
