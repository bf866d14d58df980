"""Relevance of similarities: calibration by the similarities of neighbours and of random pairs.

Encoders have different ranges of similarity: with one, two random photographs have a cosine of 0.1, with another 0.7.
So a similarity is compared with two samples of the same dataset: neighbours, which are alike, and random pairs, which
mostly are not. The relevance of a similarity s is ``a / (a + b)``, where a is the share of neighbours with a similarity
of at most s, and b the share of random pairs with a similarity of at least s. The relevance rises with s. It is near 0
for similarities of random pairs only, and near 1 for those of neighbours only. At 0.5, a neighbour is missed as often
as a random pair is accepted: the equal error rate, which is used to compare verification systems (A. Martin et al.,
"The DET curve in assessment of detection task performance", Eurospeech 1997).

Both shares are computed from logistic distributions with the median and the spread of the samples. So similarities
between and beyond the samples are ranked, too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Similarities = npt.NDArray[np.float32]

_MIN_SPREAD = 0.01
_TO_DEVIATION = 1.4826  # from the median absolute deviation to the standard deviation of a normal distribution
_TO_LOGISTIC = 1.702  # scale of the logistic distribution that is closest to the normal distribution


@dataclass(frozen=True)
class SimilarityDistribution:
    """Distribution of the similarities of one kind of pairs.

    Attributes:
        median: the median similarity.
        spread: the standard deviation, estimated from the median absolute deviation.
    """

    median: float
    spread: float

    @classmethod
    def of(cls, similarity: Similarities) -> "SimilarityDistribution":
        """Return the distribution of a sample of similarities."""
        median = float(np.median(similarity))
        return cls(median, max(_TO_DEVIATION * float(np.median(np.abs(similarity - median))), _MIN_SPREAD))

    def log_share_below(self, similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of the share of pairs with at most this similarity."""
        return -np.logaddexp(0, -_TO_LOGISTIC * (similarity - self.median) / self.spread)

    def log_share_above(self, similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of the share of pairs with at least this similarity."""
        return -np.logaddexp(0, _TO_LOGISTIC * (similarity - self.median) / self.spread)


@dataclass(frozen=True)
class Relevance:
    """Mapping from similarities to relevance.

    Attributes:
        neighbours: distribution of the similarities of neighbours.
        random_pairs: distribution of the similarities of random pairs.
    """

    neighbours: SimilarityDistribution
    random_pairs: SimilarityDistribution

    def of(self, similarity: npt.NDArray[np.floating]) -> Similarities:
        """Return the relevance of similarities: float32, same shape, in [0, 1]; NaN for NaN."""
        exact = np.asarray(similarity, np.float64)
        with np.errstate(invalid="ignore"):
            odds = self.random_pairs.log_share_above(exact) - self.neighbours.log_share_below(exact)
        return np.asarray(1 / (1 + np.exp(np.clip(odds, -700, 700))), np.float32)

    def min_similarity(self, relevance: float) -> float:
        """Return the lowest similarity with at least a relevance in [0, 1]; -1 if all have it, 1 if none has."""
        low, high = -1.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.of(np.array([middle]))[0] >= relevance else (middle, high)
        return high


def query_relevance(random_pairs: Similarities, count: int, *, least_spread: float = _MIN_SPREAD) -> Relevance:
    """Return the relevance of similarities to a query without known neighbours, such as a text.

    In the space of most multimodal encoders, texts are far from images, and short queries are far from long captions.
    So similarities among the searched rows cannot calibrate the query. Instead, a row matches if it is nearer than the
    nearest of as many random rows would be; most of the searched rows are unrelated to the query.

    Args:
        random_pairs: float32, shape (B,): similarities of the query to a sample of the searched rows.
        count: the number of searched rows.
        least_spread: lower bound of the spread, for when more is known about it than from a small sample.
    """
    if not len(random_pairs):
        return NO_SAMPLE
    random = SimilarityDistribution.of(random_pairs)
    random = SimilarityDistribution(random.median, max(random.spread, least_spread))
    reach = float(
        np.sqrt(2 * np.log(max(count, 2)))
    )  # expected maximum of this number of normal values, in standard deviations
    return Relevance(SimilarityDistribution(random.median + 2 * reach * random.spread, random.spread), random)


NO_SAMPLE = Relevance(SimilarityDistribution(1.0, 0.25), SimilarityDistribution(0.0, 0.25))
"""Default relevance, for datasets with too few media for a sample."""


def measure_relevance(neighbours: Similarities, random_pairs: Similarities) -> Relevance:
    """Return the relevance of similarities, calibrated by two samples.

    Args:
        neighbours: float32, shape (A,): similarities of neighbours.
        random_pairs: float32, shape (B,): similarities of random pairs.
    """
    if not len(neighbours) or not len(random_pairs):
        return NO_SAMPLE
    return Relevance(SimilarityDistribution.of(neighbours), SimilarityDistribution.of(random_pairs))
