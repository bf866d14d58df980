"""Similarity of videos, from the embeddings of their frames."""

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import nearest
from framedex.core.arrays import Vectors
from framedex.core.masks import true_places

_BLOCK = 2048
_SAMPLED = 8  # frames per video; fewer than the neighbours per row, so one video cannot fill a list
_K = 20

Pairs = npt.NDArray[np.int64]
"""Shape (P, 2): the numbers of two videos, the lower one first; ascending, each pair once."""


def video_similarity(one: Vectors, other: Vectors) -> float:
    """Return the similarity of two videos, in [-1, 1].

    Each frame of the video with fewer frames is compared with the most similar frame of the other video; the result is
    the mean of these cosine similarities. This is the mean nearest-neighbour similarity in one direction (the modified
    Hausdorff distance of Dubuisson and Jain, ICPR 1994, uses both directions). So a clip is similar to its whole video,
    and the order and the rate of the frames have little effect.

    Args:
        one: float32, shape (N, D), unit length.
        other: float32, shape (M, D), unit length.
    """
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    best = np.full(len(short), -1.0, dtype=np.float32)
    for start in range(0, len(short), _BLOCK):
        rows = slice(start, start + _BLOCK)
        for first in range(0, len(long), _BLOCK):
            best[rows] = np.maximum(best[rows], (short[rows] @ long[first : first + _BLOCK].T).max(axis=1))
    return float(best.mean(dtype=np.float64))


def sample_frames(counts: npt.NDArray[np.int64], max_frames: int = _SAMPLED) -> npt.NDArray[np.int64]:
    """Return a sample of the frames of videos, evenly spaced within each video.

    Args:
        counts: the number of frames of each video; the frames of a video are consecutive.
        max_frames: maximum number of sampled frames per video.

    Returns:
        Ascending positions among all frames.
    """
    starts = np.cumsum(counts) - counts
    parts = [
        start + np.unique(np.linspace(0, count - 1, min(count, max_frames)).round().astype(np.int64))
        for start, count in zip(starts, counts, strict=True)
        if count
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def near_pairs(vectors: Vectors, video: npt.NDArray[np.int64], *, min_similarity: float) -> Pairs:
    """Return pairs of videos with neighbouring frames.

    Args:
        vectors: float32, shape (N, D), unit length: sampled frames of the videos.
        video: shape (N,): the number of each frame's video.
        min_similarity: minimum similarity of neighbours.
    """
    if len(vectors) < 2:
        return np.empty((0, 2), dtype=np.int64)
    graph = nearest(vectors, k=min(_K, len(vectors) - 1), min_similarity=min_similarity)
    near = (graph.similarity >= min_similarity) & (graph.rows >= 0)
    rows, columns = true_places(near)
    return unique_pairs(video[rows], video[graph.rows[rows, columns]])


def unique_pairs(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Pairs:
    """Return the distinct pairs of different numbers, the lower one first, ascending."""
    pairs = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1).astype(np.int64)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
