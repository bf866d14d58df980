"""Copies of images: candidates by descriptors, and the verification of the doubtful ones by keypoints."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies import Candidates, Units, affordable, find_candidates
from framedex.analysis.linkage import ROUNDING
from framedex.core.arrays import Vectors
from framedex.core.progress import Progress
from framedex.encoders.copy_descriptor import DIMENSION, MIRRORED, cells, layouts, poses
from framedex.executors import open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.verified_copies import VERIFIED, ImageSource, verified_pairs
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, Pairs, compared_column, video_owners
from framedex.storage.media import Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
_DOUBTFUL = 0.7  # similarity below which images are not compared by keypoints
_COST_MS = (5.0, 1.4)  # of processor time: keypoints of an image, comparison of two images
_LEAST_BUDGET_MS = 500.0
_TRIES = 2  # comparisons between two sets of near-duplicates
_FINDING = 0.3  # share of the work that is done after this stage
LITTLE = 10_000
"""Images whose copies take less time than the start of processes or of a cluster."""
_STAGE = "finding copies"
_NONE_NEAR: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True)
class FoundCopies:
    """Result of the search for copies.

    Attributes:
        pairs: copies that keypoints show.
        near: near-duplicates by descriptor of added rows, neither turned nor mirrored: rows and similarity.
    """

    pairs: CopyPairs
    near: Pairs


def find_copies(
    job: JobContext, table: Table, *, progress: Progress, added: int = 0, roots: Sequence[str] | None = None
) -> FoundCopies | None:
    """Return the copies among the rows of a media table; None if it has no copy descriptors.

    Pairs that are doubtful by their descriptors are verified by keypoints, most promising first, as far as the budget
    goes (``copy_budget_ms``). It counts fixed costs, not measured ones, so the result does not depend on the machine.

    Args:
        job: the context of the job.
        table: the media table, at its newest version.
        progress: called with the stage and the share that is done; raises to stop.
        added: the first row that is compared with all others; only pairs with such a row are returned.
        roots: source roots by number; by default those of the job.
    """
    if PANEL_DESCRIPTORS not in table.schema.names or added >= table.count():
        return None
    if job.settings.copy_budget_ms == 0 and not added:  # candidates are of no use, and near-duplicates have a graph
        return FoundCopies(NO_PAIRS, _NONE_NEAR)
    progress(_STAGE, 0.0)
    positions, vectors = table.vectors(compared_column(table))
    units, first_added = _with_panels(table, positions, vectors), int(np.searchsorted(positions, added))
    with open_executor(job.settings, is_little=len(positions) < LITTLE) as executor:
        found = find_candidates(
            units,
            poses,
            layouts,
            cells,
            added=first_added,
            owners=video_owners(table, positions),
            executor=executor,
            progress=lambda share: progress(_STAGE, _FINDING * share),
        )
        del vectors, units
        near, chosen = near_and_doubtful(
            found, budget_ms=job.settings.copy_budget_ms, images=len(positions) - first_added, added=first_added
        )
        media = Media(job.dataset_id, job.head, table, Sql(), job.roots if roots is None else tuple(roots))
        pairs = NO_PAIRS
        if len(chosen.a):
            pairs = verified_pairs(
                [ImageSource(media, job.settings, job.keypoints)],
                positions[chosen.a],
                positions[chosen.b],
                chosen.pose >= MIRRORED,
                executor,
                lambda share: progress(_STAGE, _FINDING + (1 - _FINDING) * share),
            )
    return FoundCopies(pairs, (positions[near.a], positions[near.b], near.whole))


def near_and_doubtful(
    found: Candidates, *, budget_ms: float, images: int, added: int = 0
) -> tuple[Candidates, Candidates]:
    """Return the candidates that are near-duplicates as they are, and the doubtful ones that a budget can verify.

    Args:
        found: the candidates.
        budget_ms: milliseconds of processor time for each image.
        images: the number of images.
        added: the first image whose keypoints count.
    """
    is_near = (found.whole >= VERIFIED - ROUNDING) & (found.whole_pose == 0)
    near = found.take(is_near)
    doubtful = found.take(~is_near & (found.similarity >= _DOUBTFUL))
    budget = budget_ms * images
    if budget > 0:
        budget = max(budget, _LEAST_BUDGET_MS)  # a few added images have as many candidates each as many
    chosen = affordable(doubtful, budget_ms=budget, cost=_COST_MS, near=near, tries=_TRIES, added=added)
    return near, doubtful.take(chosen)


def _with_panels(table: Table, positions: Rows, vectors: Vectors) -> Units:
    panels, images = read_panels(table, positions)
    parts = [vectors, panels] if len(panels) else [vectors]
    return Units(
        np.concatenate(parts) if len(parts) > 1 else vectors, np.concatenate([np.arange(len(positions)), images])
    )


def read_panels(table: Table, positions: Rows) -> tuple[Vectors, Rows]:
    """Return the descriptors of the panels of some rows, and the number of its row among them for each.

    Args:
        table: the media table.
        positions: int64, ascending: the rows.
    """
    parts, images, start = [np.empty((0, DIMENSION), np.float32)], [np.empty(0, np.int64)], 0
    for batch in table.scan([PANEL_DESCRIPTORS]):
        column = batch.column(0)
        counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) // DIMENSION
        rows = np.repeat(np.arange(start, start + len(column)), counts)
        flat = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, DIMENSION)
        described = np.isin(rows, positions)
        parts.append(flat[described])
        images.append(np.searchsorted(positions, rows[described]))
        start += len(column)
    return np.concatenate(parts), np.concatenate(images).astype(np.int64)


def with_known(found: CopyPairs, known: CopyPairs | None) -> CopyPairs:
    """Return found pairs, and those known before whose images were not found again."""
    if known is None or not len(known):
        return found
    pairs = {tuple(sorted(each)) for each in zip(found.a.tolist(), found.b.tolist(), strict=True)}
    is_new = [tuple(sorted(each)) not in pairs for each in zip(known.a.tolist(), known.b.tolist(), strict=True)]
    return found.joined(known.take(np.array(is_new, dtype=bool)))
