"""Connected components of a graph that is given as pairs."""

import numpy as np
import numpy.typing as npt


def connected_components(
    count: int, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]
) -> tuple[int, npt.NDArray[np.int32]]:
    """Return how many components *count* nodes form, and the component of each.

    In each round every component that has a neighbour of a lower number joins the lowest of these. After two rounds at
    most half of the components that can still be joined are left: one that did not join another in the first round has
    been joined, or has a lower neighbour in the second.

    Args:
        count: nodes are numbered from 0.
        a: integers, shape (P,): one node of each pair.
        b: integers, shape (P,): the other node.

    Returns:
        The number of components, and int32, shape (count,): numbers from 0, in the order of the first nodes.
    """
    lowest = np.arange(count, dtype=np.int32)
    a, b = a.astype(np.int32), b.astype(np.int32)
    while len(a):
        np.minimum.at(lowest, np.maximum(a, b), np.minimum(a, b))
        lowest = _followed(lowest)
        a, b = lowest[a], lowest[b]
        is_open = a != b
        a, b = a[is_open], b[is_open]
    is_first = lowest == np.arange(count, dtype=np.int32)
    number = np.cumsum(is_first, dtype=np.int32) - 1
    return int(np.count_nonzero(is_first)), number[lowest]


def _followed(lowest: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return where each node arrives when it goes on from number to number."""
    while True:
        further = lowest[lowest]
        if np.array_equal(further, lowest):
            return lowest
        lowest = further
