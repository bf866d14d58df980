"""How much a similarity means: compared with those of neighbours, and with those of pairs at random.

Encoders differ in what they call similar: with one, two photographs at random have a cosine of 0.1, with another 0.7.
So a similarity is held against two samples of the dataset itself: of neighbours, which are alike, and of pairs at
random, which mostly are not. The relevance of a similarity s is ``a / (a + b)``, where a is the share of neighbours
that are at most that similar, and b the share of random pairs that are at least that similar. It rises with s, is
near 0 where only random pairs are, near 1 where only neighbours are, and 0.5 where it is as easy to miss a neighbour as
to take a stranger for one: the point of equal error, by which verification systems are compared (A. Martin et al., "The
DET curve in assessment of detection task performance", Eurospeech 1997).

Both shares are those of logistic distributions with the median and the spread of the samples, so that also what lies
between the samples, and beyond them, has an order.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Similarities = npt.NDArray[np.float32]

_LEAST_SPREAD = 0.01
_TO_DEVIATION = 1.4826  # of the median absolute deviation, to the standard deviation of a normal distribution
_TO_LOGISTIC = 1.702  # brings a logistic distribution closest to the normal one


@dataclass(frozen=True)
class SimilarityDistribution:
    """Where similarities of one kind of pairs lie.

    Attributes:
        median: of the similarities.
        spread: their standard deviation, from the median absolute deviation.
    """

    median: float
    spread: float

    @classmethod
    def of(cls, similarity: Similarities) -> "SimilarityDistribution":
        """Return where some similarities lie."""
        median = float(np.median(similarity))
        return cls(median, max(_TO_DEVIATION * float(np.median(np.abs(similarity - median))), _LEAST_SPREAD))

    def log_share_below(self, similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of the share of pairs that are at most that similar."""
        return -np.logaddexp(0, -_TO_LOGISTIC * (similarity - self.median) / self.spread)

    def log_share_above(self, similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the logarithm of the share of pairs that are at least that similar."""
        return -np.logaddexp(0, _TO_LOGISTIC * (similarity - self.median) / self.spread)


@dataclass(frozen=True)
class Relevance:
    """What similarities mean.

    Attributes:
        neighbours: where those of pairs lie that are alike.
        random_pairs: where those of pairs at random lie.
    """

    neighbours: SimilarityDistribution
    random_pairs: SimilarityDistribution

    def of(self, similarity: npt.NDArray[np.floating]) -> Similarities:
        """Return the relevance of similarities: float32, of the same shape, 0 to 1; NaN of NaN."""
        exact = np.asarray(similarity, np.float64)
        with np.errstate(invalid="ignore"):
            odds = self.random_pairs.log_share_above(exact) - self.neighbours.log_share_below(exact)
        return np.asarray(1 / (1 + np.exp(np.clip(odds, -700, 700))), np.float32)

    def least(self, relevance: float) -> float:
        """Return the least similarity that has a relevance of 0 to 1; -1 where all have, 1 where none has."""
        low, high = -1.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.of(np.array([middle]))[0] >= relevance else (middle, high)
        return high


def query_relevance(random_pairs: Similarities, count: int, *, least_spread: float = _LEAST_SPREAD) -> Relevance:
    """Return what similarities to one query mean, of which no neighbours are known, as of a text.

    Texts and pictures lie apart in the space of most multimodal encoders, and short questions apart from long captions;
    so what is like what among those that are searched says nothing of the query. It matches what is nearer than the
    nearest of as many random pairs would be, and most of what is searched has nothing to do with it.

    Args:
        random_pairs: float32, shape (B,): similarities of the query to a sample of what is searched.
        count: how much is searched.
        least_spread: of the similarities of random pairs, where more is known of it than a small sample tells.
    """
    if not len(random_pairs):
        return NO_SAMPLE
    level = SimilarityDistribution.of(random_pairs)
    level = SimilarityDistribution(level.median, max(level.spread, least_spread))
    reach = float(np.sqrt(2 * np.log(max(count, 2))))  # of the largest of so many normal values
    return Relevance(SimilarityDistribution(level.median + 2 * reach * level.spread, level.spread), level)


NO_SAMPLE = Relevance(SimilarityDistribution(1.0, 0.25), SimilarityDistribution(0.0, 0.25))
"""For datasets of too few media to tell."""


def measure_relevance(neighbours: Similarities, random_pairs: Similarities) -> Relevance:
    """Return what similarities mean.

    Args:
        neighbours: float32, shape (A,): of pairs that are alike.
        random_pairs: float32, shape (B,): of pairs at random.
    """
    if not len(neighbours) or not len(random_pairs):
        return NO_SAMPLE
    return Relevance(SimilarityDistribution.of(neighbours), SimilarityDistribution.of(random_pairs))
