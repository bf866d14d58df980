"""Poses that units take, and projections of their descriptors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.units import Poses, Rows, Units, row_parts
from framedex.core.arrays import Vectors

STEP = 128
"""Descriptors that are turned at a time; memory that is touched for the first time costs the most here."""
_COMPONENTS = 96
_SAMPLED = 1024
_FEW = 128  # units, for which the components take longer than they save
_UNCLEAR = 0.1  # a difference of light, in [0, 1], that does not tell two poses apart


@dataclass(frozen=True)
class Projection:
    """A projection of descriptors to their principal components, of unit length; to all of them where units are few."""

    mean: Vectors
    axes: Vectors | None

    @classmethod
    def of(cls, units: Units, poses: Poses) -> "Projection":
        """Return the projection for some units, from a sample of them."""
        rows = np.unique(np.linspace(0, len(units.vectors) - 1, _SAMPLED).astype(np.int64))
        dimension = units.vectors.shape[1]
        if len(rows) <= _FEW:
            turned = poses(units.vectors[rows].astype(np.float32)).reshape(-1, dimension)
            return cls(turned.mean(axis=0), None)
        total, products, count = np.zeros(dimension), np.zeros((dimension, dimension)), 0
        for part in row_parts(rows, STEP):
            turned = poses(units.vectors[part].astype(np.float32)).reshape(-1, dimension)
            total += turned.sum(axis=0, dtype=np.float64)
            products += turned.T @ turned
            count += len(turned)
        mean = total / count
        _, axes = np.linalg.eigh(products - count * np.outer(mean, mean))
        components = np.ascontiguousarray(axes[:, ::-1][:, :_COMPONENTS], dtype=np.float32)
        return cls(mean.astype(np.float32), components)

    @property
    def dimension(self) -> int:
        """The number of values of a projected descriptor."""
        return int(len(self.mean) if self.axes is None else self.axes.shape[1])

    def __call__(self, vectors: Vectors) -> Vectors:
        """Return projected descriptors: float32, shape (N, dimension)."""
        projected = vectors - self.mean
        if self.axes is not None:
            projected = projected @ self.axes
        return np.asarray(
            projected / np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-6), dtype=np.float32
        )


def canonical_poses(layouts: Vectors) -> npt.NDArray[np.bool_]:
    """Return the poses that units take: bool, shape (8, N).

    Pose p mirrors left to right if p ≥ 4, and then turns by 90° · (p % 4) counter-clockwise.

    Args:
        layouts: float32, shape (N, S, S): luminance of zero mean.
    """
    side = layouts.shape[1]
    places = np.arange(side) - (side - 1) / 2
    places = (places / (np.linalg.norm(places) * np.sqrt(side))).astype(np.float32)
    length = np.maximum(np.linalg.norm(layouts, axis=(1, 2)), 1e-6)
    right = np.einsum("nij,j->n", layouts, places) / length
    down = np.einsum("nij,i->n", layouts, places) / length
    taken = np.zeros((8, len(layouts)), dtype=bool)
    for pose in range(8):
        x, y = (-right if pose >= 4 else right), down
        for _ in range(pose % 4):  # counter-clockwise: what was at the right is at the top
            x, y = y, -x
        taken[pose] = (x <= _UNCLEAR) & (y <= _UNCLEAR) & (np.abs(x) + _UNCLEAR >= np.abs(y))
    return taken


def taken_poses(
    projection: Projection, poses: Poses, light: Callable[[Vectors], Vectors], vectors: npt.NDArray[np.floating]
) -> tuple[Vectors, Rows, npt.NDArray[np.bool_]]:
    """Return (projections, units, whether they are as they are) of the poses that units take."""
    rows = [np.empty((0, projection.dimension), np.float32)]
    numbers, upright = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    for start in range(0, len(vectors), STEP):
        some = vectors[start : start + STEP].astype(np.float32)
        taken = canonical_poses(light(some))
        taken[0] = True  # as it is: most copies are neither turned nor mirrored
        pose, unit = np.nonzero(taken)
        rows.append(projection(poses(some)[pose, unit]))
        numbers.append(start + unit)
        upright.append(pose == 0)
    return np.concatenate(rows), np.concatenate(numbers), np.concatenate(upright)
