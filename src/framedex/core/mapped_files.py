"""Files of nothing but the values of an array, row by row."""

import mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


def write_matrix(file: BinaryIO, values: npt.NDArray[Any]) -> None:
    """Write the values of an array.

    Raises:
        OSError: there is no space; unlike ``tofile``, which ignores it where the last bytes of a file are written.
    """
    if values.size:
        file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def read_matrix(path: Path, dtype: npt.DTypeLike, columns: int, start: int, stop: int) -> npt.NDArray[Any]:
    """Return consecutive rows of a file, in memory: shape (stop - start, columns)."""
    width = columns * np.dtype(dtype).itemsize
    rows = max(0, stop - start)
    return np.fromfile(path, dtype, rows * columns, offset=start * width).reshape(-1, columns)


def mapped_at_random(path: Path, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
    """Return the rows of a file that is not empty, mapped for reading and writing single ones: shape (N, columns).

    The system reads nothing else then, where it would read megabytes around a row that is not in memory.
    """
    with path.open("r+b") as file:
        content = mmap.mmap(file.fileno(), 0)
    if hasattr(mmap, "MADV_RANDOM"):
        content.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(content, dtype=dtype).reshape(-1, columns)
