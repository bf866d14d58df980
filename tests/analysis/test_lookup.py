"""A repeated search finds the near neighbours of some rows, also in the cells of an earlier one."""

from typing import Any

import numpy as np
import pytest

from framedex.analysis import cells
from framedex.analysis.cells import assign
from framedex.analysis.lookup import NeighbourSearch
from framedex.analysis.mean_vectors import MeanVectors
from framedex.analysis.products import CpuProducts
from tests.analysis.arrays import Vectors, clustered, unit
from tests.tuning import Tuning

MINIMUM = 0.5


def exact(vectors: Vectors, rows: list[int], k: int) -> list[dict[int, float]]:
    """Return the k nearest rows above the minimum, with their similarities."""
    scores = vectors[rows] @ vectors.T
    scores[np.arange(len(rows)), rows] = -np.inf
    return [
        {int(column): float(row[column]) for column in np.argsort(-row)[:k] if row[column] > MINIMUM} for row in scores
    ]


@pytest.mark.slow
@pytest.mark.parametrize("by_cells", [False, True])
def test_search__finds_neighbours_above_the_minimum(by_cells: bool, tuning: Tuning) -> None:
    """Lists hold the nearest rows above the minimum and then no row, of all vectors and of the remaining ones."""
    if by_cells:
        tuning.compared_pairs = 0
    search = NeighbourSearch(recall=0.995, min_similarity=MINIMUM, engine=CpuProducts(1))
    all_vectors = clustered(3000, 16, centres=100, spread=0.6)
    for count in (3000, 2000, 1200):
        vectors = all_vectors[:count]
        queries = np.arange(0, count, 7)
        rows, similarity = search.nearest_of(queries, vectors, k=60)
        assert np.all((rows < 0) == (similarity == -1))
        assert np.all(np.diff(similarity, axis=1) <= 0)
        found, expected = 0, 0
        for near, value, true in zip(rows, similarity, exact(vectors, queries.tolist(), 60), strict=True):
            assert np.all(value[near >= 0] > MINIMUM)
            found += len(set(near.tolist()) & set(true))
            expected += len(true)
        assert 0 < expected < 60 * len(queries)
        assert found >= (0.97 if by_cells else 1) * expected


def test_search__of_few_neighbours(tuning: Tuning) -> None:
    """Rows find their neighbours even if a sample of the remaining vectors has none, once there were more of them."""
    tuning.compared_pairs = 0
    search = NeighbourSearch(recall=0.995, min_similarity=0.62, engine=CpuProducts(1))
    search.nearest_of(np.arange(100), clustered(20_500, 64, centres=3000, spread=0.7), k=20)
    random = np.random.default_rng(1)
    alone = unit(random.standard_normal((10_000, 64)))
    near = unit(alone[:8] + 1.1 * unit(random.standard_normal((8, 64))))
    vectors = np.concatenate([alone, near])
    queries = np.arange(len(alone), len(vectors))
    scores = vectors[queries] @ vectors.T
    scores[np.arange(len(queries)), queries] = -np.inf
    best = scores.max(axis=1)
    assert np.count_nonzero(best > 0.62) >= 4
    _, similarity = search.nearest_of(queries, vectors, k=10)
    np.testing.assert_allclose(similarity[:, 0], np.where(best > 0.62, best, -1), atol=1e-6)


def test_search__with_known_cells(tuning: Tuning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only changed rows are assigned to cells again, and the lists are those without known cells."""
    tuning.compared_pairs = 0
    assigned: list[int] = []

    def noted(vectors: Vectors, centroids: Vectors, **options: Any) -> Any:
        assigned.append(len(vectors) if options.get("rows") is None else len(options["rows"]))
        return assign(vectors, centroids, **options)

    random = np.random.default_rng(2)
    vectors = clustered(3000, 16, centres=100, spread=0.6)
    means = MeanVectors(vectors, np.ones(len(vectors)))
    knowing, other = (NeighbourSearch(recall=0.995, min_similarity=MINIMUM, engine=CpuProducts(1)) for _ in range(2))
    for merges in (0, 100, 300, 900):  # in the last round there are half as many, so cells are found again
        keep, gone = np.split(random.permutation(len(means)).astype(np.int32)[: 2 * merges], 2)
        means.merge(keep, gone)
        means = means.kept(np.setdiff1d(np.arange(len(means)), gone))
        queries = np.arange(0, len(means), 5)
        with monkeypatch.context() as patched:
            patched.setattr(cells, "assign", noted)
            assigned.clear()
            found = knowing.nearest_of(queries, means.vectors, k=20, known=means.cells)
            assert sum(assigned) == merges or merges in (0, 900)
        for one, two in zip(found, other.nearest_of(queries, means.vectors, k=20), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)
        assert means.cells.is_known.all()
