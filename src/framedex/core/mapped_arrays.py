"""Arrays in mapped files, of which only the rows that are used are read from disk.

Without advice the system reads much around each row that is not in memory: 128 KiB, or megabytes where the disk is
configured so. Then a few hundred rows of a large file take a tenth of a second, and displace others in memory.
"""

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

_GAP_BYTES = 2**16  # between rows, which take less time than another request


def read_sparsely(array: npt.NDArray[Any]) -> None:
    """Let the system read no more of a mapped array than what is used or announced."""
    if (content := _content(array)) is not None:
        with suppress(OSError):  # the system may refuse advice, which changes no result
            content.madvise(mmap.MADV_RANDOM)


def announce(array: npt.NDArray[Any], starts: npt.NDArray[np.integer], stops: npt.NDArray[np.integer]) -> None:
    """Let the system begin to read runs of rows of a mapped array, all at once, before they are used.

    Args:
        array: shape (N, …), in rows; nothing is done if it is in memory.
        starts: shape (R,), ascending: the first row of each run.
        stops: shape (R,): the row after each run.
    """
    content = _content(array)
    if content is None or not len(starts):
        return
    assert isinstance(array, np.memmap), "it has a mapping"
    width, before = array.strides[0], array.offset % mmap.ALLOCATIONGRANULARITY
    first = before + width * np.asarray(starts, np.int64)
    last = before + width * np.asarray(stops, np.int64)
    breaks = np.flatnonzero(first[1:] - last[:-1] > _GAP_BYTES) + 1
    first = first[np.concatenate([[0], breaks])] // mmap.PAGESIZE * mmap.PAGESIZE
    last = last[np.concatenate([breaks - 1, [len(last) - 1]])]
    with suppress(OSError):
        for start, length in zip(first.tolist(), (last - first).tolist(), strict=True):
            content.madvise(mmap.MADV_WILLNEED, start, length)


def _content(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping of a whole array; None for an array in memory, and where the system takes no advice."""
    content: Any = array.base if isinstance(array, np.memmap) else None
    return content if hasattr(content, "madvise") else None
