"""Images of media tables that are compared to find copies: their keypoints, and their pixels at a reduced size."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.keypoints import Keypoints, find_keypoints, to_keypoint_size
from framedex.analysis.registration import SIDE, Shades
from framedex.core.arrays import Mask, Pixels, RowIds
from framedex.core.borders import Box, cropped, inner_box
from framedex.core.progress import ShareProgress
from framedex.encoders.copy_descriptor import panels
from framedex.executors import Executor
from framedex.jobs.index.keypoint_cache import KeypointCache, key_of
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.media.decoded_image import DecodedImage
from framedex.settings import Settings
from framedex.storage.media import EVERYTHING, Media

Rows = npt.NDArray[np.int64]
Keys = dict[tuple[int, bool], bytes]
"""Keys of keypoints, by row and whether the image is mirrored."""
_DETAIL = 240  # pixels of the shorter side of the images in which keypoints are found
_BLOCK = 256  # images whose keypoints are stored at a time
_FEW_SHARE = 16  # fewer images than this part of the table are read by number
_TAKEN = 1024  # rows that are read by number at a time


@dataclass(frozen=True)
class ImageSource:
    """A media table whose images are compared.

    Attributes:
        media: the media.
        settings: limits.
        keypoints: the folder of cached keypoints.
        first: the number of its first row among the rows of all tables that are compared.
        unread: the rows of images that could not be read.
    """

    media: Media
    settings: Settings
    keypoints: Path
    first: int = 0
    unread: set[int] = field(default_factory=set, compare=False)

    @contextmanager
    def opened(self) -> Iterator["ComparedImages"]:
        """Open the cache of keypoints, and yield the images."""
        with KeypointCache(self.keypoints) as cache:
            yield ComparedImages(self, cache)


class ComparedImages:
    """Images of a source, whose keypoints and pixels are read.

    Args:
        source: the table.
        cache: its keypoints.

    Attributes:
        first: the number of its first row.
        end: the number behind its last row.
        unread: the rows of images that cannot be read.
    """

    def __init__(self, source: ImageSource, cache: KeypointCache) -> None:
        self.media, self.cache, self.first = source.media, cache, source.first
        self.end = source.first + source.media.table.count()
        self._settings, self.unread = source.settings, source.unread

    def read_keypoints(self, rows: Rows, is_mirrored: Mask, executor: Executor, progress: ShareProgress) -> Keys:
        """Find the keypoints of rows that the cache lacks; return the keys of all rows whose keypoints are known."""
        keys: Keys = {}
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

    def read_reduced(self, rows: Rows, executor: Executor, side: int = SIDE) -> dict[int, "ReducedImage"]:
        """Return the images of rows by number, without those that cannot be read; *side* is as in their making."""
        listed = [row for row in self._rows(rows) if row["content_hash"] is not None]
        results = decode_rows(
            self.media,
            listed,
            partial(_reduced, side=side),
            _without_image,
            detail=side,
            settings=self._settings,
            executor=executor,
        )
        found: dict[int, ReducedImage] = {}
        with closing(results):
            for each in results:
                found |= each or {}
        self.unread |= {row["number"] for row in listed} - found.keys()
        return found

    def contents(self, rows: Rows) -> dict[int, bytes]:
        """Return a key of the content of rows by number: equal for equal files, and frames of them."""
        return {
            row["number"]: key_of(row["content_hash"], row.get("frame_number"), mirrored=False)
            for row in self._rows(rows)
            if row["content_hash"] is not None
        }

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
        if self.media.columns is not None:  # which keep them
            return self.media.row_ids(EVERYTHING)
        return np.asarray(self.media.table.scan([], row_ids=True).read_all().column(0).to_numpy(), np.uint64)


def _numbered(rows: Rows, taken: Any) -> Iterator[dict[str, Any]]:
    for number, row in zip(rows.tolist(), taken.to_pylist(), strict=True):
        yield {**row, "number": number}


@dataclass(frozen=True)
class ReducedImage:
    """A reduced image for registration.

    Attributes:
        shades: the image, at a size for its comparison.
        inner: its part within uniform borders.
        size: width and height at full size.
        is_damaged: whether a part of it could not be decoded.
    """

    shades: Shades
    inner: Box
    size: tuple[int, int]
    is_damaged: bool

    @classmethod
    def of(cls, pixels: Pixels, size: tuple[int, int], *, is_damaged: bool, side: int = SIDE) -> "ReducedImage":
        """Return an image for registration, from its pixels at any size: uint8, shape (H, W, 3).

        Args:
            pixels: the image.
            size: width and height of the whole image.
            is_damaged: whether a part of it could not be decoded.
            side: pixels of the longer side, at most.
        """
        shades = Shades.of(pixels)
        shades = shades.resized(side / max(shades.grey.shape))
        return cls(shades, inner_box(shades.grey), size, is_damaged)

    @property
    def inner_share(self) -> float:
        """The share of its area within uniform borders."""
        top, left, bottom, right = self.inner
        return (bottom - top) * (right - left) / self.shades.grey.size


def _reduced(row: Any, image: DecodedImage, *, side: int) -> dict[int, ReducedImage]:
    size, is_damaged = (image.width, image.height), image.damage is not None
    return {row["number"]: ReducedImage.of(image.pixels, size, is_damaged=is_damaged, side=side)}


def _without_image(_row: Any, _reason: str) -> dict[int, ReducedImage]:
    return {}


def _keypoints_of(row: Any, image: DecodedImage) -> dict[tuple[int, bool], Keypoints]:
    return {(row["number"], flag): keypoints_of(image.pixels, is_mirrored=flag) for flag in row["wanted"]}


def keypoints_of(pixels: Pixels, *, is_mirrored: bool) -> Keypoints:
    """Return the keypoints of an image, or of its mirror image: uint8, shape (H, W, 3)."""
    grey = to_keypoint_size(np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), dtype=np.uint8))
    shown = np.ascontiguousarray(grey[:, ::-1]) if is_mirrored else grey
    return replace(find_keypoints(shown), parts=panels_of(shown))


def _without_keypoints(_row: Any, _reason: str) -> dict[tuple[int, bool], Keypoints]:
    return {}


def panels_of(grey: npt.NDArray[np.uint8]) -> tuple[Box, ...]:
    """Return the panels of a greyscale image in its own coordinates: uint8, shape (H, W)."""
    box = inner_box(grey)
    above, left = box[:2]
    return tuple(
        (top + above, start + left, bottom + above, end + left)
        for top, start, bottom, end in panels(np.ascontiguousarray(cropped(grey, box)))
    )
