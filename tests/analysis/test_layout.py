"""Layouts keep neighbours beside each other, compute the forces that they state, and stay where they were."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.layout import _Forces, _Potential, aligned, place_rows, principal_components
from framedex.analysis.neighbours import nearest
from framedex.analysis.vector_sources import VectorsInMemory

Points = npt.NDArray[np.float32]


def quiet(_share: float) -> None:
    """Ignore progress."""


def families(count: int, members: int, *, seed: int = 0, dimension: int = 32) -> tuple[Points, npt.NDArray[np.int64]]:
    """Return unit vectors around random centres, and the number of the centre of each."""
    random = np.random.default_rng(seed)
    family = np.repeat(np.arange(count), members)
    vectors = random.standard_normal((count, dimension))[family] * 3 + random.standard_normal((len(family), dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), family


def placed(vectors: Points, *, seed: int = 0) -> Points:
    """Return the layout of vectors."""
    start = principal_components(VectorsInMemory(vectors), seed=seed)
    return place_rows(nearest(vectors, k=10).rows, start, is_known=False, seed=seed, progress=quiet)


@pytest.mark.slow
def test_place_rows__families_stay_together() -> None:
    """Of the ten rows nearest to a row in the plane nearly all are of its family, which are far fewer by chance."""
    vectors, family = families(20, 30)
    places = placed(vectors)
    assert places.dtype == np.float32
    assert places.shape == (600, 2)
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1)[:, :10]
    assert (family[near] == family[:, None]).mean() > 0.98


@pytest.mark.slow
def test_place_rows__the_same_input_has_the_same_places() -> None:
    """Threads change nothing; the places are centred."""
    vectors, _ = families(5, 40)
    places = placed(vectors)
    np.testing.assert_array_equal(places, placed(vectors))
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-3)


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_place_rows__few(rows: int) -> None:
    """Few rows have places, too."""
    vectors = families(3, 1)[0][:rows]
    places = placed(vectors)
    assert places.shape == (rows, 2)
    assert np.isfinite(places).all()


@pytest.mark.slow
def test_place_rows__missing_neighbours() -> None:
    """A list that ends early, or has nobody, makes no place infinite; equal places come apart."""
    neighbours = np.full((50, 10), -1, np.int32)
    neighbours[:25, 0] = np.arange(1, 26)
    places = place_rows(neighbours, np.zeros((50, 2), np.float32), is_known=False, progress=quiet)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == 50


@pytest.mark.slow
def test_place_rows__reports_and_stops() -> None:
    """Shares ascend to 1; an exception of the callback ends the work."""
    vectors, _ = families(2, 20)
    start, shares = principal_components(VectorsInMemory(vectors)), list[float]()
    neighbours = nearest(vectors, k=5).rows
    place_rows(neighbours, start, is_known=False, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1

    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place_rows(neighbours, start, is_known=False, progress=stop)


@pytest.mark.slow
def test_place_rows__known_places_are_only_adjusted() -> None:
    """With 5 % of the rows at new places, the others hardly move, and the new ones come to their family."""
    vectors, family = families(20, 40)
    places = placed(vectors)
    new = np.arange(0, len(vectors), 20)
    start = places.copy()
    start[new] += np.random.default_rng(1).standard_normal((len(new), 2)).astype(np.float32)
    after = place_rows(nearest(vectors, k=10).rows, start, is_known=True, progress=quiet)
    moved = np.linalg.norm(after - places, axis=1)
    assert np.median(moved) < 0.05 * np.ptp(places, axis=0).max()
    middle = np.stack([after[family == each].mean(axis=0) for each in range(20)])
    nearest_family = np.linalg.norm(after[new][:, None] - middle, axis=2).argmin(axis=1)
    assert (nearest_family == family[new]).mean() > 0.9


@pytest.mark.parametrize(("spread", "tolerance"), [(0.5, 0.1), (5.0, 0.1), (60.0, 0.1), (200.0, 1e-4)])
def test_potential__equals_the_sum_over_all_pairs(spread: float, tolerance: float) -> None:
    """The grid gives the sum of all other pairs to 1 %, and the gradient to 10 % of its size; a wide one is exact."""
    places = np.random.default_rng(0).standard_normal((2, 400), dtype=np.float32) * np.float32(spread)
    with ThreadPoolExecutor(2) as pool:
        total, gradient = _Potential()(places, pool)
    difference = places[:, :, None].astype(np.float64) - places[:, None, :]
    kernel = 1 / (1 + np.square(difference).sum(axis=0))
    exact = -2 * (difference * np.square(kernel)).sum(axis=2)
    assert total == pytest.approx(kernel.sum() - 400, rel=tolerance / 10)
    assert np.linalg.norm(gradient - exact) < tolerance * np.linalg.norm(exact)


def test_forces__pull_neighbours_together() -> None:
    """The attraction is the sum over both directions of all lists; a missing neighbour pulls nobody."""
    places = np.random.default_rng(0).standard_normal((2, 30), dtype=np.float32) * 3
    neighbours = np.random.default_rng(1).integers(0, 30, (30, 4)).astype(np.int32)
    neighbours[::3, 2:] = -1
    with ThreadPoolExecutor(2) as pool:
        found = _Forces(neighbours, pool)._attraction(places)
    exact = np.zeros((2, 30))
    for row, near in enumerate(neighbours):
        for other in near[near >= 0]:
            step = places[:, other].astype(np.float64) - places[:, row]
            step *= 0.5 / 4 / (1 + step @ step)
            exact[:, row] += step
            exact[:, other] -= step
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_principal_components__of_a_known_shape() -> None:
    """Rows that vary most along one direction, and second most along another, are ordered by them."""
    random = np.random.default_rng(0)
    parts = random.standard_normal((300, 2)) * [5, 2]
    axes = np.linalg.qr(random.standard_normal((16, 2)))[0].T
    rows = (parts @ axes + 0.01 * random.standard_normal((300, 16))).astype(np.float32)
    found = principal_components(VectorsInMemory(rows))
    assert found[:, 0].std() == pytest.approx(1, rel=1e-3)
    for axis in range(2):
        assert abs(np.corrcoef(found[:, axis], parts[:, axis])[0, 1]) > 0.99


def test_aligned__turns_and_mirrors_back() -> None:
    """A layout that was turned, mirrored and moved comes back onto the earlier one, other rows with it."""
    before = np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32)
    turn = np.array([[0.0, 1.0], [1.0, 0.0]]) @ [[0.6, -0.8], [0.8, 0.6]]
    after = (before @ turn + [7, -3]).astype(np.float32)
    rows = np.arange(10, 40)
    np.testing.assert_allclose(aligned(after, before[10:], rows, np.arange(30)), before, atol=1e-4)
    np.testing.assert_array_equal(aligned(after, before, np.arange(1), np.arange(1)), after)
