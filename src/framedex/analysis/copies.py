"""Candidates for copies: pairs of images that may show the same, also turned, mirrored, cut out or framed.

An image has several *units*: the whole image, and its panels. Each unit is described in several poses. A turned image
takes the same canonical pose as its original, in which the centre of light lies at the upper left; where light hardly
tells a pose from another one, the unit takes both. So one search finds copies in all poses.

Most copies are neither turned nor mirrored, so units are also compared as they are only; else the poses of others take
their places. The search uses projections to the principal components of a sample, then compares the full descriptors.

The order of verification also depends on single parts of images: a banner, a caption or a crop leaves some parts nearly
equal, while the parts of different images are all moderately alike.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.neighbours_between import nearest_between
from framedex.analysis.products import Products
from framedex.core.arrays import Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.progress import ShareProgress

Rows = npt.NDArray[np.int64]
Poses = Callable[[Vectors], Vectors]
"""Returns the descriptors of N units in P poses: shape (P, N, D)."""
_COMPONENTS = 96
_SAMPLED = 1024
_FEW = 128  # units, for which the components take longer than they save
_NEIGHBOURS = 40  # in the search; several may be poses or panels of one image
_KEPT = 12  # candidates an image, in all poses, and as many as it is
_RECALL = 0.9
_BLOCK = 4096
_UNCLEAR = 0.1  # a difference of light, in [0, 1], that does not tell two poses apart
_POSED = 128  # descriptors that are turned at a time; memory that is touched for the first time costs the most here
_QUERIES = 512
_MIRRORED = 4  # the first pose that mirrors
_USUAL_POSE = 0.04  # similarity that candidates are worth more as they are, because most copies are
_LEAD = 0.5  # weight of the lead over the next candidate
_SOME_PARTS, _PARTS = 4, 2.0  # a quarter of the parts of an image, and the weight of their similarity
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
        progress: called with the share that is done; raises to stop.
    """
    if units.images < 2 or added >= units.images:
        return _none()
    with single_threaded_blas():  # its threads wait for each other longer than these products take
        projection = _Projection.of(units, poses)
        if added == 0:
            pairs = _joined(units, projection, poses, light, split, engine, progress)
        else:
            pairs = _looked_up(units, projection, poses, added, owners, progress)
        a, b = pairs
        if owners is not None:
            apart = (owners[a] < 0) | (owners[a] != owners[b])
            a, b = a[apart], b[apart]
        return _with_similarity(units, poses, cells, a, b)


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
    progress: ShareProgress,
) -> tuple[Rows, Rows]:
    """Return pairs of images with near units, from searches in the poses that they take, and as they are.

    With a *split*, units before it search among those from it on, and the other way round.
    """
    rows, owners, upright = [], [], []
    for start in range(0, len(units.vectors), _POSED):
        vectors = units.vectors[start : start + _POSED].astype(np.float32)
        taken = canonical_poses(light(vectors))
        taken[0] = True  # as it is: most copies are neither turned nor mirrored
        pose, unit = np.nonzero(taken)
        rows.append(projection(poses(vectors)[pose, unit]))
        owners.append(units.image[start + unit])
        upright.append(pose == 0)
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
    progress: ShareProgress,
) -> tuple[Rows, Rows]:
    """Return pairs with added images: their units, in all poses, are compared with all units of other owners."""
    queries = np.flatnonzero(units.image >= added)
    source = _sources(units.image, owners)
    # The nearest in all poses, and as they are.
    best = np.full((2, len(queries), _NEIGHBOURS), -np.inf, np.float32)
    rows = np.full((2, len(queries), _NEIGHBOURS), -1, np.int64)
    turned = [
        projection(poses(units.vectors[part].astype(np.float32)).reshape(-1, units.vectors.shape[1]))
        for part in _parts(queries, _QUERIES)
    ]
    for start in range(0, len(units.vectors), _BLOCK):
        block = projection(units.vectors[start : start + _BLOCK].astype(np.float32))
        its_source = source[start : start + _BLOCK]
        for number, part in enumerate(_parts(np.arange(len(queries)), _QUERIES)):
            in_poses = (turned[number] @ block.T).reshape(-1, len(part), len(block))
            place = np.broadcast_to(np.arange(len(block)) + start, (len(part), len(block)))
            is_own = source[queries[part]][:, None] == its_source
            for kind, scores in enumerate((in_poses.max(axis=0), in_poses[0])):
                known = np.concatenate([best[kind, part], np.where(is_own, -np.inf, scores)], axis=1)
                top = np.argpartition(-known, _NEIGHBOURS - 1, axis=1)[:, :_NEIGHBOURS]
                best[kind, part] = np.take_along_axis(known, top, axis=1)
                rows[kind, part] = np.take_along_axis(np.concatenate([rows[kind, part], place], axis=1), top, axis=1)
        progress(min(1.0, (start + _BLOCK) / len(units.vectors)))
    found = np.isfinite(best.ravel())
    mine = np.tile(np.repeat(units.image[queries], _NEIGHBOURS), 2)[found]
    other = units.image[rows.ravel()[found]]
    return _distinct(mine, other, units.images)


def _sources(image: Rows, owners: npt.NDArray[np.int32] | None) -> Rows:
    """Return numbers that are equal for units of one image, or of images with one owner."""
    if owners is None:
        return image
    return np.where(owners >= 0, -1 - owners.astype(np.int64), np.arange(len(owners)))[image]


def _parts(rows: npt.NDArray[np.integer], size: int) -> list[npt.NDArray[np.integer]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _with_similarity(units: Units, poses: Poses, cells: Callable[[Vectors], Vectors], a: Rows, b: Rows) -> Candidates:
    """Return the pairs with the similarity of their units, in the most similar pose."""
    panels = np.arange(units.images, len(units.image))
    order = np.argsort(units.image[panels], kind="stable")
    panels = panels[order]
    starts = np.searchsorted(units.image[panels], np.arange(units.images + 1))
    whole, whole_pose = np.empty(len(a), np.float32), np.empty(len(a), np.int64)
    similarity, pose, in_parts = np.empty(len(a), np.float32), np.empty(len(a), np.int64), np.empty(len(a), np.float32)
    for start in range(0, len(a), _POSED):
        part = slice(start, start + _POSED)
        whole[part], whole_pose[part], others = _most_similar(units, poses, a[part], b[part])
        in_parts[part] = _similar_parts(cells(units.vectors[a[part]].astype(np.float32)), cells(others))
        similarity[part], pose[part] = whole[part], whole_pose[part]
        for mine, other, pose_of_b in ((a[part], b[part], _AS_IT_IS), (b[part], a[part], _UNDONE_BY)):
            counts = np.diff(starts)[mine]
            pair = np.repeat(np.arange(len(mine)), counts)
            if not len(pair):
                continue
            number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
            score, its_pose, _ = _most_similar(units, poses, panels[starts[mine[pair]] + number], other[pair])
            better = np.flatnonzero(score > similarity[start + pair])
            for each in better[np.argsort(score[better], kind="stable")].tolist():  # the most similar panel last
                similarity[start + pair[each]], pose[start + pair[each]] = score[each], pose_of_b[its_pose[each]]
    priority = _priority(a, b, similarity, in_parts, pose, units.images)
    return Candidates(a, b, similarity, whole, whole_pose, pose, priority)


def _most_similar(units: Units, poses: Poses, a: Rows, b: Rows) -> tuple[Vectors, Rows, Vectors]:
    """Return (similarities, poses, descriptors) of pairs of units: the second unit in its most similar pose."""
    turned = poses(units.vectors[b].astype(np.float32))
    scores = np.einsum("nd,pnd->np", units.vectors[a].astype(np.float32), turned)
    pose = scores.argmax(axis=1)
    rows = np.arange(len(a))
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
