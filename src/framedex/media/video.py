"""Videos as streams of frames, one in memory at a time: each with its number and its presentation time.

OpenCV's FFmpeg decodes the videos. The code relies on these properties of OpenCV 5.0, each checked by a test: frames
are returned in the order of presentation; ``CAP_PROP_POS_MSEC`` after a ``grab`` is the presentation time of that frame
from the start of the stream, also with a variable frame rate; frames are rotated upright; ``grab`` alone skips the
conversion to RGB; a seek ends near the requested frame, not always at it.
"""

import math
import os
from functools import cache
from types import TracebackType
from typing import Any, BinaryIO

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media.containers import HEAD, codec_name, container_of, reason_closed
from framedex.media.decode import check_size

_BEFORE_S = 0.5  # a seek aims this much earlier, so that it rarely ends after the requested frame
_FURTHER = 4.0
_NEAR_S = 5.0  # shorter distances are decoded through; a usual distance of key frames
_MAX_THREADS = 8  # more threads hardly help the codecs, and each keeps frames in memory
_NO_TIME_S = 1e-6
_LOST = 0.02  # a fraction of the header's frame count, which is an estimate in some containers
_LOST_S = 0.5


class Video:
    """An open video, read frame by frame; also a context manager.

    Args:
        file: the video file; read as needed.
        max_pixels: the maximum number of pixels of a frame.
        threads: the number of decoding threads, at most 8.

    Attributes:
        container: for example ``mp4``.
        codec: FourCC in lower case, for example ``h264``.
        width, height: the size of a displayed frame in pixels: upright, with square pixels.
        fps: the mean frame rate from the header; 0 if unknown.
        duration_s: the duration from the header in seconds; 0 if unknown.
        number: the number of the current frame, from 0; -1 before the first frame and after a seek.
        time_s: the presentation time of the current frame, in seconds from the start.

    Raises:
        CannotDecode: the file is empty or cannot be decoded as a video; the message has the reason.
    """

    def __init__(self, file: BinaryIO, *, max_pixels: int, threads: int = 1) -> None:
        _be_quiet()
        file.seek(0)
        head = file.read(HEAD)
        if not head:
            raise CannotDecode("the file is empty")
        file.seek(0)
        self.container = container_of(head)
        if self.container is None:
            raise CannotDecode(reason_closed(file, None))
        self._file, self._threads = file, min(threads, _MAX_THREADS)
        self._capture = self._opened()
        self.codec = codec_name(int(self._get(cv2.CAP_PROP_FOURCC)))
        self._frames = max(int(self._get(cv2.CAP_PROP_FRAME_COUNT)), 0)
        self.fps = max(self._get(cv2.CAP_PROP_FPS), 0.0)
        self.duration_s = self._frames / self.fps if self.fps else 0.0
        self._near_s = _NEAR_S if self._frames > 1 and self.fps else math.inf  # seeking needs both
        self._stretch = _stretch(
            self._get(cv2.CAP_PROP_SAR_NUM), self._get(cv2.CAP_PROP_SAR_DEN), rotated=self._rotated()
        )
        stored = int(self._get(cv2.CAP_PROP_FRAME_WIDTH)), int(self._get(cv2.CAP_PROP_FRAME_HEIGHT))
        self.width, self.height = _stretched(stored, self._stretch)
        self.number, self.time_s = -1, -1.0
        try:
            check_size(max(self.width, stored[0]), max(self.height, stored[1]), max_pixels)
        except CannotDecode:
            self.close()
            raise

    def _opened(self) -> Any:
        try:
            file: Any = self._file  # OpenCV's annotations lack Python file objects
            capture = cv2.VideoCapture(file, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, self._threads])
        except cv2.error as error:
            raise CannotDecode(f"it cannot be opened: {error.err}") from None
        if not capture.isOpened():
            raise CannotDecode(reason_closed(self._file, self.container))
        return capture

    def _get(self, prop: int) -> float:
        value = float(self._capture.get(prop))
        return value if np.isfinite(value) else 0.0

    def _rotated(self) -> bool:
        return int(self._get(cv2.CAP_PROP_ORIENTATION_META)) % 180 == 90

    def advance(self) -> bool:
        """Advance to the next frame without decoding its pixels; return whether there is one."""
        if not self._grab():
            return False
        self.number += 1
        return True

    def _grab(self) -> bool:
        if not self._capture.grab():
            return False
        time_s = self._get(cv2.CAP_PROP_POS_MSEC) / 1000
        # If time stamps are missing or repeated, the times still ascend, so that each frame has its own.
        self.time_s = time_s if time_s > self.time_s else self.time_s + _NO_TIME_S
        return True

    def pixels(self) -> Pixels:
        """Return the current frame: uint8, shape (height, width, 3), RGB.

        Raises:
            CannotDecode: the frame cannot be decoded.
        """
        try:
            ok, frame = self._capture.retrieve()
        except cv2.error as error:
            raise CannotDecode(f"frame at {self.time_s:.3f} s: {error.err}") from None
        if not ok or frame is None or not frame.size:
            raise CannotDecode(f"frame at {self.time_s:.3f} s cannot be decoded")
        rgb = cv2.cvtColor(frame, cv2.COLOR_GRAY2RGB if frame.ndim == 2 else cv2.COLOR_BGR2RGB)
        if self._stretch != (1.0, 1.0):
            size = _stretched((rgb.shape[1], rgb.shape[0]), self._stretch)
            rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_LINEAR)
        return np.asarray(rgb, dtype=np.uint8)

    def find(self, number: int, time_s: float) -> None:
        """Go to a frame by its number and its presentation time, as recorded in an earlier pass.

        The method seeks to a key frame before the frame and decodes up to the time stamp. If no frame has this time
        stamp, it decodes and counts from the beginning. Ascending order is fastest.

        Raises:
            CannotDecode: the frame no longer exists.
        """
        near = self.time_s <= time_s < self.time_s + self._near_s
        if not (near and self._reach(time_s)) and not self._seek(time_s):
            self._near_s = math.inf  # later frames are then reached by decoding on, not from the beginning
            self._rewind()
            while self.number < number:
                if not self.advance():
                    raise CannotDecode(f"frame {number} cannot be decoded; the video ends at {self.time_s:.3f} s")

    def _seek(self, time_s: float) -> bool:
        before = _BEFORE_S
        while math.isfinite(self._near_s) and time_s > before:
            self._capture.set(cv2.CAP_PROP_POS_MSEC, (time_s - before) * 1000)
            self.number, self.time_s = -1, -1.0
            if not self._grab():
                return False
            if self.time_s <= time_s:
                return self._reach(time_s)
            before *= _FURTHER
        self._rewind()
        return self._reach(time_s)

    def _reach(self, time_s: float) -> bool:
        """Decode up to a time; return whether a frame has exactly this time."""
        while self.time_s < time_s:
            if not self.advance():
                return False
        return self.time_s == time_s

    def _rewind(self) -> None:
        self._capture.release()
        self._file.seek(0)
        self._capture = self._opened()
        self.number, self.time_s = -1, -1.0

    def reason_short(self) -> str | None:
        """Return, after the last frame, why the video is shorter than its header says; None if it is complete."""
        if self.number < 0:
            return "it has no frames that can be decoded"
        frame_s = 1 / self.fps if self.fps else 0.0
        lost_s = self.duration_s - self.time_s - frame_s
        if self.number + 1 < self._frames * (1 - _LOST) and lost_s > max(_LOST_S, self.duration_s * _LOST):
            return f"it ends after {self.time_s + frame_s:.2f} of {self.duration_s:.2f} s: truncated or damaged"
        return None

    def close(self) -> None:
        """Release the decoder; the file stays open."""
        self._capture.release()

    def __enter__(self) -> "Video":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@cache
def _be_quiet() -> None:
    """Silence messages of FFmpeg and OpenCV about damaged files; errors have the reason."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    logging = cv2.utils.logging
    if logging.getLogLevel() == logging.LOG_LEVEL_WARNING:  # the default; other levels were set by the user
        logging.setLogLevel(logging.LOG_LEVEL_ERROR)


def _stretch(num: float, den: float, *, rotated: bool) -> tuple[float, float]:
    """Return the factors of width and height that make pixels square; neither is below 1."""
    ratio = num / den if num > 0 and den > 0 else 1.0
    ratio = 1 / ratio if rotated else ratio
    return (ratio, 1.0) if ratio >= 1 else (1.0, 1 / ratio)


def _stretched(size: tuple[int, int], by: tuple[float, float]) -> tuple[int, int]:
    return round(size[0] * by[0]), round(size[1] * by[1])
