"""Deterministic test vectors of several kinds, float32 of unit length."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbour_lists import NeighbourGraph

Vectors = npt.NDArray[np.float32]


def unit(values: npt.NDArray[np.floating]) -> Vectors:
    """Return rows scaled to unit length."""
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def uniform(count: int, dimension: int, *, seed: int = 0) -> Vectors:
    """Return directions without any structure."""
    return unit(np.random.default_rng(seed).normal(size=(count, dimension)))


def at_angles(*degrees: float) -> Vectors:
    """Return vectors in the plane at angles in degrees."""
    turn = np.radians(degrees)
    return unit(np.stack([np.cos(turn), np.sin(turn)], axis=1))


def clustered(count: int, dimension: int, *, seed: int = 0, centres: int = 12, spread: float = 0.25) -> Vectors:
    """Return directions around some centres."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(centres, dimension))
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    noise = rng.normal(size=(count, dimension)) * spread * rng.uniform(0.2, 2, (count, 1)) / np.sqrt(dimension)
    return unit(middle[rng.integers(0, centres, count)] + noise)


def same_partition(left: npt.NDArray[np.integer], right: npt.NDArray[np.integer]) -> bool:
    """Return whether two partitions are equal, whatever their numbers."""
    pairs = {(int(a), int(b)) for a, b in zip(left, right, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def reference_clusters(vectors: Vectors, cut: float) -> npt.NDArray[np.int32]:
    """Return scipy's average linkage under cosine distance, cut at a distance."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    tree = linkage(np.maximum(pdist(vectors.astype(np.float64), "cosine"), 0), "average")
    return np.asarray(fcluster(tree, cut, "distance"), dtype=np.int32)


def reference_components(vectors: Vectors, level: float) -> npt.NDArray[np.int32]:
    """Return the connected components of all pairs with at least a similarity."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array(vectors @ vectors.T >= level - 1e-6)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int32)


def pair_f1(found: npt.NDArray[np.integer], truth: npt.NDArray[np.integer]) -> float:
    """Return the F1 score of the pairs of items that two partitions group together."""

    def pairs(label: npt.NDArray[np.integer]) -> int:
        sizes = np.bincount(np.unique(label, return_inverse=True)[1]).astype(np.int64)
        return int((sizes * (sizes - 1) // 2).sum())

    both = pairs(found.astype(np.int64) * (int(truth.max()) + 1) + truth)
    return 2 * both / (pairs(found) + pairs(truth))


def crowd(centre: npt.NDArray[np.floating], count: int, *, spread: float, seed: int = 0) -> Vectors:
    """Return directions around a centre, at a cosine distance of about half the square of *spread*."""
    noise = np.random.default_rng(seed).normal(size=(count, len(centre))) / np.sqrt(len(centre))
    return unit(centre + spread * noise)


def mapped(path: Path, values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return values in a file that is memory-mapped read-only."""
    path.write_bytes(np.ascontiguousarray(values).tobytes())
    return np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)


def true_neighbours(vectors: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.float64]:
    """Return the similarities to the k most similar other rows, descending, in double precision."""
    scores = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    np.fill_diagonal(scores, -np.inf)
    return np.sort(scores, axis=1)[:, ::-1][:, :k]


def recall_of(graph: NeighbourGraph, vectors: npt.NDArray[np.floating]) -> float:
    """Return the share of listed neighbours that are as near as the true ones."""
    least = true_neighbours(vectors, graph.k)[:, -1:]
    return float((graph.similarity >= least - 1e-6).mean())


def assert_sound(graph: NeighbourGraph, vectors: npt.NDArray[np.floating], k: int) -> None:
    """Check what holds for every graph: full lists in order, without the row itself or repeats, true similarities."""
    count = len(vectors)
    assert graph.rows.shape == graph.similarity.shape == (count, max(0, min(k, count - 1)))
    assert graph.rows.dtype == np.int32
    assert graph.similarity.dtype == np.float32
    if not graph.rows.size:
        return
    assert graph.rows.min() >= 0
    assert graph.rows.max() < count
    assert np.all(graph.rows != np.arange(count)[:, None])
    assert np.all(np.diff(np.sort(graph.rows, axis=1), axis=1) > 0)
    falling = np.diff(graph.similarity, axis=1)
    assert np.all(falling <= 0)
    assert np.all((falling < 0) | (np.diff(graph.rows, axis=1) > 0))
    assert np.abs(graph.similarity).max() <= 1
    exact = np.einsum("ij,ikj->ik", vectors.astype(np.float64), vectors.astype(np.float64)[graph.rows])
    np.testing.assert_allclose(graph.similarity, exact, atol=2e-6)
