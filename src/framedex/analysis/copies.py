"""Candidates for copies: pairs of images that may show the same, also turned, mirrored, cut out or framed.

An image has several *units*: the whole image, and its panels. Each unit is described in several poses. A turned image
takes the same canonical pose as its original, in which the centre of light lies at the upper left; where light hardly
tells a pose from another one, the unit takes both. So one search finds copies in all poses.

The search uses projections to the principal components of a sample, then compares the full descriptors.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import ignore_progress, nearest
from framedex.analysis.products import Products, single_threaded_blas
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress

Rows = npt.NDArray[np.int64]
Poses = Callable[[Vectors], Vectors]
"""Returns the descriptors of N units in P poses: shape (P, N, D)."""
_COMPONENTS = 96
_SAMPLED = 1024
_FEW = 128  # units, for which the components take longer than they save
_NEIGHBOURS = 20  # in the search; several may be poses or panels of one image
_KEPT = 8  # candidates an image
_RECALL = 0.9
_BLOCK = 4096
_UNCLEAR = 0.1  # a difference of light, in [0, 1], that does not tell two poses apart
_POSED = 128  # descriptors that are turned at a time; memory that is touched for the first time costs the most here
_QUERIES = 512
_MIRRORED = 4  # the first pose that mirrors
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
        priority: float32, shape (P,): how much more similar they are than others are to them.
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
    *,
    added: int = 0,
    owners: npt.NDArray[np.int32] | None = None,
    engine: Products | None = None,
    progress: ShareProgress = ignore_progress,
) -> Candidates:
    """Return pairs of images that may be copies, at most a few for each image.

    Args:
        units: the descriptors.
        poses: returns descriptors in all poses.
        light: returns the layouts of descriptors: shape (N, S, S).
        added: the first image that is compared with all others; only pairs with such an image are returned.
        owners: int32, shape (M,): images with the same number ≥ 0 are no candidates for each other.
        engine: computes the matrix products.
        progress: called with the share that is done; raises to stop.
    """
    if units.images < 2 or added >= units.images:
        return _none()
    with single_threaded_blas():  # its threads wait for each other longer than these products take
        projection = _Projection.of(units, poses)
        if added == 0:
            pairs = _joined(units, projection, poses, light, engine, progress)
        else:
            pairs = _looked_up(units, projection, poses, added, owners, progress)
        a, b = pairs
        if owners is not None:
            apart = (owners[a] < 0) | (owners[a] != owners[b])
            a, b = a[apart], b[apart]
        return _with_similarity(units, poses, a, b)


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
    engine: Products | None,
    progress: ShareProgress,
) -> tuple[Rows, Rows]:
    """Return pairs of images with near units, from one search among all units in the poses that they take."""
    rows, owners = [], []
    for start in range(0, len(units.vectors), _POSED):
        vectors = units.vectors[start : start + _POSED].astype(np.float32)
        taken = canonical_poses(light(vectors))
        taken[0] = True  # as it is: most copies are neither turned nor mirrored
        pose, unit = np.nonzero(taken)
        rows.append(projection(poses(vectors)[pose, unit]))
        owners.append(units.image[start + unit])
    projected, image = np.concatenate(rows), np.concatenate(owners)
    del rows
    graph = nearest(projected, k=_NEIGHBOURS, recall=_RECALL, engine=engine, progress=progress)
    return _best_pairs(image, graph.rows, graph.similarity, units.images)


def _best_pairs(image: Rows, rows: npt.NDArray[np.int32], similarity: Vectors, images: int) -> tuple[Rows, Rows]:
    """Return each pair of images once, of the nearest few for each image."""
    parts = []
    for start in range(0, len(rows), _BLOCK * 16):
        part = slice(start, start + _BLOCK * 16)
        mine = np.repeat(image[part], rows.shape[1])
        other, score = image[rows[part].ravel()], similarity[part].ravel()
        foreign = mine != other
        parts.append(np.stack([mine[foreign], other[foreign]]))
        parts[-1] = np.concatenate([parts[-1], score[foreign][None].view(np.int32).astype(np.int64)])
    mine, other, bits = np.concatenate(parts, axis=1)
    score = bits.astype(np.int32).view(np.float32)
    pair = mine * images + other
    order = np.lexsort((-score, pair))
    first = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
    mine, other, score = mine[first], other[first], score[first]
    order = np.lexsort((-score, mine))
    begin = np.flatnonzero(np.diff(mine[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begin, np.diff(begin, append=len(order)))
    kept = order[rank < _KEPT]
    pair = np.unique(np.minimum(mine[kept], other[kept]) * images + np.maximum(mine[kept], other[kept]))
    return pair // images, pair % images


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
    best = np.full((len(queries), _NEIGHBOURS), -np.inf, np.float32)
    rows = np.full((len(queries), _NEIGHBOURS), -1, np.int64)
    turned = [
        projection(poses(units.vectors[part].astype(np.float32)).reshape(-1, units.vectors.shape[1]))
        for part in _parts(queries, _QUERIES)
    ]
    for start in range(0, len(units.vectors), _BLOCK):
        block = projection(units.vectors[start : start + _BLOCK].astype(np.float32))
        its_source = source[start : start + _BLOCK]
        for number, part in enumerate(_parts(np.arange(len(queries)), _QUERIES)):
            scores = (turned[number] @ block.T).reshape(-1, len(part), len(block)).max(axis=0)
            scores[source[queries[part]][:, None] == its_source] = -np.inf
            scores = np.concatenate([best[part], scores], axis=1)
            place = np.concatenate(
                [rows[part], np.broadcast_to(np.arange(len(block)) + start, (len(part), len(block)))], 1
            )
            top = np.argpartition(-scores, _NEIGHBOURS - 1, axis=1)[:, :_NEIGHBOURS]
            best[part], rows[part] = (np.take_along_axis(each, top, axis=1) for each in (scores, place))
        progress(min(1.0, (start + _BLOCK) / len(units.vectors)))
    mine = np.repeat(units.image[queries], _NEIGHBOURS)
    found = np.isfinite(best.ravel())
    mine, other = mine[found], units.image[rows.ravel()[found]]
    pair = np.unique(np.minimum(mine, other) * units.images + np.maximum(mine, other))
    return pair // units.images, pair % units.images


def _sources(image: Rows, owners: npt.NDArray[np.int32] | None) -> Rows:
    """Return numbers that are equal for units of one image, or of images with one owner."""
    if owners is None:
        return image
    return np.where(owners >= 0, -1 - owners.astype(np.int64), np.arange(len(owners)))[image]


def _parts(rows: npt.NDArray[np.integer], size: int) -> list[npt.NDArray[np.integer]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _with_similarity(units: Units, poses: Poses, a: Rows, b: Rows) -> Candidates:
    """Return the pairs with the similarity of their units, in the most similar pose."""
    panels = np.arange(units.images, len(units.image))
    order = np.argsort(units.image[panels], kind="stable")
    panels = panels[order]
    starts = np.searchsorted(units.image[panels], np.arange(units.images + 1))
    whole, whole_pose = np.empty(len(a), np.float32), np.empty(len(a), np.int64)
    similarity, pose = np.empty(len(a), np.float32), np.empty(len(a), np.int64)
    for start in range(0, len(a), _POSED):
        part = slice(start, start + _POSED)
        whole[part], whole_pose[part] = _most_similar(units, poses, a[part], b[part])
        similarity[part], pose[part] = whole[part], whole_pose[part]
        for mine, other, pose_of_b in ((a[part], b[part], _AS_IT_IS), (b[part], a[part], _UNDONE_BY)):
            counts = np.diff(starts)[mine]
            pair = np.repeat(np.arange(len(mine)), counts)
            if not len(pair):
                continue
            number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
            score, its_pose = _most_similar(units, poses, panels[starts[mine[pair]] + number], other[pair])
            better = np.flatnonzero(score > similarity[start + pair])
            for each in better[np.argsort(score[better], kind="stable")].tolist():  # the most similar panel last
                similarity[start + pair[each]], pose[start + pair[each]] = score[each], pose_of_b[its_pose[each]]
    return Candidates(a, b, similarity, whole, whole_pose, pose, _priority(a, b, similarity, units.images))


def _most_similar(units: Units, poses: Poses, a: Rows, b: Rows) -> tuple[Vectors, Rows]:
    """Return the similarities of pairs of units in the most similar pose of the second, and this pose."""
    scores = np.einsum("nd,pnd->np", units.vectors[a].astype(np.float32), poses(units.vectors[b].astype(np.float32)))
    pose = scores.argmax(axis=1)
    return np.take_along_axis(scores, pose[:, None], axis=1)[:, 0].astype(np.float32), pose


def _priority(a: Rows, b: Rows, similarity: Vectors, images: int) -> Vectors:
    """Return similarities minus those that the images have to their other candidates."""
    total, count = np.zeros(images, np.float64), np.zeros(images, np.int64)
    for rows in (a, b):
        total += np.bincount(rows, weights=similarity, minlength=images)
        count += np.bincount(rows, minlength=images)
    usual = np.zeros(len(a), np.float64)
    for rows in (a, b):
        others = np.maximum(count[rows] - 1, 1)
        usual += np.where(count[rows] > 1, (total[rows] - similarity) / others, similarity) / 2
    return (similarity - usual).astype(np.float32)


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
    comparisons = np.where(candidates.pose >= _MIRRORED, 2, 1).tolist()
    left = budget_ms
    seen = np.arange(count) < added
    chosen, tried = [], Counter[tuple[int, int]]()
    for pair in order.tolist():
        a, b = int(candidates.a[pair]), int(candidates.b[pair])
        between = min(set_of[a], set_of[b]), max(set_of[a], set_of[b])
        if between[0] == between[1] or tried[between] == tries:
            continue
        left -= cost[1] * comparisons[pair] + cost[0] * (2 - int(seen[a]) - int(seen[b]))
        if left < 0:
            break
        tried[between] += 1
        seen[a] = seen[b] = True
        chosen.append(pair)
    return np.array(chosen, dtype=np.int64)
