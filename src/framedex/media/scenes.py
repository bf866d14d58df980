"""Where scenes of a video change: by the distance of colour histograms, against a threshold that follows the video."""

from collections import deque

import cv2
import numpy as np
import numpy.typing as npt

from framedex.arrays import Pixels

_SIDE = 64
_BINS = (12, 4, 4)
_RANGES = (0.0, 180.0, 0.0, 256.0, 0.0, 256.0)
_WINDOW = 32  # frames
_LEAST = 0.3  # of a distance in [0, 1]: less is motion or a change of light
_DEVIATIONS = 5.0
_APART_S = 0.5


class SceneChanges:
    """Tells the first frames of scenes; frames are shown to it one by one, all of them.

    The measure is the Hellinger distance of HSV histograms (12 × 4 × 4 bins) of two frames that follow each other, in
    [0, 1]. A scene begins where it is at least 0.3 and more than five standard deviations above its mean over the 32
    frames before (an adaptive threshold as in Yusoff, Christmas and Kittler, Video Shot Cut Detection Using Adaptive
    Thresholding, BMVC 2000), and at least half a second after the last beginning: flashes are no scenes. The very
    first frame begins none.
    """

    def __init__(self) -> None:
        self._last: npt.NDArray[np.float32] | None = None
        self._distances: deque[float] = deque(maxlen=_WINDOW)
        self._since_s = 0.0

    def begins(self, pixels: Pixels, time_s: float) -> bool:
        """Return whether a scene begins with the frame at a time.

        Args:
            pixels: uint8, shape (H, W, 3), RGB.
            time_s: its presentation time.
        """
        histogram, last = _histogram(pixels), self._last
        self._last = histogram
        if last is None:
            self._since_s = time_s
            return False
        distance = float(np.sqrt(max(0.0, 1.0 - float(np.sqrt(histogram * last).sum()))))
        usual = np.array(self._distances or (0.0,))
        found = distance >= max(_LEAST, float(usual.mean() + _DEVIATIONS * usual.std()))
        if not found:
            self._distances.append(distance)
        if not found or time_s - self._since_s < _APART_S:
            return False
        self._since_s = time_s
        return True


def _histogram(pixels: Pixels) -> npt.NDArray[np.float32]:
    small = cv2.resize(pixels, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    counts = cv2.calcHist([cv2.cvtColor(small, cv2.COLOR_RGB2HSV)], [0, 1, 2], None, _BINS, _RANGES)
    return np.asarray(counts / counts.sum(), dtype=np.float32)
