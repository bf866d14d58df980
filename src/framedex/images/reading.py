"""Images of a dataset's media by id, at full size."""

from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core.ids import is_id
from framedex.errors import CannotDecode, NotFound
from framedex.media.budget import Budget, shared_budget
from framedex.media.decoded_image import DecodedImage
from framedex.media.files import Reader
from framedex.media.row_images import read_row
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import DAMAGED, VIDEO


def check_media_id(media_id: Any) -> None:
    """Check that a value has the form of a media id.

    Raises:
        NotFound: it has not.
    """
    if not is_id(media_id):
        raise NotFound(f"no media {media_id!r:.80} in this dataset")


def read_image(
    media: Media, media_id: str, settings: Settings, *, detail: int | None = None, budget: Budget | None = None
) -> DecodedImage:
    """Return the image of a media item.

    Args:
        media: the dataset's media.
        media_id: the item.
        settings: limits.
        detail: minimum length of the shorter side in pixels; None for full size.
        budget: a limit to wait for before decoding; by default that of the process, until the image is decoded.

    Raises:
        NotFound: the dataset has no such item, or the file is missing.
        CannotDecode: the file is not an image, or the video no longer has this frame.
        Unavailable: the item is in a bucket that cannot be reached.
    """
    check_media_id(media_id)
    row = media.find(media_id, media.location)
    if row.get("kind") == VIDEO:
        found = media.find(media_id, [name for name in ("error", "fault") if name in media.table.schema.names])
        fault = found.get("fault") or DAMAGED
        words = "is damaged" if fault == DAMAGED else "cannot be shown"
        raise CannotDecode(f"the video {media.shown_path(row)!r} {words}: {found['error']}", fault)
    location = media.location_of(row)
    if location is None:
        raise NotFound(f"{row['path']!r} is neither a local file nor an object in a bucket")
    try:
        budget = budget or shared_budget(settings.pixels_in_flight)
        return read_row(row, location, Reader(settings, media.role_of(row)), settings, detail, budget)
    except CannotDecode as error:
        raise CannotDecode(f"{media.shown_path(row)!r} cannot be shown: {error}", error.fault) from error


def read_media_pixels(media: Media, media_id: str, settings: Settings) -> npt.NDArray[np.uint8]:
    """Return the pixels of a media item: uint8, shape (H, W, 3), RGB, upright."""
    return read_image(media, media_id, settings).pixels
