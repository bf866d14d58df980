"""Images of rows: files, frames of videos, and crops of objects, read by their location without any table."""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode, NotFound
from framedex.media.budget import Budget, reserve_pixels
from framedex.media.decode import decode
from framedex.media.decoded_image import DecodedImage, decoded, subsample
from framedex.media.display_range import Range
from framedex.media.files import Reader
from framedex.media.video import Video
from framedex.settings import Settings

_BOX = ("box_x", "box_y", "box_width", "box_height")  # the columns of tables of objects


def read_row(
    row: Mapping[str, Any],
    location: str,
    reader: Reader,
    settings: Settings,
    detail: int | None = None,
    budget: Budget | None = None,
) -> DecodedImage:
    """Return the image of a row: a file, a frame of a video, or the crop of an object.

    Args:
        row: with the columns of :attr:`framedex.storage.media.Media.location`.
        location: path or URI of the file.
        reader: reads the file.
        settings: limits.
        detail: minimum length of the shorter side in pixels; None for full size. Crops are always at full size.
        budget: limit of the pixels that are decoded at the same time.

    Raises:
        NotFound: the file is missing.
        CannotDecode: the file is not an image, or the video no longer has this frame.
        Unavailable: the file is in a bucket that cannot be reached.
    """
    if row.get("box_x") is not None:
        x, y, width, height = (row[name] for name in _BOX)
        parent = {name: value for name, value in row.items() if name not in _BOX}
        return crop_image(read_row(parent, location, reader, settings, budget=budget), x, y, width, height)
    if row.get("frame_number") is not None:
        with open_video(location, reader, settings) as video:
            return read_frame(video, row, detail, budget)
    try:
        _, data = reader.read(location)
    except CannotDecode as error:
        raise NotFound(f"the file {location!r}: {error}") from error
    shown = range_of(row)
    return decode(data, max_pixels=settings.max_pixels, detail=detail, budget=budget, display_range=shown)


def range_of(row: Mapping[str, Any]) -> Range | None:
    """Return the values that are shown black and white in the image of a row, as stored; None for none."""
    return None if row.get("shown_from") is None else (row["shown_from"], row["shown_to"])


@contextmanager
def open_video(location: str, reader: Reader, settings: Settings, threads: int = 1) -> Iterator[Video]:
    """Yield the video at a location, decoded by *threads* threads.

    Raises:
        NotFound: the file is missing.
        CannotDecode: the file is not a video.
        Unavailable: the file is in a bucket that cannot be reached.
    """
    with ExitStack() as opened:
        try:
            _, file = opened.enter_context(reader.open(location))
        except CannotDecode as error:
            raise NotFound(f"the video {location!r}: {error}") from error
        yield opened.enter_context(Video(file, max_pixels=settings.max_pixels, threads=threads))


def read_frame(video: Video, row: Mapping[str, Any], detail: int | None, budget: Budget | None = None) -> DecodedImage:
    """Return the frame of a row. Frames of one video are read fastest in ascending order of their numbers.

    Args:
        video: the open video.
        row: with ``frame_number`` and ``frame_time_s``.
        detail: minimum length of the shorter side in pixels; None for full size.
        budget: limit of the pixels that are decoded at the same time.

    Raises:
        CannotDecode: the video no longer has this frame.
    """
    video.find(row["frame_number"], row["frame_time_s"])
    with reserve_pixels(budget, video.width * video.height):
        return decoded(video.pixels(), detail=detail, file_format=video.codec)


def crop_image(image: DecodedImage, x: float, y: float, width: float, height: float) -> DecodedImage:
    """Return all pixels that a bounding box touches, as an image.

    Damage of the image is none of the crop: where the gaps are is unknown.

    Args:
        image: the image at full size.
        x: left edge in pixels.
        y: upper edge in pixels.
        width: in pixels.
        height: in pixels.

    Raises:
        CannotDecode: the box contains no pixel, for example because the image was replaced by a smaller one.
    """
    pixels = cut_out(image.pixels, x, y, width, height)
    down, across = pixels.shape[:2]
    return replace(image, pixels=pixels, sample=subsample(pixels), width=across, height=down, damage=None)


def cut_out(pixels: Pixels, x: float, y: float, width: float, height: float) -> Pixels:
    """Return all pixels that a bounding box touches; the arguments and errors are those of :func:`crop_image`."""
    down, across = pixels.shape[:2]
    left, top = max(math.floor(x), 0), max(math.floor(y), 0)
    right, bottom = min(math.ceil(x + width), across), min(math.ceil(y + height), down)
    if right <= left or bottom <= top:
        box = f"x {x:g}, y {y:g}, width {width:g}, height {height:g}"
        raise CannotDecode(f"the box {box} holds no pixel of an image of {across}×{down}")
    return np.ascontiguousarray(pixels[top:bottom, left:right])


def png(pixels: Pixels) -> bytes:
    """Return pixels as a PNG file, which has them without a loss."""
    is_encoded, data = cv2.imencode(".png", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert is_encoded, "an image of pixels is a PNG"
    return bytes(data.tobytes())
