"""Similarities of pairs of images, in all poses and with their panels, and the order in which pairs are verified."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import numpy.typing as npt

from framedex.analysis.copies.pairs import FoundPairs
from framedex.analysis.copies.poses import STEP
from framedex.analysis.copies.searches import WORK, WORK_BYTES
from framedex.analysis.copies.units import Candidates, ComparedPairs, Images, Poses, Rows, Units, no_candidates
from framedex.core.arrays import Vectors
from framedex.core.progress import ShareProgress
from framedex.executors import Executor

_USUAL_POSE = 0.04  # similarity that candidates are worth more as they are, because most copies are
_LEAD = 0.5  # weight of the lead over the next candidate
_SOME_PARTS, _PARTS = 4, 2.0  # a quarter of the parts of an image, and the weight of their similarity
_AS_IT_IS, _UNDONE_BY = np.arange(8), np.array([0, 3, 2, 1, 4, 5, 6, 7])  # each pose, and the one that undoes it
_UNIT = 2.0**36  # of sums of similarities: those of integers do not depend on the order
_BLOCK = 2**18  # pairs whose priorities are computed at a time
Cells = Callable[[Vectors], Vectors]


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


def with_similarity(
    units: Units,
    poses: Poses,
    cells: Cells,
    pairs: FoundPairs,
    *,
    owners: npt.NDArray[np.int32] | None,
    least: float,
    executor: Executor,
    progress: ShareProgress,
) -> Candidates:
    """Return pairs with the similarity of their units, in the most similar pose.

    Args:
        units: the descriptors.
        poses: returns descriptors in all poses.
        cells: returns the parts of descriptors that describe one part of an image each.
        pairs: the pairs.
        owners: int32, shape (M,): pairs of images with the same number ≥ 0 are left out.
        least: pairs below this similarity are left out; the priority of others depends on them, too.
        executor: compares them.
        progress: called with the share that is done; raises to stop.
    """
    parts, usual = _Parts(units, owners), _Usual(units.images)
    found: list[_Pairs] = []
    done = 0.0

    def go_on() -> None:
        progress(done)

    compare = partial(_similarities, poses, cells)
    for each in executor.map(compare, parts.of(pairs), memory=WORK_BYTES, check=go_on):
        a, b, done = parts.sent.popleft()
        whole, whole_pose, similarity, pose, in_parts = each
        usual.add(a, b, similarity, in_parts)
        of_part = _Pairs(a.astype(np.int32), b.astype(np.int32), similarity, whole, whole_pose, pose, in_parts)
        found.append(of_part.take(similarity >= least))
        go_on()
    progress(1.0)
    return usual.candidates(_Pairs.joined(found)) if found else no_candidates()


class _Parts:
    """Parts of pairs with the vectors of their images and panels, in the order in which they are compared.

    Args:
        units: the descriptors.
        owners: see :func:`with_similarity`.

    Attributes:
        sent: (a, b, the share that is done with them) of parts that were yielded.
    """

    def __init__(self, units: Units, owners: npt.NDArray[np.int32] | None) -> None:
        self._vectors, self._owners = units.vectors, owners
        panels = np.arange(units.images, len(units.image))
        self._panels = panels[np.argsort(units.image[panels], kind="stable")]
        self._starts = np.searchsorted(units.image[self._panels], np.arange(units.images + 1))
        self.sent: deque[tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], float]] = deque()

    def of(self, pairs: FoundPairs) -> Iterator[_Compared]:
        """Yield the parts of pairs."""
        before = 0.0
        for a, b, share in pairs.ordered():
            if self._owners is not None:
                apart = (self._owners[a] < 0) | (self._owners[a] != self._owners[b])
                a, b = a[apart], b[apart]  # noqa: PLW2901 - the others are never needed
            for start in range(0, len(a), WORK):
                mine, others = a[start : start + WORK], b[start : start + WORK]
                self.sent.append((mine, others, before + (share - before) * (start + len(mine)) / len(a)))
                yield _Compared(
                    self._vectors[mine], self._vectors[others], self._panels_of(mine), self._panels_of(others)
                )
            before = share

    def _panels_of(self, images: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.floating], Rows]:
        counts = self._starts[images + 1] - self._starts[images]
        pair = np.repeat(np.arange(len(images)), counts)
        number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._vectors[self._panels[self._starts[images[pair]] + number]], pair


@dataclass(frozen=True)
class _Pairs(ComparedPairs):
    """Pairs with the similarities of a quarter of their parts; see :class:`ComparedPairs`."""

    in_parts: Vectors

    @classmethod
    def joined(cls, parts: list["_Pairs"]) -> "_Pairs":
        """Return the pairs of all parts, of which the list is emptied of each column's arrays as it is joined."""
        names = [each.name for each in fields(cls)]
        columns = {name: deque(getattr(each, name) for each in parts) for name in names}
        parts.clear()
        return cls(**{name: np.concatenate(columns.pop(name)) for name in names})


class _Usual:
    """The similarities of all pairs of each image, from which follows how unusual one of them is.

    Args:
        images: the number of images.
    """

    def __init__(self, images: int) -> None:
        self._count = np.zeros(images, np.int32)
        self._totals = np.zeros((2, images), np.int64)  # of units, and of parts
        self._best = np.full((2, images), -np.inf, np.float32)  # the largest similarity, and the next one

    def add(
        self, a: npt.NDArray[np.integer], b: npt.NDArray[np.integer], similarity: Vectors, in_parts: Vectors
    ) -> None:
        """Add pairs."""
        for rows in (a, b):
            np.add.at(self._count, rows, 1)
            for total, values in zip(self._totals, (similarity, in_parts), strict=True):
                np.add.at(total, rows, _exact(values))
        images, values = np.concatenate([a, b]), np.concatenate([similarity, similarity])
        order = np.lexsort((-values, images))
        begin = np.flatnonzero(np.diff(images[order], prepend=-1))
        last = np.append(begin[1:], len(order)) - 1
        image, first = images[order[begin]], values[order[begin]]
        second = np.where(last > begin, values[order[np.minimum(begin + 1, last)]], np.float32(-np.inf))
        before, next_before = self._best[:, image]
        self._best[0, image] = np.maximum(before, first)
        self._best[1, image] = np.maximum(np.minimum(before, first), np.maximum(next_before, second))

    def candidates(self, pairs: _Pairs) -> Candidates:
        """Return pairs with their priority: how much more similar they are than the other pairs of their images."""
        priority = np.empty(len(pairs.a), np.float32)
        for start in range(0, len(priority), _BLOCK):
            some = slice(start, start + _BLOCK)
            a, b = pairs.a[some], pairs.b[some]
            similarity, in_parts = pairs.similarity[some], pairs.in_parts[some]
            whole = similarity - self._mean_of_others(0, a, b, similarity)
            parts = in_parts - self._mean_of_others(1, a, b, in_parts)
            lead = np.maximum(self._lead(a, similarity), self._lead(b, similarity))
            priority[some] = whole + _PARTS * parts + _LEAD * lead + _USUAL_POSE * (pairs.pose[some] == 0)
        return Candidates(
            pairs.a, pairs.b, pairs.similarity, pairs.whole, pairs.whole_pose, pairs.pose, priority
        )  # fmt: skip

    def _mean_of_others(self, kind: int, a: Images, b: Images, values: Vectors) -> npt.NDArray[np.float64]:
        """Return the mean of the values of the other pairs of both images; the value itself without others."""
        usual = np.zeros(len(a), np.float64)
        for rows in (a, b):
            count, total = self._count[rows], self._totals[kind, rows]
            others = (total - _exact(values)) / _UNIT
            usual += np.where(count > 1, others / np.maximum(count - 1, 1), values) / 2
        return usual

    def _lead(self, rows: Images, similarity: Vectors) -> Vectors:
        """Return similarities minus the best one of the other pairs of some images; 0 without others."""
        first, second = self._best[:, rows]
        best = np.where(similarity >= first, np.where(np.isfinite(second), second, first), first)
        return np.asarray(similarity - best, dtype=np.float32)


def _exact(values: Vectors) -> Rows:
    return np.asarray(np.rint(values * _UNIT), np.int64)


def _similarities(
    poses: Poses, cells: Cells, pairs: _Compared
) -> tuple[Vectors, npt.NDArray[np.int8], Vectors, npt.NDArray[np.int8], Vectors]:
    """Return the similarity and the pose of whole images, those of their units, and the similarity of their parts."""
    steps = [_similarities_of(poses, cells, pairs, slice(at, at + STEP)) for at in range(0, len(pairs.mine), STEP)]
    whole, whole_pose, similarity, pose, in_parts = (np.concatenate(each) for each in zip(*steps, strict=True))
    return whole, whole_pose.astype(np.int8), similarity, pose.astype(np.int8), in_parts


def _similarities_of(
    poses: Poses, cells: Cells, pairs: _Compared, part: slice
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
