"""Near-duplicate groups are the connected components at each level, nested from loose to strict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.analysis.products import CpuProducts
from framedex.analysis.vector_sources import VectorsInMemory
from framedex.records import DUPLICATE_LEVELS
from tests.analysis.arrays import (
    Vectors,
    at_angles,
    clustered,
    crowd,
    reference_components,
    same_partition,
    uniform,
    unit,
)
from tests.laws import examples
from tests.tuning import Tuning, tuned


def groups(vectors: Vectors, levels: tuple[float, ...] = DUPLICATE_LEVELS) -> tuple[list[list[int]], list[float]]:
    """Return group numbers by item and level, and the similarity to the most similar other item."""
    first, inverse = unique_rows(vectors)
    graph = nearest(vectors[first], engine=CpuProducts(1))
    found, similarity = duplicate_groups(VectorsInMemory(vectors[first]), graph, inverse, levels)
    assert found.dtype == np.int32
    assert similarity.dtype == np.float32
    return found.tolist(), similarity.tolist()


def test_groups__chains_are_connected() -> None:
    """A group contains all items that are linked by near pairs, even if its ends are far from each other."""
    found, _ = groups(at_angles(0, 15, 30, 90), (0.96,))  # the cosine of 15° is 0.966, that of 30° is 0.866
    assert found == [[0], [0], [0], [-1]]


def test_groups__each_level_by_its_own_limit() -> None:
    """A pair is a group at all levels up to its similarity."""
    angle = float(np.degrees(np.arccos(0.987)))
    found, similarity = groups(at_angles(0, angle))
    assert found == [[0, 0, 0, 0, -1, -1, -1, -1]] * 2
    assert similarity == pytest.approx([0.987, 0.987], abs=1e-6)


def test_groups__exact_copies_are_groups_at_every_level() -> None:
    """Copies have similarity one, and are the only groups at level 1.0."""
    base = uniform(3, 16)
    found, similarity = groups(base[[0, 1, 0, 2, 1]])
    assert found == [[0] * 8, [1] * 8, [0] * 8, [-1] * 8, [1] * 8]
    assert similarity[:3] == [1, 1, 1]


def test_groups__copies_but_for_rounding_count_as_copies() -> None:
    """Rounding errors do not separate equal images."""
    vectors = np.tile(uniform(1, 64), (2, 1))
    vectors[1, 0] = np.nextafter(vectors[1, 0], np.float32(2))
    assert groups(vectors)[0] == [[0] * 8] * 2


def test_groups__thousands_of_copies() -> None:
    """Copies beyond the number of neighbours are one group, and do not hide others."""
    vectors = np.concatenate([np.tile(at_angles(0), (5000, 1)), at_angles(10, 100)])
    found, similarity = groups(vectors, (0.96, 1.0))
    assert found == [[0, 0]] * 5000 + [[0, -1], [-1, -1]]
    assert similarity[5000] == pytest.approx(np.cos(np.radians(10)))


@pytest.mark.parametrize("count", [0, 1])
def test_groups__nothing_to_compare_with(count: int) -> None:
    """No item and a single item have no group; the similarity to nothing is -1."""
    assert groups(uniform(count, 4), (0.96, 1.0)) == ([[-1, -1]] * count, [-1] * count)


@examples(60)
@given(st.integers(2, 60), st.integers(2, 4), st.integers(0, 2**16))
def test_groups__law(count: int, dimension: int, seed: int) -> None:
    """Groups have at least two members, are numbered from zero, are nested, and contain every pair of their level."""
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-3, 4, (count, dimension)) + 0.5)
    found = np.array(groups(vectors)[0])
    scores = vectors @ vectors.T
    for place, level in enumerate(DUPLICATE_LEVELS):
        column = found[:, place]
        members = np.bincount(column[column >= 0], minlength=1)
        assert (column >= 0).sum() == 0 or members.min() >= 2
        a, b = np.nonzero((scores >= level + 1e-5) & ~np.eye(count, dtype=bool))
        assert np.all(column[a] == column[b])
        assert np.all(column[a] >= 0)
        if place:
            strict = column >= 0
            pairs = set(zip(column[strict].tolist(), found[strict, place - 1].tolist(), strict=True))
            assert len(pairs) == len({number for number, _ in pairs})
            assert -1 not in {looser for _, looser in pairs}


def test_duplicate_groups__more_near_duplicates_than_neighbours() -> None:
    """Two crowds, each larger than a neighbour list, are one group if their members are near-duplicates."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(2, 64))
    centres[1] = centres[0] + 0.15 * centres[1]
    crowds = [centre + 0.002 * random.normal(size=(60, 64)) for centre in centres]
    stacked = np.concatenate([*crowds, random.normal(size=(40, 64))])
    vectors = (stacked / np.linalg.norm(stacked, axis=1, keepdims=True)).astype(np.float32)
    across = vectors[:60] @ vectors[60:120].T
    assert 0.96 < across.min() < across.max() < 0.999
    levels = (0.96, 0.999, 1.0)
    inverse = np.arange(len(vectors))
    limited, _ = duplicate_groups(VectorsInMemory(vectors), nearest(vectors, k=20), inverse, levels)
    complete, _ = duplicate_groups(VectorsInMemory(vectors), nearest(vectors, k=len(vectors)), inverse, levels)
    np.testing.assert_array_equal(limited, complete)
    assert set(limited[:120, 0]) == {0}
    assert len(set(limited[:120, 1])) == 2
    assert (limited[120:] == -1).all()


def crowds(count: int) -> Vectors:
    """Return pairs of crowds of 40, with a similarity of about 0.98 within a pair, and unrelated directions."""
    centres = uniform(count, 32, seed=5)
    pairs = [(each, crowd(each, 1, spread=0.2, seed=place)[0]) for place, each in enumerate(centres)]
    parts = [
        crowd(centre, 40, spread=0.01, seed=2 * place + side)
        for place, pair in enumerate(pairs)
        for side, centre in enumerate(pair)
    ]
    return np.concatenate([*parts, uniform(500, 32, seed=6)])


@pytest.mark.slow
@pytest.mark.parametrize("all_pairs", [0, 100_000])
@pytest.mark.parametrize("exact", [True, False])
def test_crowds__are_whole_at_each_level(exact: bool, all_pairs: int, tuning: Tuning) -> None:
    """Groups of crowds that fill their own lists are the components of all pairs, by cells or by all comparisons."""
    tuning.crowded_rows = all_pairs
    vectors, levels = crowds(20), (0.9, 0.97, 0.99, 0.9995, 1.0)
    graph = nearest(vectors, k=6, exact=exact)
    assert (graph.cells is None) is exact
    shares: list[float] = []
    found, _ = duplicate_groups(
        VectorsInMemory(vectors), graph, np.arange(len(vectors)), levels, progress=shares.append
    )
    assert shares == sorted(shares)
    assert np.all(np.array(shares) < 1)
    listed, _ = duplicate_groups(
        VectorsInMemory(vectors), nearest(vectors, k=len(vectors)), np.arange(len(vectors)), levels
    )
    np.testing.assert_array_equal(found, listed)
    for level, column in zip(levels, found.T, strict=True):
        component = reference_components(vectors, level)
        assert np.array_equal(column >= 0, np.bincount(component)[component] > 1)
        assert same_partition(column[column >= 0], component[column >= 0])


@pytest.mark.slow
def test_crowds__larger_than_a_block() -> None:
    """More unmerged equal vectors than one block are one group with the vectors near them."""
    vectors = np.concatenate([np.tile(at_angles(0), (2500, 1)), at_angles(10, 20, 100)])
    found, similarity = duplicate_groups(
        VectorsInMemory(vectors), nearest(vectors, k=4), np.arange(len(vectors)), (0.96, 1.0)
    )
    assert found.tolist() == [[0, 0]] * 2500 + [[0, -1]] * 2 + [[-1, -1]]
    assert np.all(similarity[:2500] == 1)


@examples(40)
@given(st.integers(1, 80), st.integers(1, 6), st.integers(0, 2**16))
def test_crowds__law(count: int, k: int, seed: int) -> None:
    """Short and complete lists give the same groups: the components of all pairs."""
    vectors = clustered(count, 6, seed=seed, centres=4, spread=0.3)
    found, _ = duplicate_groups(VectorsInMemory(vectors), nearest(vectors, k=k), np.arange(count), (0.9, 0.99))
    for level, column in zip((0.9, 0.99), found.T, strict=True):
        component = reference_components(vectors, level)
        single = np.bincount(component)[component] == 1
        assert np.array_equal(column == -1, single)
        assert same_partition(column[~single], component[~single])


def test_groups__of_more_pairs_than_are_kept() -> None:
    """Where pairs that connect nothing more are left out, the groups of all levels stay the same."""
    vectors = clustered(3000, 8, centres=200, spread=0.2)
    graph, inverse = nearest(vectors, k=12), np.arange(3000)
    owners = np.where(np.arange(3000) % 5 == 0, np.arange(3000) % 40, -1).astype(np.int32)
    for those in (None, owners):
        expected = duplicate_groups(VectorsInMemory(vectors), graph, inverse, DUPLICATE_LEVELS, owners=those)
        with tuned() as tuning:
            tuning.joined_pairs = 500
            tuning.listed_rows = 128
            found = duplicate_groups(VectorsInMemory(vectors), graph, inverse, DUPLICATE_LEVELS, owners=those)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    assert len(np.unique(expected[0][:, 0])) > 50
