"""Motion of two videos that are laid over each other: whether things move alike, not only stand alike.

Two recordings of one room, one street or one title card look the same as long as nothing moves. So frames are compared
by what changes: the difference of a frame from the mean of those around it. In a copy these differences are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.registration import Grey, Matrix
from framedex.analysis.time_lines import Times
from framedex.core.arrays import Mask

Values = npt.NDArray[np.float32]
SIDE = 72
"""Pixels of the longer side at which frames are compared."""
AROUND_S = 1.5
"""Seconds on both sides of a frame, whose mean is what stands."""
_DETAIL = 0.7  # pixels of blur: finer detail shows a shift of less than a pixel
_LIGHT = 0.14  # of the longer side: coarser structure may be light
_FAINT = 4.0  # grey levels: the deviation of a frame that shows something
_MOVING = 0.02  # share of the structure of a frame that moves
_LEAST_MOVING = 0.005  # the same, of a frame of which the moving part may be compared alone
_NOISE = 0.004  # of that share: what compression moves
_ALIKE_STILL, _ALIKE = 0.6, 0.3  # correlation of frames that stand alike, and of those that move alike
_STILL_GAIN = 0.1
_SAME_MOTION, _OTHER_MOTION = 0.6, 0.4  # correlation of motions


@dataclass(frozen=True)
class FrameStack:
    """Frames of a stretch of video, as vectors of their structure.

    Attributes:
        times: float64, shape (N,), ascending: seconds in the video.
        values: float32, shape (N, P): structure of unit length, or shorter where it is faint.
        shows: bool, shape (N,): whether a frame shows something.
    """

    times: Times
    values: Values
    shows: Mask

    @classmethod
    def of(cls, times: Times, frames: npt.NDArray[np.uint8], seen: Mask) -> "FrameStack":
        """Return the structure of greyscale frames.

        Args:
            times: the times of the frames.
            frames: uint8, shape (N, H, W).
            seen: bool, shape (H, W): the pixels that count.
        """
        values = np.empty((len(frames), int(np.count_nonzero(seen))), np.float32)
        side = 2 * round(_LIGHT * max(seen.shape)) + 1
        weight = np.maximum(cv2.blur(seen.astype(np.float32), (side, side)), 1e-3)
        for row, frame in zip(values, frames, strict=True):
            inside = np.where(seen, frame, 0).astype(np.float32)
            light = cv2.blur(inside, (side, side)) / weight
            row[:] = cv2.GaussianBlur(inside - np.where(seen, light, 0), (0, 0), _DETAIL)[seen]
        values -= values.mean(axis=1, keepdims=True)
        length = np.linalg.norm(values, axis=1)
        faint = _FAINT * np.sqrt(max(values.shape[1], 1))
        values /= np.maximum(length, faint)[:, None]
        return cls(times, values, length >= faint)

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: npt.NDArray[np.integer]) -> "FrameStack":
        """Return some of the frames."""
        return FrameStack(self.times[rows], self.values[rows], self.shows[rows])

    def moving_s(self) -> float:
        """Return the seconds in which something moves at all, if only in a small part of the frame."""
        step = float(np.median(np.diff(self.times))) if len(self) > 1 else 0.0
        moved = (self.motion(AROUND_S) ** 2).sum(axis=1)
        return step * float(np.count_nonzero((moved >= _LEAST_MOVING) & self.shows))

    def motion(self, around_s: float) -> Values:
        """Return the difference of each frame from the mean of those around it: float32, shape (N, P)."""
        near = (np.abs(self.times[:, None] - self.times) <= around_s) & self.shows
        weights = near / np.maximum(near.sum(axis=1, keepdims=True), 1)
        return np.asarray(self.values - weights.astype(np.float32) @ self.values, np.float32)


def laid_over(
    frames: Sequence[Grey], matrix: Matrix, size: tuple[int, int], *, is_mirrored: bool = False
) -> npt.NDArray[np.uint8]:
    """Return frames as they lie upon a raster: uint8, shape (N, *size*).

    Args:
        frames: greyscale, of one size.
        matrix: the transform from pixels of the raster to those of the frames, which are mirrored before.
        size: height and width of the raster.
        is_mirrored: whether they are.
    """
    scale = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
    sigma = 0.5 * float(np.sqrt(max(scale**2 - 1, 0)))
    out = np.empty((len(frames), *size), np.uint8)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    for row, frame in zip(out, frames, strict=True):
        shown = np.ascontiguousarray(frame[:, ::-1]) if is_mirrored else frame
        smooth = cv2.GaussianBlur(shown, (0, 0), sigma) if sigma > 0.3 else shown
        row[:] = cv2.warpAffine(smooth, matrix, size[::-1], flags=flags, borderMode=cv2.BORDER_CONSTANT)
    return out


def alike_gains(a: FrameStack, b: FrameStack, speed: float) -> Values:
    """Return the gain of each pair of frames: float32, shape (N, M), in [-1, 1].

    It is above 0 where frames move alike, a little where they stand alike, and below 0 where they differ.

    Args:
        a: frames of the first video.
        b: those of the second one, laid over them.
        speed: seconds of the second video for each second of the first one.
    """
    alike = a.values @ b.values.T
    mine, its = a.motion(AROUND_S), b.motion(AROUND_S * speed)
    moved, its_moved = ((each**2).sum(axis=1) for each in (mine, its))
    same = mine @ its.T / (np.sqrt(moved[:, None] * its_moved) + _NOISE)
    is_moving = np.maximum(moved[:, None], its_moved) >= _MOVING
    middle = (_SAME_MOTION + _OTHER_MOTION) / 2
    gains = np.where(is_moving, np.clip((same - middle) / (1 - middle), -1, 1), np.float32(_STILL_GAIN))
    gains = np.where(alike >= np.where(is_moving, _ALIKE, _ALIKE_STILL), gains, np.float32(-1))
    shown = a.shows[:, None].astype(np.int8) + b.shows
    return np.asarray(np.select([shown == 0, shown == 1], [np.float32(0), np.float32(-1)], gains), np.float32)


@dataclass(frozen=True)
class MotionEvidence:
    """Evidence that two stretches of video are the same.

    Attributes:
        same_s: seconds in which they move alike.
        other_s: seconds in which they move differently.
        similarity: the mean correlation of their frames, at most 1.
    """

    same_s: float
    other_s: float
    similarity: float

    @classmethod
    def of(cls, a: FrameStack, b: FrameStack) -> "MotionEvidence":
        """Return the evidence of aligned frames: as many of both."""
        timed = FrameStack(a.times, b.values, a.shows & b.shows)
        a = FrameStack(a.times, a.values, timed.shows)
        mine, its = a.motion(AROUND_S), timed.motion(AROUND_S)
        moved, its_moved = ((each**2).sum(axis=1) for each in (mine, its))
        same = (mine * its).sum(axis=1) / (np.sqrt(moved * its_moved) + _NOISE)
        step = float(np.median(np.diff(a.times))) if len(a) > 1 else 0.0
        is_moving = (np.maximum(moved, its_moved) >= _MOVING) & timed.shows
        alike = (a.values * b.values).sum(axis=1)[timed.shows]
        return cls(
            step * float(np.count_nonzero(is_moving & (same >= _SAME_MOTION))),
            step * float(np.count_nonzero(is_moving & (same < _OTHER_MOTION))),
            float(alike.mean()) if len(alike) else 0.0,
        )
