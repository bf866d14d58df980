"""Choice of a few rows that cover all others: greedy facility location.

A set of rows is worth the mean similarity of all rows to the most similar one of the set. Taking the row that adds
most, again and again, gives at least 1 - 1/e of the best possible worth (G. Nemhauser, L. Wolsey & M. Fisher,
Mathematical Programming 1978). What a row adds only decreases, so few rows are computed again in each turn (M. Minoux,
"Accelerated greedy algorithms", 1978). At the end each row that was chosen may be replaced by the one nearest to the
mean of those that it covers, as in k-medoids.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.cells import group_rows
from framedex.analysis.products import Products, run_all
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

MOST_CHOSEN = 10_000
"""The maximum number of rows that can be chosen; the time grows with its square."""
_BATCH = 64  # candidates whose gain is computed at a time
_SCALE = 32_767  # of similarities in 16 bits: 600 MB for the most pairs
_PAIRS_SHARE = 0.3  # of the progress of the choice
_LEAST_SAMPLE, _MOST_SAMPLE = 10_000, 20_000
_LEAST_CANDIDATES, _MOST_CANDIDATES = 5_000, 15_000
_ROUNDS = 2  # of replacements
_GREEDY_SHARE = 0.9  # of the progress
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Covered:
    """The coverage of all rows by some chosen ones.

    Attributes:
        by: int32, shape (N,): for each row the number of the most similar chosen one.
        similarity: float32, shape (N,): how similar that is, -1 to 1.
    """

    by: npt.NDArray[np.int32]
    similarity: npt.NDArray[np.float32]


def sample_size(count: int) -> int:
    """Return the number of rows among which some rows are chosen, and by which their worth is measured."""
    return int(np.clip(8 * count, _LEAST_SAMPLE, _MOST_SAMPLE))


def choose_covering(vectors: Vectors, count: int, *, engine: Products, progress: ShareProgress) -> Rows:
    """Return rows that cover all, in the order in which they add most, so that any beginning covers well, too.

    Args:
        vectors: float32, shape (N, D), unit length, in random order.
        count: the number of rows; all are returned if there are fewer.
        engine: computes products.
        progress: called with the share that is done; raises to stop.

    Returns:
        int64, shape (min(count, N),), distinct.
    """
    if count >= len(vectors):
        return np.arange(len(vectors))
    chosen = _greedy(vectors, count, lambda share: progress(_GREEDY_SHARE * share))
    covered = covered_by(_blocks(vectors), len(vectors), vectors[chosen], engine=engine)
    for turn in range(_ROUNDS):
        central = _central(vectors, chosen, covered)
        after = covered_by(_blocks(vectors), len(vectors), vectors[central], engine=engine)
        if after.similarity.mean(dtype=np.float64) <= covered.similarity.mean(dtype=np.float64):
            break
        chosen, covered = central, after
        progress(_GREEDY_SHARE + (1 - _GREEDY_SHARE) * (turn + 1) / _ROUNDS)
    return chosen


def covered_by(
    blocks: Iterator[Vectors],
    count: int,
    chosen: Vectors,
    *,
    engine: Products,
    after_block: Callable[[int], None] = lambda _rows: None,
) -> Covered:
    """Return which chosen row covers each row.

    Args:
        blocks: all rows, block by block: float32, shape (≤ block, D), unit length.
        count: N, their number.
        chosen: float32, shape (n, D), unit length.
        engine: computes products.
        after_block: called with the number of rows that are done; raises to stop.
    """
    covered = Covered(np.empty(count, np.int32), np.empty(count, np.float32))
    done = 0

    def note(_position: int, found: tuple[npt.NDArray[np.int64], Vectors]) -> None:
        nonlocal done
        columns, similarity = found
        part = slice(done, done + len(columns))
        covered.by[part], covered.similarity[part] = columns[:, 0], similarity[:, 0]
        done += len(columns)
        after_block(done)

    run_all(engine, lambda block: engine.largest(block, chosen, 1), blocks, after=note)
    return covered


def _greedy(vectors: Vectors, count: int, progress: ShareProgress) -> Rows:
    """Return the rows that add most in turn; a first part of all rows is considered."""
    considered = int(np.clip(4 * count, _LEAST_CANDIDATES, max(_MOST_CANDIDATES, count)))
    similarity = np.empty((min(considered, len(vectors)), len(vectors)), np.int16)
    for start in range(0, len(similarity), _BATCH):
        products = vectors[start : start + _BATCH][: len(similarity) - start] @ vectors.T
        np.clip(products * _SCALE, -_SCALE, _SCALE, out=products)
        similarity[start : start + _BATCH] = np.rint(products, out=products)
        progress(_PAIRS_SHARE * start / len(similarity))
    closest = np.full(len(vectors), -_SCALE, np.int16)
    gain = similarity.sum(axis=1, dtype=np.int64) - closest.sum(dtype=np.int64)
    computed = np.zeros(len(similarity), np.int64)  # in which turn each gain was
    chosen, before = np.empty(count, np.int64), 0
    for turn in range(count):
        while computed[best := int(gain.argmax())] < turn:
            most = np.argpartition(gain, -_BATCH)[-_BATCH:] if len(gain) > _BATCH else np.arange(len(gain))
            most[0] = best  # of equal gains others may have been taken
            stale = most[(computed[most] < turn) & (gain[most] >= 0)]
            gain[stale] = np.maximum(similarity[stale], closest).sum(axis=1, dtype=np.int64) - before
            computed[stale] = turn
        chosen[turn], gain[best] = best, -1
        np.maximum(closest, similarity[best], out=closest)
        before = int(closest.sum(dtype=np.int64))
        progress(_PAIRS_SHARE + (1 - _PAIRS_SHARE) * (turn + 1) / count)
    return chosen


def _central(vectors: Vectors, chosen: Rows, covered: Covered) -> Rows:
    """Return, for each chosen row, the row nearest to the mean of those that it covers."""
    order, starts = group_rows(covered.by, len(chosen))
    out = chosen.copy()
    for number in np.flatnonzero(np.diff(starts) > 2):
        members = order[starts[number] : starts[number + 1]]
        own = vectors[members]
        out[number] = members[int((own @ own.mean(axis=0)).argmax())]
    return out


def _blocks(vectors: Vectors, rows: int = 4096) -> Iterator[Vectors]:
    for start in range(0, len(vectors), rows):
        yield vectors[start : start + rows]
