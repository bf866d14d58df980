"""Relevance calibrates similarities by those of random pairs, or of a text to random rows."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from framedex.analysis.relevance import NO_SAMPLE, Relevance, measure_relevance, spread_of
from tests.analysis.arrays import unit

Floats = npt.NDArray[np.float32]
SCALES = st.builds(Relevance, st.floats(-2, 2), st.floats(0.01, 1), st.integers(1, 10**9))


def images(classes: int, members: int, *, spread: float = 0.3, dimension: int = 64, seed: int = 0) -> Floats:
    """Return vectors around random centres, those of one class in succession."""
    random = np.random.default_rng(seed)
    centres = np.repeat(unit(random.standard_normal((classes, dimension))), members, axis=0)
    return unit(centres + spread * random.standard_normal(centres.shape) / np.sqrt(dimension))


def pairs(vectors: Floats) -> Floats:
    """Return the similarities of all pairs."""
    return (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]


def matches(vectors: Floats, queries: Floats) -> list[list[int]]:
    """Return the rows that match each query."""
    scale = measure_relevance(pairs(vectors), len(vectors))
    return [np.flatnonzero(each).tolist() for each in scale.of(queries @ vectors.T) >= 0.5]


@given(SCALES)
def test_of__rises(scale: Relevance) -> None:
    """A higher similarity is never less relevant, and relevance stays within 0 and 1."""
    found = scale.of(np.linspace(-1, 1, 300))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= -1e-6).all()
    assert np.isnan(scale.of(np.array([np.nan]))).all()


@given(SCALES, st.floats(0.05, 0.95))
def test_min_similarity(scale: Relevance, wanted: float) -> None:
    """The lowest similarity with a relevance has it, and a slightly lower one does not, unless all or none has it."""
    least = scale.min_similarity(wanted)
    if -1 + 1e-6 < least < 1 - 1e-6:
        assert scale.of(np.array([least]))[0] >= wanted - 1e-6
        assert scale.of(np.array([least - 1e-9]))[0] <= wanted + 1e-4


@pytest.mark.parametrize("count", [1, 50, 1000, 10**6])
def test_of__is_the_number_of_unrelated_rows(count: int) -> None:
    """The relevance is 0.5 where one unrelated row is expected for fifty queries, and falls with that number."""
    scale = Relevance(0.2, 0.1, count)
    for expected, relevance in ((0.02, 0.5), (0.002, 1 / 1.1), (0.2, 1 / 11)):
        similarity = np.tanh(0.2 + 0.1 * norm.isf(expected / count))
        assert scale.of(np.array([similarity]))[0] == pytest.approx(relevance, rel=0.07)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "dimension"), [(250, 16), (250, 64), (1000, 512)])
def test_measure__nothing_matches_among_unrelated_rows(classes: int, dimension: int) -> None:
    """Of rows without a relation to others, at most one in ten has a match."""
    vectors = unit(np.random.default_rng(3).standard_normal((classes, dimension)))
    found = [len(each) - 1 for each in matches(vectors, vectors)]
    assert np.median(found) == 0
    assert np.mean(np.array(found) > 0) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 6, 25, 100])
def test_measure__members_of_dense_classes_match(classes: int) -> None:
    """In dense classes, also if they are few, a query finds its class and hardly anything else; without it, nothing."""
    vectors = images(classes, 20)
    of_class = np.arange(len(vectors)) // 20
    found = matches(vectors, vectors)
    right = [np.count_nonzero(of_class[rows] == number // 20) for number, rows in enumerate(found)]
    assert min(right) >= 15
    assert sum(right) >= 0.99 * sum(map(len, found))
    assert not any(matches(vectors[of_class > 0], vectors[of_class == 0]))


def test_measure__a_long_tail_raises_the_limit() -> None:
    """Similar classes make a match need more similarity than the bulk of the pairs suggests."""
    random = np.random.default_rng(0)
    bulk = random.normal(0.3, 0.1, 10_000)
    tailed = np.concatenate([bulk, random.normal(0.55, 0.03, 700)])
    plain, strict = (measure_relevance(np.tanh(each).astype(np.float32), 500) for each in (bulk, tailed))
    assert strict.min_similarity(0.5) > plain.min_similarity(0.5) + 0.03


def test_measure__more_rows_need_more_similarity() -> None:
    """The larger the dataset, the higher is the similarity of a match."""
    sample = pairs(images(50, 1))
    limits = [measure_relevance(sample, count).min_similarity(0.5) for count in (10, 1000, 10**6)]
    assert limits == sorted(set(limits))


@pytest.mark.parametrize("similarity", [0.99, 0.9999, 1.0])
def test_measure__copies_match(similarity: float) -> None:
    """Copies match, even where all rows are much alike."""
    scale = measure_relevance(np.full(100, similarity, np.float32), 100)
    assert scale.of(np.array([1.0]))[0] >= 0.5


@pytest.mark.parametrize("sample", [[], [0.3], [1.0] * 50])
def test_measure__too_few(sample: Sequence[float]) -> None:
    """Without a sample, relevance follows the plain cosine."""
    assert measure_relevance(np.array(sample, np.float32), 5) is NO_SAMPLE
    assert NO_SAMPLE.min_similarity(0.5) == pytest.approx(0.5, abs=0.01)


def test_measure__least_spread() -> None:
    """A lower bound of the spread keeps few equal rows from making all others match."""
    rows = np.array([0.0, 0.001, 0.002, 0.003, 0.2], np.float32)
    assert measure_relevance(rows, 5).of(rows)[-1] > 0.5
    assert measure_relevance(rows, 5, least_spread=0.1).of(rows)[-1] < 0.5


def test_spread_of() -> None:
    """The spread is that of the bulk, in units of Fisher's z, and 0 without similarities."""
    z = np.random.default_rng(0).normal(0.4, 0.1, 5000)
    assert spread_of(np.tanh(z).astype(np.float32)) == pytest.approx(0.1, rel=0.05)
    assert spread_of(np.empty(0, np.float32)) == 0
