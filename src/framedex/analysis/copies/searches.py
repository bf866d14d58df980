"""Searches for pairs of images with near units: among all images, between two sets, and of added ones."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.pairs import FoundPairs, add_best
from framedex.analysis.copies.poses import Projection, taken_poses
from framedex.analysis.copies.units import Poses, Rows, Units, row_parts
from framedex.analysis.grouped.files import GroupFiles
from framedex.analysis.grouped.neighbours import Sizes, nearest_by_groups
from framedex.analysis.grouped.steps import Plan
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.analysis.neighbours import nearest, row_keys
from framedex.analysis.neighbours_between import nearest_between
from framedex.analysis.products import Products
from framedex.analysis.vector_sources import VectorsInFile
from framedex.core.arrays import Mask, Vectors
from framedex.core.mapped_files import write_matrix
from framedex.core.progress import ShareProgress
from framedex.executors import Executor

_NEIGHBOURS = 40  # in the search; several may be poses or panels of one image
_RECALL = 0.9
_BLOCK = 4096  # a step
_QUERIES = 512  # a step
_GROUP = 16 * _QUERIES  # queries whose descriptors in all poses are in memory
_DESCRIBED = 0.1  # share of the search that is done when all poses are described
WORK = 4096
"""Units or pairs that a worker gets at a time."""
WORK_BYTES = 64 * 2**20
"""The bytes that such a part takes at most."""
_EQUAL_IMAGES = 4  # that are searched, fewer than candidates of an image; the others are pairs with the first one
_EQUAL_UNITS = 16  # of panels, and of images of one owner; more than candidates of an image
_POSES = 8
_LAST_ROW = 2**32 - 1
_NO_KEY = np.iinfo(np.int64).min
_OF_OWNER, _OF_IMAGE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)  # in keys
Light = Callable[[Vectors], Vectors]


@dataclass(frozen=True)
class OnDisk:
    """Folder and limits of a search whose data do not fit into memory.

    Attributes:
        folder: an empty folder for files.
        memory_bytes: bytes of memory that it may take.
        check_cost: called before rows are compared, with the multiply-adds and the number of values of a row; raises to
            stop.
        check_space: called with the bytes of files that are made next; raises to stop.
    """

    folder: Path
    memory_bytes: int
    check_cost: Callable[[float, int], None] = lambda _multiply_adds, _dimension: None
    check_space: Callable[[int], None] = lambda _bytes: None


def joined(
    units: Units,
    projection: Projection,
    poses: Poses,
    light: Light,
    *,
    split: int | None,
    owners: npt.NDArray[np.int32] | None,
    engine: Products | None,
    on_disk: OnDisk | None,
    executor: Executor,
    progress: ShareProgress,
) -> FoundPairs:
    """Return pairs of images with near units, from searches in the poses that they take, and as they are.

    Of many equal units some are searched; the others are pairs with the first one.

    Args:
        units: the descriptors.
        projection: of the descriptors.
        poses: returns descriptors in all poses.
        light: returns the layouts of descriptors.
        split: units of images before it search among those from it on, and the other way round.
        owners: see :func:`framedex.analysis.copies.candidates.find_candidates`.
        engine: computes the matrix products, in memory.
        on_disk: for a search by groups; it has no *split*.
        executor: does the work.
        progress: called with the share that is done; raises to stop.
    """
    found = FoundPairs(units.images, None if on_disk is None else on_disk.folder)
    is_searched = np.ones(len(units.image), np.bool_)
    if split is None:
        first, others, unsearched = _crowded(units, owners, lambda: progress(0.0))
        is_searched[unsearched] = False
        found.add(first, others)

    share = 0.0

    def described() -> Iterator[tuple[Vectors, npt.NDArray[np.int32], Mask]]:
        nonlocal share
        starts = range(0, len(units.vectors), WORK)
        results = executor.map(
            partial(taken_poses, projection, poses, light),
            (units.vectors[start : start + WORK] for start in starts),
            memory=WORK_BYTES, check=lambda: progress(share),
        )  # fmt: skip
        for start, (points, unit, is_upright) in zip(starts, results, strict=True):
            kept = is_searched[start + unit]
            share = _DESCRIBED * start / len(units.vectors)
            progress(share)
            yield points[kept], units.image[start + unit[kept]].astype(np.int32), is_upright[kept]

    searching = _part_of(progress, _DESCRIBED, 1.0)
    if on_disk is None:
        _search_in_memory(described(), split, units.images, engine, found, searching)
    else:
        assert split is None, "two sets are compared in memory"
        _search_on_disk(described(), projection.dimension, units.images, on_disk, found, executor, searching)
    return found


def _crowded(
    units: Units, owners: npt.NDArray[np.int32] | None, check: Callable[[], None]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], Rows]:
    """Return pairs (first, other) of equal images, and the units that are not searched: those beyond some of many.

    Images of one owner are no candidates for each other, and the panels of two images no proof of a copy. So these are
    in no pair, and more of them are searched.
    """
    keys = [np.empty(0, np.uint64)]
    for start in range(0, len(units.vectors), WORK):
        check()
        keys.append(row_keys(np.asarray(units.vectors[start : start + WORK], np.float32)))
    all_keys = np.concatenate(keys)
    is_image = np.arange(len(all_keys)) < units.images
    if owners is not None:
        owner = owners[units.image].astype(np.int64)
        is_image &= owner < 0
        all_keys ^= (owner + 1).astype(np.uint64) * _OF_OWNER
    all_keys ^= is_image * _OF_IMAGE  # panels equal to an image are other units
    order = np.argsort(all_keys, kind="stable")
    begin = np.flatnonzero(np.diff(all_keys[order], prepend=~all_keys[order[:1]]))
    rank = np.arange(len(order)) - np.repeat(begin, np.diff(begin, append=len(order)))
    beyond = np.flatnonzero(rank >= np.where(is_image[order], _EQUAL_IMAGES, _EQUAL_UNITS))
    others = order[beyond]
    first = order[begin[np.searchsorted(begin, beyond, side="right") - 1]]
    of_images = is_image[others]
    return units.image[first[of_images]], units.image[others[of_images]], others


def _search_in_memory(
    described: Iterator[tuple[Vectors, npt.NDArray[np.int32], Mask]],
    split: int | None,
    images: int,
    engine: Products | None,
    found: FoundPairs,
    progress: ShareProgress,
) -> None:
    rows, owners, upright = (list(each) for each in zip(*described, strict=True))
    projected, image, is_upright = np.concatenate(rows), np.concatenate(owners), np.concatenate(upright)
    del rows, owners, upright
    if split is not None:  # the units of the first set come first
        order = np.argsort(image >= split, kind="stable")
        projected, image, is_upright = projected[order], image[order], is_upright[order]
    for first, last, chosen in _turns(is_upright):
        points, owner = (projected, image) if chosen.all() else (projected[chosen], image[chosen])
        its_progress = _part_of(progress, first, last)
        if split is None:
            graph = nearest(points, k=_NEIGHBOURS, recall=_RECALL, engine=engine, progress=its_progress)
        else:
            sides = np.split(points, [np.count_nonzero(owner < split)])
            graph = nearest_between(*sides, k=_NEIGHBOURS, recall=_RECALL, engine=engine, progress=its_progress)
        add_best(found, owner, partial(_lists, graph), images, partial(its_progress, 1.0))


def _lists(graph: NeighbourGraph, rows: Rows) -> tuple[npt.NDArray[np.int32], Vectors]:
    """Return the neighbours of some rows."""
    return graph.rows[rows], graph.similarity[rows]


def _lists_by_place(plan: Plan, rows: Rows) -> tuple[npt.NDArray[np.int32], Vectors]:
    """Return the neighbours of some rows, of a search by groups."""
    neighbours, similarity = plan.files.listed(plan.files.place[rows])
    return np.where(neighbours < 0, np.int32(-1), plan.files.row[neighbours]), similarity


def _search_on_disk(
    described: Iterator[tuple[Vectors, npt.NDArray[np.int32], Mask]],
    dimension: int,
    images: int,
    on_disk: OnDisk,
    found: FoundPairs,
    executor: Executor,
    progress: ShareProgress,
) -> None:
    paths = [on_disk.folder / name for name in ("points", "points-upright")]
    owners, upright = [np.empty(0, np.int32)], [np.empty(0, np.bool_)]
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for points, image, is_upright in described:
            write_matrix(files[0], points)
            write_matrix(files[1], points[is_upright])
            owners.append(image)
            upright.append(is_upright)
    all_owners, is_upright = np.concatenate(owners), np.concatenate(upright)
    del owners, upright
    both = 1 + np.count_nonzero(is_upright) / len(is_upright)

    def check_cost(multiply_adds: float) -> None:
        on_disk.check_cost(multiply_adds * both, dimension)

    sizes = Sizes.within(on_disk.memory_bytes // (executor.workers + 1), dimension)
    for path, (first, last, chosen) in zip(paths, _turns(is_upright), strict=True):
        owner = all_owners[chosen]
        folder, its_progress = on_disk.folder / "search", _part_of(progress, first, last)
        folder.mkdir()
        k = min(_NEIGHBOURS, len(owner) - 1)
        on_disk.check_space(GroupFiles(folder, len(owner), dimension, k).nbytes)
        _, plan = nearest_by_groups(
            VectorsInFile(path, dimension, 0, len(owner)), folder, k=k, recall=_RECALL, sizes=sizes, executor=executor,
            check_cost=check_cost, progress=its_progress,
        )  # fmt: skip
        add_best(found, owner, partial(_lists_by_place, plan), images, partial(its_progress, 1.0))
        del plan
        shutil.rmtree(folder)
        path.unlink()


def _turns(is_upright: Mask) -> Iterator[tuple[float, float, Mask]]:
    """Yield (start, end, rows) of the search in all poses, and as units are: shares of both, and the rows."""
    share = len(is_upright) / (len(is_upright) + np.count_nonzero(is_upright))
    yield 0.0, share, np.ones_like(is_upright)
    yield share, 1.0, is_upright


def _part_of(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    return lambda share: progress(start + (end - start) * share)


def looked_up(
    units: Units,
    projection: Projection,
    poses: Poses,
    added: int,
    *,
    owners: npt.NDArray[np.int32] | None,
    folder: Path | None,
    executor: Executor,
    progress: ShareProgress,
) -> FoundPairs:
    """Return pairs with added images: their units, in all poses, are compared with all units of other owners.

    Args:
        units: the descriptors.
        projection: of the descriptors.
        poses: returns descriptors in all poses.
        added: the first image that was added.
        owners: see :func:`framedex.analysis.copies.candidates.find_candidates`.
        folder: for files with pairs; None for memory.
        executor: does the work.
        progress: called with the share that is done; raises to stop.
    """
    queries, source = np.flatnonzero(units.image >= added), _sources(units.image, owners)
    starts = range(0, len(units.vectors), _BLOCK)
    groups, done = row_parts(queries, _GROUP), 0
    total = len(starts) * len(groups)
    pairs = FoundPairs(units.images, folder)

    def go_on() -> None:
        progress(done / total)

    for group in groups:
        turned = [
            projection(poses(units.vectors[part].astype(np.float32)).reshape(-1, units.vectors.shape[1]))
            for part in row_parts(group, _QUERIES)
        ]
        blocks = ((start, units.vectors[start : start + _BLOCK], source[start : start + _BLOCK]) for start in starts)
        # The nearest in all poses, and as they are.
        best = np.full((2, len(group), _NEIGHBOURS), _NO_KEY, np.int64)
        search = partial(_nearest_of_block, projection, turned, source[group])
        for keys in executor.map(search, blocks, memory=WORK_BYTES, check=go_on):
            best = _largest_keys(np.concatenate([best, keys], axis=2))
            done += 1
            go_on()
        found = best > _NO_KEY
        mine = np.broadcast_to(units.image[group][None, :, None], best.shape)[found]
        pairs.add(mine, units.image[_LAST_ROW - (best[found] & _LAST_ROW)])
    return pairs


def _nearest_of_block(
    projection: Projection,
    turned: Sequence[Vectors],
    sources: Rows,
    block: tuple[int, npt.NDArray[np.floating], Rows],
) -> Rows:
    """Return the keys of the units of a block that are nearest to queries in all poses, and as they are.

    Args:
        projection: of units.
        turned: the projections of the queries, a step at a time: float32, shape (8 · Q, C).
        sources: int64, shape (Q,): equal numbers are not compared.
        block: the first row, the vectors and the sources of the units.

    Returns:
        int64, shape (2, Q, at most 40).
    """
    start, vectors, its_sources = block
    points = projection(vectors.astype(np.float32))
    row = _LAST_ROW - (start + np.arange(len(points), dtype=np.int64))
    found, first = [], 0
    for step in turned:
        in_poses = (step @ points.T).reshape(_POSES, -1, len(points))
        is_own = sources[first : first + in_poses.shape[1]][:, None] == its_sources
        first += in_poses.shape[1]
        keys = [np.where(is_own, _NO_KEY, _ordered(each) + row) for each in (in_poses.max(axis=0), in_poses[0])]
        found.append(_largest_keys(np.stack(keys)))
    return np.concatenate(found, axis=1)


def _ordered(scores: Vectors) -> Rows:
    """Return the bits of numbers as integers of the same order, above 32 bits for a row: equal scores differ by row."""
    bits = np.ascontiguousarray(scores, dtype=np.float32).view(np.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) << 32


def _largest_keys(keys: Rows) -> Rows:
    """Return the largest keys along the last axis, in any order."""
    return np.partition(keys, -_NEIGHBOURS, axis=-1)[..., -_NEIGHBOURS:] if keys.shape[-1] > _NEIGHBOURS else keys


def _sources(image: npt.NDArray[np.integer], owners: npt.NDArray[np.int32] | None) -> Rows:
    """Return numbers that are equal for units of one image, or of images with one owner."""
    if owners is None:
        return image.astype(np.int64)
    found: Rows = np.where(owners >= 0, -1 - owners.astype(np.int64), np.arange(len(owners)))[image]
    return found
