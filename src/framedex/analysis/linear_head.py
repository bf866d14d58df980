"""A linear classifier on embeddings, whose predictions leave out each item in turn.

It is ridge regression onto the labels as vectors of zeros and ones. Its leave-one-out predictions follow from one fit,
as each residual divided by one minus the item's leverage (D. M. Allen, "The relationship between variable selection and
data augmentation and a method for prediction", 1974). So a million items cost a few products of matrices, and no folds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from framedex.analysis.label_entries import Codes, Floats, Ints, Labels, Scores
from framedex.core.arrays import Vectors

_PENALTIES = tuple(
    np.geomspace(1e-4, 0.3, 6).tolist()
)  # shares of the total variance, of which the best for held-out items is taken
_SAMPLE = 5_000  # items by which the penalty is chosen
_MOST_LEVERAGE = 0.999
_BLOCK = 8192  # items at a time


@dataclass(frozen=True)
class LinearHead:
    """The parts of a ridge regression that depend on the embeddings alone.

    Attributes:
        vectors: float32, shape (V, D).
        rows: int64, shape (N,): the vector of each item.
        mean: float64, shape (D,).
        axes: float64, shape (D, R): principal axes.
        variance: float64, shape (R,): of the vectors along these.
    """

    vectors: Vectors
    rows: Ints
    mean: Floats
    axes: Floats
    variance: Floats

    @classmethod
    def of(cls, vectors: Vectors, rows: Ints) -> "LinearHead":
        """Return the head of items.

        Args:
            vectors: float32, shape (V, D): embeddings.
            rows: int64, shape (N,), N at least 1: the embedding of each item.
        """
        count, size = len(rows), vectors.shape[1]
        mean = np.zeros(size)
        for part in _blocks(count):
            mean += vectors[rows[part]].sum(axis=0, dtype=np.float64) / count
        if count < size:
            _, scale, axes = np.linalg.svd(vectors[rows] - mean, full_matrices=False)
            return cls(vectors, rows, mean, axes.T, scale**2 / count)
        products = np.zeros((size, size))
        for part in _blocks(count):
            centred = vectors[rows[part]] - mean.astype(np.float32)
            products += centred.T @ centred
        variance, axes = np.linalg.eigh(products / count)
        return cls(vectors, rows, mean, axes, np.maximum(variance, 0))

    def fit(self, labels: Labels) -> "FittedHead":
        """Return the head that predicts labels of the N items, with the penalty that predicts held-out ones best."""
        count = len(self.rows)
        sums, frequency = self._sums(labels), np.bincount(labels.codes, minlength=labels.count) / count
        total = max(float(self.variance.sum()), 1e-12)
        chosen = sample(count)
        fits = [self._fit(sums, frequency, penalty * total) for penalty in _PENALTIES]
        return min(fits, key=lambda fit: fit.error(labels, chosen))

    def _fit(self, sums: Floats, frequency: Floats, penalty: float) -> "FittedHead":
        inverse = 1 / (self.variance + penalty)
        weights = (self.axes * inverse) @ (self.axes.T @ sums) / len(self.rows)
        scaled = self.axes * np.sqrt(inverse / len(self.rows))
        return FittedHead(
            self.vectors,
            self.rows,
            self.mean.astype(np.float32),
            weights.astype(np.float32),
            frequency.astype(np.float32),
            scaled.astype(np.float32),
        )

    def _sums(self, labels: Labels) -> Floats:
        """Return the sums of centred vectors by label: float64, shape (D, labels)."""
        sums = np.zeros((labels.count, self.vectors.shape[1]))
        for part in _blocks(len(self.rows)):
            row, code = entries_of(labels, np.arange(part.start, part.stop))
            order = np.argsort(code, kind="stable")
            code, first = np.unique(code[order], return_index=True)
            if len(code):
                sums[code] += np.add.reduceat(self.vectors[self.rows[part][row[order]]], first, axis=0)
        members = np.bincount(labels.codes, minlength=labels.count)
        return np.asarray((sums - members[:, None] * self.mean).T)


@dataclass(frozen=True)
class FittedHead:
    """A fitted head.

    Attributes:
        vectors: float32, shape (V, D).
        rows: int64, shape (N,): the vector of each item.
        mean: float32, shape (D,).
        weights: float32, shape (D, labels).
        frequency: float32, shape (labels,): the share of items with each label.
        scaled: float32, shape (D, R): the leverage of a centred vector is the square sum of its products with these.
    """

    vectors: Vectors
    rows: Ints
    mean: Scores
    weights: Scores
    frequency: Scores
    scaled: Scores

    def held_out(self, labels: Labels, items: Ints) -> Scores:
        """Return what the head predicts for each item from the labels of all others: float32, shape (I, labels).

        Args:
            labels: the labels that it was fitted to.
            items: int64, shape (I,).
        """
        centred = self.vectors[self.rows[items]] - self.mean
        leverage = np.square(centred @ self.scaled).sum(axis=1) + np.float32(1 / len(self.rows))
        leverage = np.minimum(leverage, np.float32(_MOST_LEVERAGE))[:, None]
        predicted = centred @ self.weights
        predicted += self.frequency
        row, code = entries_of(labels, items)
        predicted[row, code] -= leverage[row, 0]
        predicted /= 1 - leverage
        return np.asarray(predicted, dtype=np.float32)

    def error(self, labels: Labels, items: Ints) -> float:
        """Return the summed square error of the predictions for some items, each left out."""
        total = 0.0
        for part in _blocks(len(items)):
            predicted = self.held_out(labels, items[part])
            row, code = entries_of(labels, items[part])
            predicted[row, code] -= 1
            total += float(np.square(predicted).sum(dtype=np.float64))
        return total


def sample(count: int) -> Ints:
    """Return some of a number of items, at equal distances, by which settings are chosen."""
    return np.arange(0, count, -(-count // _SAMPLE))


def entries_of(labels: Labels, items: Ints) -> tuple[Ints, Codes]:
    """Return (place, label) of the labels of some items."""
    counts = labels.offsets[items + 1] - labels.offsets[items]
    ends = np.cumsum(counts)
    position = np.repeat(labels.offsets[items] - (ends - counts), counts) + np.arange(len(items) and int(ends[-1]))
    return np.repeat(np.arange(len(items)), counts), labels.codes[position]


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, _BLOCK):
        yield slice(start, min(start + _BLOCK, count))
