"""Thumbnails: small JPEGs of images, and the folder that caches them."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.core.atomic import write_atomic
from framedex.core.ids import is_id
from framedex.core.regular_files import read_bytes
from framedex.errors import CannotDecode, NotFound
from framedex.images.reading import check_media_id, read_image
from framedex.media.budget import HeldOn, shared_budget
from framedex.media.decode import decode
from framedex.settings import Settings
from framedex.storage.id_index import IdIndex
from framedex.storage.media import Media, file_uri

SIZE = 256
"""Default length of the longer side in pixels."""
FULL_SIZE = 65_000
"""A length of the longer side that nearly no image has; a JPEG has at most 65,535 pixels on a side."""
MOST_BYTES = 2**24
"""The maximum size of a file that is read as a cached thumbnail; thumbnails are far smaller."""
MOST_PIXELS = 2**24
"""The maximum number of pixels of a cached thumbnail that is decoded."""
_CHECKSUM_BYTES = 16
_ID_LENGTH = 36
_JPEG_START, _JPEG_END = b"\xff\xd8", b"\xff\xd9"


def thumbnail(pixels: Pixels, *, size: int = SIZE, quality: int = 80) -> bytes:
    """Return a JPEG whose longer side has at most *size* pixels.

    Args:
        pixels: uint8, shape (H, W, 3), RGB.
        size: length of the longer side in pixels; smaller images are not enlarged.
        quality: JPEG quality, 0 to 100.
    """
    height, width = pixels.shape[:2]
    scale = min(1.0, size / max(height, width))
    if scale < 1:
        target = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = cv2.resize(pixels, target, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    ok, encoded = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert ok, "JPEG encoding of an RGB array cannot fail"
    return encoded.tobytes()


def thumbnail_path(folder: Path, media_id: str, size: int = SIZE) -> Path:
    """Return the path of a thumbnail in the cache."""
    return folder / _name(media_id, size)


def _name(media_id: str, size: int) -> str:
    return f"{media_id[:2]}/{media_id}-{size}.jpg"


def thumbnail_uri(folder: Path, media_id: str) -> str | None:
    """Return the URI of a cached thumbnail; None if it is not cached or its file is empty."""
    # A page asks for hundreds of thumbnails; pathlib would take longer than the file system.
    path = os.path.join(folder, _name(media_id, SIZE))  # noqa: PTH118
    try:
        return file_uri(path) if os.stat(path).st_size > _CHECKSUM_BYTES else None  # noqa: PTH116
    except OSError:
        return None


def remove_thumbnails(folder: Path, media_ids: Iterable[str] | None = None) -> None:
    """Remove thumbnails from the cache, for example of media whose images have changed.

    Args:
        folder: the cache.
        media_ids: the media; None for all.
    """
    if media_ids is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for media_id in media_ids:
        for path in (folder / media_id[:2]).glob(f"{media_id}-*.jpg"):
            path.unlink(missing_ok=True)


def remove_strange_thumbnails(folder: Path, known: IdIndex | None) -> None:
    """Remove thumbnails of media that a dataset does not have, before media with the same ids are added.

    Args:
        folder: the cache.
        known: the ids of the dataset's media; None if it has none.
    """
    cached = sorted({path.name[:_ID_LENGTH] for path in folder.glob("??/*.jpg")})
    if cached:
        has = [False] * len(cached) if known is None else known.contains(cached).tolist()
        remove_thumbnails(folder, [each for each, is_known in zip(cached, has, strict=True) if not is_known])


def read_thumbnail(
    media: Media, media_id: str, settings: Settings, *, folder: Path, keep: bool, size: int = SIZE
) -> bytes:
    """Return a thumbnail of a media item from the cache; make it if it is not cached or its file is damaged.

    Args:
        media: the dataset's media.
        media_id: the item.
        settings: limits.
        folder: the cache.
        keep: whether to cache a thumbnail that is made.
        size: length of the longer side in pixels.

    Raises:
        NotFound: the dataset has no such item, or the file is missing.
        CannotDecode: the file is not an image.
    """
    check_media_id(media_id)  # it becomes part of a path
    if (cached := cached_thumbnail(folder, media_id, size)) is not None:
        return cached
    path = thumbnail_path(folder, media_id, size)
    with HeldOn(shared_budget(settings.pixels_in_flight)) as budget:
        image = read_image(media, media_id, settings, detail=size, budget=budget)
        data = thumbnail(image.pixels, size=size)
    if keep:
        with suppress(OSError):  # without a writable cache, thumbnails are made each time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data + _checksum(data))
    return data


def cached_thumbnail(folder: Path, media_id: str, size: int = SIZE) -> bytes | None:
    """Return a thumbnail from the cache; None if it is not there, or its file is damaged."""
    return _read_cached(thumbnail_path(folder, media_id, size)) if is_id(media_id) else None


def _read_cached(path: Path) -> bytes | None:
    """Return the JPEG in a file of the cache; None if the file is missing or damaged."""
    try:
        return verified(read_bytes(path, MOST_BYTES))
    except OSError:
        return None


def verified(content: bytes) -> bytes | None:
    """Return the JPEG in the content of a cached thumbnail; None if the content is damaged."""
    data, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if data and checksum == _checksum(data):
        return data
    return content if _is_plain_jpeg(content) else None


def _is_plain_jpeg(content: bytes) -> bool:
    """Return whether a file of an older version, which wrote no checksum, is a whole JPEG."""
    if content[:2] != _JPEG_START or content[-2:] != _JPEG_END:
        return False
    try:
        decode(content, max_pixels=MOST_PIXELS)
    except CannotDecode:
        return False
    return True


def _checksum(data: bytes) -> bytes:
    """Return the hash that is appended to a cached JPEG; image readers ignore bytes after the end marker."""
    return hashlib.blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


def read_thumbnails(
    media: Media, media_ids: Sequence[str], settings: Settings, *, folder: Path, keep: bool, size: int
) -> list[bytes | None]:
    """Return thumbnails, None for images that cannot be shown; arguments as for :func:`read_thumbnail`."""
    missing = [each for each in media_ids if is_id(each) and not thumbnail_path(folder, each, size).exists()]
    looked_up = media.with_row_ids(missing) if missing else media
    return [_thumbnail_or_none(looked_up, each, settings, folder=folder, keep=keep, size=size) for each in media_ids]


def _thumbnail_or_none(
    media: Media, media_id: str, settings: Settings, *, folder: Path, keep: bool, size: int
) -> bytes | None:
    try:
        return read_thumbnail(media, media_id, settings, folder=folder, keep=keep, size=size)
    except (NotFound, CannotDecode):
        return None
