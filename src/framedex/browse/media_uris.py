"""The URIs of media in results: those of this machine's files, or those of whoever serves them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from framedex.images.thumbnails import thumbnail_uri
from framedex.storage.media import Media
from framedex.storage.objects import object_uri

MakeUri = Callable[[str, str], str]
"""Returns a URI, given a media id, and ``file``, ``thumbnail`` or ``video``."""


class UrisOfItem(NamedTuple):
    """The URIs of an item.

    Attributes:
        media, thumbnail: of the item.
        image: of the image that an object is on; else that of the item.
        video: of the video of a frame; None for images.
        original: the location of the file, as far as the reader may know it.
    """

    media: str
    thumbnail: str
    image: str
    video: str | None
    original: str


class MediaUris(Protocol):
    """A source of URIs of items."""

    def of(self, media: Media, row: Mapping[str, Any]) -> UrisOfItem:
        """Return the URIs of a row with the columns of :attr:`Media.location`."""


class LocalUris:
    """URIs of the files of this machine, ``file://…``, and of objects in stores.

    Args:
        thumbnails: the folder of the cached thumbnails.
    """

    def __init__(self, thumbnails: Path) -> None:
        self._thumbnails = thumbnails

    def of(self, media: Media, row: Mapping[str, Any]) -> UrisOfItem:
        """Return the URIs of a row; a thumbnail that is not cached has that of its item."""
        image = media.uri_of(row)
        uri = image if media.parents is None else object_uri(media, row)
        video = None if row.get("kind") is None else media.uri_of({**row, "frame_time_s": None})
        return UrisOfItem(uri, thumbnail_uri(self._thumbnails, row["media_id"]) or uri, image, video, image)


class ServedUris:
    """URIs under which a server gives the files to its clients, who may be on other machines.

    Args:
        make: returns a URI.
    """

    def __init__(self, make: MakeUri) -> None:
        self._make = make

    def of(self, media: Media, row: Mapping[str, Any]) -> UrisOfItem:
        """Return the URIs of a row; its original location is the path within the source."""
        own, make, is_object = row["media_id"], self._make, media.parents is not None
        image_id = row["parent_id"] if is_object else own
        file = make(own, "file")
        return UrisOfItem(
            media=file,
            thumbnail=make(own, "thumbnail"),
            image=make(image_id, "file") if is_object else file,
            video=None if row.get("kind") is None else make(image_id, "video"),
            original=media.source_path({**row, "frame_time_s": None} if is_object else row),
        )
