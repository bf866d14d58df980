"""Video frames as JPEG files of an export."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO

import cv2

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media.files import Reader
from framedex.media.video import Video
from framedex.settings import Settings

_QUALITY = 95


class Frames:
    """A decoder of video frames. It opens a video once for frames in ascending order.

    Args:
        settings: limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._opened = settings, ExitStack()
        self._location: str | None = None
        self._video: Video | None = None
        self._modified_s: float | None = None

    def jpeg(
        self,
        reader: Reader,
        location: str,
        number: int,
        time_s: float,
        *,
        check: Callable[[BinaryIO], None] = lambda _file: None,
    ) -> tuple[float | None, bytes]:
        """Return (time of the video's last change in seconds since 1970, the frame as JPEG).

        Args:
            reader: reads the video.
            location: the path or URI of the video.
            number: the frame number.
            time_s: the frame's presentation time.
            check: called with the video's file when it is opened; raises CannotDecode to reject it.

        Raises:
            CannotDecode: the video cannot be read, or no longer has the frame.
        """
        modified_s, frame = self.pixels(reader, location, number, time_s, check=check)
        pixels = cv2.cvtColor(frame, cv2.COLOR_RGB2BGR)
        is_encoded, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
        if not is_encoded:
            raise CannotDecode(f"frame {number} of {location!r} cannot be written as JPEG")
        return modified_s, data.tobytes()

    def pixels(
        self,
        reader: Reader,
        location: str,
        number: int,
        time_s: float,
        *,
        check: Callable[[BinaryIO], None] = lambda _file: None,
    ) -> tuple[float | None, Pixels]:
        """Return (time of the last change, the frame: uint8, RGB, upright); see :meth:`jpeg`."""
        if location != self._location:
            self.close()
            self._modified_s, file = self._opened.enter_context(reader.open(location))
            check(file)
            self._video = self._opened.enter_context(Video(file, max_pixels=self._settings.max_pixels))
            self._location = location
        assert self._video is not None, "a location was opened"
        self._video.find(number, time_s)
        return self._modified_s, self._video.pixels()

    def close(self) -> None:
        """Close the open video."""
        self._location = self._video = None
        self._opened.close()
