"""Vectors for the benchmarks of the index: made block by block, so that any number of them fits into memory.

Each kind is a function of a seed alone: the same rows come back in every run and for every block size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SEED = 20261121
_BLOCK = 16384
Vectors = npt.NDArray[np.float32]


def unit(vectors: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Return the rows at unit length, float32."""
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class Clustered:
    """Clusters of many sizes and widths: regions, clusters in them, sub-clusters in those, and near-copies.

    Sub-clusters have a few to some thousand rows (sizes by a power law, mean 60), and a mean similarity of 0.80 to
    0.97 within; a cluster has about ten sub-clusters; 2 % of the rows are copies of another row with a little noise, at
    a similarity of 0.97 to 0.9999. The number of clusters grows with the number of rows.

    Attributes:
        rows: how many vectors there are.
        dimension: of each.
        seed: another one makes others.
        largest: about the most rows of a sub-cluster; 0 for no limit. Without one, the largest grow with the rows: to
            16,000 of a million and to 275,000 of ten million.
    """

    rows: int
    dimension: int = 512
    seed: int = SEED
    largest: int = 0

    def blocks(self) -> Iterator[Vectors]:
        """Yield the vectors, float32 of unit length, some thousand at a time."""
        centres, width, share = self._centres()
        for start in range(0, self.rows, _BLOCK):
            yield self._block(start, min(_BLOCK, self.rows - start), centres, width, share)

    def all(self) -> Vectors:
        """Return all vectors, shape (rows, dimension)."""
        out = np.empty((self.rows, self.dimension), dtype=np.float32)
        start = 0
        for block in self.blocks():
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def _centres(self) -> tuple[Vectors, Vectors, npt.NDArray[np.float64]]:
        random = np.random.default_rng((self.seed, 0))
        subs = max(4, self.rows // 60)
        clusters, regions = max(2, subs // 10), max(2, int(np.sqrt(subs) / 2))
        region = self._noise(random, regions, 1.0)
        cluster = region[random.integers(0, regions, clusters)] + self._noise(random, clusters, 0.8)
        spread = random.uniform(0.3, 0.7, (subs, 1)).astype(np.float32)
        sub = cluster[random.integers(0, clusters, subs)] + spread * self._noise(random, subs, 1.0)
        # The mean similarity of two rows of a sub-cluster is about 1 / (1 + width²).
        width = random.uniform(0.17, 0.5, subs).astype(np.float32)
        share = random.pareto(1.5, subs) + 0.1
        share /= share.sum()
        if self.largest:
            share = np.minimum(share, self.largest / self.rows)
        return unit(sub), width, share / share.sum()

    def _noise(self, random: np.random.Generator, count: int, length: float) -> Vectors:
        """Return vectors in random directions whose mean length is *length*."""
        scale = np.float32(length / np.sqrt(self.dimension))
        return random.standard_normal((count, self.dimension), dtype=np.float32) * scale

    def _block(
        self, start: int, count: int, centres: Vectors, width: Vectors, share: npt.NDArray[np.float64]
    ) -> Vectors:
        random = np.random.default_rng((self.seed, 1, start))
        sub = random.choice(len(centres), size=count, p=share)
        rows = unit(centres[sub] + width[sub, None] * self._noise(random, count, 1.0))
        copies = np.flatnonzero(random.random(count) < 0.02)
        source = random.integers(0, count, len(copies))
        level = (10 ** random.uniform(-2, -0.75, (len(copies), 1))).astype(np.float32)
        rows[copies] = unit(rows[source] + level * self._noise(random, len(copies), 1.0))
        return rows


def uniform(rows: int, dimension: int = 512, seed: int = SEED) -> Vectors:
    """Return vectors uniform on the sphere, where nothing is clustered: float32, shape (rows, dimension)."""
    return unit(np.random.default_rng(seed).standard_normal((rows, dimension), dtype=np.float32))
