"""Small videos of which parts are parts of others, and some that only look alike."""

from pathlib import Path

import cv2
import numpy as np

from tests.image_files import Pixels, detailed
from tests.videos import FPS, write_video

SIZE = (120, 160)


def pan(seed: int, seconds: float, *, phase: float = 0.0) -> list[Pixels]:
    """Return a shot of a camera that moves over a photo on a curve."""
    image = detailed(seed, width=400, height=300)
    frames = []
    for number in range(round(seconds * FPS)):
        angle = phase + 0.35 * number / FPS
        top, left = (180 * (np.sin(1.3 * angle) + 1) / 2, 240 * (np.sin(angle) + 1) / 2)
        frames.append(np.ascontiguousarray(image[int(top) : int(top) + SIZE[0], int(left) : int(left) + SIZE[1]]))
    return frames


def still(seed: int, seconds: float) -> list[Pixels]:
    """Return a shot in which nothing moves."""
    return [detailed(seed, width=SIZE[1], height=SIZE[0])] * round(seconds * FPS)


def black(seconds: float) -> list[Pixels]:
    """Return black frames."""
    return [np.zeros((*SIZE, 3), np.uint8)] * round(seconds * FPS)


def cropped(frames: list[Pixels]) -> list[Pixels]:
    """Return frames without their edges, at the size that they had."""
    parts = (each[8:112, 10:150] for each in frames)
    return [np.asarray(cv2.resize(each, SIZE[::-1], interpolation=cv2.INTER_LINEAR), np.uint8) for each in parts]


def make_films(folder: Path) -> Path:
    """Make a film, a reel with 4.4 s of it, cropped and twice as fast, and two with a still and black in common."""
    film = [*pan(1, 6), *pan(2, 6)]
    write_video(folder / "film.mp4", film)
    write_video(folder / "reel.avi", [*pan(3, 5), *cropped(film[33:77])[::2], *pan(4, 4)])
    write_video(folder / "one.mp4", [*still(5, 4), *black(3), *pan(6, 3)])
    write_video(folder / "two.mp4", [*pan(7, 3), *still(5, 4), *black(3)])
    return folder
