"""Label quality from the neighbour graph: probable label errors, and outliers among the items of a label.

Near items tend to share their true label, so neighbours vote on each label (D. L. Wilson, "Asymptotic properties of
nearest neighbor rules using edited data", 1972; Z. Zhu, Z. Dong & Y. Liu, "Detecting corrupted labels without training
a model to predict", 2022). The mean share of votes that members of a label receive is the expected share for this
label, as in confident learning (C. G. Northcutt, L. Jiang & I. L. Chuang, "Confident learning: estimating uncertainty
in dataset labels", 2021).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.label_entries import Codes, Floats, Ints, LabelEntries, Labels, Scores, check_labels
from framedex.analysis.label_votes import label_votes
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import ignore_progress
from framedex.core.arrays import Mask
from framedex.core.progress import ShareProgress
from framedex.issue_types import LabelLimits

_BALANCE = 0.01  # added to both shares of votes; without any votes the support is 0.5
_MIN_VOTES, _MIN_SUPPORT, _TYPICAL = 3, 0.5, 0.75  # requirements of a suggestion, see `_mislabels`
_COHERENT = 0.15
_N_SAME_LABEL = 3  # an item is compared with this number of nearest items of its label
_UNRELATED = 1.0  # cosine distance of unrelated items
_MIN_MEMBERS = 10  # labels with fewer members have no limit
_BLOCK = 1_000_000  # entries at a time
_DEFAULT_LIMITS = LabelLimits()


@dataclass(frozen=True)
class LabelStatistics:
    """Values that the items of a label have in common, by label code; NaN for labels without such a value.

    Attributes:
        typical: float64, in [0, 1]: the mean share of votes that members receive for the label; NaN if it is not
            coherent, so that it is never suggested.
        limit: float64, above 0: the mean cosine distance to the nearest items of the label beyond which an item is an
            outlier.
    """

    typical: Floats
    limit: Floats


@dataclass(frozen=True)
class LabelQuality:
    """Label quality of N items; NaN where it cannot be computed.

    Attributes:
        support: float32, shape (N,), in [0, 1]: the neighbours' support of the item's least supported label, relative
            to the most supported label that the item does not have. 0.5: equal support; 0.2: the other label has about
            four times the support.
        mislabel_confidence: float32, shape (N,), in [0.5, 1]: confidence that the label is wrong; NaN: no issue.
        suggested: int32, shape (N,): the label to use instead; -1: no issue.
        distance: float32, shape (N,), from 0: mean cosine distance to the nearest items of the same label, relative to
            the limit of that label; the maximum over an item's labels.
        outlier_confidence: float32, shape (N,), in [0.5, 1]: 0.5 at the limit, 1 infinitely far; NaN: no issue.
        agreement: the agreement of labels with neighbours, 0 to 1; None if there is nothing to compare.
        statistics: of the labels.
    """

    support: Scores
    mislabel_confidence: Scores
    suggested: Codes
    distance: Scores
    outlier_confidence: Scores
    statistics: LabelStatistics
    agreement: float | None = None


def label_quality(
    graph: NeighbourGraph,
    inverse: npt.NDArray[np.integer],
    labels: Labels,
    *,
    limits: LabelLimits = _DEFAULT_LIMITS,
    agreement: float | None = None,
    statistics: LabelStatistics | None = None,
    judged: int | None = None,
    progress: ShareProgress = ignore_progress,
) -> LabelQuality:
    """Return the label quality of all items: probable label errors and label outliers.

    Items without a label neither vote nor get a result. An item does not vote for itself. Its exact copies vote, each
    as a neighbour at similarity 1. Copies of another vector vote together as one neighbour, for each label by its share
    of them. A label is ignored if neighbours share it hardly more often than by chance (see `_coherent`): it is never
    suggested and has no outliers. So labels that are all equal, all different or unrelated to the vectors give no
    issues.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int, shape (N,): the distinct row of each item.
        labels: labels of the N items.
        limits: limits of both issues.
        agreement: the agreement of labels with neighbours that an earlier index found, which is returned; None to
            compute it.
        statistics: of the labels, which decide; by default they are computed from the items.
        judged: the number of first distinct rows whose items get results, the others only vote; None for all. Agreement
            and statistics must be given then.
        progress: called between blocks of rows.

    Raises:
        InvalidInput: the offsets do not fit N items, or a code is outside of its range.
    """
    check_labels(labels, len(inverse))
    if not len(labels.codes):
        return _unlabelled(len(inverse), labels.count)
    graph, entries = graph.filled(), LabelEntries.of(inverse, labels, len(graph.rows))
    voters, entries = entries, entries if judged is None else entries.part(0, judged)
    own, other, code = label_votes(graph, voters, lambda share: progress(0.7 * share), judged=judged)
    if statistics is None:
        coherent, typical = _coherent(entries, own)
        typical[~coherent] = np.nan
    else:
        typical = statistics.typical
    support, confidence, suggestion = _mislabels(graph, voters, entries, own, (other, code), typical, limits.support)
    agreement = _agreement(entries, own, other) if agreement is None else agreement
    suggested = np.full(len(inverse), -1, dtype=np.int32)
    suggested[entries.item] = suggestion
    distances = _distances(graph, voters, entries, lambda share: progress(0.7 + 0.3 * share))
    fences = _distance_limits(entries, distances, coherent) if statistics is None else statistics.limit
    relative = np.fmax.reduceat((distances / fences[entries.code])[entries.entry], entries.first)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.where(relative > limits.distance, 1 - 0.5 * limits.distance / relative, np.nan)
    return LabelQuality(
        support=entries.by_item(support),
        mislabel_confidence=entries.by_item(confidence),
        suggested=suggested,
        distance=entries.by_item(relative),
        outlier_confidence=entries.by_item(distance),
        statistics=LabelStatistics(typical, fences),
        agreement=agreement,
    )


def _unlabelled(items: int, labels: int) -> LabelQuality:
    nothing = np.full(items, np.nan, dtype=np.float32)
    statistics = LabelStatistics(np.full(labels, np.nan), np.full(labels, np.nan))
    return LabelQuality(nothing, nothing, np.full(items, -1, dtype=np.int32), nothing, nothing, statistics)


def _coherent(entries: LabelEntries, own: Floats) -> tuple[Mask, Floats]:
    """Return whether each label is coherent, and the mean share of votes that its members receive for it.

    A label is coherent if this share, corrected for chance as in Cohen's kappa, is at least 0.15. The share by chance
    is the label's frequency.
    """
    has_votes = np.isfinite(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        typical = entries.by_label(np.where(has_votes, own, 0)) / entries.by_label(has_votes.astype(np.float64))
        chance = entries.by_label(np.ones(len(own))) / len(entries.first)
        return (typical - chance) / (1 - chance) >= _COHERENT, typical


def _agreement(entries: LabelEntries, own: Floats, other: Floats) -> float | None:
    """Return the share of labelled items, 0 to 1, whose neighbours vote for a label of theirs more than for any other.

    This is the leave-one-out accuracy of the vote for the stored labels. Both wrong labels and neighbours that do not
    share their true label lower it.

    Returns:
        None if no item has neighbours with a label, or all labels are too rare to be suggested.
    """
    members = entries.by_label(np.ones(len(own)))
    best = np.maximum.reduceat(own[entries.entry], entries.first)
    has_votes = np.isfinite(best)
    if not has_votes.any() or members.max() <= _MIN_VOTES:
        return None
    return float(np.mean(best[has_votes] > other[has_votes]))


def _mislabels(
    graph: NeighbourGraph,
    voters: LabelEntries,
    entries: LabelEntries,
    own: Floats,
    votes: tuple[Floats, Ints],
    typical: Floats,
    limit: float,
) -> tuple[Floats, Floats, Ints]:
    """Return (support, confidence, suggested) of labelled items, as in :class:`LabelQuality`.

    A suggested label needs the votes of three neighbours or copies, half of all votes by weight, and 75 % of the mean
    share of its members (*typical*, by label; NaN for labels that must not be suggested).
    """
    other, code = votes
    lowest = np.minimum.reduceat(own[entries.entry], entries.first)
    support = (lowest + _BALANCE) / (lowest + other + 2 * _BALANCE)
    expected = np.where(code >= 0, typical[code], np.nan)
    issue = (support < limit) & (other >= np.maximum(_MIN_SUPPORT, _TYPICAL * expected))
    candidates = np.flatnonzero(issue)
    issue[candidates] = (
        _voters(graph, voters, entries.row[entries.entry[entries.first[candidates]]], code[candidates]) >= _MIN_VOTES
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # a limit of 0, below which no support is
        confidence = 0.5 + 0.5 * (1 - support / limit) * np.minimum(1, other / expected)
    return support, np.where(issue, confidence, np.nan), np.where(issue, code, -1)


def _voters(graph: NeighbourGraph, entries: LabelEntries, row: Ints, code: Ints) -> Ints:
    """Return the number of neighbours and copies of rows with a label."""
    voters = entries.count_items(row, code)
    for column in range(graph.k):
        voters = voters + (entries.count_items(graph.rows[row, column], code) > 0)
    return voters


def _distances(graph: NeighbourGraph, others: LabelEntries, entries: LabelEntries, progress: ShareProgress) -> Floats:
    """Return mean distances to the three nearest other items of the same label, including copies: float64, shape (E,).

    Items outside of the neighbour list are farther than all listed ones, at an unknown distance. The distance 1, that
    of unrelated items, is used for them, or the distance of the last neighbour if it is larger.
    """
    distances = np.empty(len(entries.row))
    for start in range(0, len(distances), _BLOCK):
        block = slice(start, start + _BLOCK)
        row, code = entries.row[block], entries.code[block]
        missing, total = np.maximum(_N_SAME_LABEL + 1 - entries.item_counts[block], 0), np.zeros(len(row))
        for column in range(graph.k):
            unfinished = np.flatnonzero(missing)
            near = others.count_items(graph.rows[row[unfinished], column], code[unfinished])
            taken = np.minimum(near, missing[unfinished])
            total[unfinished] += taken * np.clip(1 - graph.similarity[row[unfinished], column], 0, 2)
            missing[unfinished] -= taken
        last = np.maximum(1 - graph.similarity[row, -1], _UNRELATED) if graph.k else _UNRELATED
        distances[block] = (total + missing * last) / _N_SAME_LABEL
        progress(min(start + _BLOCK, len(distances)) / len(distances))
    return distances


def _distance_limits(entries: LabelEntries, distances: Floats, usable: Mask) -> Floats:
    """Return the limit of each label's distances; NaN if it has none.

    The limit is J. W. Tukey's outer fence (Exploratory Data Analysis, 1977): the third quartile plus three times the
    interquartile range. About 4 % of the items of ordinary labels lie beyond the inner fence (1.5 times the range).

    Args:
        entries: labels and items.
        distances: float64, shape (E,).
        usable: bool, by label: true if the label may have a limit.
    """
    code, values = entries.code[entries.entry], distances[entries.entry]
    ordered = values[np.lexsort((values, code))]
    members = np.bincount(code, minlength=entries.count)
    starts = np.cumsum(members) - members
    limits = np.full(entries.count, np.nan)
    limited = np.flatnonzero(usable & (members >= _MIN_MEMBERS))
    low, high = (_quantiles(ordered, starts[limited], members[limited], share) for share in (0.25, 0.75))
    limits[limited] = high + np.maximum(3 * (high - low), 0.01)
    return limits


def _quantiles(ordered: Floats, starts: Ints, sizes: Ints, share: float) -> Floats:
    """Return a quantile of each group of ascending values, with linear interpolation."""
    position = share * (sizes - 1)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, sizes - 1)
    step = ordered[starts + above] - ordered[starts + below]
    return np.asarray(ordered[starts + below] + (position - below) * step, dtype=np.float64)
