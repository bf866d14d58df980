"""Videos as streams of frames, one in memory at a time: each with its number and its presentation time."""

import math
from types import TracebackType
from typing import Any, BinaryIO

import cv2
import numpy as np

from framedex.core.arrays import Pixels
from framedex.errors import CannotDecode
from framedex.media import ffmpeg
from framedex.media.containers import HEAD, container_of, is_short, not_opened
from framedex.media.decoded_image import check_size
from framedex.media.video_damage import VideoDamage
from framedex.media.video_stream import Matrix, NoDecoder, VideoStream

_BEFORE_S = 0.5  # a seek aims this much earlier, so that it rarely ends after the requested frame
_FURTHER = 4.0
_NEAR_S = 5.0  # shorter distances are decoded through; a usual distance of key frames
_MAX_THREADS = 8  # more threads hardly help the codecs, and each keeps frames in memory
_NO_TIME_S = 1e-6
_SAME_S = 4e-7  # times of frames differ by more; a stored one was once rounded
_FRAMES = 1.5  # a gap in time has at least this many frames' duration


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
        number: the number of the current frame, from 0; frames that cannot be decoded count. -1 before the first frame
            and after a seek.
        decoded_frames: the number of frames that were decoded since the beginning or the last seek.
        time_s: the presentation time of the current frame, in seconds from the start of the file. It ascends.
        is_damaged: whether the current frame has gaps, or is decoded from frames that have gaps or are lost.
        damage: what was found while the video was decoded from its beginning.

    Raises:
        CannotDecode: the file is empty or cannot be decoded as a video; the message has the reason.
    """

    def __init__(self, file: BinaryIO, *, max_pixels: int, threads: int = 1) -> None:
        file.seek(0)
        head = file.read(HEAD)
        if not head:
            raise CannotDecode("the file is empty")
        container = container_of(head)
        if container is None:
            raise not_opened(file, None)
        self.container, self._file = container, file
        self._max_pixels, self._threads = max_pixels, min(threads, _MAX_THREADS)
        self._stream = self._opened()
        self.codec, self.fps, self.duration_s = self._stream.codec, self._stream.fps, self._stream.duration_s
        self._near_s = math.inf if container == "es" else _NEAR_S  # a stream without a container has no times to seek
        self._is_across = self._stream.matrix[0][0] == 0
        self._stretch = _stretch(self._stream.sample_aspect_ratio or 1.0, rotated=self._is_across)
        stored = (self._stream.width, self._stream.height)[:: -1 if self._is_across else 1]
        self.width, self.height = _stretched(stored, self._stretch)
        try:
            check_size(max(self.width, stored[0]), max(self.height, stored[1]), max_pixels)
        except CannotDecode:
            self.close()
            raise

    def _opened(self) -> VideoStream:
        """Return the stream at its beginning."""
        self._set_before()
        limits = {"max_pixels": self._max_pixels, "threads": self._threads}
        codec = ""
        for library in ffmpeg.libraries():
            try:
                return VideoStream(library, self._file, self.container, **limits)
            except NoDecoder as error:
                codec = str(error)
        raise CannotDecode(
            f"OpenCV's FFmpeg has no decoder for {codec}; PyAV's may have one (pip install av)", "not_supported"
        )

    def _set_before(self) -> None:
        """Set the state before the first frame, or after a seek."""
        self.number, self.time_s, self.decoded_frames = -1, -1.0, 0
        self.is_damaged, self.damage = False, VideoDamage()
        self._gap: tuple[float, float] | None = None  # the times of the last two frames, if they are far apart

    def advance(self) -> bool:
        """Advance to the next frame without converting its pixels; return whether there is one.

        Frames that cannot be decoded are passed; their numbers are left out.
        """
        stream, before_s = self._stream, self.time_s
        has_frame = stream.next()
        for time_s in stream.lost_s:
            self.number += 1
            self.damage.add_lost(self.number, time_s)
        if not has_frame:
            self._set_end()
            return False
        self.number += 1
        self.decoded_frames += 1
        self._set_time()
        is_gap = self._has_gap(before_s)
        is_broken = stream.is_damaged or is_gap or bool(stream.lost_s) or self.is_damaged
        self.is_damaged = stream.is_damaged or (is_broken and not stream.is_key)
        if self.is_damaged:
            self.damage.add_wrong(self.number, self.time_s)
        return True

    def _has_gap(self, before_s: float) -> bool:
        """Return whether frames are missing before the current one, and note it."""
        is_gap = 0 <= before_s < self.time_s - _FRAMES * self._frame_s
        gaps = self._gap, (before_s, self.time_s) if is_gap else None  # in some containers it is seen a frame later
        self._gap = gaps[1]
        gap = next(filter(None, gaps), None)
        if gap is None or not self._stream.is_after_gap:
            return False
        self.damage.add_gap(*gap)
        self.damage.add_wrong(self.number - 1, before_s)  # its data may end in the bytes without a frame
        self._gap = None
        return True

    def _set_time(self) -> None:
        # If time stamps are missing or repeated, the times still ascend, so that each frame has its own.
        time_s, before_s = self._stream.time_s, self.time_s
        if time_s is None:
            time_s = 0.0 if before_s < 0 else before_s + self._frame_s
        self.time_s = time_s if time_s > before_s else before_s + _NO_TIME_S

    @property
    def _frame_s(self) -> float:
        """The mean time between two frames; 0 if unknown."""
        return 1 / self.fps if self.fps else 0.0

    def _set_end(self) -> None:
        """Note whether the video ends earlier than its file says."""
        end_s = max(self.time_s, 0.0) + self._frame_s
        is_early = self.duration_s == 0 or end_s + self._frame_s < self.duration_s
        if is_early and (self._stream.is_cut_off or is_short(self._file, self.container)):
            self.damage.set_end(end_s, self.duration_s)

    def pixels(self) -> Pixels:
        """Return the current frame: uint8, shape (height, width, 3), RGB, upright, with square pixels.

        Raises:
            CannotDecode: the frame cannot be converted.
        """
        try:
            rgb: Any = _upright(self._stream.pixels(), self._stream.matrix)
        except CannotDecode as error:
            raise CannotDecode(f"frame at {self.time_s:.3f} s: {error}", error.fault) from None
        if self._stretch != (1.0, 1.0):
            rgb = cv2.resize(rgb, (self.width, self.height), interpolation=cv2.INTER_LINEAR)
        return np.asarray(rgb, dtype=np.uint8)

    def find(self, number: int, time_s: float) -> None:
        """Go to a frame by its number and its presentation time, as recorded in an earlier pass.

        The method seeks to a key frame before the frame and decodes up to the time stamp. If no frame has this time
        stamp, it decodes and counts from the beginning. Ascending order is fastest.

        Raises:
            CannotDecode: the frame no longer exists.
        """
        time_s = self._from_start_of_file(number, time_s)
        near = self.time_s <= time_s < self.time_s + self._near_s
        if not (near and self._reach(time_s)) and not self._seek(time_s):
            self._near_s = math.inf  # later frames are then reached by decoding on, not from the beginning
            self._rewind()
            while self.number < number:
                if not self.advance():
                    raise CannotDecode(f"frame {number} cannot be decoded; the video ends at {self.time_s:.3f} s")

    def _from_start_of_file(self, number: int, time_s: float) -> float:
        """Return a stored time; earlier versions counted it from the start of the stream, which may begin later."""
        delay_s = self._stream.delay_s
        is_of_stream = round(time_s * self.fps) == number != round((time_s - delay_s) * self.fps)
        return time_s + delay_s if is_of_stream else time_s

    def _seek(self, time_s: float) -> bool:
        before = _BEFORE_S
        while math.isfinite(self._near_s) and time_s > before:
            has_sought = self._stream.seek(time_s - before)
            self._set_before()
            if not (has_sought and self.advance() and self._stream.time_s is not None):
                return False
            if self.time_s <= time_s:
                return self._reach(time_s)
            before *= _FURTHER
        self._rewind()
        return self._reach(time_s)

    def _reach(self, time_s: float) -> bool:
        """Decode up to a time; return whether a frame has exactly this time."""
        while self.time_s < time_s - _SAME_S:
            if not self.advance():
                return False
        return abs(self.time_s - time_s) < _SAME_S

    def _rewind(self) -> None:
        self._stream.close()
        self._stream = self._opened()

    def close(self) -> None:
        """Release the decoder; the file stays open."""
        self._stream.close()

    def __enter__(self) -> "Video":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _stretch(ratio: float, *, rotated: bool) -> tuple[float, float]:
    """Return the factors of width and height that make pixels square; neither is below 1."""
    ratio = 1 / ratio if rotated else ratio
    return (ratio, 1.0) if ratio >= 1 else (1.0, 1 / ratio)


def _stretched(size: tuple[int, int], by: tuple[float, float]) -> tuple[int, int]:
    return round(size[0] * by[0]), round(size[1] * by[1])


def _upright(pixels: Pixels, matrix: Matrix) -> Pixels:
    """Return pixels turned and mirrored by a matrix, whose rows are the directions of the columns and the rows."""
    is_across = matrix[0][0] == 0
    upright: Any = cv2.transpose(pixels) if is_across else pixels
    is_mirrored, is_flipped = (sum(row) < 0 for row in matrix)
    if is_mirrored or is_flipped:
        upright = cv2.flip(upright, -1 if is_mirrored and is_flipped else int(is_mirrored))
    return np.asarray(upright, dtype=np.uint8)
