"""Verification of copies: which pairs of images show the same, and what was done to the copy.

Files with equal content are copies. Images that are alike as they are are laid over each other. Where that shows
nothing in common, and in all other pairs, keypoints tell how one image lies upon the other one. They are copies where
what is laid over each other shows the same, or was covered in parts (:mod:`framedex.analysis.registration`).
"""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from framedex.analysis.keypoints import Keypoints
from framedex.analysis.neighbours import ignore_progress
from framedex.analysis.registration import SIDE, Judgement
from framedex.core.arrays import Mask, Vectors
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.core.progress import ShareProgress
from framedex.core.stages import Stages
from framedex.errors import Unavailable
from framedex.executors import Executor
from framedex.jobs.index.compared_images import ComparedImages, ImageSource, Keys, ReducedImage
from framedex.jobs.index.copy_proofs import CopyProof, described
from framedex.jobs.index.image_layers import ImageLayer, LaidPair, Registered, registered_pairs
from framedex.jobs.index.keypoint_cache import KeypointCache
from framedex.jobs.index.query_images import QueryImages, QuerySource
from framedex.storage.copy_pairs import NO_PAIRS, CopyPairs

Rows = npt.NDArray[np.int64]
_LOG = logging.getLogger(__name__)
_PART = 64  # pairs that a worker compares at a time
_HELD = 128  # pairs whose pixels are held at a time
_HELD_CLOSELY, _CLOSE_SIDE = 16, 1280  # pairs, and pixels of the longer side at which text can be read
_KEPT_EVERY_S = 300.0
_VERIFIED = "verified"  # the stage with the pairs that are done
_PAIRS = 2**14  # pairs whose images are read and compared at a time
_NEAR, _READING = 0.5, 0.7  # shares of the work that are done after near pairs, and after keypoints are read

SAME_PIXELS, RECOMPRESSED, CHANGED, MOVED, COVERED = 1.0, 0.995, 0.985, 0.97, 0.96
"""The similarities of copies: equal pixels; compressed again or resized; other light, colours, sharpness or noise;
turned, mirrored, framed or cropped; covered in parts, or beside other content."""
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
    sources: Sequence[ImageSource | QuerySource],
    a: Rows,
    b: Rows,
    *,
    near: Mask,
    mirrored: Mask,
    executor: Executor,
    progress: ShareProgress,
    widths: Vectors | None = None,
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
        widths: float32, shape (P,): the share of the width of the second image that the first one takes, where it is
            looked for as a part of it; NaN for other pairs.
        stages: keep what is done every few minutes, for a process that goes on with the same pairs after a kill.
    """
    pairs = _PairsToVerify(a, b, near, mirrored, widths)
    done, made = _begun(stages, pairs)
    kept_at = time.monotonic()
    with ExitStack() as stack:
        images: list[ComparedImages | QueryImages] = []
        for each in sources:
            opened: AbstractContextManager[ComparedImages | QueryImages] = each.opened()
            images.append(stack.enter_context(opened))
        for first, part in pairs.parts():
            if first < done:
                continue
            share = _part_of(progress, first / len(a), len(part) / len(a))
            try:
                made |= _Verification(images, pairs, executor).copies(part, share)
            except Unavailable as error:
                _LOG.warning("further copies are not verified, because images cannot be read: %s", error)
                images[0].unread.update(b[part].tolist())
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
    widths: Vectors | None = None

    @cached_property
    def key(self) -> bytes:
        """A key of the pairs."""
        digest = hashlib.blake2b(digest_size=16)
        for each in (self.a, self.b, self.near, self.mirrored):
            digest.update(each.tobytes())
        return digest.digest()

    @cached_property
    def are_parts(self) -> Mask:
        """A mask of the pairs whose first image is looked for as a part of the second one."""
        return np.zeros(len(self.a), np.bool_) if self.widths is None else np.isfinite(self.widths)

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

    images: Sequence[ComparedImages | QueryImages]
    pairs: _PairsToVerify
    executor: Executor

    def copies(self, part: Rows, progress: ShareProgress) -> dict[int, _Copy]:
        """Return the copies among some pairs, by pair."""
        near = part[self.pairs.near[part]]
        made = self._equal_files(near)
        near = near[[pair not in made for pair in near.tolist()]] if made else near
        parts = part[self.pairs.are_parts[part]]
        made |= self._parts(parts, ignore_progress)
        further = {int(pair) for pair in part[~(self.pairs.near | self.pairs.are_parts)[part]]}
        closely: dict[int, ImageLayer] = {}
        whole = ((pair, ImageLayer(None)) for pair in near.tolist())
        for pair, registered in self._registered(whole, len(near), _part_of(progress, 0, _NEAR)):
            if registered is not None and registered.judgement is not Judgement.DIFFERENT:
                made[pair] = self._copy(pair, registered, None)
                closely |= {} if registered.closer is None else {pair: registered.closer}
            elif registered is None or not registered.difference.is_settled:
                further.add(pair)
        chosen = np.array(sorted(further), np.int64)
        if not len(chosen):
            return self._seen_closely(made, closely, progress)
        proofs = self._proofs(chosen, _part_of(progress, _NEAR, _READING - _NEAR))
        laid = {pair: proof for pair, proof in zip(chosen.tolist(), proofs, strict=True) if proof is not None}
        layers = ((pair, ImageLayer.of(proof)) for pair, proof in laid.items())
        for pair, registered in self._registered(layers, len(laid), _part_of(progress, _READING, 1 - _READING)):
            if registered is not None and registered.judgement is not Judgement.DIFFERENT:
                made[pair] = self._copy(pair, registered, laid[pair])
                closely |= {} if registered.closer is None else {pair: registered.closer}
        return self._seen_closely(made, closely, progress)

    def _seen_closely(
        self, made: dict[int, _Copy], layers: dict[int, ImageLayer], progress: ShareProgress
    ) -> dict[int, _Copy]:
        """Return copies without those that differ where text can be read."""
        again = self._registered(layers.items(), len(layers), _part_of(progress, 1, 0), is_close=True)
        for pair, registered in again:
            if registered is not None and registered.judgement is Judgement.DIFFERENT:
                del made[pair]
        return made

    def _parts(self, parts: Rows, progress: ShareProgress) -> dict[int, _Copy]:
        """Return the copies among pairs whose first image is looked for as a part of the second one."""
        widths = self.pairs.widths
        if widths is None or not len(parts):
            return {}
        layers = ((pair, ImageLayer(None, width=float(widths[pair]))) for pair in parts.tolist())
        return {
            pair: self._copy(pair, registered, registered.proof)
            for pair, registered in self._registered(layers, len(parts), progress)
            if registered is not None and registered.judgement is not Judgement.DIFFERENT
        }

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

    def _of_images(self, rows: Rows) -> Iterator[tuple[ComparedImages | QueryImages, Rows]]:
        """Yield the images of each source, and those of the ascending rows that it has."""
        for each in self.images:
            low, high = np.searchsorted(rows, [each.first, each.end]).tolist()
            yield each, rows[low:high]

    def _ends(self, pairs: Rows) -> Iterable[tuple[int, int, int]]:
        ends = (self.pairs.a[pairs].tolist(), self.pairs.b[pairs].tolist())
        return zip(pairs.tolist(), *ends, strict=True)

    def _registered(
        self,
        layers: Iterable[tuple[int, "ImageLayer"]],
        count: int,
        progress: ShareProgress,
        *,
        is_close: bool = False,
    ) -> Iterator[tuple[int, "Registered | None"]]:
        """Yield the differences of pairs, in their order; None where an image cannot be read, or nothing is alike."""
        side, most = (_CLOSE_SIDE, _HELD_CLOSELY) if is_close else (SIDE, _HELD)
        waiting: list[tuple[int, ImageLayer]] = []
        done, held = 0, dict[int, ReducedImage]()
        for number, each in enumerate(layers, 1):
            waiting.append(each)
            if len(waiting) < most and number < count:
                continue
            pairs = np.array([pair for pair, _ in waiting], np.int64)
            rows = np.union1d(self.pairs.a[pairs], self.pairs.b[pairs])
            held = {row: image for row, image in held.items() if row in set(rows.tolist())}
            for images, some in self._of_images(rows):
                held |= images.read_reduced(some[[row not in held for row in some.tolist()]], self.executor, side)
            laid = [
                LaidPair(held.get(a), held.get(b), layer)
                for (_, a, b), (_, layer) in zip(self._ends(pairs), waiting, strict=True)
            ]
            parts = (laid[at : at + _PART // 4] for at in range(0, len(laid), _PART // 4))
            found: list[Registered | None] = []
            with closing(self.executor.map(registered_pairs, parts, check=partial(progress, done / count))) as results:
                for result in results:
                    found += result
            yield from zip(pairs.tolist(), found, strict=True)
            done += len(waiting)
            progress(done / count)
            waiting = []

    def _proofs(self, part: Rows, progress: ShareProgress) -> list["CopyProof | None"]:
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

    def _copy(self, pair: int, registered: "Registered", proof: "CopyProof | None") -> _Copy:
        """Return the copy that a difference and, if they were needed, keypoints show."""
        a, b = int(self.pairs.a[pair]), int(self.pairs.b[pair])
        shown = registered.difference
        reason, share = None, 1.0
        if proof is not None:
            a, b, reason, share = described(a, b, proof)
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


def _part_of(progress: ShareProgress, start: float, share: float) -> ShareProgress:
    """Return the progress of a part that begins at *start*, and has a *share* of the whole, both 0 to 1."""
    return lambda part: progress(start + share * part)


def _compare(
    keys: Keys,
    pairs: list[tuple[int, int, bool]],
    caches: Sequence[KeypointCache],
    executor: Executor,
    progress: ShareProgress,
) -> list["CopyProof | None"]:
    """Return what the images of pairs share; None for nothing, or without keypoints.

    A pair has two rows, and whether the second image may be mirrored. It is compared as it is as well then, because the
    descriptors of a symmetrical image and of its mirror image are alike.
    """
    views: list[CopyProof | None] = []
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


def _proofs(part: _ComparedPairs) -> list["CopyProof | None"]:
    """Return the proofs of pairs; None for a pair that shares nothing."""
    proofs: list[CopyProof | None] = []
    with single_threaded_opencv():
        for row, other, may_be_mirrored in part.pairs:
            tries = (_proof(part, row, other, flag) for flag in (True, False)[1 - int(may_be_mirrored) :])
            proofs.append(next((each for each in tries if each is not None), None))
    return proofs


def _proof(part: _ComparedPairs, row: int, other: int, is_mirrored: bool) -> "CopyProof | None":
    mine, its = part.keypoints.get((row, False)), part.keypoints.get((other, is_mirrored))
    return None if mine is None or its is None else CopyProof.of_keypoints(mine, its, is_mirrored=is_mirrored)
