"""Frames that move alike, and frames that only stand alike."""

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.frame_motion import FrameStack, MotionEvidence, alike_gains, laid_over
from tests.image_files import photo

SIZE = 84, 112
SEEN = np.ones(SIZE, bool)
TIMES = np.arange(30) / 6


def scene(seed: int, *, count: int = 30) -> npt.NDArray[np.uint8]:
    """Return frames of a room in which a thing moves along a path of its own."""
    random = np.random.default_rng(seed)
    room = cv2.cvtColor(photo(3, width=SIZE[1], height=SIZE[0]), cv2.COLOR_RGB2GRAY)
    thing = cv2.cvtColor(photo(4, width=24, height=24), cv2.COLOR_RGB2GRAY)
    speeds, phases = random.uniform(1, 3, 2), random.uniform(0, 6, 2)
    frames = []
    for number in range(count):
        waves = (np.sin(speeds * number / 6 + phases) + 1) / 2
        top, left = (waves * (SIZE[0] - 24, SIZE[1] - 24)).astype(int)
        frame = room.copy()
        frame[top : top + 24, left : left + 24] = thing
        frames.append(frame)
    return np.array(frames, np.uint8)


def stack(frames: npt.NDArray[np.uint8]) -> FrameStack:
    return FrameStack.of(TIMES[: len(frames)], frames, SEEN)


def noisy(frames: npt.NDArray[np.uint8], seed: int) -> npt.NDArray[np.uint8]:
    noise = np.random.default_rng(seed).normal(0, 3, frames.shape)
    return np.clip(frames + noise, 0, 255).astype(np.uint8)


def test_evidence__of_a_copy() -> None:
    """A copy moves alike all the time, also brighter and with noise."""
    frames = scene(1)
    evidence = MotionEvidence.of(stack(frames), stack(noisy((frames * 0.8 + 30).astype(np.uint8), 5)))
    assert evidence.same_s > 4
    assert evidence.other_s == 0
    assert evidence.similarity > 0.9


def test_evidence__of_one_room_on_two_days() -> None:
    """Most of the frames is equal, but what moves is elsewhere."""
    evidence = MotionEvidence.of(stack(scene(1)), stack(scene(2)))
    assert evidence.other_s > 2 * evidence.same_s
    assert evidence.similarity > 0.6


def test_evidence__of_what_stands_still() -> None:
    """A title card proves nothing, however equal it is."""
    card = np.repeat(scene(1, count=1), 30, axis=0)
    evidence = MotionEvidence.of(stack(noisy(card, 1)), stack(noisy(card, 2)))
    assert (evidence.same_s, evidence.other_s) == (0, 0)
    assert evidence.similarity > 0.8


def test_gains__are_largest_at_the_same_time() -> None:
    """A frame gains most with itself, loses with others in which things are elsewhere; black frames are neutral."""
    frames = scene(1)
    frames[:3] = 0
    gains = alike_gains(stack(frames), stack(noisy(frames, 6)), 1.0)
    assert (gains[3:].argmax(axis=1) == np.arange(3, 30)).mean() > 0.9
    assert (gains[:3, :3] == 0).all()
    assert (gains[:3, 3:] == -1).all()


def test_laid_over__undoes_a_crop_of_a_mirrored_frame() -> None:
    """A raster shows a cropped, mirrored and enlarged frame where it was."""
    (frame,) = scene(1, count=1)
    part = frame[10:70, 20:100]
    cropped = np.asarray(cv2.resize(part[:, ::-1], (160, 120), interpolation=cv2.INTER_LINEAR), np.uint8)
    matrix = np.array([[2.0, 0, -2 * 20 + 0.5], [0, 2.0, -2 * 10 + 0.5]])
    (shown,) = laid_over([cropped], matrix, SIZE, is_mirrored=True)
    inside = (slice(14, 66), slice(24, 96))
    assert np.abs(shown[inside].astype(int) - frame[inside]).mean() < 6
