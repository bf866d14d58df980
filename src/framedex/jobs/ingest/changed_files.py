"""Which files of a source a dataset does not have yet, or has as they were before they changed."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from framedex.annotations.label_index import Annotations
from framedex.jobs.ingest.decoding import is_video_item, location_of
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.media.remote import is_remote
from framedex.media.sources import Item, Source
from framedex.regular_files import open_binary
from framedex.storage.file_index import FileIndex
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import file_time_us

_ASKED = 1024  # files whose ids are looked up at a time
_VIDEO_BYTES = 2**18  # of a video take about as long as a picture


@dataclass(frozen=True)
class ExistingRows:
    """What the tables that an ingestion writes to have already.

    Attributes:
        media: rows of the media table; None where there is none yet.
        videos: rows of the table of videos; None where there is none yet.
        own_media, own_videos: how many of the last rows an earlier run of this very ingestion wrote.
    """

    media: IdIndex | None = None
    videos: IdIndex | None = None
    own_media: int = 0
    own_videos: int = 0

    def is_own_frame(self, identifier: str) -> bool:
        """Return whether an earlier run of this ingestion wrote the frame of an id."""
        if self.media is None or not self.own_media:
            return False
        return int(self.media.positions([identifier])[0]) >= len(self.media) - self.own_media


class ChangedFiles:
    """The files of a source that are new or changed, in the source's order; may be walked once.

    Attributes:
        present: how many files so far were there already.
        passed: the weight of the files so far that are not read, those of an earlier run of the same ingestion too.
    """

    def __init__(
        self, source: Source, annotations: Annotations, dataset_id: str, place: SourcePlacement, known: ExistingRows
    ) -> None:
        self._source, self._annotations, self._dataset_id = source, annotations, dataset_id
        self._place, self._known = place, known
        self.present, self.passed = 0, 0.0

    def __iter__(self) -> Iterator[Item]:
        """Yield the files that are to be read."""
        items = self._source.items()
        while group := list(islice(items, _ASKED)):
            yield from self._news(group)

    def _news(self, group: list[Item]) -> Iterator[Item]:
        ids = [self._place.of(item).media_id(self._dataset_id, item.path) for item in group]
        media, videos = (_places(known, ids) for known in (self._known.media, self._known.videos))
        for item, row_of_picture, row_of_video in zip(group, media, videos, strict=True):
            known, row, own = self._known.media, row_of_picture, self._known.own_media
            if is_video_item(item):
                known, row, own = self._known.videos, row_of_video, self._known.own_videos
            if known is None or row < 0 or self._has_changed(item, known, row):
                yield item
                continue
            self.present += row < len(known) - own
            self.passed += weight(self._source, item)
            self._annotations.find(item.path)  # so that what it says is not taken for unmatched

    def _has_changed(self, item: Item, known: IdIndex, row: int) -> bool:
        """Return whether a file is another one than that of a row, by size and time; where only time differs, by hash.

        Objects are told by size and time, where their source says these. A file that cannot be read now is taken for
        unchanged: what is known of it is worth more than nothing.
        """
        path = location_of(self._source, item)
        if not isinstance(known, FileIndex):
            return False
        if is_remote(path):
            size, when = item.size_bytes, item.modified_ns
            if size is None or when is None:
                return False
            return not known.looks_same(row, size_bytes=size, modified_us=file_time_us(when))
        try:
            status = os.stat(path)  # noqa: PTH116
            if known.looks_same(row, size_bytes=status.st_size, modified_us=file_time_us(status.st_mtime_ns)):
                return False
            if not known.has_size(row, status.st_size):
                return True
            with open_binary(path) as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
        except OSError:
            return False
        return not known.has_content(row, digest)


def _places(known: IdIndex | None, ids: list[str]) -> list[int]:
    return [-1] * len(ids) if known is None else known.positions(ids).tolist()


def weight(source: Source, item: Item) -> float:
    """Return how much of the work a file is: one for a picture, and for a video by its size."""
    if not is_video_item(item):
        return 1.0
    size = item.size_bytes
    if size is None:
        try:
            size = os.stat(location_of(source, item)).st_size  # noqa: PTH116
        except (OSError, ValueError):
            size = 0
    return max(1.0, size / _VIDEO_BYTES)
