"""Images that are uploaded for a search, and the part of them that is searched for."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import UploadFile

from framedex.api.dataset import Dataset
from framedex.errors import InvalidInput, NotFound
from framedex.media.decode import read_size
from framedex.search.query_images import PRECOMPUTED
from framedex.service.errors import Refusal
from framedex.settings import Settings

_SIDES = ("x", "y", "width", "height")
_FORM = "a bounding box is JSON with x, y, width and height as shares of the image, 0 to 1, or X,Y,W,H in pixels"


def check_encoder(dataset: Dataset) -> None:
    """Check that images can be compared with the media of a dataset.

    Raises:
        NotIndexed: the dataset has no index yet.
        Refusal: the dataset brought its own embeddings.
    """
    if dataset.embedding_config.encoder == PRECOMPUTED:
        raise Refusal(
            400,
            "This dataset brought its own embeddings, so other images cannot be compared with its media: search by a "
            "media id",
        )


def read_query(file: UploadFile, max_bytes: int) -> bytes:
    """Return the content of an uploaded image.

    Raises:
        Refusal: it is larger than the limit.
    """
    data = file.file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise Refusal(413, "The image is too large")
    return data


def pixel_box(text: str | None, size: Callable[[], tuple[int, int]]) -> tuple[float, float, float, float] | None:
    """Return a bounding box in pixels: x, y, width and height; None without one.

    Args:
        text: four numbers in pixels with commas between them, or JSON with ``x, y, width, height`` as shares of the
            image.
        size: returns the width and the height of the image, and may raise.

    Raises:
        InvalidInput: the text is no box.
    """
    if not text:
        return None
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else text.split(",")
        numbers = [float(each) for each in (_shares(value) if isinstance(value, dict) else value)]
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(f"{_FORM}, not {text!r}") from None
    if len(numbers) != len(_SIDES):
        raise InvalidInput(f"{_FORM}, not {text!r}")
    x, y, width, height = numbers
    if not isinstance(value, dict):
        return x, y, width, height
    if not all(0 <= each <= 1 for each in numbers):
        raise InvalidInput(f"{_FORM}, not {text!r}")
    across, down = size()
    return x * across, y * down, width * across, height * down


def size_of_upload(data: bytes, settings: Settings) -> tuple[int, int]:
    """Return the width and the height of an uploaded image.

    Raises:
        CannotDecode: the data is no image.
    """
    return read_size(data, max_pixels=settings.max_pixels)


def size_of_item(dataset: Dataset, media_id: str) -> tuple[int, int]:
    """Return the width and the height of a media item.

    Raises:
        NotFound: there is no such item, or it was not decoded.
    """
    item = dataset.media_item(media_id)
    if item.width is None or item.height is None:
        raise NotFound(f"media {media_id!r} was not decoded")
    return item.width, item.height


def _shares(value: dict[str, Any]) -> list[Any]:
    return [value.get(side) for side in _SIDES]
