"""Connected components of a graph, from its edges."""

import numpy as np
import numpy.typing as npt


def connected_components(
    count: int, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]
) -> tuple[int, npt.NDArray[np.int32]]:
    """Return the number of connected components, and the component of each node.

    In each round, every component with a lower-numbered neighbour joins the lowest of these neighbours. Two rounds at
    least halve the number of components that can still be joined: if a component joins no other one in the first
    round, another one joins it, or it has a lower-numbered neighbour in the second round.

    Args:
        count: the number of nodes, which are numbered from 0.
        a: integers, shape (P,): one node of each pair.
        b: integers, shape (P,): the other node.

    Returns:
        The number of components, and int32, shape (count,): component numbers from 0, in order of their first nodes.
    """
    lowest = np.arange(count, dtype=np.int32)
    a, b = a.astype(np.int32), b.astype(np.int32)
    while len(a):
        np.minimum.at(lowest, np.maximum(a, b), np.minimum(a, b))
        lowest = _roots(lowest)
        a, b = lowest[a], lowest[b]
        is_open = a != b
        a, b = a[is_open], b[is_open]
    is_first = lowest == np.arange(count, dtype=np.int32)
    number = np.cumsum(is_first, dtype=np.int32) - 1
    return int(np.count_nonzero(is_first)), number[lowest]


def spanning_forest(count: int, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return pairs that connect the same nodes as all pairs, without circles: their positions, ascending.

    Each component joins another one by one pair in each round (O. Borůvka, 1926).

    Args:
        count: the number of nodes, which are numbered from 0.
        a: integers, shape (P,): one node of each pair.
        b: integers, shape (P,): the other node.
    """
    lowest, kept = np.arange(count, dtype=np.int32), [np.empty(0, dtype=np.int64)]
    pair = np.flatnonzero(a != b)
    a, b = a[pair].astype(np.int32), b[pair].astype(np.int32)
    while len(a):
        high, low = np.maximum(a, b), np.minimum(a, b)
        np.minimum.at(lowest, high, low)
        joining = np.flatnonzero(low == lowest[high])
        kept.append(pair[joining[np.unique(high[joining], return_index=True)[1]]])
        lowest = _roots(lowest)
        a, b = lowest[a], lowest[b]
        is_open = a != b
        a, b, pair = a[is_open], b[is_open], pair[is_open]
    return np.sort(np.concatenate(kept))


def _roots(lowest: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the root of each node, by following the links to lower numbers."""
    while True:
        parent = lowest[lowest]
        if np.array_equal(parent, lowest):
            return lowest
        lowest = parent
