"""Sums of the rows of a matrix by group."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Value = TypeVar("_Value", bound=np.floating)
RUN_ROWS = 4096
"""Rows that are summed at a time, so that they stay in the processor's cache."""


def sum_runs(
    values: npt.NDArray[_Value], group: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[_Value]]:
    """Return (groups, sums) of the rows of each group.

    Each second row of a group is added to the one before it until one is left, so rounding errors grow with the
    logarithm of the number of rows. Whole rows are added at a time; ``np.add.reduceat`` goes along the groups, which
    took 3 to 15 times as long.

    Args:
        values: shape (N, D); changed.
        group: integers from 0, shape (N,), ascending: the group of each row.

    Returns:
        Shape (G,), ascending: the groups; and shape (G, D): the sum of the rows of each.
    """
    left = np.arange(len(group))
    while True:
        is_first = np.diff(group[left], prepend=-1) != 0
        first = np.flatnonzero(is_first)
        if len(first) == len(left):
            return group[left], values[left]
        place = np.arange(len(left)) - first[np.cumsum(is_first) - 1]
        second = np.flatnonzero(place % 2)
        values[left[second - 1]] += values[left[second]]
        left = left[place % 2 == 0]


def add_by_group(sums: npt.NDArray[_Value], values: npt.NDArray[_Value], group: npt.NDArray[np.integer]) -> None:
    """Add each row to the sum of its group.

    Args:
        sums: shape (G, D): the sums; changed.
        values: shape (N, D): the rows.
        group: integers from 0 to G - 1, shape (N,): the group of each row.
    """
    order = np.argsort(group, kind="stable")
    for start in range(0, len(order), RUN_ROWS):
        some = order[start : start + RUN_ROWS]
        found, total = sum_runs(values[some], group[some])
        sums[found] += total
