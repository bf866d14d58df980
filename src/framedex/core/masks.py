"""Places of true values in matrices."""

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


def true_places(mask: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
    """Return the rows and columns of the true values of a matrix, row by row: what ``np.nonzero`` gives.

    NumPy reads whole words where an array has one axis, and single values where it has two, which takes ten times as
    long if few are true.

    Args:
        mask: bool, shape (N, M), in the order of rows or of columns.
    """
    if not mask.flags.c_contiguous and mask.T.flags.c_contiguous:
        column, row = true_places(mask.T)
        order = np.argsort(row, kind="stable")
        return row[order], column[order]
    place = np.flatnonzero(mask)
    row = place // max(1, mask.shape[1])
    return row, place - row * mask.shape[1]
