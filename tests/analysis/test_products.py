"""Products of vectors and selections from them are the same on every engine, whatever the threads' timing."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from framedex.analysis.neighbours import nearest
from framedex.analysis.products import (
    CpuProducts,
    Products,
    Survivors,
    TorchProducts,
    best_products,
    largest,
    run_all,
)
from tests.analysis.arrays import Vectors, clustered, uniform
from tests.laws import examples

BLOCKS = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**16))
"""The rows of two blocks, their dimension, and a seed."""


@pytest.fixture(params=["cpu", "torch"], scope="module")
def engine(request: pytest.FixtureRequest) -> Products:
    """Every engine that runs without a GPU."""
    if request.param == "cpu":
        return CpuProducts(2)
    pytest.importorskip("torch")
    return TorchProducts("cpu")


def blocks(shape: tuple[int, int, int, int]) -> tuple[Vectors, Vectors]:
    """Return two blocks of small integers; their products are exact, and have many ties."""
    first, second, dimension, seed = shape
    random = np.random.default_rng(seed)
    a, b = (random.integers(-4, 5, (count, dimension)).astype(np.float32) for count in (first, second))
    return a, b


def entries(found: Survivors) -> list[tuple[int, int, float]]:
    """Return the entries of a matrix in a fixed order."""
    return sorted(zip(*(each.tolist() for each in found), strict=True))


def threads_of_blas() -> set[int]:
    """Return the number of threads of the BLAS libraries in this process."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.slow
@examples(60)
@given(BLOCKS, st.integers(1, 30))
def test_largest__are_the_largest(engine: Products, shape: tuple[int, int, int, int], k: int) -> None:
    """The k largest scores of each row are returned with their columns, descending, no column twice."""
    a, b = blocks(shape)
    k = min(k, len(b))
    columns, scores = engine.largest(a, b, k)
    full = a @ b.T
    np.testing.assert_array_equal(scores, np.sort(full, axis=1)[:, ::-1][:, :k])
    np.testing.assert_array_equal(np.take_along_axis(full, columns, axis=1), scores)
    assert np.all(np.diff(np.sort(columns, axis=1), axis=1) > 0)


@pytest.mark.slow
@examples(40)
@given(BLOCKS, st.integers(1, 29))
def test_largest__not_the_row_itself(engine: Products, shape: tuple[int, int, int, int], k: int) -> None:
    """A block that is compared with itself never returns a row's score with itself."""
    a, _ = blocks(shape)
    if len(a) > 1:
        columns, scores = engine.largest(a, a, min(k, len(a) - 1), own=True)
        assert np.all(columns != np.arange(len(a))[:, None])
        assert np.all(np.isfinite(scores))


def test_largest__none_and_all() -> None:
    """For k = 0 no column is returned, and for the full k all columns; ties are in column order."""
    scores = np.array([[1, 3, 3], [2, 2, 2]], np.float32)
    columns, values = largest(scores, 0)
    assert columns.shape == values.shape == (2, 0)
    assert largest(scores, 3)[0].tolist() == [[1, 2, 0], [0, 1, 2]]


@pytest.mark.slow
@examples(100)
@given(BLOCKS, st.integers(1, 8), st.integers(-20, 20))
def test_above__holds_the_largest_above_the_limits(
    engine: Products, shape: tuple[int, int, int, int], k: int, least: int
) -> None:
    """Returned scores exceed their row's limit and include its k largest such scores; likewise for columns."""
    a, b = blocks(shape)
    random = np.random.default_rng(shape[-1])
    limits = [(least + random.integers(-3, 4, len(each))).astype(np.float32) for each in (a, b)]
    found = engine.above(a, b, limits[0], k, reverse_limits=limits[1])
    assert len(found) == 2
    assert len(engine.above(a, b, limits[0], k)) == 1
    for selected, full, limit in zip(found, (a @ b.T, b @ a.T), limits, strict=True):
        row, column, score = selected
        np.testing.assert_array_equal(full[row, column], score)
        assert np.all(score > limit[row])
        assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == len(row)
        for each in range(len(full)):
            wanted = sorted(full[each][full[each] > limit[each]].tolist(), reverse=True)[:k]
            assert sorted(score[row == each].tolist(), reverse=True)[: len(wanted)] == wanted


@pytest.mark.slow
@examples(60)
@given(BLOCKS, st.integers(0, 12))
def test_near__the_best_and_those_almost_as_good(
    engine: Products, shape: tuple[int, int, int, int], reach: int
) -> None:
    """The best column of a row is returned, and all columns whose score is lower by at most the reach."""
    a, b = blocks(shape)
    best, row, column = engine.near(a, b, float(reach))
    full = a @ b.T
    np.testing.assert_array_equal(full[np.arange(len(a)), best], full.max(axis=1))
    found = {*zip(row.tolist(), column.tolist(), strict=True), *enumerate(best.tolist())}
    assert len(found) == len(row) + len(a)
    expected = np.nonzero(full >= full.max(axis=1, keepdims=True) - reach)
    assert found == set(zip(*(each.tolist() for each in expected), strict=True))


@pytest.mark.parametrize("exact", [True, False])
def test_torch__finds_the_neighbours_that_the_cpu_finds(exact: bool) -> None:
    """PyTorch gives the graph of NumPy, and read-only vectors give no warning."""
    pytest.importorskip("torch")
    vectors = clustered(2500, 24, centres=30)
    vectors.flags.writeable = False
    found = nearest(vectors, k=8, exact=exact, engine=TorchProducts("cpu"))
    expected = nearest(vectors, k=8, exact=exact, engine=CpuProducts(2))
    np.testing.assert_allclose(found.similarity, expected.similarity, atol=2e-6)
    assert (found.rows == expected.rows).mean() > 0.999


def test_torch__selects_the_same_entries() -> None:
    """Both engines select the same scores, whether few or many exceed the limits."""
    pytest.importorskip("torch")
    a, b = uniform(200, 16), uniform(300, 16, seed=1)
    for limit in (-2.0, 0.0, 0.6):
        least, back = np.full(200, limit, np.float32), np.full(300, limit, np.float32)
        pairs = zip(
            CpuProducts(1).above(a, b, least, 5, reverse_limits=back),
            TorchProducts("cpu").above(a, b, least, 5, reverse_limits=back),
            strict=True,
        )
        for one, other in pairs:
            assert [each[:2] for each in entries(one)] == [each[:2] for each in entries(other)]


def test_best_products__fit_the_machine() -> None:
    """There is always an engine, with at least one thread."""
    assert best_products().workers >= 1
    assert CpuProducts().workers >= 1
    assert CpuProducts(3).workers == 3


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_run_all__in_order(workers: int, count: int) -> None:
    """Results come in the order of the items, on the calling thread, however many threads there are."""
    seen: list[tuple[int, int]] = []
    threads: set[int] = set()

    def after(place: int, result: int) -> None:
        seen.append((place, result))
        threads.add(threading.get_ident())

    run_all(CpuProducts(workers), lambda item: item * item, range(count), after=after)
    assert seen == [(place, place * place) for place in range(count)]
    assert threads <= {threading.get_ident()}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_run_all__items_are_drawn_after_the_same_results(workers: int) -> None:
    """An item is taken after the same number of results in every run, so it may depend on these results."""

    def known_at_each_draw() -> list[int]:
        known, results = [], 0

        def items() -> Any:
            for item in range(40):
                known.append(results)
                yield item

        def after(_place: int, _result: int) -> None:
            nonlocal results
            results += 1

        run_all(CpuProducts(workers), lambda item: item, items(), after=after)
        return known

    assert known_at_each_draw() == known_at_each_draw()


@pytest.mark.parametrize("where", ["work", "after", "items"])
@pytest.mark.parametrize("workers", [1, 3])
def test_run_all__an_error_ends_the_work(where: str, workers: int) -> None:
    """An error anywhere is raised; then all threads have ended, few items were started, and BLAS is restored."""
    begun: list[int] = []

    def fail(here: str, item: int) -> int:
        if here == where and item == 5:
            raise InterruptedError(here)
        return item

    def work(item: int) -> int:
        begun.append(item)
        return fail("work", item)

    def after(place: int, _result: int) -> None:
        fail("after", place)

    items = (fail("items", item) for item in range(1000))
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        with pytest.raises(InterruptedError, match=where):
            run_all(CpuProducts(workers), work, items, after=after)
        assert threads_of_blas() == before
    assert len(begun) < 30
    assert not [each for each in threading.enumerate() if each.name.startswith("framedex-index")]


@pytest.mark.slow
def test_nearest__restores_the_threads_of_blas() -> None:
    """Concurrent computations of graphs restore the threads of BLAS."""
    vectors = clustered(1500, 16)
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        threads = [
            threading.Thread(target=nearest, args=(vectors,), kwargs={"k": 3, "engine": CpuProducts(2)})
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert threads_of_blas() == before
