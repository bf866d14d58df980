"""Label quality from the neighbour graph: probable label errors, and outliers among the items of a label.

Near items tend to share their true label, so neighbours vote on each label (D. L. Wilson, "Asymptotic properties of
nearest neighbor rules using edited data", 1972; Z. Zhu, Z. Dong & Y. Liu, "Detecting corrupted labels without training
a model to predict", 2022). The mean share of votes that members of a label receive is the expected share for this
label, as in confident learning (C. G. Northcutt, L. Jiang & I. L. Chuang, "Confident learning: estimating uncertainty
in dataset labels", 2021).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import NeighbourGraph, ignore_progress
from framedex.core.arrays import Mask
from framedex.core.progress import ShareProgress
from framedex.errors import InvalidInput
from framedex.issue_types import LabelLimits
from framedex.issue_types.labels import LEAST_AGREEMENT

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]


_DECAY, _NEAREST = 4.0, 0.5  # of the votes' weights, see `_weights`
_BALANCE = 0.01  # added to both shares of votes; without any votes the support is 0.5
_COPIES = 20  # maximum votes of all exact copies of an item together
_MIN_VOTE_SHARE = 1 / 64  # of a row's copies: rarer labels do not vote, which limits the memory for thousands of copies
_MIN_VOTES, _MIN_SUPPORT, _TYPICAL = 3, 0.5, 0.75  # requirements of a suggestion, see `_mislabels`
_COHERENT = 0.15
_N_SAME_LABEL = 3  # an item is compared with this number of nearest items of its label
_UNRELATED = 1.0  # cosine distance of unrelated items
_MIN_MEMBERS = 10  # labels with fewer members have no limit
_BLOCK = 1_000_000  # votes in memory at a time, about 100 MB
_DEFAULT_LIMITS = LabelLimits()


@dataclass(frozen=True)
class Labels:
    """Labels of N items, any number per item.

    Attributes:
        codes: int32, shape (L,), in [0, count): the labels of the first item, of the second item, …
        offsets: int64, shape (N + 1,): item i has ``codes[offsets[i]:offsets[i + 1]]``.
        count: the number of different labels.
    """

    codes: Codes
    offsets: Ints
    count: int


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
        agreement: the agreement of labels with neighbours, 0 to 1, that decided whether there are mislabel issues; None
            if there is nothing to compare.
    """

    support: Scores
    mislabel_confidence: Scores
    suggested: Codes
    distance: Scores
    outlier_confidence: Scores
    agreement: float | None = None


def label_quality(
    graph: NeighbourGraph,
    inverse: npt.NDArray[np.integer],
    labels: Labels,
    *,
    limits: LabelLimits = _DEFAULT_LIMITS,
    agreement: float | None = None,
    progress: ShareProgress = ignore_progress,
) -> LabelQuality:
    """Return the label quality of all items: probable label errors and label outliers.

    Items without a label neither vote nor get a result. An item does not vote for itself. Its exact copies vote, each
    as a neighbour at similarity 1. Copies of another vector vote together as one neighbour, for each label by its share
    of them. A label is ignored if neighbours share it hardly more often than by chance (see `_coherent`): it is never
    suggested and has no outliers. So labels that are all equal, all different or unrelated to the vectors give no
    issues. There are no mislabel issues either if neighbours say too little about labels, see `_agreement`.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int, shape (N,): the distinct row of each item.
        labels: labels of the N items.
        limits: limits of both issues.
        agreement: the agreement of labels with neighbours that an earlier index found, which decides; None to compute
            it.
        progress: called between blocks of rows.

    Raises:
        InvalidInput: the offsets do not fit N items, or a code is outside of its range.
    """
    _check(labels, len(inverse))
    if not len(labels.codes):
        return _unlabelled(len(inverse))
    graph, entries = graph.filled(), _LabelEntries.of(inverse, labels, len(graph.rows))
    own, other, code = _votes(graph, entries, lambda share: progress(0.7 * share))
    coherent, typical = _coherent(entries, own)
    typical[~coherent] = np.nan
    support, confidence, suggestion = _mislabels(graph, entries, own, (other, code), typical, limits.support)
    agreement = _agreement(entries, own, other) if agreement is None else agreement
    if agreement is not None and agreement < LEAST_AGREEMENT:
        confidence, suggestion = np.full_like(confidence, np.nan), np.full_like(suggestion, -1)
    suggested = np.full(len(inverse), -1, dtype=np.int32)
    suggested[entries.item] = suggestion
    distances = _distances(graph, entries, lambda share: progress(0.7 + 0.3 * share))
    relative = _relative_distances(entries, distances, coherent)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.where(relative > limits.distance, 1 - 0.5 * limits.distance / relative, np.nan)
    return LabelQuality(
        support=entries.by_item(support),
        mislabel_confidence=entries.by_item(confidence),
        suggested=suggested,
        distance=entries.by_item(relative),
        outlier_confidence=entries.by_item(distance),
        agreement=agreement,
    )


def _unlabelled(items: int) -> LabelQuality:
    nothing = np.full(items, np.nan, dtype=np.float32)
    return LabelQuality(nothing, nothing, np.full(items, -1, dtype=np.int32), nothing, nothing)


def _check(labels: Labels, items: int) -> None:
    offsets, codes = labels.offsets, labels.codes
    if len(offsets) != items + 1 or offsets[0] != 0 or offsets[-1] != len(codes) or (np.diff(offsets) < 0).any():
        raise InvalidInput(f"offsets of {items} items must ascend from 0 to {len(codes)}, the number of codes")
    if len(codes) and not (codes.min() >= 0 and codes.max() < labels.count):
        raise InvalidInput(f"codes must be in [0, {labels.count}), not {codes.min()} to {codes.max()}")


@dataclass(frozen=True)
class _LabelEntries:
    """Labels of rows: E entries (row, label), ascending; and P pairs (item, label), in order of rows.

    Attributes:
        count: the number of different labels.
        items: the number of items, N.
        starts: int64, shape (M + 1,): the first entry of each row.
        row, code: int64, shape (E,): the row and the label of each entry.
        item_counts: int64, shape (E,): the number of items of the row with the label.
        labelled: int64, shape (M,): the number of items of the row with any label.
        entry: int64, shape (P,): the entry of each pair.
        first: int64, shape (Q,): the first pair of each labelled item.
        item: int64, shape (Q,): the labelled items.
    """

    count: int
    items: int
    starts: Ints
    row: Ints
    code: Ints
    item_counts: Ints
    labelled: Ints
    entry: Ints
    first: Ints
    item: Ints

    @classmethod
    def of(cls, inverse: npt.NDArray[np.integer], labels: Labels, rows: int) -> "_LabelEntries":
        """Return the label entries of rows from the labels of items; repeated labels of an item count once."""
        count = max(labels.count, 1)
        order = np.argsort(inverse, kind="stable")
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        pairs = np.unique(np.repeat(position, np.diff(labels.offsets)) * count + labels.codes)
        positions = pairs // count
        first = np.flatnonzero(np.diff(positions, prepend=-1))
        item = order[positions[first]]
        keys, entry, item_counts = np.unique(
            inverse[order[positions]].astype(np.int64) * count + pairs % count, return_inverse=True, return_counts=True
        )
        return cls(
            count=count,
            items=len(inverse),
            starts=np.searchsorted(keys, np.arange(rows + 1) * count),
            row=keys // count,
            code=keys % count,
            item_counts=item_counts,
            labelled=np.bincount(inverse[item], minlength=rows),
            entry=entry,
            first=first,
            item=item,
        )

    def part(self, start: int, stop: int) -> "_LabelEntries":
        """Return the entries of a range of rows, renumbered from 0."""
        entries = slice(self.starts[start], self.starts[stop])
        pairs = slice(*np.searchsorted(self.entry, (entries.start, entries.stop)))
        items = slice(*np.searchsorted(self.first, (pairs.start, pairs.stop)))
        return replace(
            self,
            starts=self.starts[start : stop + 1] - entries.start,
            row=self.row[entries] - start,
            code=self.code[entries],
            item_counts=self.item_counts[entries],
            labelled=self.labelled[start:stop],
            entry=self.entry[pairs] - entries.start,
            first=self.first[items] - pairs.start,
            item=self.item[items],
        )

    def count_items(self, row: npt.NDArray[np.integer], code: Ints) -> Ints:
        """Return the number of items of each row with a label."""
        low, end = self.starts[row], self.starts[row + 1]
        high = end
        # Searching a row's few entries is several times faster than a search among all keys.
        for _ in range(int(np.diff(self.starts).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            less = (middle < high) & (self.code.take(middle, mode="clip") < code)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        exists = (low < end) & (self.code.take(low, mode="clip") == code)
        return np.where(exists, self.item_counts.take(low, mode="clip"), 0)

    def by_label(self, values: Floats) -> Floats:
        """Return the sum of the entries' values over the pairs of each label."""
        return np.bincount(self.code, values * self.item_counts, minlength=self.count).astype(np.float64)

    def by_item(self, values: Floats) -> Scores:
        """Return values of labelled items for all items, NaN for items without a label."""
        out = np.full(self.items, np.nan, dtype=np.float32)
        out[self.item] = values
        return out


def _votes(graph: NeighbourGraph, entries: _LabelEntries, progress: ShareProgress) -> tuple[Floats, Floats, Ints]:
    """Return the share of votes for labels.

    Returns:
        own: float64, shape (E,): the weighted share of an item's voters with its label, without the item itself; NaN
            without voters.
        other: float64, shape (Q,): the largest share of a label that the item does not have.
        code: int64, shape (Q,): that label, the first of ties; -1 for none.
    """
    parts: list[tuple[Floats, Floats, Ints]] = []
    ballots, rows = _Ballots.of(entries), len(graph.rows)
    voting = (entries.labelled > 0).astype(np.float64)
    for start, stop in _blocks(graph, ballots.counts):
        part = entries.part(start, stop)
        others = part.labelled - 1
        scale = np.where(others > 0, np.minimum(1, _COPIES / np.maximum(others, 1)), 0)
        vote = scale * np.exp(-_DECAY * _NEAREST)  # of each copy
        voters, weights = _weights(graph, start, stop, vote * part.labelled)
        total = (weights * voting[voters]).sum(axis=1) - vote
        parts.append(_count_votes(part, ballots.cast(voters, weights), total, vote))
        progress(stop / rows)
    own, other, code = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else np.empty((3, 0))
    return own, other, code.astype(np.int64)


@dataclass(frozen=True)
class _Votes:
    """Votes for labels from the neighbours of R rows, summed by row and label.

    Attributes:
        starts: int64, shape (R + 1,): row r has the votes ``starts[r]:starts[r + 1]``.
        code: int64, shape (V,): the label, ascending within a row.
        weight: float64, shape (V,): the summed weight of the voters.
    """

    starts: Ints
    code: Ints
    weight: Floats


@dataclass(frozen=True)
class _Ballots:
    """Labels that M rows vote for.

    Attributes:
        starts: int64, shape (M,): the index of each row's first label.
        counts: int64, shape (M,): the number of labels of each row.
        code: int64, shape (B,): the label.
        share: float64, shape (B,): the share of the row's labelled items with the label.
        labels: the number of different labels.
    """

    starts: Ints
    counts: Ints
    code: Ints
    share: Floats
    labels: int

    @classmethod
    def of(cls, entries: _LabelEntries) -> "_Ballots":
        """Return the ballots of all rows."""
        share = entries.item_counts / entries.labelled[entries.row]
        is_candidate = share >= _MIN_VOTE_SHARE
        counts = np.bincount(entries.row[is_candidate], minlength=len(entries.labelled))
        return cls(np.cumsum(counts) - counts, counts, entries.code[is_candidate], share[is_candidate], entries.count)

    def cast(self, voters: npt.NDArray[np.integer], weights: Floats) -> _Votes:
        """Return the weighted votes of *voters*, rows of shape (R, k + 1)."""
        rows, voter = len(voters), voters.ravel()
        counts = self.counts[voter]
        ends = np.cumsum(counts)
        # All ballots, grouped by row.
        position = np.repeat(self.starts[voter] - (ends - counts), counts) + np.arange(len(voter) and int(ends[-1]))
        row = np.repeat(np.arange(rows), counts.reshape(voters.shape).sum(axis=1))
        key = row * self.labels + self.code[position]
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.diff(key, prepend=-1) != 0
        weight = np.repeat(weights.ravel(), counts) * self.share[position]
        sums = np.bincount(np.cumsum(is_first) - 1, weight[order])
        key = key[is_first]
        starts = np.searchsorted(key, np.arange(rows + 1) * self.labels)
        return _Votes(starts, key % self.labels, np.asarray(sums, np.float64))


def _blocks(graph: NeighbourGraph, ballots: npt.NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of blocks of rows whose votes fit into memory, from the number of labels per row."""
    cost = ballots + 1 + graph.k
    for column in range(graph.k):
        cost = cost + ballots[graph.rows[:, column]]
    number = np.cumsum(cost) // _BLOCK
    edges = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(cost)]
    yield from pairwise(edges)


def _weights(graph: NeighbourGraph, start: int, stop: int, own: Floats) -> tuple[Codes, Floats]:
    """Return the voters of rows, first the row itself, and the weights of their votes: shape (stop - start, k + 1).

    The weight is exp(-4 d / m), where d is the distance and m its mean over the row's neighbours, so that sparse and
    dense regions are treated alike. For d below m / 2 the weight is constant: one near-duplicate must not outvote all
    other neighbours.
    """
    distance = np.clip(1 - graph.similarity[start:stop], 0, 2).astype(np.float64)
    mean_distance = np.maximum(distance.sum(axis=1, keepdims=True) / max(graph.k, 1), 1e-6)
    weight = np.exp(-_DECAY * np.maximum(distance / mean_distance, _NEAREST))
    voters = np.concatenate([np.arange(start, stop, dtype=np.int32)[:, None], graph.rows[start:stop]], axis=1)
    return voters, np.concatenate([own[:, None], weight], axis=1)


def _count_votes(part: _LabelEntries, votes: _Votes, total: Floats, vote: Floats) -> tuple[Floats, Floats, Ints]:
    """Return (own, other, code) as `_votes` does, from the votes for labels and the weight of a copy's vote."""
    size, starts = len(votes.weight), votes.starts
    row = np.repeat(np.arange(len(total)), np.diff(starts))
    order = np.lexsort((-votes.weight, row))  # stable, so equal votes stay in the order of labels
    rank = np.empty(size + 1, dtype=np.int64)
    rank[order], rank[size] = np.arange(size) - starts[row], size
    keys = np.append(row * part.count + votes.code, -1)
    own_keys = part.row * part.count + part.code
    position = np.searchsorted(keys[:-1], own_keys)
    position[keys[position] != own_keys] = size
    weight, codes = np.append(votes.weight, 0), np.append(votes.code, -1)
    item_row = part.row[part.entry[part.first]]
    best = starts[item_row] + _first_missing(rank[position][part.entry], part.first)
    best = np.append(order, size)[np.where(best < starts[item_row + 1], best, size)]
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.maximum(weight[position] - vote[part.row], 0) / total[part.row]
        other = np.where(weight[best] > 0, weight[best] / total[item_row], 0)
    return own, other, np.where(weight[best] > 0, codes[best], -1)


def _first_missing(ranks: Ints, first: Ints) -> Ints:
    """Return the lowest rank from 0 that no label of an item has; *first* contains the items' first pairs."""
    item = np.repeat(np.arange(len(first)), np.diff(first, append=len(ranks)))
    ordered = ranks[np.lexsort((ranks, item))]
    return np.bincount(item[ordered == np.arange(len(ranks)) - first[item]], minlength=len(first))


def _coherent(entries: _LabelEntries, own: Floats) -> tuple[Mask, Floats]:
    """Return whether each label is coherent, and the mean share of votes that its members receive for it.

    A label is coherent if this share, corrected for chance as in Cohen's kappa, is at least 0.15. The share by chance
    is the label's frequency.
    """
    has_votes = np.isfinite(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        typical = entries.by_label(np.where(has_votes, own, 0)) / entries.by_label(has_votes.astype(np.float64))
        chance = entries.by_label(np.ones(len(own))) / len(entries.first)
        return (typical - chance) / (1 - chance) >= _COHERENT, typical


def _agreement(entries: _LabelEntries, own: Floats, other: Floats) -> float | None:
    """Return the share of labelled items, 0 to 1, whose neighbours vote for a label of theirs more than for any other.

    This is the leave-one-out accuracy of the vote for the stored labels. Both wrong labels and neighbours that do not
    share their true label lower it. In experience up to a tenth of the labels of a dataset is wrong (C. G. Northcutt,
    A. Athalye & J. Mueller, "Pervasive label errors in test sets destabilize machine learning benchmarks", 2021). So
    if the agreement is much lower, most disagreement is due to the neighbours and says nothing about labels.

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
    entries: _LabelEntries,
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
        _voters(graph, entries, entries.row[entries.entry[entries.first[candidates]]], code[candidates]) >= _MIN_VOTES
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # a limit of 0, below which no support is
        confidence = 0.5 + 0.5 * (1 - support / limit) * np.minimum(1, other / expected)
    return support, np.where(issue, confidence, np.nan), np.where(issue, code, -1)


def _voters(graph: NeighbourGraph, entries: _LabelEntries, row: Ints, code: Ints) -> Ints:
    """Return the number of neighbours and copies of rows with a label."""
    voters = entries.count_items(row, code)
    for column in range(graph.k):
        voters = voters + (entries.count_items(graph.rows[row, column], code) > 0)
    return voters


def _distances(graph: NeighbourGraph, entries: _LabelEntries, progress: ShareProgress) -> Floats:
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
            near = entries.count_items(graph.rows[row[unfinished], column], code[unfinished])
            taken = np.minimum(near, missing[unfinished])
            total[unfinished] += taken * np.clip(1 - graph.similarity[row[unfinished], column], 0, 2)
            missing[unfinished] -= taken
        last = np.maximum(1 - graph.similarity[row, -1], _UNRELATED) if graph.k else _UNRELATED
        distances[block] = (total + missing * last) / _N_SAME_LABEL
        progress(min(start + _BLOCK, len(distances)) / len(distances))
    return distances


def _relative_distances(entries: _LabelEntries, distances: Floats, usable: Mask) -> Floats:
    """Return distances of labelled items relative to the limit of their label; NaN if none of their labels has one.

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
    return np.asarray(np.fmax.reduceat(values / limits[code], entries.first))


def _quantiles(ordered: Floats, starts: Ints, sizes: Ints, share: float) -> Floats:
    """Return a quantile of each group of ascending values, with linear interpolation."""
    position = share * (sizes - 1)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, sizes - 1)
    step = ordered[starts + above] - ordered[starts + below]
    return np.asarray(ordered[starts + below] + (position - below) * step, dtype=np.float64)
