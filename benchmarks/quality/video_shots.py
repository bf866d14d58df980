"""Videos that are made of photos: shots with a moving camera or moving things, edits of clips, and their files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Frames = list[npt.NDArray[np.uint8]]
FPS = 25.0
SIZE = 240, 320
_LOW_QUALITY = 25


def read_photo(path: Path) -> npt.NDArray[np.uint8]:
    """Return a photo as BGR, at least 1.5 times as large as a shot."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    assert image is not None, path
    factor = max(1.5 * SIZE[0] / image.shape[0], 1.5 * SIZE[1] / image.shape[1])
    return np.asarray(cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8)


@dataclass(frozen=True)
class Path2D:
    """A path of a camera over a photo: where it begins and ends, as shares of what is free, and its zooms."""

    begin: tuple[float, float]
    end: tuple[float, float]
    zoom: tuple[float, float]

    @classmethod
    def random(cls, random: np.random.Generator) -> "Path2D":
        """Return a path of at least a quarter of what is free, or a zoom."""
        while True:
            begin, end = random.random(2), random.random(2)
            zoom = random.uniform(0.6, 1.0, 2)
            if np.hypot(*(begin - end)) > 0.35 or abs(zoom[0] - zoom[1]) > 0.2:
                return cls(tuple(begin), tuple(end), tuple(zoom))


def pan(photo: npt.NDArray[np.uint8], path: Path2D, seconds: float) -> Frames:
    """Return a shot of a camera that moves over a photo."""
    height, width = photo.shape[:2]
    most = min(height / SIZE[0], width / SIZE[1])
    frames = []
    for share in np.linspace(0, 1, round(seconds * FPS)):
        zoom = most * (path.zoom[0] + share * (path.zoom[1] - path.zoom[0]))
        high, wide = SIZE[0] * zoom, SIZE[1] * zoom
        place = np.array(path.begin) + share * (np.array(path.end) - path.begin)
        top, left = place * (height - high, width - wide)
        matrix = np.array([[zoom, 0, left], [0, zoom, top]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        frames.append(np.asarray(cv2.warpAffine(photo, matrix, SIZE[::-1], flags=flags), np.uint8))
    return frames


def still(photo: npt.NDArray[np.uint8], seconds: float) -> Frames:
    """Return a shot in which nothing moves."""
    frame = np.asarray(cv2.resize(photo, SIZE[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    return [frame] * round(seconds * FPS)


def black(seconds: float) -> Frames:
    """Return black frames."""
    return [np.zeros((*SIZE, 3), np.uint8)] * round(seconds * FPS)


def title(text: str, seconds: float) -> Frames:
    """Return a title card that fades in and out."""
    card = np.full((*SIZE, 3), (60, 30, 20), np.uint8)
    for row, part in enumerate(text.split("\n")):
        cv2.putText(card, part, (30, 90 + 50 * row), cv2.FONT_HERSHEY_DUPLEX, 1.1, (240, 240, 240), 2, cv2.LINE_AA)
    count = round(seconds * FPS)
    light = np.minimum(1, np.minimum(np.arange(count), np.arange(count)[::-1]) / (0.4 * FPS))
    return [np.asarray(card * each, np.uint8) for each in light]


def studio(
    photo: npt.NDArray[np.uint8], thing: npt.NDArray[np.uint8], seconds: float, random: np.random.Generator
) -> Frames:
    """Return a shot of a fixed camera before which a thing moves."""
    ground, small = still(photo, 1)[0], cv2.resize(thing, (90, 110), interpolation=cv2.INTER_AREA)
    mask = np.zeros(small.shape[:2], np.uint8)
    cv2.ellipse(mask, (45, 55), (44, 54), 0, 0, 360, 1, -1)
    speeds, phases = random.uniform(0.6, 2.2, (2, 2)), random.uniform(0, 6.3, (2, 2))
    frames = []
    for number in range(round(seconds * FPS)):
        waves = np.sin(speeds * number / FPS + phases).mean(axis=1)
        top, left = ((waves + 1) / 2 * (SIZE[0] - 110, SIZE[1] - 90)).astype(int)
        frame = ground.copy()
        part = frame[top : top + 110, left : left + 90]
        part[mask > 0] = small[mask > 0]
        frames.append(frame)
    return frames


def noisy(frames: Frames, random: np.random.Generator) -> Frames:
    """Return frames with the noise of a sensor."""
    return [
        np.clip(each + random.normal(0, 3, each.shape).astype(np.float32), 0, 255).astype(np.uint8) for each in frames
    ]


def at_speed(frames: Frames, speed: float) -> Frames:
    """Return frames at another speed."""
    count = round(len(frames) / speed)
    return [frames[min(len(frames) - 1, int(number * speed))] for number in range(count)]


def _each(change: Callable[[Any], Any]) -> Callable[[Frames], Frames]:
    return lambda frames: [np.asarray(change(each), np.uint8) for each in frames]


def _encoded(frame: Any) -> Any:
    return cv2.imdecode(cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, _LOW_QUALITY])[1], cv2.IMREAD_COLOR)


def _half(frame: Any) -> Any:
    return _fit(cv2.resize(frame, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))


def _cropped(frame: Any) -> Any:
    """Keep 80 % of both sides, off the middle."""
    height, width = frame.shape[:2]
    top, left = round(0.05 * height), round(0.15 * width)
    return _fit(frame[top : top + round(0.8 * height), left : left + round(0.8 * width)])


def _logo(frame: Any) -> Any:
    shown = frame.copy()
    width = shown.shape[1]
    cv2.rectangle(shown, (width - 90, 12), (width - 12, 60), (20, 40, 220), -1)
    cv2.putText(shown, "TV1", (width - 84, 48), cv2.FONT_HERSHEY_DUPLEX, 1.1, (255, 255, 255), 2, cv2.LINE_AA)
    return shown


def _barred(frame: Any, value: int = 0) -> Any:
    height, width = frame.shape[:2]
    bar = round(0.14 * height)
    inner = cv2.resize(frame, (width, height - 2 * bar), interpolation=cv2.INTER_AREA)
    return cv2.copyMakeBorder(inner, bar, bar, 0, 0, cv2.BORDER_CONSTANT, value=(value,) * 3)


def _sepia(frame: Any) -> Any:
    grey = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY).astype(np.float32)[..., None]
    return np.clip(grey * np.array([0.75, 0.95, 1.1]), 0, 255)


def _fit(frame: Any) -> Any:
    return cv2.resize(frame, SIZE[::-1], interpolation=cv2.INTER_LINEAR)


EDITS: Mapping[str, tuple[Callable[[Frames], Frames], float]] = {
    "re-encoded": (_each(_encoded), 1.0),
    "half size": (_each(_half), 1.0),
    "cropped": (_each(_cropped), 1.0),
    "slower": (_each(_encoded), 0.75),
    "faster": (_each(_encoded), 1.25),
    "fastest": (_each(_encoded), 1.5),
    "mirrored": (_each(lambda frame: frame[:, ::-1]), 1.0),
    "logo": (_each(_logo), 1.0),
    "letterbox": (_each(_barred), 1.0),
    "cropped and faster": (_each(_cropped), 1.25),
}
"""Edits of clips, and the speeds at which these are shown."""
WHOLE_EDITS: Mapping[str, Callable[[Any], Any]] = {
    "bar": _barred,
    "grey bar": lambda frame: _barred(frame, 128),
    "sepia bar": lambda frame: _barred(_sepia(frame)),
    "large logo bar": lambda frame: _barred(_logo(_logo(frame))),
    "small": lambda frame: cv2.resize(frame, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA),
    "logo": _logo,
}
"""Edits of whole videos, as those of the test videos of ThreatExchange."""


def read_frames(path: Path, most: int = 750, side: int = 360) -> tuple[Frames, float]:
    """Return the first frames of a video, reduced, and its rate."""
    capture = cv2.VideoCapture(str(path))
    fps, frames = float(capture.get(cv2.CAP_PROP_FPS)), Frames()
    while len(frames) < most and (read := capture.read())[0]:
        factor = min(1.0, side / max(read[1].shape[:2]))
        frames.append(
            np.asarray(cv2.resize(read[1], None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8)
        )
    return frames, fps


def write_frames(path: Path, frames: Sequence[npt.NDArray[np.uint8]], fps: float = FPS) -> Path:
    """Write BGR frames of one size as a video; return its path."""
    height, width = (side // 2 * 2 for side in frames[0].shape[:2])
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), fps, (width, height))
    assert writer.isOpened(), path
    for each in frames:
        writer.write(np.ascontiguousarray(each[:height, :width]))
    writer.release()
    return path
