"""Candidates for copies: pairs of images that may show the same, also turned, mirrored, cut out or framed.

An image has several *units*: the whole image, and its panels. Each unit is described in several poses. A turned image
takes the same canonical pose as its original, in which the centre of light lies at the upper left; where light hardly
tells a pose from another one, the unit takes both. So one search finds copies in all poses.

Most copies are neither turned nor mirrored, so units are also compared as they are only; else the poses of others take
their places. The search uses projections to the principal components of a sample, then compares the full descriptors.

The order of verification also depends on single parts of images: a banner, a caption or a crop leaves some parts nearly
equal, while the parts of different images are all moderately alike.

The work on units and pairs is done in blocks, on any executor. Neither their size nor the number of workers changes the
result: within a block the steps have a fixed size, and of equal similarities the first row counts.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.neighbours_between import nearest_between
from framedex.analysis.products import Products
from framedex.core.arrays import Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.progress import ShareProgress
from framedex.executors import Executor, ThreadExecutor

Rows = npt.NDArray[np.int64]
Poses = Callable[[Vectors], Vectors]
"""Returns the descriptors of N units in P poses: shape (P, N, D)."""
_COMPONENTS = 96
_SAMPLED = 1024
_FEW = 128  # units, for which the components take longer than they save
_NEIGHBOURS = 40  # in the search; several may be poses or panels of one image
_KEPT = 12  # candidates an image, in all poses, and as many as it is
_RECALL = 0.9
_BLOCK = 4096  # a step
_UNCLEAR = 0.1  # a difference of light, in [0, 1], that does not tell two poses apart
_POSED = (
    128  # a step: descriptors that are turned at a time; memory that is touched for the first time costs the most here
)
_QUERIES = 512  # a step
_GROUP = 16 * _QUERIES  # queries whose descriptors in all poses are in memory
_WORK = 32 * _POSED  # units or pairs that a worker gets at a time
_WORK_BYTES = 64 * 2**20  # that such a part takes at most
_MIRRORED = 4  # the first pose that mirrors
_USUAL_POSE = 0.04  # similarity that candidates are worth more as they are, because most copies are
_LEAD = 0.5  # weight of the lead over the next candidate
_SOME_PARTS, _PARTS = 4, 2.0  # a quarter of the parts of an image, and the weight of their similarity
_LAST_ROW = 2**32 - 1
_NO_KEY = np.iinfo(np.int64).min
_AS_IT_IS, _UNDONE_BY = np.arange(8), np.array([0, 3, 2, 1, 4, 5, 6, 7])  # each pose, and the one that undoes it


@dataclass(frozen=True)
class Units:
    """The descriptors of images and of their panels.

    Attributes:
        vectors: float16 or float32, shape (U, D), unit length: first those of the M images, then those of panels.
        image: int64, shape (U,): the image of each unit; the first M are 0 to M - 1.
    """

    vectors: npt.NDArray[np.floating]
    image: Rows

    @property
    def images(self) -> int:
        """The number of images, M."""
        return int(self.image.max()) + 1 if len(self.image) else 0


@dataclass(frozen=True)
class Candidates:
    """Pairs of images that may be copies.

    Attributes:
        a, b: int64, shape (P,): the images, a < b.
        similarity: float32, shape (P,): of the most similar units, in the most similar pose.
        whole: float32, shape (P,): of the whole images, in the most similar pose.
        whole_pose: int64, shape (P,): this pose of b.
        pose: int64, shape (P,): the pose of b that is similar to a, for the most similar units.
        priority: float32, shape (P,): how much more similar they are than others are to them, and more so as they are.
    """

    a: Rows
    b: Rows
    similarity: Vectors
    whole: Vectors
    whole_pose: Rows
    pose: Rows
    priority: Vectors

    def take(self, selected: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> "Candidates":
        """Return some of the pairs."""
        return Candidates(
            self.a[selected], self.b[selected], self.similarity[selected], self.whole[selected],
            self.whole_pose[selected], self.pose[selected], self.priority[selected],
        )  # fmt: skip


def find_candidates(
    units: Units,
    poses: Poses,
    light: Callable[[Vectors], Vectors],
    cells: Callable[[Vectors], Vectors],
    *,
    added: int = 0,
    split: int | None = None,
    owners: npt.NDArray[np.int32] | None = None,
    engine: Products | None = None,
    executor: Executor | None = None,
    progress: ShareProgress = ignore_progress,
) -> Candidates:
    """Return pairs of images that may be copies, at most a few for each image.

    Args:
        units: the descriptors.
        poses: returns descriptors in all poses.
        light: returns the layouts of descriptors: shape (N, S, S).
        cells: returns the parts of descriptors that describe one part of an image each: shape (N, C, E), unit length.
        added: the first image that is compared with all others; only pairs with such an image are returned.
        split: the first image of a second set; only pairs of an image before it and one from it on are returned.
        owners: int32, shape (M,): images with the same number ≥ 0 are no candidates for each other.
        engine: computes the matrix products.
        executor: does the work on units and pairs; None for this thread.
        progress: called with the share that is done; raises to stop.
    """
    if units.images < 2 or added >= units.images:
        return _none()
    # Threads of BLAS wait for each other longer than these products take.
    with single_threaded_blas(), nullcontext(executor) if executor else ThreadExecutor(1) as workers:
        projection = _Projection.of(units, poses)
        if added == 0:
            pairs = _joined(units, projection, poses, light, split, engine, workers, progress)
        else:
            pairs = _looked_up(units, projection, poses, added, owners, workers, progress)
        a, b = pairs
        if owners is not None:
            apart = (owners[a] < 0) | (owners[a] != owners[b])
            a, b = a[apart], b[apart]
        return _with_similarity(units, poses, cells, a, b, workers, progress)


def _none() -> Candidates:
    rows, values = np.empty(0, np.int64), np.empty(0, np.float32)
    return Candidates(rows, rows, values, values, rows, rows, values)


@dataclass(frozen=True)
class _Projection:
    """A projection of descriptors to their principal components, of unit length; to all of them where units are few."""

    mean: Vectors
    axes: Vectors | None

    @classmethod
    def of(cls, units: Units, poses: Poses) -> "_Projection":
        rows = np.unique(np.linspace(0, len(units.vectors) - 1, _SAMPLED).astype(np.int64))
        dimension = units.vectors.shape[1]
        if len(rows) <= _FEW:
            turned = poses(units.vectors.astype(np.float32)).reshape(-1, dimension)
            return cls(turned.mean(axis=0), None)
        total, products, count = np.zeros(dimension), np.zeros((dimension, dimension)), 0
        for part in _parts(rows, _POSED):
            turned = poses(units.vectors[part].astype(np.float32)).reshape(-1, dimension)
            total += turned.sum(axis=0, dtype=np.float64)
            products += turned.T @ turned
            count += len(turned)
        mean = total / count
        _, axes = np.linalg.eigh(products - count * np.outer(mean, mean))
        components = np.ascontiguousarray(axes[:, ::-1][:, :_COMPONENTS], dtype=np.float32)
        return cls(mean.astype(np.float32), components)

    def __call__(self, vectors: Vectors) -> Vectors:
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


def _joined(
    units: Units,
    projection: _Projection,
    poses: Poses,
    light: Callable[[Vectors], Vectors],
    split: int | None,
    engine: Products | None,
    executor: Executor,
    progress: ShareProgress,
) -> tuple[Rows, Rows]:
    """Return pairs of images with near units, from searches in the poses that they take, and as they are.

    With a *split*, units before it search among those from it on, and the other way round.
    """
    parts = executor.map(
        partial(_taken_poses, projection, poses, light),
        (units.vectors[start : start + _WORK] for start in range(0, len(units.vectors), _WORK)),
        memory=_WORK_BYTES, check=lambda: progress(0.0),
    )  # fmt: skip
    rows, owners, upright = [], [], []
    for start, (points, unit, is_usual) in zip(count(0, _WORK), parts, strict=False):
        rows.append(points)
        owners.append(units.image[start + unit])
        upright.append(is_usual)
    projected, image, is_upright = np.concatenate(rows), np.concatenate(owners), np.concatenate(upright)
    del rows, owners, upright
    if split is not None:  # the units of the first set come first
        order = np.argsort(image >= split, kind="stable")
        projected, image, is_upright = projected[order], image[order], is_upright[order]
    share: float = len(projected) / (len(projected) + np.count_nonzero(is_upright))
    pairs = []
    for first, last, chosen in ((0.0, share, np.ones_like(is_upright)), (share, 1.0, is_upright)):
        points, owner = (projected, image) if chosen.all() else (projected[chosen], image[chosen])
        its_progress = _part_of(progress, first, last)
        if split is None:
            graph = nearest(points, k=_NEIGHBOURS, recall=_RECALL, engine=engine, progress=its_progress)
        else:
            sides = np.split(points, [np.count_nonzero(owner < split)])
            graph = nearest_between(*sides, k=_NEIGHBOURS, recall=_RECALL, engine=engine, progress=its_progress)
        pairs.append(_best_pairs(owner, graph.rows, graph.similarity, units.images))
    a, b = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return _distinct(a, b, units.images)


def _taken_poses(
    projection: _Projection, poses: Poses, light: Callable[[Vectors], Vectors], vectors: npt.NDArray[np.floating]
) -> tuple[Vectors, Rows, npt.NDArray[np.bool_]]:
    """Return (projections, units, whether they are as they are) of the poses that units take."""
    rows, numbers, upright = [], [], []
    for start in range(0, len(vectors), _POSED):
        some = vectors[start : start + _POSED].astype(np.float32)
        taken = canonical_poses(light(some))
        taken[0] = True  # as it is: most copies are neither turned nor mirrored
        pose, unit = np.nonzero(taken)
        rows.append(projection(poses(some)[pose, unit]))
        numbers.append(start + unit)
        upright.append(pose == 0)
    return np.concatenate(rows), np.concatenate(numbers), np.concatenate(upright)


def _part_of(progress: ShareProgress, start: float, end: float) -> ShareProgress:
    return lambda share: progress(start + (end - start) * share)


def _distinct(a: Rows, b: Rows, images: int) -> tuple[Rows, Rows]:
    """Return each pair of images once, the smaller number first."""
    pair = np.unique(np.minimum(a, b) * images + np.maximum(a, b))
    return pair // images, pair % images


def _best_pairs(image: Rows, rows: npt.NDArray[np.int32], similarity: Vectors, images: int) -> tuple[Rows, Rows]:
    """Return each pair of images once, of the nearest few for each image."""
    order = np.argsort(image, kind="stable")
    starts = np.searchsorted(image[order], np.arange(0, images + _BLOCK, _BLOCK))
    a, b = [], []
    for start, end in pairwise(starts.tolist()):
        units = order[start:end]
        mine, other = np.repeat(image[units], rows.shape[1]), image[rows[units].ravel()]
        foreign = (mine != other) & (rows[units].ravel() >= 0)
        mine, other, score = mine[foreign], other[foreign], similarity[units].ravel()[foreign]
        by_pair = np.lexsort((-score, other, mine))
        is_first = np.diff(mine[by_pair] * images + other[by_pair], prepend=-1) != 0
        mine, other, score = (each[by_pair[is_first]] for each in (mine, other, score))
        best = np.lexsort((-score, mine))
        begin = np.flatnonzero(np.diff(mine[best], prepend=-1))
        rank = np.arange(len(best)) - np.repeat(begin, np.diff(begin, append=len(best)))
        kept = best[rank < _KEPT]
        a.append(mine[kept])
        b.append(other[kept])
    return _distinct(np.concatenate(a), np.concatenate(b), images)


def _looked_up(
    units: Units,
    projection: _Projection,
    poses: Poses,
    added: int,
    owners: npt.NDArray[np.int32] | None,
    executor: Executor,
    progress: ShareProgress,
) -> tuple[Rows, Rows]:
    """Return pairs with added images: their units, in all poses, are compared with all units of other owners."""
    queries, source = np.flatnonzero(units.image >= added), _sources(units.image, owners)
    starts = range(0, len(units.vectors), _BLOCK)
    groups, done = _parts(queries, _GROUP), 0
    total = len(starts) * len(groups)

    def go_on() -> None:
        progress(done / total)

    mine, other = [], []
    for group in groups:
        turned = [
            projection(poses(units.vectors[part].astype(np.float32)).reshape(-1, units.vectors.shape[1]))
            for part in _parts(group, _QUERIES)
        ]
        blocks = ((start, units.vectors[start : start + _BLOCK], source[start : start + _BLOCK]) for start in starts)
        # The nearest in all poses, and as they are.
        best = np.full((2, len(group), _NEIGHBOURS), _NO_KEY, np.int64)
        search = partial(_nearest_of_block, projection, turned, source[group])
        for keys in executor.map(search, blocks, memory=_WORK_BYTES, check=go_on):
            best = _largest_keys(np.concatenate([best, keys], axis=2))
            done += 1
            go_on()
        found = best > _NO_KEY
        mine.append(np.broadcast_to(units.image[group][None, :, None], best.shape)[found])
        other.append(units.image[_LAST_ROW - (best[found] & _LAST_ROW)])
    return _distinct(np.concatenate(mine), np.concatenate(other), units.images)


def _nearest_of_block(
    projection: _Projection,
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
        in_poses = (step @ points.T).reshape(len(_AS_IT_IS), -1, len(points))
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


def _sources(image: Rows, owners: npt.NDArray[np.int32] | None) -> Rows:
    """Return numbers that are equal for units of one image, or of images with one owner."""
    if owners is None:
        return image
    return np.where(owners >= 0, -1 - owners.astype(np.int64), np.arange(len(owners)))[image]


def _parts(rows: npt.NDArray[np.integer], size: int) -> list[npt.NDArray[np.integer]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class _Compared:
    """Pairs of images to compare.

    Attributes:
        mine, others: shape (P, D): the vectors of the first and of the second images.
        panels, other_panels: the vectors of all their panels, and the number of the pair of each.
    """

    mine: npt.NDArray[np.floating]
    others: npt.NDArray[np.floating]
    panels: tuple[npt.NDArray[np.floating], Rows]
    other_panels: tuple[npt.NDArray[np.floating], Rows]


def _with_similarity(
    units: Units,
    poses: Poses,
    cells: Callable[[Vectors], Vectors],
    a: Rows,
    b: Rows,
    executor: Executor,
    progress: ShareProgress,
) -> Candidates:
    """Return the pairs with the similarity of their units, in the most similar pose."""
    panels = np.arange(units.images, len(units.image))
    panels = panels[np.argsort(units.image[panels], kind="stable")]
    starts = np.searchsorted(units.image[panels], np.arange(units.images + 1))

    def panels_of(images: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.floating], Rows]:
        counts = np.diff(starts)[images]
        pair = np.repeat(np.arange(len(images)), counts)
        number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        return units.vectors[panels[starts[images[pair]] + number]], pair

    parts = (
        _Compared(units.vectors[mine], units.vectors[others], panels_of(mine), panels_of(others))
        for mine, others in zip(_parts(a, _WORK), _parts(b, _WORK), strict=True)
    )
    compared = list(
        executor.map(partial(_similarities, poses, cells), parts, memory=_WORK_BYTES, check=lambda: progress(1.0))
    )
    if not compared:
        return _none()
    whole, whole_pose, similarity, pose, in_parts = (np.concatenate(each) for each in zip(*compared, strict=True))
    priority = _priority(a, b, similarity, in_parts, pose, units.images)
    return Candidates(a, b, similarity, whole, whole_pose, pose, priority)


def _similarities(
    poses: Poses, cells: Callable[[Vectors], Vectors], pairs: _Compared
) -> tuple[Vectors, Rows, Vectors, Rows, Vectors]:
    """Return the similarity and the pose of whole images, those of their units, and the similarity of their parts."""
    steps = [_similarities_of(poses, cells, pairs, slice(at, at + _POSED)) for at in range(0, len(pairs.mine), _POSED)]
    whole, whole_pose, similarity, pose, in_parts = (np.concatenate(each) for each in zip(*steps, strict=True))
    return whole, whole_pose, similarity, pose, in_parts


def _similarities_of(
    poses: Poses, cells: Callable[[Vectors], Vectors], pairs: _Compared, part: slice
) -> tuple[Vectors, Rows, Vectors, Rows, Vectors]:
    mine, others = pairs.mine[part], pairs.others[part]
    whole, whole_pose, posed = _most_similar(poses, mine, others)
    in_parts = _similar_parts(cells(mine.astype(np.float32)), cells(posed))
    similarity, pose = whole.copy(), whole_pose.copy()
    sides = ((pairs.panels, others, _AS_IT_IS), (pairs.other_panels, mine, _UNDONE_BY))
    for (panels, owners), images, pose_of_b in sides:
        first, last = np.searchsorted(owners, [part.start, part.stop])
        if first == last:
            continue
        pair = owners[first:last] - part.start
        score, its_pose, _ = _most_similar(poses, panels[first:last], images[pair])
        better = np.flatnonzero(score > similarity[pair])
        for each in better[np.argsort(score[better], kind="stable")].tolist():  # the most similar panel last
            similarity[pair[each]], pose[pair[each]] = score[each], pose_of_b[its_pose[each]]
    return whole, whole_pose, similarity, pose, in_parts


def _most_similar(
    poses: Poses, mine: npt.NDArray[np.floating], others: npt.NDArray[np.floating]
) -> tuple[Vectors, Rows, Vectors]:
    """Return (similarities, poses, descriptors) of pairs of units: the second unit in its most similar pose."""
    turned = poses(others.astype(np.float32))
    scores = np.einsum("nd,pnd->np", mine.astype(np.float32), turned)
    pose = scores.argmax(axis=1)
    rows = np.arange(len(mine))
    return scores[rows, pose].astype(np.float32), pose, turned[pose, rows]


def _similar_parts(mine: Vectors, others: Vectors) -> Vectors:
    """Return the similarity that a quarter of the parts of two images reaches: a banner changes other parts."""
    scores = np.sort(np.einsum("nce,nce->nc", mine, others), axis=1)
    return np.asarray(scores[:, -max(1, scores.shape[1] // _SOME_PARTS)], dtype=np.float32)


def _priority(a: Rows, b: Rows, similarity: Vectors, in_parts: Vectors, pose: Rows, images: int) -> Vectors:
    """Return how much more similar images are than to their other candidates: as a whole, in parts, and to the best."""
    whole, parts = (values - _usual(a, b, values, images) for values in (similarity, in_parts))
    lead = np.maximum(*(_lead(rows, a, b, similarity) for rows in (a, b)))
    return np.asarray(whole + _PARTS * parts + _LEAD * lead + _USUAL_POSE * (pose == 0), dtype=np.float32)


def _usual(a: Rows, b: Rows, values: Vectors, images: int) -> npt.NDArray[np.float64]:
    """Return the mean of the values of the other pairs of both images; the value itself without others."""
    total, count = np.zeros(images, np.float64), np.zeros(images, np.int64)
    for rows in (a, b):
        total += np.bincount(rows, weights=values, minlength=images)
        count += np.bincount(rows, minlength=images)
    usual = np.zeros(len(a), np.float64)
    for rows in (a, b):
        usual += np.where(count[rows] > 1, (total[rows] - values) / np.maximum(count[rows] - 1, 1), values) / 2
    return usual


def _lead(rows: Rows, a: Rows, b: Rows, similarity: Vectors) -> Vectors:
    """Return similarities minus the best one of the other pairs of some images; 0 without others."""
    images, values = np.concatenate([a, b]), np.concatenate([similarity, similarity])
    order = np.lexsort((-values, images))
    start = np.flatnonzero(np.diff(images[order], prepend=-1))
    count = np.diff(start, append=len(order))
    first = values[order[start]]
    second = np.where(count > 1, values[order[np.minimum(start + 1, len(order) - 1)]], first)
    number = np.searchsorted(images[order[start]], rows)
    best = np.where(similarity >= first[number], second[number], first[number])
    return np.asarray(similarity - best, dtype=np.float32)


def affordable(
    candidates: Candidates,
    *,
    budget_ms: float,
    cost: Sequence[float],
    near: Candidates,
    tries: int,
    added: int = 0,
) -> Rows:
    """Return the pairs to verify, best first, within a budget.

    Near-duplicates need no verification. Two sets of them are compared a few times only, because one pair that is
    verified joins them.

    Args:
        candidates: the pairs.
        budget_ms: milliseconds of processor time.
        cost: milliseconds for the keypoints of an image, and for the comparison of two images; those that may be
            mirrored are compared as they are, too.
        near: pairs that are near-duplicates.
        tries: the maximum number of pairs between two sets of near-duplicates.
        added: the first image whose keypoints count; those of earlier images are mostly known.
    """
    if not len(candidates.a):
        return np.empty(0, np.int64)
    count = 1 + int(max(candidates.b.max(), near.b.max(initial=0)))
    set_of = connected_components(count, near.a, near.b)[1].tolist()
    order = np.lexsort((candidates.b, candidates.a, -candidates.priority))
    left = budget_ms
    seen = np.arange(count) < added
    chosen: list[int] = []
    tried = Counter[tuple[int, int]]()
    for part in _parts(order, _BLOCK):
        comparisons = np.where(candidates.pose[part] >= _MIRRORED, 2, 1)
        columns = (part, candidates.a[part], candidates.b[part], comparisons)
        for pair, a, b, compared in zip(*(each.tolist() for each in columns), strict=True):
            between = min(set_of[a], set_of[b]), max(set_of[a], set_of[b])
            if between[0] == between[1] or tried[between] == tries:
                continue
            left -= cost[1] * compared + cost[0] * (2 - int(seen[a]) - int(seen[b]))
            if left < 0:
                return np.array(chosen, dtype=np.int64)
            tried[between] += 1
            seen[a] = seen[b] = True
            chosen.append(pair)
    return np.array(chosen, dtype=np.int64)
