"""Relevance calibrates similarities by neighbours and random pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.relevance import NO_SAMPLE, Relevance, SimilarityDistribution, measure_relevance

LEVELS = st.builds(SimilarityDistribution, st.floats(-1, 1), st.floats(0.01, 0.5))


@given(neighbours=LEVELS, random_pairs=LEVELS)
def test_of__rises(neighbours: SimilarityDistribution, random_pairs: SimilarityDistribution) -> None:
    """A higher similarity is never less relevant, and relevance stays within 0 and 1."""
    found = Relevance(neighbours, random_pairs).of(np.linspace(-1, 1, 300))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= -1e-6).all()


@given(neighbours=LEVELS, random_pairs=LEVELS, wanted=st.floats(0.05, 0.95))
def test_least(neighbours: SimilarityDistribution, random_pairs: SimilarityDistribution, wanted: float) -> None:
    """The lowest similarity with a relevance has it, unless all similarities have it, or none has."""
    relevance = Relevance(neighbours, random_pairs)
    least = relevance.min_similarity(wanted)
    found = float(relevance.of(np.array([least]))[0])
    assert least <= -1 + 1e-9 or least == 1.0 or found == pytest.approx(wanted, abs=1e-4)


def test_measure__equal_error() -> None:
    """At the equal error rate of neighbours and random pairs the relevance is 0.5."""
    random = np.random.default_rng(0)
    found = measure_relevance(
        (0.8 + 0.05 * random.standard_normal(4000)).astype(np.float32),
        (0.2 + 0.05 * random.standard_normal(4000)).astype(np.float32),
    )
    assert found.min_similarity(0.5) == pytest.approx(0.5, abs=0.02)
    assert found.of(np.array([0.25, 0.75])) == pytest.approx([0, 1], abs=0.001)
    assert np.isnan(found.of(np.array([np.nan])))


def test_measure__too_few() -> None:
    """Without samples, relevance follows the plain cosine."""
    empty = np.empty(0, np.float32)
    assert measure_relevance(empty, empty) is NO_SAMPLE
    assert NO_SAMPLE.min_similarity(0.5) == pytest.approx(0.5, abs=0.01)
