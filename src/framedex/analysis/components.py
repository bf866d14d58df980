"""Connected components of pairs of rows, by SciPy's graph routines, which load when first used."""

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.integer]


def connected_components(a: Rows, b: Rows, count: int) -> npt.NDArray[np.int32]:
    """Return the component of each of *count* rows, where each pair of rows ``a[i]``, ``b[i]`` is connected.

    Args:
        a: integers, shape (P,): one end of each pair.
        b: integers, shape (P,): the other end.
        count: how many rows there are.

    Returns:
        int32, shape (count,): components numbered from 0 without gaps.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components as components

    edges = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(count, count))
    return np.asarray(components(edges, directed=False)[1], dtype=np.int32)
