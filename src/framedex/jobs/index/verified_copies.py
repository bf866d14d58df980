"""Verification of copies by keypoints: which pairs of images show the same, and what was done to the copy."""

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.keypoints import Keypoints, SharedView, find_keypoints, shared_view, to_keypoint_size
from framedex.core.arrays import Mask, RowIds
from framedex.core.borders import Box, cropped, inner_box
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.core.progress import ShareProgress
from framedex.core.stages import Stages
from framedex.encoders.copy_descriptor import panels
from framedex.errors import Unavailable
from framedex.executors import Executor
from framedex.jobs.index.keypoint_cache import KeypointCache, key_of
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.media.decoded_image import DecodedImage
from framedex.records import DUPLICATE_LEVELS
from framedex.settings import Settings
from framedex.storage.copy_pairs import CROPPED, NO_PAIRS, CopyPairs
from framedex.storage.media import Media

Rows = npt.NDArray[np.int64]
_Copy = tuple[int, int, str, float]
VERIFIED = DUPLICATE_LEVELS[0]
"""The similarity of copies that keypoints show."""
_LOG = logging.getLogger(__name__)
_DETAIL = 240  # pixels of the shorter side of the images in which keypoints are found
_BLOCK = 256  # images whose keypoints are stored at a time
_PART = 64  # pairs that a worker compares at a time
_KEPT_EVERY_S = 300.0
_VERIFIED = "verified"  # the stage with the pairs that are done
_PAIRS = 2**14  # pairs whose images are read and compared at a time
_FEW_SHARE = 16  # fewer images than this part of the table are read by number
_TAKEN = 1024  # rows that are read by number at a time
_WHOLE = 0.97  # share of an image that counts as all of it
_FRAME = 0.08  # difference of shares of an image that trimming and compression make
_TURN = 1.5  # degrees that are a turn
_ALL = 0.9  # share of an image that another one shows as one of its parts
_SAME_BOX = 0.85  # intersection over union
_READING = 0.7  # share of the work that is done after the images are read


@dataclass(frozen=True)
class ImageSource:
    """A media table whose images are compared.

    Attributes:
        media: the media.
        settings: limits.
        keypoints: the folder of cached keypoints.
        first: the number of its first row among the rows of all tables that are compared.
    """

    media: Media
    settings: Settings
    keypoints: Path
    first: int = 0


def verified_pairs(
    sources: Sequence[ImageSource],
    a: Rows,
    b: Rows,
    mirrored: npt.NDArray[np.bool_],
    executor: Executor,
    progress: ShareProgress,
    *,
    stages: Stages | None = None,
) -> CopyPairs:
    """Return the pairs of rows that keypoints confirm. The result does not depend on the executor.

    Args:
        sources: tables whose rows are numbered one after another.
        a: int64, shape (P,): the first row of each pair.
        b: int64, shape (P,): the second one.
        mirrored: bool, shape (P,): whether the second image may be mirrored.
        executor: reads images and compares them.
        progress: called with the share that is done; raises to stop.
        stages: keep what is done every few minutes, for a process that goes on with the same pairs after a kill.
    """
    pairs = _PairsToVerify(a, b, mirrored)
    done, made = _begun(stages, pairs)
    kept_at = time.monotonic()
    with ExitStack() as stack:
        images = [_Images(each, stack.enter_context(KeypointCache(each.keypoints))) for each in sources]
        for first, part in pairs.parts():
            if first < done:
                continue
            share = _part_of(progress, first / len(a), len(part) / len(a))
            try:
                found = _views(images, pairs, part, executor, share)
            except Unavailable as error:
                _LOG.warning("further copies are not verified, because images cannot be read: %s", error)
                break
            numbered = zip(part.tolist(), found, strict=True)
            made |= {pair: _described(int(a[pair]), int(b[pair]), proof) for pair, proof in numbered if proof}
            if stages is not None and time.monotonic() - kept_at >= _KEPT_EVERY_S:
                with suppress(OSError):  # the disk is full
                    stages.put(_VERIFIED, (pairs.key, first + len(part), made))
                kept_at = time.monotonic()
        if unread := sum(len(each.unread) for each in images):
            _LOG.warning("copies of %d images are not verified, because the images cannot be read", unread)
    if not made:
        return NO_PAIRS
    first_rows, second, reasons, shares = zip(*(made[pair] for pair in sorted(made)), strict=True)
    similarity = np.full(len(made), VERIFIED, np.float32)
    return CopyPairs(
        np.array(first_rows, np.int64), np.array(second, np.int64), similarity, reasons, np.array(shares, np.float32)
    )


@dataclass(frozen=True)
class _PairsToVerify:
    """Pairs of rows, and whether the second image may be mirrored; see :func:`verified_pairs`."""

    a: Rows
    b: Rows
    mirrored: Mask

    @cached_property
    def key(self) -> bytes:
        """A key of the pairs."""
        digest = hashlib.blake2b(digest_size=16)
        for each in (self.a, self.b, self.mirrored):
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


def _views(
    images: Sequence["_Images"], pairs: _PairsToVerify, part: Rows, executor: Executor, progress: ShareProgress
) -> list["_Proof | None"]:
    """Return what the images of a part of the pairs share; see :func:`verified_pairs`."""
    a, b = pairs.a[part], pairs.b[part]
    wanted = np.union1d(a, b)
    is_mirrored = np.isin(wanted, pairs.mirrored_rows)
    keys: _Keys = {}
    done = 0.0
    for each in images:
        low, high = np.searchsorted(wanted, [each.first, each.first + each.media.table.count()]).tolist()
        share = _READING * (high - low) / max(len(wanted), 1)
        reading = _part_of(progress, done, share)
        keys |= each.read_keypoints(wanted[low:high], is_mirrored[low:high], executor, reading)
        done += share
    listed = list(zip(a.tolist(), b.tolist(), pairs.mirrored[part].tolist(), strict=True))
    caches = [each.cache for each in images]
    found = _compare(keys, listed, caches, executor, _part_of(progress, _READING, 1 - _READING))
    for cache in caches:
        cache.forget()
    return found


_Keys = dict[tuple[int, bool], bytes]


def _part_of(progress: ShareProgress, start: float, share: float) -> ShareProgress:
    """Return the progress of a part that begins at *start*, and has a *share* of the whole, both 0 to 1."""
    return lambda part: progress(start + share * part)


class _Images:
    """Images of a source, whose keypoints are read.

    Args:
        source: the table.
        cache: its keypoints.

    Attributes:
        first: the number of its first row.
        unread: the rows of images that cannot be read.
    """

    def __init__(self, source: ImageSource, cache: KeypointCache) -> None:
        self.media, self.cache, self.first = source.media, cache, source.first
        self._settings = source.settings
        self.unread: set[int] = set()

    def read_keypoints(self, rows: Rows, is_mirrored: Mask, executor: Executor, progress: ShareProgress) -> _Keys:
        """Find the keypoints of rows that the cache lacks; return the keys of all rows whose keypoints are known."""
        keys: _Keys = {}
        missing: list[dict[str, Any]] = []
        flags_of = dict(zip(rows.tolist(), is_mirrored.tolist(), strict=True))
        for row in self._rows(rows):
            number, content = row["number"], row["content_hash"]
            if content is None:
                continue
            flags = (False, True)[: 1 + int(flags_of[number])]
            for flag in flags:
                keys[number, flag] = key_of(content, row.get("frame_number"), mirrored=flag)
            row["wanted"] = [flag for flag in flags if keys[number, flag] not in self.cache]
            if row["wanted"] and number not in self.unread:
                missing.append(row)
        results = decode_rows(
            self.media,
            missing,
            _keypoints_of,
            _without_keypoints,
            detail=_DETAIL,
            settings=self._settings,
            executor=executor,
        )
        made: dict[bytes, Keypoints] = {}
        with closing(results):
            for done, each in enumerate((each for each in results if each is not None), 1):  # None: it goes on waiting
                if not each:
                    self.unread.add(missing[done - 1]["number"])
                made |= {keys[place]: points for place, points in each.items()}
                if len(made) >= _BLOCK:
                    self.cache.put(made)
                    made = {}
                progress(done / len(missing))
        self.cache.put(made)
        return keys

    def _rows(self, rows: Rows) -> Iterator[dict[str, Any]]:
        """Yield rows by number, each with its number."""
        table = self.media.table
        columns = list(dict.fromkeys([*self.media.location, "error", "content_hash"]))
        if len(rows) * _FEW_SHARE < table.count():
            for start in range(0, len(rows), _TAKEN):
                some = rows[start : start + _TAKEN]
                taken = table.take(self._row_ids[some - self.first].tolist(), columns)
                yield from _numbered(some, taken)
            return
        start = self.first
        for batch in table.scan(columns):
            some = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + batch.num_rows)]
            yield from _numbered(some, batch.take(some - start))
            start += batch.num_rows

    @cached_property
    def _row_ids(self) -> RowIds:
        return np.asarray(self.media.table.scan([], row_ids=True).read_all().column(0).to_numpy(), np.uint64)


def _numbered(rows: Rows, taken: Any) -> Iterator[dict[str, Any]]:
    for number, row in zip(rows.tolist(), taken.to_pylist(), strict=True):
        yield {**row, "number": number}


def _keypoints_of(row: Any, image: DecodedImage) -> dict[tuple[int, bool], Keypoints]:
    grey = to_keypoint_size(np.asarray(cv2.cvtColor(image.pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8))
    found = {}
    for flag in row["wanted"]:
        shown = np.ascontiguousarray(grey[:, ::-1]) if flag else grey
        found[row["number"], flag] = replace(find_keypoints(shown), parts=_parts(shown))
    return found


def _without_keypoints(_row: Any, _reason: str) -> dict[tuple[int, bool], Keypoints]:
    return {}


def _parts(grey: npt.NDArray[np.uint8]) -> tuple[Box, ...]:
    """Return the panels of an image in its own coordinates."""
    box = inner_box(grey)
    above, left = box[:2]
    return tuple(
        (top + above, start + left, bottom + above, end + left)
        for top, start, bottom, end in panels(np.ascontiguousarray(cropped(grey, box)))
    )


def _compare(
    keys: _Keys,
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


def _with_keypoints(pairs: list[tuple[int, int, bool]], keys: _Keys, caches: Sequence[KeypointCache]) -> _ComparedPairs:
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
    return _Proof(view, mine.inner, its.inner, is_mirrored, is_part, other_is_part)


@dataclass(frozen=True)
class _Proof:
    """A proof of a copy.

    Attributes:
        view: what two images share.
        inner, other_inner: the shares of their areas within uniform borders.
        is_mirrored: whether the second one is mirrored.
        is_part, other_is_part: whether the first one is a part of the second one beside other content, as in a collage,
            and the other way round.
    """

    view: SharedView
    inner: float
    other_inner: float
    is_mirrored: bool
    is_part: bool
    other_is_part: bool


def _described(row: int, other: int, proof: _Proof) -> _Copy:
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
