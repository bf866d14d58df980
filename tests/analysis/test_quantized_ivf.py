"""Searches in quantised vectors give the results of comparing all vectors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.cells import assign
from framedex.analysis.codes import empty_codes
from framedex.analysis.products import CpuProducts
from framedex.analysis.quantized_ivf import Block, QuantizedIvf, sorted_by_cell
from framedex.core.arrays import Vectors
from tests.laws import examples
from tests.tuning import tuned


def unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Return vectors of unit length."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def coded(vectors: Vectors, centroids: Vectors, parts: int) -> tuple[QuantizedIvf, Vectors]:
    """Return an index of vectors in some parts, and the vectors in the order of its rows."""
    made, ordered = [], []
    for some in np.array_split(vectors, parts):
        cell = assign(some, centroids, engine=CpuProducts()) if len(some) else np.empty(0, np.int32)
        place, starts = sorted_by_cell(cell, len(centroids))
        codes = empty_codes(len(some), vectors.shape[1])
        codes.put(place, some)
        made.append(Block(codes, starts))
        placed = np.empty_like(some)
        placed[place] = some
        ordered.append(placed)
    return QuantizedIvf(centroids, made), np.concatenate(ordered)


@pytest.mark.slow
@examples(60)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 300),
    dimension=st.integers(1, 40),
    cells=st.integers(1, 12),
    parts=st.integers(1, 4),
    k=st.integers(1, 400),
    share=st.floats(0, 1),
)
def test_nearest__of_some(seed: int, rows: int, dimension: int, cells: int, parts: int, k: int, share: float) -> None:
    """If all selected rows are compared, the results are the true neighbours in order, with their similarities."""
    random = np.random.default_rng(seed)
    vectors = unit(random.standard_normal((rows, dimension)))
    index, ordered = coded(vectors, unit(random.standard_normal((cells, dimension))), parts)
    query = unit(random.standard_normal((1, dimension)))[0]
    mask = random.random(rows) < share
    found, similarity = index.nearest(query, k, index.select(mask), n_candidates=rows)
    true = ordered @ query
    wanted = np.sort(true[mask])[::-1][:k]
    assert len(found) == len(set(found.tolist())) == min(k, int(mask.sum()))
    assert mask[found].all()
    assert similarity == pytest.approx(wanted, abs=5e-5)
    assert similarity == pytest.approx(true[found], abs=5e-5)
    assert (np.diff(similarity) <= 0).all()


@examples(40)
@given(seed=st.integers(0, 1000), k=st.integers(60, 130), spread=st.floats(1e-5, 1e-1), steps=st.integers(1, 9))
def test_nearest__refines_as_many_as_matter(seed: int, k: int, spread: float, steps: int) -> None:
    """Rows whose order the first byte cannot tell are compared by both, however much the second one changes."""
    random, rows = np.random.default_rng(seed), 4 * k
    near = random.standard_normal(64) + spread * np.round(steps * random.standard_normal((rows, 64))) / steps
    index, _ = coded(unit(near), unit(random.standard_normal((3, 64))), 2)
    query = unit(near[:1] + spread * random.standard_normal((1, 64)))[0]
    found, similarity = index.nearest(query, k, index.select(np.ones(rows, bool)), n_candidates=rows)
    best = np.sort(index.similarities(query, np.arange(rows)))[::-1][:k]
    np.testing.assert_array_equal(similarity, best)
    np.testing.assert_array_equal(index.similarities(query, found), best)


def clustered(rows: int, dimension: int, seed: int) -> tuple[QuantizedIvf, Vectors]:
    """Return an index of clusters of several widths in cells, and its vectors in row order."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((40, dimension))
    width = random.uniform(0.1, 0.9, 40)
    of_row = random.integers(0, 40, rows)
    vectors = unit(centres[of_row] + width[of_row, None] * random.standard_normal((rows, dimension)))
    return coded(vectors, unit(centres[:30] + 0.3 * random.standard_normal((30, dimension))), 2)


@examples(20)
@given(seed=st.integers(0, 1000), k=st.integers(1, 100), share=st.sampled_from([1.0, 0.6]))
def test_nearest__reach(seed: int, k: int, share: float) -> None:
    """With the reach that its results need, a search compares fewer rows and returns the same."""
    index, vectors = clustered(3000, 16, seed)
    random = np.random.default_rng(seed)
    selection = index.select(random.random(3000) < share)
    query = unit(vectors[:1] + 0.1 * random.standard_normal((1, 16)))[0]
    reaches = index.reaches(query, selection, 1500)
    assert len(reaches) == 100
    wanted = index.nearest(query, k, selection, n_candidates=1500)
    for reach in (float(reaches.max()) + 1e-3, 2.0):
        found = index.nearest(query, k, selection, n_candidates=1500, reach=reach)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.slow
def test_nearest__reach_leaves_out_cells() -> None:
    """A small reach leaves out results in far cells, but none of a filter of few rows, which stays exact."""
    index, vectors = clustered(3000, 16, 0)
    everything = index.select(np.ones(3000, bool))
    results, needed = [], []
    for query in vectors[:40]:
        needed.append(float(index.reaches(query, everything, 1500).max()))
        wanted = index.nearest(query, 100, everything, n_candidates=1500)[0]
        results.append(np.isin(wanted, index.nearest(query, 100, everything, n_candidates=1500, reach=-0.2)[0]).mean())
    assert max(needed) > -0.2
    assert 0.3 < np.mean(results) < 1
    mask = np.zeros(3000, bool)
    mask[::2] = True
    few = index.select(mask)
    for query in vectors[:40]:
        found = index.nearest(query, 100, few, n_candidates=1500, reach=-2)
        np.testing.assert_array_equal(found, index.nearest(query, 100, few, n_candidates=1500))


def test_nearest__filters_widen_the_search() -> None:
    """A filter does not reduce the number of compared candidates, so no neighbour is missed because of it."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((4000, 16)))
    centroids = unit(random.standard_normal((60, 16)))
    index, ordered = coded(vectors, centroids, 1)
    for share in (0.001, 0.01, 0.02):
        mask = random.random(4000) < share
        for query in unit(random.standard_normal((20, 16))):
            found, _ = index.nearest(query, 10, index.select(mask), n_candidates=100)
            wanted = np.flatnonzero(mask)[np.argsort(-(ordered[mask] @ query), kind="stable")[:10]]
            assert set(found.tolist()) == set(wanted.tolist())


def test_nearest__probes_few_cells() -> None:
    """Without a filter, only as many cells are probed as the number of candidates needs."""
    random = np.random.default_rng(0)
    centroids = unit(random.standard_normal((40, 32)))
    vectors = unit(np.repeat(centroids, 50, axis=0) + 0.01 * random.standard_normal((2000, 32)).astype(np.float32))
    index, _ = coded(vectors, centroids, 2)
    everything = index.select(np.ones(2000, bool))
    found, _ = index.nearest(centroids[7], 200, everything, n_candidates=60)
    assert len(found) == 100  # the rows of two cells
    assert index.nearest(centroids[7], 50, everything, n_candidates=50)[1].min() > 0.99


def test_nearest__many_copies() -> None:
    """If more than k rows are equally near, the results are among them, and the same each time."""
    vectors = unit(np.repeat(np.eye(4, dtype=np.float32), 500, axis=0))
    index, _ = coded(vectors, unit(np.eye(4, dtype=np.float32)), 3)
    everything = index.select(np.ones(2000, bool))
    query = np.array([1, 0, 0, 0], np.float32)
    first, similarity = index.nearest(query, 30, everything, n_candidates=600)
    assert similarity == pytest.approx(np.ones(30))
    assert (index.nearest(query, 30, everything, n_candidates=600)[0] == first).all()


@pytest.mark.slow
def test_all() -> None:
    """The similarities of all rows are right for any number of threads."""
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((70_000, 8)))
    index, ordered = coded(vectors, unit(random.standard_normal((5, 8))), 2)
    query = unit(random.standard_normal((1, 8)))[0]
    with ThreadPoolExecutor(3) as threads:
        assert index.all(query, threads) == pytest.approx(ordered @ query, abs=5e-5)
    rows = random.permutation(70_000)[:500]
    assert index.similarities(query, rows) == pytest.approx(ordered[rows] @ query, abs=5e-5)
    assert index.vector(int(rows[0])) == pytest.approx(ordered[rows[0]], abs=1e-4)


@examples(20)
@given(seed=st.integers(0, 1000), rows=st.integers(0, 900), parts=st.integers(1, 3), k=st.integers(1, 300))
def test_largest(seed: int, rows: int, parts: int, k: int) -> None:
    """The largest similarities of all parts to several queries are those of comparing all, and progress ends at 1."""
    random = np.random.default_rng(seed)
    index, ordered = coded(unit(random.standard_normal((rows, 9))), unit(random.standard_normal((3, 9))), parts)
    queries, shares = unit(random.standard_normal((5, 9))), list[float]()
    with tuned() as tuning, ThreadPoolExecutor(2) as threads:
        tuning.code_thread_rows = 128
        tuning.code_block_rows = 50
        found = index.largest(queries, k, threads, shares.append)
    wanted = np.sort(queries @ ordered.T, axis=1)[:, ::-1][:, :k]
    assert np.sort(found, axis=1)[:, ::-1] == pytest.approx(wanted, abs=5e-5)
    assert shares == sorted(shares)
    assert shares[-1:] == [1.0][:rows]


@examples(40)
@given(
    seed=st.integers(0, 1000), rows=st.integers(1, 90), dimension=st.integers(1, 70), chosen=st.sets(st.integers(0, 89))
)
def test_similarities__depend_on_no_other_row(seed: int, rows: int, dimension: int, chosen: set[int]) -> None:
    """A row has the same similarity to the last bit, whichever rows it is compared with."""
    random = np.random.default_rng(seed)
    index, _ = coded(unit(random.standard_normal((rows, dimension))), unit(random.standard_normal((3, dimension))), 2)
    query = unit(random.standard_normal((1, dimension)))[0]
    some = np.array([row for row in chosen if row < rows], np.int64)
    with ThreadPoolExecutor(2) as threads:
        everything = index.all(query, threads)
    np.testing.assert_array_equal(index.similarities(query, some), everything[some])


def test_empty() -> None:
    """An empty index gives no results."""
    index, _ = coded(np.empty((0, 3), np.float32), unit(np.eye(3, dtype=np.float32)), 1)
    rows, similarity = index.nearest(
        np.array([1, 0, 0], np.float32), 5, index.select(np.empty(0, bool)), n_candidates=10
    )
    assert (len(rows), len(similarity), len(index)) == (0, 0, 0)
