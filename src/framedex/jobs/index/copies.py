"""Copies of images: candidates by descriptors, and the verification of the doubtful ones by keypoints."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.copies import Candidates, Units, affordable, find_candidates
from framedex.analysis.keypoints import Keypoints, SharedView, find_keypoints, shared_view, to_keypoint_size
from framedex.analysis.linkage import ROUNDING
from framedex.core.arrays import Vectors
from framedex.core.borders import Box, cropped, inner_box
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.core.progress import Progress
from framedex.encoders.copy_descriptor import DIMENSION, MIRRORED, cells, layouts, panels, poses
from framedex.errors import Unavailable
from framedex.jobs.context import JobContext
from framedex.jobs.index.keypoint_cache import KeypointCache, key_of
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.media.decode import DecodedImage
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.copy_pairs import CROPPED, NO_PAIRS, CopyPairs, Pairs, compared_column, video_owners
from framedex.storage.media import Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.sql import Sql
from framedex.storage.table_versions import Table

_LOG = logging.getLogger("framedex")
_VERIFIED = DUPLICATE_LEVELS[0]
_DOUBTFUL = 0.7  # similarity below which images are not compared by keypoints
_DETAIL = 240  # pixels of the shorter side of the images in which keypoints are found
_COST_MS = (5.0, 1.4)  # of processor time: keypoints of an image, comparison of two images
_LEAST_BUDGET_MS = 500.0
_TRIES = 2  # comparisons between two sets of near-duplicates
_BLOCK = 256  # images or pairs at a time
_PART = 64  # pairs that a thread compares at a time
_WHOLE = 0.97  # share of an image that counts as all of it
_FRAME = 0.08  # difference of shares of an image that trimming and compression make
_TURN = 1.5  # degrees that are a turn
_ALL = 0.9  # share of an image that another one shows as one of its parts
_SAME_BOX = 0.85  # intersection over union
_FINDING, _READING = 0.3, 0.8  # shares of the work that are done after these stages
_STAGE = "finding copies"
_NONE_NEAR: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True)
class FoundCopies:
    """Result of the search for copies.

    Attributes:
        pairs: copies that keypoints show.
        near: near-duplicates by descriptor of added rows, neither turned nor mirrored: rows and similarity.
    """

    pairs: CopyPairs
    near: Pairs


def find_copies(
    job: JobContext, table: Table, *, progress: Progress, added: int = 0, roots: Sequence[str] | None = None
) -> FoundCopies | None:
    """Return the copies among the rows of a media table; None if it has no copy descriptors.

    Pairs that are doubtful by their descriptors are verified by keypoints, most promising first, as far as the budget
    goes (``copy_budget_ms``). It counts fixed costs, not measured ones, so the result does not depend on the machine.

    Args:
        job: the context of the job.
        table: the media table, at its newest version.
        progress: called with the stage and the share that is done; raises to stop.
        added: the first row that is compared with all others; only pairs with such a row are returned.
        roots: source roots by number; by default those of the job.
    """
    if PANEL_DESCRIPTORS not in table.schema.names or added >= table.count():
        return None
    if job.settings.copy_budget_ms == 0 and not added:  # candidates are of no use, and near-duplicates have a graph
        return FoundCopies(NO_PAIRS, _NONE_NEAR)
    progress(_STAGE, 0.0)
    positions, vectors = table.vectors(compared_column(table))
    units, first_added = _with_panels(table, positions, vectors), int(np.searchsorted(positions, added))
    found = find_candidates(
        units,
        poses,
        layouts,
        cells,
        added=first_added,
        owners=video_owners(table, positions),
        progress=lambda share: progress(_STAGE, _FINDING * share),
    )
    del vectors, units
    is_near = (found.whole >= _VERIFIED - ROUNDING) & (found.whole_pose == 0)
    near = found.take(is_near)
    doubtful = found.take(~is_near & (found.similarity >= _DOUBTFUL))
    budget = job.settings.copy_budget_ms * (len(positions) - first_added)
    if budget > 0:
        budget = max(budget, _LEAST_BUDGET_MS)  # a few added images have as many candidates each as many
    chosen = doubtful.take(
        affordable(doubtful, budget_ms=budget, cost=_COST_MS, near=near, tries=_TRIES, added=first_added)
    )
    pairs = _verified(job, table, positions, chosen, roots, progress) if len(chosen.a) else NO_PAIRS
    return FoundCopies(pairs, (positions[near.a], positions[near.b], near.whole))


def _with_panels(table: Table, positions: npt.NDArray[np.int64], vectors: Vectors) -> Units:
    parts, images, start = [vectors], [np.arange(len(positions))], 0
    for batch in table.scan([PANEL_DESCRIPTORS]):
        column = batch.column(0)
        counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) // DIMENSION
        rows = np.repeat(np.arange(start, start + len(column)), counts)
        flat = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, DIMENSION)
        described = np.isin(rows, positions)
        parts.append(flat[described])
        images.append(np.searchsorted(positions, rows[described]))
        start += len(column)
    return Units(np.concatenate(parts) if len(parts) > 1 else vectors, np.concatenate(images).astype(np.int64))


def _verified(
    job: JobContext,
    table: Table,
    positions: npt.NDArray[np.int64],
    chosen: Candidates,
    roots: Sequence[str] | None,
    progress: Progress,
) -> CopyPairs:
    """Return the pairs that keypoints confirm."""
    a, b, mirrored = positions[chosen.a], positions[chosen.b], chosen.pose >= MIRRORED
    is_mirrored = np.zeros(table.count(), dtype=np.bool_)
    is_mirrored[b[mirrored]] = True
    rows = np.union1d(a, b)
    with KeypointCache(job.keypoints) as cache:
        try:
            keys = _read_keypoints(job, table, rows, is_mirrored, cache, roots, progress)
        except Unavailable as error:
            _LOG.warning("copies are not verified, because images cannot be read: %s", error)
            return NO_PAIRS
        views = _compare(job, keys, list(zip(a.tolist(), b.tolist(), mirrored.tolist(), strict=True)), cache, progress)
    made = [
        _described(row, other, proof) for row, other, proof in zip(a.tolist(), b.tolist(), views, strict=True) if proof
    ]
    if not made:
        return NO_PAIRS
    first, second, reasons, shares = zip(*made, strict=True)
    similarity = np.full(len(made), _VERIFIED, np.float32)
    return CopyPairs(
        np.array(first, np.int64), np.array(second, np.int64), similarity, reasons, np.array(shares, np.float32)
    )


_Keys = dict[tuple[int, bool], bytes]


def _read_keypoints(
    job: JobContext,
    table: Table,
    rows: npt.NDArray[np.int64],
    is_mirrored: npt.NDArray[np.bool_],
    cache: KeypointCache,
    roots: Sequence[str] | None,
    progress: Progress,
) -> _Keys:
    """Find the keypoints of rows that the cache lacks; return the keys of all rows whose keypoints are known."""
    media = Media(job.dataset_id, job.head, table, Sql(), job.roots if roots is None else tuple(roots))
    keys: _Keys = {}
    missing: list[dict[str, Any]] = []
    for row in _rows(media, rows):
        number, content = row["number"], row["content_hash"]
        if content is None:
            continue
        for flag in (False, True)[: 1 + int(is_mirrored[number])]:
            keys[number, flag] = key_of(content, row.get("frame_number"), mirrored=flag)
        row["wanted"] = [flag for flag in (False, True) if (key := keys.get((number, flag))) and key not in cache]
        if row["wanted"]:
            missing.append(row)
    results = decode_rows(
        media, missing, _keypoints_of, lambda _row, _reason: {}, detail=_DETAIL, settings=job.settings
    )
    made: dict[bytes, Keypoints] = {}
    done = unread = 0
    with closing(results):
        for each in results:
            if each is None:
                continue
            done, unread = done + 1, unread + (not each)
            made |= {keys[place]: points for place, points in each.items()}
            if len(made) >= _BLOCK:
                cache.put(made)
                made = {}
            progress(_STAGE, _FINDING + (_READING - _FINDING) * done / len(missing))
    cache.put(made)
    if unread:
        _LOG.warning("copies of %d images are not verified, because the images cannot be read", unread)
    return keys


def _rows(media: Media, rows: npt.NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    start = 0
    for batch in media.table.scan(list(dict.fromkeys([*media.location, "error", "content_hash"]))):
        some = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + batch.num_rows)]
        for number, row in zip(some.tolist(), batch.take(some - start).to_pylist(), strict=True):
            yield {**row, "number": number}
        start += batch.num_rows


def _keypoints_of(row: Any, image: DecodedImage) -> dict[tuple[int, bool], Keypoints]:
    grey = to_keypoint_size(np.asarray(cv2.cvtColor(image.pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8))
    found = {}
    for flag in row["wanted"]:
        shown = np.ascontiguousarray(grey[:, ::-1]) if flag else grey
        found[row["number"], flag] = replace(find_keypoints(shown), parts=_parts(shown))
    return found


def _parts(grey: npt.NDArray[np.uint8]) -> tuple[Box, ...]:
    """Return the panels of an image in its own coordinates."""
    box = inner_box(grey)
    above, left = box[:2]
    return tuple(
        (top + above, start + left, bottom + above, end + left)
        for top, start, bottom, end in panels(np.ascontiguousarray(cropped(grey, box)))
    )


def _compare(
    job: JobContext, keys: _Keys, pairs: list[tuple[int, int, bool]], cache: KeypointCache, progress: Progress
) -> list["_Proof | None"]:
    """Return what the images of pairs share; None for nothing, or without keypoints.

    A pair has two rows, and whether the second image may be mirrored. It is compared as it is as well then, because the
    descriptors of a symmetrical image and of its mirror image are alike.
    """

    def compare(some: Iterable[tuple[int, int, bool]]) -> list[_Proof | None]:
        views: list[_Proof | None] = []
        for row, other, may_be_mirrored in some:
            tries = (proof(row, other, flag) for flag in (True, False)[1 - int(may_be_mirrored) :])
            views.append(next((each for each in tries if each is not None), None))
        return views

    def proof(row: int, other: int, is_mirrored: bool) -> _Proof | None:
        key, other_key = keys.get((row, False)), keys.get((other, is_mirrored))
        mine = None if key is None else cache.get(key)
        its = None if other_key is None else cache.get(other_key)
        if mine is None or its is None or (view := shared_view(mine, its)) is None:
            return None
        is_part = view.share >= _ALL and _is_one_of(view.other_box, its.parts)
        other_is_part = view.other_share >= _ALL and _is_one_of(view.box, mine.parts)
        return _Proof(view, mine.inner, its.inner, is_mirrored, is_part, other_is_part)

    views: list[_Proof | None] = []
    with single_threaded_opencv(), ThreadPoolExecutor(job.settings.threads) as pool:
        for start in range(0, len(pairs), _BLOCK * job.settings.threads):
            some = pairs[start : start + _BLOCK * job.settings.threads]
            for part in pool.map(compare, (some[at : at + _PART] for at in range(0, len(some), _PART))):
                views += part
            progress(_STAGE, _READING + (1 - _READING) * len(views) / len(pairs))
    return views


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


def with_known(found: CopyPairs, known: CopyPairs | None) -> CopyPairs:
    """Return found pairs, and those known before whose images were not found again."""
    if known is None or not len(known):
        return found
    pairs = {tuple(sorted(each)) for each in zip(found.a.tolist(), found.b.tolist(), strict=True)}
    is_new = [tuple(sorted(each)) not in pairs for each in zip(known.a.tolist(), known.b.tolist(), strict=True)]
    return found.joined(known.take(np.array(is_new, dtype=bool)))
