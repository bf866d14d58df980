"""All labelled items, those with probably wrong labels first, and how many labels are wrong.

Three kinds of evidence say which labels an item should have, none of which uses its own label: the votes of its
neighbours (:mod:`framedex.analysis.label_votes`), a linear head on the embeddings, and probabilities of a model. They
are added, and compared with the label. Labels that nearly all evidence contradicts are then replaced, and the evidence
is computed again from the better labels: wrong labels of neighbours otherwise hide each other where many are wrong.

The rate of wrong labels follows from the items about whose label the evidence is most certain, as with the anchor
points of G. Patrini et al., "Making deep neural networks robust to label noise", 2017, and the confident joint of
C. G. Northcutt, L. Jiang & I. L. Chuang, "Confident learning: estimating uncertainty in dataset labels", 2021: there
the share of contradicted labels is the rate of wrong ones. It is counted within each class that the evidence favours.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from framedex.analysis.label_entries import Codes, Floats, Ints, LabelEntries, Labels, Scores, check_labels
from framedex.analysis.label_votes import VoteShares
from framedex.analysis.linear_head import FittedHead, LinearHead, entries_of, sample
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.core.arrays import Mask, Vectors
from framedex.core.progress import ShareProgress

LEAST_LABELLED = 20
"""The number of labelled items from which on their noise is estimated."""
_APART = 0.1  # share of certain items for which kinds of evidence favour different labels, and the estimate is too high
_UNCERTAIN = 0.1  # share of labels that are contradicted beyond the rate, from which on it is too high, too
_VOTE_WEIGHT = 0.5  # of votes beside the head, in the ranking
_FLOOR = 0.02  # added to each probability before kinds of evidence are multiplied
_CORRECTED = 0.9  # probability of another label from which on a label is replaced
_CERTAIN = 0.7  # share of the items of a class that are most certain
_TEMPERATURES = np.geomspace(1, 40, 14)
_CELLS = 4_000_000  # items times labels at a time, about 100 MB
_SURE = 1.96  # standard errors on each side of the interval


class Evidence(StrEnum):
    """Kinds of evidence about labels."""

    NEIGHBOURS = "neighbours"
    HEAD = "head"
    PROBABILITIES = "probabilities"


@dataclass(frozen=True)
class LabelNoise:
    """The ranking of Q labelled items, whose labels may be wrong, and the estimated noise of their labels.

    Attributes:
        item: int64, shape (Q,): the items, those with probably wrong labels first.
        score: float32, shape (Q,), descending: by how much the evidence for another label exceeds that for the label.
        code: int32, shape (Q,): the label of the item that has least evidence.
        suggested: int32, shape (Q,): the label that the item lacks with most evidence.
        probability: float32, shape (Q,), in [0, 1]: that the label is wrong; the mean of all is the rate.
        rate: the estimated share of items with a wrong label, 0 to 1.
        low, high: an interval around it: that of sampling (95 %), of both rounds together. The lower end is 0 where the
            evidence is too uncertain to tell.
        contradicted: the share of items, 0 to 1, whose labels the evidence contradicts, also where it is uncertain.
        is_uncertain: whether the evidence says little about labels, so that the rate may be much too high: kinds of it
            favour different labels even where they are certain together, or they contradict many more labels than the
            rate. Disagreement of classifiers needs no true labels (E. A. Platanios, A. Blum & T. Mitchell, "Estimating
            accuracy from unlabeled data", 2014).
    """

    item: Ints
    score: Scores
    code: Codes
    suggested: Codes
    probability: Scores
    rate: float
    low: float
    high: float
    contradicted: float
    is_uncertain: bool


def label_noise(
    graph: NeighbourGraph,
    inverse: Ints,
    labels: Labels,
    *,
    evidence: frozenset[Evidence],
    are_right: Mask | None = None,
    vectors: Vectors | None = None,
    probabilities: Scores | None = None,
    progress: ShareProgress = ignore_progress,
) -> LabelNoise | None:
    """Return the ranking of labelled items by the evidence against their labels, and the estimated noise.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int, shape (N,): the distinct row of each item.
        labels: labels of the N items.
        evidence: the kinds that are used, at least one.
        are_right: bool, shape (N,): items whose labels are known to be right. They are evidence about others, and are
            left out of the ranking and the estimate.
        vectors: float32, shape (N, D): the embeddings, needed for :attr:`Evidence.HEAD`.
        probabilities: float32, shape (N, labels): the probability of each label by a model that was not trained on the
            item; needed for :attr:`Evidence.PROBABILITIES`.
        progress: called between blocks of items.

    Returns:
        None if fewer than :data:`LEAST_LABELLED` items have labels, or all have the same.

    Raises:
        InvalidInput: the offsets do not fit N items, or a code is outside of its range.
    """
    check_labels(labels, len(inverse))
    entries = LabelEntries.of(inverse, labels, len(graph.rows))
    if len(entries.item) < LEAST_LABELLED or np.count_nonzero(entries.by_label(np.ones(len(entries.row)))) < 2:
        return None
    item = entries.item
    own = Labels(
        entries.code[entries.entry].astype(np.int32), np.append(entries.first, len(entries.entry)), labels.count
    )
    head = LinearHead.of(vectors, item) if vectors is not None and Evidence.HEAD in evidence else None
    row, full = inverse[item].astype(np.int64), graph.filled()
    given = None if probabilities is None else _Given(probabilities, item)

    def judge(targets: Labels, share: ShareProgress) -> "_Judgement":
        sources: list[_Source] = []
        if head is not None:
            sources.append(_Head.of(head.fit(targets), targets))
        if Evidence.NEIGHBOURS in evidence:
            of_rows = LabelEntries.of(row, targets, len(graph.rows))
            sources.append(_Votes(VoteShares.of(full, of_rows), row, _VOTE_WEIGHT if head is not None else 1.0))
        if given is not None and Evidence.PROBABILITIES in evidence:
            sources.append(given)
        return _judge(sources, own, share)

    is_open = np.ones(len(item), bool) if are_right is None else ~are_right[item]
    first = judge(own, lambda share: progress(share / 2))
    second = judge(_corrected(own, first, is_open), lambda share: progress(0.5 + share / 2))
    item, first, second = item[is_open], first.take(is_open), second.take(is_open)
    return _estimated(item, first, second)


def _estimated(item: Ints, first: "_Judgement", second: "_Judgement") -> LabelNoise:
    """Return the ranking of items and the estimate from what both rounds say about them."""
    if not len(item):
        return LabelNoise(item, first.score, first.code, first.other, first.chance, 0.0, 0.0, 0.0, 0.0, False)
    certain = first.certain()
    shares = [_contradicted(first, certain), _contradicted(second, second.certain())]
    rate = float(np.mean([share for share, _ in shares]))
    contradicted = float(np.mean(first.contradicted))
    apart = float(np.mean(first.apart[certain]))
    is_uncertain = apart > _APART or contradicted - rate > _UNCERTAIN
    intervals = [_interval(share, count) for share, count in shares]
    score = first.score + second.score
    order = np.lexsort((item, -score))
    return LabelNoise(
        item[order],
        score[order],
        second.code[order],
        second.other[order],
        _probabilities(second.odds, rate)[order],
        rate,
        0.0 if is_uncertain else min(low for low, _ in intervals),
        max(high for _, high in intervals),
        contradicted,
        is_uncertain,
    )


class _Source(Protocol):
    """A kind of evidence, as likelihoods of labels, with its weight in the ranking."""

    @property
    def weight(self) -> float: ...

    def read(self, start: int, stop: int) -> tuple[Scores, Scores]:
        """Return the evidence for each label, and its logarithm as a probability: float32, shape (items, labels)."""


@dataclass(frozen=True)
class _Head:
    fitted: FittedHead
    targets: Labels
    temperature: np.float32
    weight: float = 1.0

    @classmethod
    def of(cls, fitted: FittedHead, targets: Labels) -> "_Head":
        """Return the head with the temperature at which its probabilities fit the labels best."""
        chosen = sample(len(fitted.rows))
        step = max(1, _CELLS // targets.count)
        losses = np.zeros(len(_TEMPERATURES))
        for start in range(0, len(chosen), step):
            part = chosen[start : start + step]
            predicted = fitted.held_out(targets, part)
            place, code = entries_of(targets, part)
            for number, temperature in enumerate(_TEMPERATURES):
                likely = _softmax(predicted * np.float32(temperature))[place, code]
                losses[number] -= np.log(0.999 * likely + 0.001 / targets.count).sum(dtype=np.float64)
        return cls(fitted, targets, np.float32(_TEMPERATURES[int(np.argmin(losses))]))

    def read(self, start: int, stop: int) -> tuple[Scores, Scores]:
        predicted = self.fitted.held_out(self.targets, np.arange(start, stop))
        return predicted, _log(_softmax(predicted * self.temperature))


@dataclass(frozen=True)
class _Votes:
    shares: VoteShares
    row: Ints
    weight: float

    def read(self, start: int, stop: int) -> tuple[Scores, Scores]:
        rows, place = np.unique(self.row[start:stop], return_inverse=True)
        shares = self.shares.of_rows(rows)[place]
        return shares, _log(shares)


@dataclass(frozen=True)
class _Given:
    probabilities: Scores
    item: Ints
    weight: float = 1.0

    def read(self, start: int, stop: int) -> tuple[Scores, Scores]:
        chances = self.probabilities[self.item[start:stop]]
        return chances, _log(chances)


@dataclass(frozen=True)
class _Judgement:
    """Evidence about Q items.

    Attributes:
        score, odds: float32, shape (Q,): by how much the evidence for another label exceeds that for the label: the
            weighted sum of the kinds, and twice their mean logarithm. Kinds share errors, so that more than two are no
            surer; alone, one is less sure than is right, because of the floor.
        code, other: int32, shape (Q,): the label with least evidence, and the other label with most.
        chance: float32, shape (Q,): the probability of that other label.
        best: int32, shape (Q,): the label with most evidence.
        certainty: float32, shape (Q,): by how much its probability exceeds that of the next label.
        contradicted: bool, shape (Q,): whether the item lacks that label.
        apart: bool, shape (Q,): whether kinds of evidence favour different labels.
    """

    score: Scores
    odds: Scores
    code: Codes
    other: Codes
    chance: Scores
    best: Codes
    certainty: Scores
    contradicted: Mask
    apart: Mask

    def take(self, chosen: Mask) -> "_Judgement":
        """Return the evidence about some of the items."""
        return _Judgement(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def certain(self) -> Mask:
        """Return which items are among the most certain ones of the class that the evidence favours."""
        order = np.lexsort((-self.certainty, self.best))
        first = np.flatnonzero(np.diff(self.best[order], prepend=-1))
        members = np.diff(first, append=len(order))
        rank = np.arange(len(order)) - np.repeat(first, members)
        mask = np.zeros(len(order), bool)
        mask[order] = rank < np.repeat(np.ceil(_CERTAIN * members), members)
        return mask


def _contradicted(judgement: _Judgement, certain: Mask) -> tuple[float, int]:
    """Return the share of contradicted labels among certain items, and their number.

    Uncertain evidence errs more, so if fewer labels are contradicted among all items, all of them say how many.
    """
    share, of_all = float(np.mean(judgement.contradicted[certain])), float(np.mean(judgement.contradicted))
    return (share, int(certain.sum())) if share < of_all else (of_all, len(certain))


def _judge(sources: list[_Source], own: Labels, progress: ShareProgress) -> _Judgement:
    """Return what sources say about the items with some labels."""
    count = len(own.offsets) - 1
    parts = []
    step = max(1, _CELLS // own.count)
    for start in range(0, count, step):
        stop = min(start + step, count)
        total, logs = np.zeros((stop - start, own.count), np.float32), np.zeros((stop - start, own.count), np.float32)
        favoured = []
        for source in sources:
            evidence, log = source.read(start, stop)
            favoured.append(evidence.argmax(axis=1))
            total += np.float32(source.weight) * evidence
            logs += log * np.float32(2 / len(sources))
        place, code = entries_of(own, np.arange(start, stop))
        score, _, _ = _margins(total, place, code)
        odds, least, other = _margins(logs, place, code)
        chances = _softmax(logs)
        each = np.arange(stop - start)
        best = chances.argmax(axis=1)
        highest, chance = chances[each, best].copy(), chances[each, other]
        has_best = np.zeros(stop - start, bool)
        has_best[place[code == best[place]]] = True
        chances[each, best] = 0
        parts.append(
            (
                score,
                odds,
                least,
                other,
                chance,
                best.astype(np.int32),
                highest - chances.max(axis=1),
                ~has_best,
                np.ptp(favoured, axis=0) > 0,
            )
        )
        progress(stop / count)
    return _Judgement(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _margins(evidence: Scores, place: Ints, code: Codes) -> tuple[Scores, Codes, Codes]:
    """Return the most evidence for another label less the least for an own one, the own and the other label."""
    values = evidence[place, code]
    order = np.lexsort((values, place))
    least = order[np.flatnonzero(np.diff(place[order], prepend=-1))]
    others = evidence.copy()
    others[place, code] = -np.inf
    other = others.argmax(axis=1)
    score = others[np.arange(len(others)), other] - values[least]
    return np.where(np.isfinite(score), score, np.float32(-100)), code[least], other.astype(np.int32)


def _corrected(own: Labels, judgement: _Judgement, is_open: Mask) -> Labels:
    """Return the labels, of which those that are contradicted clearly, and may be wrong, are replaced."""
    wrong = np.flatnonzero((judgement.chance > _CORRECTED) & (np.diff(own.offsets) == 1) & is_open)
    codes = own.codes.copy()
    codes[own.offsets[wrong]] = judgement.other[wrong]
    return replace(own, codes=codes)


def _interval(share: float, count: int) -> tuple[float, float]:
    """Return the interval of a share (E. B. Wilson, "Probable inference, the law of succession …", 1927).

    Args:
        share: the share of a sample, 0 to 1.
        count: the size of the sample.
    """
    square = _SURE**2 / count
    middle, half = share + square / 2, np.sqrt(square * (share * (1 - share) + square / 4))
    return float(max(0.0, (middle - half) / (1 + square))), float(min(1.0, (middle + half) / (1 + square)))


def _probabilities(odds: Scores, rate: float) -> Scores:
    """Return logistic probabilities of log odds, moved so that their mean is a rate."""
    low, high = -200.0, 200.0
    values = odds.astype(np.float64)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _logistic(values + middle).mean() > rate else (middle, high)
    return _logistic(values + low).astype(np.float32)


def _logistic(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))


def _softmax(values: Scores) -> Scores:
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return np.asarray(raised, dtype=np.float32)


def _log(chances: Scores) -> Scores:
    return np.asarray(np.log(chances + np.float32(_FLOOR)))
