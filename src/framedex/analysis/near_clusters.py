"""Near clusters of clusters: lists, and bounds of the similarity to all others."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.core.arrays import Floats

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NearClusters:
    """Near clusters of some clusters.

    Attributes:
        rows: int32, shape (A, k): the numbers of near clusters; -1 for none.
        similarity: float32, shape (A, k): their similarities, or upper bounds; -inf for none.
        exact: bool, shape (A, k): false for upper bounds.
        bound: float32, shape (A,): no other cluster is more similar.
    """

    rows: Ints
    similarity: Floats
    exact: Flags
    bound: Floats

    @classmethod
    def of(cls, graph: NeighbourGraph, count: int, floor: float) -> "NearClusters":
        """Return the near clusters of a graph among a number of clusters, if those below the floor do not matter."""
        near = graph.similarity >= np.float32(floor)
        near &= graph.rows >= 0
        rows, similarity = np.where(near, graph.rows, -1), np.where(near, graph.similarity, -np.inf)
        bound = bounds_of(graph.similarity, count, np.float32(floor))
        return cls(rows, similarity, np.ones(rows.shape, dtype=bool), bound)

    @classmethod
    def joined(cls, parts: Sequence["NearClusters"]) -> "NearClusters":
        """Return the near clusters of the clusters of all parts, one part after another."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def nearest(self, k: int) -> "NearClusters":
        """Return the k nearest ones."""
        if self.rows.shape[1] <= k:
            return self
        chosen = np.argpartition(-self.similarity, (k - 1, k), axis=1)[:, : k + 1]
        bound = np.maximum(self.bound, np.take_along_axis(self.similarity, chosen[:, k:], axis=1)[:, 0])
        chosen = chosen[:, :k]
        return NearClusters(
            np.take_along_axis(self.rows, chosen, axis=1),
            np.take_along_axis(self.similarity, chosen, axis=1),
            np.take_along_axis(self.exact, chosen, axis=1),
            bound,
        )


def bounds_of(similarity: Floats, count: int, floor: np.float32) -> Floats:
    """Return an upper bound of the similarity to clusters outside of the lists of a search, of *count* clusters."""
    if similarity.shape[1] >= count - 1:
        return np.full(len(similarity), floor)
    return np.maximum(similarity[:, -1], floor)
