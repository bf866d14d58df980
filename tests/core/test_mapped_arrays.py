"""Arrays in mapped files: the system reads the rows that are used or announced, and nothing else."""

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from framedex.core.mapped_arrays import announce, read_sparsely
from tests.pauses import wait_until

ROWS, WIDTH = 4096, 1024
PAGE_ROWS = mmap.PAGESIZE // WIDTH
ALL = ROWS // PAGE_ROWS + 1  # the header shifts the rows


@pytest.fixture
def array(tmp_path: Path) -> npt.NDArray[np.uint8]:
    """Return a mapped array of 4 MiB of which nothing is in memory."""
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(ROWS * WIDTH, dtype=np.uint8).reshape(ROWS, WIDTH))
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux says which pages of a file are in memory")
    mapped: npt.NDArray[np.uint8] = np.load(path, mmap_mode="r")
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(mapped):
        pytest.skip("this file system keeps files in memory")
    return mapped


def in_memory(array: npt.NDArray[np.uint8]) -> int:
    """Return how many pages of a mapped array are in memory."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    length = array.ctypes.data + array.nbytes - start
    pages = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(start), ctypes.c_size_t(length), pages) == 0
    return sum(page & 1 for page in pages)


def test_read_sparsely__reads_single_rows(array: npt.NDArray[np.uint8]) -> None:
    """A row that is used brings its page into memory, and none around it."""
    read_sparsely(array)
    assert array[ROWS // 2].tobytes() == (np.arange(WIDTH) % 256).astype(np.uint8).tobytes()
    assert 1 <= in_memory(array) <= 2


def test_announce__reads_the_announced_rows(array: npt.NDArray[np.uint8]) -> None:
    """Runs of rows come into memory before they are used; rows between near runs with them, others not."""
    read_sparsely(array)
    starts, stops = np.array([100, 140, 3000]), np.array([101, 150, 3010])
    announce(array, starts, stops)
    least, most = (150 - 100 + 10) // PAGE_ROWS, (150 - 100 + 10) // PAGE_ROWS + 4
    wait_until(lambda: in_memory(array) >= least)
    for start, stop in zip(starts, stops, strict=True):
        assert (array[start:stop, 5] == 5).all()
    assert least <= in_memory(array) <= most


def test_announce__the_ends_of_an_array(array: npt.NDArray[np.uint8]) -> None:
    """All rows can be announced, and none."""
    announce(array, np.empty(0, np.int64), np.empty(0, np.int64))
    assert in_memory(array) == 0
    announce(array, np.array([0]), np.array([ROWS]))
    assert int(array[:, 7].sum()) == 7 * ROWS
    assert in_memory(array) == ALL


def test_announce__in_memory() -> None:
    """Arrays in memory, and parts of mapped ones, are left as they are."""
    array = np.zeros((3, 4), np.uint8)
    read_sparsely(array)
    announce(array, np.array([0]), np.array([3]))
    assert not array.any()
