"""Rankings of media: by one score, by fusion of several rankings, and with diversity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.storage.condition import Condition
from framedex.storage.table_versions import ROW_ID

Scores = npt.NDArray[np.float32]

COSINE_DISTANCE, BM25, FUSED = "cosine_distance", "bm25", "reciprocal_rank_fusion"
_FUSION = 60  # constant of the paper; ranks above it differ little in weight
RANKED = "ranked"
"""Name of the relation in a ranking's condition, see :meth:`Ranking.table`."""


@dataclass(frozen=True)
class Ranking:
    """Media with their scores, best first.

    Attributes:
        row_ids: uint64, shape (M,).
        score: float32, shape (M,): lower is better for ``cosine_distance``, higher for the others.
        kind: ``cosine_distance`` (0 to 2), ``bm25`` (above 0) or ``reciprocal_rank_fusion`` (above 0).
        measured: the relevance, or a function that computes it from the scores: for a million rows this takes as long
            as sorting.
        copies: what was done to rows that are verified copies of the image of the query, by row id; these come first.
    """

    row_ids: RowIds
    score: Scores
    kind: str
    measured: Scores | Callable[[Scores], Scores]
    copies: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.row_ids)

    @cached_property
    def relevance(self) -> Scores:
        """The relevance of the scores: float32, shape (M,), 0 to 1; for keyword queries, the share of the best score.

        See :mod:`framedex.analysis.relevance`.
        """
        return self.measured(self.score) if callable(self.measured) else self.measured

    def first(self, count: int | None) -> "Ranking":
        """Return the first *count* rows; all for None."""
        return self.only(np.arange(len(self) if count is None else min(count, len(self))))

    def only(self, positions: npt.NDArray[np.integer]) -> "Ranking":
        """Return the rows at some positions, in that order."""
        measured = self.measured if callable(self.measured) else self.measured[positions]
        return Ranking(self.row_ids[positions], self.score[positions], self.kind, measured, self.copies)

    def behind(self, first: "Ranking", copies: Mapping[int, str]) -> "Ranking":
        """Return the rows of another ranking by the same scores, which are copies, and behind them the other rows."""
        rest = self.only(np.flatnonzero(~np.isin(self.row_ids, first.row_ids)))
        row_ids = np.concatenate([first.row_ids, rest.row_ids])
        return replace(first, row_ids=row_ids, score=np.concatenate([first.score, rest.score]), copies=copies)

    def copy_column(self) -> pa.Array:
        """Return what was done to each row that is a copy; null for others."""
        if not self.copies:
            return pa.nulls(len(self), pa.string())
        return pa.array(map(self.copies.get, self.row_ids.tolist()), pa.string())

    def table(self) -> pa.Table:
        """Return ``_rowid`` and ``score`` as a table, best first."""
        return pa.table({ROW_ID: pa.array(self.row_ids, pa.uint64()), "score": pa.array(self.score, pa.float32())})

    def condition(self) -> Condition:
        """Return a condition that only these rows meet."""
        return Condition(f"{ROW_ID} IN (SELECT {ROW_ID} FROM {RANKED})", relations={RANKED: self.table()})


def ranked(row_ids: RowIds, score: Scores, kind: str, measured: Scores | Callable[[Scores], Scores]) -> Ranking:
    """Return rows ranked by their scores; ties are in the order of ingestion."""
    return Ranking(row_ids, score, kind, measured).only(_order(score if kind == COSINE_DISTANCE else -score, row_ids))


def _order(key: Scores, row_ids: RowIds) -> npt.NDArray[np.int64]:
    """Return the positions of the smallest keys first; ties are in the order of the row ids.

    Key and position are packed into one integer and sorted, which takes a sixth of the time of a stable sort.
    """
    if not bool((row_ids[1:] > row_ids[:-1]).all()):
        return np.lexsort((row_ids, key))
    bits = (key + np.float32(0)).view(np.uint32)  # turns -0.0 into 0.0
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    packed = ascending.astype(np.uint64) << np.uint64(32)
    packed |= np.arange(len(key), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64(2**32 - 1)).astype(np.int64)


def fuse(rankings: Sequence[Ranking]) -> Ranking:
    """Return the union of rankings, ordered by the sum of ``1 / (60 + rank)`` over them.

    Reciprocal rank fusion (G. Cormack, C. Clarke & S. Büttcher, SIGIR 2009): ranks can be added, unlike scores of
    different kinds. The relevance is the highest in any of the rankings.
    """
    every = np.concatenate([np.empty(0, np.uint64), *(each.row_ids for each in rankings)])
    row_ids, inverse = np.unique(every, return_inverse=True)
    score = np.zeros(len(row_ids))
    relevance = np.zeros(len(row_ids), np.float32)
    start = 0
    for each in rankings:
        positions = inverse[start : start + len(each)]
        score[positions] += 1 / (_FUSION + 1 + np.arange(len(each)))
        relevance[positions] = np.fmax(relevance[positions], each.relevance)
        start += len(each)
    return ranked(row_ids, score.astype(np.float32), FUSED, relevance)


def diversified(
    relevance: npt.NDArray[np.floating], vectors: npt.NDArray[np.float32], count: int, diversity: float
) -> npt.NDArray[np.int64]:
    """Return positions in an order that balances relevance against similarity to earlier positions.

    Maximal marginal relevance (J. Carbonell & J. Goldstein, SIGIR 1998): the next position has the largest ``(1 -
    diversity) * relevance - diversity * similarity``, with the similarity to the most similar earlier one.

    Args:
        relevance: shape (M,), on the scale of similarities.
        vectors: float32, shape (M, D), unit length.
        count: number of positions to return.
        diversity: 0 (relevance alone) to 1 (diversity alone).
    """
    order = np.empty(min(count, len(relevance)), np.int64)
    closest = np.full(len(relevance), -1.0)  # at first all are equally dissimilar
    remaining = np.ones(len(relevance), bool)
    for turn in range(len(order)):
        worth = (1 - diversity) * relevance - (diversity * closest if turn else 0)
        best = int(np.argmax(np.where(remaining, worth, -np.inf)))
        order[turn], remaining[best] = best, False
        closest = np.maximum(closest, vectors @ vectors[best])
    return order
