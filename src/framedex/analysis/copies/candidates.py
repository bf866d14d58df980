"""The search for candidates; see :mod:`framedex.analysis.copies`."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.poses import Projection
from framedex.analysis.copies.searches import OnDisk, joined, looked_up
from framedex.analysis.copies.similarities import with_similarity
from framedex.analysis.copies.units import Candidates, Poses, Units, no_candidates
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.products import Products
from framedex.core.arrays import Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.progress import ShareProgress
from framedex.executors import Executor, ThreadExecutor

_SEARCHED = 0.6  # share of the work that is done when pairs are found


def find_candidates(
    units: Units,
    poses: Poses,
    light: Callable[[Vectors], Vectors],
    cells: Callable[[Vectors], Vectors],
    *,
    added: int = 0,
    split: int | None = None,
    owners: npt.NDArray[np.int32] | None = None,
    least: float = -np.inf,
    engine: Products | None = None,
    on_disk: OnDisk | None = None,
    executor: Executor | None = None,
    progress: ShareProgress = ignore_progress,
) -> Candidates:
    """Return pairs of images that may be copies, a few for each image, in the order of the images.

    An image that equals many others has one pair with each of them.

    Args:
        units: the descriptors.
        poses: returns descriptors in all poses.
        light: returns the layouts of descriptors: shape (N, S, S).
        cells: returns the parts of descriptors that describe one part of an image each: shape (N, C, E), unit length.
        added: the first image that is compared with all others; only pairs with such an image are returned.
        split: the first image of a second set; only pairs of an image before it and one from it on are returned.
        owners: int32, shape (M,): images with the same number ≥ 0 are no candidates for each other.
        least: the least similarity of pairs that are returned.
        engine: computes the matrix products.
        on_disk: for data that do not fit into memory, without *split*; the neighbours of some units in a thousand are
            others then.
        executor: does the work on units and pairs; None for this thread.
        progress: called with the share that is done; raises to stop.
    """
    if units.images < 2 or added >= units.images:
        return no_candidates()

    def searching(share: float) -> None:
        progress(_SEARCHED * share)

    # Threads of BLAS wait for each other longer than these products take.
    with single_threaded_blas(), nullcontext(executor) if executor else ThreadExecutor(1) as workers:
        projection = Projection.of(units, poses)
        if added == 0:
            pairs = joined(
                units, projection, poses, light, split=split, owners=owners, engine=engine, on_disk=on_disk,
                executor=workers, progress=searching,
            )  # fmt: skip
        else:
            folder = None if on_disk is None else on_disk.folder
            pairs = looked_up(
                units, projection, poses, added, owners=owners, folder=folder, executor=workers, progress=searching
            )
        return with_similarity(
            units, poses, cells, pairs, owners=owners, least=least, executor=workers,
            progress=lambda share: progress(_SEARCHED + (1 - _SEARCHED) * share),
        )  # fmt: skip
