"""Media in the order of how well they fit: by one measure, by several together, and with variety."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.arrays import RowIds
from framedex.forks import cached_property
from framedex.records import Condition
from framedex.storage.tables import ROW_ID

Scores = npt.NDArray[np.float32]

COSINE_DISTANCE, BM25, FUSED = "cosine_distance", "bm25", "reciprocal_rank_fusion"
_FUSION = 60  # of the paper; places below that count about alike
RANKED = "ranked"
"""The relation that a ranking's condition brings: :meth:`Ranking.table`."""


@dataclass(frozen=True)
class Ranking:
    """Media, the best first.

    Attributes:
        row_ids: uint64, shape (M,).
        score: float32, shape (M,): lower is better for ``cosine_distance``, higher for the others.
        kind: ``cosine_distance`` (0 to 2), ``bm25`` (above 0) or ``reciprocal_rank_fusion`` (above 0).
        measured: the relevance, or what makes it of scores: of a million it takes as long as their order.
    """

    row_ids: RowIds
    score: Scores
    kind: str
    measured: Scores | Callable[[Scores], Scores]

    def __len__(self) -> int:
        return len(self.row_ids)

    @cached_property
    def relevance(self) -> Scores:
        """What the scores mean: float32, shape (M,), 0 to 1; of texts, the share of the best score.

        See :mod:`framedex.analysis.relevance`.
        """
        return self.measured(self.score) if callable(self.measured) else self.measured

    def first(self, count: int | None) -> "Ranking":
        """Return the best so many; all for None."""
        return self.only(np.arange(len(self) if count is None else min(count, len(self))))

    def only(self, places: npt.NDArray[np.integer]) -> "Ranking":
        """Return those at some places, in that order."""
        measured = self.measured if callable(self.measured) else self.measured[places]
        return Ranking(self.row_ids[places], self.score[places], self.kind, measured)

    def table(self) -> pa.Table:
        """Return ``_rowid`` and ``score``, the best first."""
        return pa.table({ROW_ID: pa.array(self.row_ids, pa.uint64()), "score": pa.array(self.score, pa.float32())})

    def condition(self) -> Condition:
        """Return the condition that only these media meet."""
        return Condition(f"{ROW_ID} IN (SELECT {ROW_ID} FROM {RANKED})", relations={RANKED: self.table()})


def ranked(row_ids: RowIds, score: Scores, kind: str, measured: Scores | Callable[[Scores], Scores]) -> Ranking:
    """Return media by their scores; of equally good ones the first ingested first."""
    return Ranking(row_ids, score, kind, measured).only(_order(score if kind == COSINE_DISTANCE else -score, row_ids))


def _order(key: Scores, row_ids: RowIds) -> npt.NDArray[np.int64]:
    """Return the places of the smallest keys first, and of equal ones those of the smallest row ids.

    Keys and places are sorted as one number each, which takes a sixth of the time of a stable sort.
    """
    if not bool((row_ids[1:] > row_ids[:-1]).all()):
        return np.lexsort((row_ids, key))
    bits = (key + np.float32(0)).view(np.uint32)  # there is one zero
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    packed = ascending.astype(np.uint64) << np.uint64(32)
    packed |= np.arange(len(key), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64(2**32 - 1)).astype(np.int64)


def fuse(rankings: Sequence[Ranking]) -> Ranking:
    """Return what is in any of some rankings, by the sum of ``1 / (60 + place)`` over them.

    Reciprocal rank fusion (G. Cormack, C. Clarke & S. Büttcher, SIGIR 2009): places can be added up where scores, of
    different kinds, cannot. The relevance is the best of the rankings'.
    """
    every = np.concatenate([np.empty(0, np.uint64), *(each.row_ids for each in rankings)])
    row_ids, inverse = np.unique(every, return_inverse=True)
    score = np.zeros(len(row_ids))
    relevance = np.zeros(len(row_ids), np.float32)
    start = 0
    for each in rankings:
        here = inverse[start : start + len(each)]
        score[here] += 1 / (_FUSION + 1 + np.arange(len(each)))
        relevance[here] = np.fmax(relevance[here], each.relevance)
        start += len(each)
    return ranked(row_ids, score.astype(np.float32), FUSED, relevance)


def diversified(
    relevance: npt.NDArray[np.floating], vectors: npt.NDArray[np.float32], count: int, diversity: float
) -> npt.NDArray[np.int64]:
    """Return places in an order in which what comes next is relevant and unlike what came before.

    Maximal marginal relevance (J. Carbonell & J. Goldstein, SIGIR 1998): next comes the largest
    ``(1 - diversity) * relevance - diversity * similarity``, by the similarity to the most similar one before.

    Args:
        relevance: shape (M,), on the scale of similarities.
        vectors: float32, shape (M, D), unit length.
        count: how many places to return.
        diversity: 0 (by relevance alone) to 1 (by variety alone).
    """
    chosen = np.empty(min(count, len(relevance)), np.int64)
    closest = np.full(len(relevance), -1.0)  # before anything came, all are equally unlike
    left = np.ones(len(relevance), bool)
    for turn in range(len(chosen)):
        worth = (1 - diversity) * relevance - (diversity * closest if turn else 0)
        best = int(np.argmax(np.where(left, worth, -np.inf)))
        chosen[turn], left[best] = best, False
        closest = np.maximum(closest, vectors @ vectors[best])
    return chosen
