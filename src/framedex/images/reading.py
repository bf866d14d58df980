"""Pictures of media items, frames of videos too: at full size, and as cached thumbnails."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.atomic import write_atomic
from framedex.errors import CannotDecode, NotFound
from framedex.media.crops import cropped
from framedex.media.decode import Budget, Picture, decode, decoded, reserve_pixels
from framedex.media.files import Reader
from framedex.media.thumbnails import SIZE, thumbnail
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.storage.media import Media, file_uri
from framedex.storage.media_rows import BOX, VIDEO

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SEAL_BYTES = 16
_JPEG_START, _JPEG_END = b"\xff\xd8", b"\xff\xd9"


def read_picture(media: Media, media_id: str, settings: Settings, *, detail: int | None = None) -> Picture:
    """Return a media item's picture.

    Args:
        media: where it is.
        media_id: which.
        settings: limits.
        detail: pixels that the shorter side needs at least; None for all.

    Raises:
        NotFound: there is no such item, or its file is gone.
        CannotDecode: its file is no picture, or its video has no such frame any more.
        Unavailable: it is in a bucket that cannot be reached.
    """
    _check_id(media_id)
    row = media.find(media_id, (*media.location, "error"))
    if row.get("kind") == VIDEO:
        raise CannotDecode(f"the video {media.shown_path(row)!r} has no frames: {row['error']}")
    location = media.location_of(row)
    if location is None:
        raise NotFound(f"{row['path']!r} is neither a local file nor an object in a bucket")
    try:
        return read_row(row, location, Reader(settings, media.role_of(row)), settings, detail)
    except CannotDecode as error:
        raise CannotDecode(f"{media.shown_path(row)!r} cannot be shown: {error}") from error


def read_row(
    row: Mapping[str, Any],
    location: str,
    reader: Reader,
    settings: Settings,
    detail: int | None = None,
    budget: Budget | None = None,
) -> Picture:
    """Return the picture of a media item, given by its row: of a file, a frame of a video, or what is in a box of one.

    Args:
        row: with the columns of :attr:`framedex.storage.media.Media.location`.
        location: of its file.
        reader: reads it.
        settings: limits.
        detail: pixels that the shorter side needs at least; None for all.
        budget: bounds how many pixels are decoded at a time.

    Raises:
        NotFound: its file is gone.
        CannotDecode: its file is no picture, or its video has no such frame any more.
        Unavailable: it is in a bucket that cannot be reached.
    """
    if row.get("box_x") is not None:
        x, y, width, height = (row[name] for name in BOX)
        whole = {name: value for name, value in row.items() if name not in BOX}
        return cropped(read_row(whole, location, reader, settings, budget=budget), x, y, width, height)
    if row.get("frame_number") is not None:
        with opened_video(location, reader, settings) as video:
            return frame_of(video, row, detail, budget)
    try:
        _, data = reader.read(location)
    except CannotDecode as error:
        raise NotFound(f"the file {location!r}: {error}") from error
    return decode(data, max_pixels=settings.max_pixels, detail=detail, budget=budget)


@contextmanager
def opened_video(location: str, reader: Reader, settings: Settings, threads: int = 1) -> Iterator[Video]:
    """Yield the video at a location; *threads* decode it.

    Raises:
        NotFound: its file is gone.
        CannotDecode: its file is no video.
        Unavailable: it is in a bucket that cannot be reached.
    """
    with ExitStack() as opened:
        try:
            _, file = opened.enter_context(reader.open(location))
        except CannotDecode as error:
            raise NotFound(f"the video {location!r}: {error}") from error
        yield opened.enter_context(Video(file, max_pixels=settings.max_pixels, threads=threads))


def frame_of(video: Video, row: Mapping[str, Any], detail: int | None, budget: Budget | None = None) -> Picture:
    """Return the frame that a row names; those of one video are found fastest in the order of their numbers.

    Args:
        video: that the frame is of.
        row: with ``frame_number`` and ``frame_time_s``.
        detail: pixels that the shorter side needs at least; None for all.
        budget: bounds how many pixels are decoded at a time.

    Raises:
        CannotDecode: the video has no such frame any more.
    """
    video.find(row["frame_number"], row["frame_time_s"])
    with reserve_pixels(budget, video.width * video.height):
        return decoded(video.pixels(), detail=detail, file_format=video.codec)


def _check_id(media_id: str) -> None:
    if not isinstance(media_id, str) or _UUID.fullmatch(media_id) is None:
        raise NotFound(f"no media {media_id!r} in this dataset")


def thumbnail_path(folder: Path, media_id: str, size: int = SIZE) -> Path:
    """Return where a thumbnail is cached."""
    return folder / _name(media_id, size)


def _name(media_id: str, size: int) -> str:
    return f"{media_id[:2]}/{media_id}-{size}.jpg"


def forget_thumbnails(folder: Path, media_ids: Iterable[str] | None = None) -> None:
    """Remove the cached thumbnails of media whose pictures are others now; of all by default."""
    if media_ids is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for media_id in media_ids:
        for path in (folder / media_id[:2]).glob(f"{media_id}-*.jpg"):
            path.unlink(missing_ok=True)


def thumbnail_uri(folder: Path, media_id: str) -> str | None:
    """Return the URI of a cached thumbnail; None if there is none yet, or an empty file."""
    # Pages ask for hundreds; as paths of pathlib they would take longer than looking for the files.
    path = os.path.join(folder, _name(media_id, SIZE))  # noqa: PTH118
    try:
        return file_uri(path) if os.stat(path).st_size > _SEAL_BYTES else None  # noqa: PTH116
    except OSError:
        return None


def cached_thumbnail(
    media: Media, media_id: str, settings: Settings, *, folder: Path, keep: bool, size: int = SIZE
) -> bytes:
    """Return a JPEG of a media item, from the cache or made now; one that is damaged there is made again.

    Args:
        media: where it is.
        media_id: which.
        settings: limits.
        folder: the cache.
        keep: whether one that is made now stays there.
        size: pixels of the longer side.

    Raises:
        NotFound: there is no such item, or its file is gone.
        CannotDecode: its file is no picture.
    """
    _check_id(media_id)  # it becomes part of a path
    path = thumbnail_path(folder, media_id, size)
    if (held := _read_cached(path)) is not None:
        return held
    picture = read_picture(media, media_id, settings, detail=size)
    data = thumbnail(picture.pixels, size=size)
    if keep:
        with suppress(OSError):  # a cache that cannot be written only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data + _seal(data))
    return data


def _read_cached(path: Path) -> bytes | None:
    try:
        return unsealed(path.read_bytes())
    except OSError:
        return None


def unsealed(content: bytes) -> bytes | None:
    """Return the JPEG in the content of a cached thumbnail; None where it is not as it was written."""
    data, seal = content[:-_SEAL_BYTES], content[-_SEAL_BYTES:]
    if data and seal == _seal(data):
        return data
    is_unsealed = content[:2] == _JPEG_START and content[-2:] == _JPEG_END  # as they once were written
    return content if is_unsealed else None


def _seal(data: bytes) -> bytes:
    """Return the hash that follows a JPEG in the cache, where readers of images do not look."""
    return hashlib.blake2b(data, digest_size=_SEAL_BYTES).digest()


def thumbnails(
    media: Media, media_ids: Sequence[str], settings: Settings, *, folder: Path, keep: bool, size: int
) -> list[bytes | None]:
    """Return thumbnails, None where a picture cannot be shown; arguments as for :func:`cached_thumbnail`."""
    missing = [each for each in media_ids if _UUID.fullmatch(each) and not thumbnail_path(folder, each, size).exists()]
    looked_up = media.with_row_ids(missing) if missing else media
    return [_thumbnail_or_none(looked_up, each, settings, folder=folder, keep=keep, size=size) for each in media_ids]


def _thumbnail_or_none(
    media: Media, media_id: str, settings: Settings, *, folder: Path, keep: bool, size: int
) -> bytes | None:
    try:
        return cached_thumbnail(media, media_id, settings, folder=folder, keep=keep, size=size)
    except (NotFound, CannotDecode):
        return None


def full_pixels(media: Media, media_id: str, settings: Settings) -> npt.NDArray[np.uint8]:
    """Return uint8, shape (H, W, 3), RGB, upright."""
    return read_picture(media, media_id, settings).pixels
