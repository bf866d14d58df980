"""Types of NumPy arrays that several packages use.

A type specifies the dtype; docstrings specify the shapes.
"""

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
"""An image: shape (H, W, 3), RGB, upright unless stated otherwise."""
Vectors = npt.NDArray[np.float32]
"""One vector of shape (D,) or a row for each, shape (N, D); also similarities of vectors, shape (N,)."""
RowIds = npt.NDArray[np.uint64]
"""Row ids of a table."""
Mask = npt.NDArray[np.bool_]
"""A truth value for each row."""
Floats = npt.NDArray[np.float32]
"""Values of single precision, such as coordinates, measures and confidences."""
