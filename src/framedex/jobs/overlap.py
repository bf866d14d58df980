"""Copies between two sets of media: of two datasets, or of one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.copies import Units, find_candidates
from framedex.analysis.linkage import ROUNDING
from framedex.analysis.pairings import closest_pairs, first_pairs
from framedex.browse.duplicates import difference, tells_original
from framedex.browse.equal_files import exact_key
from framedex.core.arrays import RowIds, Vectors
from framedex.core.progress import Progress
from framedex.encoders.copy_descriptor import cells, layouts, poses
from framedex.errors import InvalidInput
from framedex.executors import Executor, open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.compared_images import ImageSource
from framedex.jobs.index.copies import DOUBTFUL, LITTLE, chosen_pairs, promising
from framedex.jobs.index.copy_descriptors import read_panels
from framedex.jobs.index.verified_copies import verified_pairs
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.copy_pairs import compared_column, read_descriptors, read_pairs
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.media_rows import DUPLICATES, PANEL_DESCRIPTORS
from framedex.storage.row_positions import positions_of
from framedex.storage.table_versions import ROW_ID, new_matrix

HERE, THERE, UNKNOWN = "here", "there", None
"""Which end of a pair is the copy."""
SAME_FILE, SAME_ITEM, THROUGH_OTHERS = "same file", "same media item", "copies of a common copy"
_FEW = 16  # below a share of 1/16, vectors are read by row
_STAGE = "finding copies"
_READ = 0.1  # share of the work after the descriptors are read
_CANDIDATES = 0.4  # share of the work after candidates are found

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OverlapSide:
    """One of two sets of media.

    Attributes:
        job: the context of the dataset.
        media: its media in the state that is compared.
        row_ids: uint64, ascending: the rows of the set.
    """

    job: JobContext
    media: Media
    row_ids: RowIds

    def positions(self) -> Rows:
        """Return the positions of the rows in the table: int64, ascending."""
        found = positions_of(self.media.row_ids(EVERYTHING), self.row_ids)
        assert found is not None, "the rows are those of the table"
        return found


@dataclass(frozen=True)
class OverlapPairs:
    """Pairs of media of two sets of which one is a copy of the other, the most similar first.

    Attributes:
        here, there: uint64, shape (P,): the row ids.
        similarity: float32, shape (P,), in [0, 1].
        copies: which end is the copy; None where that is unknown.
        reasons: what was done to the copy.
    """

    here: RowIds
    there: RowIds
    similarity: Vectors
    copies: Sequence[str | None]
    reasons: Sequence[str]

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays and lists, about; equal texts are counted once for each pair."""
        return 1024 + 150 * len(self.here)


@dataclass(frozen=True)
class _Pairs:
    """Pairs by their numbers in two sets."""

    here: Rows
    there: Rows
    similarity: Vectors
    copies: Sequence[str | None]
    reasons: Sequence[str | None]

    @classmethod
    def of(cls, here: Rows, there: Rows, similarity: Any, reason: str | None = None) -> "_Pairs":
        values = np.broadcast_to(np.asarray(similarity, np.float32), len(here))
        return cls(here, there, values, [UNKNOWN] * len(here), [reason] * len(here))


def find_overlap(here: OverlapSide, there: OverlapSide, *, level: int, exact: bool, progress: Progress) -> OverlapPairs:
    """Return the copies between two sets, for each media item of both sets at most its 12 most similar ones.

    Within one state of a dataset they are the members of its near-duplicate groups. Between datasets they are found as
    near-duplicates are: by copy descriptors, and doubtful ones by keypoints as far as the budget goes.

    Args:
        here: the first set.
        there: the second one.
        level: the level of near-duplicates.
        exact: only files with equal content.
        progress: called with the stage and the share that is done; raises to stop.

    Raises:
        InvalidInput: a dataset has no copy descriptors, and the sets are of different datasets.
    """
    progress(_STAGE, 0.0)
    is_one_state = here.media.generation.id == there.media.generation.id
    found = [_same_items(here, there)] if is_one_state else []
    found.append(_equal_files(here, there))
    if not exact and is_one_state:
        found.append(_grouped(here, there, level))
    elif not exact:
        found += _compared(here, there, level, progress)
    pairs = _joined(found)
    progress(_STAGE, 1.0)
    return OverlapPairs(
        here.row_ids[pairs.here], there.row_ids[pairs.there], pairs.similarity, *_described(here, there, pairs)
    )


def _same_items(here: OverlapSide, there: OverlapSide) -> _Pairs:
    """Return the rows that both sets have."""
    _, mine, others = np.intersect1d(here.row_ids, there.row_ids, return_indices=True)
    return _Pairs.of(mine, others, 1.0, SAME_ITEM)


def _equal_files(here: OverlapSide, there: OverlapSide) -> _Pairs:
    keys = [_content_keys(each) for each in (here, there)]
    both = pa.chunked_array(keys, pa.binary()).dictionary_encode().combine_chunks()
    codes = np.asarray(both.indices.fill_null(-1))
    return _Pairs.of(*first_pairs(codes[: len(keys[0])], codes[len(keys[0]) :]), 1.0, SAME_FILE)


def _content_keys(side: OverlapSide) -> Any:
    """Return a value for each row that is equal for equal content; null for media that were not read."""
    key, columns = exact_key(side.media)
    found = side.media.query(f"SELECT {ROW_ID}, {key} AS key FROM chosen", EVERYTHING, columns)
    order = pc.sort_indices(found[ROW_ID])
    return found["key"].take(order).combine_chunks().cast(pa.binary()).take(pa.array(side.positions()))


def _grouped(here: OverlapSide, there: OverlapSide, level: int) -> _Pairs:
    """Return the pairs of members of near-duplicate groups of a dataset."""
    media = here.media
    if DUPLICATES[level] not in media.table.schema.names:
        return _Pairs.of(np.empty(0, np.int64), np.empty(0, np.int64), 0.0)
    _, groups = media.values(EVERYTHING, DUPLICATES[level])
    codes = np.asarray(groups.fill_null(-1))
    positions = here.positions(), there.positions()

    def vectors(rows: Rows, others: Rows) -> tuple[Vectors, Vectors]:
        mine, its = (_descriptors(media, positions[side][each]) for side, each in enumerate((rows, others)))
        return mine, its

    a, b, similarity = closest_pairs(codes[positions[0]], codes[positions[1]], vectors)
    pairs = read_pairs(media.table, media.generation.tables)
    known = (
        {}
        if pairs is None
        else {
            (int(copy), int(original)): (reason, float(similar))
            for copy, original, reason, similar in zip(pairs.a, pairs.b, pairs.reasons, pairs.similarity, strict=True)
        }
    )
    ends = [positions[side][each].tolist() for side, each in enumerate((a, b))]
    copies: list[str | None] = []
    reasons: list[str | None] = []
    for number, (one, other) in enumerate(zip(*ends, strict=True)):
        forwards, backwards = known.get((one, other)), known.get((other, one))
        proof = forwards or backwards
        if proof is not None:
            similarity[number] = max(similarity[number], proof[1])
        is_near = similarity[number] >= DUPLICATE_LEVELS[level] - ROUNDING
        copies.append(_copy(proof[0] if proof else None, is_here=forwards is not None))
        reasons.append(proof[0] if proof is not None else None if is_near else THROUGH_OTHERS)
    return _Pairs(a, b, similarity, copies, reasons)


def _descriptors(media: Media, positions: Rows) -> Vectors:
    """Return the vectors by which copies of rows are found, of unit length; zeros for rows without one."""
    places, vectors = read_descriptors(media.table, positions)
    found = np.zeros((len(positions), vectors.shape[1]), np.float32)
    found[places] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return found


def _compared(here: OverlapSide, there: OverlapSide, level: int, progress: Progress) -> list[_Pairs]:
    """Return the copies between two datasets by descriptors, and those that keypoints confirm."""
    for side in (here, there):
        if PANEL_DESCRIPTORS not in side.media.table.schema.names:
            raise InvalidInput(
                "near-duplicates between datasets are found by copy descriptors, and a dataset has none: it was made "
                "of embeddings, or by an old version (then ds.reindex() computes them); exact=True compares files only"
            )
    images = here.media.table.count() + there.media.table.count()
    with open_executor(here.job.settings, is_little=images < LITTLE) as executor:
        return _copies_between(here, there, level, executor, progress)


def _copies_between(
    here: OverlapSide, there: OverlapSide, level: int, executor: Executor, progress: Progress
) -> list[_Pairs]:
    """Return the same, by the workers of an executor."""
    units, numbers = _units(here, there)
    split = len(numbers[0])
    progress(_STAGE, _READ)

    def finding(share: float) -> None:
        progress(_STAGE, _READ + (_CANDIDATES - _READ) * share)

    if not split or not len(numbers[1]):
        return []
    found = find_candidates(
        units, poses, layouts, cells, split=split, least=DOUBTFUL, executor=executor, progress=finding
    )
    images = units.images
    del units
    budget = here.job.settings.copy_budget_ms
    positions, first = (here.positions(), there.positions()), here.media.table.count()
    if budget > 0:
        tables = [here.media.table, there.media.table]
        rows = np.concatenate([positions[0][numbers[0]], positions[1][numbers[1]] + first])
        found = promising(found, tables, rows, executor, partial(finding, 1.0))
    chosen = chosen_pairs(found, budget_ms=budget, images=images)
    if not len(chosen.a):
        return []
    rows, others = numbers[0][chosen.a], numbers[1][chosen.b - split]
    if budget == 0:
        alike = chosen.similarity >= DUPLICATE_LEVELS[level] - ROUNDING
        return [_Pairs.of(rows[alike], others[alike], chosen.similarity[alike])]
    proofs = verified_pairs(
        [_source(here, 0), _source(there, first)],
        positions[0][rows],
        positions[1][others] + first,
        near=chosen.near,
        mirrored=chosen.mirrored,
        executor=executor,
        progress=lambda share: progress(_STAGE, _CANDIDATES + (1 - _CANDIDATES) * share),
    )
    proofs = proofs.take(proofs.similarity >= DUPLICATE_LEVELS[level] - ROUNDING)
    is_here = proofs.a < first  # whether the copy is
    mine, others = np.where(is_here, proofs.a, proofs.b), np.where(is_here, proofs.b, proofs.a) - first
    copies = [_copy(each, is_here=copy) for each, copy in zip(proofs.reasons, is_here.tolist(), strict=True)]
    ends = np.searchsorted(positions[0], mine), np.searchsorted(positions[1], others)
    return [_Pairs(*ends, proofs.similarity, copies, list(proofs.reasons))]


def _copy(reason: str | None, *, is_here: bool) -> str | None:
    """Return which end is the copy, if what was done to it says so: an image and its mirror image do not."""
    if reason is None or not tells_original(reason):
        return UNKNOWN
    return HERE if is_here else THERE


def _source(side: OverlapSide, first: int) -> ImageSource:
    return ImageSource(side.media, side.job.settings, side.job.keypoints, first)


def _units(here: OverlapSide, there: OverlapSide) -> tuple[Units, tuple[Rows, Rows]]:
    """Return the descriptors of both sets, and the numbers in its set of the rows with a descriptor."""
    wholes: list[Vectors] = []
    panels: list[Vectors] = []
    numbers: list[Rows] = []
    images: list[Rows] = []
    for side in (here, there):
        positions = side.positions()
        if len(positions) * _FEW < side.media.table.count():
            places, vectors = read_descriptors(side.media.table, positions)
        else:
            rows, vectors = side.media.table.vectors(compared_column(side.media.table))
            held = np.isin(rows, positions)
            places, vectors = np.searchsorted(positions, rows[held]), vectors if held.all() else vectors[held]
        parts, owners = read_panels(side.media.table, positions[places])
        images.append(owners + sum(len(each) for each in numbers))
        wholes.append(vectors)
        panels.append(parts)
        numbers.append(places)
    blocks = [*wholes, *panels]
    del wholes, panels, vectors, parts
    units = _stacked(blocks, here.media.table.path.parent)
    count = sum(len(each) for each in numbers)
    return Units(units, np.concatenate([np.arange(count), *images])), (numbers[0], numbers[1])


def _stacked(blocks: list[Vectors], folder: Path) -> Vectors:
    """Return the rows of blocks in one matrix, in memory or in an unnamed file; the list is emptied meanwhile."""
    matrix, start = new_matrix(sum(len(each) for each in blocks), blocks[0].shape[1], folder, None), 0
    while blocks:
        rows = blocks.pop(0)
        matrix[start : start + len(rows)] = rows
        start += len(rows)
    return matrix


def _joined(found: Sequence[_Pairs]) -> _Pairs:
    """Return each pair once, as the first set of pairs has it, the most similar first; ties in the order of rows."""
    here, there = (np.concatenate([getattr(each, end) for each in found]) for end in ("here", "there"))
    similarity = np.concatenate([each.similarity for each in found])
    order = np.lexsort((np.arange(len(here)), there, here))
    new = np.diff(here[order], prepend=-1).astype(bool) | np.diff(there[order], prepend=-1).astype(bool)
    kept = order[new]
    kept = kept[np.lexsort((there[kept], here[kept], -similarity[kept]))]
    copies = [copy for each in found for copy in each.copies]
    reasons = [reason for each in found for reason in each.reasons]
    return _Pairs(
        here[kept],
        there[kept],
        similarity[kept],
        [copies[number] for number in kept.tolist()],
        [reasons[number] for number in kept.tolist()],
    )


def _described(here: OverlapSide, there: OverlapSide, pairs: _Pairs) -> tuple[list[str | None], list[str]]:
    """Return which ends are copies, and what was done to them, for pairs of which descriptors alone are known, too."""
    sizes = [_sizes(side, rows) for side, rows in ((here, pairs.here), (there, pairs.there))]
    is_equal = (pairs.similarity >= DUPLICATE_LEVELS[-1] - ROUNDING).tolist()
    copies, reasons = list(pairs.copies), []
    for number, reason in enumerate(pairs.reasons):
        if reason is None:
            mine, other = (each[number] for each in sizes)
            is_here = bool(mine.prod() < other.prod())  # the smaller one; a copy is rarely enlarged
            if mine.prod() != other.prod():
                copies[number] = HERE if is_here else THERE
            ends = (mine, other) if is_here else (other, mine)
            reason = difference(*ends, is_equal=is_equal[number])  # noqa: PLW2901 - the missing one is filled in
        reasons.append(reason)
    return copies, reasons


def _sizes(side: OverlapSide, rows: Rows) -> npt.NDArray[np.float64]:
    """Return the width and height of rows in pixels, NaN where they are unknown: shape (N, 2)."""
    columns = (side.media.values_at(side.row_ids[rows], name) for name in ("width", "height"))
    return np.stack([np.asarray(pc.fill_null(each.cast(pa.float64()), np.nan)) for each in columns], axis=1)


def side_of(job: JobContext, media: Media, row_ids: RowIds) -> OverlapSide:
    """Return a set of media, in a state of a dataset that may be an earlier one."""
    return OverlapSide(replace(job, head=media.generation), media, np.sort(row_ids))
