"""Rows that cover all others: worth beside that of every possible choice and of other methods."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.coverage import choose_covering, covered_by
from framedex.analysis.products import CpuProducts
from tests.analysis.arrays import Vectors, at_angles, clustered, uniform
from tests.tuning import Tuning

ENGINE = CpuProducts(1)


def quiet(_share: float) -> None:
    """Show no progress."""


def worth(vectors: Vectors, chosen: npt.ArrayLike) -> float:
    """Return the mean similarity of all rows to the most similar chosen one."""
    return float((vectors @ vectors[np.asarray(chosen)].T).max(axis=1).mean(dtype=np.float64))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_choose_covering__is_nearly_as_good_as_the_best_choice(seed: int) -> None:
    """The worth, counted from nothing, is at least 1 - 1/e of that of the best choice, in fact nearly equal."""
    vectors = clustered(24, 4, seed=seed, centres=5, spread=1.0)
    chosen = choose_covering(vectors, 3, engine=ENGINE, progress=quiet)
    best = max(worth(vectors, each) for each in combinations(range(len(vectors)), 3))
    assert worth(vectors, chosen) > best - 0.03


def test_choose_covering__one_of_each_kind_first() -> None:
    """Kinds of very different size are all chosen from, and an odd row only after them."""
    kinds = np.repeat([0, 90, 180], [200, 40, 20])
    angles = kinds + np.random.default_rng(0).normal(0, 2, len(kinds))
    vectors = at_angles(*angles, 268.0)
    chosen = choose_covering(vectors, 4, engine=ENGINE, progress=quiet)
    assert sorted(kinds[chosen[:3]]) == [0, 90, 180]
    assert kinds[chosen[0]] != 180
    assert chosen[3] == len(vectors) - 1


def test_choose_covering__any_beginning_is_a_good_choice() -> None:
    """The first rows of many cover nearly as well as a choice of so few, and far better than a random one."""
    vectors = clustered(1500, 16, centres=40, spread=0.6)
    many = choose_covering(vectors, 60, engine=ENGINE, progress=quiet)
    few = choose_covering(vectors, 20, engine=ENGINE, progress=quiet)
    random = np.random.default_rng(1).permutation(len(vectors))[:20]
    assert worth(vectors, few) - worth(vectors, many[:20]) < 0.1 * (worth(vectors, few) - worth(vectors, random))


def test_choose_covering__beside_the_plain_algorithm(tuning: Tuning) -> None:
    """Without replacements the rows are those of the greedy algorithm that computes all gains in each turn."""
    tuning.coverage_rounds = 0
    vectors = uniform(300, 8)
    closest, plain = np.full(len(vectors), -1.0), list[int]()
    for _ in range(12):
        gains = np.maximum(vectors @ vectors.T - closest[:, None], 0).sum(axis=0)
        plain.append(int(np.argmax(np.where(np.isin(np.arange(len(vectors)), plain), -1, gains))))
        closest = np.maximum(closest, vectors @ vectors[plain[-1]])
    assert choose_covering(vectors, 12, engine=ENGINE, progress=quiet).tolist() == plain


def test_choose_covering__equal_rows_and_more_than_there_are() -> None:
    """Rows are distinct even where all are equal; more than there are gives all."""
    vectors = at_angles(*[30.0] * 100)
    assert len(set(choose_covering(vectors, 90, engine=ENGINE, progress=quiet).tolist())) == 90
    assert choose_covering(vectors, 100, engine=ENGINE, progress=quiet).tolist() == list(range(100))


def test_choose_covering__reports_and_stops() -> None:
    """Shares ascend; an exception of the callback ends the work."""
    vectors, shares = clustered(200, 8), list[float]()
    choose_covering(vectors, 10, engine=ENGINE, progress=shares.append)
    assert shares == sorted(shares)

    def stop(share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        choose_covering(vectors, 10, engine=ENGINE, progress=stop)


@pytest.mark.parametrize("workers", [1, 2])
def test_covered_by__is_the_most_similar(workers: int) -> None:
    """Each row is covered by the most similar chosen one, whatever the blocks and threads."""
    vectors, counts = clustered(1000, 8), list[int]()
    chosen = vectors[:20]
    covered = covered_by(
        iter(np.array_split(vectors, 7)), 1000, chosen, engine=CpuProducts(workers), after_block=counts.append
    )
    expected = vectors @ chosen.T
    assert (covered.by == expected.argmax(axis=1)).mean() > 0.999  # ties of rounding
    np.testing.assert_allclose(covered.similarity, expected.max(axis=1), atol=1e-6)
    assert counts[-1] == 1000
