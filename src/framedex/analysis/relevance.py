"""Relevance of similarities: how seldom an unrelated row would be as similar to a query.

Encoders have different ranges of similarity: with one, two random photographs have a cosine of 0.1, with another 0.7.
So a similarity is compared with those of random pairs of the same dataset, most of which are unrelated. Of interest is
the number of unrelated rows, among all that are searched, that are expected to be at least as similar to a query: the
E-value of sequence searches (S. Karlin & S. F. Altschul, "Methods for assessing the statistical significance of
molecular sequence features", 1990). If it is E, the relevance is ``1 / (1 + E / 0.02)``. So the relevance is 0.5 at the
similarity that one query in fifty reaches by chance; a higher one is a match. A larger dataset needs a higher
similarity, because it has more unrelated rows.

The similarities are transformed to Fisher's z, ``artanh(s)`` (R. A. Fisher, "On the probable error of a coefficient of
correlation", 1921). Transformed, those of unrelated images are close to a normal distribution, up to its far tail. The
distribution is measured on the quartiles of the sample, which related pairs hardly disturb: an empirical null
(B. Efron, "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis", 2004). Higher quantiles widen
it if they have a longer tail: similar classes are unrelated, too. Quantiles beyond a gap are left out. They belong to
related pairs, as in a dataset of a few dense clusters.

Texts of most multimodal encoders are far from images, and short queries are far from long captions. So the similarities
of a text are compared with those of the same text to random rows.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Similarities = npt.NDArray[np.float32]

_EXPECTED = 0.02  # expected unrelated rows at a relevance of 0.5
_QUARTILES = (0.25, 0.75)  # quantiles that measure the spread of the bulk
_UPPER = (0.75, 0.9, 0.95)  # quantiles that widen it
_GAP = 2.0  # a spread that is as many times as large belongs to related pairs: that of Cauchy's tails is 1.6 at 0.9
_MIN_SPREAD = 0.01
_COPY = 0.9999  # similarity of copies, which match in any dataset and are no evidence about others
_LARGEST = 1 - 1e-7  # similarity, so that Fisher's z is finite
_MIN_SAMPLE = 3
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Relevance:
    """Mapping from similarities to relevance.

    Attributes:
        median: the median of Fisher's z of unrelated rows.
        spread: its standard deviation.
        count: the number of searched rows.
    """

    median: float
    spread: float
    count: int

    def of(self, similarity: npt.NDArray[np.floating]) -> Similarities:
        """Return the relevance of similarities: float32, same shape, in [0, 1]; NaN for NaN."""
        deviation = (_fisher(similarity) - self.median) / self.spread
        odds = np.log(max(self.count, 1) / _EXPECTED) + _log_share_above(deviation)
        return np.asarray(1 / (1 + np.exp(np.clip(odds, -700, 700))), np.float32)

    def min_similarity(self, relevance: float) -> float:
        """Return the lowest similarity with at least a relevance in [0, 1]; -1 if all have it, 1 if none has."""
        low, high = -1.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.of(np.array([middle]))[0] >= relevance else (middle, high)
        return high


def measure_relevance(random_pairs: Similarities, count: int, *, least_spread: float = 0.0) -> Relevance:
    """Return the relevance of similarities, calibrated by random pairs.

    Args:
        random_pairs: float32, shape (B,): similarities of random pairs of rows, or of a query to random rows.
        count: the number of searched rows.
        least_spread: lower bound of the spread of Fisher's z, for when more is known about it than from a small sample.
    """
    sample = _fisher(random_pairs[random_pairs < _COPY])
    if len(sample) < _MIN_SAMPLE:
        return NO_SAMPLE
    median = float(np.median(sample))
    quartile = max(min(_spreads(sample, _QUARTILES)), _MIN_SPREAD, least_spread)
    spread = max(each for each in (quartile, *_spreads(sample, _UPPER)) if each <= _GAP * quartile)
    largest = (float(np.arctanh(_COPY)) - median) / _deviations(count)
    return Relevance(median, min(spread, largest), count)


def spread_of(similarity: Similarities) -> float:
    """Return the spread of Fisher's z of similarities, estimated from the quartiles; 0 without similarities."""
    return min(_spreads(_fisher(similarity), _QUARTILES)) if len(similarity) else 0.0


def _spreads(sample: npt.NDArray[np.float64], shares: tuple[float, ...]) -> list[float]:
    """Return the standard deviation of the normal distribution with the sample's median and each quantile."""
    distances = np.quantile(sample, shares) - np.median(sample)
    return [float(each) / _NORMAL.inv_cdf(share) for each, share in zip(distances, shares, strict=True)]


def _deviations(count: int) -> float:
    """Return the deviation from the median at a relevance of 0.5, in standard deviations."""
    return -_NORMAL.inv_cdf(_EXPECTED / max(count, 1))


def _fisher(similarity: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    return np.arctanh(np.clip(np.asarray(similarity, np.float64), -_LARGEST, _LARGEST))


def _log_share_above(deviation: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the share of a normal distribution above some deviations.

    The share is the upper bound of H. O. Pollak ("A remark on 'Elementary inequalities for Mills' ratio' by Y. Komatu",
    1956), at most 6 % above the true share; below the median it is the complement.
    """
    size = np.abs(deviation)
    with np.errstate(invalid="ignore"):
        log_above = np.log(2 / (size + np.sqrt(size**2 + 8 / np.pi)) / np.sqrt(2 * np.pi)) - size**2 / 2
        below = np.log1p(-np.exp(np.minimum(log_above, np.log(0.5))))
    return np.asarray(np.where(deviation < 0, below, log_above), np.float64)


NO_SAMPLE = Relevance(0.0, float(np.arctanh(0.5)) / _deviations(1), 1)
"""Default relevance, for datasets with too few media for a sample: a cosine of 0.5 has a relevance of 0.5."""
