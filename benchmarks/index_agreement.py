"""How results of the index agree with exact ones: partitions by pairs and by matched clusters, neighbours by recall.

Used by the measured processes, in any environment that has SciPy; scikit-learn is needed by its own function alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
_BLOCK = 256  # sampled rows that are compared with all at a time
_ROUNDING = 1e-6  # of a similarity, between two ways of multiplying


@dataclass(frozen=True)
class Pairs:
    """Numbers of pairs of rows that share a cluster: in both partitions, in the one, in the other."""

    both: int
    ours: int
    theirs: int

    @property
    def f1(self) -> float:
        """F1 of our pairs against theirs; 1 where neither has any."""
        return 2 * self.both / (self.ours + self.theirs) if self.ours + self.theirs else 1.0

    @property
    def precision(self) -> float:
        """Share of our pairs that are theirs too; 1 without pairs."""
        return self.both / self.ours if self.ours else 1.0

    @property
    def recall(self) -> float:
        """Share of their pairs that are ours too; 1 without pairs."""
        return self.both / self.theirs if self.theirs else 1.0


def shared_pairs(ours: Labels, theirs: Labels) -> Pairs:
    """Return how many pairs share a cluster. Labels are whole numbers from 0, shape (N,)."""
    ours, theirs = ours.astype(np.int64), theirs.astype(np.int64)
    cells = np.unique(ours * (int(theirs.max(initial=0)) + 1) + theirs, return_counts=True)[1]
    return Pairs(_pairs(cells), _pairs(np.bincount(ours)), _pairs(np.bincount(theirs)))


def pair_f1(ours: Labels, theirs: Labels) -> float:
    """Return the F1 of the pairs that share a cluster in one partition against those that do in the other."""
    return shared_pairs(ours, theirs).f1


def _pairs(sizes: npt.NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def sklearn_labels(vectors: Vectors, cuts: Sequence[float]) -> Labels:
    """Return labels by row and cut. The tree is built once; that its cut is scikit-learn's own is checked for one."""
    from sklearn.cluster import AgglomerativeClustering

    model = AgglomerativeClustering(
        n_clusters=None, distance_threshold=cuts[-1], metric="cosine", linkage="average", compute_full_tree=True
    )
    model.fit(vectors)
    labels = np.stack([_cut_tree(model.children_, model.distances_, cut) for cut in cuts], axis=1)
    assert pair_f1(labels[:, -1], model.labels_) == 1.0, "the cut of the tree is scikit-learn's"
    return labels


def _cut_tree(children: Labels, distances: npt.NDArray[np.float64], cut: float) -> Labels:
    """Return the clusters of a tree whose merges below a distance are done."""
    rows = len(children) + 1
    done = np.flatnonzero(distances < cut)
    parent = np.repeat(rows + done, 2)
    return components(parent, children[done].ravel(), 2 * rows - 1)[:rows]


def components(first: Labels, second: Labels, count: int) -> Labels:
    """Return the connected component of each of *count* nodes, numbered from 0; the arguments are their links."""
    links = scipy.sparse.coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def exact_neighbours(vectors: Vectors, sample: Labels, k: int) -> tuple[Labels, Vectors]:
    """Return (rows, similarity) of the k nearest others of some rows, both of shape (len(sample), k), nearest first."""
    rows, similarity = zip(*_nearest_blocks(vectors, sample, k), strict=True)
    return np.concatenate(rows), np.concatenate(similarity)


def _nearest_blocks(vectors: Vectors, sample: Labels, k: int) -> Iterator[tuple[Labels, Vectors]]:
    for start in range(0, len(sample), _BLOCK):
        rows = sample[start : start + _BLOCK]
        scores = vectors[rows] @ vectors.T
        scores[np.arange(len(rows)), rows] = -np.inf
        columns = np.argpartition(scores, -k, axis=1)[:, -k:]
        values = np.take_along_axis(scores, columns, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        yield np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def recall(vectors: Vectors, sample: Labels, found: Labels, exact: Vectors) -> float:
    """Return the share of the exact k nearest neighbours that were found.

    Another row that is as near as the k-th nearest is as good as it.

    Args:
        vectors: float32, shape (N, D), unit length.
        sample: rows, shape (S,).
        found: their neighbours, shape (S, k); -1 where there is none.
        exact: float32, shape (S, k): the similarity of their exact neighbours, descending.
    """
    right = 0
    for row, neighbours, similarity in zip(sample, found, exact, strict=True):
        others = np.unique(neighbours[(neighbours >= 0) & (neighbours != row)])
        near = vectors[others] @ vectors[row] >= similarity[-1] - _ROUNDING
        right += min(int(near.sum()), len(similarity))
    return right / exact.size


def matched(ours: Labels, theirs: Labels, *, decisive: int = 0) -> Labels:
    """Return for each of our clusters the one of theirs that it matches; -1 where none.

    Two clusters match that share more rows with each other than either does with any other cluster. Where several
    share as many, the first *decisive* rows decide, then the smaller numbers.
    """
    width = int(theirs.max(initial=0)) + 1
    cells, cell, sizes = np.unique(ours.astype(np.int64) * width + theirs, return_inverse=True, return_counts=True)
    order = np.lexsort((cells, -np.bincount(cell[:decisive], minlength=len(cells)), -sizes))
    our, their = cells[order] // width, cells[order] % width
    best_of_ours = np.unique(our, return_index=True)
    best_of_theirs = np.unique(their, return_index=True)
    mutual = np.intersect1d(best_of_ours[1], best_of_theirs[1])
    match = np.full(int(ours.max(initial=0)) + 1, -1, dtype=np.int64)
    match[our[mutual]] = their[mutual]
    return match
