"""Copies of images: candidates by descriptors, and the verification of the doubtful ones by keypoints."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies import Candidates, OnDisk, Units, affordable, find_candidates
from framedex.analysis.linkage import ROUNDING
from framedex.core.arrays import Mask
from framedex.core.counts import counted
from framedex.core.progress import Progress, ShareProgress
from framedex.core.stages import Stages, is_stage
from framedex.encoders.copy_descriptor import MIRRORED, cells, layouts, poses
from framedex.executors import Executor, open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.copy_descriptors import descriptors_key, read_units, units_in_file
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.verified_copies import VERIFIED, ImageSource, verified_pairs
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, Pairs, video_owners
from framedex.storage.media import Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.spill import bytes_of, check_space, spill_folder
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
DOUBTFUL = 0.7
"""The similarity of candidates below which they are not compared by keypoints."""
_COST_MS = (5.0, 1.4)  # of processor time: keypoints of an image, comparison of two images
_LEAST_BUDGET_MS = 500.0
_TRIES = 2  # comparisons between two sets of near-duplicates
_FINDING = 0.3  # share of the work that is done after this stage
LITTLE = 10_000
"""Images whose copies take less time than the start of processes or of a cluster."""
_FEW = 4096  # images whose copies are found in memory in any case
_IMAGE_BYTES = 11_000  # of memory for an image, where copies are found in memory: descriptors, poses, neighbours, pairs
_UNIT_BYTES = 3200  # of files for an image, where they are not: its descriptors
_FILE_BYTES = 5200  # the same with poses; that of neighbours is checked when their number is known
_CHOSEN, _FOUND = "chosen", "found"  # the stages in which the pairs to verify are known, and the copies
_STAGES = 1  # the form of stages: one process goes on from those of another only if it is the same
_STAGE = "finding copies"
Doubtful = tuple[Rows, Rows, Mask]
"""(rows, other rows, whether the other image may be mirrored)"""
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


@contextmanager
def found_copies(
    job: JobContext, table: Table, *, progress: Progress, added: int | None = None, roots: Sequence[str] | None = None
) -> Iterator[FoundCopies | None]:
    """Yield the copies among the rows of a media table; None if it has no copy descriptors.

    Pairs that are doubtful by their descriptors are verified by keypoints, most promising first, as far as the budget
    goes (``copy_budget_ms``). It counts fixed costs, not measured ones, so the result does not depend on the speed of
    the machine. Where the descriptors do not fit into memory, another process finds the same copies at once if this one
    is killed within the block.

    Args:
        job: the context of the job.
        table: the media table, at its newest version.
        progress: called with the stage and the share that is done; raises to stop.
        added: the first row that is compared with all others; only pairs with such a row are returned. None for pairs
            of all rows, for which near-duplicates by descriptor are not returned.
        roots: source roots by number; by default those of the job.
    """
    if PANEL_DESCRIPTORS not in table.schema.names or (added or 0) >= table.count():
        yield None
        return
    if job.settings.copy_budget_ms == 0 and added is None:  # candidates are of no use, and near-duplicates have a graph
        yield FoundCopies(NO_PAIRS, _NONE_NEAR)
        return
    progress(_STAGE, 0.0)
    search = _Search(job, table, added, job.roots if roots is None else tuple(roots), partial(progress, _STAGE))
    with ExitStack() as stack:
        with ExitStack() as searching:
            folder = searching.enter_context(search.folder())
            found = search.run() if folder is None else search.resumed(folder)
            stack.callback(searching.pop_all().close)  # errors in the block are none of the search
        yield found


@dataclass(frozen=True)
class _Search:
    """Search for copies.

    Attributes:
        job: the context of the job.
        table: the media table.
        added: the first row that is compared; None for all.
        roots: source roots by number.
        progress: called with the share that is done; raises to stop.
    """

    job: JobContext
    table: Table
    added: int | None
    roots: tuple[str, ...]
    progress: ShareProgress

    @contextmanager
    def folder(self) -> Iterator[Path | None]:
        """Yield the folder of temporary files, if the search does not fit into memory, else None.

        It is the same one for a search of the same descriptors that goes on after a kill.
        """
        resources, count = IndexResources.of(self.job), self.table.count()
        if count <= _FEW or count * _IMAGE_BYTES <= resources.memory_bytes:
            yield None
            return
        facts = (_STAGES, self.added, self.job.settings.copy_budget_ms)
        key = descriptors_key(self.table, facts, check=partial(self.progress, 0.0))
        with spill_folder(resources.spill, 0, self._purpose, key=key) as folder:
            yield folder

    @property
    def _purpose(self) -> str:
        return f"the search for copies of {counted(self.table.count(), 'images')}"

    def resumed(self, folder: Path) -> FoundCopies:
        """Return the copies, from the stages that a killed process completed."""
        stages = Stages(folder)
        return stages.once(_FOUND, lambda: self.run(folder, stages))

    def run(self, folder: Path | None = None, stages: Stages | None = None) -> FoundCopies:
        """Return the copies, which are searched in memory if there is no folder."""
        with open_executor(self.job.settings, is_little=self.table.count() < LITTLE) as executor:

            def search() -> tuple[Pairs, Doubtful]:
                return self._near_and_doubtful(folder, executor)

            near, doubtful = search() if stages is None else stages.once(_CHOSEN, search)
            if folder is not None:
                _remove_all_but_stages(folder)
            pairs = NO_PAIRS
            if len(doubtful[0]):
                media = Media(self.job.dataset_id, self.job.head, self.table, Sql(), self.roots)
                pairs = verified_pairs(
                    [ImageSource(media, self.job.settings, self.job.keypoints)],
                    *doubtful,
                    executor,
                    lambda share: self.progress(_FINDING + (1 - _FINDING) * share),
                    stages=stages,
                )
        return FoundCopies(pairs, near)

    def _near_and_doubtful(self, folder: Path | None, executor: Executor) -> tuple[Pairs, Doubtful]:
        """Return near-duplicates of added rows, and the pairs that are to be verified, by their rows."""
        positions, units, on_disk = self._units(folder)
        first_added = int(np.searchsorted(positions, self.added or 0))
        found = find_candidates(
            units,
            poses,
            layouts,
            cells,
            added=first_added,
            owners=video_owners(self.table, positions),
            least=DOUBTFUL,
            on_disk=on_disk,
            executor=executor,
            progress=lambda share: self.progress(_FINDING * share),
        )
        near, chosen = near_and_doubtful(
            found,
            budget_ms=self.job.settings.copy_budget_ms,
            images=len(positions) - first_added,
            added=first_added,
            check=partial(self.progress, _FINDING),
        )
        return (
            (positions[near.a], positions[near.b], np.minimum(near.whole, 1)) if self.added is not None else _NONE_NEAR,
            (positions[chosen.a], positions[chosen.b], chosen.pose >= MIRRORED),
        )

    def _units(self, folder: Path | None) -> tuple[Rows, Units, OnDisk | None]:
        """Return the rows with a descriptor, and the descriptors, which lie in a file if there is a folder."""
        if folder is None:
            return *read_units(self.table), None
        count, resources = self.table.count(), IndexResources.of(self.job)
        check_space(folder, count * (_UNIT_BYTES if self.added else _FILE_BYTES), self._purpose)
        positions, units = units_in_file(self.table, folder / "units", check=partial(self.progress, 0.0))

        def check_more_space(needed: int) -> None:
            check_space(folder, bytes_of(folder) + needed, self._purpose)

        return positions, units, OnDisk(folder, resources.memory_bytes, resources.check_cost, check_more_space)


def _remove_all_but_stages(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif not is_stage(each):
            each.unlink()


def near_and_doubtful(
    found: Candidates, *, budget_ms: float, images: int, added: int = 0, check: Callable[[], None] = lambda: None
) -> tuple[Candidates, Candidates]:
    """Return the candidates that are near-duplicates as they are, and the doubtful ones that a budget can verify.

    Args:
        found: the candidates that may be copies, so that they are at least doubtful.
        budget_ms: milliseconds of processor time for each image.
        images: the number of images.
        added: the first image whose keypoints count.
        check: called now and then; raises to stop.
    """
    near = found.take((found.whole >= VERIFIED - ROUNDING) & (found.whole_pose == 0))
    budget = budget_ms * images
    if budget > 0:
        budget = max(budget, _LEAST_BUDGET_MS)  # a few added images have as many candidates each as many
    # Near ones are in one set, so they are not among the chosen ones.
    chosen = affordable(found, budget_ms=budget, cost=_COST_MS, near=near, tries=_TRIES, added=added, check=check)
    return near, found.take(chosen)


def with_known(found: CopyPairs, known: CopyPairs | None) -> CopyPairs:
    """Return found pairs, and those known before whose images were not found again."""
    if known is None or not len(known):
        return found
    pairs = {tuple(sorted(each)) for each in zip(found.a.tolist(), found.b.tolist(), strict=True)}
    is_new = [tuple(sorted(each)) not in pairs for each in zip(known.a.tolist(), known.b.tolist(), strict=True)]
    return found.joined(known.take(np.array(is_new, dtype=bool)))
