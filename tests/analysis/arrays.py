"""Made vectors of several kinds, deterministic, float32 and of unit length."""

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

Vectors = npt.NDArray[np.float32]


def unit(values: npt.NDArray[np.floating]) -> Vectors:
    """Return rows scaled to unit length."""
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def uniform(count: int, dimension: int, *, seed: int = 0) -> Vectors:
    """Return directions without any structure."""
    return unit(np.random.default_rng(seed).normal(size=(count, dimension)))


def clustered(count: int, dimension: int, *, seed: int = 0, centres: int = 12, spread: float = 0.25) -> Vectors:
    """Return directions around some centres."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(centres, dimension))
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    noise = rng.normal(size=(count, dimension)) * spread * rng.uniform(0.2, 2, (count, 1)) / np.sqrt(dimension)
    return unit(middle[rng.integers(0, centres, count)] + noise)


def same_partition(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]) -> bool:
    """Return whether two labellings group the same items."""
    pairs = {(int(a), int(b)) for a, b in zip(left, right, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def reference_clusters(vectors: Vectors, cut: float) -> npt.NDArray[np.int32]:
    """Return scipy's average linkage under cosine distance, cut at a distance."""
    tree = linkage(np.maximum(pdist(vectors.astype(np.float64), "cosine"), 0), "average")
    return np.asarray(fcluster(tree, cut, "distance"), dtype=np.int32)
