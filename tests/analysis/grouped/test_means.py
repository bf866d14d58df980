"""Means of clusters in a file are those in memory, however they are merged and moved."""

from pathlib import Path

import numpy as np
import pytest

from framedex.analysis import reciprocal
from framedex.analysis.grouped import means as grouped_means
from framedex.analysis.grouped.files import GroupFiles, PlaceReader
from framedex.analysis.grouped.means import StoredMeans
from framedex.analysis.reciprocal import MeanVectors
from tests.analysis.arrays import uniform

ROWS, DIMENSION = 3000, 8


@pytest.mark.parametrize("moved", [7, 100_000], ids=["small parts", "one part"])
def test_stored_means__are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int) -> None:
    """After each of several rounds of merges, of which few or most clusters are kept, all means are equal."""
    monkeypatch.setattr(reciprocal, "_BYTES", 4 * DIMENSION * 50)
    monkeypatch.setattr(grouped_means, "_MOVED", moved)
    random = np.random.default_rng(0)
    vectors, weights = uniform(ROWS, DIMENSION), random.integers(1, 5, ROWS).astype(np.float64)
    cell = random.integers(0, 9, ROWS).astype(np.int32)
    files = GroupFiles(tmp_path, ROWS, DIMENSION, 1)
    files.create()
    files.vectors[:] = vectors
    with PlaceReader(files) as reader:
        stored, expected = StoredMeans(reader, weights, cell), MeanVectors(vectors, weights)
        names = np.arange(ROWS)
        for share in (0.9, 0.5, 1.0, 0.1):
            keep, gone = np.split(random.permutation(len(names)).astype(np.int32)[: len(names) // 4 * 2], 2)
            keep.sort()
            for each in (stored, expected):
                each.merge(keep, gone)
            assert stored.has_moved[keep].all()
            rest = np.setdiff1d(np.arange(len(names)), gone)
            rest = np.sort(random.permutation(rest)[: max(2, int(share * len(rest)))])
            moved_before = stored.has_moved[rest]
            stored, expected, names = stored.kept(rest), expected.kept(rest), names[rest]
            everything = np.arange(len(names))
            np.testing.assert_array_equal(stored.of(everything), expected.of(everything))
            np.testing.assert_array_equal(stored.weights, expected.weights)
            np.testing.assert_array_equal(stored.cell, cell[names])
            np.testing.assert_array_equal(stored.has_moved, moved_before)
