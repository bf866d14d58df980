"""Files of media as responses: thumbnails, images as they are or as JPEGs, and videos."""

import hashlib
import io
from collections.abc import Mapping
from enum import IntEnum
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

import anyio
from fastapi import Request, Response

from framedex.api.dataset import Dataset
from framedex.errors import CannotDecode, NotFound
from framedex.media.metadata_removal import without_metadata
from framedex.operations.originals import MediaFile
from framedex.service.errors import Refusal
from framedex.service.files import HOUR, IMMUTABLE, content_response


class ThumbnailSize(IntEnum):
    """Size of thumbnails that is served; others would only fill the cache."""

    SMALL = 128
    MEDIUM = 256
    LARGE = 512
    WIDE = 1024


FileFormat = Literal["original", "jpeg"]
_SHOWN: Mapping[str, str] = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "avif": "image/avif",
}
"""The content types of the formats that browsers show; none of them can hold a script."""
_OTHER: Mapping[str, str] = {"tiff": "image/tiff", "heif": "image/heif", "jpeg2000": "image/jp2"}
_STRIPPED = frozenset({"jpeg", "png", "webp", "gif", "bmp"})
"""The formats whose metadata can be removed without decoding the image."""
_OF_VIDEOS: Mapping[str, str] = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".avi": "video/x-msvideo",
    ".wmv": "video/x-ms-wmv",
    ".flv": "video/x-flv",
    ".3g2": "video/3gpp2",
    ".3gp": "video/3gpp",
    ".asf": "video/x-ms-asf",
    ".m2ts": "video/mp2t",
    ".m2v": "video/mpeg",
    ".mpe": "video/mpeg",
    ".mpeg": "video/mpeg",
    ".mpg": "video/mpeg",
    ".mts": "video/mp2t",
    ".ogv": "video/ogg",
    ".vob": "video/mpeg",
}
_BYTES = "application/octet-stream"
_MISSING = "Media file not found"
_NOT_SHOWN = "The media file cannot be shown as an image"
_NOT_REMOVED = "The metadata of this {} cannot be removed; format=jpeg has none"


async def thumbnail_response(
    request: Request, heavy: anyio.CapacityLimiter, dataset: Dataset, media_id: str, size: int, version: str | None
) -> Response:
    """Return a response with a thumbnail; one that must be made waits for a place.

    Args:
        request: the request.
        heavy: the places.
        dataset: the dataset.
        media_id: the media item or the object.
        size: the maximum length of the longer side in pixels.
        version: what the client put into the URI so that it changes with the image; None for nothing.

    Raises:
        Refusal: the item has no image that can be shown.
    """
    data = await anyio.to_thread.run_sync(dataset.cached_thumbnail, media_id, size)
    if data is None:
        async with heavy:
            data = await anyio.to_thread.run_sync(_made, partial(dataset.thumbnail, media_id, size))
    return _jpeg(request, data, media_id, cache=HOUR if version is None else IMMUTABLE)


async def image_response(
    request: Request,
    heavy: anyio.CapacityLimiter,
    dataset: Dataset,
    media_id: str,
    file_format: FileFormat | None,
    *,
    strip_metadata: bool,
) -> Response:
    """Return a response with the image of an item: its file as it is, or a JPEG that is made of it.

    Args:
        request: the request.
        heavy: the places, for one of which it waits if an image is made.
        dataset: the dataset.
        media_id: the media item or the object.
        file_format: ``original`` or ``jpeg``; None for the file as it is if browsers show its format. Frames and
            objects are parts of files, and always JPEGs.
        strip_metadata: whether the file is sent without what it says about the image.

    Raises:
        Refusal: the item has no image that can be shown, or not in that way.
    """
    file = await anyio.to_thread.run_sync(_opened, dataset, media_id)
    try:
        if _is_sent_as_it_is(file, file_format, strip_metadata=strip_metadata):
            return await anyio.to_thread.run_sync(partial(_original, request, file, strip_metadata=strip_metadata))
    except BaseException:
        file.close()
        raise
    file.close()
    async with heavy:
        data = await anyio.to_thread.run_sync(_made, partial(dataset.jpeg, media_id))
    return _jpeg(request, data, file.name, cache=HOUR)


def video_response(request: Request, dataset: Dataset, media_id: str) -> Response:
    """Return a response with the video of a frame.

    Raises:
        Refusal: the item is no frame, or the video is not readable.
    """
    file = _opened(dataset, media_id)
    if not file.is_video or file.error is not None:
        file.close()
        if not file.is_video:
            raise Refusal(404, "Video not found")
        raise Refusal(415, "The video cannot be read", fault=file.fault)
    media_type = _OF_VIDEOS.get(PurePosixPath(file.name).suffix.lower(), _BYTES)
    return _file(request, file, media_type)


def _opened(dataset: Dataset, media_id: str) -> MediaFile:
    try:
        return dataset.open_file(media_id)
    except NotFound:
        raise Refusal(404, _MISSING) from None


def _made(make: partial[bytes]) -> bytes:
    """Return an image that is made, with errors in the words of the interface, which name no path of the server."""
    try:
        return make()
    except NotFound:
        raise Refusal(404, _MISSING) from None
    except CannotDecode as error:
        raise Refusal(415, _NOT_SHOWN, fault=error.fault) from None


def _is_sent_as_it_is(file: MediaFile, file_format: FileFormat | None, *, strip_metadata: bool) -> bool:
    if file.error is not None:
        raise Refusal(415, _NOT_SHOWN, fault=file.fault)
    if file.is_video or file.is_part or file_format == "jpeg":
        return False
    can_strip = file.format in _STRIPPED or not strip_metadata
    if file_format == "original" and not can_strip:
        raise Refusal(415, _NOT_REMOVED.format("format"), fault="not_supported")
    return can_strip and (file_format == "original" or (file.format in _SHOWN and not file.has_range))


def _original(request: Request, file: MediaFile, *, strip_metadata: bool) -> Response:
    media_type = _SHOWN.get(file.format or "") or _OTHER.get(file.format or "", _BYTES)
    if not strip_metadata:
        return _file(request, file, media_type)
    try:
        data = without_metadata(file.content.read())
    except CannotDecode as error:
        raise Refusal(415, _NOT_REMOVED.format("file"), fault=error.fault) from None
    file.close()
    etag = f"{_etag(file)}-stripped"
    return content_response(request, io.BytesIO(data), size=len(data), media_type=media_type, etag=etag, name=file.name)


def _file(request: Request, file: MediaFile, media_type: str) -> Response:
    return content_response(
        request,
        file.content,
        size=file.size_bytes,
        media_type=media_type,
        etag=_etag(file),
        name=file.name,
        owner=file,
    )


def _etag(file: MediaFile) -> str:
    """Return what identifies the bytes of a file: hash, format and size, and its time, in case that it has changed."""
    digest = "" if file.content_hash is None else file.content_hash.hex()
    modified = "" if file.modified_s is None else f"{round(file.modified_s * 1e6):x}"
    return f"{digest}-{file.format or ''}-{file.size_bytes:x}-{modified}"


def _jpeg(request: Request, data: bytes, name: str, *, cache: str) -> Response:
    return content_response(
        request,
        io.BytesIO(data),
        size=len(data),
        media_type="image/jpeg",
        etag=hashlib.blake2b(data, digest_size=16).hexdigest(),
        name=f"{PurePosixPath(name).stem}.jpg",
        cache=cache,
    )
