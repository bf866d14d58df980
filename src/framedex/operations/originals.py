"""Files of media items as they are: opened through the one door to bytes."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, BinaryIO

from framedex.core.lru_cache import LruCache
from framedex.errors import CannotDecode, Fault, NotFound
from framedex.export.links import check_inside
from framedex.media.files import Reader
from framedex.media.row_images import range_of
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import DAMAGED

_MISSING = "Media file not found"
_checked = LruCache[tuple[Any, ...], bool](100_000)
"""Files that were checked to be inside of their source, or to be the indexed image, as long as they stay the same."""


@dataclass(frozen=True)
class MediaFile:
    """An open file of a media item: an image, or the video of a frame; also a context manager, which closes it.

    Attributes:
        name: the last part of its path.
        format: the format of the image, such as ``jpeg``; of a video, the container or the codec; None if unknown.
        is_video: whether it is a video.
        is_part: whether the item is only a part of it: a frame, or an object.
        has_range: whether its values are not shown as they are, but by a range.
        error: the reason why it could not be decoded; None if it could.
        fault: the kind of that reason.
        content_hash: BLAKE2b of the content that was indexed, 16 bytes; None if that is unknown.
        modified_s: the time of the last change in seconds since 1970; None if unknown.
        size_bytes: the size.
        content: the open file, at its start.
    """

    name: str
    format: str | None
    is_video: bool
    is_part: bool
    has_range: bool
    error: str | None
    fault: Fault | None
    content_hash: bytes | None
    modified_s: float | None
    size_bytes: int
    content: BinaryIO
    _opened: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def __enter__(self) -> "MediaFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_original(media: Media, media_id: str, settings: Settings) -> MediaFile:
    """Open the file of a media item, or the one that an object is in.

    Args:
        media: the media, or the objects, that contain the item.
        media_id: the item.
        settings: limits, allowed folders, and the access to buckets.

    Raises:
        NotFound: there is no such item, or its file is gone, may not be read, or lies outside of its source without
            being the indexed file.
        Unavailable: the file is in a bucket that cannot be reached.
    """
    of_faults = [name for name in ("error", "fault") if name in media.table.schema.names]
    row = media.find(media_id, [*media.location, "format", *of_faults])
    location = media.location_of(row)
    if location is None:
        raise NotFound(_MISSING)
    with ExitStack() as opened:
        try:
            reader = Reader(settings, media.role_of(row))
            modified_s, content = opened.enter_context(reader.open(location, in_parts=True))
            _check(content, location, media, row, settings)
        except CannotDecode:
            raise NotFound(_MISSING) from None
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        return MediaFile(
            name=str(row["path"]).rstrip("/").rpartition("/")[2],
            format=row["format"],
            is_video=row.get("kind") is not None,
            is_part=media.parents is not None or row.get("frame_number") is not None,
            has_range=range_of(row) is not None,
            error=row["error"],
            fault=None if row["error"] is None else row.get("fault") or DAMAGED,
            content_hash=row["content_hash"],
            modified_s=modified_s,
            size_bytes=size,
            content=content,
            _opened=opened.pop_all(),
        )


def _check(content: BinaryIO, location: str, media: Media, row: Mapping[str, Any], settings: Settings) -> None:
    """Check that a link leads to no other file of the machine; while it stays the same, a file is checked once.

    Raises:
        CannotDecode: it does.
    """
    try:
        status = os.fstat(content.fileno())
    except OSError:  # an object
        return
    root = None if row["root"] is None else media.roots[row["root"]]
    folder = root if root is not None and os.path.isabs(root) else None  # noqa: PTH117 - any bytes
    key = (
        location, folder, row["content_hash"], row["error"],
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns,
    )  # fmt: skip
    if _checked.get(key) is None:
        check_inside(content, location, folder, row, settings)
        _checked.put(key, True)
