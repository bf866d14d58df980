"""Units of images that are compared, and pairs of images that may be copies."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

from framedex.analysis.vector_sources import VectorsInFile
from framedex.core.arrays import Mask, Vectors

Rows = npt.NDArray[np.int64]
Images = npt.NDArray[np.int32]
Poses = Callable[[Vectors], Vectors]
"""Returns the descriptors of N units in P poses: shape (P, N, D)."""


@dataclass(frozen=True)
class Units:
    """The descriptors of images and of their panels.

    Attributes:
        vectors: float16 or float32, shape (U, D), unit length, a matrix or in a file: first those of the M images, then
            those of panels.
        image: int32 or int64, shape (U,): the image of each unit; the first M are 0 to M - 1.
    """

    vectors: npt.NDArray[np.floating] | VectorsInFile
    image: npt.NDArray[np.integer]

    @property
    def images(self) -> int:
        """The number of images, M."""
        return int(self.image.max()) + 1 if len(self.image) else 0


@dataclass(frozen=True)
class ComparedPairs:
    """Pairs of images with their similarities.

    Attributes:
        a, b: int32, shape (P,): the images, a < b.
        similarity: float32, shape (P,): of the most similar units, in the most similar pose.
        whole: float32, shape (P,): of the whole images, in the most similar pose.
        whole_pose: int8, shape (P,): this pose of b.
        pose: int8, shape (P,): the pose of b that is similar to a, for the most similar units.
    """

    a: Images
    b: Images
    similarity: Vectors
    whole: Vectors
    whole_pose: npt.NDArray[np.int8]
    pose: npt.NDArray[np.int8]

    def take(self, selected: npt.NDArray[np.integer] | Mask) -> Self:
        """Return some of the pairs."""
        return type(self)(*(getattr(self, each.name)[selected] for each in fields(self)))


@dataclass(frozen=True)
class Candidates(ComparedPairs):
    """Pairs of images that may be copies; see :class:`ComparedPairs`.

    Attributes:
        priority: float32, shape (P,): how much more similar they are than others are to them, and more so as they are.
    """

    priority: Vectors


def no_candidates() -> Candidates:
    """Return no pairs."""
    images, values, poses = np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.int8)
    return Candidates(images, images, values, values, poses, poses, values)


def row_parts(rows: npt.NDArray[np.integer], size: int) -> list[npt.NDArray[np.integer]]:
    """Return consecutive parts of at most *size* rows."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]
