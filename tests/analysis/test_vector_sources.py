"""Vectors are the same wherever they lie."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.vector_sources import ConcatenatedVectors, VectorsInMemory, VectorSource
from tests.analysis.arrays import Vectors, uniform


def whole(stored: VectorSource) -> Vectors:
    """Return all rows as the blocks bring them, and check that the blocks follow each other."""
    parts: list[Vectors] = []
    for start, block in stored.blocks():
        assert start == sum(map(len, parts))
        parts.append(np.array(block))
    return np.concatenate(parts) if parts else np.empty((0, stored.dimension), np.float32)


@pytest.mark.parametrize("first", [0, 7, 20])
def test_appended__is_both(first: int) -> None:
    """Rows of either part are found by their numbers, in any order and more than once."""
    vectors = uniform(20, 4)
    stored = ConcatenatedVectors(VectorsInMemory(vectors[:first]), vectors[first:])
    assert (len(stored), stored.dimension) == (20, 4)
    np.testing.assert_array_equal(whole(stored), vectors)
    for rows in ([], [19, 0, 7, 6, 7], [0], [19], [*range(20)]):
        wanted = np.array(rows, dtype=np.int64)
        np.testing.assert_array_equal(stored.take(wanted), vectors[wanted])


def test_in_memory__half_precision() -> None:
    """What is taken is float32 in memory, whatever the matrix holds."""
    vectors: npt.NDArray[Any] = uniform(5, 3).astype(np.float16)
    taken = VectorsInMemory(vectors).take(np.array([4, 1]))
    assert taken.dtype == np.float32
    assert taken.flags.c_contiguous
    np.testing.assert_array_equal(taken, vectors[[4, 1]].astype(np.float32))
