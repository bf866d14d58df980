"""Vectors are the same from every source."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.vector_sources import ConcatenatedVectors, VectorsInFile, VectorsInMemory, VectorSource
from tests.analysis.arrays import Vectors, uniform
from tests.tuning import Tuning


def whole(stored: VectorSource) -> Vectors:
    """Return all rows from the blocks, and check that the blocks are consecutive."""
    parts: list[Vectors] = []
    for start, block in stored.blocks():
        assert start == sum(map(len, parts))
        parts.append(np.array(block))
    return np.concatenate(parts) if parts else np.empty((0, stored.dimension), np.float32)


@pytest.mark.parametrize("first", [0, 7, 20])
def test_concatenated_vectors__have_both_parts(first: int) -> None:
    """Rows of both parts are taken by their numbers, in any order, also repeatedly."""
    vectors = uniform(20, 4)
    stored = ConcatenatedVectors(VectorsInMemory(vectors[:first]), vectors[first:])
    assert (len(stored), stored.dimension) == (20, 4)
    np.testing.assert_array_equal(whole(stored), vectors)
    for rows in ([], [19, 0, 7, 6, 7], [0], [19], [*range(20)]):
        wanted = np.array(rows, dtype=np.int64)
        np.testing.assert_array_equal(stored.take(wanted), vectors[wanted])


def test_vectors_in_memory__half_precision() -> None:
    """Taken rows are float32 in memory, whatever the dtype of the matrix."""
    vectors: npt.NDArray[Any] = uniform(5, 3).astype(np.float16)
    taken = VectorsInMemory(vectors).take(np.array([4, 1]))
    assert taken.dtype == np.float32
    assert taken.flags.c_contiguous
    np.testing.assert_array_equal(taken, vectors[[4, 1]].astype(np.float32))


@pytest.mark.parametrize("block_rows", [1, 7, 16384])
def test_vectors_in_file__are_those_of_the_file(tmp_path: Path, tuning: Tuning, block_rows: int) -> None:
    """A part of a file has its rows, in blocks and by number, also in another process."""
    tuning.vector_block_rows = block_rows
    vectors = uniform(20, 4)
    vectors.tofile(tmp_path / "vectors")
    for start, stop in ((0, 20), (3, 11), (20, 20)):
        stored = VectorsInFile(tmp_path / "vectors", 4, 0, 20).part(start, stop)
        assert (len(stored), stored.dimension) == (stop - start, 4)
        np.testing.assert_array_equal(whole(stored), vectors[start:stop])
        rows = np.arange(stop - start)[::-2]
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(stored)).take(rows), vectors[start:stop][rows])
    np.testing.assert_array_equal(
        whole(VectorsInFile(tmp_path / "vectors", 4, 2, 18).part(3, 9)), vectors[5:11]
    )  # fmt: skip
