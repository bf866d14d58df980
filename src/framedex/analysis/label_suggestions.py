"""Labels for unlabelled items from the votes of their neighbours, with a calibrated confidence.

The votes are those that find probable label errors (:mod:`framedex.analysis.label_votes`). The share of votes for a
label says little by itself. So it is calibrated on the labelled items: each is held out in turn, the others vote on it,
and the confidence of a share is the frequency with which labels with such a share are right. It is a monotone function
of the share (isotonic regression by pooling adjacent violators; M. Ayer et al., "An empirical distribution function for
sampling with incomplete information", 1955; for classifiers B. Zadrozny & C. Elkan, "Transforming classifier scores
into accurate multiclass probability estimates", 2002).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.label_entries import Floats, Ints, LabelEntries, Labels, Scores
from framedex.analysis.label_votes import most_voted
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.core.arrays import Mask
from framedex.core.masks import true_places
from framedex.core.progress import ShareProgress

LEAST_LABELLED = 20
"""The number of labelled items with voters from which on confidences can be calibrated."""
_LIKELY = 0.5  # confidence from which on a further label of an item is suggested
_BIN = 20  # held-out labels with about equal shares of votes, which have one frequency
_PRIOR = 1.0  # right and wrong labels that are added to each bin, so that few do not make a certainty


@dataclass(frozen=True)
class Calibration:
    """The confidence of labels by their share of votes.

    Attributes:
        shares: float64, shape (B,), ascending: shares of votes.
        confidences: float64, shape (B,), in [0, 1], not descending: the frequency of right labels at these shares.
    """

    shares: Floats
    confidences: Floats

    @classmethod
    def of(cls, shares: Floats, are_right: Mask) -> "Calibration":
        """Return the calibration from held-out labels.

        Args:
            shares: float64, shape (P,): their shares of votes.
            are_right: bool, shape (P,).
        """
        order = np.argsort(shares, kind="stable")
        count = max(1, len(order) // _BIN)
        means, hits, sizes = list[float](), list[float](), list[float]()
        for part in np.array_split(order, count):
            means.append(float(shares[part].mean()))
            hits.append(float(are_right[part].sum()) + _PRIOR)
            sizes.append(len(part) + 2 * _PRIOR)
        return cls(np.array(means), _isotonic(np.array(hits), np.array(sizes)))

    def __call__(self, shares: npt.NDArray[np.floating]) -> Scores:
        """Return the confidences of shares of votes: float32; between measured shares they are interpolated."""
        return np.asarray(np.interp(shares, self.shares, self.confidences), dtype=np.float32)


@dataclass(frozen=True)
class VotedLabels:
    """Suggested labels, and what held-out labels say about their confidence.

    Attributes:
        item: int64, shape (S,): the unlabelled items, ascending; an item can have several labels.
        code: int64, shape (S,): the label.
        share: float32, shape (S,), in (0, 1]: its share of the votes.
        confidence: float32, shape (S,), in [0, 1]: the expected frequency with which such labels are right.
        held_out: float32, shape (H,): the confidence of each best label of held-out items, by a calibration on other
            items.
        are_right: bool, shape (H,): whether the item has that label.
    """

    item: Ints
    code: Ints
    share: Scores
    confidence: Scores
    held_out: Scores
    are_right: Mask


def suggest_labels(
    graph: NeighbourGraph,
    inverse: npt.NDArray[np.integer],
    labels: Labels,
    *,
    wanted: Mask,
    progress: ShareProgress = ignore_progress,
) -> VotedLabels | None:
    """Return labels for unlabelled items: of each the best one, and others that are more likely right than wrong.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int, shape (N,): the distinct row of each item.
        labels: labels of the N items.
        wanted: bool, shape (N,): the unlabelled items that get labels.
        progress: called between blocks of rows.

    Returns:
        None if fewer than :data:`LEAST_LABELLED` labelled items have voters.
    """
    entries = LabelEntries.of(inverse, labels, len(graph.rows))
    held = most_voted(graph, entries, lambda share: progress(share / 2), copies=False)
    item, code, share, rank = _listed(held, inverse, entries.item)
    is_best = rank == 0
    if np.count_nonzero(is_best) < LEAST_LABELLED:
        return None
    are_right = _have(labels, item, code)
    calibration = Calibration.of(share, are_right)
    held_out = _crossed(item, share, are_right)
    votes = most_voted(graph, entries, lambda part: progress(0.5 + part / 2), copies=True)
    items, codes, shares, ranks = _listed(votes, inverse, np.flatnonzero(wanted))
    confidence = calibration(shares)
    kept = (ranks == 0) | (confidence >= _LIKELY)
    return VotedLabels(
        items[kept],
        codes[kept],
        shares[kept].astype(np.float32),
        confidence[kept],
        held_out[is_best],
        are_right[is_best],
    )


def _listed(
    votes: tuple[Ints, Floats], inverse: npt.NDArray[np.integer], items: Ints
) -> tuple[Ints, Ints, Floats, Ints]:
    """Return (item, code, share, rank) of the labels with votes for some items."""
    codes, shares = (each[inverse[items]] for each in votes)
    place, rank = true_places(codes >= 0)
    return items[place], codes[place, rank], shares[place, rank], rank


def _have(labels: Labels, item: Ints, code: Ints) -> Mask:
    """Return whether items have labels: bool, shape (P,)."""
    owner = np.repeat(np.arange(len(labels.offsets) - 1), np.diff(labels.offsets))
    keys = np.sort(owner * labels.count + labels.codes)
    wanted = item * labels.count + code
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    return np.asarray(keys[place] == wanted)


def _crossed(item: Ints, share: Floats, are_right: Mask) -> Scores:
    """Return confidences of held-out labels, of each half of the items by a calibration on the other half."""
    found = np.zeros(len(item), np.float32)
    _, number = np.unique(item, return_inverse=True)
    halves = np.random.default_rng(0).permutation(int(number.max(initial=-1)) + 1) % 2 == 1  # a fixed choice
    is_odd = halves[number]
    for part in (is_odd, ~is_odd):
        if part.any() and not part.all():
            found[part] = Calibration.of(share[~part], are_right[~part])(share[part])
    return found


def _isotonic(hits: Floats, sizes: Floats) -> Floats:
    """Return the frequencies of bins that do not descend and fit them best, by pooling adjacent violators."""
    pools: list[list[float]] = []
    for hit, size in zip(hits.tolist(), sizes.tolist(), strict=True):
        pools.append([hit, size, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1] = [one + other for one, other in zip(pools[-1], last, strict=True)]
    return np.concatenate([np.full(int(count), hit / size) for hit, size, count in pools])
