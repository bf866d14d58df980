"""Frames of videos at any times, which are read from their files again."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.time_lines import Times
from framedex.core.arrays import Pixels
from framedex.core.assumed_roles import AssumedRole
from framedex.media.video import Video

FRAME_SIDE = 320
"""Pixels of the longer side of frames in memory."""


@dataclass(frozen=True)
class ComparedVideo:
    """A video whose frames are read again.

    Attributes:
        location: a path or a URI.
        role: the role to assume for reading it.
        numbers: int64, shape (N,): the numbers of the frames that are in the dataset, ascending.
        times: float64, shape (N,): their times in seconds.
        duration_s: its length.
    """

    location: str
    role: AssumedRole | None
    numbers: npt.NDArray[np.int64]
    times: Times
    duration_s: float

    @property
    def step(self) -> float:
        """The usual number of seconds between two frames."""
        return float(np.median(np.diff(self.times))) if len(self.times) > 1 else max(self.duration_s, 0.1)


class FramesAtTimes:
    """Frames of an open video at any times, which are read fastest in ascending order.

    Args:
        video: at its beginning.
        listed: its frames in the dataset.
    """

    def __init__(self, video: Video, listed: ComparedVideo) -> None:
        self._video, self.listed = video, listed

    def read(self, windows: list[tuple[float, float]], rate: float) -> tuple[Times, list[Pixels]]:
        """Return the times and the pixels of frames within ascending windows, at a rate."""
        times, pixels = list[float](), list[Pixels]()
        for start, end in windows:
            for time_s, frame in self._window(start, end, rate):
                times.append(time_s)
                pixels.append(frame)
        return np.array(times, np.float64), pixels

    def _window(self, start: float, end: float, rate: float) -> Iterator[tuple[float, Pixels]]:
        listed, video = self.listed, self._video
        place = int(np.searchsorted(listed.times, start + 1e-6, side="right")) - 1
        number, time_s = (0, 0.0) if place < 0 else (int(listed.numbers[place]), float(listed.times[place]))
        if not (video.number >= 0 and time_s <= video.time_s < start):
            video.find(number, time_s)
        next_s = start
        while video.time_s <= end:
            if video.time_s >= next_s - 1e-6:
                next_s = max(next_s + 1 / rate, video.time_s + 0.5 / rate)
                yield video.time_s, _reduced(video.pixels())
            if not video.advance():
                return


def _reduced(pixels: Pixels) -> Pixels:
    factor = FRAME_SIDE / max(pixels.shape[:2])
    if factor >= 1:
        return pixels
    size = max(1, round(pixels.shape[1] * factor)), max(1, round(pixels.shape[0] * factor))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
