"""Groups of rows in an order, such as the frames of a video, of which all members are alike."""

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors

_WINDOW = 4096  # rows that a row is compared with: those just before it
_BLOCK = 256


def alike_runs(
    vectors: Vectors, min_similarity: float, *, window: int = _WINDOW
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the first row of each row's group, and the similarity of each row to the most similar other one of it.

    Each row in turn joins the group whose least similar member is the most similar to it, if even this one is similar
    enough; else it begins a group (complete linkage, on line). So any member can stand for all others, which does not
    hold for connected components: a slow pan is one component, and its ends show different places. A group takes no row
    that is more than *window* rows after its first one.

    Args:
        vectors: float32, shape (N, D), unit length.
        min_similarity: the minimum cosine similarity of any two rows of a group.
        window: the number of rows before a row with which it is compared.

    Returns:
        int64, shape (N,); and float32, shape (N,): -1 for a row that is alone.
    """
    count = len(vectors)
    group, first = np.empty(count, np.int64), np.empty(count, np.int64)
    nearest = np.full(count, -1, np.float32)
    n_groups = 0
    for start in range(0, count, _BLOCK):
        begin = max(0, start - window)
        products = vectors[start : start + _BLOCK] @ vectors[begin : start + _BLOCK].T
        for row, of_row in enumerate(products, start):
            oldest = max(0, row - window)
            similarity = of_row[oldest - begin : row - begin]
            before = group[oldest:row]
            least = np.full(n_groups, 2, np.float32)
            np.minimum.at(least, before, similarity)
            least[first[:n_groups] < oldest] = -2
            best = n_groups - 1 - int(least[::-1].argmax()) if n_groups else 0
            if not n_groups or least[best] < min_similarity:
                first[n_groups], group[row] = row, n_groups
                n_groups += 1
                continue
            group[row] = best
            members = before == best
            nearest[row] = similarity[members].max()
            nearest[oldest:row][members] = np.maximum(nearest[oldest:row][members], similarity[members])
    return first[group], nearest
