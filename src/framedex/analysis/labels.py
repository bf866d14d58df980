"""Labels against the neighbour graph: which are probably wrong, and which items are unlike the others of their label.

Near items tend to share their true label, so neighbours vote on each label (D. L. Wilson, "Asymptotic properties of
nearest neighbor rules using edited data", 1972; Z. Zhu, Z. Dong & Y. Liu, "Detecting corrupted labels without training
a model to predict", 2022). What an average member of a label gets of these votes says what to expect of it, as in
confident learning (C. G. Northcutt, L. Jiang & I. L. Chuang, "Confident learning: estimating uncertainty in dataset
labels", 2021).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import Graph, ignore_progress
from framedex.arrays import Mask
from framedex.errors import InvalidInput
from framedex.issue_types.labels import MISLABEL_LIMIT, OUTLIER_LIMIT
from framedex.progress import ShareProgress

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]


_DECAY, _NEAREST = 4.0, 0.5  # of the votes' weights, see `_weights`
_BALANCE = 0.01  # keeps an order among labels that no neighbour supports; without votes the support is one half
_COPIES = 20  # exact copies of an item have together at most so many votes
_LEAST_SHARE = 1 / 64  # of a row's copies: rarer labels do not vote, so thousands of copies cannot fill the memory
_LEAST_VOTES, _LEAST_SUPPORT, _TYPICAL = 3, 0.4, 0.75  # what a suggestion needs, see `_mislabels`
_COHERENT = 0.15
_SAME = 3  # how many nearest items of its own label an item is compared with
_UNRELATED = 1.0  # cosine distance of unrelated items
_MEMBERS = 10  # fewer of a label have no limit
_BLOCK = 1_000_000  # votes that are held at a time: some 100 MB


@dataclass(frozen=True)
class Labels:
    """The labels of N items, of which each has any number.

    Attributes:
        codes: int32, shape (L,), in [0, count): the labels of the first item, of the second, ...
        offsets: int64, shape (N + 1,): item i has ``codes[offsets[i]:offsets[i + 1]]``.
        count: how many labels there are to choose from.
    """

    codes: Codes
    offsets: Ints
    count: int


@dataclass(frozen=True)
class LabelQuality:
    """How well labels fit, for N items. NaN where nothing can be said.

    Attributes:
        support: float32, shape (N,), in [0, 1]: the neighbours' support of the item's least supported label, relative
            to that of the most supported label which it does not have: 0.5 where both have the same, 0.2 where the
            other has about four times as much.
        mislabel_confidence: float32, shape (N,), in [0.5, 1]: how sure it is that the label is wrong; NaN: no issue.
        suggested: int32, shape (N,): the label to put in its place; -1 where there is no issue.
        distance: float32, shape (N,), from 0: mean cosine distance to the nearest items of the same label, relative to
            the limit of that label; of several labels the largest.
        outlier_confidence: float32, shape (N,), in [0.5, 1]: 0.5 at the limit, 1 infinitely far; NaN: no issue.
    """

    support: Scores
    mislabel_confidence: Scores
    suggested: Codes
    distance: Scores
    outlier_confidence: Scores


def label_quality(
    graph: Graph, inverse: npt.NDArray[np.integer], labels: Labels, *, progress: ShareProgress = ignore_progress
) -> LabelQuality:
    """Return which items are probably mislabelled, and which are unlike the others of their label.

    Items without a label neither vote nor are judged. An item does not vote for itself; its exact copies do, each as a
    neighbour at similarity 1. A row of copies next to it votes as one neighbour, for each label by its share. Labels
    that neighbours share hardly more often than chance has it (see `_coherent`) suggest nothing and have no outliers:
    so labels that are all equal, all different or unrelated to the vectors give no issues.

    Args:
        graph: neighbours among M distinct rows.
        inverse: int, shape (N,): the distinct row of each item.
        labels: of the N items.
        progress: called between blocks of rows.

    Raises:
        InvalidInput: the offsets are not those of N items, or a code is outside its range.
    """
    _check(labels, len(inverse))
    if not len(labels.codes):
        return _unlabelled(len(inverse))
    graph, bearers = graph.filled(), _Bearers.of(inverse, labels, len(graph.rows))
    own, other, code = _votes(graph, bearers, lambda share: progress(0.7 * share))
    coherent, typical = _coherent(bearers, own)
    typical[~coherent] = np.nan
    support, sure, better = _mislabels(graph, bearers, own, (other, code), typical)
    suggested = np.full(len(inverse), -1, dtype=np.int32)
    suggested[bearers.item] = better
    distances = _distances(graph, bearers, lambda share: progress(0.7 + 0.3 * share))
    relative = _relative(bearers, distances, coherent)
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.where(relative > OUTLIER_LIMIT, 1 - 0.5 * OUTLIER_LIMIT / relative, np.nan)
    return LabelQuality(
        support=bearers.by_item(support),
        mislabel_confidence=bearers.by_item(sure),
        suggested=suggested,
        distance=bearers.by_item(relative),
        outlier_confidence=bearers.by_item(far),
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
class _Bearers:
    """Which rows bear which labels: E entries (row, label), ascending; and P pairs (item, label), in order of rows.

    Attributes:
        count: how many labels there are.
        items: N.
        starts: int64, shape (M + 1,): the first entry of each row.
        row, code: int64, shape (E,).
        bearing: int64, shape (E,): how many items of the row have the label.
        labelled: int64, shape (M,): how many items of the row have any label.
        entry: int64, shape (P,): of each pair.
        first: int64, shape (Q,): the first pair of each labelled item.
        item: int64, shape (Q,): the labelled items.
    """

    count: int
    items: int
    starts: Ints
    row: Ints
    code: Ints
    bearing: Ints
    labelled: Ints
    entry: Ints
    first: Ints
    item: Ints

    @classmethod
    def of(cls, inverse: npt.NDArray[np.integer], labels: Labels, rows: int) -> "_Bearers":
        """Return what the labels of items say about their rows; a label that an item has twice counts once."""
        count = max(labels.count, 1)
        order = np.argsort(inverse, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        pairs = np.unique(np.repeat(place, np.diff(labels.offsets)) * count + labels.codes)
        places = pairs // count
        first = np.flatnonzero(np.diff(places, prepend=-1))
        item = order[places[first]]
        keys, entry, bearing = np.unique(
            inverse[order[places]].astype(np.int64) * count + pairs % count, return_inverse=True, return_counts=True
        )
        return cls(
            count=count,
            items=len(inverse),
            starts=np.searchsorted(keys, np.arange(rows + 1) * count),
            row=keys // count,
            code=keys % count,
            bearing=bearing,
            labelled=np.bincount(inverse[item], minlength=rows),
            entry=entry,
            first=first,
            item=item,
        )

    def part(self, start: int, stop: int) -> "_Bearers":
        """Return what concerns some rows, which are then counted from 0."""
        entries = slice(self.starts[start], self.starts[stop])
        pairs = slice(*np.searchsorted(self.entry, (entries.start, entries.stop)))
        found = slice(*np.searchsorted(self.first, (pairs.start, pairs.stop)))
        return replace(
            self,
            starts=self.starts[start : stop + 1] - entries.start,
            row=self.row[entries] - start,
            code=self.code[entries],
            bearing=self.bearing[entries],
            labelled=self.labelled[start:stop],
            entry=self.entry[pairs] - entries.start,
            first=self.first[found] - pairs.start,
            item=self.item[found],
        )

    def find(self, row: npt.NDArray[np.integer], code: Ints) -> Ints:
        """Return how many items of each row have that label."""
        low, end = self.starts[row], self.starts[row + 1]
        high = end
        # A row's few entries are searched: several times faster than a search among all keys.
        for _ in range(int(np.diff(self.starts).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            less = (middle < high) & (self.code.take(middle, mode="clip") < code)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        found = (low < end) & (self.code.take(low, mode="clip") == code)
        return np.where(found, self.bearing.take(low, mode="clip"), 0)

    def by_label(self, values: Floats) -> Floats:
        """Return the sum of the values of entries over the pairs of each label."""
        return np.bincount(self.code, values * self.bearing, minlength=self.count).astype(np.float64)

    def by_item(self, values: Floats) -> Scores:
        """Return the values of labelled items for all items."""
        out = np.full(self.items, np.nan, dtype=np.float32)
        out[self.item] = values
        return out


def _votes(graph: Graph, bearers: _Bearers, progress: ShareProgress) -> tuple[Floats, Floats, Ints]:
    """Return what share of the votes labels get.

    Returns:
        own: float64, shape (E,): the weighted share of an item's voters that have its label, itself left out; NaN
            without voters.
        other: float64, shape (Q,): the largest such share of a label that the item does not have.
        code: int64, shape (Q,): that label, of several the first; -1 if there is none.
    """
    parts: list[tuple[Floats, Floats, Ints]] = []
    ballots, rows = _Ballots.of(bearers), len(graph.rows)
    voting = (bearers.labelled > 0).astype(np.float64)
    for start, stop in _blocks(graph, ballots.counts):
        part = bearers.part(start, stop)
        others = part.labelled - 1
        scale = np.where(others > 0, np.minimum(1, _COPIES / np.maximum(others, 1)), 0)
        vote = scale * np.exp(-_DECAY * _NEAREST)  # of each copy
        voters, weights = _weights(graph, start, stop, vote * part.labelled)
        total = (weights * voting[voters]).sum(axis=1) - vote
        parts.append(_counted(part, ballots.cast(voters, weights), total, vote))
        progress(stop / rows)
    own, other, code = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else np.empty((3, 0))
    return own, other, code.astype(np.int64)


@dataclass(frozen=True)
class _Votes:
    """The votes that labels get from the neighbours of R rows, those of a row together.

    Attributes:
        starts: int64, shape (R + 1,): row r has the votes ``starts[r]:starts[r + 1]``.
        code: int64, shape (V,): the label, ascending within a row.
        weight: float64, shape (V,): the sum of the voters' weights.
    """

    starts: Ints
    code: Ints
    weight: Floats


@dataclass(frozen=True)
class _Ballots:
    """The labels that M rows vote for.

    Attributes:
        starts: int64, shape (M,): where the labels of each row begin.
        counts: int64, shape (M,): how many there are.
        code: int64, shape (B,): the label.
        share: float64, shape (B,): the share of a row's labelled items that have it.
        labels: how many labels there are to choose from.
    """

    starts: Ints
    counts: Ints
    code: Ints
    share: Floats
    labels: int

    @classmethod
    def of(cls, bearers: _Bearers) -> "_Ballots":
        """Return the ballots of all rows."""
        share = bearers.bearing / bearers.labelled[bearers.row]
        kept = share >= _LEAST_SHARE
        counts = np.bincount(bearers.row[kept], minlength=len(bearers.labelled))
        return cls(np.cumsum(counts) - counts, counts, bearers.code[kept], share[kept], bearers.count)

    def cast(self, voters: npt.NDArray[np.integer], weights: Floats) -> _Votes:
        """Return the votes of *voters*, rows of shape (R, k + 1), by their weights."""
        rows, voter = len(voters), voters.ravel()
        counts = self.counts[voter]
        ends = np.cumsum(counts)
        # All ballots, those of a row's voters together.
        place = np.repeat(self.starts[voter] - (ends - counts), counts) + np.arange(len(voter) and int(ends[-1]))
        row = np.repeat(np.arange(rows), counts.reshape(voters.shape).sum(axis=1))
        key = row * self.labels + self.code[place]
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.diff(key, prepend=-1) != 0
        weight = np.repeat(weights.ravel(), counts) * self.share[place]
        sums = np.bincount(np.cumsum(is_first) - 1, weight[order])
        key = key[is_first]
        starts = np.searchsorted(key, np.arange(rows + 1) * self.labels)
        return _Votes(starts, key % self.labels, np.asarray(sums, np.float64))


def _blocks(graph: Graph, ballots: npt.NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of rows whose votes fit into memory, given how many labels each row votes for."""
    cost = ballots + 1 + graph.k
    for column in range(graph.k):
        cost = cost + ballots[graph.rows[:, column]]
    number = np.cumsum(cost) // _BLOCK
    edges = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(cost)]
    yield from pairwise(edges)


def _weights(graph: Graph, start: int, stop: int, own: Floats) -> tuple[Codes, Floats]:
    """Return the voters of some rows, first the row itself, and the weight of their votes: shape (stop - start, k + 1).

    It is exp(-4 d / m), where d is the distance and m its mean over the row's neighbours, so that sparse and dense
    regions are treated alike. Below m / 2 the weight rises no more: one near-duplicate must not outvote all others.
    """
    far = np.clip(1 - graph.similarity[start:stop], 0, 2).astype(np.float64)
    usual = np.maximum(far.sum(axis=1, keepdims=True) / max(graph.k, 1), 1e-6)
    weight = np.exp(-_DECAY * np.maximum(far / usual, _NEAREST))
    voters = np.concatenate([np.arange(start, stop, dtype=np.int32)[:, None], graph.rows[start:stop]], axis=1)
    return voters, np.concatenate([own[:, None], weight], axis=1)


def _counted(part: _Bearers, votes: _Votes, total: Floats, vote: Floats) -> tuple[Floats, Floats, Ints]:
    """Return (own, other, code) of the part, as `_votes`, from the votes for labels and the weight of a copy's vote."""
    size, starts = len(votes.weight), votes.starts
    row = np.repeat(np.arange(len(total)), np.diff(starts))
    order = np.lexsort((-votes.weight, row))  # stable, so equal votes stay in the order of labels
    rank = np.empty(size + 1, dtype=np.int64)
    rank[order], rank[size] = np.arange(size) - starts[row], size
    keys = np.append(row * part.count + votes.code, -1)
    wanted = part.row * part.count + part.code
    place = np.searchsorted(keys[:-1], wanted)
    place[keys[place] != wanted] = size
    weight, codes = np.append(votes.weight, 0), np.append(votes.code, -1)
    bearer = part.row[part.entry[part.first]]
    best = starts[bearer] + _first_missing(rank[place][part.entry], part.first)
    best = np.append(order, size)[np.where(best < starts[bearer + 1], best, size)]
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.maximum(weight[place] - vote[part.row], 0) / total[part.row]
        other = np.where(weight[best] > 0, weight[best] / total[bearer], 0)
    return own, other, np.where(weight[best] > 0, codes[best], -1)


def _first_missing(ranks: Ints, first: Ints) -> Ints:
    """Return the lowest rank, from 0, that none of an item's labels has; *first* are the items' first pairs."""
    item = np.repeat(np.arange(len(first)), np.diff(first, append=len(ranks)))
    ordered = ranks[np.lexsort((ranks, item))]
    return np.bincount(item[ordered == np.arange(len(ranks)) - first[item]], minlength=len(first))


def _coherent(bearers: _Bearers, own: Floats) -> tuple[Mask, Floats]:
    """Return of each label whether its members lie together, and the mean share of votes that they get for it.

    They do where that share exceeds chance, the label's frequency, by 15 % of what it could (as Cohen's kappa does).
    """
    known = np.isfinite(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        typical = bearers.by_label(np.where(known, own, 0)) / bearers.by_label(known.astype(np.float64))
        chance = bearers.by_label(np.ones(len(own))) / len(bearers.first)
        return (typical - chance) / (1 - chance) >= _COHERENT, typical


def _mislabels(
    graph: Graph, bearers: _Bearers, own: Floats, votes: tuple[Floats, Ints], typical: Floats
) -> tuple[Floats, Floats, Ints]:
    """Return (support, confidence, suggested) of labelled items, as in :class:`LabelQuality`.

    A suggestion needs the votes of three neighbours or copies, 40 % of all votes by weight, and 75 % of what an average
    member of that label gets (*typical*, by label; NaN where it must not be suggested).
    """
    other, code = votes
    least = np.minimum.reduceat(own[bearers.entry], bearers.first)
    support = (least + _BALANCE) / (least + other + 2 * _BALANCE)
    expected = np.where(code >= 0, typical[code], np.nan)
    issue = (support < MISLABEL_LIMIT) & (other >= np.maximum(_LEAST_SUPPORT, _TYPICAL * expected))
    found = np.flatnonzero(issue)
    issue[found] = (
        _voters(graph, bearers, bearers.row[bearers.entry[bearers.first[found]]], code[found]) >= _LEAST_VOTES
    )
    sure = 0.5 + 0.5 * (1 - support / MISLABEL_LIMIT) * np.minimum(1, other / expected)
    return support, np.where(issue, sure, np.nan), np.where(issue, code, -1)


def _voters(graph: Graph, bearers: _Bearers, row: Ints, code: Ints) -> Ints:
    """Return how many neighbours and copies of rows have a label."""
    voters = bearers.find(row, code)
    for column in range(graph.k):
        voters = voters + (bearers.find(graph.rows[row, column], code) > 0)
    return voters


def _distances(graph: Graph, bearers: _Bearers, progress: ShareProgress) -> Floats:
    """Return mean distances to the three nearest other items of the same label, copies counted: float64, shape (E,).

    Those that are not among the row's neighbours are farther than all of these, and how far is unknown: they are taken
    for unrelated, at distance 1, or where the neighbours are farther still, at the distance of the last.
    """
    distances = np.empty(len(bearers.row))
    for start in range(0, len(distances), _BLOCK):
        block = slice(start, start + _BLOCK)
        row, code = bearers.row[block], bearers.code[block]
        missing, total = np.maximum(_SAME + 1 - bearers.bearing[block], 0), np.zeros(len(row))
        for column in range(graph.k):
            open_ = np.flatnonzero(missing)
            near = bearers.find(graph.rows[row[open_], column], code[open_])
            taken = np.minimum(near, missing[open_])
            total[open_] += taken * np.clip(1 - graph.similarity[row[open_], column], 0, 2)
            missing[open_] -= taken
        last = np.maximum(1 - graph.similarity[row, -1], _UNRELATED) if graph.k else _UNRELATED
        distances[block] = (total + missing * last) / _SAME
        progress(min(start + _BLOCK, len(distances)) / len(distances))
    return distances


def _relative(bearers: _Bearers, distances: Floats, usable: Mask) -> Floats:
    """Return distances of labelled items relative to the limit of their label; NaN where none of theirs has one.

    The limit is J. W. Tukey's outer fence (Exploratory Data Analysis, 1977): the third quartile plus three times the
    range between the quartiles. The inner fence, 1.5 times, has some 4 % of the items of ordinary labels beyond it.

    Args:
        bearers: labels and items.
        distances: float64, shape (E,).
        usable: bool, by label: whether it may have a limit.
    """
    code, values = bearers.code[bearers.entry], distances[bearers.entry]
    ordered = values[np.lexsort((values, code))]
    members = np.bincount(code, minlength=bearers.count)
    starts = np.cumsum(members) - members
    limits = np.full(bearers.count, np.nan)
    able = np.flatnonzero(usable & (members >= _MEMBERS))
    low, high = (_quantiles(ordered, starts[able], members[able], share) for share in (0.25, 0.75))
    limits[able] = high + np.maximum(3 * (high - low), 0.01)
    return np.asarray(np.fmax.reduceat(values / limits[code], bearers.first))


def _quantiles(ordered: Floats, starts: Ints, sizes: Ints, share: float) -> Floats:
    """Return a quantile of each group of ascending values, linear between them."""
    place = share * (sizes - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, sizes - 1)
    step = ordered[starts + above] - ordered[starts + below]
    return np.asarray(ordered[starts + below] + (place - below) * step, dtype=np.float64)
