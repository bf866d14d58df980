"""Detection of scene changes in videos, by distances of colour histograms and an adaptive threshold."""

from collections import deque

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels

_SIDE = 64
_BINS = (12, 4, 4)
_RANGES = (0.0, 180.0, 0.0, 256.0, 0.0, 256.0)
_WINDOW = 32  # frames
_MIN_DISTANCE = 0.3  # in [0, 1]; smaller distances are motion or changes of light
_DEVIATIONS = 5.0
_MIN_INTERVAL_S = 0.5


class SceneChanges:
    """A detector of the first frames of scenes. It needs all frames of a video, in order.

    The measure is the Hellinger distance of the HSV histograms (12 × 4 × 4 bins) of consecutive frames, in [0, 1]. A
    scene begins if the distance is at least 0.3 and more than five standard deviations above its mean over the previous
    32 frames (an adaptive threshold as in Yusoff, Christmas and Kittler, Video Shot Cut Detection Using Adaptive
    Thresholding, BMVC 2000). It must also be at least half a second after the previous scene change, so that flashes do
    not count. The first frame of the video is not a scene change.
    """

    def __init__(self) -> None:
        self._last: npt.NDArray[np.float32] | None = None
        self._distances: deque[float] = deque(maxlen=_WINDOW)
        self._since_s = 0.0

    def begins(self, pixels: Pixels, time_s: float) -> bool:
        """Return whether a scene begins with a frame.

        Args:
            pixels: uint8, shape (H, W, 3), RGB.
            time_s: the presentation time of the frame in seconds.
        """
        histogram, last = _histogram(pixels), self._last
        self._last = histogram
        if last is None:
            self._since_s = time_s
            return False
        distance = float(np.sqrt(max(0.0, 1.0 - float(np.sqrt(histogram * last).sum()))))
        recent = np.array(self._distances or (0.0,))
        is_change = distance >= max(_MIN_DISTANCE, float(recent.mean() + _DEVIATIONS * recent.std()))
        if not is_change:
            self._distances.append(distance)
        if not is_change or time_s - self._since_s < _MIN_INTERVAL_S:
            return False
        self._since_s = time_s
        return True


def _histogram(pixels: Pixels) -> npt.NDArray[np.float32]:
    small = cv2.resize(pixels, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    counts = cv2.calcHist([cv2.cvtColor(small, cv2.COLOR_RGB2HSV)], [0, 1, 2], None, _BINS, _RANGES)
    return np.asarray(counts / counts.sum(), dtype=np.float32)
