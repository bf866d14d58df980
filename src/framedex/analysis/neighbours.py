"""The neighbour graph that everything else is computed from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.errors import InvalidEmbedding

Vectors = npt.NDArray[np.float32]
Progress = Callable[[float], None]
"""Called with the share that is done, 0 to 1, between blocks of work; raises to stop the work."""

DEFAULT_K = 20
_BLOCK_VALUES = 16_000_000  # similarities that are held at a time: 64 MB


def ignore_progress(_share: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Graph:
    """The k nearest neighbours of each row, by cosine similarity.

    Attributes:
        rows: int64, shape (N, k): the neighbours' rows, most similar first; ties in row order.
        similarity: float32, shape (N, k), in [-1, 1], descending.
    """

    rows: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float32]

    @property
    def k(self) -> int:
        """Neighbours a row."""
        return int(self.rows.shape[1])


def check_vectors(vectors: Vectors) -> None:
    """Check that vectors are finite and of unit length.

    Raises:
        InvalidEmbedding: one is not; the message names the first such row.
    """
    for start in range(0, len(vectors), 65536):
        lengths = np.linalg.norm(vectors[start : start + 65536], axis=1)
        wrong = np.flatnonzero(~(np.abs(lengths - 1) < 1e-3))
        if len(wrong):
            row = start + int(wrong[0])
            raise InvalidEmbedding(f"row {row} has length {lengths[wrong[0]]}; vectors must be finite, of unit length")


def nearest(vectors: Vectors, *, k: int = DEFAULT_K, progress: Progress = ignore_progress) -> Graph:
    """Return the exact k nearest neighbours of each row, without the row itself.

    Blocks of rows are multiplied with all rows; 64 MB of similarities are held at a time.

    Args:
        vectors: float32, shape (N, D), unit length.
        k: neighbours a row; at most N - 1 are returned.
        progress: called between blocks.
    """
    count = len(vectors)
    k = max(0, min(k, count - 1))
    rows = np.empty((count, k), dtype=np.int64)
    similarity = np.empty((count, k), dtype=np.float32)
    block = max(1, _BLOCK_VALUES // max(count, 1))
    for start in range(0, count if k else 0, block):
        stop = min(start + block, count)
        scores = vectors[start:stop] @ vectors.T
        scores[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        rows[start:stop], similarity[start:stop] = largest(scores, k)
        progress(stop / count)
    return Graph(rows, np.clip(similarity, -1, 1, out=similarity))


def largest(scores: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return (columns, values) of the k largest scores of each row, descending; ties in column order."""
    if k < scores.shape[1]:
        columns = np.argpartition(scores, -k, axis=1)[:, -k:]
        columns.sort(axis=1)
    else:
        columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy()
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def unique_rows(vectors: Vectors) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first row of each set of identical rows, and for each row the place of its set.

    Thousands of exact copies would otherwise fill each other's neighbour lists and hide everything else.

    Returns:
        first: int64, shape (M,), ascending.
        inverse: int64, shape (N,): ``vectors[first[inverse]]`` equals ``vectors``.
    """
    keys = _row_keys(vectors)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def _row_keys(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key a row; equal rows have equal keys, others differ but for a chance of about N²/2⁶⁵."""
    multipliers = np.random.default_rng(0x5EED).integers(1, 2**63, vectors.shape[1], dtype=np.uint64) * 2 + 1
    keys = np.empty(len(vectors), dtype=np.uint64)
    for start in range(0, len(vectors), 16384):
        bits = np.ascontiguousarray(vectors[start : start + 16384] + np.float32(0)).view(np.uint32).astype(np.uint64)
        # Values that differ in few bits, such as signs alone, must not meet in the sum: spread them over all 64.
        bits *= np.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> np.uint64(32)
        keys[start : start + 16384] = (bits * multipliers).sum(axis=1, dtype=np.uint64)
    return keys
