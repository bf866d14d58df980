"""Means of clusters in a file are those in memory, however they are merged and moved."""

from pathlib import Path

import numpy as np
import pytest

from framedex.analysis.cells import RowCells
from framedex.analysis.grouped.files import GroupFiles, PlaceReader
from framedex.analysis.grouped.means import StoredMeans, VisitParts
from framedex.analysis.mean_vectors import MeanVectors
from tests.analysis.arrays import uniform
from tests.tuning import Tuning

ROWS, DIMENSION = 3000, 8


@pytest.mark.parametrize("moved", [7, 100_000], ids=["small parts", "one part"])
def test_stored_means__are_those_in_memory(tmp_path: Path, tuning: Tuning, moved: int) -> None:
    """After each of several rounds of merges, of which few or most clusters are kept, all means are equal."""
    tuning.multiplied_bytes = 4 * DIMENSION * 50
    tuning.moved_means = moved
    random = np.random.default_rng(0)
    vectors, weights = uniform(ROWS, DIMENSION), random.integers(1, 5, ROWS).astype(np.float64)
    cell = random.integers(0, 9, ROWS).astype(np.int32)
    files = GroupFiles(tmp_path, ROWS, DIMENSION, 1)
    files.create()
    files.vectors[:] = vectors
    with PlaceReader(files) as reader:
        stored, expected = StoredMeans(reader, weights), MeanVectors(vectors, weights)
        assert not stored.cells.is_known.any()
        stored.cells = RowCells(cell, np.ones(ROWS, dtype=bool))
        names = np.arange(ROWS)
        for share in (0.9, 0.5, 1.0, 0.1):
            keep, gone = np.split(random.permutation(len(names)).astype(np.int32)[: len(names) // 4 * 2], 2)
            keep.sort()
            for each in (stored, expected):
                each.merge(keep, gone)
            assert not stored.cells.is_known[keep].any()
            rest = np.setdiff1d(np.arange(len(names)), gone)
            rest = np.sort(random.permutation(rest)[: max(2, int(share * len(rest)))])
            known_before = stored.cells.is_known[rest]
            stored, expected, names = stored.kept(rest), expected.kept(rest), names[rest]
            everything = np.arange(len(names))
            np.testing.assert_array_equal(stored.of(everything), expected.of(everything))
            np.testing.assert_array_equal(stored.weights, expected.weights)
            np.testing.assert_array_equal(stored.cells.of_row, cell[names])
            np.testing.assert_array_equal(stored.cells.is_known, known_before)


@pytest.mark.slow
@pytest.mark.parametrize("n_parts", [1, 7, 300])
def test_visits__are_all_there_once_in_parts_of_equal_cost(n_parts: int) -> None:
    """Each visitor of a cell meets each cluster of it once, and no part takes much longer than the others."""
    random, cells = np.random.default_rng(1), 50
    of_cluster = random.choice([3, *range(cells)], 900, p=[0.3, *[0.7 / cells] * cells]).astype(np.int32)
    visits = {(int(random.integers(900)), int(random.choice([3, *range(cells)]))) for _ in range(2000)}
    query, cell = np.array(sorted(visits), dtype=np.int32).T
    met, costs = list[tuple[int, int]](), list[int]()
    seen = set[int]()
    for part in VisitParts(of_cluster, query, cell, cells, n_parts=n_parts):
        assert seen.isdisjoint(part.visitors.tolist()), "each visitor is in one part"
        seen.update(part.visitors.tolist())
        for number in range(len(part.starts) - 1):
            members = part.members[part.starts[number] : part.starts[number + 1]]
            visitors = part.visitors[part.ends[number] : part.ends[number + 1]]
            met += [(one, other) for one in visitors.tolist() for other in members.tolist()]
        costs.append(int((np.diff(part.starts) * np.diff(part.ends)).sum()))
    sizes = np.bincount(of_cluster, minlength=cells)
    heaviest = np.bincount(query, weights=sizes[cell]).max()
    wanted = [(one, other) for one, at in visits for other in np.flatnonzero(of_cluster == at).tolist()]
    assert sorted(met) == sorted(wanted)
    assert max(costs) <= sum(costs) / n_parts + heaviest
    assert len(costs) <= 2 * n_parts + 1
