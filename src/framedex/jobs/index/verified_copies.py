"""Verification of copies: which pairs of images show the same, and what was done to the copy.

Files with equal content are copies. Images that are alike as they are are laid over each other. Where that shows
nothing in common, and in all other pairs, keypoints tell how one image lies upon the other one. They are copies where
what is laid over each other shows the same, or was covered in parts (:mod:`framedex.analysis.registration`).
"""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from framedex.analysis.keypoints import Keypoints, SharedView, shared_view
from framedex.analysis.registration import Difference, Judgement, Matrix, least_difference, quarters_of, stretched
from framedex.core.arrays import Mask
from framedex.core.borders import Box
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.core.progress import ShareProgress
from framedex.core.stages import Stages
from framedex.errors import Unavailable
from framedex.executors import Executor
from framedex.jobs.index.compared_images import ComparedImages, ImageSource, Keys, ReducedImage
from framedex.jobs.index.keypoint_cache import KeypointCache
from framedex.storage.copy_pairs import CROPPED, NO_PAIRS, CopyPairs

Rows = npt.NDArray[np.int64]
_LOG = logging.getLogger(__name__)
_PART = 64  # pairs that a worker compares at a time
_HELD = 128  # pairs whose pixels are held at a time
_KEPT_EVERY_S = 300.0
_VERIFIED = "verified"  # the stage with the pairs that are done
_PAIRS = 2**14  # pairs whose images are read and compared at a time
_WHOLE = 0.97  # share of an image that counts as all of it
_FRAME = 0.08  # difference of shares of an image that trimming and compression make
_TURN = 1.5  # degrees that are a turn
_ALL = 0.9  # share of an image that another one shows as one of its parts
_SAME_BOX = 0.85  # intersection over union
_NEAR, _READING = 0.5, 0.7  # shares of the work that are done after near pairs, and after keypoints are read

SAME_PIXELS, RECOMPRESSED, CHANGED, MOVED, COVERED = 1.0, 0.995, 0.985, 0.97, 0.96
"""The similarities of copies: equal pixels; compressed again or resized; other light, colours, sharpness or noise;
turned, mirrored, framed or cropped; covered in parts, or beside other content."""
_MOST_DAMAGED, _LEAST_DETAIL = 0.7, 0.88  # share of a damaged image that is not seen, and the detail of the rest
_FINE_DETAIL, _FINE_RESIDUAL = 0.95, 3.0  # of copies that were compressed again or resized alone


class _Copy(NamedTuple):
    """A verified pair; see :class:`CopyPairs`."""

    a: int
    b: int
    similarity: float
    reason: str | None
    share: float
    covered: float
    residual: float


def verified_pairs(
    sources: Sequence[ImageSource],
    a: Rows,
    b: Rows,
    *,
    near: Mask,
    mirrored: Mask,
    executor: Executor,
    progress: ShareProgress,
    stages: Stages | None = None,
) -> CopyPairs:
    """Return the pairs of rows that are shown to be copies. The result does not depend on the executor.

    Args:
        sources: tables whose rows are numbered one after another.
        a: int64, shape (P,): the first row of each pair.
        b: int64, shape (P,): the second one.
        near: bool, shape (P,): whether the images are alike as they are.
        mirrored: bool, shape (P,): whether the second image may be mirrored.
        executor: reads images and compares them.
        progress: called with the share that is done; raises to stop.
        stages: keep what is done every few minutes, for a process that goes on with the same pairs after a kill.
    """
    pairs = _PairsToVerify(a, b, near, mirrored)
    done, made = _begun(stages, pairs)
    kept_at = time.monotonic()
    with ExitStack() as stack:
        images = [ComparedImages(each, stack.enter_context(KeypointCache(each.keypoints))) for each in sources]
        for first, part in pairs.parts():
            if first < done:
                continue
            share = _part_of(progress, first / len(a), len(part) / len(a))
            try:
                made |= _Verification(images, pairs, executor).copies(part, share)
            except Unavailable as error:
                _LOG.warning("further copies are not verified, because images cannot be read: %s", error)
                break
            if stages is not None and time.monotonic() - kept_at >= _KEPT_EVERY_S:
                with suppress(OSError):  # the disk is full
                    stages.put(_VERIFIED, (pairs.key, first + len(part), made))
                kept_at = time.monotonic()
        if unread := len(set().union(*(each.unread for each in images))):
            _LOG.warning("copies of %d images are not verified, because the images cannot be read", unread)
    if not made:
        return NO_PAIRS
    first_rows, second, similarity, reasons, *numbers = zip(*(made[pair] for pair in sorted(made)), strict=True)
    shares, covered, residual = (np.array(each, np.float32) for each in numbers)
    ends = np.array(first_rows, np.int64), np.array(second, np.int64)
    return CopyPairs(*ends, np.array(similarity, np.float32), reasons, shares, covered, residual)


@dataclass(frozen=True)
class _PairsToVerify:
    """Pairs of rows; see :func:`verified_pairs`."""

    a: Rows
    b: Rows
    near: Mask
    mirrored: Mask

    @cached_property
    def key(self) -> bytes:
        """A key of the pairs."""
        digest = hashlib.blake2b(digest_size=16)
        for each in (self.a, self.b, self.near, self.mirrored):
            digest.update(each.tobytes())
        return digest.digest()

    @cached_property
    def mirrored_rows(self) -> Rows:
        """The rows whose images may be mirrored, ascending."""
        return np.unique(self.b[self.mirrored])

    def parts(self) -> Iterator[tuple[int, Rows]]:
        """Yield (the number of pairs before, pairs): some thousand pairs at a time."""
        order = np.arange(len(self.a)) if len(self.a) <= _PAIRS else np.lexsort((self.b, self.a))
        for start in range(0, len(order), _PAIRS):
            yield start, order[start : start + _PAIRS]


def _begun(stages: Stages | None, pairs: _PairsToVerify) -> tuple[int, dict[int, _Copy]]:
    """Return how many pairs are done, in their order, and what was found, by pair."""
    found: tuple[bytes, int, dict[int, _Copy]] | None = None if stages is None else stages.get(_VERIFIED)
    return (0, {}) if found is None or found[0] != pairs.key else found[1:]


@dataclass(frozen=True)
class _Verification:
    """Verification of parts of the pairs; see :func:`verified_pairs`."""

    images: Sequence[ComparedImages]
    pairs: _PairsToVerify
    executor: Executor

    def copies(self, part: Rows, progress: ShareProgress) -> dict[int, _Copy]:
        """Return the copies among some pairs, by pair."""
        near = part[self.pairs.near[part]]
        made = self._equal_files(near)
        near = near[[pair not in made for pair in near.tolist()]] if made else near
        further = {int(pair) for pair in part[~self.pairs.near[part]]}
        whole = ((pair, _Layer(None)) for pair in near.tolist())
        for pair, registered in self._registered(whole, len(near), _part_of(progress, 0, _NEAR)):
            if registered is not None and registered.judgement is not Judgement.DIFFERENT:
                made[pair] = self._copy(pair, registered, None)
            elif registered is None or not registered.difference.is_settled:
                further.add(pair)
        chosen = np.array(sorted(further), np.int64)
        if not len(chosen):
            return made
        proofs = self._proofs(chosen, _part_of(progress, _NEAR, _READING - _NEAR))
        laid = {pair: proof for pair, proof in zip(chosen.tolist(), proofs, strict=True) if proof is not None}
        layers = ((pair, _Layer.of(proof)) for pair, proof in laid.items())
        for pair, registered in self._registered(layers, len(laid), _part_of(progress, _READING, 1 - _READING)):
            if registered is not None and registered.judgement is not Judgement.DIFFERENT:
                made[pair] = self._copy(pair, registered, laid[pair])
        return made

    def _equal_files(self, near: Rows) -> dict[int, _Copy]:
        """Return the pairs of equal files."""
        contents: dict[int, bytes] = {}
        for each, rows in self._of_images(np.union1d(self.pairs.a[near], self.pairs.b[near])):
            contents |= each.contents(rows)
        return {
            pair: _Copy(a, b, SAME_PIXELS, None, 1.0, 0.0, 0.0)
            for pair, a, b in self._ends(near)
            if a in contents and contents[a] == contents.get(b)
        }

    def _of_images(self, rows: Rows) -> Iterator[tuple[ComparedImages, Rows]]:
        """Yield the images of each source, and those of the ascending rows that it has."""
        for each in self.images:
            low, high = np.searchsorted(rows, [each.first, each.end]).tolist()
            yield each, rows[low:high]

    def _ends(self, pairs: Rows) -> Iterable[tuple[int, int, int]]:
        ends = (self.pairs.a[pairs].tolist(), self.pairs.b[pairs].tolist())
        return zip(pairs.tolist(), *ends, strict=True)

    def _registered(
        self, layers: Iterable[tuple[int, "_Layer"]], count: int, progress: ShareProgress
    ) -> Iterator[tuple[int, "_Registered | None"]]:
        """Yield the differences of pairs, in their order; None where an image cannot be read, or nothing is alike."""
        waiting: list[tuple[int, _Layer]] = []
        done, held = 0, dict[int, ReducedImage]()
        for number, each in enumerate(layers, 1):
            waiting.append(each)
            if len(waiting) < _HELD and number < count:
                continue
            pairs = np.array([pair for pair, _ in waiting], np.int64)
            rows = np.union1d(self.pairs.a[pairs], self.pairs.b[pairs])
            held = {row: image for row, image in held.items() if row in set(rows.tolist())}
            for images, some in self._of_images(rows):
                held |= images.read_reduced(some[[row not in held for row in some.tolist()]], self.executor)
            laid = [
                _LaidPair(held.get(a), held.get(b), layer)
                for (_, a, b), (_, layer) in zip(self._ends(pairs), waiting, strict=True)
            ]
            parts = (laid[at : at + _PART // 4] for at in range(0, len(laid), _PART // 4))
            found: list[_Registered | None] = []
            with closing(self.executor.map(_register, parts, check=partial(progress, done / count))) as results:
                for result in results:
                    found += result
            yield from zip(pairs.tolist(), found, strict=True)
            done += len(waiting)
            progress(done / count)
            waiting = []

    def _proofs(self, part: Rows, progress: ShareProgress) -> list["_Proof | None"]:
        """Return what keypoints show that pairs share."""
        a, b = self.pairs.a[part], self.pairs.b[part]
        wanted = np.union1d(a, b)
        is_mirrored = np.isin(wanted, self.pairs.mirrored_rows)
        keys: Keys = {}
        done = 0.0
        for each, rows in self._of_images(wanted):
            share = _READING * len(rows) / max(len(wanted), 1)
            flags = is_mirrored[np.searchsorted(wanted, rows)]
            keys |= each.read_keypoints(rows, flags, self.executor, _part_of(progress, done, share))
            done += share
        listed = list(zip(a.tolist(), b.tolist(), self.pairs.mirrored[part].tolist(), strict=True))
        caches = [each.cache for each in self.images]
        found = _compare(keys, listed, caches, self.executor, _part_of(progress, _READING, 1 - _READING))
        for cache in caches:
            cache.forget()
        return found

    def _copy(self, pair: int, registered: "_Registered", proof: "_Proof | None") -> _Copy:
        """Return the copy that a difference and, if they were needed, keypoints show."""
        a, b = int(self.pairs.a[pair]), int(self.pairs.b[pair])
        shown = registered.difference
        reason, share = None, 1.0
        if proof is not None:
            a, b, reason, share = _described(a, b, proof)
        covered = shown.changed if registered.judgement is Judgement.COVERED else 0.0
        if covered:
            text = f"covered on {max(covered, 0.01):.0%}"
            reason = text if reason in (None, "edited") else f"{reason}, {text}"
        if covered or share < 1:
            similarity = COVERED
        elif reason not in (None, "edited"):
            similarity = MOVED
        elif registered.is_same:
            similarity = SAME_PIXELS
        else:
            is_fine = shown.detail >= _FINE_DETAIL and shown.residual <= _FINE_RESIDUAL
            similarity = RECOMPRESSED if is_fine else CHANGED
        return _Copy(a, b, similarity, reason, share, covered, shown.residual)


@dataclass(frozen=True)
class _Layer:
    """Placement of one image upon another one.

    Attributes:
        matrix: the transform of keypoints; None to lay the image within its borders upon that of the other one.
        size, other_size: width and height of the images in which the keypoints lie.
        is_mirrored: whether the second image is mirrored.
    """

    matrix: Matrix | None
    size: tuple[int, int] = (0, 0)
    other_size: tuple[int, int] = (0, 0)
    is_mirrored: bool = False

    @classmethod
    def of(cls, proof: "_Proof") -> "_Layer":
        return cls(proof.view.matrix, proof.size, proof.other_size, proof.is_mirrored)

    def transforms(self, a: ReducedImage, b: ReducedImage, other: Box) -> Iterator[Matrix]:
        """Yield transforms from the pixels of one image to those of another one, most likely ones first.

        Args:
            a: the first image.
            b: the second one.
            other: the part of the second one, which may be mirrored, within its borders.
        """
        if self.matrix is None:
            yield stretched(a.inner, other)
            return
        to_a, to_b = (
            _scaling(size, image.shades.grey.shape[::-1]) for size, image in ((self.size, a), (self.other_size, b))
        )
        between = to_b @ np.vstack([self.matrix, [0.0, 0.0, 1.0]]) @ np.linalg.inv(to_a)
        yield between[:2]
        quarters = quarters_of(self.matrix)
        if quarters is not None:
            yield stretched(a.inner, other, quarters)


def _scaling(size: tuple[int, int], other: tuple[int, ...]) -> Matrix:
    x, y = other[0] / size[0], other[1] / size[1]
    return np.array([[x, 0, 0.5 * x - 0.5], [0, y, 0.5 * y - 0.5], [0, 0, 1.0]])


@dataclass(frozen=True)
class _LaidPair:
    """Two images that are laid over each other; None for one that cannot be read."""

    a: ReducedImage | None
    b: ReducedImage | None
    layer: _Layer


@dataclass(frozen=True)
class _Registered:
    """The difference of two images, whether their size and pixels are equal, and whether one of them is damaged."""

    difference: Difference
    is_same: bool
    is_damaged: bool

    @property
    def judgement(self) -> Judgement:
        """The judgement; damage covers parts, which may look moved."""
        shown = self.difference
        is_covered = self.is_damaged and shown.changed <= _MOST_DAMAGED and shown.detail >= _LEAST_DETAIL
        return Judgement.COVERED if is_covered and shown.judgement is Judgement.DIFFERENT else shown.judgement


def _register(part: Sequence[_LaidPair]) -> list[_Registered | None]:
    """Return the differences of pairs; see :meth:`_Verification._registered`."""
    with single_threaded_opencv():
        return [
            None if each.a is None or each.b is None else _registration(each.a, each.b, each.layer) for each in part
        ]


def _registration(a: ReducedImage, b: ReducedImage, layer: _Layer) -> _Registered | None:
    shades, (top, left, bottom, right) = b.shades, b.inner
    if layer.is_mirrored:
        shades, width = shades.mirrored(), shades.grey.shape[1]
        left, right = width - right, width - left
    shown = least_difference(a.shades, shades, layer.transforms(a, b, (top, left, bottom, right)))
    if shown is None:
        return None
    is_same = a.size == b.size and all(map(np.array_equal, a.shades, shades))
    return _Registered(shown, is_same, a.is_damaged or b.is_damaged)


def _part_of(progress: ShareProgress, start: float, share: float) -> ShareProgress:
    """Return the progress of a part that begins at *start*, and has a *share* of the whole, both 0 to 1."""
    return lambda part: progress(start + share * part)


def _compare(
    keys: Keys,
    pairs: list[tuple[int, int, bool]],
    caches: Sequence[KeypointCache],
    executor: Executor,
    progress: ShareProgress,
) -> list["_Proof | None"]:
    """Return what the images of pairs share; None for nothing, or without keypoints.

    A pair has two rows, and whether the second image may be mirrored. It is compared as it is as well then, because the
    descriptors of a symmetrical image and of its mirror image are alike.
    """
    views: list[_Proof | None] = []
    parts = (_with_keypoints(pairs[at : at + _PART], keys, caches) for at in range(0, len(pairs), _PART))
    with closing(executor.map(_proofs, parts, check=lambda: progress(len(views) / len(pairs)))) as results:
        for proofs in results:
            views += proofs
            progress(len(views) / len(pairs))
    return views


@dataclass(frozen=True)
class _ComparedPairs:
    """Pairs of images with their keypoints.

    Attributes:
        pairs: two rows each, and whether the second image may be mirrored.
        keypoints: by row, and whether the image is mirrored; missing for images that have none.
    """

    pairs: list[tuple[int, int, bool]]
    keypoints: dict[tuple[int, bool], Keypoints]


def _with_keypoints(pairs: list[tuple[int, int, bool]], keys: Keys, caches: Sequence[KeypointCache]) -> _ComparedPairs:
    places = {(row, False) for row, _, _ in pairs}
    places |= {(other, flag) for _, other, may_be_mirrored in pairs for flag in (False, may_be_mirrored)}
    keypoints = {}
    for place in places:
        key = keys.get(place)
        found = None if key is None else next((each for cache in caches if (each := cache.get(key))), None)
        if found is not None:
            keypoints[place] = found
    return _ComparedPairs(pairs, keypoints)


def _proofs(part: _ComparedPairs) -> list["_Proof | None"]:
    """Return the proofs of pairs; None for a pair that shares nothing."""
    proofs: list[_Proof | None] = []
    with single_threaded_opencv():
        for row, other, may_be_mirrored in part.pairs:
            tries = (_proof(part, row, other, flag) for flag in (True, False)[1 - int(may_be_mirrored) :])
            proofs.append(next((each for each in tries if each is not None), None))
    return proofs


def _proof(part: _ComparedPairs, row: int, other: int, is_mirrored: bool) -> "_Proof | None":
    mine, its = part.keypoints.get((row, False)), part.keypoints.get((other, is_mirrored))
    if mine is None or its is None or (view := shared_view(mine, its)) is None:
        return None
    is_part = view.share >= _ALL and _is_one_of(view.other_box, its.parts)
    other_is_part = view.other_share >= _ALL and _is_one_of(view.box, mine.parts)
    sizes = (mine.width, mine.height), (its.width, its.height)
    return _Proof(view, mine.inner, its.inner, is_mirrored, is_part, other_is_part, *sizes)


@dataclass(frozen=True)
class _Proof:
    """A proof of a copy.

    Attributes:
        view: what two images share.
        inner, other_inner: the shares of their areas within uniform borders.
        is_mirrored: whether the second one is mirrored.
        is_part, other_is_part: whether the first one is a part of the second one beside other content, as in a collage,
            and the other way round.
        size, other_size: width and height of the images in which the keypoints lie.
    """

    view: SharedView
    inner: float
    other_inner: float
    is_mirrored: bool
    is_part: bool
    other_is_part: bool
    size: tuple[int, int]
    other_size: tuple[int, int]


def _described(row: int, other: int, proof: _Proof) -> tuple[int, int, str, float]:
    """Return (copy, original, what was done to the copy, the share of the copy that is not beside other content).

    The copy is the one that has a uniform frame around the original, shows it beside other content, or shows only a
    part of it.
    """
    view, done = proof.view, ["mirrored"] if proof.is_mirrored else []
    quarter = round(view.turn / 90) * 90
    if turn := abs(quarter if abs(view.turn - quarter) < _TURN else round(view.turn)):
        done.append(f"turned by {turn}°")
    if _is_frame(view.share, proof.inner):
        return row, other, ", ".join([*done, "framed"]), 1.0
    if _is_frame(view.other_share, proof.other_inner):
        return other, row, ", ".join([*done, "framed"]), 1.0
    if proof.is_part and view.other_share < _WHOLE:
        return other, row, ", ".join([*done, f"shown on {view.other_share:.0%} of a larger image"]), view.other_share
    if proof.other_is_part and view.share < _WHOLE:
        return row, other, ", ".join([*done, f"shown on {view.share:.0%} of a larger image"]), view.share
    smaller = min(view.share, view.other_share)
    if smaller >= _WHOLE:
        return row, other, ", ".join(done) or "edited", 1.0
    copy, original = (other, row) if view.share <= view.other_share else (row, other)
    return copy, original, ", ".join([*done, f"{CROPPED} {smaller:.0%}"]), 1.0


def _is_one_of(box: Box, parts: Sequence[Box]) -> bool:
    """Return whether a box is about one of the parts."""
    return any(_overlap(box, part) >= _SAME_BOX for part in parts)


def _overlap(a: Box, b: Box) -> float:
    """Return the intersection of two boxes over their union."""
    high = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    wide = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = sum((bottom - top) * (right - left) for top, left, bottom, right in (a, b))
    return high * wide / max(1, areas - high * wide)


def _is_frame(share: float, inner: float) -> bool:
    """Return whether all of an image but its uniform borders is shared."""
    return inner < _WHOLE and share < _WHOLE and abs(share - inner) < _FRAME
