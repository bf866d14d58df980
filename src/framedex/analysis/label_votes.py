"""Votes of neighbours for the labels of items."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.label_entries import Codes, Floats, Ints, LabelEntries, Scores
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.core.progress import ShareProgress

_DECAY, _NEAREST = 4.0, 0.5  # of the votes' weights, see `_weights`
_COPIES = 20  # maximum votes of all exact copies of an item together
_MIN_VOTE_SHARE = 1 / 64  # of a row's copies: rarer labels do not vote, which limits the memory for thousands of copies
MOST_VOTED = 5
"""The number of labels of :func:`most_voted`."""
_BLOCK = 1_000_000  # votes in memory at a time, about 100 MB


def label_votes(
    graph: NeighbourGraph, entries: LabelEntries, progress: ShareProgress, *, judged: int | None = None
) -> tuple[Floats, Floats, Ints]:
    """Return the share of votes for labels.

    Args:
        graph: neighbours of M rows.
        entries: labels of the rows.
        progress: called between blocks of rows.
        judged: the number of first rows for whose entries the votes are counted; None for all.

    Returns:
        own: float64, shape (E,): the weighted share of an item's voters with its label, without the item itself; NaN
            without voters.
        other: float64, shape (Q,): the largest share of a label that the item does not have.
        code: int64, shape (Q,): that label, the first of ties; -1 for none.
    """
    parts: list[tuple[Floats, Floats, Ints]] = []
    ballots, rows = _Ballots.of(entries), len(graph.rows) if judged is None else judged
    voting = (entries.labelled > 0).astype(np.float64)
    for start, stop in _blocks(graph, ballots.counts, rows):
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


def most_voted(
    graph: NeighbourGraph, entries: LabelEntries, progress: ShareProgress, *, copies: bool
) -> tuple[Ints, Floats]:
    """Return the labels with the most votes of each row.

    Args:
        graph: neighbours of M rows.
        entries: labels of the rows.
        progress: called between blocks of rows.
        copies: whether labelled exact copies of an item vote, too: not for an item that is one of them.

    Returns:
        code: int64, shape (M, MOST_VOTED): labels, those with the most votes first, ties in their order; -1 for none.
        share: float64, shape (M, MOST_VOTED): their shares of all votes, descending; 0 for none.
    """
    ballots, rows = _Ballots.of(entries), len(graph.rows)
    voting = (entries.labelled > 0).astype(np.float64)
    codes, shares = np.full((rows, MOST_VOTED), -1, np.int64), np.zeros((rows, MOST_VOTED))
    for start, stop in _blocks(graph, ballots.counts, rows):
        labelled = entries.labelled[start:stop]
        own = np.minimum(labelled, _COPIES) * np.exp(-_DECAY * _NEAREST) if copies else np.zeros(stop - start)
        voters, weights = _weights(graph, start, stop, own)
        votes, total = ballots.cast(voters, weights), (weights * voting[voters]).sum(axis=1)
        row = np.repeat(np.arange(stop - start), np.diff(votes.starts))
        order = np.lexsort((-votes.weight, row))
        rank = np.arange(len(order)) - votes.starts[row[order]]
        listed = order[(rank < MOST_VOTED) & (votes.weight[order] > 0)]
        place = row[listed], rank[(rank < MOST_VOTED) & (votes.weight[order] > 0)]
        codes[start:stop][place] = votes.code[listed]
        shares[start:stop][place] = votes.weight[listed] / total[row[listed]]
        progress(stop / rows)
    return codes, shares


@dataclass(frozen=True)
class VoteShares:
    """Shares of the neighbours' votes for all labels, by row; copies of a row do not vote on it.

    Attributes:
        graph: neighbours of M rows, without missing ones.
        ballots: the labels that rows vote for.
        voting: float64, shape (M,): 1 for rows with labelled items, 0 for others.
    """

    graph: NeighbourGraph
    ballots: "_Ballots"
    voting: Floats

    @classmethod
    def of(cls, graph: NeighbourGraph, entries: LabelEntries) -> "VoteShares":
        """Return the shares of votes of rows with some labels."""
        return cls(graph, _Ballots.of(entries), (entries.labelled > 0).astype(np.float64))

    def of_rows(self, rows: Ints) -> Scores:
        """Return the shares of rows: float32, shape (R, labels); zeros for a row without voters."""
        voters, weights = self.graph.rows[rows], _neighbour_weights(self.graph.similarity[rows])
        votes = self.ballots.cast(voters, weights)
        total = (weights * self.voting[voters]).sum(axis=1)
        row = np.repeat(np.arange(len(rows)), np.diff(votes.starts))
        shares = np.zeros((len(rows), self.ballots.labels), np.float32)
        shares[row, votes.code] = votes.weight / np.maximum(total[row], 1e-30)
        return shares


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
    def of(cls, entries: LabelEntries) -> "_Ballots":
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


def _blocks(graph: NeighbourGraph, ballots: npt.NDArray[np.integer], rows: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of blocks of the first rows whose votes fit into memory, from their numbers of labels."""
    cost = ballots[:rows] + 1 + graph.k
    for column in range(graph.k):
        cost = cost + ballots[graph.rows[:rows, column]]
    number = np.cumsum(cost) // _BLOCK
    edges = [*np.flatnonzero(np.diff(number, prepend=-1)).tolist(), len(cost)]
    yield from pairwise(edges)


def _weights(graph: NeighbourGraph, start: int, stop: int, own: Floats) -> tuple[Codes, Floats]:
    """Return the voters of rows, first the row itself, and the weights of their votes: shape (stop - start, k + 1)."""
    weight = _neighbour_weights(graph.similarity[start:stop])
    voters = np.concatenate([np.arange(start, stop, dtype=np.int32)[:, None], graph.rows[start:stop]], axis=1)
    return voters, np.concatenate([own[:, None], weight], axis=1)


def _neighbour_weights(similarity: Scores) -> Floats:
    """Return the weights of the neighbours' votes: shape (R, k).

    The weight is exp(-4 d / m), where d is the distance and m its mean over the row's neighbours, so that sparse and
    dense regions are treated alike. For d below m / 2 the weight is constant: one near-duplicate must not outvote all
    other neighbours.
    """
    distance = np.clip(1 - similarity, 0, 2).astype(np.float64)
    mean_distance = np.maximum(distance.sum(axis=1, keepdims=True) / max(similarity.shape[1], 1), 1e-6)
    return np.asarray(np.exp(-_DECAY * np.maximum(distance / mean_distance, _NEAREST)))


def _count_votes(part: LabelEntries, votes: _Votes, total: Floats, vote: Floats) -> tuple[Floats, Floats, Ints]:
    """Return (own, other, code) of :func:`label_votes` from the votes for labels and the weight of a copy's vote."""
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
