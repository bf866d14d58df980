"""Copies of images: candidates by descriptors, and their verification."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import spanning_forest
from framedex.analysis.copies import Candidates, Costs, OnDisk, Units, affordable, find_candidates
from framedex.analysis.linkage import ROUNDING
from framedex.core.arrays import Mask, Vectors
from framedex.core.counts import counted
from framedex.core.progress import Progress, ShareProgress
from framedex.core.stages import Stages, is_stage
from framedex.encoders.copy_descriptor import MIRRORED, cells, layouts, poses
from framedex.executors import Executor, open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.compared_images import ImageSource
from framedex.jobs.index.copy_descriptors import descriptors_key, read_units, units_in_file
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.shared_features import may_show_the_same
from framedex.jobs.index.verified_copies import verified_pairs
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs, read_descriptors, video_owners
from framedex.storage.media import Media
from framedex.storage.media_rows import NEAR_SIMILARITY, PANEL_DESCRIPTORS
from framedex.storage.spill import bytes_of, check_space, spill_folder
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
ALIKE = DUPLICATE_LEVELS[0]
"""The similarity of descriptors from which images are alike as they are."""
DOUBTFUL = 0.7
"""The similarity of candidates below which they are not compared by keypoints."""
_COSTS_MS = Costs(keypoints=5.0, comparison=3.0, registration=10.0)
_LEAST_BUDGET_MS = 500.0
_FINDING = 0.3  # share of the work that is done after this stage
LITTLE = 10_000
"""Images whose copies take less time than the start of processes or of a cluster."""
_FEW = 4096  # images whose copies are found in memory in any case
_IMAGE_BYTES = 11_000  # of memory for an image, where copies are found in memory: descriptors, poses, neighbours, pairs
_UNIT_BYTES = 3200  # of files for an image, where they are not: its descriptors
_FILE_BYTES = 5200  # the same with poses; that of neighbours is checked when their number is known
_CHOSEN, _FOUND = "chosen", "found"  # the stages in which the pairs to verify are known, and the copies
_STAGES = 2  # the form of stages: one process goes on from those of another only if it is the same
_STAGE = "finding copies"
_EQUAL_FRAMES = 0.999  # similarity of frames of one video that show the same
_NO_ENDS = np.empty((2, 0), np.int64)


@dataclass(frozen=True)
class ChosenPairs:
    """Pairs of images that may be copies.

    Attributes:
        a, b: int64, shape (P,): the rows.
        near: bool, shape (P,): whether they are alike as they are.
        mirrored: bool, shape (P,): whether the second image may be mirrored.
        similarity: float32, shape (P,): of the descriptors of whole images, at most 1.
        alike: the rows of all pairs that are alike as they are, also of those that no budget is left for.
    """

    a: Rows
    b: Rows
    near: Mask
    mirrored: Mask
    similarity: Vectors
    alike: tuple[Rows, Rows]

    def take(self, selected: Mask) -> "ChosenPairs":
        """Return the selected pairs: bool, shape (P,)."""
        numbers = (self.near[selected], self.mirrored[selected], self.similarity[selected])
        return ChosenPairs(self.a[selected], self.b[selected], *numbers, self.alike)


@contextmanager
def found_copies(
    job: JobContext,
    table: Table,
    *,
    progress: Progress,
    added: int | None = None,
    known: CopyPairs | None = None,
    roots: Sequence[str] | None = None,
) -> Iterator[CopyPairs | None]:
    """Yield the copies among the rows of a media table; None if it has no copy descriptors.

    Pairs that may be copies by their descriptors are verified, most promising first, as far as the budget goes
    (``copy_budget_ms``). It counts fixed costs, not measured ones, so the result does not depend on the speed of the
    machine. Without a budget nothing is verified: images that are alike as they are count as copies. Where the
    descriptors do not fit into memory, another process finds the same copies at once if this one is killed within the
    block.

    Args:
        job: the context of the job.
        table: the media table, at its newest version.
        progress: called with the stage and the share that is done; raises to stop.
        added: the first row that is compared with all others; only pairs with such a row are returned. None for pairs
            of all rows.
        known: pairs that were verified before; they are not verified again, and are not among those that are returned.
        roots: source roots by number; by default those of the job.
    """
    if PANEL_DESCRIPTORS not in table.schema.names or (added or 0) >= table.count():
        yield None
        return
    progress(_STAGE, 0.0)
    search = _Search(
        job, table, added, known or NO_PAIRS, job.roots if roots is None else tuple(roots), partial(progress, _STAGE)
    )
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
        known: pairs that need no verification.
        roots: source roots by number.
        progress: called with the share that is done; raises to stop.
    """

    job: JobContext
    table: Table
    added: int | None
    known: CopyPairs
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

    def resumed(self, folder: Path) -> CopyPairs:
        """Return the copies, from the stages that a killed process completed."""
        stages = Stages(folder)
        return stages.once(_FOUND, lambda: self.run(folder, stages))

    def run(self, folder: Path | None = None, stages: Stages | None = None) -> CopyPairs:
        """Return the copies, which are searched in memory if there is no folder."""
        with open_executor(self.job.settings, is_little=self.table.count() < LITTLE) as executor:

            def search() -> ChosenPairs:
                return self._chosen(folder, executor)

            chosen = search() if stages is None else stages.once(_CHOSEN, search)
            if folder is not None:
                _remove_all_but_stages(folder)
            if not len(chosen.a):
                return self._near(chosen)
            if self.job.settings.copy_budget_ms == 0:
                return CopyPairs.by_descriptor(chosen.a, chosen.b, chosen.similarity)
            media = Media(self.job.dataset_id, self.job.head, self.table, Sql(), self.roots)
            pairs = verified_pairs(
                [ImageSource(media, self.job.settings, self.job.keypoints)],
                chosen.a,
                chosen.b,
                near=chosen.near,
                mirrored=chosen.mirrored,
                executor=executor,
                progress=lambda share: self.progress(_FINDING + (1 - _FINDING) * share),
                stages=stages,
            )
            return with_known(pairs.joined(self._equal_frames(pairs)), self._near(chosen))

    def _near(self, chosen: ChosenPairs) -> CopyPairs:
        """Return all unknown pairs that are alike, at the similarity of those that were not shown to be copies."""
        is_new = ~_are_among(chosen.alike, (self.known.a, self.known.b))
        a, b = (ends[is_new] for ends in chosen.alike)
        return CopyPairs.by_descriptor(a, b, np.full(len(a), NEAR_SIMILARITY, np.float32))

    def _equal_frames(self, pairs: CopyPairs) -> CopyPairs:
        """Return pairs of copies with equal frames of their video: of many equal frames only some are searched."""
        owners = video_owners(self.table, np.arange(self.table.count()))
        ends = np.unique(np.concatenate([pairs.a, pairs.b]))
        if owners is None or not len(ends := ends[owners[ends] >= 0]):
            return NO_PAIRS
        found = [_NO_ENDS]
        for owner in np.unique(owners[ends]).tolist():
            rows = np.flatnonzero(owners == owner)
            described, vectors = read_descriptors(self.table, rows)
            rows = rows[described]
            places = np.flatnonzero(np.isin(rows, ends))
            frame, place = np.nonzero(vectors @ vectors[places].T >= _EQUAL_FRAMES)
            is_other = frame != places[place]
            found.append(np.stack([rows[frame], rows[places[place]]])[:, is_other])
        a, b = np.concatenate(found, axis=1)
        return CopyPairs.by_descriptor(a, b, np.ones(len(a), np.float32))

    def _chosen(self, folder: Path | None, executor: Executor) -> ChosenPairs:
        """Return the pairs that may be copies, by their rows."""
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
        budget = self.job.settings.copy_budget_ms
        if budget > 0:
            found = promising(found, [self.table], positions, executor, partial(self.progress, _FINDING))
        chosen = chosen_pairs(
            found,
            budget_ms=budget,
            images=len(positions) - first_added,
            added=first_added,
            check=partial(self.progress, _FINDING),
        )
        alike = positions[chosen.alike[0]], positions[chosen.alike[1]]
        chosen = replace(chosen, a=positions[chosen.a], b=positions[chosen.b], alike=alike)
        return chosen.take(~_are_among((chosen.a, chosen.b), (self.known.a, self.known.b)))

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


def promising(
    found: Candidates, tables: Sequence[Table], rows: Rows, executor: Executor, check: Callable[[], None]
) -> Candidates:
    """Return the candidates that are alike as they are, or may show the same by their local features.

    Args:
        found: the candidates.
        tables: media tables whose rows are numbered one after another.
        rows: the row of each image.
        executor: compares features.
        check: called now and then; raises to stop.
    """
    kept = _are_alike(found)
    others = np.flatnonzero(~kept)
    kept[others] = may_show_the_same(tables, rows[found.a[others]], rows[found.b[others]], executor, check)
    return found.take(kept)


def _are_alike(found: Candidates) -> Mask:
    """Return which candidates are alike as they are: bool, shape (P,)."""
    return np.asarray((found.whole >= ALIKE - ROUNDING) & (found.whole_pose == 0))


def chosen_pairs(
    found: Candidates, *, budget_ms: float, images: int, added: int = 0, check: Callable[[], None] = lambda: None
) -> ChosenPairs:
    """Return the candidates that a budget can verify; without a budget those that are alike as they are.

    Args:
        found: the candidates that may be copies, so that they are at least doubtful.
        budget_ms: milliseconds of processor time for each image.
        images: the number of images.
        added: the first image whose keypoints count.
        check: called now and then; raises to stop.
    """
    near = _are_alike(found)
    if budget_ms > 0:
        budget = max(budget_ms * images, _LEAST_BUDGET_MS)  # a few added images have as many candidates each as many
        free = _connecting(found, near)
        kept = affordable(found, budget_ms=budget, costs=_COSTS_MS, near=near, free=free, added=added, check=check)
    else:
        kept = np.flatnonzero(near)
    alike = found.a[near].astype(np.int64), found.b[near].astype(np.int64)
    found, near = found.take(kept), near[kept]
    ends = found.a.astype(np.int64), found.b.astype(np.int64)
    similarity = np.where(found.whole >= 1 - ROUNDING, np.float32(1), found.whole)
    return ChosenPairs(*ends, near, found.pose >= MIRRORED, similarity, alike)


def _connecting(found: Candidates, near: Mask) -> Mask:
    """Return the pairs that no budget leaves out: equal ones, the closest of each image, and what connects the others.

    These are at most two for each image.
    """
    chosen = near & (found.whole >= 1 - ROUNDING)
    places = np.flatnonzero(near)
    places = places[np.argsort(-found.whole[places], kind="stable")]
    ends = np.stack([found.a[places], found.b[places]], axis=1).ravel()
    chosen[places[np.unique(ends, return_index=True)[1] // 2]] = True
    if len(ends):
        chosen[places[spanning_forest(int(ends.max()) + 1, found.a[places], found.b[places])]] = True
    return chosen


def with_known(found: CopyPairs, known: CopyPairs | None) -> CopyPairs:
    """Return found pairs, and those known before whose images were not found again."""
    if known is None or not len(known):
        return found
    return found.joined(known.take(~_are_among((known.a, known.b), (found.a, found.b))))


def _are_among(pairs: tuple[Rows, Rows], others: tuple[Rows, Rows]) -> Mask:
    """Return whether pairs are among other ones, in any order of their ends: bool, shape (P,)."""
    keys, other_keys = ((np.minimum(a, b) << 32) | np.maximum(a, b) for a, b in (pairs, others))
    return np.isin(keys, other_keys)
