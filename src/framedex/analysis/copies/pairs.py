"""Pairs of images that searches find, of which each is kept once."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.units import Rows
from framedex.core.arrays import Vectors
from framedex.core.mapped_files import write_matrix

Images = npt.NDArray[np.integer]
Lists = Callable[[Rows], tuple[npt.NDArray[np.int32], Vectors]]
"""Returns the lists of neighbours of some rows: rows and similarities, shape (R, k); -1 for none."""
_KEPT = 12  # candidates an image, in all poses, and as many as it is
_BLOCK = 4096  # a step
_SPAN = 2**18  # images whose pairs are in memory at a time, where pairs lie in files


class FoundPairs:
    """Pairs of images, in memory or in files.

    Args:
        images: the number of images.
        folder: the folder of the files; None for memory.
    """

    def __init__(self, images: int, folder: Path | None = None) -> None:
        self._images, self._folder = images, folder
        self._keys: list[Rows] = []
        self._count = 0

    def add(self, a: Images, b: Images) -> None:
        """Add pairs, whose images may stand in either order."""
        keys = np.minimum(a, b).astype(np.int64) * self._images + np.maximum(a, b)
        self._count += len(keys)
        if self._folder is None:
            self._keys.append(keys)
            return
        span = keys // (_SPAN * self._images)
        order = np.argsort(span, kind="stable")
        starts = np.flatnonzero(np.diff(span[order], prepend=-1))
        for low, high in pairwise([*starts.tolist(), len(keys)]):
            with self._path(int(span[order[low]])).open("ab") as file:
                write_matrix(file, keys[order[low:high]])

    def ordered(self) -> Iterator[tuple[Rows, Rows, float]]:
        """Yield pairs (a, b) with a < b, each once, in ascending order, and the share of all that was yielded.

        Files are removed meanwhile.
        """
        done = 0
        for some in self._spans():
            done += len(some)
            keys = np.unique(some)
            yield keys // self._images, keys % self._images, done / max(self._count, 1)
        self._keys = []

    def _spans(self) -> Iterator[Rows]:
        if self._folder is None:
            yield np.concatenate([np.empty(0, np.int64), *self._keys])
            return
        for span in range(-(-self._images // _SPAN)):
            path = self._path(span)
            if path.exists():
                yield np.fromfile(path, np.int64)
                path.unlink()

    def _path(self, span: int) -> Path:
        assert self._folder is not None, "the pairs lie in files"
        return self._folder / f"pairs-{span}"


def add_best(found: FoundPairs, image: Images, lists: Lists, images: int, check: Callable[[], None]) -> None:
    """Add the nearest few pairs of each image.

    Args:
        found: the pairs.
        image: shape (N,): the image of each row.
        lists: the neighbours of rows.
        images: the number of images.
        check: called between blocks; raises to stop.
    """
    order = np.argsort(image, kind="stable")
    starts = np.searchsorted(image[order], np.arange(0, images + _BLOCK, _BLOCK))
    for start, end in pairwise(starts.tolist()):
        check()
        units = order[start:end]
        rows, similarity = lists(units)
        mine, other = np.repeat(image[units], rows.shape[1]).astype(np.int64), image[rows.ravel()].astype(np.int64)
        foreign = (mine != other) & (rows.ravel() >= 0)
        mine, other, score = mine[foreign], other[foreign], similarity.ravel()[foreign]
        by_pair = np.lexsort((-score, other, mine))
        is_first = np.diff(mine[by_pair] * images + other[by_pair], prepend=-1) != 0
        mine, other, score = (each[by_pair[is_first]] for each in (mine, other, score))
        best = np.lexsort((-score, mine))
        begin = np.flatnonzero(np.diff(mine[best], prepend=-1))
        rank = np.arange(len(best)) - np.repeat(begin, np.diff(begin, append=len(best)))
        kept = best[rank < _KEPT]
        found.add(mine[kept], other[kept])
