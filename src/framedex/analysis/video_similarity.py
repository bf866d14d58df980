"""How alike videos are, by the embeddings of their frames."""

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import nearest
from framedex.arrays import Vectors

_BLOCK = 2048
_SAMPLED = 8  # frames of a video; fewer than the neighbours of a row, so that those of one video do not fill its lists
_K = 20

Pairs = npt.NDArray[np.int64]
"""Shape (P, 2): numbers of two videos each, the lower one first; ascending, each pair once."""


def video_similarity(one: Vectors, other: Vectors) -> float:
    """Return how alike two videos are, in [-1, 1].

    That is the mean over the frames of the video with fewer frames of the cosine similarity to the frame of the other
    that is most similar: the average of nearest neighbours in one direction (the modified Hausdorff distance of
    Dubuisson and Jain, ICPR 1994, takes both). So a part of a video is like the whole, whatever was cut off; and
    neither the order nor the rate of the frames matters much.

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


def sampled(counts: npt.NDArray[np.int64], most: int = _SAMPLED) -> npt.NDArray[np.int64]:
    """Return which frames stand for videos: at most so many of each, evenly spread.

    Args:
        counts: frames of each video; those of one follow each other.
        most: of a video.

    Returns:
        ascending places among all frames.
    """
    starts = np.cumsum(counts) - counts
    parts = [
        start + np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
        for start, count in zip(starts, counts, strict=True)
        if count
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def near_pairs(vectors: Vectors, video: npt.NDArray[np.int64], *, least: float) -> Pairs:
    """Return pairs of videos of which some frames are neighbours.

    Args:
        vectors: float32, shape (N, D), unit length: some frames of each video.
        video: shape (N,): the number of the video of each.
        least: similarity that neighbours must have.
    """
    if len(vectors) < 2:
        return np.empty((0, 2), dtype=np.int64)
    graph = nearest(vectors, k=min(_K, len(vectors) - 1), least=least)
    found = (graph.similarity >= least) & (graph.rows >= 0)
    rows, places = np.nonzero(found)
    return unique_pairs(video[rows], video[graph.rows[rows, places]])


def unique_pairs(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Pairs:
    """Return pairs of different numbers, the lower one first, each once, ascending."""
    pairs = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1).astype(np.int64)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
