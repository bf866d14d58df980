"""Selection of the files of a source that are new to a dataset, or have changed since they were added."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress, islice

from framedex.annotations.label_index import Annotations
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.regular_files import open_binary
from framedex.errors import Forbidden
from framedex.jobs.ingest.decoding import Places, is_video_item
from framedex.jobs.ingest.placement import SourcePlacement
from framedex.jobs.ingest.upload_names import UploadNames
from framedex.media.remote import is_remote
from framedex.media.sources import Item, Source
from framedex.storage.file_index import FileIndex
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import file_time_us

_LOOKUP_BATCH = 1024  # ids per lookup
_VIDEO_BYTES = 2**18  # bytes of a video that take as long as an image


@dataclass(frozen=True)
class ExistingRows:
    """Rows that the tables of media and videos have before an ingestion.

    Attributes:
        media: rows of the media table; None if there is no table.
        videos: rows of the table of videos; None if there is no table.
        resumed_media, resumed_videos: number of last rows that an earlier run of the same ingestion wrote.
    """

    media: IdIndex | None = None
    videos: IdIndex | None = None
    resumed_media: int = 0
    resumed_videos: int = 0

    def before(self, *, of_videos: bool) -> tuple[IdIndex | None, int]:
        """Return the rows of images or of videos, and how many of the first ones were there before the ingestion."""
        index, resumed = (self.videos, self.resumed_videos) if of_videos else (self.media, self.resumed_media)
        return index, 0 if index is None else len(index) - resumed

    def is_resumed_frame(self, identifier: str) -> bool:
        """Return whether an earlier run of the ingestion wrote the frame with an id."""
        if self.media is None or not self.resumed_media:
            return False
        return int(self.media.positions([identifier])[0]) >= len(self.media) - self.resumed_media


class ChangedFiles:
    """Files of a source that are new or have changed, in the source's order. They can be iterated once.

    They have the labels and captions of the annotations beside those of the source. A known file that may not be read
    any more counts as unchanged. Uploaded files have their names in the dataset; see :class:`UploadNames`.

    Attributes:
        names: the names of uploaded files; None for another source.
        present: number of files so far that the dataset already has.
        ambiguous: number of files so far that got no annotation, because another file of the upload has their name.
        passed: weight of the files so far that are not read, including those of an earlier run of the ingestion.
    """

    def __init__(
        self,
        source: Source,
        annotations: Annotations,
        dataset_id: str,
        placement: SourcePlacement,
        existing: ExistingRows,
        allowed: AllowedFolders | None = None,
    ) -> None:
        self._source, self._annotations, self._dataset_id = source, annotations, dataset_id
        self._places = Places.of(source)
        self._placement, self._existing, self._allowed = placement, existing, allowed
        self.present, self.ambiguous, self.passed = 0, 0, 0.0
        self.names: UploadNames | None = None

    def __iter__(self) -> Iterator[Item]:
        """Yield the files to read."""
        items = self._source.items()
        while group := list(islice(items, _LOOKUP_BATCH)):
            yield from self._changed(self._named(group))

    def _named(self, group: list[Item]) -> list[Item]:
        """Return files with the names that uploaded ones get in the dataset, without those whose content is known."""
        uploaded = [each for each in group if each.digest is not None]
        if not uploaded:
            return group
        if self.names is None:
            every = (each for each in self._source.items() if each.digest is not None)
            self.names = UploadNames(every, self._id_of)
        known = {
            item.digest
            for of_videos in (False, True)
            for item in self._known([each for each in uploaded if is_video_item(each) is of_videos], of_videos)
        }
        named = list[Item]()
        for item in group:
            if item.digest is None:
                named.append(item)
                continue
            annotation = self._annotations.find(item.path)  # so that it does not count as unmatched
            if item.digest in known:
                self.present += 1
                self.passed += weight(self._source, item)
                continue
            self.ambiguous += self.names.is_repeated(item.path) and annotation != ((), None)
            index, rows = self._existing.before(of_videos=is_video_item(item))
            named.append(replace(item, path=self.names.place(item, index, rows)))
        return named

    def _known(self, items: list[Item], of_videos: bool) -> list[Item]:
        """Return the uploaded files whose content was uploaded before."""
        index, rows = self._existing.before(of_videos=of_videos)
        if not items or not isinstance(index, FileIndex):
            return []
        return list(
            compress(items, index.have_contents([each.digest or b"" for each in items], rows, self._placement.uploads))
        )

    def _id_of(self, item: Item, name: str) -> str:
        return self._placement.of(item).media_id(self._dataset_id, name)

    def _changed(self, group: list[Item]) -> Iterator[Item]:
        if self._existing.media is None and self._existing.videos is None:
            yield from map(self._annotated, group)
            return
        ids = [self._placement.of(item).media_id(self._dataset_id, item.path) for item in group]
        media, videos = (_row_numbers(existing, ids) for existing in (self._existing.media, self._existing.videos))
        for item, row_of_image, row_of_video in zip(group, media, videos, strict=True):
            existing, row, resumed = self._existing.media, row_of_image, self._existing.resumed_media
            if is_video_item(item):
                existing, row, resumed = self._existing.videos, row_of_video, self._existing.resumed_videos
            if existing is None or row < 0 or self._has_changed(item, existing, row):
                yield self._annotated(item)
                continue
            self.present += row < len(existing) - resumed
            self.passed += weight(self._source, item)
            self._annotations.find(item.path)  # so that its annotation does not count as unmatched

    def _annotated(self, item: Item) -> Item:
        path = item.path if self.names is None else self.names.sources.get(item.path, item.path)
        labels, caption = self._annotations.find(path)
        if not labels and caption is None:
            return item
        return replace(item, labels=tuple(dict.fromkeys(item.labels + labels)), caption=item.caption or caption)

    def _has_changed(self, item: Item, existing: IdIndex, row: int) -> bool:
        """Return whether a file differs from its row: by size and time, and by hash if only the time differs.

        Remote objects are compared by size and time, if their source gives both. A file that cannot be read counts as
        unchanged, so that its row is not lost.
        """
        path = self._places.location(item)
        if not isinstance(existing, FileIndex):
            return False
        if is_remote(path):
            size, modified_ns = item.size_bytes, item.modified_ns
            if size is None or modified_ns is None:
                return False
            return not existing.looks_same(row, size_bytes=size, modified_us=file_time_us(modified_ns))
        try:
            if self._allowed is not None and not self._allowed.contains(path):
                return False
            status = os.stat(path)  # noqa: PTH116
            if existing.looks_same(row, size_bytes=status.st_size, modified_us=file_time_us(status.st_mtime_ns)):
                return False
            if not existing.has_size(row, status.st_size):
                return True
            with within(self._allowed), open_binary(path) as file:
                digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
        except (OSError, Forbidden):
            return False
        return not existing.has_content(row, digest)


def _row_numbers(existing: IdIndex | None, ids: list[str]) -> list[int]:
    return [-1] * len(ids) if existing is None else existing.positions(ids).tolist()


def weight(source: Source, item: Item) -> float:
    """Return the weight of a file in the progress: 1 for an image; for a video by its size."""
    if not is_video_item(item):
        return 1.0
    size = item.size_bytes
    if size is None:
        try:
            size = os.stat(Places.of(source).location(item)).st_size  # noqa: PTH116
        except (OSError, ValueError):
            size = 0
    return max(1.0, size / _VIDEO_BYTES)
